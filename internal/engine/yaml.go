package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Configuration files are trees of map[string]any, []any, string, bool, int, float64
// and nil. They are written as YAML that any reader of YAML 1.1 or 1.2 takes for the
// same tree: mappings in blocks, keys in order, lists on one line.

// writeYAML writes a tree. An empty one is an empty mapping.
func writeYAML(tree map[string]any) string {
	if len(tree) == 0 {
		return "{}\n"
	}
	var b strings.Builder
	writeMapping(&b, tree, "")
	return b.String()
}

func writeMapping(b *strings.Builder, tree map[string]any, indent string) {
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		b.WriteString(indent + yamlKey(key) + ":")
		if m, ok := tree[key].(map[string]any); ok && len(m) > 0 {
			b.WriteString("\n")
			writeMapping(b, m, indent+"  ")
			continue
		}
		b.WriteString(" " + yamlValue(tree[key]) + "\n")
	}
}

var (
	// plainText needs no quotes anywhere; reservedText is read as something else.
	plainText    = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)
	reservedText = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
	plainNumber  = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,17})$`)
)

func yamlKey(key string) string {
	if plainNumber.MatchString(key) { // a batch size, of a schedule
		return key
	}
	return yamlText(key)
}

func yamlText(s string) string {
	if plainText.MatchString(s) && !reservedText.MatchString(s) {
		return s
	}
	return quotedText(s)
}

// quotedText is s in double quotes, in escapes that JSON and YAML share.
func quotedText(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		return `""` // a string has a JSON form
	}
	var b strings.Builder
	for _, r := range string(data) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff { // not printable in YAML
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func yamlValue(v any) string {
	if s, ok := v.(string); ok {
		return yamlText(s)
	}
	return flow(v)
}

// flow writes a value on one line, as JSON that is YAML too.
func flow(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		text := strconv.FormatFloat(v, 'f', -1, 64) // YAML 1.1 takes 1e-07 for text
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	case string:
		return quotedText(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = flow(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, quotedText(key)+": "+flow(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "null" // normal lets nothing else through
}

// readYAML reads what writeYAML wrote. It is no reader of other YAML.
func readYAML(text string) (map[string]any, error) {
	if strings.TrimSpace(text) == "{}" {
		return map[string]any{}, nil
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	tree, rest, err := readMapping(lines, 0)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("line %q of the configuration file is indented otherwise than those before it", rest[0])
	}
	return tree, err
}

func readMapping(lines []string, depth int) (tree map[string]any, rest []string, err error) {
	tree = map[string]any{}
	for len(lines) > 0 {
		bare := strings.TrimLeft(lines[0], " ")
		if len(lines[0])-len(bare) != depth {
			break
		}
		key, value, ok := cutKey(bare)
		if _, twice := tree[key]; !ok || twice {
			return nil, nil, fmt.Errorf("line %q of the configuration file is not in the form that is printed with commands", lines[0])
		}
		lines = lines[1:]
		if value != "" {
			if tree[key], err = readValue(value); err != nil {
				return nil, nil, err
			}
			continue
		}
		if tree[key], lines, err = readMapping(lines, depth+2); err != nil {
			return nil, nil, err
		}
	}
	return tree, lines, nil
}

// cutKey takes a line apart into its key and what stands behind the colon.
func cutKey(line string) (key, value string, ok bool) {
	if strings.HasPrefix(line, `"`) {
		dec := json.NewDecoder(strings.NewReader(line))
		if err := dec.Decode(&key); err != nil {
			return "", "", false
		}
		line = line[dec.InputOffset():]
		value, ok = strings.CutPrefix(line, ":")
	} else {
		key, value, ok = strings.Cut(line, ":")
		ok = ok && yamlKey(key) == key
	}
	if ok && value != "" {
		value, ok = strings.CutPrefix(value, " ")
		ok = ok && value != ""
	}
	return key, value, ok
}

func readValue(text string) (any, error) {
	switch text[0] {
	case '"', '[', '{':
	default:
		if plainText.MatchString(text) && !reservedText.MatchString(text) {
			return text, nil
		}
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil || strings.TrimSpace(text[dec.InputOffset():]) != "" {
		return nil, fmt.Errorf("value %q of the configuration file is not in the form that is printed with commands", text)
	}
	return normal(v)
}

// normal is a value as a tree of our kinds, copied. Whole numbers are ints, keys are text.
func normal(v any) (any, error) {
	switch v := v.(type) {
	case nil, bool, int:
		return v, nil
	case string:
		if !utf8.ValidString(v) {
			return nil, fmt.Errorf("the text %q is not UTF-8", v)
		}
		return v, nil
	case int64:
		return int(v), nil
	case uint64:
		return normal(float64(v))
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n, nil
		}
		f, err := v.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s is no number that a configuration file can hold", v)
		}
		return normal(f)
	case float64:
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			return nil, fmt.Errorf("%v is no number that a configuration file can hold", v)
		case v == math.Trunc(v) && math.Abs(v) < 1<<53:
			return int(v), nil
		}
		return v, nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = normal(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		return normalMap(maps.All(v))
	case map[any]any:
		return normalMap(func(yield func(string, any) bool) {
			for key, value := range v {
				if !yield(fmt.Sprint(key), value) {
					return
				}
			}
		})
	}
	return nil, fmt.Errorf("%v is of a kind that a configuration file does not have here: quote it", v)
}

func normalMap(entries func(func(string, any) bool)) (any, error) {
	out := map[string]any{}
	for key, value := range entries {
		n, err := normal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if !utf8.ValidString(key) {
			return nil, fmt.Errorf("the key %q is not UTF-8", key)
		}
		out[key] = n
	}
	return out, nil
}
