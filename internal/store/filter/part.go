package filter

import (
	"slices"
	"strings"
	"time"
)

// Part is a part of an expression as it was written: what a page shows as one thing that can be
// taken away, and what of it are values of one fact.
type Part struct {
	Text   string
	Fact   string   // that the part compares; "": a word, or several bounds at once
	Op     string   // of a comparison
	Values []string // of a text or a choice, in lower case; None for what an entry does not have
}

// Parts are the parts of an expression that Parse takes.
func Parts(text string, now time.Time) ([]Part, error) {
	if len(text) > mostLength {
		_, err := Parse(text, now)
		return nil, err
	}
	var out []Part
	err := each(text, now, func(written string, all []term) {
		p := Part{Text: written}
		if t := all[0]; len(all) == 1 && t.word == "" {
			p.Fact, p.Op = t.field.Name, t.op
			for _, v := range t.texts {
				if v == "" {
					v = None
				}
				p.Values = append(p.Values, v)
			}
			if t.field.Type == Bool {
				p.Values = []string{map[bool]string{true: "true", false: "false"}[t.yes]}
			}
		}
		out = append(out, p)
	})
	return out, err
}

// Join writes parts as one expression.
func Join(parts []Part) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return strings.Join(texts, " ")
}

// Equals is the part by which a fact has one of these values, "" standing for what an entry does
// not have. ok is false where no expression can say it: a value that has both quotes, or a bar.
func Equals(fact string, values ...string) (p Part, ok bool) {
	p = Part{Fact: fact, Op: "="}
	for _, v := range values {
		if v == "" {
			v = None
		}
		if strings.Contains(v, "|") {
			return p, false
		}
		p.Values = append(p.Values, lower(v))
	}
	v := strings.Join(p.Values, "|")
	switch {
	case strings.Contains(v, `"`) && strings.Contains(v, "'") || strings.Contains(v, "\x00"):
		return p, false
	case strings.Contains(v, `"`):
		v = "'" + v + "'"
	case v == "" || strings.ContainsAny(v, " \t\n\r,'") || slices.ContainsFunc([]rune(v), func(c rune) bool { return c > 127 }):
		v = `"` + v + `"`
	}
	p.Text = fact + "=" + v
	return p, len(p.Values) > 0
}
