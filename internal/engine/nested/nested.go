// Package nested handles the values of configuration files: trees of maps, read from YAML
// and written as YAML, whose values are found by keys with dots between. Pure.
//
//	tree, err := nested.Read("kv_cache_config:\n  host_cache_size: 4\n")
//	v, ok := nested.At(tree, "kv_cache_config.host_cache_size")
//
// It is apart from engine, of whose words it knows none.
package nested

import (
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// Section is the first part of a dotted key.
func Section(key string) string { s, _, _ := strings.Cut(key, "."); return s }

// Overlay puts a tree's leaves over another's.
func Overlay(base, over map[string]any) {
	for key, value := range over {
		below, isMap := value.(map[string]any)
		if was, ok := base[key].(map[string]any); ok && isMap {
			Overlay(was, below)
			continue
		}
		base[key] = value
	}
}

// Prune removes mappings that say nothing.
func Prune(tree map[string]any) {
	for key, value := range tree {
		if m, ok := value.(map[string]any); ok {
			Prune(m)
			if len(m) == 0 {
				delete(tree, key)
			}
		}
	}
}

// At finds the value of a dotted key.
func At(tree map[string]any, key string) (any, bool) {
	head, rest, deeper := strings.Cut(key, ".")
	value, ok := tree[head]
	if !deeper || !ok {
		return value, ok
	}
	below, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return At(below, rest)
}

// Put sets the value of a dotted key.
func Put(tree map[string]any, key string, value any) {
	head, rest, deeper := strings.Cut(key, ".")
	if !deeper {
		tree[head] = value
		return
	}
	below, ok := tree[head].(map[string]any)
	if !ok {
		below = map[string]any{}
		tree[head] = below
	}
	Put(below, rest, value)
}

// Cut removes a dotted key and returns its value.
func Cut(tree map[string]any, key string) (any, bool) {
	value, ok := At(tree, key)
	if !ok {
		return nil, false
	}
	for {
		head, rest, deeper := strings.Cut(key, ".")
		if !deeper {
			delete(tree, head)
			return value, true
		}
		tree, key = tree[head].(map[string]any), rest
	}
}

// Number reads a number or a text of one.
func Number(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case float64:
		return v, true
	case string:
		f, err := strconv.ParseFloat(v, 64)
		return f, err == nil
	}
	return 0, false
}

// Truth reads what pydantic takes for true or false.
func Truth(value any) (is, ok bool) {
	switch strings.ToLower(Text(value)) {
	case "true", "1", "yes", "on", "y", "t":
		return true, true
	case "false", "0", "no", "off", "n", "f":
		return false, true
	}
	return false, false
}

// Text is a single value as a parameter's text.
func Text(value any) string {
	if n := yamlNode(value); n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return Flow(value)
}
