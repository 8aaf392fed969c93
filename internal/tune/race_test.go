package tune

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
	"perflab/internal/tune/answers"
)

// testSpace is a small world of engines, checkpoints, layouts and two ladders, whose
// truth is a formula.
type testSpace struct {
	truth  func(Config) float64 // of the figure m; not a number: refused
	wrong  func(Config) float64 // factor of the predictions
	sd     float64              // between launches
	equal  bool                 // every configuration is the same in truth
	moves  func(Config) []Change
	broken map[int]string // trial -> status
}

// up is the objective of most tests.
var up = Objective{Metric: "m", Higher: true}

var (
	fieldEngines = []string{"v", "s", "t"}
	fieldTP      = []string{"1", "2", "4"}
	fieldSeqs    = []string{"", "64", "128", "256", "512", "1024"}
	fieldBatched = []string{"", "2048", "4096", "8192", "16384"}
)

func (f *testSpace) Candidates() []Candidate {
	var out []Candidate
	for _, e := range fieldEngines {
		for _, m := range []string{"bf16", "fp8"} {
			for _, tp := range fieldTP {
				a := Candidate{Label: e + " " + m + " tp " + tp, Config: Config{"engine": e, "model": m, "tp": tp}}
				a.Refused = f.Refuse(a.Config)
				out = append(out, a)
			}
		}
	}
	return out
}

func (f *testSpace) space() SearchSpace {
	return SearchSpace{Candidates: f.Candidates(), Domain: f.Domain(), Rules: f, Neighbourhood: f}
}

func (f *testSpace) ladder(c Config, name string, values []string) []Change {
	i := slices.Index(values, c[name])
	var out []Change
	for _, j := range []int{i + 1, i - 1, i + 2} {
		if j >= 0 && j < len(values) {
			out = append(out, Change{Label: strings.TrimSpace(name + " " + values[j]), Set: Config{name: values[j]}})
		}
	}
	return out
}

func (f *testSpace) Steps(c Config) []Change {
	return append(f.ladder(c, "seqs", fieldSeqs), f.ladder(c, "batched", fieldBatched)...)
}

func (f *testSpace) Removals(c Config) []Change {
	var out []Change
	for _, name := range []string{"batched", "seqs"} {
		if c[name] != "" {
			out = append(out, Change{Label: "--" + name + " " + c[name], Set: Config{name: ""}})
		}
	}
	return out
}

func (f *testSpace) Refuse(c Config) string {
	if c["model"] == "bf16" && c["tp"] == "1" {
		return "the weights do not fit"
	}
	return ""
}
func (f *testSpace) Numerics(c Config) string { return c["model"] }
func (f *testSpace) Settings(c Config) int    { return len(c) - 2 }
func (f *testSpace) Domain() []Dimension {
	return []Dimension{
		{"engine", fieldEngines, false}, {"model", []string{"bf16", "fp8"}, false}, {"tp", fieldTP, true},
		{"seqs", fieldSeqs, true}, {"batched", fieldBatched, true},
	}
}

// Predict knows the truth but for its errors.
func (f *testSpace) Predict(c Config, _ string) (map[string]float64, bool) {
	if f.wrong == nil {
		return nil, false
	}
	v := f.value(c) * f.wrong(c)
	return map[string]float64{"m": v}, !math.IsNaN(v)
}

func (f *testSpace) value(c Config) float64 {
	if f.equal {
		return 100
	}
	return f.truth(c)
}

// evaluator measures a proposal.
type evaluator func(context.Context, Proposal) (Observation, error)

