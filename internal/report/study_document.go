package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/finding"
	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// studyDocument is a study on its way into a document.
type studyDocument struct {
	study
	doc     doc.Document
	options Options
	race    *race // of strategy race
	figures []result.Metric
}

// Study shows a study: for a terminal the verdict, a line for each trial and the
// recommended command, in documents the conclusion and all it rests on. A
// document in Markdown refers to a file for each of its plots.
func Study(s outcome.Study, o Options) (doc.Document, error) {
	x := index(s)
	x.style = o.style(x.objective)
	if err := x.style.Validate(); err != nil {
		return doc.Document{}, err
	}
	d := studyDocument{study: x, options: o, doc: doc.New(cmp.Or(x.Title, x.Name, "Study"), simulatedBanner(x.Simulated, x.Predicted), "the study "+s.Name)}
	d.doc.Bare, d.doc.Tail = doc.InText, 22
	if x.Race != nil {
		d.race = &race{x}
	}
	d.figures = x.compared()
	d.summary()
	body := &d.doc.Body
	d.conclusion(body.Section("conclusion", "Conclusion"))
	d.next(finding.Next(s, o.Dir), finding.Next(s, ""))
	if d.race != nil {
		s := body.Section("reached", "How the Conclusion Was Reached")
		s.Entry = "How it was reached"
		for _, c := range d.race.chapters() {
			c.Add(s, true)
		}
	}
	if d.Forecast != nil || d.Reference != nil && d.race == nil {
		d.forecastChapters(body.Section("reached", "How the Conclusion Was Reached"))
	}
	body.Add(doc.InPage, doc.Gap{})
	d.goal(body.Section("objective", "Optimization Objective"))
	d.setup(body.Section("setup", "Experimental Setup"))
	d.results(body.Section("results", "Experiment Results"))
	d.stageTable(body)
	d.loadCurves(body)
	d.otherCases(body)
	if d.race != nil {
		launchChapter(*d.race).Add(body, false)
	}
	body.Add(doc.InPage, doc.Gap{})
	d.cost(body.Section("cost", "What It Cost"))
	d.repeat(body.Section("repeat", "How to Repeat"))
	return d.doc, nil
}

// next adds what to do now: a terminal has the first few, as of where the study is on this machine.
func (d *studyDocument) next(here, steps []string) {
	if len(steps) == 0 {
		return
	}
	d.doc.Body.Text("")
	for _, text := range here[:min(3, len(here))] {
		d.doc.Body.Text("Next: " + text)
	}
	d.doc.Body.Section("next", "What to Do Next").List(doc.InDocument, steps...)
}

// conclusion adds what a busy reader needs.
func (d *studyDocument) conclusion(s *doc.Section) {
	s.Styled(doc.InDocument, "lead", d.sentence(d.Verdict))
	tiled := d.Recommended != nil && d.Baseline != nil
	if tiled {
		s.Add(doc.InPage, d.tiles())
	}
	s.List(doc.InDocument, append(d.warnings(), d.references()...)...)
	if d.Forecast != nil {
		s.Add(doc.InDocument, d.forecastAnswers())
	}
	notes := doc.List{Numbered: true}
	for _, text := range d.remarks() {
		notes.Items = append(notes.Items, doc.Spans(text))
	}
	in := doc.Everywhere
	if d.race != nil {
		answers := d.race.answers()
		s.Add(doc.InMarkdown, answers)
		s.Add(doc.InPage, slices.DeleteFunc(slices.Clone(answers), func(t doc.Definition) bool { return tiled && t.Name == "Gain" }))
		d.recommended(s)
		comparisonChapter(*d.race).Add(s, false)
		s.Add(doc.InPage, doc.Gap{})
	} else {
		d.recommended(s)
		if d.Recommended == nil {
			in = doc.InPage // Markdown ends with the plots
		}
		d.surveyTable(s, in)
		s.Figures(doc.InDocument, func() []plot.Plot { return Plots(d.Study) })
		d.beforeAndAfter(s)
	}
	s.Styled(in&doc.InMarkdown, "", "Notes:")
	s.Add(in&doc.InMarkdown, notes)
	s.Part(doc.InPage, doc.Section{Page: "Notes", Tight: true}).Add(doc.InPage, notes)
}

