package engine

import (
	"cmp"
	"fmt"
	"perflab/internal/stat"
	"slices"
	"strings"
	"sync"
)

// KnownParam is an error that lists the canonical names unless name is one.
func KnownParam(name string, others ...string) error {
	names := slices.Clone(others)
	for _, p := range All()[0].Params { // every engine has a row for each
		if p.Name == name {
			return nil
		}
		names = append(names, p.Name)
	}
	if near := meant(name, names); near != "" {
		return fmt.Errorf("unknown parameter %q: did you mean %s? perflab engines lists all", name, near)
	}
	return fmt.Errorf("unknown parameter %q: use one of %s", name, strings.Join(names, ", "))
}

// meant is the parameter that was likely meant by a name that is none: that of an engine's flag,
// or one that is near; "" for none.
func meant(name string, names []string) string {
	name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "-", "_")
	own := map[string]string{}
	var flags []string
	for _, e := range All() {
		for _, p := range e.Params {
			for _, f := range p.Flags {
				flag := strings.ReplaceAll(strings.TrimLeft(f, "-"), "-", "_")
				if strings.HasPrefix(flag, name+"_") || flag == name {
					return p.Name
				}
				own[flag] = p.Name
				flags = append(flags, flag)
			}
		}
	}
	return cmp.Or(stat.Nearest(name, names), own[stat.Nearest(name, flags)])
}

// All lists the engines, the default one first. They are shared: do not change them.
func All() []*Engine { return catalogue() }

var catalogue = sync.OnceValue(func() []*Engine {
	all := []*Engine{vllm(), sglang(), trtllm(), llamacpp()}
	for _, e := range all {
		e.complete(all)
	}
	return all
})

// complete gives an engine a row for each parameter of which it has nothing to say: New
// refuses a value by that row. An engine has a row of its own where a value is what it does
// anyway (then that is its Default), or where something else does the same (then Doc says so).
func (e *Engine) complete(all []*Engine) {
	for _, other := range all {
		for _, p := range other.Params {
			if _, ok := e.Param(p.Name); !ok {
				e.Params = append(e.Params, Param{Name: p.Name, Kind: p.Kind, Doc: e.Title + " has no such setting."})
			}
		}
	}
}

// ByName finds an engine.
func ByName(name string) (*Engine, error) {
	var names []string
	for _, e := range All() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	if near := stat.Nearest(name, names); near != "" {
		return nil, fmt.Errorf("unknown engine %q: did you mean %s?", name, near)
	}
	return nil, fmt.Errorf("unknown engine %q: use one of %s", name, strings.Join(names, ", "))
}
