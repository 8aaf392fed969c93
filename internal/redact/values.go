package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Values are secrets whose values are known, to be found in text that others
// write: engines print their arguments, and servers repeat what they were sent.
// The zero value knows none.
type Values struct{ list []known }

type known struct{ value, mark string }

// shortest is the fewest bytes of a secret that is looked for in other text.
// What grants access is longer: 8 characters are the least that NIST SP 800-63B
// lets a user choose, and the keys of every known API have 16 and more. What is
// shorter is a stand-in such as "x", "EMPTY" or "none", and masking it would
// make holes into words, flags and versions.
const shortest = 8

// Add puts a value on the list with what is to stand in its place: as it is, and
// as it is written in JSON, in HTML, in a URL and in base64. One that is too
// short to be a secret is left out.
func (v *Values) Add(value, mark string) {
	if value = strings.TrimSpace(value); len(value) < shortest {
		return
	}
	for _, form := range formsOf(value) {
		v.list = append(v.list, known{form, mark})
	}
	// The longest first: one may hold another. Of two marks for one value the
	// first that was added stays.
	slices.SortStableFunc(v.list, func(a, b known) int {
		return cmp.Or(cmp.Compare(len(b.value), len(a.value)), cmp.Compare(a.value, b.value))
	})
	v.list = slices.CompactFunc(v.list, func(a, b known) bool { return a.value == b.value })
}

// formsOf are the ways in which text has a value.
func formsOf(value string) []string {
	forms := []string{value, html.EscapeString(value), url.QueryEscape(value), url.PathEscape(value)}
	if quoted, err := json.Marshal(value); err == nil {
		inner := string(quoted[1 : len(quoted)-1])
		forms = append(forms, inner, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(inner))
	}
	// In base64 three bytes are four characters: what stands before a value, as
	// the user of "user:password", shifts it by none, one or two bytes. The
	// characters that it shares with its neighbours are not known.
	for shift := range 3 {
		bits := 8 * (shift + len(value))
		from, to := (8*shift+5)/6, bits/6
		padded := append(make([]byte, shift), value...)
		for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			forms = append(forms, enc.EncodeToString(padded)[from:to])
		}
	}
	return forms
}

// AddHeader adds the value of an HTTP header: whole, and without the scheme that
// it names, as of "Bearer abc".
func (v *Values) AddHeader(value, mark string) {
	v.Add(value, mark)
	if _, credential, ok := strings.Cut(value, " "); ok {
		v.Add(credential, mark)
	}
}

// Join returns the values of both.
func (v Values) Join(w Values) Values {
	out := Values{slices.Concat(v.list, w.list)}
	slices.SortStableFunc(out.list, func(a, b known) int {
		return cmp.Or(cmp.Compare(len(b.value), len(a.value)), cmp.Compare(a.value, b.value))
	})
	out.list = slices.CompactFunc(out.list, func(a, b known) bool { return a.value == b.value })
	return out
}

// ValuesOf collects the secrets of a command and its environment.
func ValuesOf(argv, env []string) Values {
	var v Values
	envOf(env, v.learn)
	argvOf(argv, v.learn)
	return v
}

// Learn adds the secrets that [Text] finds in a text.
func (v *Values) Learn(text string) { textOf(text, v.learn) }

// LearnTree adds the secrets that [Tree] finds.
func (v *Values) LearnTree(name string, value any) { treeOf(name, value, v.learn) }

// learn adds a secret that was found by its name or its form. What stands
// there may be something else: a path, a figure, a reference.
func (v *Values) learn(value string) {
	if !plainValue.MatchString(value) && !isPath(value) {
		v.Add(value, Mark)
	}
}

// isPath tells a path from a random text that begins with a slash, as one of 64
// keys in base64 does: such a text has characters that paths lack, or long
// pieces of mixed letters and digits.
func isPath(value string) bool {
	if !pathStart.MatchString(value) || strings.ContainsAny(value, "+=") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(value, "/"), func(part string) bool {
		return len(part) >= 12 && upper.MatchString(part) && lower.MatchString(part) && digit.MatchString(part)
	})
}

var (
	pathStart = regexp.MustCompile(`^(?:~|\.{1,2})?/`)
	upper     = regexp.MustCompile(`[A-Z]`)
	lower     = regexp.MustCompile(`[a-z]`)
	digit     = regexp.MustCompile(`[0-9]`)
)

// Mask returns the text with each value replaced, and the piece of one that a
// cut left at the text's end.
func (v Values) Mask(text string) string {
	if len(text) < shortest {
		return text
	}
	for _, k := range v.list {
		text = strings.ReplaceAll(text, k.value, k.mark)
		for n := len(k.value) - 1; n >= shortest; n-- {
			if head, ok := strings.CutSuffix(text, k.value[:n]); ok {
				text = head + k.mark
				break
			}
		}
	}
	return text
}

// Text is [Text] where the values are replaced as well.
func (v Values) Text(text string) string { return Text(v.Mask(text)) }
