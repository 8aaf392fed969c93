package tune

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
)

// field is a small world of engines, checkpoints, layouts and two ladders, whose
// truth is a formula.
type field struct {
	truth  func(Config) float64 // of the figure m; not a number: refused
	wrong  func(Config) float64 // factor of the predictions
	sd     float64              // between launches
	equal  bool                 // every configuration is the same in truth
	moves  func(Config) []Candidate
	broken map[int]string // trial -> status
}

var (
	fieldEngines = []string{"v", "s", "t"}
	fieldTP      = []string{"1", "2", "4"}
	fieldSeqs    = []string{"", "64", "128", "256", "512", "1024"}
	fieldBatched = []string{"", "2048", "4096", "8192", "16384"}
)

func (f *field) Arms() []Arm {
	var out []Arm
	for _, e := range fieldEngines {
		for _, m := range []string{"bf16", "fp8"} {
			for _, tp := range fieldTP {
				a := Arm{Label: e + " " + m + " tp " + tp, Config: Config{"engine": e, "model": m, "tp": tp}}
				a.Refused = f.Refuse(a.Config)
				out = append(out, a)
			}
		}
	}
	return out
}

func (f *field) ladder(c Config, name string, values []string) []Candidate {
	i := slices.Index(values, c[name])
	var out []Candidate
	for _, j := range []int{i + 1, i - 1, i + 2} {
		if j >= 0 && j < len(values) {
			out = append(out, Candidate{Label: strings.TrimSpace(name + " " + values[j]), Set: Config{name: values[j]}})
		}
	}
	return out
}

func (f *field) Steps(c Config) []Candidate {
	return append(f.ladder(c, "seqs", fieldSeqs), f.ladder(c, "batched", fieldBatched)...)
}

func (f *field) Removals(c Config) []Candidate {
	var out []Candidate
	for _, name := range []string{"batched", "seqs"} {
		if c[name] != "" {
			out = append(out, Candidate{Label: "--" + name + " " + c[name], Set: Config{name: ""}})
		}
	}
	return out
}

func (f *field) Refuse(c Config) string {
	if c["model"] == "bf16" && c["tp"] == "1" {
		return "the weights do not fit"
	}
	return ""
}
func (f *field) Numerics(c Config) string { return c["model"] }
func (f *field) Settings(c Config) int    { return len(c) - 2 }
func (f *field) Domain() []Dimension {
	return []Dimension{
		{"engine", fieldEngines, false}, {"model", []string{"bf16", "fp8"}, false}, {"tp", fieldTP, true},
		{"seqs", fieldSeqs, true}, {"batched", fieldBatched, true},
	}
}

// Predict knows the truth but for its errors.
func (f *field) Predict(c Config, _ string) (map[string]float64, bool) {
	if f.wrong == nil {
		return nil, false
	}
	v := f.value(c) * f.wrong(c)
	return map[string]float64{"m": v}, !math.IsNaN(v)
}

func (f *field) value(c Config) float64 {
	if f.equal {
		return 100
	}
	return f.truth(c)
}

// evaluate is a launch: its noise depends on seed and trial.
func (f *field) evaluate(seed uint64) Evaluate {
	return func(_ context.Context, p Proposal) (Observation, error) {
		v := f.value(p.Config)
		if status := f.broken[p.Trial]; status != "" {
			return Observation{Status: status, Reason: "as the test wants it", Seconds: 60}, nil
		}
		if math.IsNaN(v) {
			return Observation{Status: Refused, Reason: "out of memory", Seconds: 20, Moves: []Candidate{{Label: "less", Set: Config{"seqs": "64"}}}}, nil
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
func world(seed uint64) *field {
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
	return &field{
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
func (f *field) best() float64 {
	best := 0.0
	for _, a := range f.Arms() {
		for _, s := range fieldSeqs {
			for _, b := range fieldBatched {
				c := Candidate{Set: Config{"seqs": s, "batched": b}}.Apply(a.Config)
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

func race(t testing.TB, f *field, o Objective, b Budget) *Race {
	t.Helper()
	var p Predictor
	if f.wrong != nil {
		p = f
	}
	r, err := NewRace(f, p, raceSpace(), o, b, RaceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// playRace runs a race to its end and returns its trials.
func playRace(t testing.TB, r *Race, evaluate Evaluate) ([]Proposal, Result) {
	t.Helper()
	var asked []Proposal
	for p, ok := r.Ask(); ok; p, ok = r.Ask() {
		o, err := evaluate(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		o.Trial = p.Trial
		r.Tell(o)
		asked = append(asked, p)
	}
	return asked, r.Result()
}

// TestRaceFindsTheBest holds the race's regret in worlds drawn by chance.
func TestRaceFindsTheBest(t *testing.T) {
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

// TestRaceResumes cuts the journal of a race at every byte: what is decided after a
// resume is what was decided without.
func TestRaceResumes(t *testing.T) {
	f := world(3)
	f.broken = map[int]string{4: Failed, 6: Void}
	objective := up
	objective.Guard = &Guard{Margin: 0.02}
	questions := func(p Proposal) (Observation, error) {
		o, err := f.evaluate(3)(t.Context(), p)
		if p.Questions && o.Status == Measured {
			o.Answers = strings.Repeat("1", 300)
		}
		return o, err
	}
	evaluate := func(_ context.Context, p Proposal) (Observation, error) { return questions(p) }
	run := func(data []byte) ([]byte, Result) {
		log, err := Replay(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		file := &buffer{*bytes.NewBuffer(slices.Clone(data[:log.Size]))}
		j, err := OpenJournal(file, log, Head{Study: "s"})
		if err != nil {
			t.Fatal(err)
		}
		r := race(t, f, objective, Budget{Trials: 20})
		if _, err := Resume(r, log); err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), r, j, evaluate); err != nil {
			t.Fatal(err)
		}
		return file.Bytes(), r.Result()
	}
	whole, want := run(nil)
	done := map[string]bool{}
	for cut := range whole {
		log, err := Replay(bytes.NewReader(whole[:cut]))
		if err != nil {
			t.Fatalf("cut at byte %d: %v", cut, err)
		}
		k := fmt.Sprint(log.Size)
		if done[k] {
			continue // the same whole lines
		}
		done[k] = true
		got, r := run(whole[:cut])
		if !bytes.Equal(got, whole) {
			t.Fatalf("cut at byte %d: another journal", cut)
		}
		if diff := cmp.Diff(want, r); diff != "" {
			t.Fatalf("cut at byte %d: another result:\n%s", cut, diff)
		}
	}
	if len(done) < 2*20 {
		t.Errorf("%d places to resume from", len(done))
	}
}

type buffer struct{ bytes.Buffer }

func (*buffer) Sync() error { return nil }

func TestRaceSays(t *testing.T) {
	f := world(5)
	asked, r := playRace(t, race(t, f, up, Budget{Trials: 25}), f.evaluate(5))
	for _, p := range asked {
		t.Logf("%2d %-8s pass %d %-60s %v", p.Trial, p.Stage, p.Pass, p.Label, maps.Clone(p.Config))
	}
	t.Log(r.Verdict)
	t.Logf("%+v", r.Evidence)
}
