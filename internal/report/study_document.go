package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/report/plot"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// studyDocument is a study on its way into a document.
type studyDocument struct {
	study
	doc     Document
	options Options
	race    *race // of strategy race
	figures []result.Metric
}

// Study shows a study: for a terminal the verdict, a line for each trial and the
// recommended command, in documents the conclusion and all it rests on. A
// document in Markdown refers to a file for each of its plots.
func Study(s result.Study, o Options) (Document, error) {
	x := index(s)
	x.style = o.style(x.objective)
	if err := x.style.Validate(); err != nil {
		return Document{}, err
	}
	d := studyDocument{study: x, options: o, doc: newDocument(cmp.Or(x.Title, x.Name, "Study"), simulatedBanner(x.Simulated, x.Predicted), "the study "+s.Name)}
	d.doc.bare, d.doc.tail = inText, 22
	if x.Race != nil {
		d.race = &race{x}
	}
	d.figures = x.compared(o)
	d.summary()
	body := &d.doc.body
	d.conclusion(body.section("conclusion", "Conclusion"))
	if d.race != nil {
		s := body.section("reached", "How the Conclusion Was Reached")
		s.entry = "How it was reached"
		for _, c := range d.race.chapters() {
			c.add(s, true)
		}
	}
	body.add(inPage, gap{})
	d.goal(body.section("objective", "Optimization Objective"))
	d.setup(body.section("setup", "Experimental Setup"))
	d.results(body.section("results", "Experiment Results"))
	d.stageTable(body)
	d.otherCases(body)
	if d.race != nil {
		launchChapter(*d.race).add(body, false)
	}
	body.add(inPage, gap{})
	d.cost(body.section("cost", "What It Cost"))
	d.repeat(body.section("repeat", "How to Repeat"))
	return d.doc, nil
}

// conclusion adds what a busy reader needs.
func (d *studyDocument) conclusion(s *section) {
	s.styled(inDocument, "lead", d.sentence(d.Verdict))
	tiled := d.Recommended != nil && d.Baseline != nil
	if tiled {
		s.add(inPage, d.tiles())
	}
	s.list(inDocument, d.warnings()...)
	notes := list{numbered: true}
	for _, text := range d.remarks() {
		notes.items = append(notes.items, spans(text))
	}
	in := everywhere
	if d.race != nil {
		answers := d.race.answers()
		s.add(inMarkdown, answers)
		s.add(inPage, slices.DeleteFunc(slices.Clone(answers), func(t term) bool { return tiled && t.name == "Gain" }))
		d.recommended(s)
		comparisonChapter(*d.race).add(s, false)
		s.add(inPage, gap{})
	} else {
		d.recommended(s)
		if d.Recommended == nil {
			in = inPage // Markdown ends with the plots
		}
		d.surveyTable(s, in)
		s.figures(inDocument, func() []plot.Plot { return Plots(d.Study) })
		d.beforeAndAfter(s)
	}
	s.styled(in&inMarkdown, "", "Notes:")
	s.add(in&inMarkdown, notes)
	s.part(inPage, section{page: "Notes", tight: true}).add(inPage, notes)
}

// tiles are both sides and the gain.
func (d *studyDocument) tiles() tiles {
	gain, beside, tone := d.gain(d.Recommended.Gain), d.objective.Label, "gain"
	if g := d.Recommended.Gain; g != nil && *g < 0 {
		tone = "loss"
	}
	if d.race != nil {
		gain, beside = d.race.sure()
		tone = map[string]string{"up": "gain", "down": "loss"}[d.gainTone()]
	}
	return tiles{
		{label: "Baseline", value: quantity(d.Baseline.Summary, d.objective), beside: d.pickName(d.Baseline)},
		{label: "Recommended", value: quantity(d.Recommended.Summary, d.objective), beside: d.pickName(d.Recommended)},
		{label: "Gain", value: gain, beside: beside, tone: &tone},
	}
}

