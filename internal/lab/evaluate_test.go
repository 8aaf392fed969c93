package lab

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
)

// run is a run with this many calls ended and failed, and one check.
func runOf(workload string, completed, failed float64, failures map[result.Class]int, check result.Check) *outcome.Run {
	return &outcome.Run{Workload: workload, Summary: result.Summary{
		Figures:  map[string]float64{"completed": completed, "failed": failed, "success_rate": completed / (completed + failed), "duration": 2},
		Failures: failures,
		Verdict:  result.Verdict{Status: check.Status, Checks: []result.Check{check}},
	}}
}

// TestTake: the first workload decides what a trial is worth, the others are
// said beside it.
func TestTake(t *testing.T) {
	sound := result.Check{Name: "failures", Status: result.Sound, Text: "none failed"}
	none := result.Check{Name: "failures", Status: result.Noted, Text: "10 of 10 calls failed"}
	late := result.Check{Name: "dispatch_lag", Status: result.Voided, Text: "the client was late"}
	http := map[result.Class]int{result.HTTPStatus: 10}
	mixed := map[result.Class]int{result.HTTPStatus: 9, result.EarlyClose: 1}
	tests := []struct {
		name           string
		runs           []*outcome.Run
		status, reason string
		notes          string
	}{
		{"all good", []*outcome.Run{runOf("a", 10, 0, nil, sound), runOf("b", 10, 0, nil, sound)}, tune.Measured, "", ""},
		{"cannot be served", []*outcome.Run{runOf("a", 0, 10, http, none)}, tune.Refused, "a: 10 of 10", ""},
		{"breaks", []*outcome.Run{runOf("a", 0, 10, mixed, none)}, tune.Failed, "a: 10 of 10", ""},
		{"too many fail", []*outcome.Run{runOf("a", 98, 2, mixed, sound)}, tune.Failed, "a: 2 of 100 calls failed", ""},
		{"few fail", []*outcome.Run{runOf("a", 199, 1, mixed, sound)}, tune.Measured, "", ""},
		{"void", []*outcome.Run{runOf("a", 10, 0, nil, late)}, tune.Void, "a: the client was late", ""},
		{"another workload cannot be served", []*outcome.Run{runOf("a", 10, 0, nil, sound), runOf("b", 0, 10, http, none)}, tune.Measured, "", "Workload b: 10 of 10 calls failed (refused)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &trialRecord{Trial: outcome.Trial{Status: tune.Measured}}
			goesOn := true
			for _, run := range tt.runs {
				goesOn = r.take(&measuredRun{Run: *run})
			}
			if r.Status != tt.status || !strings.Contains(r.Reason, tt.reason) || (tt.reason == "") != (r.Reason == "") {
				t.Errorf("status %q, reason %q, want %q, %q", r.Status, r.Reason, tt.status, tt.reason)
			}
			if notes := strings.Join(r.Notes, "; "); notes != tt.notes {
				t.Errorf("notes %q, want %q", notes, tt.notes)
			}
			if goesOn != (tt.status == tune.Measured) || r.LoadS != float64(2*len(tt.runs)) {
				t.Errorf("goes on: %v, load %v s", goesOn, r.LoadS)
			}
		})
	}
}

// dying is a deployment whose end is told later than its clients see it.
type dying struct {
	target string
	done   chan struct{}
	err    error
}

func (d *dying) Targets() []string          { return []string{d.target} }
func (d *dying) Engines() []deploy.Engine   { return nil }
func (d *dying) Done() <-chan struct{}      { return d.done }
func (d *dying) Err() error                 { return d.err }
func (d *dying) Stop(context.Context) error { return nil }

// TestDeathToldLate: an engine that dies under the first calls breaks their
// connections before its end is known; the trial ends by the death and not by
// the broken calls, with warm-ups and without.
func TestDeathToldLate(t *testing.T) {
	for _, warmups := range []int{0, 2} {
		d := &dying{done: make(chan struct{}), err: &deploy.DiedError{Status: "exit status 1", Reason: "CUDA out of memory"}}
		mux := http.NewServeMux()
		mux.Handle("/v1/models", answer(nil))
		calls := make(chan struct{}, 100)
		mux.HandleFunc("/v1/chat/completions", func(http.ResponseWriter, *http.Request) {
			calls <- struct{}{}
			panic(http.ErrAbortHandler)
		})
		srv := httptest.NewServer(mux)
		defer srv.Close()
		d.target = srv.URL
		go func() {
			<-calls
			time.Sleep(300 * time.Millisecond)
			close(d.done)
		}()
		s, err := study.Parse("t.yaml", []byte(strings.Replace(small, "kind: predicted", "kind: simulated", 1)))
		if err != nil {
			t.Fatal(err)
		}
		s.Bench.Warmups = &warmups
		l := newSession(s, Options{Dir: t.TempDir()})
		r := &trialRecord{Trial: outcome.Trial{Status: tune.Measured}}
		p := tune.Proposal{Trial: 1, Config: tune.Config{"model": "Qwen/Qwen3-8B"}, Workloads: []string{"a"}}
		l.studyDir = &directory{path: l.Dir, journal: journalOf(t, p)}
		ev := &evaluation{session: l, p: p, t: r, dir: l.Dir}
		if err := ev.runAll(t.Context(), &launch{Study: s}, d); err != nil || r.Status != tune.Refused || !strings.Contains(r.Reason, "CUDA out of memory") {
			t.Errorf("%d warm-ups: %s: %s (%v), want refused", warmups, r.Status, r.Reason, err)
		}
	}
}

// journalOf is a journal in which the proposal is open.
func journalOf(t *testing.T, p tune.Proposal) *journal.Journal {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), journalFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	j, err := journal.Open(f, journal.Log{}, journal.Head{})
	if err == nil {
		err = j.Append(journal.Record{Kind: journal.KindProposed, Proposal: &p})
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}
