package source

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"

	"perflab/internal/forecast"
	"perflab/internal/input"
	"perflab/internal/interop"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
)

// observer opens sources for a forecast.Observer.
type observer struct {
	*forecast.Observer
	stdin io.Reader
	files []interop.File // of other clients, read when all are known
}

// Observe reads observations from sources: run directories and those that hold
// runs, other clients' files, published documents, files of observations.
func Observe(to *forecast.Observer, paths []string, stdin io.Reader) {
	o := &observer{Observer: to, stdin: stdin}
	for _, path := range paths {
		o.source(path)
	}
	o.Documents(o.files)
}

// source reads one argument.
func (o *observer) source(path string) {
	if path == "-" {
		o.files = append(o.files, readInput(o.stdin))
		return
	}
	ref, info, err := resolve(path)
	switch {
	case err != nil:
		o.Omitf(path, "it cannot be read: %s", Reason(err))
	case !info.IsDir():
		o.file(ref)
	case rundir.IsStudy(path):
		o.study(path)
	case holdsRuns(path):
		o.runs(path)
	default:
		o.directory(path)
	}
}

// directory reads what lies in a directory that is no run itself.
func (o *observer) directory(dir string) {
	paths, err := list(dir, false, func(place, why string) { o.Omitf(place, "%s", why) })
	if err != nil {
		o.Omitf(dir, "it cannot be read: %s", Reason(err))
	}
	for _, path := range paths {
		o.source(path)
	}
}

// file reads a file of observations, or one of another client: of several runs
// the one that is meant, or all.
func (o *observer) file(ref reference) {
	data, err := input.File(ref.path, mostFile)
	if err != nil {
		o.Omitf(ref.path, "it cannot be read: %s", Reason(err))
		return
	}
	if forecast.IsObservations(data) {
		o.Read(ref.path, data)
		return
	}
	f := readData(ref.path, data)
	if !ref.whole() {
		r, err := ref.pick(&f)
		if err != nil {
			o.Omit(ref.arg, err)
			return
		}
		f.Runs = []interop.Run{*r}
	}
	o.files = append(o.files, f)
}

// study reads the runs of a study; command, replicas and hardware are those of
// its trials.
func (o *observer) study(dir string) {
	s, err := rundir.OpenStudy(dir)
	if err != nil {
		o.Omit(dir, err)
		return
	}
	runs := 0
	for _, t := range s.Trials {
		if len(t.Runs) == 0 {
			o.Omitf(fmt.Sprintf("%s, trial %d", dir, t.ID), "it has no run: %s", cmp.Or(t.Reason, t.Status))
		}
		for _, r := range t.Runs {
			runs++
			o.run(filepath.Join(dir, r.Dir), setupOf(s, t))
		}
	}
	if runs == 0 {
		o.Omitf(dir, "the study has no run")
	}
}

// setupOf is what a study knows of the runs of a trial.
func setupOf(s outcome.Study, t outcome.Trial) forecast.Setup {
	return forecast.Setup{
		Study: s.Name, Command: t.Command, Engines: s.Engines, Hardware: s.Hardware, Replicas: t.Replicas, GPUs: t.GPUs / max(1, t.Replicas),
	}
}

// runs reads a run directory, or those of an import or a series.
func (o *observer) runs(dir string) {
	dirs, _, err := rundir.Runs(dir)
	if err != nil {
		o.Omit(dir, err)
		return
	}
	study := filepath.Base(filepath.Clean(dir))
	for _, d := range dirs {
		if trial := launch(d); trial != "" {
			o.trialRun(trial, d)
			continue
		}
		o.run(d, forecast.Setup{Study: study})
	}
}

// trialRun reads one run of a study with what the study knows of it.
func (o *observer) trialRun(trial, dir string) {
	root := filepath.Dir(filepath.Dir(trial))
	s, err := rundir.OpenStudy(root)
	if err != nil {
		o.Omit(dir, err)
		return
	}
	for _, t := range s.Trials {
		for _, r := range t.Runs {
			if filepath.Join(root, r.Dir) == filepath.Clean(dir) {
				o.run(dir, setupOf(s, t))
				return
			}
		}
	}
	o.run(dir, forecast.Setup{Study: s.Name, Hardware: s.Hardware})
}

// run reads a run directory.
func (o *observer) run(dir string, at forecast.Setup) {
	r, err := rundir.OpenRun(dir)
	if err != nil {
		o.Omit(dir, err)
		return
	}
	if r.Damage != "" {
		o.Omitf(dir, "%s", r.Damage)
		return
	}
	s, err := r.Resummarise()
	if err != nil {
		o.Omit(dir, err)
		return
	}
	if r.Every > 1 {
		o.Omitf(dir, "it has %d calls, too many to replay: calibrate by a shorter run", r.Len())
		return
	}
	o.Run(&forecast.Measurement{Place: dir, Setup: at, Header: r.Header, Summary: s, Calls: r.Calls})
}
