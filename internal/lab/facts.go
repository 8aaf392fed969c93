package lab

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// save assembles the study's facts from the trial directories and writes
// study.json.
func (l *session) save(partial bool) (result.Study, error) {
	f, err := l.facts(partial)
	if err != nil {
		return f, err
	}
	return f, rundir.WriteJSON(filepath.Join(l.Dir, rundir.StudyFile), f)
}

func (l *session) facts(partial bool) (result.Study, error) {
	trials, err := l.trials()
	if err != nil {
		return result.Study{}, err
	}
	r := l.strategy.Result()
	metric := l.Metric
	f := result.Study{
		Schema: "perflab.study/1", Version: l.Version, Name: l.Name, Title: l.title(metric),
		Partial: partial, Strategy: l.Study.Strategy, Block: l.Bench.Block,
		Objective: result.Objective{Metric: metric.Name, Better: better(metric), SLOs: l.Objective.SLOs, Goal: l.goal(metric), Weights: l.Objective.Weights},
		Model:     l.modelName(), Hardware: l.hardware(), Visible: l.Visible(), Engines: l.software(trials), Method: l.method(),
		Workloads: l.described, Confirmed: r.Confirmed, Verdict: r.Verdict, Notes: append(l.notes(), unlike(trials)...),
	}
	for _, t := range trials {
		if t.Runs == nil {
			t.Runs = []result.Run{} // a list in study.json, also when it is empty
		}
		if l.OnCPU() {
			t.GPUs, t.Each, t.GPUS = 0, 0, 0
		}
		f.Trials = append(f.Trials, t.Trial)
		f.Ledger.Launches += t.Launches
		f.Ledger.LoadS += t.LoadS
		f.Ledger.GPUS += t.GPUS
		for _, run := range t.Runs {
			f.Simulated = f.Simulated || run.Summary.Simulated
			f.Predicted = f.Predicted || run.Summary.Predicted
		}
	}
	f.Simulated = f.Simulated || l.Runtime.Kind == study.Simulated || l.Runtime.Kind == study.Predicted
	for _, d := range r.Stages {
		f.Stages = append(f.Stages, l.stage(d))
	}
	l.picks(&f, r)
	if r.Evidence != nil {
		f.Race = l.raceFacts(f, r, trials)
	}
	return f, nil
}

// stage is a decision as a fact. The configurations of a survey are not each
// other's improvement, so none is counted as a gain over the first.
func (l *session) stage(d tune.Decision) result.Stage {
	s := result.Stage{Name: d.Stage, Trials: d.Trials, Before: d.Before, Winner: d.Winner, Gain: d.Gain, Result: d.Reason}
	for _, e := range d.Entries {
		if e.Trial == 0 { // no trial stands for it in the report
			s.Result += fmt.Sprintf("; %s was %s", e.Label, e.Note)
		}
	}
	if l.Study.Strategy == study.Survey {
		s.Before, s.Gain = 0, nil
	}
	return s
}

