package forecast

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/engine/advice"
	"perflab/internal/redact"
)

// Command is a serving command as a user gave it, or why it is none that its
// engine would start with.
type Command struct {
	Line    string         // as it was given
	Command engine.Command // with its configuration file read; the zero one where it could not be parsed
	Refused error          // by the engine: see IsRefusal
}

// Axis is an engine-neutral parameter with the values to try; an empty value
// is the engine's default.
type Axis struct {
	Param  string
	Values []string
}

// Hardware is what each configuration is tried on.
type Hardware struct {
	Accelerators []arch.Accelerator
	GPUs         int                              // that the machine has
	Model        func(string) (arch.Model, error) // by its name
}

// Deployment is a serving command on a machine, or why the engine would not
// start there.
type Deployment struct {
	Refused error // nil: it would start

	cmd      engine.Command
	line     string // as given, where it could not be parsed
	gpu      arch.Accelerator
	gpus     int
	config   engine.Config
	replicas int
	grid     map[string]string // its values
	notes    []string
}

// IsRefusal reports whether an error is what the engine itself would refuse to
// start with, and not a mistake of who asks.
func IsRefusal(err error) bool {
	if _, ok := errors.AsType[*engine.Rejection](err); ok {
		return true
	}
	e, ok := errors.AsType[*engine.UsageError](err)
	return ok && e.Exit != 0
}

// Deployments are all commands with all combinations of the grid's values on
// all accelerators. What an engine would refuse is no error.
func Deployments(commands []Command, grid []Axis, h Hardware) ([]Deployment, error) {
	combinations := combine(grid)
	var out []Deployment
	for _, gpu := range h.Accelerators {
		for _, c := range commands {
			for _, values := range combinations {
				d, err := deployment(c, values, gpu, h)
				if err != nil && !IsRefusal(err) {
					return nil, err
				}
				d.Refused = err
				out = append(out, d)
			}
		}
	}
	return out, nil
}

// combine makes all combinations of a grid's values; of none the empty one.
func combine(grid []Axis) []map[string]string {
	out := []map[string]string{{}}
	for _, axis := range grid {
		var next []map[string]string
		for _, before := range out {
			for _, v := range axis.Values {
				values := maps.Clone(before)
				values[axis.Param] = v
				next = append(next, values)
			}
		}
		out = next
	}
	return out
}

// deployment resolves a command with values of the grid.
func deployment(c Command, values map[string]string, gpu arch.Accelerator, h Hardware) (Deployment, error) {
	d := Deployment{line: c.Line, cmd: c.Command, gpu: gpu, gpus: h.GPUs, grid: values}
	if c.Refused != nil {
		return d, c.Refused
	}
	if err := c.Command.Modelled(); err != nil {
		return d, err
	}
	if len(values) > 0 {
		if err := d.set(values); err != nil {
			return d, err
		}
	}
	model, err := h.Model(d.cmd.Model)
	if err != nil {
		return d, err
	}
	if d.config, err = d.cmd.Resolve(model, gpu, h.GPUs); err != nil {
		return d, err
	}
	d.replicas = d.config.Replicas(h.GPUs)
	if flags := d.cmd.Unmodelled(); len(flags) > 0 {
		d.notes = append(d.notes, "Not simulated, figures are as without: "+strings.Join(flags, " "))
	}
	if since := d.laterGeneration(h.GPUs); since != "" {
		d.notes = append(d.notes, fmt.Sprintf("Note: the engine's version is not given, and it is taken for one before %s: from there on its host takes far less time.", since))
	}
	for _, remark := range advice.Of(d.config) {
		d.notes = append(d.notes, "Note: "+remark)
	}
	return d, nil
}

// laterGeneration is the first version of the engine that is another one to predictions than
// the command is taken for, as nobody says its version; "" where there is none.
func (d *Deployment) laterGeneration(gpus int) string {
	e, err := engine.ByName(d.cmd.Engine)
	if err != nil || d.cmd.Version != "" || len(e.Versions()) == 0 {
		return ""
	}
	cmd, versions := d.cmd, e.Versions()
	cmd.Version = versions[len(versions)-1]
	newest, err := cmd.Resolve(d.config.Model, d.gpu, gpus)
	if err != nil || newest.Generation == d.config.Generation {
		return ""
	}
	return newest.Generation
}

