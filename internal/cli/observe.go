package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/audit"
	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/interop"
	"perflab/internal/lab"
	"perflab/internal/result"
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

// unused is a run, a figure or a file that gives no observation, and why.
type unused struct {
	Place string `json:"place"` // file:line, or a directory
	Why   string `json:"why"`   // one sentence
}

// observer turns what a command line names into observations. Nothing is
// dropped without a word: what is not used is in left.
type observer struct {
	env   Env
	flags observeFlags
	model *arch.Model // of --model-config
	obs   []calib.Observation
	left  []unused
	ids   map[string]bool
	files []interop.File // of other clients, read when all are known

	simulated bool // some run of obs is
}

// observe reads observations from sources: run directories and those that hold
// runs, other clients' files, published documents, files of observations.
func observe(env Env, f observeFlags, sources []string) (*observer, error) {
	o := &observer{env: env, flags: f, ids: map[string]bool{}}
	if f.modelConfig != "" {
		m, err := lookupModel("", f.modelConfig)
		if err != nil {
			return nil, usageError{err}
		}
		o.model = &m
	}
	for _, s := range sources {
		o.source(s)
	}
	o.documents()
	return o, nil
}

func (o *observer) leave(place, format string, args ...any) {
	o.left = append(o.left, unused{place, fmt.Sprintf(format, args...)})
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
		o.leave(path, "it cannot be read: %s", unwrapped(err))
	case !info.IsDir():
		o.file(file, path, number, line)
	case lab.IsStudy(path):
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
		o.leave(dir, "it cannot be read: %s", unwrapped(err))
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case !e.IsDir() || holdsRuns(path):
			o.source(path)
		default:
			o.leave(path, "a directory in a directory is not read: name it too")
		}
	}
	if len(entries) == 0 {
		o.leave(dir, "the directory has no file")
	}
}

// file reads a file of observations, or one of another client: of several runs
// the one that is meant, or all.
func (o *observer) file(path, arg string, number, line int) {
	data, err := os.ReadFile(path)
	if err != nil {
		o.leave(path, "it cannot be read: %s", unwrapped(err))
		return
	}
	if isObservations(data) {
		o.observations(path, data)
		return
	}
	f := readData(path, data)
	if number > 0 || line > 0 {
		r, err := pick(&f, arg, number, line)
		if err != nil {
			o.leave(arg, "%v", err)
			return
		}
		f.Runs = []interop.Run{*r}
	}
	o.files = append(o.files, f)
}

// isObservations reports whether data is a list of calib.Observation.
func isObservations(data []byte) bool {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var first map[string]json.RawMessage
	if _, err := dec.Token(); err != nil || dec.Decode(&first) != nil {
		return false
	}
	return first["load"] != nil && first["command"] != nil
}

func (o *observer) observations(path string, data []byte) {
	obs, err := calib.ReadObservations(data)
	if err != nil {
		o.leave(path, "%v", err)
		return
	}
	for _, x := range obs {
		if x.Study == "" {
			x.Study = filepath.Base(path)
		}
		o.add(path+"#"+x.ID, x)
	}
}

// add resolves an observation and keeps it.
func (o *observer) add(place string, x calib.Observation) {
	if o.ids[x.ID] {
		o.leave(place, "a run called %s was read already", x.ID)
		return
	}
	if err := o.resolve(&x); err != nil {
		o.leave(place, "%v", err)
		return
	}
	o.ids[x.ID] = true
	o.obs = append(o.obs, x)
}

// anyGPUs stands for a machine with as many devices as the command takes.
const anyGPUs = 1 << 16

// resolve fills in what the command means. A model that is not known is that of
// --model-config.
func (o *observer) resolve(x *calib.Observation) error {
	if cmd, err := engine.ParseText(x.Command); err == nil && o.model != nil {
		if _, err := arch.LookupModel(cmd.Model); err != nil {
			x.Config.Model = *o.model
			x.Config.Model.Name = cmd.Model
		}
	}
	counted := x.GPUs > 0
	if !counted {
		x.GPUs = anyGPUs
	}
	if err := x.Resolve(); err != nil {
		return err
	}
	if !counted {
		x.GPUs = x.Config.GPUs
	}
	return nil
}

// study reads the runs of a study; command, replicas and hardware are those of
// its trials.
func (o *observer) study(dir string) {
	s, err := lab.OpenStudy(dir)
	if err != nil {
		o.leave(dir, "%v", err)
		return
	}
	runs := 0
	for _, t := range s.Trials {
		if len(t.Runs) == 0 {
			o.leave(fmt.Sprintf("%s, trial %d", dir, t.ID), "it has no run: %s", cmp.Or(t.Reason, t.Status))
		}
		for _, r := range t.Runs {
			runs++
			o.run(filepath.Join(dir, r.Dir), setup{
				study: s.Name, command: t.Command, engines: s.Engines, hardware: s.Hardware, replicas: t.Replicas, gpus: t.GPUs / max(1, t.Replicas),
			})
		}
	}
	if runs == 0 {
		o.leave(dir, "the study has no run")
	}
}

