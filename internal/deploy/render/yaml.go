package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// object is a YAML mapping in its order; entries whose value is nil or an empty
// object or list are left out.
type object []entry

type entry struct {
	key   string
	value any // string, int, bool, object, list
}

type list []any

var (
	plainScalar = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_./@-]*$`)
	unprintable = regexp.MustCompile(`[\x{7f}-\x{9f}\x{feff}]`) // JSON has them raw, YAML does not
	yamlWord    = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n|nan|inf)$`)
)

// writeYAML writes a value as block YAML.
func writeYAML(b *strings.Builder, v any, indent string) {
	switch v := v.(type) {
	case object:
		for _, e := range v {
			if empty(e.value) {
				continue
			}
			b.WriteString(indent + scalar(e.key) + ":")
			writeValue(b, e.value, indent+"  ")
		}
	case list:
		for _, e := range v {
			b.WriteString(indent + "-")
			if o, ok := e.(object); ok {
				var inner strings.Builder
				writeYAML(&inner, o, indent+"  ")
				b.WriteString(" " + strings.TrimPrefix(inner.String(), indent+"  "))
				continue
			}
			writeValue(b, e, indent+"  ")
		}
	}
}

// writeValue writes what follows "key:" or "-".
func writeValue(b *strings.Builder, v any, deeper string) {
	switch v := v.(type) {
	case object:
		b.WriteString("\n")
		writeYAML(b, v, deeper)
	case list:
		if flat, ok := flow(v); ok {
			b.WriteString(" " + flat + "\n")
			return
		}
		b.WriteString("\n")
		writeYAML(b, v, deeper)
	case string:
		if blockable(v) {
			b.WriteString(" |\n")
			for line := range strings.Lines(v) {
				b.WriteString(strings.TrimRight(deeper+strings.TrimSuffix(line, "\n"), " ") + "\n")
			}
			return
		}
		b.WriteString(" " + scalar(v) + "\n")
	default:
		fmt.Fprintf(b, " %v\n", v)
	}
}

// flow writes a short list of words on one line.
func flow(v list) (string, bool) {
	words := make([]string, len(v))
	for i, e := range v {
		s, ok := e.(string)
		if !ok {
			return "", false
		}
		words[i] = scalar(s)
	}
	text := "[" + strings.Join(words, ", ") + "]"
	return text, len(text) <= 60
}

// blockable reports whether a text keeps every byte as a literal block.
func blockable(s string) bool {
	if !strings.HasSuffix(s, "\n") || strings.HasSuffix(s, "\n\n") || strings.ContainsAny(s, "\t\r\x00\u2028\u2029") || unprintable.MatchString(s) || strings.HasPrefix(s, " ") || strings.HasPrefix(s, "\n") {
		return false
	}
	for line := range strings.Lines(s) {
		if strings.TrimRight(line, " \n") != strings.TrimSuffix(line, "\n") {
			return false
		}
	}
	return true
}

// scalar writes a text so that it reads back as that text: plain, or as JSON, which
// is YAML.
func scalar(s string) string {
	if plainScalar.MatchString(s) && !yamlWord.MatchString(s) {
		return s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(fmt.Sprintf("render: a string cannot be encoded: %v", err))
	}
	return unprintable.ReplaceAllStringFunc(strings.TrimSuffix(b.String(), "\n"), func(r string) string {
		return fmt.Sprintf(`\u%04x`, []rune(r)[0])
	})
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case object:
		return len(v) == 0
	case list:
		return len(v) == 0
	case string:
		return v == ""
	}
	return false
}
