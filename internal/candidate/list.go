package candidate

import (
	"errors"
	"maps"
	"slices"
	"strconv"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// maxCombined is how many of the catalogue may run before variants are tried one at a
// time, and then on one layout of a checkpoint only: more than can be raced.
const maxCombined = 60

// ofStudy is the Prior of a candidate that the study lists.
const ofStudy = "the study"

// Candidates are the configurations that a race begins with: the baseline, what the study and
// its priors list, the catalogue's structures, and the study's structural changes
// combined; those that cannot run last.
func (f *Field) Candidates() []tune.Candidate {
	f.mu.Lock()
	out := f.candidates
	f.mu.Unlock()
	if out == nil {
		out = f.listCandidates()
		f.mu.Lock()
		f.candidates = out
		f.mu.Unlock()
	}
	out = slices.Clone(out)
	for i := range out {
		out[i].Config = maps.Clone(out[i].Config)
	}
	return out
}

func (f catalogue) listCandidates() []tune.Candidate {
	for level := 2; ; level-- {
		catalogue := f.offered(level)
		if runs := catalogue.runnable(); level == 0 || runs <= maxCombined {
			a := f.collect()
			a.add(f.base, f.o.Label, "", true)
			f.listed(a)
			a.merge(catalogue)
			f.products(a)
			return a.finish()
		}
	}
}

// candidateList are collected without repetition.
type candidateList struct {
	f     catalogue
	list  []listedCandidate
	index map[string]int // identity -> place in list
}

type listedCandidate struct {
	tune.Candidate
	identity string
	plan     plan
}

func (f catalogue) collect() *candidateList {
	return &candidateList{f: f, index: map[string]int{}}
}

// add takes a configuration, and reports whether it is a new one. One that cannot run
// is kept where it was asked for by name, or is the first of its engine and checkpoint
// for which the reason holds.
func (a *candidateList) add(c tune.Config, label, prior string, named bool) bool {
	c = clean(c)
	p := a.f.resolve(c)
	id := p.identity(c)
	if i, ok := a.index[id]; ok {
		if named && i > 0 && a.list[i].Prior == "" {
			a.list[i].Prior = prior
		}
		a.list[i].Named = a.list[i].Named || named && i > 0 && prior == ofStudy
		return false
	}
	if label == "" {
		label = a.f.Label(c)
	}
	refused := a.f.refusal(p)
	if refused != "" && !named && a.known(c, p, refused, label) {
		return false
	}
	a.index[id] = len(a.list)
	a.list = append(a.list, listedCandidate{Candidate: tune.Candidate{
		Label: label, Config: c, Refused: refused, Prior: prior, Named: named && prior == ofStudy,
	}, identity: id, plan: p})
	return true
}

// known reports whether the list has the reason already for which a configuration cannot
// run. Of layouts that have no room for the weights it keeps the largest.
func (a *candidateList) known(c tune.Config, p plan, refused, label string) bool {
	tight := rule(p) == "weights"
	for i, x := range a.list {
		if x.Refused == "" || x.Config[engineKey] != c[engineKey] || x.Config[modelKey] != c[modelKey] {
			continue
		}
		if x.Refused == refused {
			return true
		}
		if tight && rule(x.plan) == "weights" && x.Prior == "" && i > 0 {
			if p.cmd.World() > x.plan.cmd.World() {
				a.list[i].Candidate = tune.Candidate{Label: label, Config: c, Refused: refused}
				a.list[i].plan = p
			}
			return true
		}
	}
	return false
}

// rule is the name of the rule that a plan breaks, "" for none.
func rule(p plan) string {
	if r, ok := errors.AsType[*engine.Rejection](p.err); ok {
		return r.Rule
	}
	return ""
}

func (a *candidateList) merge(b *candidateList) {
	for _, x := range b.list {
		a.add(x.Config, x.Label, x.Prior, false)
	}
}

func (a *candidateList) runnable() int {
	n := 0
	for _, x := range a.list {
		if x.Refused == "" {
			n++
		}
	}
	return n
}

// finish gives every candidate a label of its own and puts those that cannot run last.
func (a *candidateList) finish() []tune.Candidate {
	var run, refused []tune.Candidate
	seen := map[string]int{}
	for _, x := range a.list {
		label := x.Label
		for seen[x.Label]++; seen[label] > 1; {
			label = x.Label + " (" + strconv.Itoa(seen[x.Label]) + ")"
			seen[label]++
		}
		x.Candidate.Label = label
		if x.Refused == "" {
			run = append(run, x.Candidate)
		} else {
			refused = append(refused, x.Candidate)
		}
	}
	return append(run, refused...)
}

// plain is an engine with a checkpoint, and what any candidate of it has besides: the
// baseline's further settings on its own engine, its length on others, and what the
// study allows one value of.
func (f *rules) plain(e *engine.Engine, model string) tune.Config {
	c := tune.Config{engineKey: e.Name, modelKey: model}
	for name, v := range f.base {
		if slices.Contains(structure, name) || !settable(e, name) {
			continue
		}
		if e.Name == f.base[engineKey] || name == engine.MaxModelLen && readable(e, name, v) {
			c[name] = v
		}
	}
	for name, values := range f.o.Narrow {
		if len(values) == 1 && !slices.Contains(structure, name) && settable(e, name) {
			f.set(c, name, values[0])
		}
	}
	return c
}

// readable reports whether a value is of the kind that an engine takes.
func readable(e *engine.Engine, name, value string) bool {
	p, ok := e.Param(name)
	if !ok {
		return false
	}
	_, err := strconv.Atoi(value)
	return err == nil || p.Kind != engine.Int
}

// set says a value where the engine would do something else without it.
func (f *rules) set(c tune.Config, name, value string) {
	delete(c, name)
	e, err := engine.ByName(c[engineKey])
	if err != nil {
		return
	}
	if !settable(e, name) && (value == "1" || value == "false" || value == engine.NoPools) {
		return // as it is anyway
	}
	p, _ := e.Param(name)
	have := f.resolve(tune.Config{engineKey: e.Name, modelKey: c[modelKey]}).cmd.Params[name]
	if p == nil || value == "" || value == have || have == "" && value == p.Default {
		return
	}
	c[name] = value
}

// lay puts a layout into a configuration.
func (f *rules) lay(c tune.Config, l layout) {
	for name, value := range l.config() {
		f.set(c, name, value)
	}
}

// catalogue is what the engines' parameters offer. At level 2 all variants are combined,
// at 1 one is tried at a time, at 0 on the first layout that runs only.
func (f catalogue) offered(level int) *candidateList {
	a := f.collect()
	for _, e := range f.engines {
		for _, model := range f.models {
			f.bare(a, e, model)
			if !f.lays(a, e, model, false, level) && !f.lays(a, e, model, true, level) {
				f.nowhere(a, e, model)
			}
		}
	}
	return a
}

// bare is the baseline's structure without its further settings: what its engine does by
// itself.
func (f catalogue) bare(a *candidateList, e *engine.Engine, model string) {
	if e.Name != f.base[engineKey] || model != f.base[modelKey] {
		return
	}
	c := clean(f.base)
	for name := range f.base {
		if !slices.Contains(structure, name) && name != engine.MaxModelLen {
			delete(c, name)
		}
	}
	if key(c) != key(f.base) && f.Refuse(c) == "" {
		a.add(c, "", "", false)
	}
}

// lays adds the layouts of an engine with a checkpoint, each with its variants, and
// reports whether one runs.
func (f catalogue) lays(a *candidateList, e *engine.Engine, model string, loose bool, level int) bool {
	runs := false
	variants := f.variants(e, model, level)
	least := len(slices.MinFunc(variants, func(v, w tune.Config) int { return len(v) - len(w) }))
	for _, l := range f.layouts(e, model, loose) {
		c := f.plain(e, model)
		f.lay(c, l)
		begun, stuck := runs, false
		for _, v := range variants {
			stuck = stuck || len(v) == least && f.Refuse(f.setAll(c, v)) != ""
		}
		for _, v := range variants {
			d := f.setAll(c, v)
			ok := f.Refuse(d) == ""
			if ok && (level > 0 || !begun || len(v) == least) || !ok && (!stuck || len(v) == least) {
				a.add(d, "", "", false)
			}
			if short := f.trimmed(d); short != nil && (level > 0 || !begun) {
				a.add(short, "", "", false)
				ok = true
			}
			runs = runs || ok
		}
	}
	return runs
}

// trimmed is a configuration that has no room for a sequence of the model's own length,
// with the length of the study's longest request; nil where that does not help, or the
// study asks for a length.
func (f catalogue) trimmed(c tune.Config) tune.Config {
	p := f.resolve(c)
	if rule(p) != "kv-memory" || f.o.Longest == 0 || p.cmd.Params[engine.MaxModelLen] != "" {
		return nil
	}
	short := with(c, tune.Config{engine.MaxModelLen: f.enough()})
	if f.Refuse(short) != "" {
		return nil
	}
	return short
}

// enough is a length that holds the study's longest request.
func (f *rules) enough() string { return strconv.Itoa((f.o.Longest + 1024) / 1024 * 1024) }

// setAll is a configuration with the values of a variant.
func (f catalogue) setAll(c, variant tune.Config) tune.Config {
	out := clean(c)
	for name, value := range variant {
		f.set(out, name, value)
	}
	return out
}

// nowhere shortens what is said of a checkpoint that no layout of an engine runs, where
// it is the same of all of them.
func (f catalogue) nowhere(a *candidateList, e *engine.Engine, model string) {
	at, n := 0, 0
	for i, x := range a.list {
		if x.Config[engineKey] == e.Name && x.Config[modelKey] == model {
			at, n = i, n+1
		}
	}
	if n == 1 && a.list[at].Refused != "" {
		a.list[at].Label = f.head(a.list[at].Config)
	}
}

// variants are the ways to guess tokens, to store keys and values and to quantise on
// loading, the plain one among them: speculation first where latency is the aim.
func (f catalogue) variants(e *engine.Engine, model string, level int) []tune.Config {
	s := f.shape(e, model)
	axes := []struct {
		name   string
		values []string
	}{
		{engine.Quantization, f.loadings(e, s)},
		{engine.KVDtype, f.formats(e)},
		{engine.Speculative, f.guesses(e, s)},
	}
	out := []tune.Config{{}}
	for _, axis := range axes {
		var more []tune.Config
		for _, v := range out {
			for _, value := range axis.values {
				if value != "" && (level == 2 || len(v) == 0) {
					more = append(more, with(v, tune.Config{axis.name: value}))
				}
			}
		}
		if !slices.Contains(axis.values, "") && len(more) > 0 {
			out = nil // the study wants no other
		}
		if f.o.Latency && axis.name == engine.Speculative {
			out = append(more, out...)
		} else {
			out = append(out, more...)
		}
	}
	return out
}

// guesses are the ways of speculation: none, and the model's own at its shortest.
func (f *rules) guesses(e *engine.Engine, s shape) []string {
	if !settable(e, engine.Speculative) {
		return []string{""}
	}
	if values, ok := f.narrow(engine.Speculative); ok {
		return values
	}
	if s.model.HasMTP {
		return []string{"", "mtp:1"}
	}
	return []string{""}
}

// formats are those of the KV cache: the engine's own and, where answers are guarded,
// the first smaller one.
func (f *rules) formats(e *engine.Engine) []string {
	p, ok := e.Param(engine.KVDtype)
	if !ok || !settable(e, engine.KVDtype) {
		return []string{""}
	}
	if values, ok := f.narrow(engine.KVDtype); ok {
		return values
	}
	if f.o.Numerics {
		for _, v := range p.Ladder {
			if kvFormat(v) != "" {
				return []string{"", v}
			}
		}
	}
	return []string{""}
}

// loadings are the quantisations on loading: FP8 of a 16-bit checkpoint where answers
// are guarded, the device computes it, and no checkpoint has it already.
func (f *rules) loadings(e *engine.Engine, s shape) []string {
	if !settable(e, engine.Quantization) {
		return []string{""}
	}
	if values, ok := f.narrow(engine.Quantization); ok {
		return values
	}
	p, _ := e.Param(engine.Quantization)
	stored := slices.ContainsFunc(f.models, func(m string) bool {
		known, err := arch.LookupModel(m)
		return err == nil && known.Format == arch.FP8
	})
	if f.o.Numerics && !stored && s.model.Format == arch.BF16 && s.gpu.FP8TFLOPS > 0 && slices.Contains(p.Ladder, "fp8") {
		return []string{"", "fp8"}
	}
	return []string{""}
}
