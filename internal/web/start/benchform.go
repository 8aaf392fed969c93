package start

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/openai"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// question is one of the form, called like the flag of perflab bench that it fills.
type question struct {
	Name, Label, Help, Usual string
	Options                  []string
	Lines                    bool   // several values, one a line
	Of                       string // the kind of measurement that it is for; "": all
}

// group are inputs under a heading.
type group struct {
	Title  string
	Inputs []question
}

// Kinds of measurement. Those of series are the flags that begin them.
const (
	once    = "once"
	repeat  = "repeat"
	sweep   = "sweep"
	findMax = "find-max"
)

// measure is the input that says which.
const measure = "measure"

// groups are the form.
func groups() []group {
	return []group{
		{"Server", []question{
			{Name: "base-url", Label: "Address", Usual: "http://127.0.0.1:8000", Help: "Several by commas are loaded as replicas."},
			{Name: "model", Label: "Model", Help: "The name that it is served by. Empty: the first that the server lists."},
			{Name: "backend", Label: "API", Usual: "openai-chat", Options: openai.Backends()},
		}},
		{"What is sent", []question{
			{Name: "dataset-name", Label: "Dataset", Usual: "random", Options: workload.Datasets()},
			{Name: "dataset-path", Label: "File of the dataset", Help: "On the server, below a directory of runs or what the administrator allows."},
			{Name: "num-prompts", Label: "Requests", Help: "Empty: 1000, or all of a file."},
			{Name: "random-input-len", Label: "Prompt tokens", Help: "Of random prompts. Empty: 1024."},
			{Name: "random-output-len", Label: "Output tokens", Help: "Of random prompts. Empty: 128."},
			{Name: "seed", Label: "Seed", Help: "Empty: drawn, so that the prompts are new to the server."},
			{Name: "cache", Label: "Prefix cache", Usual: bench.CacheUnique, Options: bench.CachePolicies()},
		}},
		{"When it is sent", []question{
			{Name: "request-rate", Label: "Rate (requests/s)", Help: "Empty or inf: all at once."},
			{Name: "max-concurrency", Label: "Calls in flight at most", Help: "Empty: no limit."},
			{Name: "duration", Label: "No request after", Help: "Such as 60s."},
			{Name: "num-warmups", Label: "Warm-up requests", Usual: "8"},
		}},
		{"What must hold", []question{
			{Name: "slo", Label: "SLOs, one a line", Lines: true, Help: "Such as p99_ttft_ms <= 500."},
			{Name: "goodput", Label: "What makes a request good", Help: "Such as ttft:500,tpot:50 in ms."},
		}},
		{"How often", []question{
			{Name: measure, Label: "Measure", Usual: once, Options: []string{once, repeat, sweep, findMax}, Help: "once; repeat with other seeds; sweep over loads; find-max looks for the highest load that meets the SLOs."},
			{Name: repeat, Label: "Runs", Of: repeat, Help: "2 or more."},
			{Name: sweep, Label: "Loads", Of: sweep, Help: "rate=1,2,4, rate=1..16x2, concurrency=8..64+8 or rate=auto."},
			{Name: findMax, Label: "Find the highest", Of: findMax, Options: []string{"", bench.AxisRate, bench.AxisConcurrency}},
			{Name: "find-max-from", Label: "From", Of: findMax, Help: "Empty: where a burst of requests suggests."},
			{Name: "find-max-to", Label: "To", Of: findMax, Help: "Empty: no limit."},
		}},
	}
}

// form is what somebody filled in.
type form struct {
	Name   string            // for people
	Values map[string]string // of the inputs that are not as usual
}

// formOf reads a form that was sent.
func formOf(sent url.Values) form {
	f := form{Name: strings.TrimSpace(sent.Get("name")), Values: map[string]string{}}
	for _, g := range groups() {
		for _, in := range g.Inputs {
			v := strings.TrimSpace(strings.ReplaceAll(sent.Get(in.Name), "\r\n", "\n"))
			if v != "" && v != in.Usual {
				f.Values[in.Name] = v
			}
		}
	}
	return f
}

// flags are those of perflab bench.
func (f form) flags() map[string][]string {
	out := map[string][]string{}
	for _, g := range groups() {
		for _, in := range g.Inputs {
			v := f.Values[in.Name]
			if v == "" || in.Name == measure {
				continue
			}
			if !in.Lines {
				out[in.Name] = []string{v}
				continue
			}
			for line := range strings.Lines(v) {
				if line = strings.TrimSpace(line); line != "" {
					out[in.Name] = append(out[in.Name], line)
				}
			}
		}
	}
	return out
}