// set gives the command other values of its parameters.
func (d *Deployment) set(values map[string]string) error {
	was := d.cmd
	params := maps.Clone(was.Params)
	if params == nil {
		params = map[string]string{}
	}
	maps.Copy(params, values)
	cmd, err := engine.New(was.Engine, was.Model, params, was.Extra)
	if err != nil { // what is shown of it
		d.cmd = engine.Command{Engine: was.Engine, Model: was.Model, Params: params, Extra: was.Extra, File: was.File}
		return err
	}
	cmd.Env, cmd.Host, cmd.Port, cmd.File, cmd.Version = was.Env, was.Host, was.Port, was.File, was.Version
	d.cmd = cmd
	return nil
}

// describe gives what a table shows of the deployment.
func (d *Deployment) describe(label string) Configuration {
	out := Configuration{
		Label: label, Command: d.text(), Engine: d.cmd.Engine, Model: d.cmd.Model,
		GPU: d.gpu.Name, GPUTitle: d.gpu.Title, GPUs: d.gpus, Notes: d.notes,
	}
	if d.Refused != nil {
		out.Refused, _, _ = strings.Cut(strings.TrimSpace(d.Refused.Error()), "\n")
		return out
	}
	out.Each, out.Replicas = d.config.GPUs, d.replicas
	out.Memory = new(d.config.Memory())
	return out
}

// text is the command to copy, without secrets.
func (d *Deployment) text() string {
	if d.cmd.Engine == "" {
		return redact.Text(d.line)
	}
	return cmp.Or(deploy.RedactCommand(d.cmd).String(), redact.Text(d.line))
}

// tooLong is why the deployment does not serve the longest of the requests
// that it does not serve, nil where it serves all.
func (d *Deployment) tooLong(l *Load) *engine.Rejection {
	var worst *engine.Rejection
	if l.calib.Course != nil {
		return d.config.Fits(l.longest.Input, l.longest.Output)
	}
	longest := 0
	for _, r := range l.calib.Exact {
		if n := r.Input + r.Output; n > longest {
			if rejection := d.config.Fits(r.Input, r.Output); rejection != nil {
				worst, longest = rejection, n
			}
		}
	}
	return worst
}

// facets are what deployments may differ in, in the order of labels.
func (d *Deployment) facets() (names []string, values map[string]string) {
	values = map[string]string{"gpu": d.gpu.Name, "engine": d.cmd.Engine, "model": path.Base(d.cmd.Model)}
	names = []string{"gpu", "engine", "model"}
	if e, err := engine.ByName(d.cmd.Engine); err == nil {
		values["engine"] = e.Title
		for i := range e.Params {
			names = append(names, e.Params[i].Name)
			values[e.Params[i].Name] = d.cmd.Params[e.Params[i].Name]
		}
	}
	for name, v := range d.grid {
		values[name] = cmp.Or(v, "default")
	}
	bare := deploy.RedactCommand(engine.Command{Engine: d.cmd.Engine, Extra: d.cmd.Extra, File: d.cmd.File})
	words := bare.Extra
	for _, f := range bare.Files() {
		words = append(words, strings.Fields(f.Text)...)
	}
	values["flags"] = strings.Join(words, " ")
	return append(names, "flags"), values
}

// labels name each deployment by what it does not share with all others.
func labels(deployments []Deployment) []string {
	differ := map[string]bool{}
	_, first := deployments[0].facets()
	for i := range deployments {
		_, v := deployments[i].facets()
		for _, values := range []map[string]string{v, first} {
			for name := range values {
				differ[name] = differ[name] || v[name] != first[name]
			}
		}
	}
	out := make([]string, len(deployments))
	for i := range deployments {
		d := &deployments[i]
		names, v := d.facets()
		var parts []string
		for _, name := range names {
			switch {
			case !differ[name] || v[name] == "":
			case slices.Contains([]string{"gpu", "engine", "model", "flags"}, name):
				parts = append(parts, v[name])
			default:
				parts = append(parts, name+"="+v[name])
			}
		}
		switch out[i] = strings.Join(parts, " "); {
		case out[i] != "":
		case len(deployments) == 1:
			out[i] = cmp.Or(v["model"], d.line)
		default:
			out[i] = "as given"
		}
	}
	return out
}

// SharedModel is the model that all configurations serve, by the name that their commands
// have; "" where they differ.
func SharedModel(deployments []Deployment) string {
	shared := ""
	for i := range deployments {
		if name := deployments[i].cmd.Model; i == 0 {
			shared = name
		} else if name != shared {
			return ""
		}
	}
	return shared
}
