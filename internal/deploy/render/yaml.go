package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
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
	yamlWord    = regexp.MustCompile(`^(?i:true|false|null|yes|no|on|off|y|n|nan|inf)$`)
)

// writeYAML writes a document in blocks, as people write manifests: short lists of
// words on one line, and texts of several lines as they are.
func writeYAML(b *strings.Builder, o object) error {
	text, err := yaml.Dump(node(o), yaml.WithV4Defaults(), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1))
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	b.Write(text)
	return nil
}

// node is a value as the library writes it.
func node(v any) *yaml.Node {
	switch v := v.(type) {
	case object:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range v {
			if !empty(e.value) {
				n.Content = append(n.Content, scalar(e.key), node(e.value))
			}
		}
		return n
	case list:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		const brackets, widest = 2, 60
		width := brackets
		for i, e := range v {
			item := node(e)
			n.Content = append(n.Content, item)
			if _, word := e.(string); !word {
				n.Style = 0
			}
			width += len(item.Value) + 2*min(i, 1)
			if item.Style != 0 {
				width += 2
			}
		}
		if width > widest {
			n.Style = 0
		}
		return n
	case string:
		if strings.HasSuffix(v, "\n") {
			return &yaml.Node{Kind: yaml.ScalarNode, Value: v, Style: yaml.LiteralStyle}
		}
		return scalar(v)
	case given:
		return givenNode(v.value)
	case nothing:
		return &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
}

// scalar is a text that reads back as that text in every version of YAML.
func scalar(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Value: s}
	if !plainScalar.MatchString(s) || yamlWord.MatchString(s) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
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

// nothing is an empty mapping that is written.
type nothing struct{}

// givenNode writes a value of somebody's file: all of it, keys sorted.
func givenNode(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, scalar(key), givenNode(v[key]))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range v {
			n.Content = append(n.Content, givenNode(e))
		}
		if len(v) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case nil:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: "null"}
	case string:
		return node(v)
	case float64:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatFloat(v, 'f', -1, 64)}
	}
	if text, ok := plainGiven(v).(string); ok {
		return scalar(text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)}
}