// recommended adds how the recommendation is started.
func (d *studyDocument) recommended(s *section) {
	r := d.Recommended
	if r == nil {
		s.para("No configuration is recommended.")
		return
	}
	lead := fmt.Sprintf("Recommended configuration for %s on %s:", d.Model, d.Hardware)
	if d.survey() {
		lead = fmt.Sprintf("Best of the list by %s under %s on %s:", d.objective.Name, d.primaryTitle(), d.Hardware)
	}
	deployed := "Deployment: " + d.deployed(r.Trial, r.Replicas) + ". "
	script := ""
	if r.Replicas > 1 {
		deployed += fmt.Sprintf("The command starts one replica. Start it %d times, each on %s, and spread the requests over them.", r.Replicas, d.own(r.Trial))
		script = wrapScript(d.script(r))
	}
	var notes []string
	if t := d.trials[r.Trial]; t != nil {
		notes = t.Notes
	}
	command := pre{commands: true, text: wrapCommand(r.Command)}
	s.styled(inMarkdown, "", lead+" "+d.name(r.Trial))
	s.add(inMarkdown, command)
	s.styled(inMarkdown, "", deployed)
	s.styledEach(inMarkdown, "note", notes...)
	page := s.part(inPage, section{page: "Serving command"})
	page.styled(inPage, "", lead+" "+d.pickName(r)+". "+deployed)
	page.add(inPage, command)
	if script != "" {
		s.add(inMarkdown, pre{commands: true, text: script})
		page.add(inPage, pre{commands: true, text: script})
	}
	page.styledEach(inPage, "note", notes...)
	s.add(inPage, gap{})
}

// surveyTable adds the objective of every configuration under every workload.
func (d *studyDocument) surveyTable(s *section, in form) {
	if !d.survey() {
		s.add(inPage, gap{})
		return
	}
	t := table{columns: columns("Configuration")}
	for _, l := range d.Workloads {
		t.columns = append(t.columns, column{head: spans(d.workload(l.Name)), right: true})
	}
	for _, trial := range d.Trials {
		r := cells(d.name(trial.ID))
		r.bold = d.role(trial.ID) != ""
		for _, l := range d.Workloads {
			c := cell{text: spans(statusWord(trial.Status))}
			for i := range trial.Runs {
				if trial.Runs[i].Workload == l.Name && trial.Status == tune.Measured {
					c.text = spans(number(&trial.Runs[i].Summary, d.objective))
				}
			}
			if r.bold {
				c.tone = "up"
			}
			r.cells = append(r.cells, c)
		}
		t.rows = append(t.rows, r)
	}
	s.styled(in&inMarkdown, "", d.objective.Label+" of every configuration under every workload:")
	s.part(in&inDocument, section{page: d.objective.Label + " of every configuration"}).add(inDocument, t)
}

// beforeAndAfter adds the figures of both sides under each workload, what speaks
// against the runs, and the plots of one of them.
func (d *studyDocument) beforeAndAfter(s *section) {
	d.cases(s.part(inDocument, section{page: "Before and after"}))
	extra := func() []plot.Plot { return d.options.Extra }
	if r := d.Recommended; r != nil && len(d.options.Extra) > 0 {
		of := "The run of " + d.name(r.Trial) + " under " + d.workload(d.primary)
		s.styled(inMarkdown, "", of+":")
		s.part(inDocument, section{page: of, tight: true}).figures(inDocument, extra)
	} else {
		s.add(inPage, gap{})
	}
}

