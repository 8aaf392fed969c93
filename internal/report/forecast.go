package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/report/plot"
	"perflab/internal/result"
)

// Forecast is what the simulator predicts of configurations under loads: what
// perflab predict shows, and its JSON. Everything in it is SIMULATED.
type Forecast struct {
	Schema      string            `json:"schema"` // "perflab.prediction/1"
	Version     string            `json:"version"`
	Simulated   bool              `json:"simulated"` // always
	Workload    string            `json:"workload"`  // in one line
	Spec        json.RawMessage   `json:"spec"`      // of the first load, complete
	Calibration ForecastSource    `json:"calibration"`
	Metrics     []string          `json:"metrics"`             // shown
	Latency     string            `json:"latency"`             // of the front
	Objective   string            `json:"objective,omitempty"` // that the rows are ordered by, best first
	SLOs        []string          `json:"slos,omitempty"`
	Notes       []string          `json:"notes,omitempty"` // on all rows
	Rows        []ForecastRow     `json:"predictions"`
	Commands    []ForecastCommand `json:"configurations"` // by number, from 1
}

// ForecastSource is where constants and errors come from.
type ForecastSource struct {
	Name   string `json:"name"` // "shipped", or the file
	Source string `json:"source,omitempty"`
	Runs   int    `json:"runs"`
	Draws  int    `json:"draws"` // of constants and loads, for the ranges
}

// ForecastCommand is a configuration: a serving command on hardware.
type ForecastCommand struct {
	Label    string          `json:"label"` // where it differs from the others
	Command  string          `json:"command"`
	Engine   string          `json:"engine,omitempty"`
	Model    string          `json:"model,omitempty"`
	GPU      string          `json:"gpu"`
	GPUTitle string          `json:"gpu_title"`
	GPUs     int             `json:"gpus"` // of the machine
	Each     int             `json:"gpus_of_replica,omitempty"`
	Replicas int             `json:"replicas,omitempty"`
	Refused  string          `json:"refused,omitempty"` // why the engine would not start
	Memory   *ForecastMemory `json:"memory_per_gpu,omitempty"`
	Notes    []string        `json:"notes,omitempty"`
}

// ForecastMemory is the arithmetic of one device's memory, in bytes.
type ForecastMemory struct {
	Device     int64 `json:"device"`
	Weights    int64 `json:"weights"`
	Activation int64 `json:"activation"`
	Library    int64 `json:"library"`
	Graphs     int64 `json:"graphs"`
	KV         int64 `json:"kv"`
}

// ForecastRow is a configuration under a load.
type ForecastRow struct {
	Configuration int                 `json:"configuration"` // number of its command
	Load          string              `json:"load,omitempty"`
	Rate          float64             `json:"request_rate,omitempty"`
	Concurrency   int                 `json:"max_concurrency,omitempty"`
	Figures       map[string]Estimate `json:"figures,omitempty"`
	PerGPU        map[string]Estimate `json:"figures_per_gpu,omitempty"`
	Bottleneck    *ForecastBottleneck `json:"bottleneck,omitempty"`
	KV            *ForecastKV         `json:"kv,omitempty"`
	Utilisation   float64             `json:"utilisation,omitempty"` // offered rate over that of the same requests sent at once
	Times         map[string]float64  `json:"step_s,omitempty"`      // seconds of all replicas' steps, by term
	Waits         map[string]float64  `json:"wait_s,omitempty"`      // seconds in which a request waited, by what for
	Steps         int                 `json:"steps,omitempty"`
	Running       int                 `json:"peak_running,omitempty"` // of one replica
	Outside       []string            `json:"outside,omitempty"`      // the calibration
	Front         bool                `json:"front,omitempty"`        // no other row is better in throughput per GPU and latency
	SLO           string              `json:"slo,omitempty"`          // met, missed; unsure where a range holds the limit
	Missed        []string            `json:"missed,omitempty"`
	Failed        string              `json:"failed,omitempty"` // requests that would not be served, and why
}

// Estimate is a figure, with what it lies between in nine of ten cases where
// that is known.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// ForecastBottleneck is what holds a load back.
type ForecastBottleneck struct {
	Name  string  `json:"name"`
	Share float64 `json:"share"`
	Text  string  `json:"text"`
}

