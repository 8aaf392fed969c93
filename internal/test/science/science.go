// Package science holds simulated landscapes with a known optimum, on which
// search strategies are compared: models, hardware, workloads and objectives,
// noise within and between launches, refusals, slow starts, predictions that are
// wrong. It runs in virtual time. Nothing of the product imports it.
//
//	w, err := science.Open(science.Suite()[0])
//	best, figures := w.Best()                     // by exhaustive evaluation
//	end, err := w.Study(science.Entrants()[0], science.Setup{Launches: 25}, 7)
//	fmt.Println(end.Regret)                       // share of the best that is lost
//
// What is true of a configuration is a replay in package sim under constants
// that the predictor does not have, with effects that it knows nothing of. So the
// best configuration can be found by trying all of them, and what a strategy
// recommends can be held against it without noise.
//
// Invariants: an observation is a function of landscape, seed, trial and proposal
// alone; no clock is read. Deliberately absent: drift over a study, interference
// between replicas, and engines that crash under load later on.
package science

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/candidate"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/tune"
)

// Landscape is a tuning problem: what may be tried, what is asked, and what is
// true that nobody knows.
type Landscape struct {
	Name     string
	About    string // in a few words, for the table
	Models   []string
	GPU      string
	GPUs     int
	Engines  []string
	Set      map[string]string // parameters of every configuration
	Baseline tune.Config
	Narrow   map[string][]string // parameter -> values; what is not named stays at its default

	Load      calib.Load
	Goodput   string // bounds of request_goodput, such as "ttft:500 tpot:50"
	Objective tune.Objective
	Latency   bool // the objective is a latency at a given load

	Noise    Noise
	Wrong    Wrong
	Effects  []Effect
	Refusals []Refusal
	Smooth   bool    // the simulator is wrong by Wrong and Effects alone: see roughness
	StartS   float64 // seconds a start takes; they cost wall time alone
	Equal    bool    // in truth all configurations are as the baseline is: whatever is claimed is false
	Draw     int     // of what chance makes of single choices: 0 for the suite's, others for what no strategy was made on
}

// workload is what the one workload of a landscape is called.
const workload = "load"

// Noise is what a measurement adds to the truth, as standard deviations of
// logarithms.
type Noise struct {
	Launch  float64 // between launches
	Within  float64 // within a launch of the whole load
	Outlier float64 // share of launches that are a tenth slower than they should be
}

// Shares of trials that break for reasons of our own, or cannot be believed.
const (
	failing = 0.015
	voided  = 0.01
)

// Wrong is how the truth differs from what the predictor believes, as factors of
// speed; 0 is 1.
type Wrong struct {
	Engine  map[string]float64 // of all that an engine does
	Memory  float64            // of reading memory
	Compute float64            // of arithmetic
	Network float64            // of exchange between devices
	Host    float64            // of work between kernels
	Accept  float64            // of the acceptance of drafted tokens
}

// Effect is something about some configurations that the simulator does not know.
type Effect struct {
	When   func(c tune.Config, cfg engine.Config) bool
	Slow   float64              // all takes so many times as long; 0: 1
	Change func(*engine.Config) // what the engine does in truth
}

// Refusal is a rule of an engine that the guide does not know: the configuration
// is refused at its launch, with a log.
type Refusal struct {
	When func(c tune.Config, cfg engine.Config) bool
	Log  string
}

// World is a landscape that can be measured. It is safe for concurrent use.
type World struct {
	Landscape
	field  *candidate.Field
	gpu    arch.Accelerator
	models map[string]arch.Model
	bounds []result.SLO
	jobs   []sim.Job
	truth  *sim.Constants

	mu    sync.Mutex
	plans map[string]*plan
	cells map[cellKey]*cell

	valid     []tune.Config // all that can be started, refusals at launch apart
	best      tune.Config
	objective tune.Objective // with the limits that are of the baseline's figures
}

// Open prepares a landscape: it evaluates every configuration of it.
func Open(l Landscape) (*World, error) {
	w := &World{Landscape: l, models: map[string]arch.Model{}, plans: map[string]*plan{}, cells: map[cellKey]*cell{}}
	if err := w.prepare(); err != nil {
		return nil, fmt.Errorf("landscape %s: %w", l.Name, err)
	}
	return w, nil
}

