package redact

import (
	"regexp"
	"strings"
)

// word is a value in text: quoted, or up to what ends a word in shells, JSON
// and prose.
const word = `"[^"\n]*"|'[^'\n]*'|[^\s"',;&|)}\\]+`

// Secrets as they stand in text that others wrote: commands, settings, headers,
// and tokens that show by themselves what they are.
var (
	secretFlag   = regexp.MustCompile(`(--?[A-Za-z][\w.-]*)(\s+|=)(` + word + `)((?:\s+[\w-]{16,})*)`)
	secretAssign = regexp.MustCompile(`([A-Za-z_][\w.-]*)(=)(` + word + `)`)
	secretField  = regexp.MustCompile(`(?i)((?:api|access|secret|auth|private|hf|hub|bearer)[_-]?(?:keys?|token)|password|passwd|passphrase|secret)(["']?\s*:\s*)(` + word + `)`)
	secretHeader = regexp.MustCompile(`(?i)(\bauthorization["']?)(\s*[:=]\s*["']?)((?:(?:bearer|basic|token)\s+)?[^\s"',;]+)`)
	bareSecret   = regexp.MustCompile(`\b(?:(?i:bearer)\s+[\w.~+/=-]{12,}|hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|nvapi-[\w-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})`)
	urlPassword  = regexp.MustCompile(`(\w+://[^/\s:@]*:)[^/\s@]+(@)`)

	// plainValue is a figure or a word that stands for something else.
	plainValue = regexp.MustCompile(`^(?:[$<{(\[].*|-.*|[0-9.]+|(?i:true|false|none|null|auto|default|yes|no))$`)
)

// secretMarks are what a line has that may have a secret; the others are not
// looked at closely.
var secretMarks = []string{"key", "token", "secret", "passw", "passp", "credential", "bearer", "authorization", "hf_", "sk-", "nvapi-", "gh", "akia", "eyj", "://"}

// Text returns a text with the values of secrets replaced: those of flags,
// assignments and fields whose names say so, authorization headers, and tokens
// that are known by their form. Lines stay lines.
func Text(text string) string {
	lower := strings.ToLower(text)
	marked := false
	for _, m := range secretMarks {
		marked = marked || strings.Contains(lower, m)
	}
	if !marked {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(maskLine(line))
	}
	return b.String()
}

// Field returns the value of a named field: replaced where the name is one of a
// secret, else as Text has it.
func Field(name, value string) string {
	if IsSecret(name) && value != "" && !plainValue.MatchString(value) {
		return Mark
	}
	return Text(value)
}

func maskLine(line string) string {
	line = replaceValue(secretHeader, line, func(string) bool { return true })
	line = replaceValue(secretFlag, line, IsSecret)
	line = replaceValue(secretAssign, line, IsSecret)
	line = replaceValue(secretField, line, func(string) bool { return true })
	line = urlPassword.ReplaceAllString(line, "${1}"+Mark+"${2}")
	return bareSecret.ReplaceAllString(line, Mark)
}

// replaceValue replaces the third group of each match, and what follows it in
// the match, where the name before it is one of a secret. Its quotes stay.
func replaceValue(re *regexp.Regexp, line string, secret func(name string) bool) string {
	return re.ReplaceAllStringFunc(line, func(match string) string {
		g := re.FindStringSubmatch(match)
		if value := strings.Trim(g[3], `"'`); !secret(g[1]) || value == "" || plainValue.MatchString(value) {
			return match
		}
		quote := ""
		if q := g[3][:1]; q == `"` || q == "'" {
			quote = q
		}
		return g[1] + g[2] + quote + Mark + quote
	})
}