// evaluate is a launch: its noise depends on seed and trial.
func (f *testSpace) evaluate(seed uint64) evaluator {
	return func(_ context.Context, p Proposal) (Observation, error) {
		v := f.value(p.Config)
		if status := f.broken[p.Trial]; status != "" {
			return Observation{Status: status, Reason: "as the test wants it", Seconds: 60}, nil
		}
		if math.IsNaN(v) {
			return Observation{Status: Refused, Reason: "out of memory", Seconds: 20, Moves: []Change{{Label: "less", Set: Config{"seqs": "64"}}}}, nil
		}
		r := stat.Stream(seed, fmt.Sprint("launch ", p.Trial))
		if p.Share > 0 {
			v *= 0.9
		}
		o := Observation{Status: Measured, Seconds: 100, Figures: map[string]map[string]float64{}}
		for i, w := range p.Workloads {
			x := v
			if w == "held" && p.Config["batched"] != "" {
				x *= 0.8 // a hold-out that the setting costs
			}
			o.Figures[w] = map[string]float64{"m": x * math.Exp(f.sd*r.NormFloat64()), "ttft": 100 + float64(i)}
		}
		if f.moves != nil {
			o.Moves = f.moves(p.Config)
		}
		return o, nil
	}
}

// world is a landscape drawn by chance.
func world(seed uint64) *testSpace {
	r := stat.Stream(seed, "world")
	engine := map[string]float64{}
	bias := map[string]float64{}
	for _, e := range fieldEngines {
		engine[e], bias[e] = math.Exp(0.2*r.NormFloat64()), math.Exp(0.15*r.NormFloat64())
	}
	fp8, tp, seqs, batched := 1+0.6*r.Float64(), 0.2*r.NormFloat64(), r.IntN(6), r.IntN(5)
	steep, shallow := 0.15*r.Float64(), 0.05*r.Float64()
	own := map[string]float64{}
	at := func(values []string, v string) float64 { return float64(max(0, slices.Index(values, v))) }
	return &testSpace{
		sd: 0.01,
		truth: func(c Config) float64 {
			n, _ := strconv.ParseFloat(c["tp"], 64)
			if c["tp"] == "1" && c["seqs"] == "1024" {
				return math.NaN()
			}
			v := 100 * engine[c["engine"]] * math.Pow(n, tp)
			if c["model"] == "fp8" {
				v *= fp8
			}
			d := at(fieldSeqs, c["seqs"]) - float64(seqs)
			e := at(fieldBatched, c["batched"]) - float64(batched)
			return v * math.Exp(-steep*math.Abs(d)-shallow*math.Abs(e))
		},
		wrong: func(c Config) float64 {
			k := c["engine"] + c["model"] + c["tp"]
			if _, ok := own[k]; !ok {
				own[k] = math.Exp(0.05 * stat.Stream(seed, k).NormFloat64())
			}
			return bias[c["engine"]] * own[k]
		},
	}
}

// best is the true optimum.
func (f *testSpace) best() float64 {
	best := 0.0
	for _, a := range f.Candidates() {
		for _, s := range fieldSeqs {
			for _, b := range fieldBatched {
				c := Change{Set: Config{"seqs": s, "batched": b}}.Apply(a.Config)
				if v := f.value(c); a.Refused == "" && v > best {
					best = v
				}
			}
		}
	}
	return best
}

func raceSpace() Space {
	return Space{Baseline: Config{"engine": "v", "model": "bf16", "tp": "4"}, Primary: "w", Others: []string{"held"}}
}

