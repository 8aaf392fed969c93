// Package redact finds secrets in commands, settings and texts and puts a mark
// in their place, and makes text of unknown origin safe to show. A secret is
// known by the name that it stands under (API_KEY, --hf-token), by its form
// (hf_..., "Bearer ..."), or by its value ([Values]).
//
//	argv, env := redact.Argv(cmd.Args), redact.Env(cmd.Env)
//	log := redact.ValuesOf(cmd.Args, cmd.Env).Mask(redact.Text(log))
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

// shortest is the fewest bytes of a value that is looked for in other text:
// shorter ones are flags and versions, and would mask half of any text.
const shortest = 6

var secretWords = []string{"key", "keys", "token", "secret", "secrets", "password", "passwd", "passphrase", "credential", "credentials"}

// IsSecret tells from its name whether an environment variable, a flag or a
// field holds a secret: a part of the name ends in such a word. Plural "tokens"
// does not count: max_num_batched_tokens is a figure.
func IsSecret(name string) bool {
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	return slices.ContainsFunc(parts, func(p string) bool {
		return slices.ContainsFunc(secretWords, func(w string) bool { return strings.HasSuffix(p, w) })
	})
}

// Argv returns a command's words with the values of secret flags, and of secret
// assignments before a command, replaced.
func Argv(argv []string) []string {
	out := slices.Clone(argv)
	flag := false // the argument before is a secret flag without a value
	for i, a := range out {
		name, _, assigned := strings.Cut(a, "=")
		isFlag := strings.HasPrefix(a, "-")
		switch {
		case assigned && !strings.ContainsAny(name, " /{") && IsSecret(name):
			out[i] = name + "=" + Mark
			flag = false
		case flag && !isFlag:
			out[i] = Mark // and on: such flags may take several values
		default:
			flag = isFlag && !assigned && IsSecret(a)
		}
	}
	return out
}

// Words is [Argv] for a command that may have secrets within its words, as the
// script of a shell has.
func Words(argv []string) []string {
	out := Argv(argv)
	for i := range out {
		out[i] = Text(out[i])
	}
	return out
}

// Env returns environment entries (NAME=value) with the values of secrets
// replaced.
func Env(env []string) []string {
	out := slices.Clone(env)
	for i, e := range out {
		if k, _, _ := strings.Cut(e, "="); IsSecret(k) {
			out[i] = k + "=" + Mark
		}
	}
	return out
}

// Tree returns a decoded JSON or YAML value that stands under a name, with the
// secrets in it replaced.
func Tree(name string, value any) any {
	switch v := value.(type) {
	case string:
		return Field(name, v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = Tree(name, v[i])
		}
		return list
	case map[string]any:
		out := map[string]any{}
		for key, below := range v {
			out[key] = Tree(key, below)
		}
		return out
	}
	return value
}