// tiles are both sides and the gain.
func (d *studyDocument) tiles() doc.Tiles {
	gain, beside, tone := d.gain(d.Recommended.Gain), d.objective.Label, "gain"
	if g := d.Recommended.Gain; g != nil && *g < 0 {
		tone = "loss"
	}
	if p := d.Recommended; d.Forecast != nil && p.Interval != nil {
		beside = d.brackets(*p.Gain, *p.Interval) + " in nine of ten cases"
	}
	if d.race != nil {
		gain, beside = d.race.sure()
		tone = map[string]string{"up": "gain", "down": "loss"}[d.gainTone()]
	}
	return doc.Tiles{
		{Label: "Baseline", Value: quantity(d.Baseline.Summary, d.objective), Beside: d.pickTitle(d.Baseline)},
		{Label: d.standing().word, Value: quantity(d.Recommended.Summary, d.objective), Beside: d.pickTitle(d.Recommended)},
		{Label: "Gain", Value: gain, Beside: beside, Tone: &tone},
	}
}

// recommended adds how the recommendation is started.
func (d *studyDocument) recommended(s *doc.Section) {
	r := d.Recommended
	if r == nil {
		s.Para("No configuration is recommended.")
		return
	}
	lead := d.lead()
	deployed := strings.TrimSpace("Deployment: " + d.deployed(r.Trial, r.Replicas) + ". " + d.startNote(r))
	var notes []string
	if t := d.trials[r.Trial]; t != nil {
		notes = t.Notes
	}
	command := doc.Pre{Commands: true, Text: commandText(r)}
	s.Styled(doc.InMarkdown, "", lead+" "+d.name(r.Trial))
	s.Add(doc.InMarkdown, command)
	s.Styled(doc.InMarkdown, "", deployed)
	s.StyledEach(doc.InMarkdown, "note", notes...)
	page := s.Part(doc.InPage, doc.Section{Page: "Serving command"})
	page.Styled(doc.InPage, "", lead+" "+d.pickTitle(r)+". "+deployed)
	page.Add(doc.InPage, command)
	page.StyledEach(doc.InPage, "note", notes...)
	s.Add(doc.InPage, doc.Gap{})
}

// surveyTable adds the objective of every configuration under every workload.
func (d *studyDocument) surveyTable(s *doc.Section, in doc.Form) {
	if !d.survey() {
		s.Add(doc.InPage, doc.Gap{})
		return
	}
	t := doc.Table{Columns: doc.Columns("Configuration")}
	for _, l := range d.Workloads {
		t.Columns = append(t.Columns, doc.Column{Head: doc.Spans(d.workload(l.Name)), Right: true})
	}
	for _, trial := range d.Trials {
		r := doc.Cells(d.name(trial.ID))
		r.Bold = d.role(trial.ID) != ""
		for _, l := range d.Workloads {
			c := doc.Cell{Text: doc.Spans(statusWord(trial.Status))}
			for i := range trial.Runs {
				if trial.Runs[i].Workload == l.Name && trial.Status == tune.Measured {
					c.Text = doc.Spans(number(&trial.Runs[i].Summary, d.objective))
				}
			}
			if r.Bold {
				c.Tone = "up"
			}
			r.Cells = append(r.Cells, c)
		}
		t.Rows = append(t.Rows, r)
	}
	s.Styled(in&doc.InMarkdown, "", d.objective.Label+" of every configuration under every workload:")
	s.Part(in&doc.InDocument, doc.Section{Page: d.objective.Label + " of every configuration"}).Add(doc.InDocument, t)
}

// beforeAndAfter adds the figures of both sides under each workload, what speaks
// against the runs, and the plots of one of them.
func (d *studyDocument) beforeAndAfter(s *doc.Section) {
	d.cases(s.Part(doc.InDocument, doc.Section{Page: "Before and after"}))
	extra := func() []plot.Plot { return d.options.Extra }
	if r := d.Recommended; r != nil && len(d.options.Extra) > 0 {
		of := "The run of " + d.name(r.Trial) + " under " + d.workload(d.primary)
		s.Styled(doc.InMarkdown, "", of+":")
		s.Part(doc.InDocument, doc.Section{Page: of, Tight: true}).Figures(doc.InDocument, extra)
	} else {
		s.Add(doc.InPage, doc.Gap{})
	}
}