func race(t testing.TB, f *testSpace, o Objective, b Budget) *Race {
	t.Helper()
	var p Predictor
	if f.wrong != nil {
		p = f
	}
	r, err := NewRace(f.space(), p, raceSpace(), o, b, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// playRace runs a race to its end and returns its trials.
func playRace(t testing.TB, r *Race, evaluate evaluator) ([]Proposal, Result) {
	t.Helper()
	return playUntil(t, r, evaluate, func(Proposal) bool { return false }), r.Result()
}

// playUntil plays a race to its end, or to a proposal that ends it.
func playUntil(t testing.TB, r *Race, evaluate evaluator, ends func(Proposal) bool) (asked []Proposal) {
	t.Helper()
	for p, ok := r.Ask(); ok; p, ok = r.Ask() {
		asked = append(asked, p)
		if ends(p) {
			break
		}
		o, err := evaluate(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		o.Trial = p.Trial
		r.Tell(o)
	}
	return asked
}

// TestRaceFindsTheBest holds the race's regret in worlds drawn by chance.
func TestRaceFindsTheBest(t *testing.T) {
	t.Parallel()
	var regret []float64
	for seed := range uint64(40) {
		f := world(seed)
		asked, r := playRace(t, race(t, f, up, Budget{Trials: 25}), f.evaluate(seed))
		if len(asked) > 25 {
			t.Fatalf("world %d: %d launches", seed, len(asked))
		}
		regret = append(regret, 1-f.value(asked[r.Winner-1].Config)/f.best())
	}
	stat.Sort(regret)
	t.Logf("regret: median %.3f, P90 %.3f, most %.3f", regret[20], regret[36], regret[39])
	if regret[20] > 0.02 || regret[36] > 0.05 {
		t.Errorf("regret: median %.3f, P90 %.3f", regret[20], regret[36])
	}
}

// TestRaceOfEquals holds how often a race calls one of equals better.
func TestRaceOfEquals(t *testing.T) {
	t.Parallel()
	false1, n := 0, 200
	for seed := range uint64(n) {
		f := world(seed)
		f.equal, f.sd = true, 0.02
		if _, r := playRace(t, race(t, f, up, Budget{Trials: 25}), f.evaluate(seed)); *r.Gain != 0 {
			false1++
		}
	}
	t.Logf("%d of %d races of equals have a winner", false1, n)
	if share := float64(false1) / float64(n); share > 0.05 {
		t.Errorf("%.3f of races of equals have a winner", share)
	}
}

// TestRaceResumes: what is decided after a resume is what was decided without.
func TestRaceResumes(t *testing.T) {
	t.Parallel()
	f := world(3)
	f.broken = map[int]string{4: Failed, 6: Void}
	objective := up
	objective.Guard = &answers.Guard{Margin: 0.02}
	end := func(p Proposal) Observation {
		o, err := f.evaluate(3)(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if p.Questions && o.Status == Measured {
			o.Answers = strings.Repeat("1", 300)
		}
		return o
	}
	asked, _ := resumes(t, 3, func() Strategy { return race(t, f, objective, Budget{Trials: 20}) }, end)
	if len(asked) < 15 {
		t.Errorf("%d places to resume from", len(asked))
	}
}

// TestRaceProperties plays random studies, with ends of every kind, and checks what
// holds for all.
func TestRaceProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := stat.Stream(seed, "race")
		f := world(seed)
		o := Objective{Metric: "m", Higher: true}
		if r.IntN(2) == 0 {
			o.SLOs = []Bound{{Metric: "ttft", Op: "<=", Limit: 2}}
		}
		if r.IntN(3) == 0 {
			o.Guard = &answers.Guard{Margin: 0.05, Agreement: 0.1}
		}
		if r.IntN(3) == 0 {
			f.wrong = nil
		}
		b := Budget{Trials: []int{0, 8, 11, 25, 45}[r.IntN(5)]}
		if r.IntN(4) == 0 {
			b.Time = 40 * time.Minute
		}
		a, again := race(t, f, o, b), race(t, f, o, b)
		var n int
		var told []Observation
		for p, ok := a.Ask(); ok; p, ok = a.Ask() {
			if q, _ := again.Ask(); !p.Equal(q) {
				t.Fatalf("seed %d: %+v and %+v", seed, p, q)
			}
			end := randomEnd(r, p)
			for w := range end.Figures {
				end.Figures[w]["m"] *= f.truth(f.Candidates()[3].Config)
			}
			if r.IntN(4) == 0 {
				end.Moves = []Change{{Label: "seqs 512", Set: Config{"seqs": "512"}, Why: "it waits"}}
			}
			if p.Questions && r.IntN(5) > 0 {
				end.Answers = strings.Repeat("1101", 60)
			}
			told = append(told, end)
			a.Tell(end)
			again.Tell(end)
			if n++; n > 100 {
				t.Fatalf("seed %d: %d trials", seed, n)
			}
		}
		if b.Trials > 0 && n > b.Trials {
			t.Fatalf("seed %d: %d trials, budget %d", seed, n, b.Trials)
		}
		checkRace(t, seed, a, told)
		if diff := cmp.Diff(a.Result(), again.Result()); diff != "" {
			t.Fatalf("seed %d: two results:\n%s", seed, diff)
		}
	}
}

func checkRace(t *testing.T, seed uint64, a *Race, told []Observation) {
	t.Helper()
	res := a.Result()
	fail := func(what string) { t.Fatalf("seed %d: %s: %+v\n%+v", seed, what, res, res.Evidence) }
	searched := map[string]int{}
	launches := 0
	for _, tr := range a.state.trials {
		if tr.Pass == 0 && tr.Stage != BaselineStage && !tr.spoiled() {
			searched[fmt.Sprint(tr.Config.key(), tr.Share)]++
		}
		if a.state.search.Refuse(tr.Config) != "" {
			fail("a configuration that a rule refuses was launched")
		}
	}
	for k, n := range searched {
		if n > 1 {
			fail(k + " was launched twice in the search, though nothing spoiled it")
		}
	}
	for _, p := range res.Evidence.Phases {
		launches += p.Launches
	}
	if launches != len(told) {
		fail(fmt.Sprintf("the ledger has %d launches of %d", launches, len(told)))
	}
	if res.Verdict.Kind == "" || res.Verdict.After != nil {
		fail("verdict")
	}
	if res.Winner != res.Baseline {
		if !res.Confirmed || res.WinnerConfirm == 0 || res.Interval == nil && res.Baseline > 0 && res.Verdict.Kind != BetterByBound {
			fail("recommended without launches of its own")
		}
		if a.state.failedGuard(a.state.trials[res.Winner-1].Config) {
			fail("recommended against the guard")
		}
	}
	checkContest(t, a, res)
	for _, arm := range res.Evidence.Candidates {
		if arm.State == "" || arm.State == StateEliminated && arm.Reason == nil {
			fail("an arm without its end")
		}
	}
}

// TestRaceUnderBounds checks that the fastest does not win where it misses a bound,
// and that a bound of the baseline's figure is one.
func TestRaceUnderBounds(t *testing.T) {
	for name, slos := range map[string][]Bound{
		"absolute": {{Metric: "ttft", Op: "<=", Limit: 200}},
		"relative": {{Metric: "ttft", Op: "<=", Limit: 2, Of: Times}},
	} {
		f := world(5)
		o := up
		o.SLOs = slos
		slow := func(c Config) bool { return c["engine"] == "v" && c["model"] == "fp8" }
		asked, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
			end, err := f.evaluate(5)(ctx, p)
			for _, figures := range end.Figures {
				if slow(p.Config) {
					figures["ttft"] = 400
				}
			}
			return end, err
		})
		if r.Winner == r.Baseline || slow(asked[r.Winner-1].Config) || len(r.Misses) > 0 {
			t.Errorf("%s: %+v: %v", name, r.Verdict, asked[r.Winner-1].Config)
		}
	}
}

