// Package reduction makes of a run what plots draw of it: distributions as quantiles, and its course
// in seconds. A page of ten runs then costs ten small rows, and no file of calls.
//
//	b := reduction.New(header, readings)
//	for c := range calls {
//		b.Add(&c)
//	}
//	r := b.Reduction(samples)
//
// Invariants: what is not known is absent (null in JSON), never zero; times are of the clock of the
// run; what a simulator made says so.
//
// Absent: drawing (package report/plot), and where reductions are kept (package store).
package reduction

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
	"perflab/internal/stat"
)

// Format is a number that is another one when reductions have more, or something else, than those that
// are kept.
const Format = 1

// Quantiles is how many points a distribution has at most.
const Quantiles = 512

// Reduction is a run as plots draw it.
type Reduction struct {
	Simulated bool           `json:"simulated"`
	Predicted bool           `json:"predicted,omitempty"`
	Calls     int            `json:"calls"`
	Failed    int            `json:"failed"`
	CDF       []Distribution `json:"cdf"`    // of successful calls
	Step      float64        `json:"step_s"` // between points of lines
	Lines     []Line         `json:"lines"`
	Fault     string         `json:"fault,omitempty"` // what could not be read, in a sentence
}

// Distribution is one of latencies: its values at evenly spaced quantiles, from the least to the
// most.
type Distribution struct {
	Family  string    `json:"family"` // ttft, tpot, itl, e2el
	Samples int       `json:"samples"`
	Every   int       `json:"calls_kept_one_in,omitzero"` // of a very long run it is of one call in so many
	Values  []float64 `json:"values_ms"`
}

// Line is something over the time of the run: a point is the mean of one step, the first of which
// begins with the run.
type Line struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Doc    string `json:"doc"`
	Values Points `json:"values"`
}

// Points are the values of a line; NaN, in JSON null, where nothing is known.
type Points []float64

// MarshalJSON writes null for NaN, and no more digits than a plot can show.
func (p Points) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, v := range p {
		if i > 0 {
			b = append(b, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, v, 'g', 6, 64)
		}
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Points) UnmarshalJSON(b []byte) error {
	var all []*float64
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(&all); err != nil {
		return fmt.Errorf("read a line: %w", err)
	}
	*p = make(Points, len(all))
	for i, v := range all {
		if (*p)[i] = math.NaN(); v != nil {
			(*p)[i] = *v
		}
	}
	return nil
}

// mostSteps bounds a line: a run of more seconds has longer steps.
const mostSteps = 4096

// Builder makes a reduction of calls that come one at a time, in any order.
type Builder struct {
	header   result.Header
	readings []gauge.Reading
	r        Reduction
	width    time.Duration
	tokens   []float64
	ended    []float64
	flight   []float64 // time of calls under way
}

// New makes an empty one.
func New(h result.Header, readings []gauge.Reading) *Builder {
	b := &Builder{header: h, readings: readings, width: time.Second}
	b.r.Simulated, b.r.Predicted = h.Simulated, h.Predicted
	return b
}

// bin is the step that an instant is in; steps are widened until there are few enough.
func (b *Builder) bin(at time.Duration) int {
	at = max(0, at)
	for at/b.width >= mostSteps {
		b.width *= 2
		b.tokens, b.ended, b.flight = halved(b.tokens), halved(b.ended), halved(b.flight)
	}
	i := int(at / b.width)
	for len(b.tokens) <= i {
		b.tokens, b.ended, b.flight = append(b.tokens, 0), append(b.ended, 0), append(b.flight, 0)
	}
	return i
}

// halved adds each two neighbours up.
func halved(x []float64) []float64 {
	out := make([]float64, (len(x)+1)/2)
	for i, v := range x {
		out[i/2] += v
	}
	return out
}

// Add takes one call.
func (b *Builder) Add(c *result.Call) {
	b.r.Calls++
	b.r.Simulated = b.r.Simulated || c.Sim
	latest := max(c.End, c.Sent)
	for _, k := range c.Chunks {
		latest = max(latest, k.At)
	}
	b.bin(latest) // steps are widened before any is named
	last := b.bin(c.End)
	if !c.OK() {
		b.r.Failed++
	} else {
		b.ended[last]++
	}
	for _, k := range c.Chunks {
		b.tokens[b.bin(k.At)] += float64(k.Tokens)
	}
	for i := b.bin(c.Sent); i <= last && i < len(b.flight); i++ {
		from, to := max(c.Sent, time.Duration(i)*b.width), min(c.End, time.Duration(i+1)*b.width)
		b.flight[i] += max(0, to-from).Seconds()
	}
}

