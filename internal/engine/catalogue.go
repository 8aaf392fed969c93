package engine

import (
	"fmt"
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
	return fmt.Errorf("unknown parameter %q: use one of %s", name, strings.Join(names, ", "))
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
	return nil, fmt.Errorf("unknown engine %q: use one of %s", name, strings.Join(names, ", "))
}