func (d *studyDocument) cases(s *doc.Section) {
	if len(d.Cases) == 0 {
		return
	}
	against, ofLaunches := "against the baseline.", ""
	if d.race != nil {
		ofLaunches = d.race.ofLaunches()
		against += " " + ofLaunches
	}
	s.Styled(doc.InMarkdown, "", "Benchmark results before and after optimization. The gain is of the objective, "+d.objective.Label+", against the baseline:")
	s.Styled(doc.InMarkdown, "", ofLaunches)
	if d.race != nil && ofLaunches == "" {
		s.Add(doc.InMarkdown, doc.Gap{})
	}
	s.Styled(doc.InPage, "", "The gain is of the objective, "+d.objective.Label+", "+against)
	baseline, recommended := d.pickTitle(d.Baseline), d.pickTitle(d.Recommended)
	short := doc.Table{Columns: doc.Columns("Benchmark Case", "Baseline: "+baseline, d.standing().word+": "+recommended, ">Gain")}
	long := doc.Table{Class: "cmp", Columns: doc.Columns("Benchmark case", "Figure", ">", ">", ">Gain")}
	long.Columns[2].Head, long.Columns[2].Wrap = doc.Spans("Baseline", doc.NewLine(), doc.Small(baseline)), true
	long.Columns[3].Head, long.Columns[3].Wrap = doc.Spans(d.standing().word, doc.NewLine(), doc.Small(recommended)), true
	long.Columns[1].Class, long.Columns[4].Toned = "figure", true
	var doubts remarks
	for _, c := range d.Cases {
		name := d.workload(c.Workload)
		gain, tone := d.caseGain(c)
		var before, after []doc.Span
		for i, m := range d.figures {
			a, b := number(c.Baseline, m), number(c.Recommended, m)
			if i > 0 {
				before, after = append(before, doc.NewLine()), append(after, doc.NewLine())
			}
			before, after = append(before, doc.Spans(m.Label+": "+a)...), append(after, doc.Spans(m.Label+": "+b)...)
			r := doc.Cells(doc.Cell{Text: doc.Spans(name), Rows: len(d.figures)}, m.Label, a, b, doc.Cell{Text: doc.Spans(gain), Tone: tone, Rows: len(d.figures)})
			if i == 0 {
				r.Class = "first"
			} else {
				r.Cells[0].Covered, r.Cells[4].Covered = true, true
			}
			long.Rows = append(long.Rows, r)
		}
		short.Rows = append(short.Rows, doc.Cells(doc.Cell{Text: doc.Spans(name), Strong: true}, before, after, doc.Cell{Text: doc.Spans(doc.Words(gain)), Strong: true}))
		if !d.keepsBaseline() {
			doubts.of(name+", baseline", c.Baseline)
		}
		doubts.of(name+", "+strings.ToLower(d.standing().word), c.Recommended)
	}
	s.Add(doc.InMarkdown, short)
	s.Add(doc.InPage, long)
	if len(doubts) > 0 {
		s.Para("What the runs of this table were flagged for:")
		s.Joined()
	}
	s.List(doc.InDocument, doubts.lines()...)
}

// goal adds what the study improved.
func (d *studyDocument) goal(s *doc.Section) {
	m := d.objective
	goal := strings.TrimSuffix(cmp.Or(d.Objective.Goal, m.Label), ".")
	s.Para(goal+". Judged by ", doc.Code(m.Name), " ("+d.Objective.Better+" is better) on the workload "+d.primaryTitle()+".")
	s.Styled(doc.InDocument, "muted", m.Doc)
	bounds := doc.List{}
	for _, slo := range d.Objective.SLOs {
		bounds.Items = append(bounds.Items, doc.Spans(doc.Code(slo)))
	}
	if len(bounds.Items) > 0 {
		s.Para("Constraints that a configuration must meet:")
		s.Joined()
	}
	s.List(doc.InMarkdown, d.Objective.SLOs...)
	s.Add(doc.InPage, bounds)
	s.Add(doc.InPage, doc.Gap{})
}