func (d *studyDocument) cases(s *section) {
	if len(d.Cases) == 0 {
		return
	}
	against, ofLaunches := "against the baseline.", ""
	if d.race != nil {
		ofLaunches = d.race.ofLaunches()
		against += " " + ofLaunches
	}
	s.styled(inMarkdown, "", "Benchmark results before and after optimization. The gain is of the objective, "+d.objective.Label+", against the baseline:")
	s.styled(inMarkdown, "", ofLaunches)
	if d.race != nil && ofLaunches == "" {
		s.add(inMarkdown, gap{})
	}
	s.styled(inPage, "", "The gain is of the objective, "+d.objective.Label+", "+against)
	baseline, recommended := d.pickName(d.Baseline), d.pickName(d.Recommended)
	short := table{columns: columns("Benchmark Case", "Baseline: "+baseline, "Recommended: "+recommended, ">Gain")}
	long := table{class: "cmp", columns: columns("Benchmark case", "Figure", ">", ">", ">Gain")}
	long.columns[2].head, long.columns[2].wrap = spans("Baseline", newLine(), small(baseline)), true
	long.columns[3].head, long.columns[3].wrap = spans("Recommended", newLine(), small(recommended)), true
	long.columns[4].toned = true
	var doubts []string
	for _, c := range d.Cases {
		name := d.workload(c.Workload)
		gain, tone := d.caseGain(c)
		var before, after []span
		for i, m := range d.figures {
			a, b := number(c.Baseline, m), number(c.Recommended, m)
			if i > 0 {
				before, after = append(before, newLine()), append(after, newLine())
			}
			before, after = append(before, spans(m.Label+": "+a)...), append(after, spans(m.Label+": "+b)...)
			r := cells(cell{text: spans(name), rows: len(d.figures)}, m.Label, a, b, cell{text: spans(gain), tone: tone, rows: len(d.figures)})
			if i == 0 {
				r.class = "first"
			} else {
				r.cells[0].covered, r.cells[4].covered = true, true
			}
			long.rows = append(long.rows, r)
		}
		short.rows = append(short.rows, cells(cell{text: spans(name), strong: true}, before, after, cell{text: spans(words(gain)), strong: true}))
		if !d.kept() {
			doubts = append(doubts, doubt(name+", baseline", c.Baseline)...)
		}
		doubts = append(doubts, doubt(name+", recommended", c.Recommended)...)
	}
	s.add(inMarkdown, short)
	s.add(inPage, long)
	if len(doubts) > 0 {
		s.para("What the runs of this table were flagged for:")
		s.joined()
	}
	s.list(inDocument, doubts...)
}

// goal adds what the study improved.
func (d *studyDocument) goal(s *section) {
	m := d.objective
	goal := strings.TrimSuffix(cmp.Or(d.Objective.Goal, m.Label), ".")
	s.para(goal+". Judged by ", code(m.Name), " ("+d.Objective.Better+" is better) on the workload "+d.primaryTitle()+".")
	s.styled(inDocument, "muted", m.Doc)
	bounds := list{}
	for _, slo := range d.Objective.SLOs {
		bounds.items = append(bounds.items, spans(code(slo)))
	}
	if len(bounds.items) > 0 {
		s.para("Constraints that a configuration must meet:")
		s.joined()
	}
	s.list(inMarkdown, d.Objective.SLOs...)
	s.add(inPage, bounds)
	s.add(inPage, gap{})
}

// setup adds what was measured on what, and how.
func (d *studyDocument) setup(s *section) {
	client := strings.TrimSpace("perflab bench " + d.Version)
	page := table{noHead: everywhere, rows: []row{texts("Model", d.Model), texts("Hardware", d.Hardware)}}
	engines := list{}
	for _, e := range d.software() {
		engines.items = append(engines.items, spans(e.Text()))
		version := cell{text: spans(e.Version)}
		for _, image := range e.Images {
			version.text = append(version.text, newLine(), small("image ", code(image)))
		}
		page.rows = append(page.rows, cells(e.Title, version))
	}
	page.rows = append(page.rows, texts("Load client", client))
	meaning := table{columns: columns("Figure", "Definition", "Formula")}
	for _, m := range d.figures {
		meaning.rows = append(meaning.rows, cells(m.Label, m.Doc, code(m.Formula)))
	}
	loads := list{numbered: true}
	for _, l := range d.Workloads {
		loads.items = append(loads.items, spans(loadLine(l)))
	}
	s.add(inPage, page)
	s.part(inMarkdown, section{title: "Model"}).para(d.Model)
	s.part(inMarkdown, section{title: "Hardware"}).para(d.Hardware)
	s.part(inMarkdown, section{title: "Engine Version"}).add(inMarkdown, engines)
	method := s.part(inMarkdown, section{title: "Benchmark Method"})
	method.styled(inMarkdown, "", "Load was sent and measured by "+client+".")
	method.styled(inMarkdown, "", d.Method)
	method.styled(inMarkdown, "", "The figures compared here, by this client's definitions:")
	method.add(inMarkdown, meaning)
	meaning.caption = "What the compared figures mean"
	s.styled(inPage, "", d.Method)
	s.add(inPage, meaning)
	s.part(inDocument, section{title: "Benchmark Workloads", page: "Workloads", tight: true}).add(inDocument, loads)
	commands := s.part(inDocument, section{title: "Benchmark Commands", page: "Benchmark commands", tight: true})
	commands.para("With a configuration serving, these repeat its measurement:")
	commands.add(inDocument, pre{commands: true, text: benchScript(d.Workloads)})
	commands.add(inPage, gap{})
}

