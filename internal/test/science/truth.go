package science

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/sim"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// What each constant of the simulator belongs to, where a Wrong moves it: speeds
// are multiplied by its factors, times divided.
var (
	computeSpeeds = []string{"gemm_compute", "moe_compute", "flash_compute"}
	memorySpeeds  = []string{"gemm_bandwidth", "moe_bandwidth", "kv_bandwidth", "kv_mixed"}
	hostTimes     = []string{"t_step", "t_layer", "t_eager", "t_seq", "t_draft", "t_draft_seq", "f_req", "kv_setup", "route"}
)

// mostAccepted keeps a probability one.
const mostAccepted = 0.95

// factor is a factor of a Wrong.
func factor(x float64) float64 {
	if x == 0 {
		return 1
	}
	return x
}

// constants are the true ones: those of the program, moved.
func (w *World) constants() (*sim.Constants, error) {
	believed := sim.Default()
	var sets []sim.Set
	for _, e := range w.Engines {
		for _, f := range w.formats() {
			old := func(name string) float64 { return believed.Value(e, w.gpu.Name, f, name) }
			all, values := factor(w.Wrong.Engine[e]), map[string]float64{}
			for _, name := range computeSpeeds {
				values[name] = old(name) * all * factor(w.Wrong.Compute)
			}
			for _, name := range memorySpeeds {
				values[name] = old(name) * all * factor(w.Wrong.Memory)
			}
			for _, name := range hostTimes {
				values[name] = old(name) / all / factor(w.Wrong.Host)
			}
			values["ar_bandwidth"] = old("ar_bandwidth") * all * factor(w.Wrong.Network)
			values["kv_link"] = old("kv_link") * all * factor(w.Wrong.Network)
			values["ar_latency"] = old("ar_latency") / all / factor(w.Wrong.Network)
			values["element"] = old("element") / all / factor(w.Wrong.Memory)
			values["accept"] = min(mostAccepted, old("accept")*factor(w.Wrong.Accept))
			sets = append(sets, sim.Set{Accelerator: w.gpu.Name, Engine: e, Format: f, Values: values})
		}
	}
	return believed.With(sets...)
}

