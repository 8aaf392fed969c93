package lab

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/hardware"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// assemble makes the facts of the study as far as it got.
func (m *factsMaker) assemble(partial bool, trials []trialRecord, r tune.Result) outcome.Study {
	metric := m.Metric
	f := outcome.Study{
		Schema: "perflab.study/1", Version: m.perflab, Name: m.Name, Title: m.title(),
		Partial: partial, Strategy: m.Strategy, Block: m.Bench.Block,
		Objective: outcome.Objective{Metric: metric.Name, Better: better(metric), SLOs: m.Objective.SLOs, Goal: m.goal(), Weights: m.Objective.Weights},
		Model:     m.modelName(), Hardware: m.HardwareText(m.ground.title), Visible: m.ground.pool.Variable, Devices: m.ground.pool.Devices, Engines: m.software(trials), Method: m.method(),
		Machines: r.Nodes, Workloads: m.workloads, Confirmed: r.Confirmed, Conclusion: &r.Verdict, Notes: slices.Concat(m.notes(), m.UnknownRemarks(), m.ground.notes, changedVersions(trials), changedDevices(trials)),
	}
	for i, t := range trials {
		if t.Runs == nil {
			t.Runs = []outcome.Run{} // a list in study.json, also when it is empty
		}
		if m.OnCPU() {
			t.GPUs, t.Each, t.GPUSeconds = 0, 0, 0
		}
		f.Trials = append(f.Trials, t.Trial)
		if i == 0 { // zero where a version that did not keep it began the study
			f.Started = t.Started
		}
		if t.Ended.After(f.Ended) {
			f.Ended = t.Ended
		}
		f.Ledger.Launches += t.Launches
		f.Ledger.LoadS += t.LoadS
		f.Ledger.GPUSeconds += t.GPUSeconds
		for _, run := range t.Runs {
			f.Simulated = f.Simulated || run.Summary.Simulated
			f.Predicted = f.Predicted || run.Summary.Predicted
		}
	}
	f.Simulated = f.Simulated || m.Runtime.Kind == study.Simulated || m.Runtime.Kind == study.Predicted
	for _, d := range r.Stages {
		f.Stages = append(f.Stages, m.stage(d))
	}
	m.comparePicks(&f, r)
	f.Curves = m.curves(f)
	f.Earlier = m.earlier
	f.Doubts = m.doubts(trials, r.Gain)
	if r.Evidence != nil {
		f.Race = m.raceFacts(f, r, trials)
	}
	f.Forecast = m.forecast(r.Forecast)
	m.publish(&f)
	return f
}

// stage is a decision as a fact. The configurations of a survey are not each
// other's improvement, so none is counted as a gain over the first.
func (m *factsMaker) stage(d tune.Decision) outcome.Stage {
	s := outcome.Stage{Name: d.Stage, Trials: d.Trials, Before: d.Before, Winner: d.Winner, Gain: d.Gain, Finding: d.Reason}
	for _, e := range d.Entries {
		if e.Trial == 0 { // no trial stands for it in the report
			s.Skipped = append(s.Skipped, e)
		}
	}
	if m.Strategy == study.Survey {
		s.Before, s.Gain = 0, nil
	}
	return s
}

// comparePicks names baseline and recommended and compares them: on the figures of
// the confirming pass where there was one.
func (m *factsMaker) comparePicks(f *outcome.Study, r tune.Result) {
	base, won := r.Baseline, r.Winner
	if r.Confirmed {
		base, won = r.BaselineConfirm, r.WinnerConfirm
	}
	primary := m.Workloads[0].Name
	f.Baseline = pick(f.Trials, base, primary)
	f.Recommended = pick(f.Trials, won, primary)
	if t := trialByID(f.Trials, won); t != nil {
		f.Recommended.Shorter = m.ShorterContext(t.Config)
	}
	if f.Recommended != nil && m.Strategy != study.Survey {
		f.Recommended.Gain = r.Gain
		if r.Interval != nil {
			f.Recommended.Interval, f.Recommended.Launches = r.Interval, m.launches(f.Trials, won)
		}
	}
	if f.Baseline == nil || f.Recommended == nil || m.Strategy == study.Survey {
		return
	}
	f.Recommended.SLOs = m.judged(f.Recommended.Summary, f.Baseline.Summary)
	for _, w := range m.Workloads {
		c := outcome.Case{Workload: w.Name, Baseline: summaryWith(f.Trials, base, w.Name), Recommended: summaryWith(f.Trials, won, w.Name)}
		if c.Baseline != nil && c.Recommended != nil {
			c.Gain = m.Goal.Gain(c.Baseline.Figures, c.Recommended.Figures)
		}
		f.Cases = append(f.Cases, c)
	}
}