func (w *World) prepare() (err error) {
	if w.gpu, err = arch.LookupAccelerator(w.GPU); err != nil {
		return err
	}
	for _, name := range w.Models {
		if w.models[name], err = arch.LookupModel(name); err != nil {
			return err
		}
	}
	if w.Goodput != "" {
		if w.bounds, err = result.ParseGoodput(w.Goodput); err != nil {
			return err
		}
	}
	if w.truth, err = w.constants(); err != nil {
		return err
	}
	w.jobs = slices.Collect(w.Load.Jobs(loadSeed))
	if w.field, err = candidate.New(w.options()); err != nil {
		return err
	}
	return w.explore()
}

// loadSeed is what lengths and arrivals of every landscape are drawn by.
const loadSeed = 1

func (w *World) options() candidate.Options {
	longest := 0
	for _, j := range w.jobs {
		longest = max(longest, j.PromptLen+j.Output)
	}
	return candidate.Options{
		Baseline: w.Baseline, Engines: w.Engines, Models: w.Models, Narrow: w.narrow(),
		GPUs: w.GPUs, Latency: w.Latency, Numerics: true, Longest: longest,
		Resolve: func(c tune.Config) (engine.Command, engine.Config, error) {
			p := w.plan(c)
			return p.cmd, p.cfg, p.err
		},
	}
}

// narrow is Narrow with every other parameter held at its default.
func (w *World) narrow() map[string][]string {
	all := map[string][]string{}
	for _, p := range engine.All()[0].Params {
		all[p.Name] = []string{""}
	}
	maps.Copy(all, w.Narrow)
	return all
}

// plan is a configuration made concrete, as package lab does it.
type plan struct {
	cmd      engine.Command
	cfg      engine.Config
	replicas int
	err      error // why it cannot run
}

// versions of the engines of every landscape.
var versions = map[string]string{"vllm": "0.11.0", "sglang": "0.5.5", "trtllm": "1.2.0"}

func (w *World) plan(c tune.Config) *plan {
	name := key(c)
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.plans[name]
	if !ok {
		p = w.resolve(c)
		w.plans[name] = p
	}
	return p
}

func (w *World) resolve(c tune.Config) *plan {
	params := maps.Clone(w.Set)
	if params == nil {
		params = map[string]string{}
	}
	maps.Copy(params, c)
	delete(params, "engine")
	delete(params, "model")
	p := &plan{}
	model, ok := w.models[c["model"]]
	if !ok {
		p.err = fmt.Errorf("the landscape has no model %q", c["model"])
		return p
	}
	if p.cmd, p.err = engine.New(c["engine"], c["model"], params, nil); p.err != nil {
		return p
	}
	p.cmd.Version = versions[p.cmd.Engine]
	if p.cfg, p.err = p.cmd.Resolve(model, w.gpu, w.GPUs); p.err == nil {
		p.replicas = p.cfg.Replicas(w.GPUs)
	}
	return p
}

// key names a configuration.
func key(c tune.Config) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] != "" {
			fmt.Fprintf(&b, "%s=%s ", name, c[name])
		}
	}
	return strings.TrimSpace(b.String())
}

// product is every configuration of the landscape, whether it runs or not.
func (w *World) product() []tune.Config {
	configs := []tune.Config{{}}
	cross := func(name string, values []string) {
		var out []tune.Config
		for _, c := range configs {
			for _, v := range values {
				out = append(out, tune.Change{Set: tune.Config{name: v}}.Apply(c))
			}
		}
		configs = out
	}
	cross("engine", w.Engines)
	cross("model", w.Models)
	for _, name := range slices.Sorted(maps.Keys(w.Narrow)) {
		cross(name, w.Narrow[name])
	}
	return configs
}

// Predict foretells figures by a replay under the constants that are part of the
// program, without what is hidden.
func (w *World) Predict(c tune.Config, _ string) (map[string]float64, bool) {
	f := w.cell(c, 1, false)
	return f.figures, f.refused == ""
}

var _ tune.Predictor = (*World)(nil)

// Space is what every strategy is given; only the staged one looks at its stages.
func (w *World) Space() tune.Space {
	return tune.Space{Baseline: w.Baseline, Stages: w.stages(), Primary: workload}
}

// Size is how many configurations can be started.
func (w *World) Size() int { return len(w.valid) }
