package candidate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Ladders in the order in which a step on them usually pays, by what is aimed at. Block
// sizes, attention backends and a prefix cache that is off have never been worth a
// launch, and are tried only where the study lists values.
var (
	forThroughput = []string{
		engine.MaxNumSeqs, engine.MemoryShare, engine.MaxBatched, engine.HostCache, engine.GraphMax, engine.Speculative, engine.ChunkedPrefill, engine.CacheReuse,
		engine.MicroBatch, engine.Threads, engine.ThreadsBatch, engine.Overlap, engine.CapacityPolicy, engine.ExpertParallel,
		engine.KVDtype, engine.Quantization, engine.PerfMode, engine.MoEBackend,
	}
	forLatency = []string{
		engine.Speculative, engine.HostCache, engine.GraphMax, engine.Overlap, engine.MaxBatched, engine.CacheReuse, engine.PerfMode, engine.MicroBatch, engine.Threads,
		engine.ThreadsBatch, engine.ChunkedPrefill, engine.ExpertParallel, engine.MoEBackend, engine.MaxNumSeqs, engine.MemoryShare, engine.KVDtype, engine.Quantization,
	}
)

// Steps are small changes of a configuration: one rung on one ladder each, first those
// that the study lists, then the first choice of every ladder, the second of every, and
// so on. None is refused, and none is what the engine does already.
func (f *Field) Steps(c tune.Config) []tune.Change { return f.remembered(f.steps, c, f.stepsOf) }

func (f *Field) stepsOf(c tune.Config) []tune.Change {
	s := &steps{f: f.rules, c: c, p: f.resolve(c), seen: map[string]bool{}, labels: map[string]bool{}}
	if s.p.err != nil {
		return nil
	}
	s.seen[s.p.identity(c)] = true
	for _, ch := range f.o.Changes {
		if !structural(ch) {
			s.listed(ch)
		}
	}
	s.ladders()
	return s.out
}

// steps are collected without repetition.
type steps struct {
	f      *rules
	c      tune.Config
	p      plan
	out    []tune.Change
	seen   map[string]bool // identities
	labels map[string]bool
}

// try adds a change unless it is refused, or makes no difference.
func (s *steps) try(set tune.Config, why string) {
	next := with(s.c, set)
	q := s.f.resolve(next)
	label := s.f.saidAll(s.c, set)
	if s.seen[q.identity(next)] || s.labels[label] || s.f.refusal(q) != "" {
		return
	}
	for name := range set {
		if !s.p.changes(q, name, s.c, next) {
			return
		}
	}
	s.seen[q.identity(next)], s.labels[label] = true, true
	s.out = append(s.out, tune.Change{Label: label, Set: set, Why: why})
}

