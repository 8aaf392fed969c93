package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/block"
	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// results adds the trials by stage: the baseline, the stages as they were
// concluded, then what else there is (an unfinished stage, the confirmation). Of a
// race they are the two sides of the conclusion.
func (d *studyDocument) results(s *doc.Section) {
	parts := &stageParts{d: d, in: s, shown: map[int]bool{}}
	if d.race != nil {
		d.beforeAndAfter(s)
		parts.sides()
	} else {
		parts.stages()
	}
	s.Add(doc.InPage, doc.Gap{})
}

// stageParts adds a part for each stage, no trial twice.
type stageParts struct {
	d     *studyDocument
	in    *doc.Section
	n     int // parts so far
	shown map[int]bool
}

func (p *stageParts) part(title string) *doc.Section {
	p.n++
	return p.in.Part(doc.InDocument, doc.Section{Element: "section", ID: fmt.Sprintf("section-%d", p.n-1), Title: title, Listed: true})
}

// sides adds the two configurations that the conclusion compares.
func (p *stageParts) sides() {
	x := p.d
	var s *doc.Section
	for _, pick := range []*outcome.Pick{x.Baseline, x.Recommended} {
		if pick == nil || s != nil && x.keepsBaseline() || x.trials[pick.Trial] == nil {
			continue
		}
		if s == nil {
			s = p.part("Baseline and recommendation")
			s.Add(doc.InPage, doc.Gap{})
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
	p.loose(func(t *outcome.Trial) bool { return t.Stage == "baseline" && !staged[t.ID] })
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
		s.Styled(doc.InDocument, "muted", incumbent)
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
	p.loose(func(t *outcome.Trial) bool { return !staged[t.ID] })
}

// loose adds the trials that no concluded stage holds.
func (p *stageParts) loose(want func(*outcome.Trial) bool) {
	var s *doc.Section
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
			s.Add(doc.InPage, doc.Gap{})
		}
		p.d.trial(s, t, nil)
	}
	end()
}

// endStage adds what a stage came to: candidates that an earlier stage shows, the
// ranking, those that are in none, and the result.
func endStage(s *doc.Section, again []string, ranking string, unranked []string, conclusion string) {
	s.Add(doc.InPage, doc.Gap{})
	text := ""
	if len(again) > 0 {
		text = "Also in this comparison, measured above: " + strings.Join(again, ", ") + "."
	}
	s.Para(text)
	box := s.Part(doc.InDocument, doc.Section{Element: "div", Class: "result", Tight: true})
	add := func(parts ...any) {
		box.Para(parts...)
		box.Joined()
	}
	if ranking != "" {
		box.Styled(doc.InMarkdown, "", "Result: "+ranking)
		box.Styled(doc.InPage, "", doc.Bold("Result:"), " "+ranking)
		box.Joined()
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
	case "named":
		return "What the study names"
	case "best":
		return "Predicted best"
	}
	return name
}

