// Package science holds simulated landscapes with a known optimum, on which
// search strategies are compared: models, hardware, workloads and objectives,
// noise within and between launches, refusals, slow starts, predictions that are
// wrong or missing. It runs in virtual time. Nothing of the product imports it. Pure.
//
//	w, err := science.Draw(science.Classes()[0], 7)  // a landscape of a class, anew for each seed
//	best, figures := w.Best()                        // by exhaustive evaluation
//	end, err := w.Study(science.Entrants()[0], 25)   // of 25 launches
//	fmt.Println(end.Regret)                          // share of the best that is lost
//
// What is true of a configuration is a replay in package sim under constants
// that the predictor does not have, with effects that it knows nothing of. So the
// best configuration can be found by trying all of them, and what a strategy
// recommends can be held against it without noise.
//
// Invariants: a landscape is a function of its class and seed, an observation of
// landscape, budget, trial and proposal alone; no clock is read. Deliberately absent:
// interference between replicas, and engines that crash under load later on.
package science

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/candidate"
	"perflab/internal/engine"
	"perflab/internal/sim"
	"perflab/internal/tune"
)

// Landscape is a tuning problem: what may be tried, what is asked, and what is
// true that nobody knows.
type Landscape struct {
	Name     string
	Class    string
	Seed     uint64 // of lengths, arrivals, and what chance makes of single choices
	Models   []string
	GPU      string
	GPUs     int
	Engines  []string
	Set      map[string]string // parameters of every configuration
	Baseline tune.Config
	Narrow   map[string][]string // parameter -> values; what is not named stays at its default

	Load       calib.Load
	Busy       float64 // the load's rate is this share of what the baseline does of a burst; 0: the load says its rate
	Objective  tune.Objective
	Thresholds []Threshold // bounds of the objective that are of what is true
	Latency    bool        // the objective is a latency at a given load

	Noise    Noise
	Wrong    Wrong
	Effects  []Effect
	Refusals []Refusal
	Silent   []string // engines of which nothing is predicted
	StartS   float64  // seconds a start takes; they cost wall time alone
	Equal    bool     // in truth all configurations are as the baseline is: whatever is claimed is false

	Subject []tune.Config // settings that its class is about
	Lead    float64       // how many times as good the best with all of them is as the best of the rest; 0: as it comes
}

// workload is what the one workload of a landscape is called.
const workload = "load"

// Threshold is an upper bound of a figure, as a factor of what the configuration has
// that is best without it, or higher, so that a share of all that run meet it.
type Threshold struct {
	Metric string
	Factor float64
	Meet   float64
}

// Noise is what a measurement adds to the truth, as standard deviations of
// logarithms.
type Noise struct {
	Launch  float64            // between launches
	Within  float64            // within a launch of the whole load
	Outlier float64            // share of launches that are a tenth slower than they should be
	Engine  map[string]float64 // factors of Launch for single engines
	Drift   float64            // logarithm by which all takes longer in the end than at the beginning
	Jump    float64            // share of a study after which it does so at once; 0: bit by bit
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
	When   func(c tune.Config) bool
	Slow   float64              // all takes so many times as long; 0: 1
	Change func(*engine.Config) // what the engine does in truth
}

// Refusal is a rule of an engine by which a configuration does not run.
type Refusal struct {
	When  func(c tune.Config) bool
	Log   string // printed at the launch, or what the guide says; "": that there is no memory
	Known bool   // the guide knows it: nothing of the kind is proposed
}

// World is a landscape that can be measured. It is not safe for concurrent use.
type World struct {
	Landscape
	field  *candidate.Field
	space  tune.SearchSpace
	gpu    arch.Accelerator
	models map[string]arch.Model
	jobs   []sim.Job
	truth  *sim.Constants

	plans   map[string]*plan
	cells   map[cellKey]*cell
	replays map[familyKey][]*replayed
	made    int // replays

	valid []tune.Config // all that can be started, refusals at launch apart
	runs  int           // of them that run
	best  tune.Config
}

// Open prepares a landscape: it evaluates every configuration of it.
func Open(l Landscape) (*World, error) {
	w := &World{Landscape: l, models: map[string]arch.Model{}, plans: map[string]*plan{}, cells: map[cellKey]*cell{}, replays: map[familyKey][]*replayed{}}
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
	if w.truth, err = w.constants(); err != nil {
		return err
	}
	if err := w.paced(); err != nil {
		return err
	}
	w.jobs = slices.Collect(w.Load.Jobs(w.Seed))
	if _, refused := w.Truth(w.Baseline); refused != "" {
		return fmt.Errorf("the baseline cannot run: %s", refused)
	}
	if w.field, err = candidate.New(w.options()); err != nil {
		return err
	}
	w.space = w.field.SearchSpace()
	w.explore()
	if w.best == nil {
		return errors.New("no configuration meets every constraint in truth")
	}
	return nil
}

// paced gives a load that is to keep the baseline busy its rate.
func (w *World) paced() error {
	if w.Busy == 0 {
		return nil
	}
	p := w.plan(w.Baseline)
	if p.err != nil {
		return p.err
	}
	w.jobs = slices.Collect(w.Load.Jobs(w.Seed)) // of no rate yet: all at once
	x, err := w.replay(w.Baseline, p.cfg, p.replicas, w.truth, 1, 1)
	if err != nil {
		return err
	}
	w.Load.Rate, w.Load.Arrival = w.Busy*x.figures["request_throughput"], "poisson"
	clear(w.replays)
	return nil
}

func (w *World) options() candidate.Options {
	longest, prompt := 0, 0
	for _, j := range w.jobs {
		longest, prompt = max(longest, j.PromptLen+j.Output), max(prompt, j.PromptLen)
	}
	return candidate.Options{
		Baseline: w.Baseline, Engines: w.Engines, Models: w.Models, Narrow: w.narrow(),
		GPUs: w.GPUs, Latency: w.Latency, Numerics: true, Longest: longest, Prompt: prompt,
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
		p.err = w.known(c)
	}
	return p
}

// known is a refusal of which the guide knows.
func (w *World) known(c tune.Config) error {
	for _, r := range w.Refusals {
		if r.Known && r.When(c) {
			return &engine.Rejection{Rule: "landscape", Reason: r.Log, Log: r.Log}
		}
	}
	return nil
}

// key names a configuration.
func key(c tune.Config) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if c[name] != "" {
			b.WriteString(name + "=" + c[name] + " ")
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
	return newPupil(w).Predict(c, workload)
}

var _ tune.Predictor = (*World)(nil)

// Size is how many configurations can be started.
func (w *World) Size() int { return len(w.valid) }

// About says of a landscape what a study of it knows.
func (w *World) About() string {
	load := fmt.Sprintf("%d requests at once", w.Load.Requests)
	switch {
	case w.Load.Rate > 0:
		load = fmt.Sprintf("%d requests at %.3g/s", w.Load.Requests, w.Load.Rate)
	case w.Load.Concurrency > 0:
		load = fmt.Sprintf("%d requests, %d at a time", w.Load.Requests, w.Load.Concurrency)
	}
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%s on %d %s, %s; %s of %.0f and %.0f tokens: %s", w.Models[0], w.GPUs, w.GPU, strings.Join(w.Engines, " "),
		load, w.Load.Input.Mean, w.Load.Output.Mean, w.Objective.Metric))
	for _, b := range w.Objective.SLOs {
		text.WriteString(", " + b.String())
	}
	return text.String()
}
