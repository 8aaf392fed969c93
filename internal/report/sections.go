package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// results adds the trials by stage: the baseline, the stages as they were
// concluded, then what else there is (an unfinished stage, the confirmation). Of a
// race they are the two sides of the conclusion.
func (d *studyDocument) results(s *section) {
	parts := &stageParts{d: d, in: s, shown: map[int]bool{}}
	if d.race != nil {
		d.beforeAndAfter(s)
		parts.sides()
	} else {
		parts.stages()
	}
	s.add(inPage, gap{})
}

// stageParts adds a part for each stage, no trial twice.
type stageParts struct {
	d     *studyDocument
	in    *section
	n     int // parts so far
	shown map[int]bool
}

func (p *stageParts) part(title string) *section {
	p.n++
	return p.in.part(inDocument, section{element: "section", id: fmt.Sprintf("section-%d", p.n-1), title: title, listed: true})
}

// sides adds the two configurations that the conclusion compares.
func (p *stageParts) sides() {
	x := p.d
	var s *section
	for _, pick := range []*result.Pick{x.Baseline, x.Recommended} {
		if pick == nil || s != nil && x.kept() || x.trials[pick.Trial] == nil {
			continue
		}
		if s == nil {
			s = p.part("Baseline and recommendation")
			s.add(inPage, gap{})
		}
		x.trial(s, x.trials[pick.Trial], nil)
	}
	if s != nil {
		endStage(s, nil, "", nil, "")
	}
}

func (p *stageParts) stages() {
	x := p.d
	staged := map[int]bool{}
	for _, st := range x.Stages {
		for _, id := range st.Trials {
			staged[id] = true
		}
	}
	p.loose(func(t *result.Trial) bool { return t.Stage == "baseline" && !staged[t.ID] })
	for i, st := range x.Stages {
		title := fmt.Sprintf("%d. %s", i+1, st.Name)
		if x.survey() {
			title, st.Before = "Configurations", 0
		}
		s := p.part(title)
		incumbent := ""
		if x.trials[st.Before] != nil {
			incumbent = "Incumbent: " + x.name(st.Before)
		}
		s.styled(inDocument, "muted", incumbent)
		var again []string
		for _, id := range st.Trials {
			if t := x.trials[id]; t != nil && !p.shown[id] {
				p.shown[id] = true
				x.trial(s, t, x.trials[st.Before])
			} else {
				again = append(again, x.name(id))
			}
		}
		ranking, unranked := x.rank(st)
		endStage(s, again, ranking, unranked, x.sentence(st.Result))
	}
	p.loose(func(t *result.Trial) bool { return !staged[t.ID] })
}

// loose adds the trials that no concluded stage holds.
func (p *stageParts) loose(want func(*result.Trial) bool) {
	var s *section
	heading := ""
	end := func() {
		if s != nil {
			endStage(s, nil, "", nil, "")
		}
	}
	for i := range p.d.Trials {
		t := &p.d.Trials[i]
		if p.shown[t.ID] || !want(t) {
			continue
		}
		p.shown[t.ID] = true
		if title := stageTitle(t.Stage); s == nil || title != heading {
			end()
			heading, s = title, p.part(title)
			s.add(inPage, gap{})
		}
		p.d.trial(s, t, nil)
	}
	end()
}

