// Package prediction makes documents of what the simulator predicts, with their
// plots, and of how it was calibrated.
package prediction

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/forecast"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// forecastTable is a table of predictions with the texts of its parts.
type forecastTable struct{ forecast.Table }

// Forecast shows predictions: for a terminal one as a list of figures, several as a
// table with the reasons under it, and on a page with plots.
func Forecast(t forecast.Table) doc.Document {
	f := &forecastTable{t}
	d := doc.New("Predictions", forecastBanner, "the predictions")
	b := &d.Body
	b.Text("Workload: "+f.Workload, "Calibration: "+f.calibration())
	b.Styled(doc.InPage, "lead", f.Workload)
	b.Styled(doc.InPage, "", "Calibration: "+f.calibration()+".")
	var bounds doc.List
	for _, slo := range f.SLOs {
		bounds.Items = append(bounds.Items, doc.Spans(doc.Code(slo)))
	}
	b.Add(doc.InPage, bounds)
	b.Section("plots", "Plots").Figures(doc.InPage, func() []plot.Plot { return ForecastPlots(t) })
	figures := b.Section("figures", "Figures")
	figures.Add(doc.InPage, f.pageTable())
	figures.Styled(doc.InPage, "muted", f.frontSentence())
	in := doc.InPage
	if len(f.Rows) == 1 && f.Rows[0].Figures != nil {
		f.single(figures, &f.Rows[0])
	} else {
		f.table(figures)
		in |= doc.InText
	}
	configurations := b.Section("configurations", "Configurations")
	for i := range f.Configurations {
		f.configuration(configurations, i, in)
	}
	common := f.common()
	b.Section("outside", "Outside the Calibration").List(doc.InPage, common...)
	if len(common) > 0 {
		b.Text("", "Outside the calibration:")
	}
	for _, text := range common {
		b.Text("  - " + text)
	}
	b.Text(f.Notes...)
	return d
}

// ForecastJSON writes a forecast with all its figures.
func ForecastJSON(w io.Writer, f forecast.Table) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the predictions: %w", err)
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write the predictions: %w", err)
	}
	return nil
}

const forecastBanner = "SIMULATED: predicted in virtual time by a model of engine and hardware. No server ran and no GPU was used."

// command is the configuration of a row.
func (f *forecastTable) command(r *forecast.Row) *forecast.Configuration {
	return &f.Configurations[r.Configuration-1]
}

// loads reports whether rows differ in their load. A refused one has none.
func (f *forecastTable) loads() bool {
	seen := ""
	for _, r := range f.Rows {
		if seen != "" && r.Load != "" && r.Load != seen {
			return true
		}
		seen = cmp.Or(r.Load, seen)
	}
	return false
}

// name is what a reader calls a row.
func (f *forecastTable) name(r *forecast.Row) string {
	n := f.command(r).Label
	if f.loads() {
		n += ", " + r.Load
	}
	return n
}

// deploymentText says how a configuration fills the machine.
func deploymentText(c *forecast.Configuration) string {
	text := fmt.Sprintf("%d x %s", c.GPUs, c.GPUTitle)
	if c.Replicas == 0 || c.GPUs == 1 {
		return text
	}
	text += fmt.Sprintf(": %s of %s", plot.Count(c.Replicas, "replica"), plot.Count(c.Each, "GPU"))
	if idle := c.GPUs - c.Replicas*c.Each; idle > 0 {
		text += fmt.Sprintf(", %d unused and counted", idle)
	}
	return text
}

// memoryText says what a device's memory goes to.
func memoryText(c *forecast.Configuration) string {
	m := c.Memory
	if m == nil {
		return ""
	}
	g := func(b int64) string { return strconv.FormatFloat(float64(b)/(1<<30), 'f', 1, 64) }
	return fmt.Sprintf("%s GiB: weights %s, KV cache %s, activations %s, graphs %s, libraries %s",
		g(m.Device), g(m.Weights), g(m.KV), g(m.Activation), g(m.Graphs), g(m.Library))
}

// kvText says what the cache holds.
func kvText(r *forecast.Row) string {
	k := r.KV
	t := fmt.Sprintf("%s tokens in a replica, room for %s requests of the mean length; %.0f %% in use at most", plot.Tally(k.Tokens), rounded(k.Concurrency), 100*k.Peak)
	if k.Found >= 0.005 {
		t += fmt.Sprintf(", %.0f %% of the prompts' tokens found in it", 100*k.Found)
	}
	if k.Fetched >= 0.005 {
		t += fmt.Sprintf(", %.0f %% fetched from the memory below it", 100*k.Fetched)
	}
	if k.Preemptions > 0 {
		t += ", " + plot.Count(k.Preemptions, "preemption")
	}
	return t
}

