package lab

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/candidate"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// good is a study in which nothing is wrong; small is it with a model that fits.
var (
	good  = goodStudy()
	small = strings.Replace(good, "Qwen3-14B", "Qwen3-8B", 1)
)

// goodStudy is empty in a stand-in for an engine, which this binary is too: it
// runs in another directory. TestMain looks that tests have it.
func goodStudy() string {
	b, _ := os.ReadFile("../study/testdata/good.yaml")
	return string(b)
}

// unchecked is a study that believes that the machine has the hardware.
func unchecked(text string) string {
	return strings.Replace(text, "gpus: 2}", "gpus: 2, check: off}", 1)
}

// replay is a predictor of calls of a second each, which does something else
// before every run.
type replay struct{ before func() }

func (r replay) Predict(_ context.Context, p bench.Prediction) iter.Seq2[result.Call, error] {
	return func(yield func(result.Call, error) bool) {
		if r.before != nil {
			r.before()
		}
		for q := range p.Workload.All() {
			first := result.Chunk{At: time.Second / 2, Tokens: 1}
			c := result.Call{
				Index: q.Index, End: time.Second, Chunks: []result.Chunk{first, {At: time.Second, Tokens: 1}},
				Usage: &result.Usage{Prompt: 8, Completion: 2}, WantIn: 8, Want: 2, Class: result.OK,
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// tuned runs a study of the given text in a new directory.
func tuned(t *testing.T, text string, p bench.Predictor) (string, outcome.Study) {
	t.Helper()
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "out")
	f, err := Tune(t.Context(), s, []byte(text), Options{Dir: dir, Predictor: p, strategist: raced})
	if err != nil {
		t.Fatal(err)
	}
	return dir, f
}

// raced is the strategy of a study whose trials have noise although nothing is launched.
func raced(s *study.Study, p tune.Predictor) (tune.Strategy, *candidate.Field, error) {
	k, f := *s, *s.File
	f.Runtime.Kind, k.File = study.Simulated, &f
	return k.NewStrategy(p)
}

// TestOneAtWork: a second process would clear away the first one's trials.
func TestOneAtWork(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(t.TempDir(), "out")}
	runs := 0
	o.Predictor = replay{func() {
		runs++
		for _, resume := range []bool{true, false} {
			second := o
			second.Resume, second.Predictor = resume, replay{}
			_, err := Tune(t.Context(), s, []byte(small), second)
			_, busy := errors.AsType[*BusyError](err)
			_, exists := errors.AsType[*ExistsError](err)
			if resume && !busy || !resume && !exists {
				t.Errorf("a second study with resume %v: %v", resume, err)
			}
		}
	}}
	if _, err := Tune(t.Context(), s, []byte(small), o); err != nil {
		t.Fatal(err)
	}
	if runs == 0 {
		t.Error("nothing ran")
	}
	o.Resume, o.Predictor = true, replay{}
	if _, err := Tune(t.Context(), s, []byte(small), o); err != nil {
		t.Errorf("the lock outlives the study: %v", err)
	}
}

// TestStudyInProgress: study.json stands before the first trial and is renewed
// after each, so a study under way or killed can be reported.
func TestStudyInProgress(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Dir: filepath.Join(t.TempDir(), "out")}
	ended := 0
	o.Predictor = replay{func() {
		f, err := rundir.OpenStudy(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Trials) != ended || !f.Partial {
			t.Errorf("after %d trials study.json has %d, partial %v", ended, len(f.Trials), f.Partial)
		}
		ended++
	}}
	f, err := Tune(t.Context(), s, []byte(small), o)
	if err != nil || f.Partial || len(f.Trials) != ended || ended < 3 {
		t.Errorf("%d trials, partial %v: %v", len(f.Trials), f.Partial, err)
	}
}

// TestSecrets: what a study file says in confidence is nowhere in the study's
// directory.
func TestSecrets(t *testing.T) {
	const token, key = "hf_verysecret", "sk-alsosecret"
	text := strings.Replace(small, "runtime:", "engines: {vllm: {env: [HF_TOKEN="+token+", PLAIN=shown], flags: [--api-key, "+key+"]}}\nruntime:", 1)
	dir, f := tuned(t, text, replay{})
	if c := f.Trials[0].Command; !strings.Contains(c, "HF_TOKEN='[redacted]'") || !strings.Contains(c, "PLAIN=shown") {
		t.Errorf("the command is shown as %s", c)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), token) || strings.Contains(string(b), key) {
			t.Errorf("%s holds a secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, sourceFile))
	if want := strings.NewReplacer(token, "[redacted]", key, "[redacted]").Replace(text); err != nil || string(kept) != want {
		t.Errorf("the study's copy is %s, %v; want %s", kept, err, want)
	}
}

// TestSkippedCandidates: a candidate that the budget left out is named with
// the reason, and a list is a list in study.json also when it is empty.
func TestSkippedCandidates(t *testing.T) {
	text := strings.Replace(small, "set: {tp: 2}}]", "set: {tp: 2}}, {label: FP8, model: Qwen/Qwen3-8B-FP8}, {label: TP3, set: {tp: 3}}]\nbudget: {trials: 4}", 1)
	_, short := tuned(t, text, replay{})
	if left := short.Stages[0].Skipped; len(left) == 0 || left[0].Label != "FP8" || left[0].Finding.Kind != tune.NoTrialsLeft || left[0].Finding.N != 4 {
		t.Errorf("the stage left out %+v", left)
	}
	text = strings.Replace(small, "engine: sglang, set: {tp: 2}", "set: {tp: 3}", 1)
	dir, f := tuned(t, text, replay{})
	b, err := os.ReadFile(filepath.Join(dir, rundir.StudyFile))
	if err != nil || f.Trials[1].Status != tune.Refused || strings.Contains(string(b), `"runs": null`) {
		t.Errorf("trial 2 is %s; a refused trial has no list of runs: %v", f.Trials[1].Status, err)
	}
}

// TestGoodput: the study's bounds of a good request reach its runs.
func TestGoodput(t *testing.T) {
	text := strings.Replace(small, "total_token_throughput", "request_goodput", 1)
	if _, err := study.Parse("t.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "t.yaml:4:21: request_goodput needs bench.goodput") {
		t.Errorf("without bounds: %v", err)
	}
	_, f := tuned(t, text+"bench: {goodput: ['ttft:600']}\n", replay{})
	if g := f.Trials[0].Runs[0].Summary.Figures["request_goodput"]; g != 10 { // ten calls within one second
		t.Errorf("request goodput %v, want 10", g)
	}
}

// TestExistingIsNotRefused: our rules cannot refuse what is up, and the number
// of replicas is that of the endpoints.
func TestExistingIsNotRefused(t *testing.T) {
	srv := httptest.NewServer(answer(nil))
	defer srv.Close()
	text := good[:strings.Index(good, "stages:")] + "strategy: staged\nruntime: {kind: existing, urls: ['" + srv.URL + "', '" + srv.URL + "'], ready_timeout_s: 1}\n"
	text = strings.NewReplacer("gpus: 2", "gpus: 1", "Qwen3-14B", "Qwen3-32B").Replace(text) // on which it needs a shorter max_model_len
	_, f := tuned(t, text, nil)
	if r := f.Trials[0]; r.Status == tune.Refused || r.Replicas != 2 {
		t.Errorf("trial 1 is %s (%s) with %d replicas", r.Status, r.Reason, r.Replicas)
	}
	begun := time.Now()
	srv.Close()
	_, f = tuned(t, text, nil)
	if took := time.Since(begun); f.Trials[0].Status != tune.Failed || took > 2*time.Second+backoff()[0] {
		t.Errorf("a dead endpoint is %s after %v", f.Trials[0].Status, took)
	}
}

// TestExistingServesItsName: the calls name the model as it is served, also
// where our rules refuse the command or the engine lacks a parameter.
func TestExistingServesItsName(t *testing.T) {
	srv := httptest.NewServer(answer(nil))
	defer srv.Close()
	head := good[:strings.Index(good, "stages:")] + "strategy: staged\nruntime: {kind: existing, urls: ['" + srv.URL + "']}\n"
	for _, c := range []struct{ text, want string }{
		{head + "engines: {vllm: {flags: [--served-model-name, Qwen/Qwen3-8B]}}\n", "Qwen/Qwen3-8B"},
		{strings.Replace(head, "engine: vllm", "engine: trtllm, set: {speculative: 'mtp:1'}", 1), "Qwen/Qwen3-14B"},
	} {
		dir, f := tuned(t, strings.Replace(c.text, "gpus: 2", "gpus: 1", 1), nil)
		if len(f.Trials[0].Runs) != 1 {
			t.Fatalf("trial 1 is %s: %s", f.Trials[0].Status, f.Trials[0].Reason)
		}
		run, err := rundir.OpenRun(filepath.Join(dir, f.Trials[0].Runs[0].Dir))
		if err != nil || run.Header.Model != c.want {
			t.Errorf("the run is of %q, want %q (%v)", run.Header.Model, c.want, err)
		}
	}
}

// TestDirectoryNames: what is special in a pattern is none in a directory's
// name, and trials come in their order.
func TestDirectoryNames(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Tune(t.Context(), s, []byte(small), Options{Dir: filepath.Join(t.TempDir(), "out[1]*"), Predictor: replay{}})
	if err != nil || len(f.Trials) == 0 || f.Recommended == nil {
		t.Errorf("%d trials, recommended %v (%v)", len(f.Trials), f.Recommended, err)
	}
	l := &directory{path: t.TempDir()}
	for _, id := range []int{1000, 101} {
		if err := os.MkdirAll(l.trial(id), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := rundir.WriteJSON(filepath.Join(l.trial(id), trialFile), trialRecord{Trial: outcome.Trial{ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := l.trials(); err != nil || len(all) != 2 || all[0].ID != 101 {
		t.Errorf("trials in the order %v (%v)", all, err)
	}
}

// TestModelName: a survey of one model on several engines is named after it.
func TestModelName(t *testing.T) {
	l := &factsMaker{Study: &study.Study{File: &study.File{Survey: []study.Candidate{{Model: "a/m"}, {Model: "a/m"}}}}}
	if got := l.modelName(); got != "a/m" {
		t.Errorf("model name %q", got)
	}
	l.Survey[1].Model = "a/n"
	if got := l.modelName(); got != "2 models" {
		t.Errorf("model name %q", got)
	}
}

// TestEngineDiesOnce: an engine that dies without a word is launched again.
func TestEngineDiesOnce(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := unchecked(small[:strings.Index(small, "stages:")]) + "strategy: staged\nruntime: {kind: process, ready_timeout_s: 10}\nbench: {num_warmups: 0}\n"
	t.Setenv("PATH", dir)
	if err := os.Symlink(self, filepath.Join(dir, "vllm")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LAB_DIES", filepath.Join(dir, "died"))
	out, f := tuned(t, text, nil)
	if r := f.Trials[0]; r.Status == tune.Failed || len(r.Runs) != 1 || f.Ledger.Launches < 2 {
		t.Errorf("trial 1 is %s (%s) with %d runs, %d launches", r.Status, r.Reason, len(r.Runs), f.Ledger.Launches)
	}
	b, err := os.ReadFile(filepath.Join(out, journalFile))
	if err != nil || !strings.Contains(string(b), "launched again") {
		t.Errorf("the journal does not tell of the second launch: %v", err)
	}
}

// TestBrokenAnswersEndTheTrial: a server that answers no warm-up ends its
// trial, and the study goes on.
func TestBrokenAnswersEndTheTrial(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/health", answer(nil))
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	text := small[:strings.Index(small, "stages:")] + "strategy: staged\nruntime: {kind: existing, urls: ['" + srv.URL + "']}\n"
	_, f := tuned(t, text, nil)
	if r := f.Trials[0]; r.Status != tune.Failed || !strings.Contains(r.Reason, "401") {
		t.Errorf("trial 1 is %s: %s", r.Status, r.Reason)
	}
}

// TestInterruptedAtEachPhase: wherever a study is interrupted, Tune returns why
// at once, the study so far can be read, no engine runs on, and resuming ends
// it as if nothing had been.
func TestInterruptedAtEachPhase(t *testing.T) {
	bin := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(bin, "vllm")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	text := unchecked(small[:strings.Index(small, "stages:")]) + "strategy: staged\nruntime: {kind: process, ready_timeout_s: 10}\nbench: {num_warmups: 1}\n"
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("interrupted")
	for _, phase := range []string{"preparing", "launching", bench.PhaseWaiting, bench.PhaseWarmUp, bench.PhaseMeasuring} {
		o := Options{Dir: filepath.Join(t.TempDir(), "out")}
		ctx, cancel := context.WithCancelCause(t.Context())
		o.Watch = func(st Status) {
			if st.Phase == phase {
				cancel(why)
			}
		}
		begun := time.Now()
		if f, err := Tune(ctx, s, []byte(text), o); !errors.Is(err, why) || !f.Partial || len(f.Trials) > 0 {
			t.Errorf("%s: %v, partial %v, %d trials", phase, err, f.Partial, len(f.Trials))
		}
		if took := time.Since(begun); took > 3*time.Second {
			t.Errorf("%s: the end takes %v", phase, took)
		}
		if left, err := filepath.Glob(filepath.Join(o.Dir, "trials", "*", "logs", "processes.json")); err != nil || len(left) > 0 {
			t.Errorf("%s: %v may still run (%v)", phase, left, err)
		}
		if f, err := rundir.OpenStudy(o.Dir); err != nil || !f.Partial {
			t.Errorf("%s: study.json: %v, partial %v", phase, err, f.Partial)
		}
		o.Watch, o.Resume = nil, true
		if f, err := Tune(t.Context(), s, []byte(text), o); err != nil || f.Partial || len(f.Trials) != 2 || len(f.Trials[0].Runs) != 1 {
			t.Errorf("%s: resumed: %v, partial %v, %d trials", phase, err, f.Partial, len(f.Trials))
		}
	}
}
