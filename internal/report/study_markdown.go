package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"perflab/internal/result"
)

// StudyMarkdown writes a study as a document of the published kind. It refers to
// plots/NAME.svg for each of its plots.
func StudyMarkdown(w io.Writer, s result.Study, o Options) error {
	if err := o.style(metric(s.Objective.Metric)).Validate(); err != nil {
		return err
	}
	d, m := oldNewDocument(s, o), &mdWriter{}
	if d.Banner != "" {
		m.para("> **%s**", mdText(d.Banner))
	}
	m.heading(1, d.Heading())
	if d.Race != nil {
		m.raceConclusion(d)
	} else {
		m.conclusion(d)
	}
	m.objective(d)
	m.setup(d)
	m.heading(2, "Experiment Results")
	m.raceResults(d)
	for _, sec := range d.Sections {
		m.section(sec)
	}
	m.optionTable(d)
	m.others(d)
	if d.Race != nil {
		m.chapter(3, d.Race.Launches)
	}
	m.cost(d)
	return m.writeTo(w, "the study "+s.Name)
}

func (m *mdWriter) conclusion(d oldDocument) {
	m.heading(2, "Conclusion")
	if d.Verdict != "" {
		m.para("**%s**", mdText(d.Sentence()))
	}
	m.list("-", d.Warnings...)
	if d.Recommended == nil {
		m.para("No configuration is recommended.")
		m.plots(d.Plots)
		return
	}
	m.recommended(d)
	m.survey(d)
	m.plots(d.Plots)
	m.comparison(d)
	if len(d.Extra) > 0 {
		m.para("The run of %s:", mdText(d.ExtraOf))
		m.plots(d.Extra)
	}
	m.para("Notes:")
	m.list("1.", d.Remarks...)
}

// recommended writes how the recommendation is started.
func (m *mdWriter) recommended(d oldDocument) {
	m.para("%s %s", mdText(d.Lead()), mdText(d.study.name(d.Recommended.Trial)))
	m.code("bash", d.Command)
	m.para("Deployment: %s. %s", mdText(d.Deploy), mdText(d.HowTo))
	for _, note := range d.Caveats {
		m.para("> %s", mdText(note))
	}
	if d.Script != "" {
		m.code("bash", d.Script)
	}
}

func (m *mdWriter) survey(d oldDocument) {
	if d.Survey == nil {
		return
	}
	m.para("%s of every configuration under every workload:", mdText(d.Metric.Label))
	head, rule := []string{"Configuration"}, []string{"---"}
	for _, w := range d.Survey.Workloads {
		head, rule = append(head, mdText(w)), append(rule, "---:")
	}
	m.row(head...)
	m.row(rule...)
	for _, r := range d.Survey.Rows {
		name := mdText(r.Name)
		if r.Best {
			name = "**" + name + "**"
		}
		m.row(append([]string{name}, r.Figures...)...)
	}
	m.b.WriteString("\n")
}

// Lead introduces the command that the study ends with.
func (d oldDocument) Lead() string {
	if d.survey() {
		return fmt.Sprintf("Best of the list by %s under %s on %s:", d.Metric.Name, d.PrimaryTitle(), d.Hardware)
	}
	return fmt.Sprintf("Recommended configuration for %s on %s:", d.Model, d.Hardware)
}

func (m *mdWriter) comparison(d oldDocument) {
	if len(d.Comparison) == 0 {
		return
	}
	m.para("Benchmark results before and after optimization. The gain is of the objective, %s, against the baseline:", mdText(d.Metric.Label))
	if d.Race != nil {
		m.para("%s", mdText(d.Race.OneOf))
	}
	m.row("Benchmark Case", mdText("Baseline: "+d.PickName(d.Baseline)), mdText("Recommended: "+d.PickName(d.Recommended)), "Gain")
	m.row("---", "---", "---", "---:")
	for _, c := range d.Comparison {
		var a, b []string
		for _, r := range c.Rows {
			a = append(a, mdText(r.Label)+": "+r.Baseline)
			b = append(b, mdText(r.Label)+": "+r.Recommended)
		}
		m.row("**"+mdText(c.Workload)+"**", strings.Join(a, "<br>"), strings.Join(b, "<br>"), "**"+c.Gain+"**")
	}
	m.b.WriteString("\n")
	if len(d.Doubts) > 0 {
		m.para("What the runs of this table were flagged for:")
		m.list("-", d.Doubts...)
	}
}

func (m *mdWriter) objective(d oldDocument) {
	m.heading(2, "Optimization Objective")
	m.para("%s. Judged by %s (%s is better) on the workload %s.", mdText(d.Goal()), mdCode(d.Metric.Name), d.Objective.Better, mdText(d.PrimaryTitle()))
	if d.Metric.Doc != "" {
		m.para("%s", mdText(d.Metric.Doc))
	}
	if len(d.Objective.SLOs) > 0 {
		m.para("Constraints that a configuration must meet:")
		m.list("-", d.Objective.SLOs...)
	}
}

func (m *mdWriter) setup(d oldDocument) {
	m.heading(2, "Experimental Setup")
	m.heading(3, "Model")
	m.para("%s", mdText(d.Model))
	m.heading(3, "Hardware")
	m.para("%s", mdText(d.Hardware))
	m.heading(3, "Engine Version")
	var engines []string
	for _, e := range d.Software {
		engines = append(engines, e.Text())
	}
	m.list("-", engines...)
	m.heading(3, "Benchmark Method")
	m.para("Load was sent and measured by %s.", mdText(d.Client()))
	if d.Method != "" {
		m.para("%s", mdText(d.Method))
	}
	m.para("The figures compared here, by this client's definitions:")
	m.row("Figure", "Definition", "Formula")
	m.row("---", "---", "---")
	for _, k := range d.Defined {
		m.row(mdText(k.Label), mdText(k.Doc), mdCode(k.Formula))
	}
	m.b.WriteString("\n")
	m.heading(3, "Benchmark Workloads")
	var loads []string
	for _, l := range d.Workloads {
		loads = append(loads, loadLine(l))
	}
	m.list("1.", loads...)
	m.heading(3, "Benchmark Commands")
	m.para("With a configuration serving, these repeat its measurement:")
	m.code("bash", benchScript(d.Workloads))
}

