//go:build !race

package lab

// Each life of an interrupted race predicts all anew, which takes minutes with the race
// detector; what runs at the same time is the same in the tests beside these.

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"perflab/internal/outcome"
	"perflab/internal/study"
)

// TestRaceResumes: a race that is interrupted wherever it stands, also while it
// ranks, goes on to the same end.
func TestRaceResumes(t *testing.T) {
	t.Parallel()
	_, whole := tuned(t, fewArms, paced{})
	s, err := study.Parse("t.yaml", []byte(fewArms))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("interrupted")
	o := Options{Dir: filepath.Join(t.TempDir(), "out"), strategist: raced}
	f := outcome.Study{Partial: true}
	for lives := 0; f.Partial; lives++ {
		if lives > 200 {
			t.Fatal("it comes to no end")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		runs := 0
		o.Predictor = paced{func() {
			if runs++; runs > 3+lives*lives {
				cancel(why)
			}
		}}
		f, err = Tune(ctx, s, []byte(fewArms), o)
		if err != nil && !errors.Is(err, why) {
			t.Fatal(err)
		}
		cancel(nil)
		if f.Schema == "" {
			f.Partial = true // it never began
		}
		_, err := os.Stat(filepath.Join(o.Dir, journalFile))
		o.Resume = err == nil
	}
	if !reflect.DeepEqual(f.Conclusion, whole.Conclusion) || !reflect.DeepEqual(f.Race, whole.Race) || len(f.Trials) != len(whole.Trials) {
		t.Errorf("ends with %+v\nnot       %+v\n%+v\n%+v", f.Conclusion, whole.Conclusion, f.Race, whole.Race)
	}
	for i := range f.Trials {
		if a, b := f.Trials[i], whole.Trials[i]; a.Label != b.Label || !maps.Equal(a.Config, b.Config) {
			t.Errorf("trial %d: %s, not %s", i+1, a.Label, b.Label)
		}
	}
}

// TestSweepResumes: a study of several loads that is interrupted in the middle of a launch goes on to the same end.
func TestSweepResumes(t *testing.T) {
	t.Parallel()
	_, whole := tuned(t, sweptArms, crossing{})
	s, err := study.Parse("t.yaml", []byte(sweptArms))
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("interrupted")
	o := Options{Dir: filepath.Join(t.TempDir(), "out"), strategist: raced}
	f := outcome.Study{Partial: true}
	lives := 0
	for most := 20; f.Partial; most *= 3 { // each life predicts all anew
		if lives++; lives > 20 {
			t.Fatal("it comes to no end")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		runs := 0
		o.Predictor = crossing{func() {
			if runs++; runs > most {
				cancel(why)
			}
		}}
		if f, err = Tune(ctx, s, []byte(sweptArms), o); err != nil && !errors.Is(err, why) {
			t.Fatal(err)
		}
		cancel(nil)
		if f.Schema == "" {
			f.Partial = true
		}
		_, err := os.Stat(filepath.Join(o.Dir, journalFile))
		o.Resume = err == nil
	}
	if lives < 2 {
		t.Fatal("it was never interrupted")
	}
	if !reflect.DeepEqual(f.Conclusion, whole.Conclusion) || !reflect.DeepEqual(f.Curves, whole.Curves) || len(f.Trials) != len(whole.Trials) {
		t.Errorf("ends with %+v\nnot       %+v", f.Conclusion, whole.Conclusion)
	}
	for i := range f.Trials {
		if !maps.Equal(f.Trials[i].Config, whole.Trials[i].Config) {
			t.Errorf("trial %d is another", i+1)
		}
	}
}
