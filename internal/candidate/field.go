package candidate

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// Keys of a tune.Config that are no parameters of an engine.
const (
	engineKey = "engine"
	modelKey  = "model"
)

// structure are the keys that make a candidate. Whatever else is set may be moved in
// small steps.
var structure = []string{
	engineKey, modelKey, engine.Quantization, engine.TP, engine.PP, engine.DP,
	engine.ExpertParallel, engine.AttentionDP, engine.Disaggregation, engine.Speculative, engine.KVDtype,
}

// Field is what may be tried, and what may be tried next. What it is asked for
// together it may be asked for from several goroutines.
type Field struct {
	catalogue

	// What was answered before, by key: a search asks again for every observation, and
	// the answers are pure.
	mu         sync.Mutex
	steps      map[string][]tune.Change
	removals   map[string][]tune.Change
	candidates []tune.Candidate
}

// catalogue lists whole configurations: those that the engines' parameters offer and
// those of the study.
type catalogue struct{ *rules }

// rules say what a configuration amounts to: the command, what is refused, how it is
// called.
type rules struct {
	o       Options
	base    tune.Config
	engines []*engine.Engine  // the baseline's first
	models  []string          // the baseline's first
	words   map[string]string // model -> what a label says of it
	longest int               // 0 where the baseline does not serve it either
	prompt  int               // the same

	mu    sync.Mutex
	plans map[string]plan // what was resolved before, by key
}

var (
	_ tune.Rules         = (*rules)(nil)
	_ tune.Neighbourhood = (*Field)(nil)
)

// SearchSpace is the field as a race takes it.
func (f *Field) SearchSpace() tune.SearchSpace {
	return tune.SearchSpace{Candidates: f.Candidates(), Elsewhere: f.elsewhere(), Domain: f.Domain(), Rules: f, Neighbourhood: f}
}

// plan is a configuration made concrete, or why it cannot be.
type plan struct {
	cmd engine.Command
	cfg engine.Config
	err error
}