// TestRaceGuards checks that a configuration whose answers are worse is not
// recommended, and its numerics are not launched again once that is known.
func TestRaceGuards(t *testing.T) {
	f := world(5)
	o := up
	o.Guard = &answers.Guard{Margin: 0.02}
	asked, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
		end, err := f.evaluate(5)(ctx, p)
		if p.Questions {
			end.Answers = strings.Repeat("1", 200)
			if p.Config["model"] == "fp8" {
				end.Answers = strings.Repeat("1", 180) + strings.Repeat("0", 20)
			}
		}
		return end, err
	})
	fp8 := 0
	for _, p := range asked {
		if p.Config["model"] == "fp8" {
			fp8++
		}
	}
	if fp8 != 1 || asked[r.Winner-1].Config["model"] == "fp8" {
		t.Errorf("%d launches of what was rejected: %+v", fp8, r.Verdict)
	}
	if len(r.Evidence.Accuracy) != 1 || r.Evidence.Accuracy[0].Accepted {
		t.Errorf("verdicts of the guard: %+v", r.Evidence.Accuracy)
	}
}

// TestRaceRungs checks that a race against time begins with a part of the load, and
// decides under all of it.
func TestRaceRungs(t *testing.T) {
	f := world(7)
	asked, r := playRace(t, race(t, f, up, Budget{Time: 45 * time.Minute}), f.evaluate(7))
	shares := map[string]map[float64]int{}
	spent := 0.0
	for _, p := range asked {
		if shares[p.Stage] == nil {
			shares[p.Stage] = map[float64]int{}
		}
		shares[p.Stage][p.Share]++
		spent += 100
	}
	if shares[RaceStage][0] > 0 || shares[RaceStage][1.0/3] == 0 || shares[FinalStage][0] == 0 || shares[ConfirmStage][0] < 2*fewest {
		t.Errorf("launches by stage and share: %v", shares)
	}
	if spent > 45*60 {
		t.Errorf("%v s of 45 min", spent)
	}
	if r.Winner == r.Baseline {
		t.Errorf("%+v", r.Verdict)
	}
}

