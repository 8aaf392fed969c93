package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/result"
)

// TestReopen: until a run that is gone on with is finished its directory has what it had; then it has the calls that were
// added, and all its other files.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := Create(dir, result.Header{Schema: Schema, Spec: []byte("{}"), Requests: 2})
	if err != nil {
		t.Fatal(err)
	}
	w.AddUncounted(&result.Call{Index: 0})
	if _, err := Reopen(dir); err == nil || !strings.Contains(err.Error(), "under way") {
		t.Errorf("of a run that is under way: %v", err)
	}
	w.Abandon()
	if err := os.WriteFile(filepath.Join(dir+".tmp", "engine.log"), []byte("ready"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, end := range []bool{false, true} {
		if w, err = Reopen(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Reopen(dir); err == nil || !strings.Contains(err.Error(), "another process completes") {
			t.Errorf("two at a time: %v", err)
		}
		w.Add(&result.Call{Index: 0})
		w.Add(&result.Call{Index: 1})
		if !end {
			w.Abandon()
			if r, err := OpenRun(dir); err != nil || r.Len() != 1 {
				t.Errorf("before its end: %v", err)
			}
		}
	}
	if err := w.Finish(&result.Client{}, &result.Summary{}, nil); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRun(dir)
	if err != nil || r.Len() != 2 || r.Damage != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 { // header, calls, client, summary, the log
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := Reopen(dir); err == nil || !strings.Contains(err.Error(), "is finished") {
		t.Errorf("of a run that is finished: %v", err)
	}
}
