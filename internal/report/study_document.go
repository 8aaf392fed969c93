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

// oldDocument is a study prepared for a reader: all forms render it, so that
// they cannot disagree.
type oldDocument struct {
	study
	Banner     string
	Warnings   []string // what to know before believing the conclusion
	Deploy     string   // how the recommended command is deployed
	HowTo      string   // what the command alone does not do
	Caveats    []string // notes of the recommended trial
	Software   []software
	Script     string // starts every replica, where the command alone does not
	Command    string // recommended
	From, To   string // objective of baseline and recommended
	Gain       string
	Comparison []comparison
	Survey     *survey         // in place of the comparison
	Race       *race           // of strategy race: in place of the stages
	Defined    []result.Metric // figures of the comparison
	Doubts     []string        // runs of the comparison whose verdict is not sound
	Remarks    []string
	Metric     result.Metric
	Sections   []oldSection
	Options    []option
	Others     []other
	Cost       []Fact
	Plots      []plot.Plot
	Extra      []plot.Plot // of one run
	ExtraOf    string      // whose they are
	Repeat     string
}

// survey is the table of a study that measured a list: the objective of every
// configuration under every workload.
type survey struct {
	Workloads []string
	Rows      []surveyed
}

type surveyed struct {
	Name    string
	Figures []string
	Best    bool
}

// comparison is one workload of the conclusion's table.
type comparison struct {
	Workload string
	Rows     []comparedRow
	Gain     string
	Tone     string // up, down
}

// comparedRow is one figure on both sides.
type comparedRow struct{ Label, Baseline, Recommended string }

// option is a row of the summary of options.
type option struct {
	Stage, Change, From, To, Gain string
	Better, Worse                 bool
}

// other is a further workload measured on baseline and recommended.
type other struct {
	Workload, Text      string
	Baseline, Optimized side
	Gain                string
}

// side is one half of an other.
type side struct {
	Command, Deploy string
	Run             *runView
}

// Heading is the document's title.
func (d oldDocument) Heading() string { return cmp.Or(d.Title, d.Name, "Study") }

// Sentence is the verdict as a sentence.
func (d oldDocument) Sentence() string { return d.sentence(d.Verdict) }

// Goal is what the study improved, for the reader.
func (d oldDocument) Goal() string {
	return strings.TrimSuffix(cmp.Or(d.Objective.Goal, d.Metric.Label), ".")
}

// PrimaryTitle is the workload that the search was judged by, or all that were
// weighed.
func (d oldDocument) PrimaryTitle() string {
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

// Lost reports whether the recommendation is worse than the baseline.
func (d oldDocument) Lost() bool {
	return d.Recommended != nil && d.Recommended.Gain != nil && *d.Recommended.Gain < 0
}

func oldNewDocument(s result.Study, o Options) oldDocument {
	x := index(s)
	x.style = o.style(x.objective)
	d := oldDocument{study: x, Metric: x.objective, Repeat: o.Repeat}
	d.Banner = simulatedBanner(x.Simulated, x.Predicted)
	d.Warnings = x.warnings()
	if r := s.Recommended; r != nil {
		d.Command, d.Deploy = wrapCommand(r.Command), x.deployed(r.Trial, r.Replicas)
		if r.Replicas > 1 {
			d.HowTo = fmt.Sprintf("The command starts one replica. Start it %d times, each on %s, and spread the requests over them.", r.Replicas, x.own(r.Trial))
			d.Script = wrapScript(x.script(r))
		}
		if t := x.trials[r.Trial]; t != nil {
			d.Caveats = t.Notes
		}
		d.To, d.Gain = quantity(r.Summary, x.objective), x.gain(r.Gain)
		d.Extra, d.ExtraOf = o.Extra, x.name(r.Trial)+" under "+x.workload(x.primary)
	}
	if x.Baseline != nil {
		d.From = quantity(s.Baseline.Summary, x.objective)
	}
	d.Software = x.software()
	d.Defined = x.compared(o)
	d.Comparison, d.Doubts = x.compare(d.Defined)
	d.Remarks = x.remarks()
	d.Race = x.raced()
	d.Sections = x.sections()
	d.Options = x.options()
	d.Others = x.others()
	d.Cost = x.cost()
	if d.Race == nil { // the chapters of a race have their own
		d.Plots = Plots(s)
	}
	if x.survey() {
		d.Survey = x.surveyed()
	}
	return d
}

// surveyed builds the table of a survey.
func (x study) surveyed() *survey {
	s := &survey{}
	for _, l := range x.Workloads {
		s.Workloads = append(s.Workloads, x.workload(l.Name))
	}
	for _, t := range x.Trials {
		row := surveyed{Name: x.name(t.ID), Best: x.role(t.ID) != ""}
		for _, l := range x.Workloads {
			text := statusWord(t.Status)
			for i := range t.Runs {
				if t.Runs[i].Workload == l.Name && t.Status == tune.Measured {
					text = number(&t.Runs[i].Summary, x.objective)
				}
			}
			row.Figures = append(row.Figures, text)
		}
		s.Rows = append(s.Rows, row)
	}
	return s
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

// compare builds the conclusion's table, and names its runs that are in doubt.
func (x study) compare(metrics []result.Metric) (rows []comparison, doubts []string) {
	for _, c := range x.Cases {
		row := comparison{Workload: x.workload(c.Workload)}
		row.Gain, row.Tone = x.caseGain(c)
		for _, m := range metrics {
			row.Rows = append(row.Rows, comparedRow{m.Label, number(c.Baseline, m), number(c.Recommended, m)})
		}
		rows = append(rows, row)
		if !x.kept() {
			doubts = append(doubts, doubt(row.Workload+", baseline", c.Baseline)...)
		}
		doubts = append(doubts, doubt(row.Workload+", recommended", c.Recommended)...)
	}
	return rows, doubts
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
