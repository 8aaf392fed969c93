package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// maxTrials bounds the trials that a terminal shows, so that the whole but what to do next stays
// within 25 lines: of more than these, fewer where other lines follow.
const maxTrials = 12

// summary adds what a terminal shows: the verdict, a line for each trial or the
// answers of a race, and the recommended command.
func (d *studyDocument) summary() {
	s := &d.doc.Body
	if d.Simulated {
		s.Text("SIMULATED: no GPU was measured.")
	}
	s.Text(cmp.Or(d.Title, d.Name))
	if when := span(d.Started, d.Ended); when != "" {
		s.Text("Ran " + when)
	}
	if d.race != nil {
		s.Text(slices.Concat([]string{d.sentence(d.Verdict)}, d.references(), []string{""})...)
		s.Text(d.warnings()...)
		s.Add(doc.InText, d.race.answers())
		d.comparisonLines(s)
		s.Text(d.curveSentences()...)
		s.Add(doc.InText, doc.Verbatim(d.failedLines()))
	} else {
		s.Text(slices.Concat([]string{d.Verdict}, d.references(), []string{""})...)
		if d.Forecast != nil {
			d.forecastLines(s)
		} else {
			d.trialLines(s)
		}
		s.Text(append(d.curveSentences(), d.warnings()...)...)
		s.Add(doc.InText, doc.Verbatim(d.incidentLines()+d.spentLine()))
	}
	r := d.Recommended
	if r == nil {
		s.Text("", "No configuration is recommended.")
		return
	}
	s.Textf("\n%s (%s, %s):\n%s", d.standing().title, d.name(r.Trial), count(max(r.Replicas, 1), "replica"), d.terminalCommand(r))
}

// incidentLines says why trials have no figures, of the first few of them.
func (x *studyDocument) incidentLines() string {
	const most, width = 3, 240
	b, n := &strings.Builder{}, 0
	for _, t := range x.Trials {
		if t.Status == tune.Measured || t.Reason == "" {
			continue
		}
		if n++; n > most {
			continue
		}
		class := ""
		if t.Class != "" {
			class = " (" + t.Class + ")"
		}
		text := strings.TrimSuffix(doc.OneLine(t.Reason), ".")
		if t.Advice != "" {
			text = plot.Clip(text, width/2) + ". " + x.sentence(doc.OneLine(t.Advice))
		}
		fmt.Fprintf(b, "#%d %s%s: %s\n", t.ID, statusWord(t.Status), class, plot.Clip(text, width))
	}
	if n > most {
		fmt.Fprintf(b, "and %d more without figures in the report\n", n-most)
	}
	return b.String()
}

