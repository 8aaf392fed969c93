package forecast

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/audit"
	"perflab/internal/audit/document"
	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/interop"
	"perflab/internal/result"
)

// Known is what is known of runs that do not say it themselves.
type Known struct {
	Command   string
	GPU       string // short name of the accelerator
	GPUs      int    // of one replica; 0: as many as its command takes
	Replicas  int
	Version   string      // of the engine
	Model     *arch.Model // where the name of a model is not known
	Simulated bool        // SIMULATED runs count too
}

// Omission is a run, a figure or a file that gives no observation, and why.
type Omission struct {
	Place string `json:"place"` // file:line, or a directory
	Why   string `json:"why"`   // one sentence

	err error // names the values of Known that would mend it
}

// Observer turns runs into observations. Nothing is dropped without a word:
// what is not used is in Omitted.
type Observer struct {
	Known        Known
	Observations []calib.Observation
	Omitted      []Omission
	Simulated    bool // some run of Observations is

	ids map[string]bool
}

// Spell names the values that would mend the omission by a function from their
// paths, as "--gpu" for gpu.
func (o *Omission) Spell(name func(path string) string) {
	if e, ok := errors.AsType[*field.Error](o.err); ok {
		o.Why = e.Says(name)
	}
}

// Omit notes what gives no observation. An error of package field may name the
// values of Known that would mend it.
func (o *Observer) Omit(place string, err error) {
	o.Omitted = append(o.Omitted, Omission{Place: place, Why: err.Error(), err: err})
}

// Omitf notes what gives no observation.
func (o *Observer) Omitf(place, format string, args ...any) {
	o.Omit(place, fmt.Errorf(format, args...))
}

// IsObservations reports whether data is a list of calib.Observation.
func IsObservations(data []byte) bool {
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

// Read reads a list of observations from the data of a file.
func (o *Observer) Read(path string, data []byte) {
	obs, err := calib.ReadObservations(data)
	if err != nil {
		o.Omit(path, err)
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
func (o *Observer) add(place string, x calib.Observation) {
	if o.ids[x.ID] {
		o.Omitf(place, "a run called %s was read already", x.ID)
		return
	}
	if err := o.resolve(&x); err != nil {
		o.Omit(place, err)
		return
	}
	if o.ids == nil {
		o.ids = map[string]bool{}
	}
	o.ids[x.ID] = true
	o.Observations = append(o.Observations, x)
}

// anyGPUs stands for a machine with as many devices as the command takes.
const anyGPUs = 1 << 16

// resolve fills in what the command means. A model that is not known is
// Known.Model.
func (o *Observer) resolve(x *calib.Observation) error {
	if cmd, err := engine.ParseText(x.Command); err == nil && o.Known.Model != nil {
		if _, err := arch.LookupModel(cmd.Model); err != nil {
			x.Config.Model = *o.Known.Model
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

// Documents takes the runs of other clients' files, all of them at once. What
// the audit finds impossible in a figure costs that figure.
func (o *Observer) Documents(files []interop.File) {
	files = interop.Merge(files)
	all := document.Audit(files, audit.Options{})
	findings := audit.ByRun(all)
	for i := range files {
		f := &files[i]
		for _, fault := range f.Faults {
			o.Omitf(fault.Place.String(), "%s", fault.Text)
		}
		if len(f.Runs) == 0 && len(f.Faults) == 0 {
			o.Omitf(f.Name, "no result was found: no block that a client prints")
		}
		for j := range f.Runs {
			r := &f.Runs[j]
			s, err := r.Summary()
			if err == nil {
				err = contradicted(all, r)
			}
			if err != nil {
				o.Omit(r.Place.String(), err)
				continue
			}
			m := &Measurement{Place: r.Place.String(), Setup: Setup{Study: filepath.Base(f.Name)}, Header: r.Header, Summary: s, Calls: r.Calls}
			m.doubt(findings[r], r)
			o.Run(m)
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
func (m *Measurement) doubt(findings []audit.Finding, r *interop.Run) {
	for _, f := range findings {
		if strings.HasPrefix(f.Type, "prefix-cache") {
			m.dropFamily("ttft", f.Text)
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
			m.Summary.Verdict.Add(result.Check{Name: f.Type, Status: result.Voided, Text: f.Text})
		case slices.ContainsFunc(cited, func(name string) bool { return !m.usable(name) }):
		default:
			for _, name := range cited {
				m.drop(name, f.Text)
			}
		}
	}
}

// Run makes an observation of a run, or says why it gives none.
func (o *Observer) Run(m *Measurement) {
	m.Setup = m.Setup.completed(m.Header)
	x := calib.Observation{ID: m.Place, Study: m.Setup.Study, Workload: m.workload(), Replicas: m.Setup.Replicas, Version: cmp.Or(m.version(), o.Known.Version)}
	err := m.unfit(o.Known.Simulated)
	if err == nil {
		x.Load, err = m.load()
	}
	if err == nil {
		x.Command, err = m.serving(o.Known.Command)
	}
	if err == nil {
		x.GPU, err = m.accelerator(o.Known.GPU)
	}
	if err == nil {
		x.Figures, err = m.figures()
	}
	if err != nil {
		o.Omit(m.Place, err)
		return
	}
	x.GPUs, x.Replicas, x.Note = cmp.Or(m.Setup.GPUs, o.Known.GPUs), cmp.Or(m.Setup.Replicas, o.Known.Replicas), m.note
	if m.Header.Imported == nil && o.Known.Replicas > 0 {
		x.Replicas = o.Known.Replicas
	}
	for _, name := range slices.Sorted(maps.Keys(m.dropped)) {
		if _, has := m.Summary.Figures[name]; has && slices.Contains(calib.Scored, name) {
			o.Omitf(m.Place, "its %s is not used: %s", name, m.dropped[name])
		}
	}
	o.add(m.Place, x)
	o.Simulated = o.Simulated || m.Header.Simulated || m.Summary.Simulated
}
