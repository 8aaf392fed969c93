package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/profile"
	"perflab/internal/profile/mlperf"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/stat"
)

// SeriesFacts are the facts of a series, as its file holds them.
type SeriesFacts struct {
	Schema    string          `json:"schema"` // "perflab.series/1"
	Version   string          `json:"version"`
	Kind      string          `json:"kind"` // sweep, find-max, repeat
	Simulated bool            `json:"simulated"`
	Model     string          `json:"model"`
	Targets   []string        `json:"targets"`
	Workload  string          `json:"workload"`
	Cache     string          `json:"cache,omitempty"`
	Started   time.Time       `json:"started,omitzero"` // of the first run
	Host      result.Host     `json:"host,omitzero"`
	Invoked   string          `json:"invoked,omitempty"` // the command line that made the series, secrets replaced
	SLOs      []result.SLO    `json:"slos,omitempty"`
	MaxErrors float64         `json:"max_error_rate"`
	Points    []Point         `json:"points"`
	Spread    []result.Spread `json:"spread,omitempty"` // of a repeated run
	Max       *Max            `json:"max,omitempty"`    // of a search, where it found one
	Stop      Stop            `json:"stop"`

	Curve      *mlperf.Curve    `json:"curve,omitempty"`      // what the rules of MLPerf Endpoints look at, where the series was made by them
	Submission *profile.Outcome `json:"submission,omitempty"` // what it is worth by them

	Percentiles []float64 `json:"metric_percentiles,omitempty"` // that were asked to be shown
	Sections    []string  `json:"percentile_metrics,omitempty"` // of a repeated run, likewise
}

// Kinds of series.
const (
	KindSweep   = "sweep"
	KindFindMax = "find-max"
	KindRepeat  = "repeat"
)

// Max is the answer of a search.
type Max struct {
	Load    Load `json:"load"`
	Tested  int  `json:"times_met"`
	AtLeast bool `json:"at_least"`   // the search ended before a higher load missed, or before the bracket was narrow
	Stepped int  `json:"steps_down"` // times that a higher edge missed when it was tested again

	Missed  float64            `json:"missed,omitzero"`   // the lowest load that missed; 0: none did
	Figures map[string]float64 `json:"figures,omitempty"` // of a load of sessions: how many agents are served, by the names of the metric table

	Capped bool `json:"capped,omitzero"` // the load above it was held back by the concurrency limit
}

// Text is the answer in a sentence.
func (m Max) Text(slos []result.SLO) string {
	bounds := make([]string, len(slos))
	for i, slo := range slos {
		bounds[i] = slo.String()
	}
	within := strings.Join(bounds, " and ")
	text := fmt.Sprintf("max %s meeting %s: ", m.Load.Axis, within)
	served := m.Figures != nil
	if served {
		text = fmt.Sprintf("agents served within %s: ", within)
	}
	if m.AtLeast {
		text += "at least "
	}
	text += Short(m.Load.Value)
	switch {
	case served:
		text += " at a time"
		for _, more := range notes(result.Served(m.Figures), missedText(m.Missed)) {
			text += ", " + more
		}
	case m.Load.Axis == AxisRate:
		text += " req/s"
	}
	if m.Tested > 1 {
		text += fmt.Sprintf(" (edge tested %s", times(m.Tested))
	} else {
		text += " (tested once"
	}
	if m.Stepped > 0 {
		text += fmt.Sprintf("; stepped down %s from an edge that missed when tested again", times(m.Stepped))
	}
	text += ")"
	if m.Capped {
		text += ", with the concurrency limit for the bound: it kept the rate above down, so a higher limit may give more"
	}
	return text
}

func missedText(load float64) string {
	if load == 0 {
		return ""
	}
	return Short(load) + " missed"
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}

// Codes of a search's stop.
const (
	StopBracket   = "bracket_closed" // the answer
	StopPlateau   = "plateau"        // more concurrency gives no more throughput
	StopUpper     = "upper_limit"
	StopLowest    = "lowest_misses"
	StopBudget    = "budget"
	StopClient    = "client_bound"
	StopVoid      = "void"
	leastGain     = 0.05 // of throughput when the concurrency doubles
	leastRequests = 100  // of a point
)

// addPoint adds a point and what its header says of the whole series.
func (f *SeriesFacts) addPoint(h *result.Header, p Point) {
	f.Simulated = f.Simulated || p.Summary.Simulated
	f.Model, f.Targets, f.Workload, f.Cache = h.Model, h.Targets, h.Workload, h.Cache
	if f.Started.IsZero() {
		f.Started, f.Host, f.Invoked = h.Started, h.Host, h.Invoked
	}
	f.Points = append(f.Points, p)
}

func (f *SeriesFacts) usable() int {
	n := 0
	for _, p := range f.Points {
		if p.Usable() {
			n++
		}
	}
	return n
}

// File is the name of the series' file.
func (f *SeriesFacts) File() string {
	if f.Kind == KindRepeat {
		return "repeat.json"
	}
	return "sweep.json"
}

// Concluded reports whether the search has an answer: not where a point could not
// be believed, for then nothing is known of the load that was asked about.
func (f *SeriesFacts) Concluded() bool {
	return f.Max != nil && f.Stop.Code != StopVoid && f.Stop.Code != StopClient
}

// Edge is the run to show for a search: the last at its answer, else what ended it,
// a void point or the lowest load.
func (f *SeriesFacts) Edge() Point {
	last := f.Points[len(f.Points)-1]
	if f.Stop.Code == StopVoid || f.Stop.Code == StopClient {
		return last
	}
	at := f.lowest()
	if f.Max != nil {
		at = f.Max.Load
	}
	for _, p := range slices.Backward(f.Points) {
		if p.Load == at && p.Judged() {
			return p
		}
	}
	return last
}