// setup adds what was measured on what, and how.
func (d *studyDocument) setup(s *doc.Section) {
	client := strings.TrimSpace("perflab bench " + d.Version)
	page := doc.Table{NoHead: doc.Everywhere, Rows: []doc.Row{doc.Texts("Model", d.Model), doc.Texts("Hardware", d.Hardware)}}
	engines := doc.List{}
	for _, e := range d.software() {
		engines.Items = append(engines.Items, doc.Spans(e.Text()))
		version := doc.Cell{Text: doc.Spans(e.Version)}
		for _, image := range e.Images {
			version.Text = append(version.Text, doc.NewLine(), doc.Small("image ", doc.Code(image)))
		}
		page.Rows = append(page.Rows, doc.Cells(e.Title, version))
	}
	page.Rows = append(page.Rows, doc.Texts("Load client", client))
	if host := Host(d.options.Host); host != "" {
		page.Rows = append(page.Rows, doc.Texts(LoadGenerator, host))
		client += " on " + host
	}
	when := span(d.Started, d.Ended)
	if when != "" {
		page.Rows = append(page.Rows, doc.Texts("Ran", when))
	}
	meaning := doc.Table{Columns: doc.Columns("Figure", "Definition", "Formula")}
	for _, m := range d.figures {
		meaning.Rows = append(meaning.Rows, doc.Cells(m.Label, m.Doc, doc.Code(m.Formula)))
	}
	loads := doc.List{Numbered: true}
	for _, l := range d.Workloads {
		l.Primary = l.Primary && !d.weighed() // else the objective says what it is judged by
		loads.Items = append(loads.Items, doc.Spans(loadLine(l)))
	}
	s.Add(doc.InPage, page)
	s.Part(doc.InMarkdown, doc.Section{Title: "Model"}).Para(d.Model)
	s.Part(doc.InMarkdown, doc.Section{Title: "Hardware"}).Para(d.Hardware)
	s.Part(doc.InMarkdown, doc.Section{Title: "Engine Version"}).Add(doc.InMarkdown, engines)
	method := s.Part(doc.InMarkdown, doc.Section{Title: "Benchmark Method"})
	method.Styled(doc.InMarkdown, "", strings.TrimSuffix(d.clientWord()+client+", "+when, ", ")+".")
	method.Styled(doc.InMarkdown, "", d.Method)
	method.Styled(doc.InMarkdown, "", "The figures compared here, by this client's definitions:")
	method.Add(doc.InMarkdown, meaning)
	meaning.Caption = "What the compared figures mean"
	s.Styled(doc.InPage, "", d.Method)
	s.Add(doc.InPage, meaning)
	s.Part(doc.InDocument, doc.Section{Title: "Benchmark Workloads", Page: "Workloads", Tight: true}).Add(doc.InDocument, loads)
	commands := s.Part(doc.InDocument, doc.Section{Title: "Benchmark Commands", Page: "Benchmark commands", Tight: true})
	commands.Para("With a configuration serving, these repeat its measurement:")
	commands.Add(doc.InDocument, doc.Pre{Commands: true, Text: benchScript(d.Workloads)})
	commands.Add(doc.InPage, doc.Gap{})
}

// cost adds the ledger and the number of configurations behind the conclusion.
func (d *studyDocument) cost(s *doc.Section) {
	by := map[string]int{}
	for _, t := range d.Trials {
		by[t.Status]++
	}
	var parts []string
	for _, st := range []string{tune.Measured, tune.Refused, tune.Failed, tune.Void} {
		if by[st] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", by[st], statusWord(st)))
		}
	}
	t := doc.Table{NoHead: doc.InPage, Columns: doc.Columns("Item", ">Amount"), Rows: []doc.Row{
		doc.Texts("Trials", strings.Join(parts, ", ")),
	}}
	if d.Forecast != nil {
		t.Rows = append(t.Rows, doc.Texts("Configurations predicted", fmt.Sprint(d.Forecast.Predicted)))
	} else {
		t.Rows = append(t.Rows, doc.Texts("Launches", fmt.Sprint(d.Ledger.Launches)), doc.Texts("Time under load (s)", fmt.Sprintf("%.1f", d.Ledger.LoadS)))
	}
	if d.onGPUs() && d.Forecast == nil {
		t.Rows = append(t.Rows, doc.Texts("Allocated GPU time (GPU-s)", fmt.Sprintf("%.1f", d.Ledger.GPUSeconds)))
	}
	s.Add(doc.InDocument, t)
	if d.race != nil {
		ledgerChapter(*d.race).Add(s, false)
	}
}

func (d *studyDocument) repeat(s *doc.Section) {
	s.Para("Every figure above is in ", doc.Code("study.json"), ", and each run directory named above keeps the calls it was computed from.")
	if d.options.Repeat != "" {
		s.Para("The whole study:")
		s.Joined()
		s.Add(doc.InDocument, doc.Pre{Commands: true, Text: d.options.Repeat})
	}
	s.Add(doc.InPage, doc.Gap{})
	s.Para("A single configuration: start its serving command (once per replica), then run the benchmark commands above.")
}

// primaryTitle is the workload that the search was judged by, or all that were
// weighed.
func (d *studyDocument) primaryTitle() string {
	if !d.weighed() {
		return d.workload(d.primary)
	}
	var titles []string
	for _, w := range d.Workloads {
		if d.Objective.Weights[w.Name] > 0 {
			titles = append(titles, d.workload(w.Name))
		}
	}
	return strings.Join(titles, " and ") + ", weighed"
}