// ForecastKV is the KV cache of one replica.
type ForecastKV struct {
	Tokens      int     `json:"tokens"`
	Peak        float64 `json:"peak"`
	Concurrency float64 `json:"concurrency"` // requests of mean length that it holds
	Preemptions int     `json:"preemptions"` // of all replicas
	Found       float64 `json:"found"`       // share of the prompts' tokens that the prefix cache held
}

// ForecastJSON writes a forecast with all its figures.
func ForecastJSON(w io.Writer, f Forecast) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the predictions: %w", err)
	}
	return writeAll(w, string(b)+"\n")
}

const forecastBanner = "SIMULATED: predicted in virtual time by a model of engine and hardware. No server ran and no GPU was used."

// command is the configuration of a row.
func (f *Forecast) command(r *ForecastRow) *ForecastCommand { return &f.Commands[r.Configuration-1] }

// loads reports whether rows differ in their load. A refused one has none.
func (f *Forecast) loads() bool {
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
func (f *Forecast) name(r *ForecastRow) string {
	n := f.command(r).Label
	if f.loads() {
		n += ", " + r.Load
	}
	return n
}

// deployment says how a configuration fills the machine.
func (c *ForecastCommand) deployment() string {
	text := fmt.Sprintf("%d x %s", c.GPUs, c.GPUTitle)
	if c.Replicas == 0 || c.GPUs == 1 {
		return text
	}
	text += fmt.Sprintf(": %s of %s", count(c.Replicas, "replica"), count(c.Each, "GPU"))
	if idle := c.GPUs - c.Replicas*c.Each; idle > 0 {
		text += fmt.Sprintf(", %d unused and counted", idle)
	}
	return text
}

// memory says what a device's memory goes to.
func (c *ForecastCommand) memory() string {
	m := c.Memory
	if m == nil {
		return ""
	}
	g := func(b int64) string { return strconv.FormatFloat(float64(b)/(1<<30), 'f', 1, 64) }
	return fmt.Sprintf("%s GiB: weights %s, KV cache %s, activations %s, graphs %s, libraries %s",
		g(m.Device), g(m.Weights), g(m.KV), g(m.Activation), g(m.Graphs), g(m.Library))
}

// text says what the cache holds.
func (k *ForecastKV) text() string {
	t := fmt.Sprintf("%s tokens in a replica, room for %s requests of the mean length; %.0f %% in use at most", plot.Tally(k.Tokens), rounded(k.Concurrency), 100*k.Peak)
	if k.Found >= 0.005 {
		t += fmt.Sprintf(", %.0f %% of the prompts' tokens found in it", 100*k.Found)
	}
	if k.Preemptions > 0 {
		t += ", " + count(k.Preemptions, "preemption")
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
func estimate(e Estimate, m result.Metric) (value, between string) {
	scale, unit := 1.0, ""
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
func (f *Forecast) columns() []forecastColumn {
	per := slices.ContainsFunc(f.Commands, func(c ForecastCommand) bool { return c.GPUs > 1 })
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
func (c forecastColumn) of(r *ForecastRow) (Estimate, bool) {
	from := r.Figures
	if c.perGPU {
		from = r.PerGPU
	}
	e, ok := from[c.metric.Name]
	return e, ok
}

// common are the sentences on what is outside that all rows share.
func (f *Forecast) common() []string {
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

// own are a row's sentences that not all rows share.
func (r *ForecastRow) own(common []string) []string {
	return slices.DeleteFunc(slices.Clone(r.Outside), func(s string) bool { return slices.Contains(common, s) })
}

// calibration says where figures and ranges come from.
func (f *Forecast) calibration() string {
	c := f.Calibration
	text := c.Name
	if c.Runs > 0 {
		text += fmt.Sprintf(", %s", count(c.Runs, "run"))
	}
	if c.Source != "" {
		text += ": " + strings.TrimSuffix(c.Source, ".")
	}
	if f.ranged() {
		text += ". Ranges hold nine in ten cases"
	}
	return text
}

func (f *Forecast) ranged() bool {
	return slices.ContainsFunc(f.Rows, func(r ForecastRow) bool {
		for _, e := range r.Figures {
			if e.Low != nil {
				return true
			}
		}
		return false
	})
}

// frontSentence says what the marked rows are.
func (f *Forecast) frontSentence() string {
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