// spentLine is what tokens cost in energy and money, before and after, on the primary
// workload; "" where neither is known, or nothing is recommended but the baseline.
func (x *studyDocument) spentLine() string {
	if x.keepsBaseline() {
		return ""
	}
	var parts []string
	for _, c := range x.Cases {
		if c.Workload != x.primary {
			continue
		}
		for _, name := range x.spent() {
			m := x.metric(name)
			parts = append(parts, fmt.Sprintf("%s %s instead of %s", m.Label, number(c.Recommended, m), number(c.Baseline, m)))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Against the baseline: " + strings.Join(parts, "; ") + "\n"
}

// trialLines lists trials; of many, the ones that decided something and the last
// ones. A gain stands where the study holds one: a stage's winner against its
// incumbent, the recommendation against the baseline.
func (x *studyDocument) trialLines(s *doc.Section) {
	won, total := map[int]string{}, map[int]string{}
	for _, st := range x.Stages {
		if st.Winner != st.Before && !x.survey() {
			won[st.Winner] = x.gain(st.Gain)
		}
	}
	if r := x.Recommended; r != nil && r.Gain != nil && (x.Baseline == nil || r.Trial != x.Baseline.Trial) {
		total[r.Trial] = x.gain(r.Gain)
	}
	t := doc.Table{Columns: doc.Columns(" id", "trial", x.objective.Label, "gain of stage", "total gain", "status")}
	if x.survey() {
		t.Columns = slices.Delete(t.Columns, 3, 5)
	}
	shown := x.shownTrials(won)
	for _, trial := range shown {
		mark := " "
		if r := x.Recommended; r != nil && r.Trial == trial.ID {
			mark = "*"
		}
		status := statusWord(trial.Status)
		if sum := x.summaryOf(trial); trial.Status == tune.Measured && sum != nil && sum.Verdict.Status != result.Sound {
			status += ", " + string(sum.Verdict.Status)
		}
		r := doc.Texts(fmt.Sprintf("%s%d", mark, trial.ID), plot.Clip(doc.OneLine(trial.Label), 36), number(x.summaryOf(trial), x.objective), won[trial.ID], total[trial.ID], status)
		if x.survey() {
			r.Cells = slices.Delete(r.Cells, 3, 5)
		}
		t.Rows = append(t.Rows, r)
	}
	s.Add(doc.InText, t)
	if n := len(x.Trials) - len(shown); n > 0 {
		s.Textf(" and %d more in the report", n)
	}
}

// shownTrials chooses the trials to list, in order.
func (x *studyDocument) shownTrials(won map[int]string) []*outcome.Trial {
	var all []*outcome.Trial
	for i := range x.Trials {
		all = append(all, &x.Trials[i])
	}
	if len(all) <= maxTrials {
		return all
	}
	keep := map[int]bool{}
	rows := maxTrials - strings.Count(x.incidentLines()+x.spentLine(), "\n")
	add := func(want func(*outcome.Trial) bool) {
		for _, t := range all {
			if len(keep) < rows && want(t) {
				keep[t.ID] = true
			}
		}
	}
	add(func(t *outcome.Trial) bool { return x.role(t.ID) != "" })
	add(func(t *outcome.Trial) bool { _, ok := won[t.ID]; return ok })
	add(func(t *outcome.Trial) bool { return t.Status == tune.Measured })
	add(func(*outcome.Trial) bool { return true })
	return slices.DeleteFunc(all, func(t *outcome.Trial) bool { return !keep[t.ID] })
}

// comparisonLines lists the comparisons by repeated launches, the first few.
func (x *studyDocument) comparisonLines(s *doc.Section) {
	const most = 4
	all := x.Race.Comparisons
	if len(all) == 0 {
		return
	}
	t := doc.Table{Columns: doc.Columns("compared", "ratio", "95 % interval", "launches", "verdict")}
	for _, k := range all[:min(most, len(all))] {
		t.Rows = append(t.Rows, doc.Texts(plot.Clip(doc.OneLine(k.Label), 36)+" against "+plot.Clip(doc.OneLine(k.Against), 36), plot.Times(k.Ratio.Value), interval(k.Ratio), fmt.Sprintf("%d / %d", len(k.Trials), len(k.Others)), k.Verdict))
	}
	s.Text("")
	s.Add(doc.InText, t)
	if n := len(all) - most; n > 0 {
		s.Textf("and %d more in the report", n)
	}
}

// failedLines counts launches without figures by their class, with the advice
// for the first of each.
func (x *studyDocument) failedLines() string {
	type kind struct {
		name, advice string
		ids          []int
	}
	var kinds []kind
	for _, t := range x.Trials {
		if t.Status == tune.Measured {
			continue
		}
		name := cmp.Or(t.Class, statusWord(t.Status))
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, kind{name: name, advice: x.sentence(doc.OneLine(cmp.Or(t.Advice, t.Reason)))})
		}
		kinds[i].ids = append(kinds[i].ids, t.ID)
	}
	const most = 3
	b := &strings.Builder{}
	for _, k := range kinds[:min(most, len(kinds))] {
		fmt.Fprintf(b, "Without figures: %s, %s\n", trialIDs(k.ids), plot.Clip(strings.TrimSuffix(k.name+": "+k.advice, ": "), 200))
	}
	if n := len(kinds) - most; n > 0 {
		fmt.Fprintf(b, "and %d more kinds of failure in the report\n", n)
	}
	return b.String()
}