// TestRaceMends checks that a refusal and a bottleneck are answered before an
// engine is given up: one is bad by default and best when repaired.
func TestRaceMends(t *testing.T) {
	f := world(5)
	truth := f.truth
	f.truth = func(c Config) float64 {
		switch {
		case c["engine"] == "s" && c["seqs"] == "":
			return 40
		case c["engine"] == "s":
			return 400
		case c["engine"] == "t" && c["seqs"] != "64":
			return math.NaN()
		}
		return truth(c)
	}
	f.wrong = func(c Config) float64 { return truth(Config{"engine": "v", "model": "bf16", "tp": "4"}) / f.truth(c) }
	f.moves = func(c Config) []Change {
		if c["engine"] == "s" && c["seqs"] == "" {
			return []Change{{Label: "seqs 256", Set: Config{"seqs": "256"}, Why: "200 requests wait while 20 % of the KV cache is in use"}}
		}
		return nil
	}
	asked, r := playRace(t, race(t, f, up, Budget{Trials: 25}), f.evaluate(5))
	if c := asked[r.Winner-1].Config; c["engine"] != "s" || c["seqs"] == "" {
		t.Errorf("the engine that a repair makes best lost: %+v", r.Verdict)
	}
	mended := slices.ContainsFunc(asked, func(p Proposal) bool { return p.Config["engine"] == "t" && p.Config["seqs"] == "64" })
	if !mended {
		t.Error("a refusal was not mended")
	}
	if !slices.ContainsFunc(r.Evidence.Steps, func(e Entry) bool { return strings.Contains(e.Label, "200 requests wait") }) {
		t.Errorf("steps %+v", r.Evidence.Steps)
	}
}

