package engine

import (
	"maps"
	"slices"

	"perflab/internal/engine/nested"
)

// Unmodelled lists the given flags that may change figures, or of which nothing is known, and that Resolve
// ignores: what is predicted from the configuration does not know of them.
func (c Command) Unmodelled() []string {
	var flags []string
	c.extras(func(d *Flag, _ []string) {
		if d.Figures && !(d.Flag == transfer && tiered(c)) {
			flags = append(flags, d.Flag)
		}
	})
	flags = slices.Concat(flags, c.Unknown(), c.unmodelledParams())
	for _, use := range []PoolUse{c.Prefill, c.Decode} {
		if len(use.Params)+len(use.Extra) > 0 {
			flags = append(flags, Command{Engine: c.Engine, Params: use.Params, Extra: use.Extra}.Unmodelled()...)
		}
	}
	if c.Params[PerfMode] == "interactivity" { // graphs of every small size; ours have no padding
		flags = append(flags, "--performance-mode=interactivity")
	}
	if e, err := ByName(c.Engine); err == nil && e.file != nil && c.FilePath != "" {
		flags = append(flags, e.file.flag)
	}
	return append(flags, unmodelledKeys(c.Engine, c.File)...)
}

// unmodelledParams are the given parameters that Resolve ignores, as flags or keys.
func (c Command) unmodelledParams() (names []string) {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	for _, name := range []string{AttentionDP, MoEBackend, StreamInterval, CapacityPolicy, HostCacheBackend, HostCachePolicy, CacheEviction} {
		p, _ := e.Param(name)
		value := c.Params[name]
		modelled := name == CapacityPolicy && value != "static_batch" || name == HostCachePolicy && value == "write_back"
		switch {
		case p == nil || value == "" || value == p.Default || value == "false" || modelled:
		case (speller{c, e}).inFile(p) || len(p.Flags) == 0:
			names = append(names, p.Key)
		default:
			names = append(names, flagTables()[c.Engine][p.Flags[0]].def.Flag)
		}
	}
	return names
}

// unmodelledKeys are the keys of a configuration file that may change figures and that
// Resolve ignores.
func unmodelledKeys(engineName string, file map[string]any) (keys []string) {
	var walk func(tree map[string]any, under string)
	walk = func(tree map[string]any, under string) {
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			key := under + name
			def := keyTables()[engineName][key]
			below, isMap := tree[name].(map[string]any)
			switch {
			case def == nil && isMap:
				walk(below, key+".")
			case def == nil || !def.Figures || heeded(file, key):
			case tree[name] == nil || def.isDefault(tree[name]):
			default:
				keys = append(keys, key)
			}
		}
	}
	walk(file, "")
	return keys
}

// heeded reports whether Resolve reads a key of a configuration file.
func heeded(file map[string]any, key string) bool {
	padding, _ := nested.At(file, graphPadding)
	pads, _ := nested.Truth(padding)
	switch key {
	case graphPadding, kvMaxTokens, kvMaxBytes:
		return true
	case graphSizes:
		return pads
	case chunkPolicy:
		v, _ := nested.At(file, key)
		return v == "FIRST_COME_FIRST_SERVED"
	}
	return false
}