// runs reads a run directory, or those of an import or a series.
func (o *observer) runs(dir string) {
	dirs, _, err := lab.RunDirs(dir)
	if err != nil {
		o.leave(dir, "%v", err)
		return
	}
	study := filepath.Base(filepath.Clean(dir))
	for _, d := range dirs {
		if trial := launch(d); trial != "" {
			o.trialRun(trial, d)
			continue
		}
		o.run(d, setup{study: study})
	}
}

// trialRun reads one run of a study with what the study knows of it.
func (o *observer) trialRun(trial, dir string) {
	root := filepath.Dir(filepath.Dir(trial))
	s, err := lab.OpenStudy(root)
	if err != nil {
		o.leave(dir, "%v", err)
		return
	}
	for _, t := range s.Trials {
		for _, r := range t.Runs {
			if filepath.Join(root, r.Dir) == filepath.Clean(dir) {
				o.run(dir, setup{study: s.Name, command: t.Command, engines: s.Engines, hardware: s.Hardware, replicas: t.Replicas, gpus: t.GPUs / max(1, t.Replicas)})
				return
			}
		}
	}
	o.run(dir, setup{study: s.Name, hardware: s.Hardware})
}

// run reads a run directory.
func (o *observer) run(dir string, at setup) {
	r, err := lab.OpenRun(dir)
	if err != nil {
		o.leave(dir, "%v", err)
		return
	}
	if r.Damage != "" {
		o.leave(dir, "%s", r.Damage)
		return
	}
	s, err := r.Resummarise()
	if err != nil {
		o.leave(dir, "%v", err)
		return
	}
	o.measured(&measured{place: dir, setup: at.of(r.Header), header: r.Header, summary: s, calls: r.Calls})
}

// documents reads the runs of other clients' files. What the audit finds
// impossible in a figure costs that figure.
func (o *observer) documents() {
	files := interop.Merge(o.files)
	findings := map[*interop.Run][]audit.Finding{}
	all := audit.Files(files, audit.Options{})
	for _, f := range all {
		for _, x := range append([]audit.Finding{f}, f.Also...) {
			if x.Run != nil {
				findings[x.Run] = append(findings[x.Run], x)
			}
		}
	}
	for i := range files {
		f := &files[i]
		for _, fault := range f.Faults {
			o.leave(fault.Place.String(), "%s", fault.Text)
		}
		if len(f.Runs) == 0 && len(f.Faults) == 0 {
			o.leave(f.Name, "no result was found: no block that a client prints")
		}
		for j := range f.Runs {
			r := &f.Runs[j]
			s, err := r.Summary()
			if err == nil {
				err = contradicted(all, r)
			}
			if err != nil {
				o.leave(r.Place.String(), "%v", err)
				continue
			}
			m := &measured{place: r.Place.String(), setup: setup{study: filepath.Base(f.Name)}.of(r.Header), header: r.Header, summary: s, calls: r.Calls}
			m.doubt(findings[r], r)
			o.measured(m)
		}
	}
}

// contradictions are findings after which nobody knows what was measured.
var contradictions = []string{"engine-contradicts-heading", "model-contradicts-heading", "script-contradicts-block", "duplicate-block"}

// contradicted returns a finding that leaves open what a run was measured on:
// one of the run, or of the scripts in its section.
func contradicted(all []audit.Finding, r *interop.Run) error {
	for _, f := range all {
		for _, x := range append([]audit.Finding{f}, f.Also...) {
			section := x.Run == nil && x.Place.File == r.Place.File && len(x.Place.Section) > 0 && slices.Equal(x.Place.Section, r.Place.Section)
			if slices.Contains(contradictions, x.Type) && (x.Run == r || section) {
				return fmt.Errorf("what was measured is in doubt: %s", x.Text)
			}
		}
	}
	return nil
}

// doubt takes away the figures that an audit's finding says cannot be true or
// were helped by a cache. Where some of those that it cites are of a definition
// that is not used anyway, they are to blame; a finding that cites none is of
// the whole run.
func (m *measured) doubt(findings []audit.Finding, r *interop.Run) {
	for _, f := range findings {
		if strings.HasPrefix(f.Type, "prefix-cache") {
			m.dropAll("ttft", f.Text)
		}
		if f.Severity != audit.Error {
			continue
		}
		var cited []string
		for _, c := range f.Figures {
			if i := slices.IndexFunc(r.Figures, func(x interop.Figure) bool { return x.Label == c.Label }); i >= 0 {
				cited = append(cited, r.Figures[i].Name)
			}
		}
		switch {
		case len(cited) == 0:
			m.summary.Verdict.Add(result.Check{Name: f.Type, Status: result.Voided, Text: f.Text})
		case slices.ContainsFunc(cited, func(name string) bool { return !m.usable(name) }):
		default:
			for _, name := range cited {
				m.drop(name, f.Text)
			}
		}
	}
}