// judged holds figures to the study's constraints; those on answers have facts
// of their own.
func (m *factsMaker) judged(s, baseline *result.Summary) []outcome.Judged {
	if s == nil {
		return nil
	}
	if baseline == nil {
		baseline = &result.Summary{}
	}
	var out []outcome.Judged
	for _, b := range m.Bounds {
		if b.Metric == tune.AccuracyFigure {
			continue
		}
		met, why := b.Judge(*s, *baseline)
		out = append(out, outcome.Judged{SLO: b.String(), Met: met, Why: why})
	}
	return out
}

func pick(trials []outcome.Trial, id int, primary string) *outcome.Pick {
	t := trialByID(trials, id)
	if t == nil {
		return nil
	}
	return &outcome.Pick{
		Trial: t.ID, Label: t.Label, Engine: t.Engine, Command: t.Command, Replicas: t.Replicas,
		Processes: t.Processes, Script: t.Script,
		Summary: summaryOf(trials, id, primary),
	}
}

func (m *factsMaker) title() string {
	if m.Title != "" {
		return m.Title
	}
	what := "Latency"
	switch {
	case strings.HasPrefix(m.Metric.Name, "goodput_"):
		what = "Goodput"
	case m.Metric.Unit == "price":
		what = "Cost"
	case m.Metric.Unit == "J", m.Metric.Unit == "tok/s/W":
		what = "Energy"
	case m.Metric.Better == result.Higher:
		what = "Throughput"
	}
	where := m.Accelerator.Title
	if m.OnCPU() {
		where = "the CPU"
	}
	return fmt.Sprintf("Optimizing %s %s on %s", shortModel(m.modelName()), what, where)
}

func shortModel(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[i+1:]
	}
	return name
}

func (m *factsMaker) modelName() string {
	switch {
	case m.Model != "":
		return m.Model
	case m.Baseline != nil:
		return m.Baseline.Model
	}
	models := map[string]bool{}
	for _, k := range m.Survey {
		models[k.Model] = true
	}
	if len(models) == 1 {
		return m.Survey[0].Model
	}
	return fmt.Sprintf("%d models", len(models))
}

// benchModel is the model that the commands which repeat a workload name. Where
// configurations serve different ones it stands for each.
func (m *factsMaker) benchModel() string {
	first := m.Model
	same := true
	see := func(m string) {
		first = cmp.Or(first, m)
		same = same && (m == "" || m == first)
	}
	if m.Baseline != nil {
		see(m.Baseline.Model)
	}
	for _, st := range m.Stages {
		for _, k := range st.Try {
			see(k.Model)
		}
	}
	for _, k := range append(slices.Clone(m.Survey), m.Arms...) {
		see(k.Model)
	}
	if !same {
		return "MODEL"
	}
	return first
}

func better(m result.Metric) string {
	if m.Better == result.Higher {
		return "higher"
	}
	return "lower"
}

// goal is the objective with what else it is judged by.
func (m *factsMaker) goal() string {
	text := goal(m.Metric)
	if len(m.Objective.Weights) > 1 {
		var parts []string
		for _, w := range m.Workloads {
			if v := m.Objective.Weights[w.Name]; v > 0 {
				parts = append(parts, fmt.Sprintf("%s (weight %g)", w.Title, v))
			}
		}
		text += ", as the weighted geometric mean over " + strings.Join(parts, " and ")
	}
	if least, err := m.Objective.MinGain.Value(); err == nil && least > 0 {
		text += fmt.Sprintf(". A gain up to %g %% counts as no difference", 100*least)
	}
	return text
}

// goal is the objective as a reader says it: "Highest total token throughput".
func goal(m result.Metric) string {
	word := "Lowest"
	if m.Better == result.Higher {
		word = "Highest"
	}
	label, _, _ := strings.Cut(m.Label, " (")
	if len(label) > 1 && label[1] >= 'a' && label[1] <= 'z' { // no abbreviation
		label = strings.ToLower(label[:1]) + label[1:]
	}
	return word + " " + label
}