// command is the bench as it is asked for at a terminal.
func (f form) command() string {
	words := []string{"perflab", "bench"}
	flags := f.flags()
	for _, g := range groups() {
		for _, in := range g.Inputs {
			for _, v := range flags[in.Name] {
				words = append(words, "--"+in.Name, engine.Quote(v))
			}
		}
	}
	return doc.WrapCommand(strings.Join(words, " "))
}

// check says what is wrong with the form: as errors of package field, whose paths are inputs.
func (f form) check() error {
	var errs []error
	kind := cmp.Or(f.Values[measure], once)
	for _, g := range groups() {
		for _, in := range g.Inputs {
			if in.Of != "" && in.Of != kind && f.Values[in.Name] != "" {
				errs = append(errs, field.Errorf(in.Name, "is for the measurement %s: choose that, or leave this empty", in.Of))
			}
			if len(in.Options) > 0 && f.Values[in.Name] != "" && !slices.Contains(in.Options, f.Values[in.Name]) {
				errs = append(errs, field.Errorf(in.Name, "%q is not known: use %s", f.Values[in.Name], strings.Join(in.Options, ", ")))
			}
		}
	}
	s, wrong := f.spec()
	errs = append(errs, wrong...)
	errs = append(errs, f.series(kind, &s)...)
	for _, line := range f.flags()["slo"] {
		if _, err := result.ParseSLOs(line); err != nil {
			errs = append(errs, field.Errorf("slo", "%v", err))
		}
	}
	if _, err := (rundir.FigureSpec{Goodput: s.Goodput}).Options(); err != nil {
		errs, s.Goodput = append(errs, field.Errorf("goodput", "%v", err)), nil
	}
	s.Workload = s.Workload.Defaults()
	if err := s.Validate(); err != nil {
		for _, e := range field.All(err) {
			errs = append(errs, inputOf(e))
		}
	} else if err := s.CheckTargets(); err != nil {
		errs = append(errs, field.Errorf("base-url", "%v", err))
	}
	return errors.Join(errs...)
}

// inputOf is an error of a spec with the input that it is about.
func inputOf(e *field.Error) error {
	path := strings.ReplaceAll(e.Path, "_", "-")
	if path == "targets" {
		path = "base-url"
	}
	return &field.Error{Path: path, Reason: e.Says(func(p string) string { return "--" + strings.ReplaceAll(p, "_", "-") })}
}

// ofWorkload are the flags of a workload that the form has.
var ofWorkload = []string{"dataset-name", "dataset-path", "num-prompts", "random-input-len", "random-output-len", "seed", "request-rate", "max-concurrency", "duration"}

// spec is what the form asks for, and what cannot be read of it.
func (f form) spec() (bench.Spec, []error) {
	v := func(name, usual string) string { return cmp.Or(f.Values[name], usual) }
	s := bench.Spec{Backend: v("backend", openai.BackendChat), Model: v("model", "asked"), Cache: v("cache", bench.CacheUnique)}
	for target := range strings.SplitSeq(v("base-url", "http://127.0.0.1:8000"), ",") {
		s.Targets = append(s.Targets, strings.TrimRight(strings.TrimSpace(target), "/"))
	}
	var errs []error
	var err error
	if s.Warmups, err = strconv.Atoi(v("num-warmups", "8")); err != nil {
		errs = append(errs, field.Errorf("num-warmups", "%q is not a whole number", f.Values["num-warmups"]))
	}
	if g := f.Values["goodput"]; g != "" {
		s.Goodput = strings.Split(g, ",")
	}
	s.Workload.Dataset = "random"
	for _, name := range ofWorkload {
		if text := f.Values[name]; text != "" {
			if err := set(s.Workload.Field(strings.ReplaceAll(name, "-", "_")), text); err != nil {
				errs = append(errs, field.Errorf(name, "%v", err))
			}
		}
	}
	return s, errs
}

// set reads a value of a workload.
func set(to any, text string) error {
	switch v := to.(type) {
	case *int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a whole number above 0", text)
		}
		*v = n
	case *uint64:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		*v = n
	case interface{ UnmarshalText([]byte) error }:
		return v.UnmarshalText([]byte(text))
	default:
		reflect.ValueOf(to).Elem().SetString(text)
	}
	return nil
}

