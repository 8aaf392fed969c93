package tune

import (
	"maps"
	"math"
	"slices"
	"testing"
)

// pupil is a predictor that takes two engines for better than they are until it has learned. It
// counts what it is asked before and after.
type pupil struct {
	*testSpace
	learned []map[string]map[string]float64
	refuses bool    // it can learn nothing
	off     float64 // of all figures until it has learned
	asked   [2]map[string]int
}

func newPupil(f *testSpace) *pupil {
	return &pupil{testSpace: f, off: 4, asked: [2]map[string]int{{}, {}}}
}

func (p *pupil) Predict(c Config, w string) (map[string]float64, bool) {
	f, ok := p.testSpace.Predict(c, w)
	p.asked[min(1, len(p.learned))][c.key()]++
	if len(p.learned) == 0 {
		for name := range f {
			f[name] *= p.off
			if c["engine"] != "v" {
				f[name] *= 3
			}
		}
	}
	if len(p.learned) > 0 && c["engine"] == "v" {
		for name := range f {
			f[name] *= 1.1
		}
	}
	return f, ok
}

func (p *pupil) Learn(c Config, figures map[string]map[string]float64) bool {
	if !maps.Equal(c, raceSpace().Baseline) {
		panic("it learns of another configuration than the baseline")
	}
	if p.refuses {
		return false
	}
	p.learned = append(p.learned, figures)
	return true
}

// pure hides that a predictor can learn.
type pure struct{ Predictor }

func taught(t testing.TB, f *testSpace, p Predictor, b Budget, nodes ...string) *Race {
	t.Helper()
	r, err := NewRace(f.space(), p, raceSpace(), up, b, RaceOptions{Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRaceLearns: the predictor learns once, of the first launch of the baseline under all of the
// load that has figures, and nothing of what was predicted before is gone by after.
func TestRaceLearns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken map[int]string
		budget Budget
		nodes  []string
		trial  int
	}{
		"first":    {nil, Budget{Trials: 12}, nil, 1},
		"second":   {map[int]string{1: Void}, Budget{Trials: 12}, nil, 2},
		"short":    {nil, Budget{Time: 2000e9}, nil, 1},
		"machines": {nil, Budget{Trials: 12}, []string{"a", "b"}, 1},
	} {
		f := world(3)
		f.broken = c.broken
		p := newPupil(f)
		r := taught(t, f, p, c.budget, c.nodes...)
		evaluate := f.evaluate(3)
		var first Observation
		for q, ok := r.Ask(); ok; q, ok = r.Ask() {
			o, _ := evaluate(t.Context(), q)
			if o.Trial = q.Trial; q.Trial == c.trial {
				first = o
			}
			r.Tell(o)
		}
		if len(p.learned) != 1 || p.learned[0]["w"]["m"] != first.Figures["w"]["m"] {
			t.Fatalf("%s: it learned %v, want the figures of trial %d once", name, p.learned, c.trial)
		}
		for key, n := range p.asked[1] {
			if n != 1 {
				t.Errorf("%s: %s is predicted %d times after it learned", name, key, n)
			}
		}
		base := raceSpace().Baseline
		if p.asked[0][base.key()] != 1 || p.asked[1][base.key()] != 1 {
			t.Errorf("%s: the baseline is predicted %d times before and %d times after", name, p.asked[0][base.key()], p.asked[1][base.key()])
		}
		e := r.Result().Evidence
		want := f.value(base) * f.wrong(base)
		if l := e.Learned; l == nil || l.Trial != c.trial || math.Abs(l.Measured/first.Figures["w"]["m"]-1) > 1e-9 || l.Predicted != 4*want || math.Abs(l.Corrected/want-1.1) > 1e-9 {
			t.Errorf("%s: evidence %+v", name, l)
		}
		for _, k := range e.Candidates {
			if k.Predicted == nil {
				continue
			}
			if v, _ := p.Predict(k.Config, "w"); math.Abs(*k.Predicted*want*1.1/v["m"]-1) > 1e-9 {
				t.Errorf("%s: %s is said to have been predicted at %v of the baseline", name, k.Label, *k.Predicted)
			}
		}
	}
}

// TestRaceLearnsNothing: a predictor that cannot learn, or of which nothing comes, is untouched,
// and the race takes the course that it takes without.
func TestRaceLearnsNothing(t *testing.T) {
	t.Parallel()
	f := world(4)
	refuses := newPupil(f)
	refuses.refuses = true
	without, _ := playRace(t, taught(t, f, pure{newPupil(f)}, Budget{Trials: 20}), f.evaluate(4))
	with, result := playRace(t, taught(t, f, refuses, Budget{Trials: 20}), f.evaluate(4))
	if !equalProposals(without, with) || result.Evidence.Learned != nil {
		t.Errorf("one that learns nothing: %+v", result.Evidence.Learned)
	}
	if other, _ := playRace(t, taught(t, f, newPupil(f), Budget{Trials: 20}), f.evaluate(4)); equalProposals(without, other) {
		t.Error("what is learned changes nothing: this test cannot fail")
	}
	near := newPupil(f)
	near.off = 1.2 / f.wrong(raceSpace().Baseline)
	if playRace(t, taught(t, f, near, Budget{Trials: 20}), f.evaluate(4)); len(near.learned) > 0 {
		t.Error("it learned of a launch that is near its prediction")
	}
	lost := world(4)
	lost.broken = map[int]string{1: Failed, 2: Failed, 3: Failed}
	p := newPupil(lost)
	if _, r := playRace(t, taught(t, lost, p, Budget{Trials: 20}), lost.evaluate(4)); len(p.learned) > 0 || r.Evidence.Learned != nil {
		t.Errorf("of a baseline without a figure it learned %v", p.learned)
	}
	dumb := world(4)
	dumb.wrong = nil
	p = newPupil(dumb)
	if playRace(t, taught(t, dumb, p, Budget{Trials: 20}), dumb.evaluate(4)); len(p.learned) > 0 {
		t.Error("it learned although nothing is predicted of the baseline")
	}
}

// TestRaceLearnsAgain: what is decided after a resume is what was decided without, wherever the
// race was cut.
func TestRaceLearnsAgain(t *testing.T) {
	t.Parallel()
	f := world(5)
	var all []*pupil
	asked, _ := resumes(t, 5, func() Strategy {
		all = append(all, newPupil(f))
		return taught(t, f, all[len(all)-1], Budget{Trials: 10})
	}, func(p Proposal) Observation {
		o, err := f.evaluate(5)(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return o
	})
	if len(asked) < 8 {
		t.Errorf("%d places to resume from", len(asked))
	}
	for i, p := range all {
		if len(p.learned) > 1 || i == 0 && len(p.learned) != 1 {
			t.Errorf("the predictor of race %d learned %d times", i, len(p.learned))
		}
	}
}

func equalProposals(a, b []Proposal) bool {
	return slices.EqualFunc(a, b, Proposal.Equal)
}
