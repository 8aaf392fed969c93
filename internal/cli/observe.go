package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/forecast"
	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/rundir"
)

// observeFlags say of runs what they do not say themselves.
type observeFlags struct {
	command     string
	gpu         string
	gpus        int
	replicas    int
	modelConfig string
	simulated   bool
}

// validate checks the flags before any file is read.
func (f *observeFlags) validate() error {
	if f.gpu != "" {
		if _, err := arch.LookupAccelerator(f.gpu); err != nil {
			return usageError{fmt.Errorf("--gpu: %w", err)}
		}
	}
	if f.command != "" {
		if _, err := engine.ParseText(f.command); err != nil {
			return usageError{fmt.Errorf("--command: %w", err)}
		}
	}
	if f.gpus < 0 || f.replicas < 0 {
		return usageError{fmt.Errorf("--gpus is %d and --replicas %d: neither can be negative", f.gpus, f.replicas)}
	}
	return nil
}

// observer opens what a command line names, for a forecast.Observer.
type observer struct {
	*forecast.Observer
	env   Env
	files []interop.File // of other clients, read when all are known
}

// observe reads observations from sources: run directories and those that hold
// runs, other clients' files, published documents, files of observations.
func observe(env Env, f observeFlags, sources []string) (*forecast.Observer, error) {
	o := &observer{Observer: &forecast.Observer{Known: forecast.Known{
		Command: f.command, GPU: f.gpu, GPUs: f.gpus, Replicas: f.replicas, Simulated: f.simulated,
	}}, env: env}
	if f.modelConfig != "" {
		m, err := lookupModel("", f.modelConfig)
		if err != nil {
			return nil, usageError{err}
		}
		o.Known.Model = &m
	}
	for _, s := range sources {
		o.source(s)
	}
	o.Documents(o.files)
	return o.Observer, nil
}

// source reads one argument.
func (o *observer) source(path string) {
	if path == "-" {
		o.files = append(o.files, readInput(o.env.Stdin))
		return
	}
	file, number, line := path, 0, 0
	info, err := os.Stat(path)
	if err != nil {
		if file, number, line = split(path); file != path {
			info, err = os.Stat(file)
		}
	}
	switch {
	case err != nil:
		o.Omitf(path, "it cannot be read: %s", unwrapped(err))
	case !info.IsDir():
		o.file(file, path, number, line)
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
	entries, err := os.ReadDir(dir)
	if err != nil {
		o.Omitf(dir, "it cannot be read: %s", unwrapped(err))
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case !e.IsDir() || holdsRuns(path):
			o.source(path)
		default:
			o.Omitf(path, "a directory in a directory is not read: name it too")
		}
	}
	if len(entries) == 0 {
		o.Omitf(dir, "the directory has no file")
	}
}

// file reads a file of observations, or one of another client: of several runs
// the one that is meant, or all.
func (o *observer) file(path, arg string, number, line int) {
	data, err := os.ReadFile(path)
	if err != nil {
		o.Omitf(path, "it cannot be read: %s", unwrapped(err))
		return
	}
	if forecast.IsObservations(data) {
		o.Read(path, data)
		return
	}
	f := readData(path, data)
	if number > 0 || line > 0 {
		r, err := pick(&f, arg, number, line)
		if err != nil {
			o.Omit(arg, err)
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
func setupOf(s result.Study, t result.Trial) forecast.Setup {
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
	o.Run(&forecast.Measurement{Place: dir, Setup: at, Header: r.Header, Summary: s, Calls: r.Calls})
}
