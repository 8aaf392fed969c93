package compare

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/result"
)

// Run is a run as a comparison takes it.
type Run struct {
	Name    string
	Header  result.Header
	Summary result.Summary
	Calls   []result.Call      // nil: there are figures only
	Options result.Options     // that the figures were made with, as far as calls give them
	Half    map[string]float64 // half a unit of the last printed digit, of figures that are known as printed
	Launch  string             // names the start of the server that it was measured on; "": not recorded
}

// Side is one of the things compared: a run, or several of which each counts
// as one observation.
type Side struct {
	Name   string
	Runs   []Run
	Series bool // one command made them one after another: one launch, unless somebody restarted the server
}

// Options choose what is compared.
type Options struct {
	Metrics []string // by name; nil: those of the block, with mean, median, p90, p95 and p99 of its latencies
	Also    []string // compared besides these
	All     bool     // every figure that a side has
	By      string   // key of the covariate in which the sides differ on purpose; "": found, if it is one
}

// Outcome is what a comparison of two figures shows.
type Outcome string

// Outcomes.
const (
	Better       Outcome = "better"
	Worse        Outcome = "worse"
	NoDifference Outcome = "no difference shown"
	Equal        Outcome = "equal"
	NoInterval   Outcome = "no interval" // see Cell.Why
	Differs      Outcome = "differs"     // shown, of a figure that has no better direction
)

// Cell is the figure of one side in a row.
type Cell struct {
	Value   *float64 `json:"value,omitempty"` // of several runs the mean
	Ratio   *float64 `json:"ratio,omitempty"` // to the first side; of several runs of the geometric means
	Low     *float64 `json:"low,omitempty"`   // 95 % interval of the ratio
	High    *float64 `json:"high,omitempty"`
	N       string   `json:"n,omitempty"` // what the figure rests on: "1200 calls in 40 blocks of 2.5 s", "3 runs"
	Outcome Outcome  `json:"outcome,omitempty"`
	Why     string   `json:"why,omitempty"` // there is no interval, or no figure
}

// Row is one figure, of one definition, of every side.
type Row struct {
	Metric     result.Metric     `json:"-"`
	Name       string            `json:"metric"`
	Label      string            `json:"label"`
	Unit       string            `json:"unit"`
	Better     string            `json:"better,omitempty"`
	Definition result.Definition `json:"definition,omitempty"`
	Cells      []Cell            `json:"sides"`
}

// SideInfo is a side as a comparison shows it.
type SideInfo struct {
	Name  string   `json:"name"`
	Runs  []string `json:"runs"`
	Basis string   `json:"basis"` // what may be said of restarts
	Void  string   `json:"void,omitempty"`
}

// Comparison is several sides compared to the first.
type Comparison struct {
	Schema    string     `json:"schema"` // "perflab.comparison/1"
	Head      string     `json:"head"`   // what is compared, one sentence
	By        string     `json:"by,omitempty"`
	Simulated bool       `json:"simulated"`
	Predicted bool       `json:"predicted"`
	Sides     []SideInfo `json:"sides"`
	Rows      []Row      `json:"figures"`
	Warnings  []string   `json:"warnings,omitempty"`
	Notes     []string   `json:"notes,omitempty"`
	Facts     []Fact     `json:"facts"`
}

// Names returns the names of the sides.
func (c Comparison) Names() []string {
	var out []string
	for _, s := range c.Sides {
		out = append(out, s.Name)
	}
	return out
}

// Void reports whether a side has no run that can be believed.
func (c Comparison) Void() bool {
	return slices.ContainsFunc(c.Sides, func(s SideInfo) bool { return s.Void != "" })
}

// Shown counts the figures that differ beyond chance, and those that have an
// interval at all.
func (c Comparison) Shown() (better, worse, judged int) {
	for _, r := range c.Rows {
		for _, cell := range r.Cells {
			switch {
			case cell.Outcome == Better:
				better++
			case cell.Outcome == Worse:
				worse++
			}
			if cell.Low != nil {
				judged++
			}
		}
	}
	return better, worse, judged
}