// trials reads every trial that has ended, in order.
func (l *session) trials() ([]trialRecord, error) {
	// No pattern: the directory's name may hold what is special in one.
	dirs, err := os.ReadDir(filepath.Join(l.Dir, "trials"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the trials: %w", err)
	}
	var out []trialRecord
	for _, d := range dirs {
		var t trialRecord
		switch err := rundir.ReadJSON(filepath.Join(l.Dir, "trials", d.Name(), trialFile), &t); {
		case errors.Is(err, fs.ErrNotExist): // not ended
			continue
		case err != nil:
			return nil, err
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b trialRecord) int { return a.ID - b.ID })
	return out, nil
}

// picks names baseline and recommended and compares them: on the figures of
// the confirming pass where there was one.
func (l *session) picks(f *result.Study, r tune.Result) {
	base, won := r.Baseline, r.Winner
	if r.Confirmed {
		base, won = r.BaselineConfirm, r.WinnerConfirm
	}
	primary := l.Workloads[0].Name
	f.Baseline = pick(f.Trials, base, primary)
	f.Recommended = pick(f.Trials, won, primary)
	if f.Recommended != nil && l.Study.Strategy != study.Survey {
		f.Recommended.Gain = r.Gain
		if r.Interval != nil {
			f.Recommended.Interval, f.Recommended.Launches = r.Interval, l.launches(f.Trials, won)
		}
	}
	if f.Baseline == nil || f.Recommended == nil || l.Study.Strategy == study.Survey {
		return
	}
	f.Recommended.SLOs = l.judged(f.Recommended.Summary, f.Baseline.Summary)
	for _, w := range l.Workloads {
		c := result.Case{Workload: w.Name, Baseline: summaryWith(f.Trials, base, w.Name), Recommended: summaryWith(f.Trials, won, w.Name)}
		if c.Baseline != nil && c.Recommended != nil {
			c.Gain = l.Goal.Gain(c.Baseline.Figures, c.Recommended.Figures)
		}
		f.Cases = append(f.Cases, c)
	}
}

// judged holds figures to the study's constraints; those on answers have facts
// of their own.
func (l *session) judged(s, baseline *result.Summary) []result.Judged {
	if s == nil {
		return nil
	}
	if baseline == nil {
		baseline = &result.Summary{}
	}
	var out []result.Judged
	for _, b := range l.Bounds {
		if b.Metric == tune.AccuracyFigure {
			continue
		}
		met, why := b.Judge(*s, *baseline)
		out = append(out, result.Judged{SLO: b.String(), Met: met, Why: why})
	}
	return out
}

func trialByID(trials []result.Trial, id int) *result.Trial {
	for i := range trials {
		if trials[i].ID == id {
			return &trials[i]
		}
	}
	return nil
}

func pick(trials []result.Trial, id int, primary string) *result.Pick {
	t := trialByID(trials, id)
	if t == nil {
		return nil
	}
	return &result.Pick{
		Trial: t.ID, Label: t.Label, Engine: t.Engine, Command: t.Command, Replicas: t.Replicas,
		Summary: summaryOf(trials, id, primary),
	}
}

func summaryOf(trials []result.Trial, id int, workload string) *result.Summary {
	t := trialByID(trials, id)
	if t == nil {
		return nil
	}
	for i := range t.Runs {
		if t.Runs[i].Workload == workload {
			return &t.Runs[i].Summary
		}
	}
	return nil
}

// summaryWith is summaryOf, or where that trial was not under the workload, of
// the last launch of the same configuration that was, under all of its load.
func summaryWith(trials []result.Trial, id int, workload string) *result.Summary {
	t := trialByID(trials, id)
	if s := summaryOf(trials, id, workload); s != nil || t == nil {
		return s
	}
	for i := range slices.Backward(trials) {
		o := &trials[i]
		if s := summaryOf(trials, o.ID, workload); s != nil && o.Share == 0 && maps.Equal(o.Config, t.Config) {
			return s
		}
	}
	return nil
}

func (l *session) title(m result.Metric) string {
	if l.Title != "" {
		return l.Title
	}
	what := "Latency"
	switch {
	case strings.HasPrefix(m.Name, "goodput_"):
		what = "Goodput"
	case m.Unit == "price":
		what = "Cost"
	case m.Unit == "J", m.Unit == "tok/s/W":
		what = "Energy"
	case m.Better == result.Higher:
		what = "Throughput"
	}
	gpu, _ := arch.LookupAccelerator(l.Hardware.GPU) // checked when the study was parsed
	if l.OnCPU() {
		gpu.Title = "the CPU"
	}
	return fmt.Sprintf("Optimizing %s %s on %s", shortModel(l.modelName()), what, gpu.Title)
}

func shortModel(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[i+1:]
	}
	return name
}

func (l *session) modelName() string {
	switch {
	case l.Model != "":
		return l.Model
	case l.Baseline != nil:
		return l.Baseline.Model
	}
	models := map[string]bool{}
	for _, k := range l.Survey {
		models[k.Model] = true
	}
	if len(models) == 1 {
		return l.Survey[0].Model
	}
	return fmt.Sprintf("%d models", len(models))
}