// warnings says what the conclusion lacks.
func (x study) warnings() []string {
	var w []string
	if x.Partial {
		w = append(w, "Partial: the study was stopped or is still running; the conclusion is of what was measured so far.")
	}
	w = append(w, x.Doubts...)
	if x.Race != nil {
		w = append(w, unlaunched(x.Race.Unlaunched)...)
	}
	if r := x.Recommended; r != nil && r.Shorter != "" {
		w = append(w, fmt.Sprintf("SHORTER CONTEXT: #%d %s. Longer requests are refused.", r.Trial, r.Shorter))
	}
	switch {
	case x.Forecast != nil, x.Predicted && !x.Confirmed && x.Race == nil:
		w = append(w, x.replayed()...)
	case x.survey():
		w = append(w, "A survey: each configuration was launched once, and none is measured as an improvement of another.")
	case x.Race != nil && x.Confirmed: // the gain says of how many launches it is
	case x.Recommended == nil || x.Baseline == nil || x.Recommended.Trial == x.Baseline.Trial:
	case x.Confirmed:
		w = append(w, fmt.Sprintf("Confirmed: baseline and recommendation were launched again on fresh seeds after the search; the comparison shows those launches (trials #%d and #%d).", x.Baseline.Trial, x.Recommended.Trial))
	default:
		w = append(w, "Not confirmed: each side of the comparison is a single launch from the search and was not measured again.")
	}
	return w
}

// compared chooses the metrics of the comparison. Latencies stand beside
// throughput because one is often bought with the other.
func (x study) compared() []result.Metric {
	names := []string{x.objective.Name}
	for _, n := range []string{"mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms"} {
		if strings.HasPrefix(n, "mean") || x.has(n) { // a tail stands beside its mean where it is known
			names = append(names, n)
		}
	}
	names = append(names, "output_throughput")
	for _, slo := range x.Objective.SLOs {
		end := strings.IndexAny(slo, " <>=")
		if end <= 0 || strings.HasPrefix(slo, accuracyBound) {
			continue // accuracy is no figure of a run
		}
		names = append(names, slo[:end])
	}
	names = append(names, x.spent()...)
	var metrics []result.Metric
	for _, n := range names {
		if m := x.metric(n); !slices.ContainsFunc(metrics, func(k result.Metric) bool { return k.Name == m.Name }) {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// remarks are what the runs of a table were flagged for: each text once, with all
// that it is said of.
type remarks []remark

type remark struct {
	text string
	whom []string
}

// of adds what is to be known of a run.
func (r *remarks) of(who string, s *result.Summary) {
	if s == nil {
		return
	}
	for _, c := range unsound(s.Verdict) {
		text := fmt.Sprintf("%s (%s)", c.Text, c.Status)
		i := slices.IndexFunc(*r, func(x remark) bool { return x.text == text })
		if i < 0 {
			i, *r = len(*r), append(*r, remark{text: text})
		}
		(*r)[i].whom = append((*r)[i].whom, who)
	}
}

// lines are a line for each text.
func (r remarks) lines() []string {
	var out []string
	for _, x := range r {
		out = append(out, strings.Join(x.whom, "; ")+": "+x.text)
	}
	return out
}

// unsound are the checks of a verdict that a reader must know.
func unsound(v result.Verdict) []result.Check {
	var c []result.Check
	for _, k := range v.Checks {
		if k.Status != result.Sound {
			c = append(c, k)
		}
	}
	return c
}

// remarks are the study's notes after those that hold for its kind.
func (x study) remarks() []string {
	r := slices.Clone(x.Notes)
	if x.Strategy == "staged" {
		r = append(r, "The search is greedy: each stage keeps its best candidate, so combinations that were never tried may be better.")
	}
	r = append(r, "The figures hold for the hardware, engine versions and workloads named below.")
	if x.objective.Name == "total_token_throughput" {
		r = append(r, "Total token throughput counts prompt tokens too; compare it within a workload, not between workloads.")
	}
	return r
}

func loadLine(l outcome.Load) string {
	s := cmp.Or(l.Title, l.Name)
	if l.Primary {
		s += " (primary: the search is judged by it)"
	}
	if l.Text != "" {
		s += ": " + l.Text
	}
	return s
}

// benchScript lists the commands that repeat the workloads.
func benchScript(loads []outcome.Load) string {
	var b strings.Builder
	for i, l := range loads {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "# %s\n%s\n", strings.Join(strings.Fields(cmp.Or(l.Title, l.Name)), " "), doc.WrapCommand(l.Command))
	}
	return b.String()
}