// rank orders a stage's candidates and its incumbent by the objective. What
// was not measured, or cannot be believed, is named apart.
func (x study) rank(st outcome.Stage) (line string, unranked []string) {
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
func (d *studyDocument) trial(to *doc.Section, t, before *outcome.Trial) {
	incident := t.Status != tune.Measured
	role := d.role(t.ID)
	status := statusWord(t.Status)
	if t.Class != "" {
		status += " (" + t.Class + ")"
	}
	k := doc.Section{Element: "article", Broken: true, Class: "trial " + role, ID: fmt.Sprintf("trial-%d", t.ID), Title: fmt.Sprintf("Trial %d: %s", t.ID, t.Label)}
	if role != "" {
		k.Suffix = " (" + role + ")"
		k.Labels = append(k.Labels, doc.Tag(role, role))
	}
	k.Labels = append(k.Labels, doc.Tag(t.Status, status))
	if incident {
		k.Class += " incident"
	} else {
		k.Labels = append(k.Labels, doc.Toned("fig", quantity(d.summaryOf(t), d.objective)))
	}
	s := to.Part(doc.InDocument, k)
	d.trialFacts(s, t, before, status)
	s.Add(doc.InDocument, doc.Pre{Commands: true, Text: doc.WrapCommand(t.Command), Summary: "Serving command"})
	for i := range t.Runs {
		if r := &t.Runs[i]; r.Workload == d.primary || role == "" || d.survey() {
			where := doc.Spans(fmt.Sprintf("%s, seed %d, run directory ", d.workload(r.Workload), r.Seed), doc.Code(r.Dir))
			s.Styled(doc.InMarkdown, "", where)
			d.block(s, &r.Summary, "", where)
		}
	}
	if t.Log != "" && incident {
		s.Para("Log: ", doc.Code(t.Log))
		s.Joined()
	}
}

// trialFacts adds what there is to know of a trial beside its figures.
func (d *studyDocument) trialFacts(s *doc.Section, t, before *outcome.Trial, status string) {
	incident := t.Status != tune.Measured
	joined := func(in doc.Form, class string, parts ...any) {
		s.Styled(in, class, parts...)
		s.Joined()
	}
	if incident {
		joined(doc.InMarkdown, "", doc.Bold("Status: "+status+"."), " "+t.Reason)
		joined(doc.InPage, "", t.Reason)
		if advice := d.sentence(t.Advice); advice != "" {
			joined(doc.InMarkdown, "", "What to do: "+advice)
			joined(doc.InPage, "", doc.Bold("What to do:"), " "+advice)
		}
	}
	for _, note := range t.Notes {
		joined(doc.InPage, "note", note)
	}
	if before != nil {
		if change := changes(before.Config, t.Config); len(change) > 0 {
			s.Styled(doc.InMarkdown, "", "Change of the incumbent: ", doc.Code(strings.Join(change, " ")))
			parts := doc.Spans("Change of the incumbent: ")
			for _, c := range change {
				parts = append(parts, doc.Code(c), doc.Span{Text: " "})
			}
			joined(doc.InPage, "", parts)
		}
	}
	s.Add(doc.InPage, doc.Gap{})
	if !incident || t.Replicas > 0 { // it was started
		s.Styled(doc.InDocument, "muted", "Deployment: "+d.deployed(t.ID, t.Replicas))
	}
	if facts := factLine(t.Facts); facts != "" {
		s.Styled(doc.InDocument, "muted", doc.Words("By the engine's log:"), " "+facts)
	}
	s.StyledEach(doc.InMarkdown, "note", t.Notes...)
}

// block adds the printed result of a run, and what speaks against it.
func (d *studyDocument) block(s *doc.Section, sum *result.Summary, of string, after []doc.Span) {
	text := printed(*sum, d.style)
	if beside := strings.TrimRight(block.Telemetry(*sum)+block.Speculation(*sum), "\n"); beside != "" {
		text += "\n" + beside
	}
	if of == "" {
		s.Add(doc.InDocument, doc.Pre{Text: text, Summary: "Benchmark result", After: after})
	} else {
		s.Add(doc.InMarkdown, doc.Pre{Text: text, Summary: of + " benchmark result"})
		s.Add(doc.InPage, doc.Pre{Text: text, Summary: "Benchmark result"})
	}
	for _, c := range unsound(sum.Verdict) {
		s.Styled(doc.InDocument, "note", doubtful(c))
	}
}

// printed is the block without its last newline.
func printed(s result.Summary, st block.Style) string {
	return strings.TrimRight(block.Text(s, st), "\n")
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
func (d *studyDocument) stageTable(to *doc.Section) {
	s := to.Part(doc.InDocument, doc.Section{Level: 3, ID: "options", Title: "Summary of Optimization Options", Page: "Summary of optimization options", Entry: "Summary of options", Listed: true})
	if d.survey() || d.race != nil || len(d.Stages) == 0 {
		return
	}
	s.Styled(doc.InMarkdown, "", `Each gain is against the incumbent that the stage began with, not against the baseline; "-" means that nothing was gained.`)
	s.Styled(doc.InPage, "", "Each gain is against the incumbent that the stage began with, not against the baseline; “-” means that nothing was gained.")
	t := doc.Table{Columns: doc.Columns("Stage", "Incumbent", "Kept change", ">"+d.objective.Label+" after it", ">Gain")}
	t.Columns[4].Toned = true
	for _, st := range d.Stages {
		change, gain := doc.None, doc.Cell{Text: doc.Spans(doc.None)}
		if w := d.trials[st.Winner]; w != nil && st.Winner != st.Before {
			change, gain.Text = d.name(st.Winner), doc.Spans(d.gain(st.Gain))
			switch {
			case st.Gain != nil && *st.Gain > 0:
				gain.Tone = "up"
			case st.Gain != nil && *st.Gain < 0:
				gain.Tone = "down" // an SLO decided
			}
		}
		t.Rows = append(t.Rows, doc.Cells(st.Name, d.name(st.Before), change, number(d.summaryOf(d.trials[st.Winner]), d.objective), gain))
	}
	s.Add(doc.InDocument, t)
}

// otherCases adds the workloads beside the primary one.
func (d *studyDocument) otherCases(to *doc.Section) {
	s := to.Part(doc.InDocument, doc.Section{Level: 3, ID: "others", Title: "Other Benchmark Cases", Page: "Other benchmark cases", Listed: true})
	for _, c := range d.Cases {
		if c.Workload == d.primary || d.Baseline == nil || d.Recommended == nil {
			continue
		}
		if len(s.Items) == 0 {
			s.Para("Baseline and recommendation under the further workloads, to see how far the gain carries.")
		}
		gain, _ := d.caseGain(c)
		k := s.Part(doc.InDocument, doc.Section{Element: "article", Class: "trial", Title: d.workload(c.Workload), Labels: doc.Spans(doc.Toned("fig", gain))})
		text := ""
		for _, l := range d.Workloads {
			if l.Name == c.Workload {
				text = l.Text
			}
		}
		k.Para(text)
		k.Styled(doc.InMarkdown, "", "Gain against the baseline: ", doc.Bold(doc.Words(gain)))
		d.side(k, "Baseline", d.Baseline, c.Baseline)
		k.Add(doc.InPage, doc.Gap{})
		d.side(k, d.standing().word, d.Recommended, c.Recommended)
	}
	if len(s.Items) > 0 {
		s.Add(doc.InPage, doc.Gap{})
	}
}

// side adds one side of another case.
func (d *studyDocument) side(to *doc.Section, who string, p *outcome.Pick, sum *result.Summary) {
	s := to.Part(doc.InDocument, doc.Section{Level: 4, Page: who, Tight: true})
	deployed, command := d.deployed(p.Trial, p.Replicas), doc.Pre{Commands: true, Text: doc.WrapCommand(p.Command), Summary: "Serving command"}
	s.Styled(doc.InPage, "muted", deployed)
	s.Styled(doc.InMarkdown, "", who+": "+deployed)
	s.Add(doc.InPage, command)
	command.Summary = who + " serving command"
	s.Add(doc.InMarkdown, command)
	if sum == nil {
		s.Styled(doc.InMarkdown, "", who+": not measured.")
		s.Styled(doc.InPage, "", "Not measured.")
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
