// Package redact finds secrets in commands, settings and texts and puts a mark
// in their place, and makes text of unknown origin safe to show. A secret is
// known by the name that it stands under (API_KEY, --hf-token), by its form
// (hf_..., "Bearer ..."), or by its value ([Values]).
//
//	argv, env := redact.Argv(cmd.Args), redact.Env(cmd.Env)
//	log := redact.ValuesOf(cmd.Args, cmd.Env).Mask(redact.Text(log))
//
// [Values] learns secrets where they come in (environment, flags, study files)
// and finds them again wherever they come out, also in base64 or in a URL.
// [Writer] is what everything goes through that a person reads.
//
// All functions return copies and leave what they are given as it is. A figure
// or a word such as "none" is never taken for a secret. Absent: a promise that
// a secret under an innocent name and of no known form is found.
package redact

import (
	"slices"
	"strings"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// secretWords end the part of a name that says that a secret stands under it.
var secretWords = []string{
	"key", "keys", "token", "secret", "secrets", "password", "passwd", "passphrase", "credential", "credentials",
	"pass", "pwd", "bearer", "jwt", "cookie", "signature",
}

// plainParts end in such a word and mean something else.
var plainParts = []string{"oldpwd", "bypass", "askpass", "compass", "monkey", "turkey", "hotkey"}

// plainPairs are two parts of a name that are no secret together though the
// second one is by itself: the first token, a bound for each token, whether a
// browser may send credentials.
var plainPairs = [][2]string{{"first", "token"}, {"per", "token"}, {"output", "token"}, {"allow", "credentials"}, {"cors", "credentials"}}

// secretPairs are two parts of a name that are one only together.
var secretPairs = [][2]string{
	{"basic", "auth"}, {"proxy", "auth"}, {"http", "auth"}, {"registry", "auth"}, {"auth", "config"}, {"x", "auth"},
	{"otlp", "headers"}, {"traces", "headers"}, {"metrics", "headers"}, {"logs", "headers"}, // OTEL_EXPORTER_OTLP_TRACES_HEADERS
}

// plainTails end a name that holds not the secret but where it is, or a
// property of it: API_KEY_FILE, --speculative-token-map.
var plainTails = []string{"file", "path", "dir", "sock", "map", "threshold", "latency", "ratio", "dtype", "type", "format", "size", "length", "count", "timeout"}

// encodings end the name of a variable that holds a file's content: KEYFILE_B64.
var encodings = []string{"b64", "base64", "pem", "json", "hex", "data", "content"}

// IsSecret tells from its name whether an environment variable, a flag or a
// field holds a secret: a part of the name ends in such a word. Plural "tokens"
// does not count: max_num_batched_tokens is a figure.
func IsSecret(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	last := len(parts) - 1
	if last < 0 || slices.Contains(plainTails, parts[last]) {
		return false
	}
	for i, p := range parts {
		before := ""
		if i > 0 {
			before = parts[i-1]
		}
		pair := [2]string{before, p}
		short := p == "pass" || p == "pwd" // DB_PASS is one, PWD and --forward-pass-metrics are not
		if slices.Contains(secretPairs, pair) || isSecretWord(p) && !slices.Contains(plainPairs, pair) && (!short || 0 < i && i == last) {
			return true
		}
	}
	return slices.Contains(encodings, parts[last]) && slices.ContainsFunc(parts[:last], func(p string) bool { return strings.HasSuffix(p, "keyfile") })
}

func isSecretWord(part string) bool {
	return !slices.Contains(plainParts, part) && slices.ContainsFunc(secretWords, func(w string) bool { return strings.HasSuffix(part, w) })
}

// Argv returns a command's words with the values of secret flags, of secret
// assignments before a command, and what [Text] finds within its words, as in
// the script of a shell, replaced.
func Argv(argv []string) []string { return argvOf(argv, none) }

func argvOf(argv []string, found func(string)) []string {
	out := slices.Clone(argv)
	flag := false // the argument before is a secret flag without a value
	for i, a := range out {
		name, value, assigned := strings.Cut(a, "=")
		isFlag := strings.HasPrefix(a, "-")
		switch {
		case assigned && !strings.ContainsAny(name, " /{") && IsSecret(name):
			found(value)
			out[i] = name + "=" + Mark
			flag = false
		case flag && !isFlag:
			found(a)
			out[i] = Mark // and on: such flags may take several values
		default:
			out[i] = textOf(a, found)
			flag = isFlag && !assigned && IsSecret(a)
		}
	}
	return out
}

// Env returns environment entries (NAME=value) with the values of secrets
// replaced, and those within other values, as in the URL of a proxy.
func Env(env []string) []string { return envOf(env, none) }

func envOf(env []string, found func(string)) []string {
	out := slices.Clone(env)
	for i, e := range out {
		name, value, _ := strings.Cut(e, "=")
		if IsSecret(name) {
			found(value)
			out[i] = name + "=" + Mark
			continue
		}
		out[i] = name + "=" + textOf(value, found)
	}
	return out
}

func none(string) {}

// Tree returns a decoded JSON or YAML value that stands under a name, with the
// secrets in it replaced.
func Tree(name string, value any) any { return treeOf(name, value, none) }

func treeOf(name string, value any, found func(string)) any {
	switch v := value.(type) {
	case string:
		return fieldOf(name, v, found)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = treeOf(name, v[i], found)
		}
		return list
	case map[string]any:
		out := map[string]any{}
		for key, below := range v {
			out[key] = treeOf(key, below, found)
		}
		return out
	}
	return value
}
