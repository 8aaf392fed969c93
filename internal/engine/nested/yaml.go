package nested

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

// Configuration files are trees of map[string]any, []any, string, bool, int, float64
// and nil. They are written as YAML that any reader of YAML 1.1 or 1.2 takes for the
// same tree: mappings in blocks, keys in order, lists on one line.

// Write writes a tree. An empty one is an empty mapping.
func Write(tree map[string]any) string {
	n := yamlNode(tree)
	if len(tree) > 0 {
		n.Style = 0
	}
	return dump(n)
}

// Flow writes a value on one line, as JSON that is YAML too.
func Flow(v any) string { return strings.TrimSuffix(dump(inline(yamlNode(v))), "\n") }

func dump(n *yaml.Node) string {
	text, err := yaml.Dump(n, yaml.WithV4Defaults(), yaml.WithLineWidth(-1))
	if err != nil {
		panic(fmt.Sprintf("nested: a tree of plain values has no YAML: %v", err))
	}
	return string(text)
}

// Read reads a file's text.
func Read(text string) (map[string]any, error) {
	var loaded map[string]any
	if err := yaml.Load([]byte(text), &loaded); err != nil {
		return nil, err
	}
	tree, err := normalMap(maps.All(loaded))
	if err != nil {
		return nil, err
	}
	return tree.(map[string]any), nil
}

var (
	// plainText needs no quotes anywhere; reservedText is read as something else.
	plainText    = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_./-]*$`)
	reservedText = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|y|n|null)$`)
	plainNumber  = regexp.MustCompile(`^(?:0|[1-9][0-9]{0,17})$`)
)

// yamlNode is a value as the library writes it.
func yamlNode(v any) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch v := v.(type) {
	case nil:
		n.Value = "null"
	case bool:
		n.Value = strconv.FormatBool(v)
	case int:
		n.Value = strconv.Itoa(v)
	case float64:
		n.Value = strconv.FormatFloat(v, 'f', -1, 64) // YAML 1.1 takes 1e-07 for text
		if !strings.Contains(n.Value, ".") {
			n.Value += ".0"
		}
	case string:
		n.Tag, n.Value = "!!str", strings.ToValidUTF8(v, "\uFFFD")
		if !plainText.MatchString(v) || reservedText.MatchString(v) {
			n.Style = yaml.DoubleQuotedStyle
		}
	case []any:
		n.Kind = yaml.SequenceNode
		for _, e := range v {
			n.Content = append(n.Content, yamlNode(e))
		}
		inline(n)
	case map[string]any:
		n.Kind = yaml.MappingNode
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			k := yamlNode(key)
			if plainNumber.MatchString(key) { // a batch size, of a schedule
				k.Style = 0
			}
			n.Content = append(n.Content, k, yamlNode(v[key]))
		}
	}
	return n
}

// inline has a node written on one line, with its texts in quotes.
func inline(n *yaml.Node) *yaml.Node {
	switch {
	case n.Kind != yaml.ScalarNode:
		n.Style = yaml.FlowStyle
	case n.Tag == "!!str":
		n.Style = yaml.DoubleQuotedStyle
	}
	for i, below := range n.Content {
		inline(below)
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			below.Style = yaml.DoubleQuotedStyle
		}
	}
	return n
}

// Normal is a value as a tree of our kinds, copied. Whole numbers are ints, keys are text.
func Normal(v any) (any, error) {
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
		return Normal(float64(v))
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
			if list[i], err = Normal(v[i]); err != nil {
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
		n, err := Normal(value)
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