// software lists the engines of the study in the order they were first tried.
func (m *factsMaker) software(trials []trialRecord) []outcome.Software {
	var out []outcome.Software
	seen := map[string]bool{}
	for _, t := range trials {
		if seen[t.Engine] {
			continue
		}
		seen[t.Engine] = true
		e, err := engine.ByName(t.Engine)
		if err != nil {
			continue // checked when the study was parsed
		}
		out = append(out, outcome.Software{Name: e.Name, Title: e.Title, Version: cmp.Or(t.Version, m.engineVersion(e.Name))})
	}
	return out
}

// method says in one paragraph how each trial was measured.
func (m *factsMaker) method() string {
	var how string
	switch m.Runtime.Kind {
	case study.Predicted:
		return "No server ran: each configuration was replayed in virtual time by perflab's simulated engine, built from the serving command and the hardware's figures. Replicas are simulated side by side and share the load; nothing is multiplied."
	case study.Simulated:
		how = "A simulated engine was started for each configuration as a child process from its serving command, and measured over HTTP in real time by perflab bench."
	case study.Docker:
		how = "The engine was started for each configuration in a container from its serving command, and measured over HTTP by perflab bench."
	case study.Kubernetes:
		how = "The engine was started for each configuration in pods of a Kubernetes cluster from its serving command, and measured over HTTP by perflab bench."
	case study.SSH:
		how = "The engine was started for each configuration on its machines over ssh from its serving command, and measured over HTTP by perflab bench" + m.reached() + "."
	case study.Fleet:
		where := "on a machine of the fleet"
		if m.InContainers() {
			where = "in a container on a machine of the fleet"
		}
		how = "The engine was started for each configuration " + where + ", by its agent, from its serving command, and measured over HTTP by perflab bench of the same agent, beside the engine."
	case study.Existing:
		if !m.Attached() {
			how = "The server was started for each configuration by a command of the study's own, and measured over HTTP by perflab bench."
			break
		}
		if m.Runtime.Service != "" {
			how = "The Service " + m.Runtime.Service + " of a Kubernetes cluster, which others run, was measured over HTTP by perflab bench."
			break
		}
		how = "An endpoint that was already running was measured over HTTP by perflab bench."
	default:
		how = "The engine was started for each configuration as a child process from its serving command, and measured over HTTP by perflab bench."
	}
	how += " Warm-up requests with prompts of their own came first and are not counted. All trials of the search met the same requests at the same times."
	if m.OnCPU() || m.Runtime.Kind == study.Existing {
		return how
	}
	return how + " A configuration that uses fewer GPUs than there are was started as several replicas, loaded together by the client; nothing is multiplied."
}

// notes are what the study knows and its figures do not show.
func (m *factsMaker) notes() []string {
	var out []string
	switch {
	case m.Runtime.Kind == study.Predicted:
		out = append(out, "A prediction has no noise of its own: it is as far from a measurement as the model of the hardware is from the hardware.")
	case m.Strategy != study.Race: // which launches what it concludes from repeatedly
		out = append(out, "Each configuration of the search was launched once; differences of a few percent between single launches are often noise.")
	}
	if !(m.Accuracy != nil) {
		out = append(out, "Quantisation can change a model's answers: no accuracy was measured here.")
	}
	return out
}

// changedVersions names the engines that were not the same throughout: of a study that is
// resumed after an upgrade, say, or after a tag was moved, or on machines that have others.
func changedVersions(trials []trialRecord) []string {
	var out []string
	for _, e := range engine.All() {
		for _, what := range []struct {
			name string
			of   func(*trialRecord) string
		}{
			{"version", func(t *trialRecord) string { return t.Version }},
			{"image", func(t *trialRecord) string { return t.Image }},
		} {
			var seen []sighting
			for i := range trials {
				if t := &trials[i]; t.Engine == e.Name && what.of(t) != "" {
					seen = append(seen, sighting{what.of(t), t.Machine, t.ID})
				}
			}
			out = append(out, changes(what.name+" of "+e.Title, seen)...)
		}
	}
	return out
}

// sighting is what an engine was in a trial.
type sighting struct {
	is, machine string
	trial       int
}

