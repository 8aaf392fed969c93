package lab

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// TestUnderway: a study says in its directory what it is doing, and why it stopped; once it has
// come to its end there is no such file.
func TestUnderway(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(atRate))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	path := filepath.Join(dir, rundir.UnderwayFile)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const again = "perflab tune t.yaml --out out --resume"
	var at func(time.Time) outcome.Underway
	var first, second outcome.Underway
	o := Options{Dir: dir, strategist: raced, Predictor: onTime{10 * time.Millisecond}, Again: again, Follow: func(now func(time.Time) outcome.Underway) { at = now }}
	o.Watch = func(now Status) {
		switch {
		case now.Trial == 1 && now.Why != "" && first.Schema == "":
			first = at(time.Now())
		case now.Trial == 3 && now.Workload != "":
			second = at(time.Now())
			cancel()
		}
	}
	if _, err = Tune(ctx, s, []byte(atRate), o); err == nil {
		t.Fatal("the study was not stopped")
	}
	if x := first.Trials; len(x) != 1 || x[0].Stage != tune.BaselineStage || x[0].Why == "" || first.Leader != nil || first.EachS != 0 || first.LeftS != nil {
		t.Errorf("in the first trial: %+v", first)
	}
	if x := second.Trials; len(x) != 1 || x[0].Trial != 3 || x[0].Workload == "" || second.Leader == nil || second.Ended != 2 || second.Most == 0 || !second.Simulated {
		t.Errorf("in the third trial: %+v", second)
	}
	var kept outcome.Underway
	if err := rundir.ReadJSON(path, &kept); err != nil || kept.Stopped == "" || kept.Resume != again || kept.Ended < 2 || kept.Schema != outcome.UnderwaySchema {
		t.Errorf("when it was stopped: %+v, %v", kept, err)
	}
	kept = outcome.Underway{}
	o.Resume, o.Watch = true, func(s Status) {
		if s.Trial > kept.Ended+1 {
			kept = outcome.Underway{}
			err = rundir.ReadJSON(path, &kept)
		}
	}
	if _, err := Tune(t.Context(), s, []byte(atRate), o); err != nil {
		t.Fatal(err)
	}
	if err != nil || kept.Schema == "" || kept.Stopped != "" {
		t.Errorf("while it goes on: %+v", kept)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("a study that has ended leaves %s (%v)", path, err)
	}
}

func TestTimeLeft(t *testing.T) {
	for _, tt := range []struct {
		name     string
		u        outcome.Underway
		running  float64
		machines int
		want     float64 // below 0: not known
	}{
		{"no trial has ended", outcome.Underway{Most: 8}, 5, 1, -1},
		{"nothing bounds it", outcome.Underway{Ended: 3, EachS: 10}, 5, 1, -1},
		{"launches", outcome.Underway{Ended: 3, Most: 8, EachS: 10}, 5, 1, 45},
		{"on two machines", outcome.Underway{Ended: 3, Most: 8, EachS: 10}, 10, 2, 20},
		{"a last launch that takes long", outcome.Underway{Ended: 7, Most: 8, EachS: 10}, 25, 1, 0},
		{"time alone", outcome.Underway{Ended: 3, EachS: 10, SpentS: 30, BudgetS: 100}, 5, 1, 65},
		{"whichever ends first", outcome.Underway{Ended: 3, Most: 8, EachS: 10, SpentS: 30, BudgetS: 60}, 5, 1, 25},
	} {
		got := left(tt.u, tt.running, tt.machines)
		if got == nil != (tt.want < 0) || got != nil && *got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
