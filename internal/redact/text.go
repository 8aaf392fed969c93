package redact

import (
	"regexp"
	"slices"
	"strings"
)

// word is a value in text: quoted, or up to what ends a word in shells, JSON
// and prose.
const word = `"[^"\n]*"|'[^'\n]*'|[^\s"',;&|)}\\]+`

// Secrets as they stand in text that others wrote: commands, settings, headers.
var (
	secretFlag   = regexp.MustCompile(`(--?[A-Za-z][\w.-]*)(\s+|=)(` + word + `)((?:\s+[\w-]{16,})*)`)
	secretAssign = regexp.MustCompile(`([A-Za-z_][\w.-]*)(=)(` + word + `)`)
	secretField  = regexp.MustCompile(`(?i)((?:api|access|secret|auth|private|hf|hub|bearer)[_-]?(?:keys?|token)|password|passwd|passphrase|secret)(["']?\s*:\s*)(` + word + `)`)
	secretHeader = regexp.MustCompile(`(?i)(\b(?:authorization|cookie)["']?)(\s*[:=]\s*["']?)((?:(?:bearer|basic|token)\s+)?[^\s"',;]+)`)

	// secretKey is a field of JSON or of a Python dictionary, also one within a
	// string and one whose value is a list.
	secretKey = regexp.MustCompile(`([A-Za-z_][\w.-]*)(\\*["']\s*:\s*\[?\s*\\*["'])((?:[^"'\\\n]|\\[^"'\\\n])+)`)

	// secretEntry is a line of YAML, or a header, whose name has several parts: one
	// such as "Key: a shorter prompt" is prose.
	secretEntry = regexp.MustCompile(`([A-Za-z][\w.]*[_-][\w.-]*)(:\s+)(` + word + `)`)

	urlPassword = regexp.MustCompile(`(\w+://[^/\s:@"']*:)([^/\s"'<>]+)(@)`)
	// urlUser is a token in the place of a user. People's names are shorter.
	urlUser = regexp.MustCompile(`(\w+://)([^/\s:@"'<>]{16,})(@)`)

	// plainValue is a figure or a word that stands for something else.
	plainValue = regexp.MustCompile(`^(?:[$<{(\[:,].*|-.*|[0-9.]+|(?i:true|false|none|null|auto|default|yes|no))$`)
)

// bareSecret are tokens that show by themselves what they are.
var bareSecret = regexp.MustCompile(`\b(?:` + strings.Join([]string{
	`(?i:bearer)\s+[\w.~+/=-]{12,}`,
	`(?i:basic)\s+[A-Za-z0-9+/]{16,}={0,2}`,
	`hf_[A-Za-z0-9]{16,}`, `sk-[\w-]{16,}`, `[sr]k_(?:live|test)_\w{16,}`, `nvapi-[\w-]{16,}`, `gsk_[A-Za-z0-9]{20,}`, `r8_[A-Za-z0-9]{20,}`,
	`gh[pousr]_[A-Za-z0-9]{20,}`, `github_pat_\w{20,}`, `glpat-[\w-]{16,}`, `npm_[A-Za-z0-9]{30,}`, `xox[abeoprs]-[\w-]{10,}`,
	`A[KS]IA[A-Z0-9]{16}`, `AIza[\w-]{30,}`, `ya29\.[\w-]{20,}`, `SG\.[\w-]{16,}\.[\w-]{16,}`,
	`eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}`,
}, "|") + `)`)

// secretMarks are what a line has that may have a secret, in lower case; the
// others are not looked at closely.
var secretMarks = []string{
	"key", "token", "secret", "pass", "pwd", "credential", "bearer", "basic", "jwt", "cookie", "auth", "signature",
	"hf_", "sk-", "k_live", "k_test", "nvapi-", "r8_", "gh", "glpat-", "npm_", "xox", "akia", "asia", "aiza", "ya29", "sg.", "eyj", "://", "-----",
}

// Text returns a text with the values of secrets replaced: those of flags,
// assignments and fields whose names say so, authorization headers, passwords
// in URLs, private keys, and tokens that are known by their form. Lines stay
// lines.
func Text(text string) string { return textOf(text, none) }

// textOf is Text, and tells found each secret.
func textOf(text string, found func(secret string)) string { return linesOf(text, found, maskLine) }

// Forms is Text by form alone: what stands under a name stays, so that it suits
// text of our own, which tells of flags and settings.
func Forms(text string) string { return linesOf(text, none, maskForms) }

func linesOf(text string, found func(string), mask func(string, func(string)) string) string {
	lower := strings.ToLower(text)
	marked := false
	for _, m := range secretMarks {
		marked = marked || strings.Contains(lower, m)
	}
	if !marked {
		return text
	}
	var b strings.Builder
	inKey := false // within a private key of several lines
	for line := range strings.Lines(text) {
		masked := line
		if masked, inKey = maskKey(line, inKey, found); masked == line {
			masked = mask(line, found)
		}
		b.WriteString(masked)
	}
	return b.String()
}

