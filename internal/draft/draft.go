// Package draft writes a first study file: from what a user answers, and what a look at the machine
// found, to a commented file that perflab tune takes.
//
//	file, err := draft.Make(draft.Answers{Model: "Qwen/Qwen3-8B"}, doctor.Look(ctx, probes))
//	os.WriteFile("study.yaml", file.Text, 0o644)
//
// Invariant: what Make returns is a valid study, for it is parsed before it is returned.
//
// Deliberately absent: a choice of what to try. That is the catalogue's, see package candidate: a
// file that names nothing has a race search all of it.
package draft

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/doctor"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/price"
	"perflab/internal/study"
)

// Answers are what a user says of a study. What is empty is taken from the machine, or is the usual.
type Answers struct {
	Engine    string   // in the catalogue
	Model     string   // repository id, or the path of a GGUF file
	GPU       string   // in the table of accelerators, or cpu
	GPUs      int      // 0: not said
	Runtime   string   // kind of runtime
	Objective string   // one of Objectives, or a metric
	SLOs      []string // as a study has them
	Workload  string   // names of Workloads or IN/OUT, by commas
	Price     string   // of the hardware an hour, with its currency
	Name      string   // of the study
}

// File is a study file that was made.
type File struct {
	Text  []byte
	Notes []string // what the user should know of it, one sentence each
}

// The usual of what neither a user nor the machine says.
const (
	usualEngine = "vllm"
	usualModel  = "Qwen/Qwen3-8B"
	usualGPU    = "h100-sxm"
	cpu         = "cpu"
)

// Fill is the answers with everything that was left open, as this machine suggests it.
func (a Answers) Fill(r doctor.Report) Answers {
	a.Runtime = cmp.Or(a.Runtime, a.runtime(r))
	a.Engine = cmp.Or(a.Engine, a.engine(r))
	a.GPU = cmp.Or(a.GPU, a.gpu(r))
	if a.GPUs == 0 {
		a.GPUs = max(1, count(r, a.GPU))
	}
	a.Model = cmp.Or(a.Model, a.model(r))
	a.Objective = cmp.Or(a.Objective, Objectives()[0].Name)
	a.Workload = cmp.Or(a.Workload, Workloads()[0].Name)
	a.Name = cmp.Or(a.Name, "study")
	return a
}

// startable are the names of the engines that could be started here as the answers want it.
func (a Answers) startable(r doctor.Report) []string {
	var out []string
	for _, e := range r.Engines {
		onCPU := e.OnCPU() && (a.GPU == "" && len(r.Accelerators) == 0 || a.GPU == cpu)
		onGPU := len(r.Accelerators) > 0 && (a.GPU == "" || count(r, a.GPU) > 0)
		if e.OnPath && (a.Engine == "" || a.Engine == e.Name) && (onCPU || onGPU) && r.Program.OS != "windows" {
			out = append(out, e.Name)
		}
	}
	return out
}

// runtime is how the study's engines start: as processes where an engine is installed, in containers
// where those are given GPUs, as they are where a server answers, else simulated.
func (a Answers) runtime(r doctor.Report) string {
	switch s, ok := serving(r); {
	case len(a.startable(r)) > 0:
		return study.Process
	case a.Engine == "llamacpp": // which is not modelled
		return study.Process
	case len(r.Accelerators) > 0 && r.Docker != nil && r.Docker.GivesGPUs() && (a.GPU == "" || count(r, a.GPU) > 0) && images[cmp.Or(a.Engine, usualEngine)] != "":
		return study.Docker
	case ok && (a.Engine == "" || s.Engine == a.Engine) && (a.Model == "" || slices.Contains(s.Models, a.Model)) && (a.GPU == "" || count(r, a.GPU) > 0):
		return study.Existing
	case r.Program.OS == "windows":
		return study.Predicted
	}
	return study.Simulated
}

// serving is a real server that answers here, which says what engine it is.
func serving(r doctor.Report) (doctor.Server, bool) {
	for _, s := range r.Servers {
		if !s.Simulated && len(s.Models) > 0 && s.Engine != "" {
			return s, true
		}
	}
	return doctor.Server{}, false
}

func (a Answers) engine(r doctor.Report) string {
	if s, ok := serving(r); a.Runtime == study.Existing && ok {
		return s.Engine
	}
	if names := a.startable(r); a.Runtime == study.Process && len(names) > 0 {
		return names[0]
	}
	return usualEngine
}

func (a Answers) gpu(r doctor.Report) string {
	modelled := a.Runtime == study.Simulated || a.Runtime == study.Predicted
	switch {
	case len(r.Accelerators) > 0 && len(r.Accelerators[0].Known) > 0:
		return r.Accelerators[0].Known[0]
	case modelled || len(r.Accelerators) > 0:
		return usualGPU
	case a.Engine == "llamacpp" || a.Runtime == study.Existing:
		return cpu
	}
	if e, ok := r.Engine(a.Engine); ok && e.OnCPU() {
		return cpu
	}
	return usualGPU
}

// count is how many of an accelerator this machine has.
func count(r doctor.Report, gpu string) int {
	n := 0
	for _, a := range r.Accelerators {
		if slices.Contains(a.Known, gpu) {
			n++
		}
	}
	return n
}

