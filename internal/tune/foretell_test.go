package tune

import (
	"maps"
	"math"
	"slices"
	"testing"
)

// mute is a predictor that says nothing of some engines, and nothing of one layout of any.
type mute struct {
	*testSpace
	of []string
}

func (p mute) Predict(c Config, w string) (map[string]float64, bool) {
	if slices.Contains(p.of, c["engine"]) || c["tp"] == "1" {
		return nil, false
	}
	return p.testSpace.Predict(c, w)
}

// muted is a race whose predictor says nothing of some engines.
func muted(t *testing.T, f *testSpace, of ...string) *Race {
	t.Helper()
	return taught(t, f, mute{f, of}, Budget{Trials: 16})
}

// TestBorrow: of an engine that nothing is predicted of the settings are thought to do what they do in
// the others, and nothing else is borrowed.
func TestBorrow(t *testing.T) {
	t.Parallel()
	f := world(3)
	at := func(engine string, more ...string) Config {
		c := Config{"engine": engine, "model": "fp8", "tp": "2"}
		for i := 0; i < len(more); i += 2 {
			c[more[i]] = more[i+1]
		}
		return c
	}
	told := func(c Config) float64 { return f.value(c) * f.wrong(c) }
	m := muted(t, f, "s").state.model
	for _, c := range []Config{at("s"), at("s", "seqs", "256")} {
		v, w := maps.Clone(c), maps.Clone(c)
		v["engine"], w["engine"] = "v", "t"
		p := m.predict(c)
		if want := (told(v) + told(w)) / 2; !p.borrowed || math.Abs(p.figures["m"]/want-1) > 1e-9 {
			t.Errorf("%v: %+v, want %v borrowed", c, p.figures, want)
		}
		if q := m.point(c); !q.Known || math.Abs(q.X-(p.log-m.base0(0))) > 1e-12 {
			t.Errorf("%v is taken to be %+v", c, q)
		}
	}
	if p := m.predict(at("v")); p.borrowed || p.figures["m"] != told(at("v")) {
		t.Errorf("of an engine that is predicted: %+v", p)
	}
	if p := m.predict(at("v", "tp", "1")); p.borrowed || p.figures != nil {
		t.Errorf("of what is not predicted of an engine that is: %+v", p)
	}
	if p := m.predict(at("s", "tp", "1")); p.borrowed || p.figures != nil {
		t.Errorf("of what is predicted of no engine: %+v", p)
	}
	if p := muted(t, f, "s", "v", "t").state.predict(at("s")); p.borrowed || p.figures != nil {
		t.Errorf("where nothing is predicted: %+v", p)
	}
}

// TestBorrowedBaseline: where nothing is predicted of the baseline's engine the gains that are
// predicted are those of the settings, and nothing is learned of its launch or said to be predicted.
func TestBorrowedBaseline(t *testing.T) {
	t.Parallel()
	f := world(3)
	m := muted(t, f, raceSpace().Baseline["engine"]).state.model
	base := m.predict(m.baseConfig())
	if !base.borrowed || m.ofBase().own() {
		t.Fatalf("the baseline is %+v, and it is said to be predicted", base)
	}
	if x := m.point(m.baseConfig()).X; x != 0 {
		t.Errorf("the baseline is %v ahead of itself", x)
	}
	if got := m.fits(); got != nil {
		t.Errorf("predictions are held against launches: %+v", got)
	}
}

// TestBorrowedIsNotPredicted: no report says that something was predicted of an engine that nothing is
// predicted of, and the predictor is not held responsible for it.
func TestBorrowedIsNotPredicted(t *testing.T) {
	t.Parallel()
	f := world(3)
	asked, result := playRace(t, muted(t, f, "s"), f.evaluate(3))
	e := result.Evidence
	for _, k := range e.Candidates {
		if silent := k.Config["engine"] == "s" || k.Config["tp"] == "1"; silent && k.Predicted != nil {
			t.Errorf("%s is said to be predicted at %v", k.Label, *k.Predicted)
		} else if !silent && k.State != StateRefused && k.Predicted == nil {
			t.Errorf("nothing is said to be predicted of %s", k.Label)
		}
	}
	for _, fit := range e.Predictions {
		if fit.Engine == "s" {
			t.Errorf("predictions of it are held against launches: %+v", fit)
		}
	}
	if !slices.ContainsFunc(asked, func(p Proposal) bool { return p.Config["engine"] == "s" }) {
		t.Error("it was never launched")
	}
}
