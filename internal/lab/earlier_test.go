package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// aided is fewArms with an earlier study; its trials are predicted, so that it is quick.
func aided(t *testing.T, more string) (*study.Study, []byte) {
	t.Helper()
	text := []byte(strings.Replace(fewArms, "kind: predicted", "kind: simulated", 1) + more)
	s, err := study.Parse("t.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	s.Runtime.Kind = study.Predicted
	return s, text
}

// reader gives an earlier study that is of a likeness, and counts how often it is asked.
func reader(asked *int, likeness float64) func(*study.Study) ([]outcome.Earlier, error) {
	return func(s *study.Study) ([]outcome.Earlier, error) {
		*asked++
		var e outcome.Earlier
		e.Name, e.Path, e.Likeness, e.Configurations = "before", s.Earlier[0], likeness, 2
		for i, name := range []string{"vllm", "sglang"} {
			e.Measured = append(e.Measured, tune.Known{Config: tune.Config{"engine": name, "model": "Qwen/Qwen3-8B"}, Figures: map[string]float64{"total_token_throughput": float64(1 + i)}})
		}
		return []outcome.Earlier{e}, nil
	}
}

// TestEarlierFrozen: what was read of earlier studies is kept. A study that goes on reads it
// there, whatever has become of them, and refuses it changed.
func TestEarlierFrozen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	asked, ended := 0, 0
	ctx, stop := context.WithCancelCause(t.Context())
	o := Options{Dir: dir, strategist: raced, Earlier: reader(&asked, 0.5), Predictor: paced{func() {
		if ended > 3 {
			stop(errors.New("enough"))
		}
	}}, Watch: func(s Status) { hook(func() { ended = s.Ended }).call() }}
	s, text := aided(t, "earlier: [gone]\n")
	if _, err := Tune(ctx, s, text, o); err == nil {
		t.Fatal("it was not stopped")
	}
	kept, err := os.ReadFile(filepath.Join(dir, earlierFile))
	if err != nil || !strings.Contains(string(kept), `"likeness": 0.5`) {
		t.Fatalf("%v: kept %s", err, kept)
	}
	o.Resume, o.Predictor, o.Watch = true, paced{}, nil
	resume := func(more string) (outcome.Study, error) {
		s, text := aided(t, more)
		return Tune(t.Context(), s, text, o)
	}
	if _, err := resume("earlier: [gone, other]\n"); err == nil || !strings.Contains(err.Error(), "it did not begin with the earlier study other") {
		t.Errorf("it goes on with another: %v", err)
	}
	changed := strings.Replace(string(kept), `"likeness": 0.5`, `"likeness": 0.6`, 1)
	for _, wrong := range []string{changed, "{"} {
		if err := os.WriteFile(filepath.Join(dir, earlierFile), []byte(wrong), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := resume("earlier: [gone]\n"); err == nil || !strings.Contains(err.Error(), earlierFile) {
			t.Errorf("it goes on with %s changed: %v", earlierFile, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, earlierFile), kept, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := resume("earlier: [gone]\n")
	if err != nil || asked != 1 {
		t.Fatalf("%v; the earlier study was read %d times", err, asked)
	}
	if len(f.Earlier) != 1 || f.Earlier[0].Measured != nil || f.Earlier[0].Configurations != 2 {
		t.Errorf("facts %+v", f.Earlier)
	}
	if !f.Confirmed || f.Recommended == nil || f.Recommended.Engine != "sglang" {
		t.Errorf("recommended %+v", f.Recommended)
	}
	whole := o
	whole.Dir, whole.Resume = filepath.Join(t.TempDir(), "whole"), false
	s, text = aided(t, "earlier: [gone]\n")
	w, err := Tune(t.Context(), s, text, whole)
	if err != nil {
		t.Fatal(err)
	}
	course := func(f outcome.Study) (out []map[string]string) {
		for _, t := range f.Trials {
			out = append(out, t.Config)
		}
		return out
	}
	if !reflect.DeepEqual(course(f), course(w)) {
		t.Error("a study that was interrupted took another course than one that was not")
	}
}

// TestEarlierUnread: a study that names earlier ones does not begin without them.
func TestEarlierUnread(t *testing.T) {
	for _, read := range []func(*study.Study) ([]outcome.Earlier, error){nil, func(*study.Study) ([]outcome.Earlier, error) { return nil, errors.New("gone") }} {
		dir := filepath.Join(t.TempDir(), "out")
		s, text := aided(t, "earlier: [gone]\n")
		if _, err := Tune(t.Context(), s, text, Options{Dir: dir, strategist: raced, Predictor: paced{}, Earlier: read}); err == nil {
			t.Error("it began")
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("a directory is left that the next start finds in its way")
		}
	}
}
