package candidate

import (
	"cmp"
	"slices"
	"strconv"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Domain is all that may be set, parameter by parameter: the values of the catalogue's
// ladders that the study allows, on whichever engine, those that the study and its
// baseline name, and "" for the engine's own.
func (f catalogue) Domain() []tune.Dimension {
	names := make([]string, len(f.engines))
	for i, e := range f.engines {
		names[i] = e.Name
	}
	out := []tune.Dimension{{Name: engineKey, Values: first(f.base[engineKey], names)}, {Name: modelKey, Values: first(f.base[modelKey], f.models)}}
	for i, name := range []string{engineKey, modelKey} {
		if values, ok := f.narrow(name); ok {
			out[i].Values = slices.Clone(values)
		}
	}
	for _, p := range engine.All()[0].Params {
		if d := f.dimension(p.Name); len(d.Values) > 1 || d.Values[0] != "" {
			out = append(out, d)
		}
	}
	return out
}

// dimension is one parameter's.
func (f catalogue) dimension(name string) tune.Dimension {
	d := tune.Dimension{Name: name, Values: []string{""}, Ordered: true}
	add := func(values ...string) {
		for _, v := range values {
			if !slices.Contains(d.Values, v) {
				d.Values = append(d.Values, v)
			}
		}
	}
	if values, ok := f.narrow(name); ok {
		if slices.Index(values, "") < 0 {
			d.Values = nil
		}
		add(values...)
	} else {
		for _, e := range f.engines {
			add(f.ladder(e, name)...)
		}
		add(f.base[name])
		for _, ch := range f.o.Changes {
			add(ch.Set[name])
		}
	}
	for _, v := range d.Values {
		if _, err := strconv.ParseFloat(v, 64); v != "" && err != nil {
			d.Ordered = false
		}
	}
	if d.Ordered {
		number := func(v string) float64 { x, _ := strconv.ParseFloat(v, 64); return x }
		slices.SortStableFunc(d.Values, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	}
	return d
}

// ladder is what an engine offers of a parameter, in a study's reach.
func (f catalogue) ladder(e *engine.Engine, name string) []string {
	p, ok := e.Param(name)
	if !ok || !settable(e, name) {
		return nil
	}
	moe := slices.ContainsFunc(f.models, func(m string) bool { return f.shape(e, m).model.MoE != nil })
	switch name {
	case engine.TP, engine.PP, engine.DP:
		if name == engine.DP && !moe {
			return nil
		}
		return f.within(p.Ladder, name != engine.PP)
	case engine.ExpertParallel, engine.AttentionDP:
		if f.o.GPUs == 1 || !moe {
			return nil
		}
		return []string{"true"}
	case engine.Speculative:
		if slices.ContainsFunc(f.models, func(m string) bool { return f.shape(e, m).model.HasMTP }) {
			return []string{"mtp:1", "mtp:2", "mtp:3"}
		}
		return nil
	case engine.Quantization:
		var out []string
		for _, m := range f.models {
			out = append(out, f.loadings(e, f.shape(e, m))...)
		}
		return out
	case engine.KVDtype:
		if !f.o.Numerics {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(p.Ladder), func(v string) bool { return kvFormat(v) == "" })
	case engine.MoEBackend:
		if !f.o.Numerics || !moe {
			return nil
		}
	case engine.ChunkedPrefill, engine.Overlap:
		return []string{"true"}
	case engine.MemoryShare:
		if f.shape(e, f.base[modelKey]).gpu.Platform == arch.CPU {
			return nil
		}
	case engine.HostCache, engine.CacheReuse:
		if !f.o.Shared {
			return nil
		}
	case engine.Disaggregation, engine.PrefixCaching, engine.BlockSize, engine.MaxModelLen, engine.FlashAttention, engine.GPULayers,
		engine.HostCacheRatio, engine.HostCachePolicy, engine.HostCacheBackend, engine.CacheEviction, engine.SlotSimilarity:
		return nil // never worth it, or not ours to choose: tried where the study lists it
	}
	return slices.DeleteFunc(slices.Clone(p.Ladder), func(v string) bool { return v == p.Default })
}

// within are numbers of devices above 1 that there are, all of them too where there
// are more than the ladder has.
func (f catalogue) within(ladder []string, all bool) []string {
	var out []string
	for _, v := range ladder {
		if n, err := strconv.Atoi(v); err == nil && n > 1 && n <= f.o.GPUs {
			out = append(out, v)
		}
	}
	if n := strconv.Itoa(f.o.GPUs); all && f.o.GPUs > 8 && !slices.Contains(out, n) {
		out = append(out, n)
	}
	return out
}
