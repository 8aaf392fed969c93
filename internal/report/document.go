package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// study is a result.Study with the look-ups that every renderer needs.
type study struct {
	result.Study
	objective result.Metric
	primary   string
	trials    map[int]*result.Trial
	style     result.Style // of blocks
}

func index(s result.Study) study {
	x := study{Study: s, objective: metric(s.Objective.Metric), trials: map[int]*result.Trial{}}
	for i := range s.Trials {
		x.trials[s.Trials[i].ID] = &s.Trials[i]
		for _, r := range s.Trials[i].Runs { // one simulated run taints the whole
			x.Simulated = x.Simulated || r.Summary.Simulated
			x.Predicted = x.Predicted || r.Summary.Predicted
		}
	}
	x.Simulated = x.Simulated || x.Predicted
	if x.survey() {
		x.Baseline = nil // no configuration of a list is measured against another
	}
	for _, l := range s.Workloads {
		if l.Primary || x.primary == "" {
			x.primary = l.Name
		}
		if l.Primary {
			break
		}
	}
	return x
}

// survey reports whether the study measured a list and improved nothing.
func (x study) survey() bool { return x.Strategy == "survey" }

func (x study) lower() bool { return x.Objective.Better == "lower" }

func (x study) gain(g *float64) string { return gainText(g, x.objective, x.Objective.Better) }

// summary is a trial's on the primary workload, or nil.
func (x study) summary(t *result.Trial) *result.Summary {
	if t == nil {
		return nil
	}
	for i := range t.Runs {
		if t.Runs[i].Workload == x.primary {
			return &t.Runs[i].Summary
		}
	}
	return nil
}

// name is how a trial is referred to: "#3 TP4 EP4".
func (x study) name(id int) string {
	if t := x.trials[id]; t != nil {
		return fmt.Sprintf("#%d %s", id, t.Label)
	}
	return fmt.Sprintf("#%d", id)
}

// workload is the title of a workload.
func (x study) workload(name string) string {
	for _, l := range x.Workloads {
		if l.Name == name {
			return cmp.Or(l.Title, l.Name)
		}
	}
	return name
}

// PickName names a side of the comparison with its number of replicas.
func (x study) PickName(p *result.Pick) string {
	if p == nil {
		return "none"
	}
	return x.name(p.Trial) + ", " + count(max(p.Replicas, 1), "replica")
}

// role marks the trials that the conclusion speaks of.
func (x study) role(id int) string {
	switch {
	case x.Recommended != nil && x.Recommended.Trial == id && x.survey():
		return "best"
	case x.Recommended != nil && x.Recommended.Trial == id:
		return "recommended"
	case x.Baseline != nil && x.Baseline.Trial == id:
		return "baseline"
	}
	return ""
}

// document is a study prepared for a reader: all forms render it, so that
// they cannot disagree.
type document struct {
	study
	Banner     string
	Warnings   []string // what to know before believing the conclusion
	Deploy     string   // how the recommended command is deployed
	HowTo      string   // what the command alone does not do
	Script     string   // starts every replica, where the command alone does not
	Command    string   // recommended
	From, To   string   // objective of baseline and recommended
	Gain       string
	Comparison []comparison
	Survey     *survey         // in place of the comparison
	Defined    []result.Metric // figures of the comparison
	Doubts     []string        // runs of the comparison whose verdict is not sound
	Remarks    []string
	Metric     result.Metric
	Sections   []section
	Options    []option
	Others     []other
	Cost       []figure
	Plots      []Plot
	Extra      []Plot // of one run
	ExtraOf    string // whose they are
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
	Worse    bool
}

// comparedRow is one figure on both sides.
type comparedRow struct{ Label, Baseline, Recommended string }