// Client names the load generator: clients differ in what their figures mean.
func (d oldDocument) Client() string { return strings.TrimSpace("perflab bench " + d.Version) }

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

func (m *mdWriter) section(s oldSection) {
	m.heading(3, s.Title())
	if s.Incumbent != "" {
		m.para("Incumbent: %s", mdText(s.Incumbent))
	}
	for _, t := range s.Trials {
		m.trial(t)
	}
	if len(s.Again) > 0 {
		m.para("Also in this comparison, measured above: %s.", mdText(strings.Join(s.Again, ", ")))
	}
	if s.Ranking != "" {
		m.para("Result: %s", mdText(s.Ranking))
	}
	if len(s.Unranked) > 0 {
		m.para("Not ranked: %s.", mdText(strings.Join(s.Unranked, ", ")))
	}
	if s.Result != "" {
		m.para("%s", mdText(s.Result))
	}
}

// Title is a section's heading, numbered when it is a stage.
func (s oldSection) Title() string {
	if s.Number > 0 {
		return fmt.Sprintf("%d. %s", s.Number, s.Heading)
	}
	return s.Heading
}

func (m *mdWriter) trial(t trialView) {
	head := fmt.Sprintf("Trial %d: %s", t.ID, t.Label)
	if t.Role != "" {
		head += " (" + t.Role + ")"
	}
	m.heading(4, head)
	if t.Incident {
		m.para("**Status: %s.** %s", mdText(t.StatusText()), mdText(t.Reason))
		if t.Advice != "" {
			m.para("What to do: %s", mdText(t.Advice))
		}
	}
	if len(t.Change) > 0 {
		m.para("Change of the incumbent: %s", mdCode(strings.Join(t.Change, " ")))
	}
	if t.Deploy != "" {
		m.para("Deployment: %s", mdText(t.Deploy))
	}
	if t.Facts != "" {
		m.para("By the engine's log: %s", mdText(t.Facts))
	}
	for _, note := range t.Notes {
		m.para("> %s", mdText(note))
	}
	m.folded("Serving command", "bash", t.Command)
	for _, r := range t.Runs {
		m.run(r)
	}
	if t.Log != "" && t.Incident {
		m.para("Log: %s", mdCode(t.Log))
	}
}

// StatusText is the trial's status, with the class of its failure.
func (t trialView) StatusText() string {
	if t.Class == "" {
		return statusWord(t.Status)
	}
	return statusWord(t.Status) + " (" + t.Class + ")"
}

func (m *mdWriter) run(r runView) {
	m.para("%s, seed %d, run directory %s", mdText(r.Workload), r.Seed, mdCode(r.Dir))
	m.folded("Benchmark result", "text", r.Block)
	m.checks(r)
}

func (m *mdWriter) checks(r runView) {
	for _, c := range r.Checks {
		m.para("> **%s** (%s): %s", c.Status, mdText(c.Name), mdText(c.Text))
	}
}

func (m *mdWriter) optionTable(d oldDocument) {
	if len(d.Options) == 0 {
		return
	}
	m.heading(3, "Summary of Optimization Options")
	m.para("Each gain is against the incumbent that the stage began with, not against the baseline; \"-\" means that nothing was gained.")
	m.row("Stage", "Incumbent", "Kept change", mdText(d.Metric.Label)+" after it", "Gain")
	m.row("---", "---", "---", "---:", "---:")
	for _, o := range d.Options {
		m.row(mdText(o.Stage), mdText(o.From), mdText(o.Change), o.To, o.Gain)
	}
	m.b.WriteString("\n")
}

func (m *mdWriter) others(d oldDocument) {
	if len(d.Others) == 0 {
		return
	}
	m.heading(3, "Other Benchmark Cases")
	m.para("Baseline and recommendation under the further workloads, to see how far the gain carries.")
	for _, k := range d.Others {
		m.heading(4, k.Workload)
		if k.Text != "" {
			m.para("%s", mdText(k.Text))
		}
		m.para("Gain against the baseline: **%s**", k.Gain)
		m.side("Baseline", k.Baseline)
		m.side("Recommended", k.Optimized)
	}
}

func (m *mdWriter) side(who string, s side) {
	m.para("%s: %s", who, mdText(s.Deploy))
	m.folded(who+" serving command", "bash", s.Command)
	if s.Run == nil {
		m.para("%s: not measured.", who)
		return
	}
	m.folded(who+" benchmark result", "text", s.Run.Block)
	m.checks(*s.Run)
}

func (m *mdWriter) cost(d oldDocument) {
	m.heading(2, "What It Cost")
	m.row("Item", "Amount")
	m.row("---", "---:")
	for _, f := range d.Cost {
		m.row(mdText(f.Label), mdText(f.Value))
	}
	m.b.WriteString("\n")
	if d.Race != nil && d.Race.Ledger.Grid != nil {
		m.chapter(3, d.Race.Ledger)
	}
	m.heading(2, "How to Repeat")
	m.para("Every figure above is in %s, and each run directory named above keeps the calls it was computed from.", mdCode("study.json"))
	if d.Repeat != "" {
		m.para("The whole study:")
		m.code("bash", d.Repeat)
	}
	m.para("A single configuration: start its serving command (once per replica), then run the benchmark commands above.")
}