// cost adds the ledger and the number of configurations behind the conclusion.
func (d *studyDocument) cost(s *section) {
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
	t := table{noHead: inPage, columns: columns("Item", ">Amount"), rows: []row{
		texts("Trials", strings.Join(parts, ", ")),
		texts("Launches", fmt.Sprint(d.Ledger.Launches)),
		texts("Time under load (s)", fmt.Sprintf("%.1f", d.Ledger.LoadS)),
	}}
	if d.onGPUs() {
		t.rows = append(t.rows, texts("Allocated GPU time (GPU-s)", fmt.Sprintf("%.1f", d.Ledger.GPUSeconds)))
	}
	s.add(inDocument, t)
	if d.race != nil {
		ledgerChapter(*d.race).add(s, false)
	}
}

func (d *studyDocument) repeat(s *section) {
	s.para("Every figure above is in ", code("study.json"), ", and each run directory named above keeps the calls it was computed from.")
	if d.options.Repeat != "" {
		s.para("The whole study:")
		s.joined()
		s.add(inDocument, pre{commands: true, text: d.options.Repeat})
	}
	s.add(inPage, gap{})
	s.para("A single configuration: start its serving command (once per replica), then run the benchmark commands above.")
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
	switch {
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
func (x study) compared(o Options) []result.Metric {
	names := o.Figures
	if names == nil {
		names = []string{x.objective.Name, "mean_ttft_ms", "mean_tpot_ms", "output_throughput"}
		for _, slo := range x.Objective.SLOs {
			end := strings.IndexAny(slo, " <>=")
			if end <= 0 || strings.HasPrefix(slo, accuracyBound) {
				continue // accuracy is no figure of a run
			}
			names = append(names, slo[:end])
		}
		names = append(names, x.spent()...)
	}
	var metrics []result.Metric
	for _, n := range names {
		if m := x.metric(n); !slices.ContainsFunc(metrics, func(k result.Metric) bool { return k.Name == m.Name }) {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

func doubt(who string, s *result.Summary) []string {
	if s == nil {
		return nil
	}
	var d []string
	for _, c := range unsound(s.Verdict) {
		d = append(d, fmt.Sprintf("%s: %s (%s)", who, c.Text, c.Status))
	}
	return d
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

// wrapScript breaks the lines of a script as wrapCommand does one.
func wrapScript(script string) string {
	files, script := splitFiles(script)
	lines := strings.Split(script, "\n")
	for i := range lines {
		lines[i] = wrapCommand(lines[i])
	}
	return files + strings.Join(lines, "\n")
}

func loadLine(l result.Load) string {
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
func benchScript(loads []result.Load) string {
	var b strings.Builder
	for i, l := range loads {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "# %s\n%s\n", strings.Join(strings.Fields(cmp.Or(l.Title, l.Name)), " "), wrapCommand(l.Command))
	}
	return b.String()
}