// section is a stage with its trials.
type section struct {
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
	Reason   string
	Advice   string // what to do about it
	Notes    []string
	Said     string   // what the engine's log tells of it
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
func (d document) Heading() string { return cmp.Or(d.Title, d.Name, "Study") }

// Sentence is the verdict as a sentence.
func (d document) Sentence() string { return d.sentence(d.Verdict) }

// Goal is what the study improved, for the reader.
func (d document) Goal() string {
	return strings.TrimSuffix(cmp.Or(d.Objective.Goal, d.Metric.Label), ".")
}

// PrimaryTitle is the workload that the search was judged by.
func (d document) PrimaryTitle() string { return d.workload(d.primary) }

// Lost reports whether the recommendation is worse than the baseline.
func (d document) Lost() bool {
	return d.Recommended != nil && d.Recommended.Gain != nil && *d.Recommended.Gain < 0
}

// sentence gives a clause its capital and full stop. A clause that begins with
// the name of a configuration keeps it as it is spelt.
func (x study) sentence(s string) string {
	if s == "" {
		return ""
	}
	named := func(t result.Trial) bool { return strings.HasPrefix(s, t.Label) }
	if s[0] < utf8.RuneSelf && !slices.ContainsFunc(x.Trials, named) {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

func newDocument(s result.Study, o Options) document {
	x := index(s)
	x.style = o.style(x.objective)
	d := document{study: x, Metric: x.objective, Repeat: o.Repeat}
	d.Banner = simulatedBanner(x.Simulated, x.Predicted)
	d.Warnings = x.warnings()
	if r := s.Recommended; r != nil {
		d.Command, d.Deploy = wrapCommand(r.Command), x.deployed(r.Trial, r.Replicas)
		if r.Replicas > 1 {
			d.HowTo = fmt.Sprintf("The command starts one replica. Start it %d times, each on its own GPUs and port, and spread the requests over them.", r.Replicas)
			d.Script = wrapScript(x.script(r))
		}
		d.To, d.Gain = quantity(r.Summary, x.objective), x.gain(r.Gain)
		d.Extra, d.ExtraOf = o.Extra, x.name(r.Trial)+" under "+x.workload(x.primary)
	}
	if x.Baseline != nil {
		d.From = quantity(s.Baseline.Summary, x.objective)
	}
	d.Defined = x.compared(o)
	d.Comparison, d.Doubts = x.compare(d.Defined)
	d.Remarks = x.remarks()
	d.Sections = x.sections()
	d.Options = x.options()
	d.Others = x.others()
	d.Cost = x.cost()
	d.Plots = Plots(s)
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

// script starts every replica of a configuration on devices and a port of its
// own. It is empty where that takes more than one machine, or where the
// command chooses its port itself.
func (x study) script(p *result.Pick) string {
	t := x.trials[p.Trial]
	files, command := splitFiles(p.Command)
	if t == nil || t.GPUs < p.Replicas || !strings.HasSuffix(x.Hardware, "on one node") || strings.Contains(command, "--port") {
		return ""
	}
	const firstPort = 8000
	per := t.GPUs / p.Replicas
	var b strings.Builder
	b.WriteString(files)
	for i := range p.Replicas {
		ids := make([]string, per)
		for j := range ids {
			ids[j] = strconv.Itoa(i*per + j)
		}
		fmt.Fprintf(&b, "CUDA_VISIBLE_DEVICES=%s %s --port %d &\n", strings.Join(ids, ","), command, firstPort+i)
	}
	return b.String() + "wait"
}

// deployed says how many copies of a command ran, and on what.
func (x study) deployed(trial, replicas int) string {
	gpus := ""
	if t := x.trials[trial]; t != nil && t.GPUs > 0 {
		gpus = " on " + count(t.GPUs, "GPU")
	}
	if replicas <= 1 {
		return "1 replica" + gpus
	}
	return fmt.Sprintf("%d replicas%s, loaded together by the client (measured, not multiplied)", replicas, gpus)
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
			if end := strings.IndexAny(slo, " <>="); end > 0 {
				names = append(names, slo[:end])
			}
		}
	}
	var metrics []result.Metric
	for _, n := range names {
		if m := metric(n); !slices.ContainsFunc(metrics, func(k result.Metric) bool { return k.Name == m.Name }) {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

// compare builds the conclusion's table, and names its runs that are in doubt.
func (x study) compare(metrics []result.Metric) (rows []comparison, doubts []string) {
	for _, c := range x.Cases {
		row := comparison{Workload: x.workload(c.Workload), Gain: x.gain(c.Gain), Worse: c.Gain != nil && *c.Gain < 0}
		for _, m := range metrics {
			row.Rows = append(row.Rows, comparedRow{m.Label, number(c.Baseline, m), number(c.Recommended, m)})
		}
		rows = append(rows, row)
		doubts = append(doubts, doubt(row.Workload+", baseline", c.Baseline)...)
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

// sections groups trials by stage: the baseline, the stages as they were
// concluded, then what else there is (an unfinished stage, the confirmation).
func (x study) sections() []section {
	var out []section
	shown := map[int]bool{}
	staged := map[int]bool{}
	for _, st := range x.Stages {
		for _, id := range st.Trials {
			staged[id] = true
		}
	}
	out = append(out, x.loose(shown, func(t result.Trial) bool { return t.Stage == "baseline" && !staged[t.ID] })...)
	for i, st := range x.Stages {
		sec := section{Heading: st.Name, Number: i + 1, Result: x.sentence(st.Result)}
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
func (x study) loose(shown map[int]bool, want func(result.Trial) bool) []section {
	var out []section
	for i := range x.Trials {
		t := &x.Trials[i]
		if shown[t.ID] || !want(*t) {
			continue
		}
		shown[t.ID] = true
		heading := stageTitle(t.Stage)
		if len(out) == 0 || out[len(out)-1].Heading != heading {
			out = append(out, section{Heading: heading})
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
		ID: t.ID, Label: t.Label, Role: x.role(t.ID), Status: t.Status, Reason: t.Reason, Advice: t.Advice, Notes: t.Notes, Said: said(t.Facts), Log: t.Log,
		Figure: quantity(x.summary(t), x.objective), Deploy: x.deployed(t.ID, t.Replicas),
		Command: wrapCommand(t.Command), Incident: t.Status != tune.Measured,
	}
	if t.Image != "" {
		v.Deploy += ", image " + t.Image
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

// said lists what an engine's log tells; the names have the units.
func said(facts []result.EngineFact) string {
	var out []string
	for _, f := range facts {
		out = append(out, f.Name+" "+grouped(strconv.FormatFloat(math.Round(f.Value*1000)/1000, 'f', -1, 64)))
	}
	return strings.Join(out, ", ")
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
	return &runView{Block: printed(*s, x.style), Verdict: s.Verdict.Status, Checks: unsound(s.Verdict)}
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
	if x.survey() {
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
		k := other{Workload: x.workload(c.Workload), Gain: x.gain(c.Gain)}
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
func (x study) cost() []figure {
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
	return []figure{
		{"Trials", strings.Join(parts, ", ")},
		{"Launches", fmt.Sprint(x.Ledger.Launches)},
		{"Time under load (s)", fmt.Sprintf("%.1f", x.Ledger.LoadS)},
		{"Allocated GPU time (GPU-s)", fmt.Sprintf("%.1f", x.Ledger.GPUS)},
	}
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