// Field returns the value of a named field: replaced where the name is one of a
// secret, else as Text has it.
func Field(name, value string) string { return fieldOf(name, value, none) }

func fieldOf(name, value string, found func(string)) string {
	if IsSecret(name) && value != "" && !plainValue.MatchString(value) {
		found(value)
		return Mark
	}
	return textOf(value, found)
}

func always(string) bool { return true }

func maskLine(line string, found func(string)) string {
	lower := plainWords.Replace(strings.ToLower(line))
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(lower, w) })
	}
	// Logs are long: an expression is tried on lines that have what it needs.
	if has(nameMarks...) {
		if has("authorization", "cookie") {
			line = replaceValue(secretHeader, line, always, found)
		}
		if flagStart.MatchString(line) {
			line = replaceValue(secretFlag, line, IsSecret, found)
		}
		if has("=") {
			line = replaceValue(secretAssign, line, IsSecret, found)
		}
		if has(":") {
			line = replaceValue(secretField, line, always, found)
		}
		if has(`"`, "'") {
			line = replaceValue(secretKey, line, IsSecret, found)
		}
		if has(": ", ":\t") {
			line = replaceValue(secretEntry, line, IsSecret, found)
		}
	}
	return maskForms(line, found)
}

// plainWords have a mark in them and are no secret: every second line of an engine's
// log counts tokens.
var plainWords = strings.NewReplacer("tokens", "", "tokeniz", "")

var flagStart = regexp.MustCompile(`-[A-Za-z]`)

// nameMarks are what a name of a secret has in it: see IsSecret.
var nameMarks = append(slices.Clone(secretWords), "auth", "keyfile")

func maskForms(line string, found func(string)) string {
	for _, re := range []*regexp.Regexp{urlPassword, urlUser} {
		if !strings.Contains(line, "://") {
			break
		}
		line = re.ReplaceAllStringFunc(line, func(match string) string {
			g := re.FindStringSubmatch(match)
			if strings.Contains(g[2], Mark) || plainValue.MatchString(g[2]) {
				return match
			}
			found(g[2])
			return g[1] + Mark + g[3]
		})
	}
	return bareSecret.ReplaceAllStringFunc(line, func(match string) string {
		if _, credential, ok := strings.Cut(match, " "); ok { // Bearer abc
			found(strings.TrimSpace(credential))
		} else {
			found(match)
		}
		return Mark
	})
}

// replaceValue replaces the third group of each match, and what follows it in
// the match, where the name before it is one of a secret. Its quotes stay.
func replaceValue(re *regexp.Regexp, line string, secret func(name string) bool, found func(string)) string {
	return re.ReplaceAllStringFunc(line, func(match string) string {
		g := re.FindStringSubmatch(match)
		value := strings.Trim(g[3], `"'`)
		if !secret(g[1]) || value == "" || strings.HasPrefix(value, Mark) || plainValue.MatchString(value) {
			return match
		}
		found(value)
		if _, credential, ok := strings.Cut(value, " "); ok { // Bearer abc
			found(strings.TrimSpace(credential))
		}
		if len(g) > 4 && g[4] != "" {
			found(strings.TrimSpace(g[4]))
		}
		quote := ""
		if q := g[3][:1]; q == `"` || q == "'" {
			quote = q
		}
		return g[1] + g[2] + quote + Mark + quote
	})
}

var (
	keyBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	keyEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----`)
	keyLine  = regexp.MustCompile(`^[\w+/=:, -]*$`)
)

// maskKey replaces what a line has of a private key in PEM form, and tells
// whether the key goes on in the next line.
func maskKey(line string, within bool, found func(string)) (masked string, on bool) {
	body := strings.TrimRight(line, "\r\n")
	end := line[len(body):]
	if within {
		switch at := keyEnd.FindStringIndex(body); {
		case at != nil:
			return Mark + body[at[1]:] + end, false
		case keyLine.MatchString(strings.TrimSpace(body)):
			found(strings.TrimSpace(body))
			return Mark + end, true
		}
		return line, false // no end of a key, and no line of one
	}
	at := keyBegin.FindStringIndex(body)
	if at == nil {
		return line, false
	}
	if to := keyEnd.FindStringIndex(body); to != nil && to[0] >= at[1] { // in a string, with \n for its line breaks
		for part := range strings.SplitSeq(body[at[1]:to[0]], `\n`) {
			found(strings.TrimSpace(part))
		}
		return body[:at[0]] + Mark + body[to[1]:] + end, false
	}
	return body[:at[0]] + Mark + end, true
}
