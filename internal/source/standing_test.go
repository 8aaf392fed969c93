package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/durable"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// standing is that of a directory which has one.
func standing(t *testing.T, dir string) outcome.Standing {
	t.Helper()
	s, err := Standing(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStandingOfRun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w, err := rundir.Create(dir, result.Header{Schema: rundir.Schema, Model: "m", Requests: 3})
	if err != nil {
		t.Fatal(err)
	}
	if s := standing(t, dir); s.State != outcome.Running || s.Run.Load.Planned != 3 || s.Run.Load.Done != 0 {
		t.Errorf("under way: %+v, %+v", s, s.Run)
	}
	w.Add(&result.Call{Index: 0, End: 2 * time.Second, Class: result.OK, Usage: &result.Usage{Completion: 7}})
	w.Add(&result.Call{Index: 1, End: time.Second, Class: "refused"})
	w.Abandon() // as a process that was killed leaves it
	for _, name := range []string{dir, dir + ".tmp"} {
		s := standing(t, name)
		if l := s.Run.Load; s.Kind != "run" || s.State != outcome.Stopped || l.Done != 2 || l.Failed != 1 || l.Tokens != 7 || l.Seconds != 2 || s.Next != "perflab report "+dir {
			t.Errorf("%s: %+v, %+v", name, s, s.Run)
		}
	}
}

func TestStandingOfSeries(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "series")
	w, err := rundir.Create(filepath.Join(dir, "rate-1"), result.Header{Schema: rundir.Schema, Requests: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abandon()
	if s := standing(t, dir); s.State != outcome.Stopped || s.Kind != "series" || s.Run == nil {
		t.Errorf("before its first run has ended, and nobody holds it: %+v", s)
	}
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if ok, err := durable.Hold(held); !ok {
		t.Fatal(err)
	}
	if s := standing(t, dir); s.State != outcome.Running {
		t.Errorf("held: %+v", s)
	}
	write(t, filepath.Join(dir, "sweep.json"), `{"kind":"find-max","points":[{"dir":"rate-1"}],"stop":{"code":"","text":""}}`)
	if s := standing(t, dir); s.State != outcome.Running || s.Ended != 1 || s.Kind != "find-max" {
		t.Errorf("after a run: %+v", s)
	}
	write(t, filepath.Join(dir, "sweep.json"), `{"kind":"sweep","points":[{"dir":"rate-1"}],"stop":{"code":"done","text":"all 1 runs were made"}}`)
	if s := standing(t, dir); s.State != outcome.Finished || s.Verdict != "all 1 runs were made" {
		t.Errorf("at its end: %+v", s)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStandingOfStudy(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, rundir.JournalFile)
	write(t, path, "")
	if s := standing(t, dir); s.State != outcome.Stopped || s.Ended != 0 || !strings.Contains(s.Next, "--resume") {
		t.Errorf("without a record: %+v", s)
	}
	write(t, filepath.Join(dir, rundir.UnderwayFile), `{"schema":"perflab.progress/1","ended":4,"resume":"perflab tune a.yaml --resume","stopped":"interrupted"}`)
	if s := standing(t, dir); s.State != outcome.Stopped || s.Ended != 4 || s.Next != "perflab tune a.yaml --resume" {
		t.Errorf("stopped: %+v", s)
	}
	held, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if ok, err := durable.Hold(held); !ok {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, rundir.StudyFile), `{"partial":true,"verdict":"not finished"}`)
	if s := standing(t, dir); s.State != outcome.Running || s.Ended != 4 || s.Verdict != "" || s.Study == nil {
		t.Errorf("running: %+v", s)
	}
	if err := os.Remove(filepath.Join(dir, rundir.UnderwayFile)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, rundir.StudyFile), `{"trials":[{"id":1},{"id":2}],"verdict":"no gain shown"}`)
	write(t, filepath.Join(dir, "report.html"), "")
	if s := standing(t, dir); s.State != outcome.Finished || s.Ended != 2 || s.Verdict != "no gain shown" || s.Report == "" || s.Next != "perflab report "+dir {
		t.Errorf("finished: %+v", s)
	}
}

func TestNoStanding(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{dir: "holds no study and no run", filepath.Join(dir, "nowhere"): "there is no directory"} {
		if _, err := Standing(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