// Sides compares sides with the first of them. It is pure. Figures of
// different definitions are never in one row.
func Sides(sides []Side, o Options) (Comparison, error) {
	c := Comparison{Schema: "perflab.comparison/1"}
	if len(sides) < 2 {
		return c, fmt.Errorf("a comparison needs two sides, and there are %d", len(sides))
	}
	metrics, err := o.metrics(sides)
	if err != nil {
		return c, err
	}
	used := make([]Side, len(sides))
	for i, s := range sides {
		if len(s.Runs) == 0 {
			return c, fmt.Errorf("%s has no run", s.Name)
		}
		var warnings []string
		used[i], warnings = s.usableRuns()
		for _, text := range warnings {
			if !slices.Contains(c.Warnings, text) { // a run may be in two sides
				c.Warnings = append(c.Warnings, text)
			}
		}
		c.Sides = append(c.Sides, used[i].info())
		for _, m := range s.Runs {
			c.Predicted = c.Predicted || m.Header.Predicted || m.Summary.Predicted
			c.Simulated = c.Simulated || m.Header.Simulated || m.Summary.Simulated
		}
	}
	if err := c.check(used, o.By); err != nil {
		return c, err
	}
	b := &rowBuilder{sides: used, runs: map[[2]int]*blockedRun{}}
	for _, m := range metrics {
		c.Rows = append(c.Rows, b.rows(m)...)
	}
	c.remark()
	return c, nil
}

// metrics are those to compare.
func (o Options) metrics(sides []Side) ([]result.Metric, error) {
	var out []result.Metric
	add := func(names []string) error {
		for _, name := range names {
			m, err := result.Lookup(name)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(out, func(x result.Metric) bool { return x.Name == m.Name }) {
				out = append(out, m)
			}
		}
		return nil
	}
	if err := add(o.Metrics); err != nil {
		return nil, err
	}
	if o.Metrics != nil && !o.All {
		err := add(o.Also)
		return out, err
	}
	for _, m := range result.Metrics() {
		if slices.ContainsFunc(out, func(x result.Metric) bool { return x.Name == m.Name }) {
			continue
		}
		has := slices.ContainsFunc(sides, func(s Side) bool {
			return slices.ContainsFunc(s.Runs, func(r Run) bool { _, ok := r.Summary.Figures[m.Name]; return ok })
		})
		if has && (o.All || inDefault(m)) {
			out = append(out, m)
		}
	}
	err := add(o.Also)
	return out, err
}

// blockFamilies are the latencies that are compared without being asked for.
var blockFamilies = []string{"ttft", "tpot", "itl", "e2el"}

// inDefault reports whether a figure is compared without being asked for. What
// was configured is among the facts.
func inDefault(m result.Metric) bool {
	if m.Family == "" {
		return m.Section == result.SectionRun && m.Name != "max_concurrency" && m.Name != "request_rate" || m.Section == result.SectionSuccess
	}
	return slices.Contains(blockFamilies, m.Family) && slices.Contains([]string{"mean", "median", "p90", "p95", "p99"}, m.Stat)
}

// usableRuns drops the void and the partial runs of a side of several, if any
// remain, and says so.
func (s Side) usableRuns() (Side, []string) {
	var warnings []string
	keep := s
	keep.Runs = nil
	for _, m := range s.Runs {
		switch v := m.Summary.Verdict; {
		case v.Status == result.Voided:
			warnings = append(warnings, fmt.Sprintf("%s is void, do not compare its figures: %s.", m.Name, v.Why()))
			continue
		case m.Summary.Partial:
			warnings = append(warnings, m.Name+" is partial: it was stopped before its end.")
			continue
		case v.Status == result.Noted:
			warnings = append(warnings, fmt.Sprintf("%s is noted: %s.", m.Name, v.Why()))
		}
		keep.Runs = append(keep.Runs, m)
	}
	if len(keep.Runs) == 0 {
		return s, warnings
	}
	if left := len(s.Runs) - len(keep.Runs); left > 0 {
		warnings = append(warnings, fmt.Sprintf("%d of the %d runs of %s are left out of it.", left, len(s.Runs), s.Name))
	}
	return keep, warnings
}

