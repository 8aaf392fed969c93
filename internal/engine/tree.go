package engine

import (
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"
)

// section is the first part of a dotted key.
func section(key string) string { s, _, _ := strings.Cut(key, "."); return s }

// overlay puts a tree's leaves over another's.
func overlay(base, over map[string]any) {
	for key, value := range over {
		below, isMap := value.(map[string]any)
		if was, ok := base[key].(map[string]any); ok && isMap {
			overlay(was, below)
			continue
		}
		base[key] = value
	}
}

// prune removes mappings that say nothing.
func prune(tree map[string]any) {
	for key, value := range tree {
		if m, ok := value.(map[string]any); ok {
			prune(m)
			if len(m) == 0 {
				delete(tree, key)
			}
		}
	}
}

// at finds the value of a dotted key.
func at(tree map[string]any, key string) (any, bool) {
	head, rest, deeper := strings.Cut(key, ".")
	value, ok := tree[head]
	if !deeper || !ok {
		return value, ok
	}
	below, ok := value.(map[string]any)
	if !ok {
		return nil, false
	}
	return at(below, rest)
}

// put sets the value of a dotted key.
func put(tree map[string]any, key string, value any) {
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
	put(below, rest, value)
}

// cut removes a dotted key and returns its value.
func cut(tree map[string]any, key string) (any, bool) {
	value, ok := at(tree, key)
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

// number reads a number or a text of one.
func number(value any) (float64, bool) {
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

// truth reads what pydantic takes for true or false.
func truth(value any) (is, ok bool) {
	switch strings.ToLower(scalarText(value)) {
	case "true", "1", "yes", "on", "y", "t":
		return true, true
	case "false", "0", "no", "off", "n", "f":
		return false, true
	}
	return false, false
}

// scalarText is a single value as a parameter's text.
func scalarText(value any) string {
	if n := yamlNode(value); n.Kind == yaml.ScalarNode {
		return n.Value
	}
	return flow(value)
}
