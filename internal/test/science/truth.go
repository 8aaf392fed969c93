package science

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/sim"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// What each constant of the simulator belongs to, where a Wrong moves it: speeds
// are multiplied by its factors, times divided.
var (
	computeSpeeds = []string{"gemm_compute", "moe_compute", "flash_compute"}
	memorySpeeds  = []string{"gemm_bandwidth", "moe_bandwidth", "kv_bandwidth", "kv_mixed"}
	hostTimes     = []string{"t_step", "t_layer", "t_launch", "t_seq", "t_draft", "t_draft_seq", "f_req", "kv_setup", "route"}
)

// mostAccepted keeps a probability one.
const mostAccepted = 0.95

// factor is a factor of a Wrong.
func factor(x float64) float64 { return cmp.Or(x, 1) }

// constants are the true ones: those of the program, moved. What makes all of an engine
// faster is a factor of its times: see slowness.
func (w *World) constants() (*sim.Constants, error) {
	believed := ground()
	var sets []sim.Set
	for _, e := range w.Engines {
		for _, f := range w.formats() {
			values := map[string]float64{}
			move := func(name string, by float64) {
				values[name] = believed.Value(sim.Subject{Engine: e, Accelerator: w.gpu.Name, Format: f}, name) * by
			}
			for _, name := range computeSpeeds {
				move(name, factor(w.Wrong.Compute))
			}
			for _, name := range memorySpeeds {
				move(name, factor(w.Wrong.Memory))
			}
			for _, name := range hostTimes {
				move(name, 1/factor(w.Wrong.Host))
			}
			move("ar_bandwidth", factor(w.Wrong.Network))
			move("kv_link", factor(w.Wrong.Network))
			move("ar_latency", 1/factor(w.Wrong.Network))
			move("element", 1/factor(w.Wrong.Memory))
			for _, name := range []string{"accept", "accept_mtp"} {
				move(name, factor(w.Wrong.Accept))
				values[name] = min(mostAccepted, values[name])
			}
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

// cellKey is a configuration under a share of the load by some constants: the true ones, or
// those of a predictor.
type cellKey struct {
	config string
	share  float64
	by     *sim.Constants
}

// familyKey tells replays apart that cannot be the same.
type familyKey struct {
	what string
	by   *sim.Constants
}

// cell is what is known of one.
type cell struct {
	figures map[string]float64
	refused string // why there are none
	log     string // of an engine that refused at its launch
}

func (w *World) cell(c tune.Config, share float64, by *sim.Constants) *cell {
	if w.Equal && by == w.truth {
		if p := w.plan(c); p.err == nil {
			c = w.Baseline
		}
	}
	k := cellKey{key(c), share, by}
	x, ok := w.cells[k]
	if !ok {
		x = w.fill(c, share, by)
		w.cells[k] = x
	}
	return x
}

// refusedAtLaunch is why there are no figures of what an engine refused.
const refusedAtLaunch = "the engine refused at its launch"

func (w *World) fill(c tune.Config, share float64, by *sim.Constants) *cell {
	p := w.plan(c)
	if p.err != nil {
		return &cell{refused: p.err.Error()}
	}
	cfg, slow := p.cfg, 1.0
	if by == w.truth {
		for _, r := range w.Refusals {
			if r.When(c) {
				return &cell{refused: refusedAtLaunch, log: cmp.Or(r.Log, memoryLogs[cfg.Engine])}
			}
		}
		for _, e := range w.Effects {
			if e.Change != nil && e.When(c) {
				e.Change(&cfg)
			}
		}
		slow = w.slowness(c, &cfg)
	}
	r, err := w.replay(c, cfg, p.replicas, by, share, slow)
	if err != nil {
		return &cell{refused: err.Error()}
	}
	return &cell{figures: w.scaled(r, &cfg, slow)}
}

// slowness is how much longer all takes with a configuration than the replay says.
func (w *World) slowness(c tune.Config, cfg *engine.Config) float64 {
	slow := w.rough(cfg) / factor(w.Wrong.Engine[cfg.Engine])
	for _, e := range w.Effects {
		if e.When(c) {
			slow *= factor(e.Slow)
		}
	}
	return slow
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
	sum := 0.0
	for _, r := range roughness {
		sum += r.spread * stat.Stream(w.Seed, w.Name+" "+cfg.Engine+" "+r.of(cfg)).NormFloat64()
	}
	return math.Exp(sum)
}

// replayed is a replay, with what it takes to know which others would be the same.
type replayed struct {
	figures map[string]float64
	refused error

	seqs, blocks, graphs int  // limits of the configuration
	free                 bool // neither requests nor the cache met their limit, and every decode step had its graph
	graphed              int  // the largest captured batch that would have done
	held                 int  // blocks at most
	running, most        float64
}

// serves reports whether another configuration of the same family has the same replay:
// one whose limits are no lower, where this one met none.
func (r *replayed) serves(seqs, blocks, graphs int) bool {
	if r.seqs == seqs && r.blocks == blocks && r.graphs == graphs {
		return true
	}
	return r.free && seqs >= r.seqs && blocks >= r.blocks && (graphs == r.graphs || min(graphs, r.graphs) >= r.graphed)
}

// replay replays a share of the load, unless one that is known is the same. All times
// are as if slow was 1: where requests come at a rate they come faster by it instead,
// which comes to the same.
func (w *World) replay(c tune.Config, cfg engine.Config, replicas int, k *sim.Constants, share, slow float64) (*replayed, error) {
	blocks, err := cfg.KVBlocks()
	if err != nil {
		return nil, err
	}
	pace := 1.0
	if w.Load.Rate > 0 {
		pace = slow
	}
	like := cfg
	like.Model, like.GPU = arch.Model{}, arch.Accelerator{}
	like.Seqs, like.MemoryShare, like.KVSpace, like.ServedName, like.Aliases, like.Host, like.Port = 0, 0, 0, "", nil, "", 0
	if like.Graphs == nil && like.GraphMax > 0 {
		like.GraphMax = 1
	}
	family := familyKey{fmt.Sprintf("%s %+v %d %v %v", c["model"], like, replicas, share, pace), k}
	for _, r := range w.replays[family] {
		if r.serves(cfg.Seqs, blocks, cfg.GraphMax) {
			return r, r.refused
		}
	}
	r := w.run(cfg, replicas, k, share, pace)
	r.seqs, r.blocks, r.graphs = cfg.Seqs, blocks, cfg.GraphMax
	w.replays[family] = append(w.replays[family], r)
	w.made++
	return r, r.refused
}

// fewest requests of a load that is cut short.
const fewest = 24

// load is the first part of the jobs, coming so many times as fast.
func (w *World) load(share, pace float64) []sim.Job {
	n := int(math.Round(share * float64(len(w.jobs))))
	jobs := w.jobs[:min(len(w.jobs), max(fewest, n))]
	if pace != 1 {
		jobs = slices.Clone(jobs)
		for i := range jobs {
			jobs[i].Arrive = time.Duration(float64(jobs[i].Arrive) / pace)
		}
	}
	return jobs
}

// run makes a replay.
func (w *World) run(cfg engine.Config, replicas int, k *sim.Constants, share, pace float64) *replayed {
	r := &replayed{}
	var stats []sim.Stats
	jobs := w.load(share, pace)
	seq, err := sim.Replay(cfg, replicas, slices.Values(jobs), sim.ReplayOptions{
		MaxConcurrency: w.Load.Concurrency, Seed: w.Seed, Constants: k,
		Stats: func(_ int, s sim.Stats) { stats = append(stats, s) },
	})
	if err != nil {
		r.refused = err
		return r
	}
	outcomes := slices.Collect(seq)
	if slices.ContainsFunc(outcomes, func(o sim.Outcome) bool { return o.Err != "" }) {
		r.refused = errors.New("requests of the load are longer than the configuration takes")
		return r
	}
	r.figures = figures(outcomes)
	r.telemetry(outcomes, stats)
	r.free = free(cfg, stats, jobs)
	return r
}

// graphStep is by how much the sizes of captured batches grow at most.
const graphStep = 16

// free reports whether no limit of requests or of the cache held anything up. SGLang
// also keeps room for what running requests will write, which no counter shows.
func free(cfg engine.Config, stats []sim.Stats, jobs []sim.Job) bool {
	longest := 0
	for _, j := range jobs {
		longest = max(longest, j.Output)
	}
	for _, s := range stats {
		if s.Waits.Seqs > 0 || s.Waits.KV > 0 || s.Preemptions > 0 {
			return false
		}
		spoken := int(s.PeakKV*float64(s.KVBlocks))*cfg.Block + s.PeakRunning*longest
		if cfg.PrefillOnly && spoken > s.KVBlocks*cfg.Block {
			return false
		}
	}
	return true
}

// telemetry adds what the engines' own metrics would say, as far as a replay
// tells: as many run as ever did together while more are there.
func (r *replayed) telemetry(outcomes []sim.Outcome, stats []sim.Stats) {
	most, preemptions, queued := 0, 0, false
	for _, s := range stats {
		most += s.PeakRunning
		r.held = max(r.held, int(math.Round(s.PeakKV*float64(s.KVBlocks))))
		preemptions += s.Preemptions
		queued = queued || s.Waits.Seqs+s.Waits.KV+s.Waits.Tokens > 0
		drafts := 1
		if s.Drafts > 0 {
			drafts += int(math.Ceil(float64(s.Drafted) / float64(s.Drafts)))
		}
		r.graphed = max(r.graphed, s.PeakRunning*drafts+graphStep)
	}
	inside, peak, above := inFlight(outcomes, most)
	if !queued {
		above = 0
	}
	r.running, r.most = inside-above, float64(most)
	r.figures["mean_running_requests"], r.figures["mean_waiting_requests"] = r.running, above
	r.figures["max_running_requests"], r.figures["preemptions"] = r.most, float64(preemptions)
	r.figures["max_waiting_requests"] = 0
	if queued {
		r.figures["max_waiting_requests"] = float64(max(0, peak-most))
	}
}

// scaled are the figures of a configuration whose times are so many times as long as
// those of its replay. The cache is as full as it was at most, in proportion.
func (w *World) scaled(r *replayed, cfg *engine.Config, slow float64) map[string]float64 {
	f := maps.Clone(r.figures)
	for name, v := range f {
		switch {
		case timed(name):
			f[name] = v * slow
		case strings.HasSuffix(name, "_throughput"):
			f[name] = v / slow
		}
	}
	blocks, _ := cfg.KVBlocks()
	kv := min(1, float64(r.held)/float64(max(1, blocks*max(1, cfg.DP))))
	f["max_kv_usage"] = kv
	f["mean_kv_usage"] = kv * min(1, r.running/max(1, r.most))
	return f
}

// timed reports whether a figure is a length of time.
func timed(name string) bool { return strings.HasSuffix(name, "_ms") || name == "duration" }

// Truth are the figures of a configuration without noise, or why it has none.
func (w *World) Truth(c tune.Config) (figures map[string]float64, refused string) {
	x := w.cell(c, 1, w.truth)
	return x.figures, x.refused
}

// Valid are the configurations of a landscape that break no rule; some are refused all the same.
func Valid(w *World) []tune.Config { return slices.Clone(w.valid) }

// explore evaluates every configuration and finds the best. Those with the lowest
// limits come first, since their replays may serve others.
func (w *World) explore() {
	for _, c := range w.product() {
		if w.plan(c).err == nil {
			w.valid = append(w.valid, c)
		}
	}
	order := slices.Clone(w.valid)
	blocks := map[string]int{}
	for _, c := range order {
		blocks[key(c)], _ = w.plan(c).cfg.KVBlocks()
	}
	slices.SortStableFunc(order, func(a, b tune.Config) int {
		return cmp.Or(cmp.Compare(w.plan(a).cfg.Seqs, w.plan(b).cfg.Seqs), cmp.Compare(blocks[key(a)], blocks[key(b)]))
	})
	for _, c := range order {
		if _, refused := w.Truth(c); refused == "" {
			w.runs++
		}
	}
	w.lift()
	w.findBest()
	w.bound()
}

// By how much what the class is about may be faster or slower than else, and how near its
// lead must come.
const (
	mostLift = 1.8
	nearLead = 1.08
)

// lift makes the best of what the class is about lead the best of the rest as it should,
// as far as that is plausible.
func (w *World) lift() {
	if w.Lead == 0 {
		return
	}
	subject := func(c tune.Config) bool {
		return !slices.ContainsFunc(w.Subject, func(s tune.Config) bool { return !has(s)(c) })
	}
	slow := 1.0
	for range 20 {
		without := w.bestOf(func(c tune.Config) bool { return !subject(c) })
		gain := w.Objective.Gain(without, w.bestOf(subject))
		if gain == nil || 1+*gain >= w.Lead && 1+*gain <= nearLead*w.Lead {
			return
		}
		by := (1 + *gain) / (w.Lead * math.Sqrt(nearLead))
		if w.Load.Rate > 0 { // where queues make much of little
			by = math.Sqrt(by)
		}
		if slow *= by; max(slow, 1/slow) > mostLift {
			return
		}
		w.Effects = append(w.Effects, Effect{When: subject, Slow: by})
		for _, c := range w.valid {
			if subject(c) {
				delete(w.cells, cellKey{key(c), 1, w.truth})
			}
		}
	}
}

// bestOf are the figures of the best of some configurations by the objective alone.
func (w *World) bestOf(some func(tune.Config) bool) map[string]float64 {
	var best map[string]float64
	for _, c := range w.valid {
		if !some(c) {
			continue
		}
		f, refused := w.Truth(c)
		if refused == "" && (best == nil || w.Objective.Better(f[w.Objective.Metric], best[w.Objective.Metric])) {
			best = f
		}
	}
	return best
}

// bound makes bounds of the thresholds, by what the best has without them.
func (w *World) bound() {
	if w.best == nil || len(w.Thresholds) == 0 {
		return
	}
	f, _ := w.Truth(w.best)
	w.Objective.SLOs = slices.Clone(w.Objective.SLOs)
	for _, t := range w.Thresholds {
		var all []float64
		for _, c := range w.valid {
			if f, refused := w.Truth(c); refused == "" {
				all = append(all, f[t.Metric])
			}
		}
		slices.Sort(all)
		limit := max(t.Factor*f[t.Metric], stat.Quantile(all, t.Meet))
		w.Objective.SLOs = append(w.Objective.SLOs, tune.Bound{Metric: t.Metric, Op: "<=", Limit: rounded(limit)})
	}
	w.best = nil
	w.findBest()
}

// rounded is a number of three digits, no less.
func rounded(v float64) float64 {
	if !(v > 0) {
		return v
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-2)
	return math.Ceil(v/unit) * unit
}

func (w *World) findBest() {
	var most float64
	for _, c := range w.valid {
		f, _ := w.Truth(c)
		v, ok := f[w.Objective.Metric]
		if !ok || len(w.Objective.Misses(f)) > 0 {
			continue
		}
		if w.best == nil || w.Objective.Better(v, most) {
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
	for _, b := range w.Objective.SLOs {
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