// info describes a side.
func (s Side) info() SideInfo {
	out := SideInfo{Name: s.Name, Basis: s.basis()}
	void := 0
	for _, m := range s.Runs {
		out.Runs = append(out.Runs, m.Name)
		if m.Summary.Verdict.Status == result.Voided {
			void++
		}
	}
	if void == len(s.Runs) {
		out.Void = s.Runs[0].Summary.Verdict.Why()
	}
	return out
}

// basis says how many independent observations a side is.
func (s Side) basis() string {
	if len(s.Runs) == 1 {
		return "1 run, one launch: no restart noise seen"
	}
	runs := fmt.Sprintf("%d runs", len(s.Runs))
	launches := map[string]bool{}
	for _, m := range s.Runs {
		launches[m.Launch] = true
	}
	switch {
	case s.Series:
		return runs + " of one series, taken for one launch: no restart noise seen"
	case launches[""]:
		return runs + "; whether the server was restarted between them is not recorded"
	case len(launches) == 1:
		return runs + " on one launch: no restart noise seen"
	}
	return fmt.Sprintf("%s on %d launches", runs, len(launches))
}

// check fills the facts, the warnings of those that should agree, and what is
// compared.
func (c *Comparison) check(sides []Side, by string) error {
	c.Facts = Facts(sides)
	if by != "" {
		i := slices.IndexFunc(Covariates(), func(v Covariate) bool { return v.Key == by && v.Setup })
		if i < 0 {
			return fmt.Errorf("--by %q is no fact that runs are set up by: use %s", by, strings.Join(setupKeys(), ", "))
		}
		if known := slices.ContainsFunc(c.Facts, func(f Fact) bool { return f.Key == by && f.Differ }); !known {
			return fmt.Errorf("--by %s: the sides do not differ in it, as far as they tell", by)
		}
	}
	differ := c.setups(sides)
	switch {
	case by != "":
		c.By = by
	case len(differ) == 1:
		c.By = differ[0].Key
	}
	c.head(sides, differ)
	for _, f := range c.Facts {
		if text := c.warning(f, sides); text != "" {
			c.Warnings = append(c.Warnings, text)
		}
	}
	return nil
}

func setupKeys() []string {
	var out []string
	for _, v := range Covariates() {
		if v.Setup {
			out = append(out, v.Key)
		}
	}
	return out
}

// setups are the facts of the set-up in which sides differ, without those that
// follow from another.
func (c *Comparison) setups(sides []Side) []Fact {
	var out []Fact
	has := func(key string) bool {
		return slices.ContainsFunc(c.Facts, func(f Fact) bool { return f.Key == key && len(f.Known()) > 1 })
	}
	for _, f := range c.Facts {
		implied := f.Key == keyEngineVer && has(keyEngine) || f.Key == keyCommand && (has(keyEngine) || has(keyModel) && sameButModel(sides))
		if f.Setup && len(f.Known()) > 1 && !implied {
			out = append(out, f)
		}
	}
	return out
}

// sameButModel reports whether the serving commands are one but for the model.
func sameButModel(sides []Side) bool {
	rest := func(s Side) string {
		h := s.Runs[0].Header
		return strings.Replace(h.Command, h.Model, "", 1)
	}
	return !slices.ContainsFunc(sides, func(s Side) bool { return rest(s) != rest(sides[0]) })
}

// head says what is compared.
func (c *Comparison) head(sides []Side, differ []Fact) {
	names := c.Names()
	for _, f := range c.Facts {
		if f.Key == c.By {
			c.Head = fmt.Sprintf("Compared by %s: %s.", lower(f.Label), f.Each(names))
			return
		}
	}
	if len(differ) == 0 {
		c.Head = fmt.Sprintf("%s compared with %s: no difference in what they were set up with is recorded.", strings.Join(names[1:], ", "), names[0])
		return
	}
	var labels []string
	for _, f := range differ {
		labels = append(labels, lower(f.Label))
	}
	c.Head = fmt.Sprintf("%s compared with %s, which differ in %d things at once (%s): a difference cannot be put down to one of them.",
		strings.Join(names[1:], ", "), names[0], len(differ), strings.Join(labels, ", "))
}

