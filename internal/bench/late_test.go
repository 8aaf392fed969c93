package bench

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/rundir"
)

// TestLate: of a call that comes twice the first counts, text that nobody asked for is not kept, and what looks like a
// secret is taken out.
func TestLate(t *testing.T) {
	spec, err := json.Marshal(Spec{Targets: []string{"http://127.0.0.1:1"}, Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	h := result.Header{Schema: rundir.Schema, Model: "m", Requests: 3, Spec: spec, Fleet: &result.Fleet{Epoch: 2, Agents: []result.Agent{{Name: "a", Clock: result.ClockKernel}}}}
	dir := filepath.Join(t.TempDir(), "run")
	l, err := OpenLate(dir, "", 2, &h)
	if err != nil {
		t.Fatal(err)
	}
	const secret = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
	l.Add(result.Call{Index: 0, Agent: 1, Text: "an answer", Class: result.StreamError, Error: "the key " + secret + " is not known"})
	l.Add(result.Call{Index: 0, Agent: 1, Class: result.StreamError, Error: "again"})
	l.Add(result.Call{Index: 1, Agent: 1, Class: result.StreamError})
	out, err := l.Finish(h.Fleet)
	if err != nil {
		t.Fatal(err)
	}
	if l.Added != 2 || l.Calls(1) != 2 || !out.Client.Partial || out.Client.StopNote != "2 of 3 calls are here" {
		t.Errorf("%d added, client %+v", l.Added, out.Client)
	}
	r, err := rundir.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Calls {
		if c.Text != "" || strings.Contains(c.Error, secret) || c.Error == "again" {
			t.Errorf("%+v", c)
		}
	}
	study := t.TempDir()
	if err := os.WriteFile(filepath.Join(study, rundir.JournalFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	of := filepath.Join(study, "trials", "003", "a")
	w, err := rundir.Create(of, h)
	if err != nil {
		t.Fatal(err)
	}
	w.Abandon()
	var inStudy *StudyRunError
	if _, err := OpenLate(of, "", 2, &h); !errors.As(err, &inStudy) || inStudy.Study != study || CutOff(of, 2) {
		t.Errorf("a run of a study: %v", err)
	}
	if _, err := OpenLate(filepath.Join(t.TempDir(), "run"), "", 2, nil); err == nil || !strings.Contains(err.Error(), "no agent has the header") {
		t.Error(err)
	}
}