// rounded writes a number with three digits at least.
func rounded(v float64) string {
	d := 0
	if v > 0 && v < 100 {
		d = min(2, max(0, 2-int(math.Floor(math.Log10(v)))))
	}
	return plot.Grouped(strconv.FormatFloat(v, 'f', d, 64))
}

// estimate prints a figure and its range, "" where none is known. Both ends of
// a range of ms are in the unit of the figure.
func estimate(e forecast.Estimate, m result.Metric) (value, between string) {
	scale, unit := 1.0, ""
	if m.Unit == "s" {
		unit = " s"
	}
	if m.Unit == "ms" {
		unit = " ms"
		if e.Value >= 1000 {
			scale, unit = 1e-3, " s"
		}
	}
	write := rounded
	if m.Unit == "requests" || m.Unit == "ratio" || m.Unit == "tokens" {
		write = func(v float64) string { return plot.Grouped(strconv.FormatFloat(v, 'f', m.Decimals, 64)) }
	}
	value = write(e.Value*scale) + unit
	if e.Low != nil && e.High != nil {
		between = write(*e.Low*scale) + "–" + write(*e.High*scale)
	}
	return value, between
}

// forecastColumn is a figure of the table.
type forecastColumn struct {
	head   string
	metric result.Metric
	perGPU bool
}

// columns are the figures of the table; throughputs per GPU stand beside them
// where machines have several or differ.
func (f *forecastTable) columns() []forecastColumn {
	per := slices.ContainsFunc(f.Configurations, func(c forecast.Configuration) bool { return c.GPUs > 1 })
	var out []forecastColumn
	for _, name := range f.Metrics {
		m := metric(name)
		head := strings.TrimSuffix(m.Label, " ("+m.Unit+")")
		if m.Unit == "tok/s" {
			head = strings.Replace(head, " token throughput", " tok/s", 1)
		}
		out = append(out, forecastColumn{head, m, false})
		if per && (name == "total_token_throughput" || name == "output_throughput") {
			out = append(out, forecastColumn{"per GPU", m, true})
		}
	}
	return out
}

// of is the column's figure of a row.
func (c forecastColumn) of(r *forecast.Row) (forecast.Estimate, bool) {
	from := r.Figures
	if c.perGPU {
		from = r.PerGPU
	}
	e, ok := from[c.metric.Name]
	return e, ok
}

// common are the sentences on what is outside that all rows share.
func (f *forecastTable) common() []string {
	var out []string
	served := 0
	seen := map[string]int{}
	for _, r := range f.Rows {
		if r.Figures == nil {
			continue
		}
		served++
		for _, text := range r.Outside {
			seen[text]++
		}
	}
	for _, r := range f.Rows {
		for _, text := range r.Outside {
			if seen[text] == served && !slices.Contains(out, text) {
				out = append(out, text)
			}
		}
	}
	return out
}

// ownOutside are a row's sentences that not all rows share.
func ownOutside(r *forecast.Row, common []string) []string {
	return slices.DeleteFunc(slices.Clone(r.Outside), func(s string) bool { return slices.Contains(common, s) })
}

// calibration says where figures and ranges come from.
func (f *forecastTable) calibration() string {
	c := f.Calibration
	text := c.Name
	if c.Runs > 0 {
		text += fmt.Sprintf(", %s", plot.Count(c.Runs, "run"))
	}
	if c.Source != "" {
		text += ": " + strings.TrimSuffix(c.Source, ".")
	}
	if f.ranged() {
		text += ". Ranges hold nine in ten cases"
	}
	return text
}

func (f *forecastTable) ranged() bool {
	return slices.ContainsFunc(f.Rows, func(r forecast.Row) bool {
		for _, e := range r.Figures {
			if e.Low != nil {
				return true
			}
		}
		return false
	})
}

// frontSentence says what the marked rows are.
func (f *forecastTable) frontSentence() string {
	n := 0
	for _, r := range f.Rows {
		if r.Front {
			n++
		}
	}
	if n == 0 || len(f.Rows) < 2 {
		return ""
	}
	return fmt.Sprintf("On the front: no other has more total tokens per second and GPU at less %s.", strings.TrimSuffix(metric(f.Latency).Label, " (ms)"))
}

// metric is the row of the metric table for a name; a name that the table does not
// know labels itself.
func metric(name string) result.Metric {
	m, err := result.Lookup(name)
	if err != nil {
		return result.Metric{Name: name, Label: name, Decimals: 2}
	}
	m.Label = cmp.Or(m.Label, m.Name)
	return m
}