// New returns the field of the options, or everything that is wrong with them.
func New(o Options) (*Field, error) {
	f := &rules{o: o, base: clean(o.Baseline), plans: map[string]plan{}}
	var errs []error
	if o.Resolve == nil {
		errs = append(errs, errors.New("no way to make a configuration concrete: give Resolve"))
	}
	if o.GPUs < 1 {
		errs = append(errs, fmt.Errorf("%d devices: give at least 1", o.GPUs))
	}
	if f.base[engineKey] == "" || f.base[modelKey] == "" {
		errs = append(errs, errors.New("the baseline names no engine or no model: give both"))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Narrow)) {
		if err := known(name); err != nil {
			errs = append(errs, fmt.Errorf("values to try: %w", err))
		}
		if len(o.Narrow[name]) == 0 {
			errs = append(errs, fmt.Errorf("values to try: none of %s: list at least one", name))
		}
	}
	names := first(f.base[engineKey], f.o.Engines)
	if values, ok := f.narrow(engineKey); ok {
		names = values
	}
	for _, name := range names {
		e, err := engine.ByName(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f.engines = append(f.engines, e)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	f.models = first(f.base[modelKey], f.o.Models)
	if values, ok := f.narrow(modelKey); ok {
		f.models = values
	}
	f.words = words(append(slices.Clone(f.models), f.base[modelKey]))
	if p := f.resolve(f.base); p.err == nil {
		if p.cfg.Fits(0, o.Longest) == nil {
			f.longest = o.Longest
		}
		if p.cfg.Fits(o.Prompt, 0) == nil {
			f.prompt = o.Prompt
		}
	}
	return &Field{catalogue: catalogue{f}, steps: map[string][]tune.Change{}, removals: map[string][]tune.Change{}}, nil
}

func known(name string) error {
	if name == engineKey || name == modelKey {
		return nil
	}
	return engine.KnownParam(name)
}

// first is a list without repetitions that begins with one value.
func first(value string, others []string) []string {
	out := []string{value}
	for _, v := range others {
		if v != "" && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func clean(c tune.Config) tune.Config { return tune.Change{}.Apply(c) }

// with is a configuration with some values changed; "" removes one.
func with(c, set tune.Config) tune.Config { return tune.Change{Set: set}.Apply(c) }

// key tells configurations apart.
func key(c tune.Config) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(c)) {
		b.WriteString(k + "=" + c[k] + "\x00")
	}
	return b.String()
}

// narrow is what the study allows of a parameter in place of the catalogue's values.
func (f *rules) narrow(name string) ([]string, bool) {
	values, ok := f.o.Narrow[name]
	return values, ok
}

// allowed reports whether a value may be tried at all.
func (f *rules) allowed(name, value string) bool {
	values, ok := f.narrow(name)
	return !ok || slices.Contains(values, value)
}

// settable reports whether an engine can be told a parameter.
func settable(e *engine.Engine, name string) bool {
	p, ok := e.Param(name)
	return ok && (p.Derived || p.Key != "" || len(p.Flags)+len(p.Off)+len(p.OffArgs) > 0)
}

// resolve makes a configuration concrete, once.
func (f *rules) resolve(c tune.Config) plan {
	c = clean(c)
	k := key(c)
	f.mu.Lock()
	p, ok := f.plans[k]
	f.mu.Unlock()
	if ok {
		return p
	}
	p.cmd, p.cfg, p.err = f.o.Resolve(c)
	if p.err != nil && p.cmd.Model == "" { // what it would be started with all the same
		p.cmd, _ = engine.New(c[engineKey], c[modelKey], params(c), nil)
	}
	f.mu.Lock()
	f.plans[k] = p
	f.mu.Unlock()
	return p
}

// remembered answers from a table, or computes and keeps the answer.
func (f *Field) remembered(table map[string][]tune.Change, c tune.Config, answer func(tune.Config) []tune.Change) []tune.Change {
	c = clean(c)
	k := key(c)
	f.mu.Lock()
	out, ok := table[k]
	f.mu.Unlock()
	if !ok {
		out = answer(c)
		f.mu.Lock()
		table[k] = out
		f.mu.Unlock()
	}
	out = slices.Clone(out)
	for i := range out {
		out[i].Set = maps.Clone(out[i].Set)
	}
	return out
}

// params are a configuration's parameters without engine and model.
func params(c tune.Config) map[string]string {
	out := maps.Clone(map[string]string(c))
	delete(out, engineKey)
	delete(out, modelKey)
	return out
}

// Refuse says why a configuration cannot run, or nothing. One that cannot serve the
// study's longest request, or its longest prompt, is refused where the baseline can.
func (f *rules) Refuse(c tune.Config) string { return f.refusal(f.resolve(c)) }

func (f *rules) refusal(p plan) string {
	if why := foreign(p.cmd); why != "" && !f.isBase(p) {
		return why
	}
	if p.err != nil {
		return strings.TrimSuffix(p.err.Error(), ".")
	}
	if r := p.cfg.Fits(0, f.longest); r != nil {
		return fmt.Sprintf("the study's longest request takes %d tokens: %s", f.longest, r.Reason)
	}
	if r := p.cfg.Fits(f.prompt, 0); r != nil {
		return fmt.Sprintf("the study's longest prompt takes %d tokens: %s", f.prompt, r.Reason)
	}
	return ""
}

// isBase reports whether a plan serves the baseline's model by the baseline's engine:
// what a study begins with is not judged by a file's name.
func (f *rules) isBase(p plan) bool {
	return p.cmd.Engine == f.base[engineKey] && p.cmd.Model == f.base[modelKey]
}

// foreign says of a checkpoint that it is not of the kind that an engine serves, as far
// as its name tells.
func foreign(c engine.Command) string {
	e, err := engine.ByName(c.Engine)
	gguf := strings.Contains(strings.ToLower(c.Model), "gguf")
	switch {
	case err != nil || c.Model == "":
	case c.Engine == "llamacpp" && !gguf && !strings.HasPrefix(c.Model, "/") && !strings.HasPrefix(c.Model, "."):
		return fmt.Sprintf("llama.cpp serves GGUF files, and %s is none: list a GGUF of the model", c.Model)
	case c.Engine != "llamacpp" && gguf:
		return fmt.Sprintf("%s is GGUF, which is left to llama.cpp: list another checkpoint for %s", c.Model, e.Title)
	}
	return ""
}

// identity is what would be started: configurations of one identity are the same.
func (p plan) identity(c tune.Config) string {
	if p.cmd.Model == "" {
		return key(c)
	}
	return p.cmd.Engine + " " + p.cmd.String()
}

// value is what a parameter amounts to, "" where that is not known.
func (p plan) value(name string) string {
	if v := p.cmd.Params[name]; v != "" {
		return v
	}
	c := p.cfg
	switch name {
	case engine.MaxNumSeqs:
		return count(c.Seqs)
	case engine.MaxBatched:
		return count(c.Batched)
	case engine.MaxModelLen:
		return count(c.MaxLen)
	case engine.GraphMax:
		return count(c.GraphMax)
	case engine.BlockSize:
		return count(c.Block)
	case engine.MemoryShare:
		if c.MemoryShare > 0 {
			return decimal(c.MemoryShare)
		}
	}
	if e, err := engine.ByName(p.cmd.Engine); err == nil {
		if par, ok := e.Param(name); ok {
			return par.Default
		}
	}
	return ""
}

// unfelt are parameters that a resolved configuration does not show.
var unfelt = []string{
	engine.PerfMode, engine.MoEBackend, engine.StreamInterval, engine.AttentionDP, engine.Quantization, engine.KVDtype,
	engine.HostCacheBackend, engine.CacheEviction,
}

// changes reports whether another value of a parameter makes a difference, as far as
// is known.
func (p plan) changes(q plan, name string, c, d tune.Config) bool {
	if p.identity(c) == q.identity(d) {
		return false
	}
	if e, err := engine.ByName(q.cmd.Engine); err != nil || e.MeasuredOnly || slices.Contains(unfelt, name) {
		return true
	}
	return !reflect.DeepEqual(p.cfg, q.cfg)
}

// Numerics names what decides the answers of the model: checkpoint, formats of weights
// and cache, what guesses tokens, and kernels that may compute in fewer bits. Engines
// differ by rounding alone, and so share a name.
func (f *rules) Numerics(c tune.Config) string {
	p := f.resolve(c)
	get := func(name string) string {
		v := c[name]
		if p.cmd.Model != "" {
			v = p.cmd.Params[name]
		}
		return v
	}
	parts := []string{c[modelKey]}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"="+value)
		}
	}
	add(engine.KVDtype, kvFormat(get(engine.KVDtype)))
	add(engine.Quantization, get(engine.Quantization))
	if s, ok := parseSpec(get(engine.Speculative)); ok {
		add(engine.Speculative, strings.TrimSuffix(s.method+":"+s.draft, ":"))
	}
	if backend := get(engine.MoEBackend); backend != "auto" {
		add(engine.MoEBackend, backend)
	}
	return strings.Join(parts, " ")
}

// kvFormat is a format of the KV cache by one name, "" for 16 bit.
func kvFormat(value string) string {
	switch v := strings.ToLower(value); v {
	case "", "auto", "f16", "bf16", "float16", "bfloat16":
		return ""
	case "fp8", "fp8_e4m3":
		return "fp8"
	default:
		return v
	}
}

// Settings counts what a configuration sets beside the engine's defaults.
func (f *rules) Settings(c tune.Config) int {
	n := 0
	for name := range params(clean(c)) {
		if f.counts(c, name) {
			n++
		}
	}
	return n
}

// counts reports whether a setting makes another command than its absence.
func (f *rules) counts(c tune.Config, name string) bool {
	without := with(c, tune.Config{name: ""})
	p, q := f.resolve(c), f.resolve(without)
	return p.identity(c) != q.identity(without)
}
