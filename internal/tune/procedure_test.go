package tune

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
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
		if q, still := r.Ask(); ok != still || !p.equal(q) {
			t.Errorf("asked for %+v and, stopped, for %+v", p, q)
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
	p, _ := all[3].Ask()
	all[3].Tell(Observation{Trial: p.Trial, Status: Measured})
}

// TestBodyPanics: what panics in a search does so in the caller's Tell.
func TestBodyPanics(t *testing.T) {
	p := Procedure{body: func(measure func(Proposal) Observation) {
		measure(Proposal{Trial: 1})
		panic("a broken invariant")
	}}
	p.Ask()
	defer func() {
		if got := recover(); got != "a broken invariant" {
			t.Errorf("recovered %v", got)
		}
	}()
	p.Tell(Observation{Trial: 1})
}