// formats of the checkpoints, and 16 bit, in which every checkpoint has parts; the
// plain FP8 before that of blocks, of which a set of it speaks too.
func (w *World) formats() []arch.Format {
	all := []arch.Format{arch.BF16}
	for _, m := range w.models {
		all = append(all, m.Kernels())
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// slowed is a configuration whose device and host take s times as long.
func slowed(cfg engine.Config, k *sim.Constants, s float64) (engine.Config, *sim.Constants, error) {
	g := &cfg.GPU
	for _, speed := range []*float64{&g.BandwidthGBs, &g.BF16TFLOPS, &g.FP8TFLOPS, &g.FP4TFLOPS} {
		*speed /= s
	}
	if cfg.Prefill != nil {
		prefill := *cfg.Prefill
		prefill.GPU, cfg.Prefill = *g, &prefill
	}
	values := map[string]float64{}
	for _, name := range hostTimes {
		values[name] = s * k.Value(cfg.Engine, g.Name, cfg.Model.Kernels(), name)
	}
	k, err := k.With(sim.Set{Accelerator: g.Name, Engine: cfg.Engine, Format: cfg.Model.Kernels(), Values: values})
	return cfg, k, err
}

// cellKey is a configuration under a share of the load, in truth or as predicted.
type cellKey struct {
	config string
	share  float64
	truth  bool
}

// cell is what is known of one.
type cell struct {
	once    sync.Once
	figures map[string]float64
	refused string // why there are none
	log     string // of an engine that refused at its launch
}

func (w *World) cell(c tune.Config, share float64, truth bool) *cell {
	if w.Equal && truth {
		if p := w.plan(c); p.err == nil {
			c = w.Baseline
		}
	}
	k := cellKey{key(c), share, truth}
	w.mu.Lock()
	x, ok := w.cells[k]
	if !ok {
		x = &cell{}
		w.cells[k] = x
	}
	w.mu.Unlock()
	x.once.Do(func() { w.fill(x, c, share, truth) })
	return x
}

func (w *World) fill(x *cell, c tune.Config, share float64, truth bool) {
	p := w.plan(c)
	if p.err != nil {
		x.refused = p.err.Error()
		return
	}
	cfg, k := p.cfg, sim.Default()
	if truth {
		for _, r := range w.Refusals {
			if r.When(c, cfg) {
				x.refused, x.log = "the engine refused at its launch", r.Log
				return
			}
		}
		var err error
		if cfg, k, err = w.hidden(c, cfg); err != nil {
			x.refused = err.Error()
			return
		}
	}
	f, err := w.replay(cfg, p.replicas, k, share)
	if err != nil {
		x.refused = err.Error()
		return
	}
	x.figures = f
}

// hidden is what a configuration is in truth.
func (w *World) hidden(c tune.Config, cfg engine.Config) (engine.Config, *sim.Constants, error) {
	slow := w.rough(&cfg)
	for _, e := range w.Effects {
		if !e.When(c, cfg) {
			continue
		}
		slow *= factor(e.Slow)
		if e.Change != nil {
			e.Change(&cfg)
		}
	}
	return slowed(cfg, w.truth, slow)
}

// roughness is what kernels, schedulers and versions make of single choices, which
// no simulator knows: for each engine, standard deviations of the logarithm of how
// long all takes, by what is chosen. Together a structure is off by some 10 %,
// beside what a Wrong says: predictions of runs that took no part in a calibration
// are no better (docs/accuracy.md).
var roughness = []struct {
	spread float64
	of     func(c *engine.Config) string
}{
	{0.05, func(c *engine.Config) string { return "checkpoint " + c.Model.Name }},
	{0.06, func(c *engine.Config) string {
		return fmt.Sprint("layout ", c.Model.Format, c.TP, c.PP, c.DP, c.EP)
	}},
	{0.06, func(c *engine.Config) string { return fmt.Sprint("cache ", c.KVBytes) }},
	{0.06, func(c *engine.Config) string { return fmt.Sprint("guesses ", c.Spec, c.SpecTokens) }},
	{0.03, func(c *engine.Config) string { return fmt.Sprint("tokens ", c.Batched) }},
	{0.02, func(c *engine.Config) string { return fmt.Sprint("requests ", c.Seqs) }},
}

// rough is how much longer than it should all takes with a configuration.
func (w *World) rough(cfg *engine.Config) float64 {
	if w.Smooth {
		return 1
	}
	sum, name := 0.0, w.Name
	if w.Draw != 0 {
		name += fmt.Sprint(" draw ", w.Draw)
	}
	for _, r := range roughness {
		sum += r.spread * stat.Stream(loadSeed, name+" "+cfg.Engine+" "+r.of(cfg)).NormFloat64()
	}
	return math.Exp(sum)
}

// fewest requests of a load that is cut short.
const fewest = 24

// load is the first part of the jobs.
func (w *World) load(share float64) []sim.Job {
	n := int(math.Round(share * float64(len(w.jobs))))
	return w.jobs[:min(len(w.jobs), max(fewest, n))]
}

// replay gives the figures of a run, and what telemetry would add to them.
func (w *World) replay(cfg engine.Config, replicas int, k *sim.Constants, share float64) (map[string]float64, error) {
	var stats []sim.Stats
	jobs := w.load(share)
	seq, err := calib.Calls(cfg, replicas, slices.Values(jobs), sim.ReplayOptions{
		MaxConcurrency: w.Load.Concurrency, Seed: loadSeed, Constants: k,
		Stats: func(_ int, s sim.Stats) { stats = append(stats, s) },
	})
	if err != nil {
		return nil, err
	}
	calls := slices.Collect(seq)
	h := result.Header{Simulated: true, Predicted: true, Requests: len(jobs), Rate: w.Load.Rate, Limit: w.Load.Concurrency}
	s, err := result.Summarize(h, nil, result.Options{Goodput: w.bounds}, slices.Values(calls))
	if err != nil {
		return nil, err
	}
	if len(s.Failures) > 0 {
		return nil, errors.New("requests of the load are longer than the configuration takes")
	}
	w.telemetry(s.Figures, calls, stats)
	return s.Figures, nil
}

// telemetry adds what the engines' own metrics would say, as far as a replay
// tells: as many run as ever did together while more are there, and the cache is
// as full as it was at most in proportion.
func (w *World) telemetry(f map[string]float64, calls []result.Call, stats []sim.Stats) {
	most, kv, preemptions, queued := 0, 0.0, 0, false
	for _, s := range stats {
		most += s.PeakRunning
		kv = max(kv, s.PeakKV)
		preemptions += s.Preemptions
		queued = queued || s.Waits.Seqs+s.Waits.KV+s.Waits.Tokens > 0
	}
	inside, peak, above := inFlight(calls, most)
	if !queued {
		above = 0
	}
	running := inside - above
	f["mean_running_requests"], f["mean_waiting_requests"] = running, above
	f["max_running_requests"], f["max_kv_usage"], f["preemptions"] = float64(most), kv, float64(preemptions)
	if queued {
		f["max_waiting_requests"] = float64(max(0, peak-most))
	} else {
		f["max_waiting_requests"] = 0
	}
	f["mean_kv_usage"] = kv * min(1, running/float64(max(1, most)))
}

// inFlight is the mean and greatest number of calls in flight, and by how many
// they exceeded a limit on average.
func inFlight(calls []result.Call, limit int) (mean float64, peak int, above float64) {
	type edge struct {
		at float64
		by int
	}
	var edges []edge
	for _, c := range calls {
		edges = append(edges, edge{c.Sent.Seconds(), 1}, edge{c.End.Seconds(), -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		switch {
		case a.at < b.at:
			return -1
		case a.at > b.at:
			return 1
		}
		return a.by - b.by
	})
	n, span := 0, edges[len(edges)-1].at-edges[0].at
	for i, e := range edges[:len(edges)-1] {
		n += e.by
		peak = max(peak, n)
		d := edges[i+1].at - e.at
		mean += d * float64(n)
		above += d * float64(max(0, n-limit))
	}
	if span <= 0 {
		return 0, peak, 0
	}
	return mean / span, peak, above / span
}

// Truth are the figures of a configuration without noise, or why it has none.
func (w *World) Truth(c tune.Config) (figures map[string]float64, refused string) {
	x := w.cell(c, 1, true)
	return x.figures, x.refused
}

// workers is how many replays are made at a time.
const workers = 2

// explore evaluates every configuration and finds the best.
func (w *World) explore() error {
	all := w.product()
	ask := make(chan tune.Config)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for c := range ask {
				w.Truth(c)
			}
		})
	}
	for _, c := range all {
		if w.plan(c).err == nil {
			ask <- c
			w.valid = append(w.valid, c)
		}
	}
	close(ask)
	wg.Wait()
	base, refused := w.Truth(w.Baseline)
	if refused != "" {
		return fmt.Errorf("the baseline cannot run: %s", refused)
	}
	w.objective = w.Objective
	w.objective.SLOs = slices.Clone(w.Objective.SLOs)
	for i, b := range w.objective.SLOs {
		switch b.Of {
		case tune.Plus:
			b.Limit += base[b.Metric]
		case tune.Times:
			b.Limit *= base[b.Metric]
		}
		b.Of = ""
		w.objective.SLOs[i] = b
	}
	w.findBest()
	if w.best == nil {
		return errors.New("no configuration meets every constraint in truth")
	}
	return nil
}