// model is what a server serves, or the first of the cache whose weights are all there.
func (a Answers) model(r doctor.Report) string {
	if s, ok := serving(r); a.Runtime == study.Existing && ok {
		return s.Models[0]
	}
	if a.Engine == "llamacpp" {
		return ""
	}
	for _, m := range r.Models {
		if m.Weights == doctor.AllWeights && (m.Known || m.Config != "") {
			return m.ID
		}
	}
	return usualModel
}

// Check says what is wrong with the answers that are given, each by its field's name.
func (a Answers) Check() error {
	for _, f := range []struct {
		path string
		err  error
	}{
		{"engine", given(a.Engine, func(s string) error { _, err := engine.ByName(s); return err })},
		{"gpu", given(a.GPU, func(s string) error { _, err := arch.LookupAccelerator(s); return err })},
		{"gpus", gpusError(a.GPUs)},
		{"runtime", given(a.Runtime, runtimeError)},
		{"objective", given(a.Objective, func(s string) error { _, err := objective(s); return err })},
		{"workload", given(a.Workload, func(s string) error { _, err := loads(s); return err })},
		{"price_per_hour", given(a.Price, func(s string) error { return new(price.Hourly).UnmarshalText([]byte(s)) })},
	} {
		if f.err != nil {
			return field.Errorf(f.path, "%v", f.err)
		}
	}
	if a.needsPrice() {
		return field.Errorf("price_per_hour", "is missing: the objective %s is counted from what the hardware costs an hour, such as '32 USD'", a.Objective)
	}
	for _, text := range a.SLOs {
		if _, err := study.ParseBound(text); err != nil {
			return field.Errorf("slo", "%v", err)
		}
	}
	return nil
}

// needsPrice reports whether the objective is counted from a price that is not given.
func (a Answers) needsPrice() bool {
	o, err := objective(a.Objective)
	return err == nil && strings.HasPrefix(o.Metric, "cost_") && a.Price == ""
}

func given(text string, check func(string) error) error {
	if text == "" {
		return nil
	}
	return check(text)
}

func gpusError(n int) error {
	if n < 0 || n > bench.MostGPUs {
		return fmt.Errorf("is %d: say how many devices the study has, from 1 to %d", n, bench.MostGPUs)
	}
	return nil
}

// Runtimes are the kinds that a draft can be of: ssh needs machines, which nobody is asked for.
func Runtimes() []string {
	return []string{study.Process, study.Docker, study.Existing, study.Simulated, study.Predicted}
}

func runtimeError(kind string) error {
	if !slices.Contains(Runtimes(), kind) {
		return fmt.Errorf("%q is not known here: use %s (for ssh see examples/ssh-two-nodes.yaml)", kind, strings.Join(Runtimes(), ", "))
	}
	return nil
}

// Make makes the file. What the answers leave open is filled in.
func Make(a Answers, r doctor.Report) (File, error) {
	if err := a.Check(); err != nil {
		return File{}, err
	}
	named := a.Engine != ""
	a = a.Fill(r)
	err := a.modelError(r)
	if err != nil {
		return File{}, err
	}
	for _, limited := range []bool{false, true} { // the model's whole context before a part of it
		for tp := 1; tp <= a.GPUs && a.GPUs%tp == 0; tp *= 2 { // the fewest devices
			s, wrong := newSheet(a, r, tp, limited, named)
			if wrong != nil {
				return File{}, wrong
			}
			text := s.text()
			if _, err = study.Parse(a.Name+".yaml", text); err == nil {
				return File{Text: text, Notes: s.notes()}, nil
			}
			if a.Runtime == study.Existing || a.Engine == "llamacpp" {
				return File{}, a.impossible(err)
			}
		}
	}
	return File{}, a.impossible(err)
}

// impossible says why there is no study of the answers.
func (a Answers) impossible(err error) error {
	return fmt.Errorf("no study can be made of %s with %s on %d x %s: %w", a.Model, a.Engine, a.GPUs, a.GPU, reason(err))
}

// modelError says why no study can be of the model: perflab must know its numbers, by its own table
// or by a config.json in the cache of models.
func (a Answers) modelError(r doctor.Report) error {
	_, err := arch.LookupModel(a.Model)
	cached := slices.ContainsFunc(r.Models, func(m doctor.Model) bool { return m.ID == a.Model && m.Config != "" })
	switch {
	case a.Model == "":
		return field.Errorf("model", "is missing: name the GGUF file that llama-server is to serve")
	case !utf8.ValidString(a.Model):
		return field.Errorf("model", "%q is no text in UTF-8", a.Model)
	case err == nil, cached, a.Engine == "llamacpp", a.Runtime == study.Existing:
		return nil
	}
	var nearest *field.Error
	if errors.As(err, &nearest) {
		return field.Errorf("model", "%s: %s; a model that is in the Hugging Face cache is read there", a.Model, strings.TrimSuffix(nearest.Reason, "; for another, give its config.json by model_config"))
	}
	return field.Errorf("model", "%v", err)
}

// reason is what is wrong with a file that nobody has seen, without its lines.
func reason(err error) error {
	var reasons []string
	if e, ok := err.(*study.Error); ok {
		for _, p := range e.Problems {
			_, text, _ := strings.Cut(p, ": ")
			reasons = append(reasons, text)
		}
		return fmt.Errorf("%s", strings.Join(reasons, "; "))
	}
	return err
}