// endStage adds what a stage came to: candidates that an earlier stage shows, the
// ranking, those that are in none, and the result.
func endStage(s *section, again []string, ranking string, unranked []string, conclusion string) {
	s.add(inPage, gap{})
	text := ""
	if len(again) > 0 {
		text = "Also in this comparison, measured above: " + strings.Join(again, ", ") + "."
	}
	s.para(text)
	box := s.part(inDocument, section{element: "div", class: "result", tight: true})
	add := func(parts ...any) {
		box.para(parts...)
		box.joined()
	}
	if ranking != "" {
		box.styled(inMarkdown, "", "Result: "+ranking)
		box.styled(inPage, "", bold("Result:"), " "+ranking)
		box.joined()
	}
	if len(unranked) > 0 {
		add("Not ranked: " + strings.Join(unranked, ", ") + ".")
	}
	if conclusion != "" {
		add(conclusion)
	}
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
		sum := x.summaryOf(t)
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

// trial adds a trial. Further workloads of the trials that the conclusion compares
// stand under the other benchmark cases.
func (d *studyDocument) trial(to *section, t, before *result.Trial) {
	incident := t.Status != tune.Measured
	role := d.role(t.ID)
	status := statusWord(t.Status)
	if t.Class != "" {
		status += " (" + t.Class + ")"
	}
	k := section{element: "article", broken: true, class: "trial " + role, id: fmt.Sprintf("trial-%d", t.ID), title: fmt.Sprintf("Trial %d: %s", t.ID, t.Label)}
	if role != "" {
		k.suffix = " (" + role + ")"
		k.labels = append(k.labels, tag(role, role))
	}
	k.labels = append(k.labels, tag(t.Status, status))
	if incident {
		k.class += " incident"
	} else {
		k.labels = append(k.labels, toned("fig", quantity(d.summaryOf(t), d.objective)))
	}
	s := to.part(inDocument, k)
	d.trialFacts(s, t, before, status)
	s.add(inDocument, pre{commands: true, text: wrapCommand(t.Command), summary: "Serving command"})
	for i := range t.Runs {
		if r := &t.Runs[i]; r.Workload == d.primary || role == "" || d.survey() {
			where := spans(fmt.Sprintf("%s, seed %d, run directory ", d.workload(r.Workload), r.Seed), code(r.Dir))
			s.styled(inMarkdown, "", where)
			d.block(s, &r.Summary, "", where)
		}
	}
	if t.Log != "" && incident {
		s.para("Log: ", code(t.Log))
		s.joined()
	}
}

// trialFacts adds what there is to know of a trial beside its figures.
func (d *studyDocument) trialFacts(s *section, t, before *result.Trial, status string) {
	incident := t.Status != tune.Measured
	joined := func(in form, class string, parts ...any) {
		s.styled(in, class, parts...)
		s.joined()
	}
	if incident {
		joined(inMarkdown, "", bold("Status: "+status+"."), " "+t.Reason)
		joined(inPage, "", t.Reason)
		if advice := d.sentence(t.Advice); advice != "" {
			joined(inMarkdown, "", "What to do: "+advice)
			joined(inPage, "", bold("What to do:"), " "+advice)
		}
	}
	for _, note := range t.Notes {
		joined(inPage, "note", note)
	}
	if before != nil {
		if change := changes(before.Config, t.Config); len(change) > 0 {
			s.styled(inMarkdown, "", "Change of the incumbent: ", code(strings.Join(change, " ")))
			parts := spans("Change of the incumbent: ")
			for _, c := range change {
				parts = append(parts, code(c), span{text: " "})
			}
			joined(inPage, "", parts)
		}
	}
	s.add(inPage, gap{})
	if !incident || t.Replicas > 0 { // it was started
		s.styled(inDocument, "muted", "Deployment: "+d.deployed(t.ID, t.Replicas))
	}
	if facts := factLine(t.Facts); facts != "" {
		s.styled(inDocument, "muted", words("By the engine's log:"), " "+facts)
	}
	s.styledEach(inMarkdown, "note", t.Notes...)
}

// block adds the printed result of a run, and what speaks against it.
func (d *studyDocument) block(s *section, sum *result.Summary, of string, after []span) {
	text := printed(*sum, d.style)
	if beside := strings.TrimRight(result.TelemetryText(*sum), "\n"); beside != "" {
		text += "\n" + beside
	}
	if of == "" {
		s.add(inDocument, pre{text: text, summary: "Benchmark result", after: after})
	} else {
		s.add(inMarkdown, pre{text: text, summary: of + " benchmark result"})
		s.add(inPage, pre{text: text, summary: "Benchmark result"})
	}
	for _, c := range unsound(sum.Verdict) {
		s.styled(inDocument, "note", doubtful(c))
	}
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

// stageTable adds what each stage gained.
func (d *studyDocument) stageTable(to *section) {
	s := to.part(inDocument, section{level: 3, id: "options", title: "Summary of Optimization Options", page: "Summary of optimization options", entry: "Summary of options", listed: true})
	if d.survey() || d.race != nil || len(d.Stages) == 0 {
		return
	}
	s.styled(inMarkdown, "", `Each gain is against the incumbent that the stage began with, not against the baseline; "-" means that nothing was gained.`)
	s.styled(inPage, "", "Each gain is against the incumbent that the stage began with, not against the baseline; “-” means that nothing was gained.")
	t := table{columns: columns("Stage", "Incumbent", "Kept change", ">"+d.objective.Label+" after it", ">Gain")}
	t.columns[4].toned = true
	for _, st := range d.Stages {
		change, gain := none, cell{text: spans(none)}
		if w := d.trials[st.Winner]; w != nil && st.Winner != st.Before {
			change, gain.text = d.name(st.Winner), spans(d.gain(st.Gain))
			switch {
			case st.Gain != nil && *st.Gain > 0:
				gain.tone = "up"
			case st.Gain != nil && *st.Gain < 0:
				gain.tone = "down" // an SLO decided
			}
		}
		t.rows = append(t.rows, cells(st.Name, d.name(st.Before), change, number(d.summaryOf(d.trials[st.Winner]), d.objective), gain))
	}
	s.add(inDocument, t)
}

// otherCases adds the workloads beside the primary one.
func (d *studyDocument) otherCases(to *section) {
	s := to.part(inDocument, section{level: 3, id: "others", title: "Other Benchmark Cases", page: "Other benchmark cases", listed: true})
	for _, c := range d.Cases {
		if c.Workload == d.primary || d.Baseline == nil || d.Recommended == nil {
			continue
		}
		if len(s.items) == 0 {
			s.para("Baseline and recommendation under the further workloads, to see how far the gain carries.")
		}
		gain, _ := d.caseGain(c)
		k := s.part(inDocument, section{element: "article", class: "trial", title: d.workload(c.Workload), labels: spans(toned("fig", gain))})
		text := ""
		for _, l := range d.Workloads {
			if l.Name == c.Workload {
				text = l.Text
			}
		}
		k.para(text)
		k.styled(inMarkdown, "", "Gain against the baseline: ", bold(words(gain)))
		d.side(k, "Baseline", d.Baseline, c.Baseline)
		k.add(inPage, gap{})
		d.side(k, "Recommended", d.Recommended, c.Recommended)
	}
	if len(s.items) > 0 {
		s.add(inPage, gap{})
	}
}

// side adds one side of another case.
func (d *studyDocument) side(to *section, who string, p *result.Pick, sum *result.Summary) {
	s := to.part(inDocument, section{level: 4, page: who, tight: true})
	deployed, command := d.deployed(p.Trial, p.Replicas), pre{commands: true, text: wrapCommand(p.Command), summary: "Serving command"}
	s.styled(inPage, "muted", deployed)
	s.styled(inMarkdown, "", who+": "+deployed)
	s.add(inPage, command)
	command.summary = who + " serving command"
	s.add(inMarkdown, command)
	if sum == nil {
		s.styled(inMarkdown, "", who+": not measured.")
		s.styled(inPage, "", "Not measured.")
		return
	}
	d.block(s, sum, who, nil)
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