// families are the distributions that are drawn.
var families = []string{"ttft", "tpot", "itl", "e2el"}

// Reduction is the run so far. kept are its calls, or of a very long run one in every so many.
func (b *Builder) Reduction(kept []result.Call, every int) Reduction {
	r := b.r
	r.Step = b.width.Seconds()
	r.CDF, r.Lines = []Distribution{}, []Line{}
	for _, f := range families {
		sorted := result.FamilySamples(b.header, kept, f)
		if len(sorted) == 0 {
			continue
		}
		d := Distribution{Family: f, Samples: len(sorted), Values: quantiles(sorted)}
		if every > 1 {
			d.Every = every
		}
		r.CDF = append(r.CDF, d)
	}
	r.Lines = append(r.Lines, b.ofCalls()...)
	r.Lines = append(r.Lines, b.ofReadings()...)
	return r
}

// quantiles are evenly spaced ones, as many as there are samples at most.
func quantiles(sorted []float64) []float64 {
	n := min(Quantiles, len(sorted))
	out := make([]float64, n)
	for i := range out {
		q := 0.0
		if n > 1 {
			q = float64(i) / float64(n-1)
		}
		out[i] = rounded(stat.Quantile(sorted, q))
	}
	return out
}

// rounded has as many digits as a plot can show.
func rounded(v float64) float64 {
	if v == 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return v
	}
	scale := math.Pow(10, 6-math.Ceil(math.Log10(math.Abs(v))))
	return math.Round(v*scale) / scale
}

// ofCalls are the lines that calls give.
func (b *Builder) ofCalls() []Line {
	if len(b.tokens) == 0 {
		return nil
	}
	each := func(x []float64, by float64) Points {
		out := make(Points, len(x))
		for i, v := range x {
			out[i] = v / by
		}
		return out
	}
	step := b.width.Seconds()
	return []Line{
		{"output_throughput", "tok/s", "output tokens that came", each(b.tokens, step)},
		{"request_throughput", "req/s", "calls that ended", each(b.ended, step)},
		{"in_flight", "calls", "calls under way, by the client", each(b.flight, step)},
	}
}

// gauges are the lines that readings give.
var gauges = []struct {
	source, gauge, name, unit, doc string
	of                             func(gauge.Moment) float64
}{
	{gauge.SourceEngine, "running", "running", "requests", "requests that the engine computes, of all replicas", sum},
	{gauge.SourceEngine, "waiting", "waiting", "requests", "requests that wait in the engine, of all replicas", sum},
	{gauge.SourceEngine, "kv_usage", "kv_usage", "ratio", "share of the KV cache in use, of the fullest replica", high},
	{gauge.SourceGPU, gauge.GPUPower, "power", "W", "power of all GPUs", sum},
	{gauge.SourceGPU, gauge.GPUUtilization, "gpu_utilization", "ratio", "utilisation, mean of the GPUs", mean},
}

func sum(m gauge.Moment) float64  { return m.Sum }
func high(m gauge.Moment) float64 { return m.High }
func mean(m gauge.Moment) float64 { return m.Sum / float64(m.N) }

// holds is for how many steps a reading is taken to last where the next is late: readings come
// once a second, and not to the instant.
const holds = 2

// ofReadings are the lines of what was read beside the calls, within the time of the calls.
func (b *Builder) ofReadings() (out []Line) {
	for _, g := range gauges {
		values := make(Points, len(b.tokens))
		counts := make([]int, len(values))
		some := false
		for _, m := range gauge.Series(b.readings, g.source, g.gauge) {
			if i := int(m.At / b.width); m.At >= 0 && i < len(values) {
				values[i], some = values[i]+g.of(m), true
				counts[i]++
			}
		}
		if !some {
			continue
		}
		last := -1 - holds
		for i := range values {
			switch {
			case counts[i] > 0:
				values[i] /= float64(counts[i])
				last = i
			case i-last < holds:
				values[i] = values[last]
			default:
				values[i] = math.NaN()
			}
		}
		out = append(out, Line{g.name, g.unit, g.doc, values})
	}
	return out
}
