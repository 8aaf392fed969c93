package tune

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
)

// TestStop: a search that is given up half way holds nothing, and answers as before.
func TestStop(t *testing.T) {
	before := runtime.NumGoroutine()
	var all []*Race
	for seed := range uint64(20) {
		f := world(seed)
		r := race(t, f, up, Budget{Trials: 20})
		for range seed {
			p, ok := r.Ask()
			if !ok {
				break
			}
			o, err := f.evaluate(seed)(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			o.Trial = p.Trial
			r.Tell(o)
		}
		all = append(all, r)
	}
	for _, r := range all {
		p, ok := r.Ask()
		verdict := r.Result().Verdict
		Stop(r)
		Stop(r)
		if q, more := r.Ask(); more {
			t.Errorf("asked for %+v (%v) and, stopped, for %+v", p, ok, q)
		}
		if after := r.Result().Verdict; !reflect.DeepEqual(after, verdict) {
			t.Errorf("concluded %+v and, stopped, %+v", verdict, after)
		}
	}
	if n := runtime.NumGoroutine(); n > before {
		t.Errorf("%d goroutines before, %d after", before, n)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "after Stop") {
			t.Errorf("told after Stop: %q", text)
		}
	}()
	all[3].Tell(Observation{Trial: 4, Status: Measured})
}

// TestBodyPanics: what panics in a search does so in the caller's Tell.
func TestBodyPanics(t *testing.T) {
	p := NewProcedure(func(measure func(Proposal) Observation) {
		measure(Proposal{Trial: 1})
		panic("a broken invariant")
	})
	p.Ask()
	defer func() {
		if got := recover(); got != "a broken invariant" {
			t.Errorf("recovered %v", got)
		}
	}()
	p.Tell(Observation{Trial: 1})
}

// resumes plays a strategy to its end, with as many trials open as it starts, whose ends
// come in a drawn order; and again from after each of these ends, as a journal would have
// it: whoever is told the same ends proposes the same and concludes the same.
func resumes(t *testing.T, seed uint64, start func() Strategy, end func(Proposal) Observation) (asked []Proposal, ends []Observation) {
	t.Helper()
	play := func(told []Observation) (asked []Proposal, ends []Observation, r Result) {
		s := start()
		var open []Proposal
		next := func() {
			for p, ok := s.Ask(); ok; p, ok = s.Ask() {
				if slices.ContainsFunc(open, func(o Proposal) bool { return o.Node == p.Node }) {
					t.Fatalf("trial %d begins on %q, where another is under way", p.Trial, p.Node)
				}
				asked, open = append(asked, p), append(open, p)
			}
		}
		for next(); len(open) > 0; next() {
			var o Observation
			if len(ends) < len(told) {
				o = told[len(ends)]
			} else {
				p := open[stat.Stream(seed, fmt.Sprint("end ", len(ends))).IntN(len(open))]
				o = end(p)
				o.Trial = p.Trial
			}
			open = slices.DeleteFunc(open, func(p Proposal) bool { return p.Trial == o.Trial })
			ends = append(ends, o)
			s.Tell(o)
		}
		return asked, ends, s.Result()
	}
	asked, ends, want := play(nil)
	for n := range ends {
		again, _, got := play(ends[:n])
		if diff := cmp.Diff(asked, again); diff != "" {
			t.Fatalf("after %d ends, proposals (-whole +resumed):\n%s", n, diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after %d ends, result (-whole +resumed):\n%s", n, diff)
		}
	}
	return asked, ends
}