// TestRaceMendsAgain: a repair whose launch is lost is made again, for that says nothing of the repair.
func TestRaceMendsAgain(t *testing.T) {
	f := world(5)
	truth := f.truth
	f.truth = func(c Config) float64 {
		if c["engine"] == "t" && c["seqs"] != "64" {
			return math.NaN()
		}
		return truth(c)
	}
	f.moves = func(c Config) []Change {
		if c["engine"] == "v" && c["seqs"] == "" {
			return []Change{{Label: "seqs 256", Set: Config{"seqs": "256"}, Why: "200 requests wait while 20 % of the KV cache is in use"}}
		}
		return nil
	}
	f.wrong = func(c Config) float64 { return truth(Config{"engine": "v", "model": "bf16", "tp": "4"}) / f.truth(c) }
	first := map[string]int{} // trial of the first launch of a repair
	asked, _ := playRace(t, race(t, f, up, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
		if p.Stage == RepairStage && first[p.Config.key()] == 0 {
			first[p.Config.key()] = p.Trial
			return Observation{Status: Failed, Reason: "the machine was lost"}, nil
		}
		return f.evaluate(5)(ctx, p)
	})
	engines := map[string]bool{}
	for _, trial := range first {
		engines[asked[trial-1].Config["engine"]] = true
		if next := asked[trial]; next.Stage != RepairStage || next.Config.key() != asked[trial-1].Config.key() {
			t.Errorf("after the lost launch of %s comes %s", asked[trial-1].Label, next.Label)
		}
	}
	if !engines["t"] || !engines["v"] {
		t.Fatalf("repairs of %v", engines)
	}
}

// TestRaceTellsOfLosses checks that a hold-out that the winner loses is in the verdict.
func TestRaceTellsOfLosses(t *testing.T) {
	f := world(5)
	f.sd = 0.002
	_, r := playRace(t, race(t, f, up, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
		end, err := f.evaluate(5)(ctx, p)
		if figures := end.Figures["held"]; figures != nil && p.Config["model"] == "fp8" {
			figures["m"] /= 5
		}
		return end, err
	})
	if h := r.Evidence.HoldOuts; r.Winner == r.Baseline || len(h) != 1 || h[0].Verdict != Worse {
		t.Errorf("%+v", r.Verdict)
	}
}

// TestRaceWeighs checks that an objective over two workloads is that of both.
func TestRaceWeighs(t *testing.T) {
	f := world(5)
	f.wrong = nil
	o := up
	o.Weights = map[string]float64{"w": 1, "held": 1}
	asked, r := playRace(t, race(t, f, o, Budget{Trials: 25}), func(ctx context.Context, p Proposal) (Observation, error) {
		end, err := f.evaluate(5)(ctx, p)
		if figures := end.Figures["held"]; figures != nil && p.Config["model"] == "fp8" {
			figures["m"] /= 50
		}
		return end, err
	})
	for _, p := range asked {
		if !slices.Equal(p.Workloads, []string{"w", "held"}) {
			t.Fatalf("workloads %v", p.Workloads)
		}
	}
	if asked[r.Winner-1].Config["model"] == "fp8" || len(r.Evidence.HoldOuts) > 0 {
		t.Errorf("%+v", r.Verdict)
	}
}

func TestNewRaceRefuses(t *testing.T) {
	f := world(1)
	_, err := NewRace(f.space(), f, Space{Primary: "w"}, Objective{Weights: map[string]float64{"x": 1}}, Budget{Trials: 5}, RaceOptions{Short: 2})
	for _, want := range []string{"sets no parameter", "names no metric", "a budget of 5 trials", "give at least 6", "share of the load", `weighs workload "x"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

// randomEnd is an end with figures that are powers of two, so that scaling
// and inverting them is exact and ties happen.
func randomEnd(r *rand.Rand, p Proposal) Observation {
	o := Observation{Trial: p.Trial, Status: Measured, Seconds: float64(r.IntN(20))}
	m, ttft := math.Exp2(float64(r.IntN(4))), math.Exp2(float64(r.IntN(3)))
	switch r.IntN(8) {
	case 0:
		o.Status, o.Reason = Refused, "no memory"
		return o
	case 1:
		o.Status = []string{Failed, Void}[r.IntN(2)]
		return o
	}
	o.Figures = map[string]map[string]float64{}
	for _, w := range p.Workloads {
		o.Figures[w] = map[string]float64{"m": m, "ttft": ttft}
	}
	return o
}