// benchModel is the model that the commands which repeat a workload name. Where
// configurations serve different ones it stands for each.
func (l *session) benchModel() string {
	first := l.Model
	same := true
	see := func(m string) {
		first = cmp.Or(first, m)
		same = same && (m == "" || m == first)
	}
	if l.Baseline != nil {
		see(l.Baseline.Model)
	}
	for _, st := range l.Stages {
		for _, k := range st.Try {
			see(k.Model)
		}
	}
	for _, k := range append(slices.Clone(l.Survey), l.Arms...) {
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
func (l *session) goal(m result.Metric) string {
	text := goal(m)
	if len(l.Objective.Weights) > 1 {
		var parts []string
		for _, w := range l.Workloads {
			if v := l.Objective.Weights[w.Name]; v > 0 {
				parts = append(parts, fmt.Sprintf("%s (weight %g)", w.Title, v))
			}
		}
		text += ", as the weighted geometric mean over " + strings.Join(parts, " and ")
	}
	if least, err := l.Objective.MinGain.Value(); err == nil && least > 0 {
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

func (l *session) hardware() string {
	gpu, _ := arch.LookupAccelerator(l.Hardware.GPU)
	switch {
	case l.OnCPU() && l.Hardware.Nodes > 1:
		return fmt.Sprintf("CPUs of %d hosts, no GPU", l.Hardware.Nodes)
	case l.OnCPU():
		return "CPU of one host, no GPU"
	}
	s := fmt.Sprintf("%d x %s", l.Hardware.GPUs, gpu.Title)
	if l.Hardware.Nodes > 1 {
		return fmt.Sprintf("%s on %d nodes", s, l.Hardware.Nodes)
	}
	return s + " on one node"
}

// software lists the engines of the study in the order they were first tried.
func (l *session) software(trials []trialRecord) []result.Software {
	var out []result.Software
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
		out = append(out, result.Software{Name: e.Name, Title: e.Title, Version: cmp.Or(t.Version, l.version(e.Name))})
	}
	return out
}

// method says in one paragraph how each trial was measured.
func (l *session) method() string {
	var how string
	switch l.Runtime.Kind {
	case study.Predicted:
		return "No server ran: each configuration was replayed in virtual time by perflab's simulated engine, built from the serving command and the hardware's figures. Replicas are simulated side by side and share the load; nothing is multiplied."
	case study.Simulated:
		how = "A simulated engine was started for each configuration as a child process from its serving command, and measured over HTTP in real time by perflab bench."
	case study.Docker:
		how = "The engine was started for each configuration in a container from its serving command, and measured over HTTP by perflab bench."
	case study.SSH:
		how = "The engine was started for each configuration on its machines over ssh from its serving command, and measured over HTTP by perflab bench" + l.reached() + "."
	case study.Existing:
		if !l.Attached() {
			how = "The server was started for each configuration by a command of the study's own, and measured over HTTP by perflab bench."
			break
		}
		how = "An endpoint that was already running was measured over HTTP by perflab bench."
	default:
		how = "The engine was started for each configuration as a child process from its serving command, and measured over HTTP by perflab bench."
	}
	how += " Warm-up requests with prompts of their own came first and are not counted. All trials of the search met the same requests at the same times."
	if l.OnCPU() || l.Runtime.Kind == study.Existing {
		return how
	}
	return how + " A configuration that uses fewer GPUs than there are was started as several replicas, loaded together by the client; nothing is multiplied."
}

// notes are what the study knows and its figures do not show.
func (l *session) notes() []string {
	var out []string
	switch {
	case l.Runtime.Kind == study.Predicted:
		out = append(out, "A prediction has no noise of its own: it is as far from a measurement as the model of the hardware is from the hardware.")
	case l.Study.Strategy != study.Race: // which launches what it concludes from repeatedly
		out = append(out, "Each configuration of the search was launched once; differences of a few percent between single launches are often noise.")
	}
	if !(l.Accuracy != nil) {
		out = append(out, "Quantisation can change a model's answers: no accuracy was measured here.")
	}
	return out
}

// unlike names the engines that were not the same throughout: of a study that is
// resumed after an upgrade, say, or after a tag was moved.
func unlike(trials []trialRecord) []string {
	var out []string
	for _, e := range engine.All() {
		for _, what := range []struct {
			name string
			of   func(*trialRecord) string
		}{
			{"version", func(t *trialRecord) string { return t.Version }},
			{"image", func(t *trialRecord) string { return t.Image }},
		} {
			var seen []string
			first := map[string]int{}
			for i := range trials {
				t := &trials[i]
				if v := what.of(t); t.Engine == e.Name && v != "" && first[v] == 0 {
					first[v] = t.ID
					seen = append(seen, fmt.Sprintf("%s from trial %d", v, t.ID))
				}
			}
			if len(seen) > 1 {
				out = append(out, fmt.Sprintf("The %s of %s changed during the study (%s): differences between its trials may be of that.", what.name, e.Title, strings.Join(seen, ", ")))
			}
		}
	}
	return out
}

func (l *session) loads() []result.Load {
	var out []result.Load
	for i, w := range l.Workloads {
		spec := l.WorkloadSpec(w.Name, 0)
		load := result.Load{
			Name: w.Name, Title: w.Title, Primary: i == 0, Text: describe(spec),
			Command: bench.Command(l.benchModel(), l.Bench.Backend, l.Bench.Cache, spec),
		}
		out = append(out, l.asSought(load, w.FindMax, spec))
	}
	return out
}

func describe(spec workload.Spec) string {
	w, _, err := bench.OpenWorkload(spec)
	if err != nil {
		return spec.Dataset // opening it again failed; the trials say why
	}
	return w.Describe()
}

// reached says how requests travel to another machine: it is in their latencies.
func (l *session) reached() string {
	if l.Runtime.Direct {
		return ""
	}
	return ", through a forwarded port: encryption and one TCP stream are in the latencies"
}
