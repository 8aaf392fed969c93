package lab

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/durable"
	"perflab/internal/outcome"
	"perflab/internal/study"
	"perflab/internal/tune/journal"
)

// TestSyncedBeforeObserved: every file and directory of a trial is synced, as it stays,
// before the journal has the trial's end, and so is the name of the journal before
// its first trial.
func TestSyncedBeforeObserved(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(t.TempDir(), "new", "out"), Predictor: replay{}}
	synced := map[string]int{} // path -> how many ends the journal had when it was synced last
	size := map[string]int64{}
	o.disk.Trace = func(step durable.Step, path string) {
		journal, _ := os.ReadFile(filepath.Join(o.Dir, journalFile)) // not there at first
		synced[path] = bytes.Count(journal, []byte(`"kind":"observed"`))
		if info, err := os.Stat(path); err == nil && step == durable.SyncedFile {
			size[path] = info.Size()
		}
	}
	f, err := Tune(t.Context(), s, []byte(small), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range f.Trials {
		files := 0
		err := filepath.WalkDir(filepath.Join(o.Dir, "trials", fmt.Sprintf("%03d", i+1)), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if ends, ok := synced[path]; !ok || ends != i {
				t.Errorf("%s: synced %v, when %d trials had their end in the journal, want %d", path, ok, ends, i)
			}
			if info, err := e.Info(); err == nil && !e.IsDir() && info.Size() != size[path] {
				t.Errorf("%s has %d bytes, %d when it was synced", path, info.Size(), size[path])
			}
			files++
			return nil
		})
		if err != nil || files < 6 {
			t.Errorf("trial %d: %d files and directories, %v", i+1, files, err)
		}
	}
	for _, dir := range []string{filepath.Dir(filepath.Dir(o.Dir)), filepath.Dir(o.Dir), o.Dir, filepath.Join(o.Dir, "trials")} {
		if _, ok := synced[dir]; !ok {
			t.Errorf("the names in %s are not synced", dir)
		}
	}
}

// tuneAgain resumes the study in a directory.
func tuneAgain(t *testing.T, dir, text string) (outcome.Study, error) {
	t.Helper()
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return Tune(t.Context(), s, []byte(text), Options{Dir: dir, Resume: true, Predictor: replay{}})
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestChangedFiles: a study of which a file was changed or lost since is not resumed on
// figures that are not those of its files. Nothing is touched, and the sentence says how
// to go on: with the file as it was, or with the trial measured again.
func TestChangedFiles(t *testing.T) {
	dir, whole := tuned(t, small, replay{})
	journal := filepath.Join(dir, journalFile)
	records := readFile(t, journal)
	run := filepath.Join(dir, whole.Trials[1].Runs[0].Dir)
	for _, path := range []string{
		filepath.Join(run, "header.json"), filepath.Join(run, "calls.jsonl"), filepath.Join(run, "summary.json"), filepath.Join(dir, "trials", "002", trialFile),
	} {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		was := readFile(t, path)
		digit := strings.IndexAny(was, "12345678")
		writeFile(t, path, was[:digit]+"9"+was[digit+1:])
		_, changed := tuneAgain(t, dir, small)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		_, gone := tuneAgain(t, dir, small)
		writeFile(t, path, was)
		for err, what := range map[error]string{changed: "is not as it was", gone: "is gone, which was there"} {
			want := name + " " + what + " when trial 2 ended: put it back, or remove line 5 and those after it from journal.jsonl to have the trials from 2 on measured again"
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	}
	if readFile(t, journal) != records {
		t.Error("a resume that was refused changed the journal")
	}
	if _, err := tuneAgain(t, dir, small); err != nil {
		t.Errorf("with all files as they were: %v", err)
	}
	// What the sentence says to do is possible.
	writeFile(t, filepath.Join(run, "calls.jsonl"), "")
	writeFile(t, journal, strings.Join(strings.SplitAfter(records, "\n")[:4], ""))
	again, err := tuneAgain(t, dir, small)
	if err != nil || len(again.Trials) != len(whole.Trials) || readFile(t, filepath.Join(run, "calls.jsonl")) == "" {
		t.Errorf("measured again: %v, %d trials of %d", err, len(again.Trials), len(whole.Trials))
	}
}

// TestChangedRecord: a record whose digits were changed is refused, and the line named.
func TestChangedRecord(t *testing.T) {
	dir, _ := tuned(t, small, replay{})
	path := filepath.Join(dir, journalFile)
	records := readFile(t, path)
	changed := strings.Replace(records, `"completed":`, `"completed":1`, 1)
	writeFile(t, path, changed)
	_, err := tuneAgain(t, dir, small)
	if want := "journal line 3 is damaged: it was changed after it was written, for its checksum does not match; restore the file, or remove line 3"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if readFile(t, path) != changed {
		t.Error("a resume that was refused changed the journal")
	}
	// The trials after the cut are still there, and are none of the study until
	// they are measured again.
	writeFile(t, path, strings.Join(strings.SplitAfter(records, "\n")[:2], ""))
	s, err := study.Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	d, _, err := openDirectory(s, []byte(small), Options{Dir: dir, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.file.Close()
	if trials, err := d.trials(); err != nil || len(trials) != 0 {
		t.Errorf("%d trials have ended, want none (%v)", len(trials), err)
	}
}

// TestAnotherStudy: what differs is said, not just that something does.
func TestAnotherStudy(t *testing.T) {
	dir, _ := tuned(t, small, replay{})
	withKey := strings.Replace(small, "runtime:", "engines: {vllm: {env: [HF_TOKEN=hf_verysecret]}}\nruntime:", 1)
	for name, tt := range map[string]struct{ text, version, want string }{
		"file":     {strings.Replace(small, "Qwen3-8B", "Qwen3-14B", 1), "", "is of another study ("},
		"line":     {strings.Replace(small, "Qwen3-8B", "Qwen3-14B", 1), "", "study.yaml from line 2 on)"},
		"version":  {small, "v2", "the study file is as it was, but perflab v1 began the study and this is v2, which reads it as another one: resume with v1, or begin anew"},
		"secret":   {withKey, "v1", "study.yaml from line"},
		"strategy": {small, "v1", "(the study file is as it was: --strategy, a file of recipes that it names, or earlier.json, is another)"},
	} {
		d := directory{path: dir}
		err := error(&journal.AnotherStudyError{Was: "a", Is: "b", Version: "v1"})
		s, perr := study.Parse("study.yaml", []byte(tt.text))
		if perr != nil {
			t.Fatal(perr)
		}
		if err = d.explain(err, s, []byte(tt.text), tt.version); !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if _, err := tuneAgain(t, dir, strings.Replace(small, "Qwen3-8B", "Qwen3-14B", 1)); err == nil || !strings.Contains(err.Error(), "from line 2 on") {
		t.Errorf("resumed: %v", err)
	}
}