// lower writes a label within a sentence.
func lower(label string) string {
	if len(label) > 1 && label[1] >= 'A' && label[1] <= 'Z' {
		return label // GPUs
	}
	return strings.ToLower(label[:1]) + label[1:]
}

// workTolerance is by how much the tokens of a request may differ between sides
// that did the same work, as a share.
const workTolerance = 0.02

// warning is what to say of a fact besides the one compared.
func (c *Comparison) warning(f Fact, sides []Side) string {
	if f.Key == c.By || c.By == keyEngine && (f.Key == keyEngineVer || f.Key == keyCommand) || c.By == keyModel && f.Key == keyCommand && sameButModel(sides) {
		return "" // or it follows from what is compared
	}
	names := c.Names()
	if f.Key == KeyFingerprint && len(f.Known()) > 1 && sameKinds(sides) {
		c.Notes = append(c.Notes, "The sides sent different requests of one workload (another seed or nonce): that is chance too.")
		return ""
	}
	if text := f.Warning(); text != "" && f.Key != KeyFingerprint && len(f.Known()) > 1 {
		return text + " (" + f.Each(names) + ")"
	} else if text != "" {
		return text
	}
	if len(f.Known()) < 2 {
		return ""
	}
	switch f.Key {
	case keyInputTokens, keyOutputTokens, keySuccess:
		return unequal(f, sides, names)
	}
	return fmt.Sprintf("The sides differ in %s: %s.", lower(f.Label), f.Each(names))
}

// unequal says that sides did another amount of work.
func unequal(f Fact, sides []Side, names []string) string {
	var of func(result.Summary) (float64, bool)
	tolerance := workTolerance
	switch f.Key {
	case keySuccess:
		of, tolerance = func(s result.Summary) (float64, bool) { v, ok := s.Figures[keySuccess]; return v, ok }, 0.001
	default:
		total := map[string]string{keyInputTokens: "total_input_tokens", keyOutputTokens: "total_output_tokens"}[f.Key]
		of = func(s result.Summary) (float64, bool) {
			v, ok := s.Figures[total]
			n := s.Figures["completed"]
			return v / n, ok && n > 0
		}
	}
	var ratios []float64
	for _, s := range sides {
		sum, n := 0.0, 0.0
		for _, m := range s.Runs {
			if v, ok := of(m.Summary); ok {
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			ratios = append(ratios, sum/n)
		}
	}
	least, most := slices.Min(ratios), slices.Max(ratios)
	if most <= least*(1+tolerance) {
		return ""
	}
	text := fmt.Sprintf("%s: %s", f.Label, f.Each(names))
	if least > 0 && f.Key != keySuccess {
		return fmt.Sprintf("The sides did not do the same work, %.2fx apart. %s.", most/least, text)
	}
	return "Calls that failed are in no latency, and the sides did not fail alike. " + text + "."
}

// sameKinds reports whether all runs are of one workload but for the seed.
func sameKinds(sides []Side) bool {
	for _, s := range sides {
		for _, m := range s.Runs {
			if !sameWorkload(sides[0].Runs[0].Header, m.Header) {
				return false
			}
		}
	}
	return true
}

// remark adds what holds of the table as a whole.
func (c *Comparison) remark() {
	better, worse, judged := c.Shown()
	if shown := better + worse; judged >= 5 && shown > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d of %d figures with an interval show a difference; at 95 %% at most about %.1f do by chance alone where there is none.",
			shown, judged, 0.05*float64(judged)))
	}
	split := 0
	for _, r := range c.Rows {
		if slices.ContainsFunc(r.Cells, func(x Cell) bool { return strings.HasSuffix(x.Why, "another definition") }) {
			split++
		}
	}
	if split > 0 {
		c.Warnings = append(c.Warnings, "Some figures are made by different definitions: they stand in rows of their own and are not compared (docs/metrics.md explains each definition).")
	}
	if slices.ContainsFunc(c.Sides, func(s SideInfo) bool { return len(s.Runs) > 1 }) {
		c.Notes = append(c.Notes, "Of a side of several runs the mean of their figures is shown, the ratio is of geometric means, and the runs are the observations.")
	}
}