// saidAll is a change for a reader, in the catalogue's order of parameters.
func (f *rules) saidAll(c, set tune.Config) string {
	var parts []string
	for _, name := range inOrder(set) {
		value := set[name]
		if value != "" {
			parts = append(parts, said(name, value))
			continue
		}
		text := name + " by default"
		if v := f.resolve(with(c, tune.Config{name: ""})).value(name); v != "" {
			text = said(name, v) + " (the default)"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// inOrder lists a configuration's keys: engine and model, then parameters as in the
// catalogue.
func inOrder(c tune.Config) []string {
	all := []string{engineKey, modelKey}
	for _, p := range engine.All()[0].Params {
		all = append(all, p.Name)
	}
	return slices.DeleteFunc(all, func(name string) bool { _, ok := c[name]; return !ok })
}

// listed tries a change of the study.
func (s *steps) listed(ch tune.Change) {
	why := ""
	if ch.Label != "" {
		why = "the study lists it as " + ch.Label
	}
	s.try(maps.Clone(ch.Set), why)
}

// ladders tries the rungs of every ladder, the first choices before the second.
func (s *steps) ladders() {
	order := forThroughput
	if s.f.o.Latency {
		order = forLatency
	}
	order = slices.Clone(order)
	for _, name := range inOrder(s.c) { // to leave a setting to the engine is a step too
		if !slices.Contains(order, name) && !slices.Contains(structure, name) {
			order = append(order, name)
		}
	}
	for _, name := range inOrder(tune.Config(joined(s.f.o.Narrow))) {
		if !slices.Contains(order, name) && !slices.Contains(structure, name) {
			order = append(order, name)
		}
	}
	var rungs [][]string
	most := 0
	for _, name := range order {
		values := s.rungs(name)
		rungs = append(rungs, values)
		most = max(most, len(values))
	}
	for i := range most {
		for j, name := range order {
			if i < len(rungs[j]) {
				s.rung(name, rungs[j][i])
			}
		}
	}
}

// larger are the rungs of a ladder above a value: more of what costs nothing but memory.
func larger(ladder []string, have string) (out []string) {
	x, _ := strconv.ParseFloat(have, 64)
	for _, text := range ladder {
		if v, err := strconv.ParseFloat(text, 64); err == nil && v > x && x >= 0 { // below 0 there is no limit
			out = append(out, text)
		}
	}
	return out
}

func joined(narrow map[string][]string) map[string]string {
	out := map[string]string{}
	for name, values := range narrow {
		out[name] = strings.Join(values, " ")
	}
	return out
}

// rung tries one value: by leaving the setting out where that comes to the same.
func (s *steps) rung(name, value string) {
	set := tune.Config{name: value}
	without := tune.Config{name: ""}
	switch q := s.f.resolve(with(s.c, without)); {
	case value == s.p.value(name) && value != "":
		return
	case s.c[name] != "" && value != "" && q.err == nil && q.value(name) == value:
		set = without
	}
	s.f.keepContext(s.p, set)
	s.try(set, "")
}

// keepContext gives llama.cpp's slots the room of the longest request where their number
// changes: else they divide the model's own.
func (f *rules) keepContext(p plan, set tune.Config) {
	if p.cmd.Engine == "llamacpp" && f.longest > 0 && set[engine.MaxNumSeqs] != "" && p.cmd.Params[engine.MaxModelLen] == "" && p.cmd.Params[engine.ContextSize] == "" {
		set[engine.MaxModelLen] = strconv.Itoa((f.longest + 256) / 256 * 256)
	}
}

// rungs are the values of a parameter that are worth a step from a configuration, the
// most promising first.
func (s *steps) rungs(name string) []string {
	e, err := engine.ByName(s.p.cmd.Engine)
	if err != nil || !settable(e, name) {
		return nil
	}
	if values, ok := s.f.narrow(name); ok {
		return values
	}
	p, _ := e.Param(name)
	values := s.around(e, p)
	if s.c[name] != "" && !slices.Contains(structure, name) {
		values = append(values, "") // as the engine has it
	}
	return values
}

func (s *steps) around(e *engine.Engine, p *engine.Param) []string {
	have := s.p.value(p.Name)
	n, _ := strconv.Atoi(have)
	switch p.Name {
	case engine.MaxNumSeqs:
		return s.seqs(n)
	case engine.MemoryShare:
		if !s.p.deviceShare() || s.f.o.Unlaunched {
			return nil
		}
		return shares(have)
	case engine.MaxBatched, engine.GraphMax, engine.MicroBatch:
		return s.near(p.Ladder, n, s.f.o.Latency && p.Name == engine.MaxBatched)
	case engine.Threads, engine.ThreadsBatch:
		return p.Ladder
	case engine.Speculative:
		return s.guesses()
	case engine.ChunkedPrefill, engine.Overlap:
		return []string{"true"}
	case engine.ExpertParallel:
		if s.p.cfg.Model.MoE != nil && s.p.cfg.TP*s.p.cfg.DP > 1 {
			return []string{"true"}
		}
	case engine.KVDtype:
		if s.f.o.Numerics && kvFormat(have) == "" {
			return slices.DeleteFunc(s.f.formats(e), func(v string) bool { return v == "" })
		}
	case engine.Quantization:
		if have == "" {
			return slices.DeleteFunc(s.f.loadings(e, shape{s.p.cfg.Model, s.p.cfg.GPU}), func(v string) bool { return v == "" })
		}
	case engine.CapacityPolicy, engine.PerfMode:
		return p.Ladder
	case engine.HostCache, engine.CacheReuse:
		if s.f.o.Shared {
			return larger(p.Ladder, have)
		}
	case engine.MoEBackend:
		if s.f.o.Numerics && s.p.cfg.Model.MoE != nil {
			return p.Ladder
		}
	}
	return nil
}

// seqs are halves and doubles of a limit of requests, in powers of two.
func (s *steps) seqs(n int) []string {
	if n < 1 {
		return nil
	}
	above := 1
	for above <= n {
		above *= 2
	}
	below := above / 2
	if below == n {
		below /= 2
	}
	values := []int{above, 2 * above, below}
	if s.f.o.Latency {
		values = []int{below, above, 2 * above}
	}
	tokens, err := s.p.cfg.KVTokens()
	var out []string
	for _, v := range values {
		useless := v > n && !s.p.measuredOnly() && err == nil && tokens/v < leastTokens
		if v > 0 && !useless {
			out = append(out, strconv.Itoa(v))
		}
	}
	return out
}

// leastTokens is the room in the KV cache under which a request is not worth counting
// with: limits beyond are never reached.
const leastTokens = 64

func (p plan) measuredOnly() bool {
	e, err := engine.ByName(p.cmd.Engine)
	return err != nil || e.MeasuredOnly
}

// deviceShare reports whether the share of memory decides how much the cache holds, and
// costs nothing else. It does not where the cache has a size of its own, and on a CPU it
// is a share of the host's memory, of which other programs have the rest.
func (p plan) deviceShare() bool { return p.cfg.KVSpace == 0 && p.cfg.GPU.Platform != arch.CPU }

// shares are a little more of the device's memory, up to where engines run out under
// load.
func shares(have string) []string {
	x, err := strconv.ParseFloat(have, 64)
	if err != nil {
		return nil
	}
	var out []string
	for _, more := range []float64{0.03, 0.05} {
		if v := math.Round(min(x+more, mostMemory)*100) / 100; v > x+0.005 && !slices.Contains(out, decimal(v)) {
			out = append(out, decimal(v))
		}
	}
	return out
}

const mostMemory = 0.95

// near are the rungs of a catalogue's ladder within two doublings of a value, the nearest
// first, larger before smaller unless the smaller promise more.
func (s *steps) near(ladder []string, n int, smaller bool) []string {
	type rung struct {
		text string
		far  float64
		less bool
	}
	var out []rung
	for _, text := range ladder {
		v, err := strconv.Atoi(text)
		if err != nil || v == n || n > 0 && (v > 4*n || 4*v < n) {
			continue
		}
		r := rung{text: text}
		if n > 0 {
			r.far, r.less = math.Abs(math.Log2(float64(v)/float64(n))), v < n
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b rung) int {
		if c := cmp.Compare(a.far, b.far); c != 0 || a.less == b.less {
			return c
		}
		if a.less == smaller {
			return -1
		}
		return 1
	})
	var values []string
	for _, r := range out {
		values = append(values, r.text)
	}
	return values
}

// guesses are other numbers of guessed tokens, or speculation by what the model ships.
func (s *steps) guesses() []string {
	have, ok := parseSpec(s.p.cmd.Params[engine.Speculative])
	if !ok {
		if s.p.cfg.Model.HasMTP {
			return []string{"mtp:1"}
		}
		return nil
	}
	var out []string
	for _, k := range guessLadder {
		if v := have.tokens(k); k != have.k && v != "" {
			out = append(out, v)
		}
	}
	return out
}

var guessLadder = []int{1, 2, 3, 5}