// series says what is wrong with the loads of several runs, and gives the workload the first of them.
func (f form) series(kind string, s *bench.Spec) []error {
	axis := ""
	var err error
	switch kind {
	case repeat:
		if n, wrong := strconv.Atoi(f.Values[repeat]); wrong != nil || n < 2 {
			return []error{field.Errorf(repeat, "it takes 2 runs or more to vary: give a whole number")}
		}
		return nil
	case sweep:
		axis, err = f.sweep(s)
	case findMax:
		axis, err = f.findMax(s)
	default:
		return nil
	}
	errs := field.All(err)
	for name, of := range map[string]string{"request-rate": bench.AxisRate, "max-concurrency": bench.AxisConcurrency} {
		if of == axis && f.Values[name] != "" {
			errs = append(errs, &field.Error{Path: name, Reason: "does not apply with the measurement " + kind + ", which sets it"})
		}
	}
	out := make([]error, len(errs))
	for i, e := range errs {
		out[i] = e
	}
	return out
}

// sweep reads the loads of a sweep.
func (f form) sweep(s *bench.Spec) (axis string, err error) {
	loads, err := bench.ParseSweep(f.Values[sweep])
	if err != nil {
		return "", field.Errorf(sweep, "%v", err)
	}
	for _, l := range loads.Loads() {
		w := l.Apply(s.Workload).Defaults()
		if err := w.Validate(); err != nil {
			return loads.Axis, field.Errorf(sweep, "%s: %v", l, err)
		}
		if l.Axis == bench.AxisConcurrency && w.NumPrompts > 0 && int(l.Value) > w.NumPrompts {
			return loads.Axis, field.Errorf("num-prompts", "%d requests never reach the concurrency of %g", w.NumPrompts, l.Value)
		}
		s.Workload = l.Apply(s.Workload)
	}
	return loads.Axis, nil
}

// findMax reads the bounds of a search for a load.
func (f form) findMax(s *bench.Spec) (axis string, err error) {
	axis = f.Values[findMax]
	var errs []error
	if axis == "" {
		errs = append(errs, field.Errorf(findMax, "say which load is looked for: rate or concurrency"))
	}
	if f.Values["slo"] == "" {
		errs = append(errs, field.Errorf("slo", "is missing: a search for the highest load needs what it must meet, such as p99_ttft_ms <= 500"))
	}
	if f.Values["num-prompts"] != "" {
		errs = append(errs, field.Errorf("num-prompts", "does not apply with the measurement %s, which decides how long each run is", findMax))
	}
	var bounds []float64
	for _, name := range []string{"find-max-from", "find-max-to"} {
		v, err := strconv.ParseFloat(cmp.Or(f.Values[name], "0"), 64)
		switch {
		case f.Values[name] == "":
		case err != nil || !(v > 0) || math.IsInf(v, 1):
			errs = append(errs, field.Errorf(name, "%q is no number above 0", f.Values[name]))
		case axis == bench.AxisConcurrency && v != math.Trunc(v):
			errs = append(errs, field.Errorf(name, "%g is no whole number, as a concurrency is", v))
		}
		bounds = append(bounds, v)
	}
	if bounds[0] > 0 && bounds[1] > 0 && bounds[1] < bounds[0] {
		errs = append(errs, field.Errorf("find-max-to", "is below where the search begins"))
	}
	if axis != "" {
		s.Workload = bench.Load{Axis: axis, Value: cmp.Or(max(bounds[0], 0), 1)}.Apply(s.Workload)
	}
	return axis, errors.Join(errs...)
}

// wrongAt are the errors of a form by its inputs, and those of none.
func wrongAt(errs ...error) (at map[string]string, rest []string) {
	at = map[string]string{}
	known := map[string]bool{}
	for _, g := range groups() {
		for _, in := range g.Inputs {
			known[in.Name] = true
		}
	}
	for _, e := range field.All(errors.Join(errs...)) {
		name, _, _ := strings.Cut(strings.ReplaceAll(e.Path, "_", "-"), "[")
		switch {
		case !known[name]:
			rest = append(rest, e.Error())
		case at[name] == "":
			at[name] = e.Reason
		}
	}
	slices.Sort(rest)
	return maps.Clone(at), slices.Compact(rest)
}