// lowest is the lowest load that a search measured.
func (f *SeriesFacts) lowest() Load {
	at := f.Points[0].Load
	for _, p := range f.Points {
		if at.Axis == Throughput || p.Load.Axis == at.Axis && p.Load.Value < at.Value { // a burst comes before the search
			at = p.Load
		}
	}
	return at
}

// wantedPercentiles are the percentiles that the series shows and judges by.
func (f *SeriesFacts) wantedPercentiles() []float64 {
	out := append([]float64{}, f.Percentiles...)
	for _, slo := range f.SLOs {
		out = append(out, PercentilesOf(slo.Metric)...)
	}
	return out
}

// Spreads returns the spread of every figure that all usable points have, in
// the order of the metric table. Percentiles are not pooled: theirs is the
// mean of the runs' percentiles, which is no percentile of all calls.
func Spreads(points []Point) []result.Spread {
	points = slices.DeleteFunc(slices.Clone(points), func(p Point) bool { return !p.Usable() })
	var out []result.Spread
	for _, m := range metrics(points) {
		var x []float64
		for _, p := range points {
			if v, ok := p.Summary.Figures[m.Name]; ok {
				x = append(x, v)
			}
		}
		if len(x) == 0 || len(x) < len(points) {
			continue
		}
		s := result.Spread{Metric: m.Name, Label: m.Label, Runs: len(x), Mean: stat.Mean(x), Min: slices.Min(x), Max: slices.Max(x)}
		if m.Stat != "" && m.Stat != "mean" {
			s.Label = "mean of the runs' " + m.Label
		}
		if lo, hi, ok := stat.MeanCI(s.Mean, stat.StdDev(x), len(x), 0.95); ok {
			s.Low, s.High = spreadInterval(m, s.Mean, (hi-lo)/2)
			if n := float64(len(x)); s.Mean > 0 {
				cv := stat.StdDev(x) * math.Sqrt(n/(n-1)) / s.Mean
				s.CV = &cv
			}
		}
		out = append(out, s)
	}
	return out
}

// widest is the factor between a mean and the ends of its interval beyond which there is
// none: two runs of which one has more than twice the figure of the other bound nothing.
const widest = 100

// spreadInterval is the interval of a figure's mean over runs. None can be negative, and
// shares are at most 1.
func spreadInterval(m result.Metric, mean, half float64) (low, high *float64) {
	lo, hi := stat.Positive(mean, half)
	switch {
	case m.Unit == "ratio":
		lo, hi = stat.Proportion(mean, half)
	case hi > widest*mean:
		return nil, nil
	}
	return &lo, &hi
}

// metrics is the metric table with the further percentiles that points have.
func metrics(points []Point) []result.Metric {
	table := result.Metrics()
	known := map[string]bool{}
	for _, m := range table {
		known[m.Name] = true
	}
	var more []string
	for _, p := range points {
		for name := range p.Summary.Figures {
			if !known[name] {
				known[name] = true
				more = append(more, name)
			}
		}
	}
	slices.Sort(more)
	for _, name := range more {
		if m, err := result.Lookup(name); err == nil {
			table = append(table, m)
		}
	}
	return table
}

// OpenSeries reads a series back from its directory and computes the figures
// of its points again from the runs' calls, with these percentiles besides
// those that the runs were made for. What the series concluded stays as it was
// written. damage says, one sentence each, which figures could not be computed
// again and are as they were stored.
func OpenSeries(dir string, percentiles ...float64) (f *SeriesFacts, damage []string, err error) {
	path := rundir.SeriesFile(dir)
	if path == "" {
		return nil, nil, fmt.Errorf("%s is no directory of a series: it has no sweep.json", dir)
	}
	f = &SeriesFacts{}
	if err := rundir.ReadJSON(path, f); err != nil {
		return nil, nil, fmt.Errorf("read the series in %s: %w", dir, err)
	}
	if len(f.Points) == 0 {
		return nil, nil, fmt.Errorf("%s has no point: nothing was measured", path)
	}
	if f.Curve != nil {
		f.Curve.Points = nil
	}
	for i := range f.Points {
		p := &f.Points[i]
		r, err := rundir.OpenRun(filepath.Join(dir, p.Dir))
		if err != nil {
			damage = append(damage, fmt.Sprintf("%s: the figures are those stored in %s (%v)", p.Load, filepath.Base(path), err))
			continue
		}
		if r.Damage != "" {
			damage = append(damage, p.Dir+": "+r.Damage)
		}
		s, err := r.Resummarise(append(f.wantedPercentiles(), percentiles...)...)
		if err != nil {
			return nil, nil, fmt.Errorf("summarise %s: %w", filepath.Join(dir, p.Dir), err)
		}
		if f.Started.IsZero() { // a series of a version that did not keep it
			f.Started = r.Header.Started
		}
		p.Judge(&Outcome{Header: r.Header, Summary: s, Pace: r.Pace}, f.SLOs, f.MaxErrors)
		if f.Curve != nil {
			f.Curve.Points = append(f.Curve.Points, curvePoint(r.Header, s, r.All()))
		}
	}
	if f.Curve != nil {
		f.Submission = mlperf.Check(*f.Curve)
	}
	if f.Kind == KindRepeat {
		f.Spread = Spreads(f.Points)
	}
	return f, damage, nil
}
