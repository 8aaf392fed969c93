package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// oldSection is a stage with its trials.
type oldSection struct {
	Heading   string
	Number    int // 0: not a stage of the search
	Incumbent string
	Again     []string // candidates that an earlier section shows
	Trials    []trialView
	Ranking   string
	Unranked  []string
	Result    string
}

// trialView is one trial as shown.
type trialView struct {
	ID       int
	Label    string
	Role     string
	Status   string // ok, refused, failed, void
	Class    string // of the failure
	Reason   string
	Advice   string // what to do about it
	Facts    string // that the engine's log tells
	Notes    []string
	Change   []string // against the incumbent
	Figure   string   // objective on the primary workload
	Deploy   string
	Command  string
	Log      string
	Runs     []runView
	Incident bool // it has no figures to believe
}

// runView is one run as shown.
type runView struct {
	Workload string
	Seed     uint64
	Dir      string
	Block    string
	Verdict  result.Status
	Checks   []result.Check // those that are not sound
}

// sections groups trials by stage: the baseline, the stages as they were
// concluded, then what else there is (an unfinished stage, the confirmation).
func (x study) sections() []oldSection {
	if x.Race != nil {
		return x.picks()
	}
	var out []oldSection
	shown := map[int]bool{}
	staged := map[int]bool{}
	for _, st := range x.Stages {
		for _, id := range st.Trials {
			staged[id] = true
		}
	}
	out = append(out, x.loose(shown, func(t result.Trial) bool { return t.Stage == "baseline" && !staged[t.ID] })...)
	for i, st := range x.Stages {
		sec := oldSection{Heading: st.Name, Number: i + 1, Result: x.sentence(st.Result)}
		if x.survey() {
			sec.Heading, sec.Number, st.Before = "Configurations", 0, 0
		}
		if x.trials[st.Before] != nil {
			sec.Incumbent = x.name(st.Before)
		}
		for _, id := range st.Trials {
			t := x.trials[id]
			if t != nil && !shown[id] {
				shown[id] = true
				sec.Trials = append(sec.Trials, x.view(t, x.trials[st.Before]))
			} else {
				sec.Again = append(sec.Again, x.name(id))
			}
		}
		sec.Ranking, sec.Unranked = x.rank(st)
		out = append(out, sec)
	}
	return append(out, x.loose(shown, func(t result.Trial) bool { return !staged[t.ID] })...)
}

// loose makes sections of trials that no concluded stage holds.
func (x study) loose(shown map[int]bool, want func(result.Trial) bool) []oldSection {
	var out []oldSection
	for i := range x.Trials {
		t := &x.Trials[i]
		if shown[t.ID] || !want(*t) {
			continue
		}
		shown[t.ID] = true
		heading := stageTitle(t.Stage)
		if len(out) == 0 || out[len(out)-1].Heading != heading {
			out = append(out, oldSection{Heading: heading})
		}
		last := &out[len(out)-1]
		last.Trials = append(last.Trials, x.view(t, nil))
	}
	return out
}

// stageTitle is the name of a stage for the reader: two of them are the
// strategy's own.
func stageTitle(name string) string {
	switch name {
	case "baseline":
		return "Baseline"
	case "confirm":
		return "Confirmation on fresh seeds"
	case "survey":
		return "Configurations"
	}
	return name
}

// rank orders a stage's candidates and its incumbent by the objective. What
// was not measured, or cannot be believed, is named apart.
func (x study) rank(st result.Stage) (line string, unranked []string) {
	var r []ranked
	ids := st.Trials
	if !slices.Contains(ids, st.Before) && x.trials[st.Before] != nil {
		ids = append(slices.Clone(ids), st.Before)
	}
	for _, id := range ids {
		t := x.trials[id]
		if t == nil {
			continue
		}
		sum := x.summary(t)
		v, ok := value(sum, x.objective)
		switch {
		case t.Status != tune.Measured:
			unranked = append(unranked, fmt.Sprintf("%s (%s)", x.name(id), t.Status))
		case !ok:
			unranked = append(unranked, fmt.Sprintf("%s (no %s)", x.name(id), x.objective.Name))
		default:
			r = append(r, ranked{x.name(id), v, quantity(sum, x.objective)})
		}
	}
	return ranking(r, x.lower()), unranked
}