// changes says what was not the same throughout: on one machine over time, or on some machines and on others.
func changes(what string, seen []sighting) (out []string) {
	var machines, all []string
	began, on := map[string][]string{}, map[string][]string{}
	for i, s := range seen {
		if !slices.ContainsFunc(seen[:i], func(o sighting) bool { return o.is == s.is && o.machine == s.machine }) {
			began[s.machine] = append(began[s.machine], fmt.Sprintf("%s from trial %d", s.is, s.trial))
			on[s.is] = append(on[s.is], s.machine)
		}
		if !slices.Contains(machines, s.machine) {
			machines = append(machines, s.machine)
		}
		if !slices.Contains(all, s.is) {
			all = append(all, s.is)
		}
	}
	for _, m := range machines {
		if len(began[m]) > 1 {
			out = append(out, fmt.Sprintf("The %s changed during the study%s (%s): differences between its trials may be of that.", what, ofMachine(m), strings.Join(began[m], ", ")))
		}
	}
	if len(out) > 0 || len(all) < 2 {
		return out
	}
	var parts []string
	for _, is := range all {
		parts = append(parts, is+" on "+strings.Join(on[is], ", "))
	}
	return []string{fmt.Sprintf("The %s is not the same on all machines (%s): differences between trials on them may be of that.", what, strings.Join(parts, "; "))}
}

func ofMachine(name string) string {
	if name == "" {
		return ""
	}
	return " on machine " + name
}

// changedDevices says which trials were measured on which devices, where a study went on
// with others.
func changedDevices(trials []trialRecord) []string {
	var seen []string
	last := ""
	for i, t := range trials {
		text := cmp.Or(hardware.Devices(t.Devices).Text(), "the machine's first")
		if text != last {
			seen = append(seen, fmt.Sprintf("%s from trial %d", text, trials[i].ID))
		}
		last = text
	}
	if len(seen) < 2 {
		return nil
	}
	return []string{fmt.Sprintf("The study went on with other devices (%s): differences between its trials may be of that.", strings.Join(seen, "; "))}
}

// describe makes facts of the workloads.
func (m *factsMaker) describe() []outcome.Load {
	var out []outcome.Load
	for i, w := range m.Workloads {
		spec := m.WorkloadSpec(w.Name, 0)
		load := outcome.Load{
			Name: w.Name, Title: w.Title, Primary: i == 0, Text: textOf(spec),
			Command: bench.Command(m.benchModel(), m.Bench.Backend, m.Bench.Cache, spec),
		}
		if s, ok := w.Swept(); ok {
			load.Sweep = s.Of
		}
		out = append(out, m.searched(load, w.FindMax, spec))
	}
	return out
}

func textOf(spec workload.Spec) string {
	w, _, err := bench.OpenWorkload(spec)
	if err != nil {
		return spec.Dataset // opening it again failed; the trials say why
	}
	return w.Describe()
}

// reached says how requests travel to another machine: it is in their latencies.
func (m *factsMaker) reached() string {
	if m.Runtime.Direct {
		return ""
	}
	return ", through a forwarded port: encryption and one TCP stream are in the latencies"
}

// searched makes the text and the command of a workload, which are those of one
// load, the search's; without one they stay.
func (m *factsMaker) searched(w outcome.Load, f *study.LoadSearch, spec workload.Spec) outcome.Load {
	if f == nil {
		return w
	}
	var bounds []string
	spec.NumPrompts = 0
	flags := []string{"--find-max", f.Axis, "--find-max-from", bench.Short(f.From), "--find-max-precision", bench.Short(f.Precision), "--find-max-seconds", bench.Short(*f.Seconds)}
	if f.To > 0 {
		flags = append(flags, "--find-max-to", bench.Short(f.To))
	}
	if f.Requests > 0 {
		flags = append(flags, "--find-max-requests", fmt.Sprint(f.Requests))
	}
	for _, slo := range m.RunSLOs() {
		bounds = append(bounds, slo.String())
		flags = append(flags, "--slo", engine.Quote(slo.String()))
	}
	what := "request rate"
	switch f.Axis {
	case bench.AxisRate:
		spec.Rate = workload.Rate(math.Inf(1))
		if spec.Arrival == "poisson" {
			spec.Arrival, spec.Burstiness = "", 0
		}
	case bench.AxisConcurrency:
		what, spec.MaxConcurrency = "number of requests in flight", 0
	}
	w.Text += fmt.Sprintf("; searched from there for the highest %s that meets %s, to within %s %%", what, strings.Join(bounds, " and "), bench.Short(100*f.Precision))
	w.Command = bench.Command(m.benchModel(), m.Bench.Backend, m.Bench.Cache, spec) + " " + strings.Join(flags, " ")
	return w
}