func (w *World) findBest() {
	var most float64
	for _, c := range w.valid {
		f, _ := w.Truth(c)
		v, ok := f[w.Objective.Metric]
		if !ok || len(w.objective.Misses(f)) > 0 {
			continue
		}
		if w.best == nil || w.objective.Better(v, most) {
			w.best, most = c, v
		}
	}
}

// Best is the configuration that is best in truth, with its figures.
func (w *World) Best() (tune.Config, map[string]float64) {
	f, _ := w.Truth(w.best)
	return w.best, f
}

// tolerance is how far, as a share of its limit, a constraint may be missed in
// truth by what is recommended: closer than that no study of so few launches can
// tell.
const tolerance = 0.05

// Regret is the share of the best objective that is lost with a configuration: 0
// for the best, 0.2 where a throughput is a fifth below it or a latency such that
// the best is a fifth below that. It is 1, all of it, where the configuration
// cannot run or misses a constraint by more than a twentieth of its limit.
// Something better than the best of the landscape, which a repair may find
// outside, has none.
func (w *World) Regret(c tune.Config) float64 {
	f, refused := w.Truth(c)
	if refused != "" || w.misses(f) {
		return 1
	}
	_, best := w.Best()
	have, want := f[w.Objective.Metric], best[w.Objective.Metric]
	if !w.Objective.Higher {
		have, want = want, have
	}
	if !(have > 0 && want > 0) {
		return 1
	}
	return max(0, 1-have/want)
}

func (w *World) misses(f map[string]float64) bool {
	for _, b := range w.objective.SLOs {
		slack := tolerance * math.Abs(b.Limit)
		if b.Op == ">=" {
			slack = -slack
		}
		b.Limit += slack
		if !b.Holds(f) {
			return true
		}
	}
	return false
}

// timed reports whether a figure is a length of time, and rated whether it is a
// rate of what the engine does as fast as it can.
func (w *World) timed(name string) bool { return strings.HasSuffix(name, "_ms") || name == "duration" }

func (w *World) rated(name string) bool {
	return w.Load.Rate == 0 && strings.Contains(name, "throughput") || strings.Contains(name, "goodput")
}