// view prepares a trial. Further workloads of the trials that the conclusion
// compares stand under the other benchmark cases.
func (x study) view(t, before *result.Trial) trialView {
	v := trialView{
		ID: t.ID, Label: t.Label, Role: x.role(t.ID), Status: t.Status, Reason: t.Reason, Notes: t.Notes, Log: t.Log,
		Figure: quantity(x.summary(t), x.objective), Deploy: x.deployed(t.ID, t.Replicas),
		Command: wrapCommand(t.Command), Incident: t.Status != tune.Measured,
		Class: t.Class, Advice: x.sentence(t.Advice), Facts: factLine(t.Facts),
	}
	if v.Incident && t.Replicas == 0 {
		v.Deploy = "" // it was not started
	}
	if before != nil {
		v.Change = changes(before.Config, t.Config)
	}
	for i := range t.Runs {
		if r := &t.Runs[i]; r.Workload == x.primary || v.Role == "" || x.survey() {
			v.Runs = append(v.Runs, x.run(r))
		}
	}
	return v
}

func (x study) run(r *result.Run) runView {
	v := x.printed(&r.Summary)
	v.Workload, v.Seed, v.Dir = x.workload(r.Workload), r.Seed, r.Dir
	return *v
}

func (x study) printed(s *result.Summary) *runView {
	if s == nil {
		return nil
	}
	block := printed(*s, x.style)
	if beside := strings.TrimRight(result.TelemetryText(*s), "\n"); beside != "" {
		block += "\n" + beside
	}
	return &runView{Block: block, Verdict: s.Verdict.Status, Checks: unsound(s.Verdict)}
}

// printed is the block without its last newline.
func printed(s result.Summary, st result.Style) string {
	return strings.TrimRight(result.Block(s, st), "\n")
}

// changes lists the parameters in which two configurations differ.
func changes(from, to map[string]string) []string {
	keys := slices.Sorted(maps.Keys(to))
	for k := range maps.Keys(from) {
		if _, ok := to[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	var c []string
	for _, k := range keys {
		v, ok := to[k]
		switch {
		case !ok:
			c = append(c, k+" unset")
		case from[k] != v:
			c = append(c, k+"="+v)
		}
	}
	return c
}

// options summarises what each stage gained.
func (x study) options() []option {
	var out []option
	if x.survey() || x.Race != nil {
		return nil
	}
	for _, st := range x.Stages {
		o := option{Stage: st.Name, Change: "-", Gain: "-", From: x.name(st.Before)}
		o.To = number(x.summary(x.trials[st.Winner]), x.objective)
		if w := x.trials[st.Winner]; w != nil && st.Winner != st.Before {
			o.Change, o.Gain = x.name(st.Winner), x.gain(st.Gain)
			o.Better, o.Worse = st.Gain != nil && *st.Gain > 0, st.Gain != nil && *st.Gain < 0 // worse when an SLO decided
		}
		out = append(out, o)
	}
	return out
}

// others are the cases beside the primary workload.
func (x study) others() []other {
	var out []other
	for _, c := range x.Cases {
		if c.Workload == x.primary || x.Baseline == nil || x.Recommended == nil {
			continue
		}
		k := other{Workload: x.workload(c.Workload)}
		k.Gain, _ = x.caseGain(c)
		for _, l := range x.Workloads {
			if l.Name == c.Workload {
				k.Text = l.Text
			}
		}
		k.Baseline = side{wrapCommand(x.Baseline.Command), x.deployed(x.Baseline.Trial, x.Baseline.Replicas), x.printed(c.Baseline)}
		k.Optimized = side{wrapCommand(x.Recommended.Command), x.deployed(x.Recommended.Trial, x.Recommended.Replicas), x.printed(c.Recommended)}
		out = append(out, k)
	}
	return out
}

// cost is the ledger and the number of configurations behind the conclusion.
func (x study) cost() []Fact {
	by := map[string]int{}
	for _, t := range x.Trials {
		by[t.Status]++
	}
	var parts []string
	for _, st := range []string{tune.Measured, tune.Refused, tune.Failed, tune.Void} {
		if by[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[st], statusWord(st)))
		}
	}
	out := []Fact{
		{"Trials", strings.Join(parts, ", ")},
		{"Launches", fmt.Sprint(x.Ledger.Launches)},
		{"Time under load (s)", fmt.Sprintf("%.1f", x.Ledger.LoadS)},
	}
	if slices.ContainsFunc(x.Trials, func(t result.Trial) bool { return t.GPUs > 0 }) {
		out = append(out, Fact{"Allocated GPU time (GPU-s)", fmt.Sprintf("%.1f", x.Ledger.GPUS)})
	}
	return out
}

// statusWord is a trial's status for the reader.
func statusWord(s string) string {
	switch s {
	case tune.Measured:
		return "ok"
	case tune.Refused:
		return "refused by the engine"
	case tune.Failed:
		return "failed to run"
	case tune.Void:
		return "void"
	}
	return s
}
