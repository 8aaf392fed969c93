package science

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/stat"
	"perflab/internal/tune"
)

// Class is a kind of landscape.
type Class struct {
	Name  string
	About string // in a few words, for the table
	draw  func(*drawer)
	holds func(*World) bool // that a landscape is of its class; nil: any is
	equal bool
	small bool
}

// Small is the class with landscapes that are evaluated in a moment, for tests
// that are no comparison.
func (c Class) Small() Class {
	c.small = true
	return c
}

// Equal reports whether all configurations of its landscapes are equal.
func (c Class) Equal() bool { return c.equal }

// size is what a landscape must be to be of use: configurations that run, so that a budget
// is no sweep, and no more than can be evaluated; and the tokens that its load generates
// altogether, about, as replays take their time in proportion.
type size struct{ run, product, burst, rate int }

var (
	whole  = size{100, 1600, 12000, 8000}
	little = size{40, 250, 3000, 2500}
)

// mostDraws bounds how often a landscape is drawn again.
const mostDraws = 60

// Draw is the landscape of a class and a seed. One whose baseline does not run, of which
// nothing meets the bounds, or which is not of the class after all, is drawn again.
func Draw(c Class, seed uint64) (*World, error) {
	var last error
	for n := range mostDraws {
		name := fmt.Sprintf("%s %d", c.Name, seed)
		if c.small {
			name = "small " + name
		}
		if n > 0 {
			name += fmt.Sprintf(" draw %d", n+1)
		}
		w, err := attempt(c, seed, name)
		if err == nil {
			return w, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no landscape of class %s by seed %d in %d draws: the last one failed: %w", c.Name, seed, mostDraws, last)
}

func attempt(c Class, seed uint64, name string) (*World, error) {
	d := &drawer{Rand: stat.Stream(seed, "landscape "+name), size: whole}
	if c.small {
		d.size = little
	}
	d.Name, d.Class, d.Seed, d.Equal = name, c.Name, seed, c.equal
	c.draw(d)
	if d.err != nil {
		return nil, fmt.Errorf("landscape %s: %w", name, d.err)
	}
	w, err := Open(d.Landscape)
	switch {
	case err != nil:
		return nil, err
	case w.runs < d.size.run:
		return nil, fmt.Errorf("landscape %s: %d configurations run", name, w.runs)
	case c.holds != nil && !c.holds(w):
		return nil, fmt.Errorf("landscape %s is not of its class", name)
	}
	return w, nil
}

// drawer draws a landscape.
type drawer struct {
	*rand.Rand
	Landscape
	shape shape
	size  size
	err   error
}

// pick is one of several.
func pick[T any](d *drawer, of ...T) T { return of[d.IntN(len(of))] }

func (d *drawer) chance(p float64) bool { return d.Float64() < p }

// between is a number whose logarithm is even between two.
func (d *drawer) between(low, high float64) float64 {
	return low * math.Pow(high/low, d.Float64())
}

// about is a factor that is off by so much, as a standard deviation of the logarithm, and
// by no more than most.
func (d *drawer) about(sd, most float64) float64 {
	return math.Exp(max(-most, min(most, sd*d.NormFloat64())))
}

// shape is a model with where it is served.
type shape struct {
	models  []string // in 16 bit first, if there is such a checkpoint
	engines []string
	homes   []home
	experts bool
	mtp     bool
}

type home struct {
	gpu    string
	counts []int
}

// begin chooses model, devices, engines and what may be set.
func (d *drawer) begin(shapes ...shape) {
	d.shape = pick(d, shapes...)
	h := pick(d, d.shape.homes...)
	d.Models, d.GPU, d.GPUs = d.shape.models, h.gpu, pick(d, h.counts...)
	d.Engines = slices.Clone(d.shape.engines)
	if len(d.Engines) > 2 && d.chance(0.3) {
		at := d.IntN(len(d.Engines))
		d.Engines = slices.Delete(d.Engines, at, at+1)
	}
	d.StartS = d.between(45, 600)
	d.layout()
	d.Narrow[engine.MaxNumSeqs] = d.some(2+d.IntN(2), "16", "32", "64", "128", "256")
	d.Narrow[engine.MaxBatched] = d.some(2+d.IntN(2), "1024", "2048", "4096", "8192", "16384")
	if d.chance(0.8) {
		d.Narrow[engine.KVDtype] = []string{"", "fp8"}
	}
	if d.chance(0.5) {
		d.Narrow[engine.MemoryShare] = []string{"", "0.85", "0.95"}
	}
}

// some are so many of several values in their order, and the default.
func (d *drawer) some(n int, values ...string) []string {
	out := []string{""}
	for i, v := range values {
		if d.Float64() < float64(n+1-len(out))/float64(len(values)-i) {
			out = append(out, v)
		}
	}
	return out
}

// layout chooses the numbers of devices of a copy, and the baseline's.
func (d *drawer) layout() {
	d.Narrow = map[string][]string{}
	whole, err := d.widths(d.Models[0])
	if err != nil {
		d.err = err
		return
	}
	all, err := d.widths(d.Models[len(d.Models)-1])
	if err != nil {
		d.err = err
		return
	}
	d.Baseline = tune.Config{"engine": pick(d, d.Engines...), "model": d.Models[0]}
	tp := whole[len(whole)-1]
	if d.chance(0.4) {
		tp = pick(d, whole...)
	}
	var values []string
	for _, n := range all {
		values = append(values, count(n))
	}
	if d.GPUs > 1 {
		d.Narrow[engine.TP] = values
	}
	if count(tp) != "" {
		d.Baseline[engine.TP] = count(tp)
	}
	if d.GPUs > 1 && d.chance(0.4) {
		d.Narrow[engine.PP] = []string{"", "2"}
	}
	if d.shape.experts && d.GPUs > 1 {
		if d.chance(0.8) {
			d.Narrow[engine.ExpertParallel] = []string{"", "true"}
		}
		if d.chance(0.4) {
			d.Narrow[engine.DP] = []string{"", "2"}
		}
	}
}

// count is a number of devices as a value: one is the default.
func count(n int) string {
	if n == 1 {
		return ""
	}
	return strconv.Itoa(n)
}

// weightShare is the part of a device's memory that weights may take, so that there is
// room for a cache.
const weightShare = 0.8

// widths are the numbers of devices over which a copy of a model may lie.
func (d *drawer) widths(name string) ([]int, error) {
	m, err := arch.LookupModel(name)
	if err != nil {
		return nil, err
	}
	g, err := arch.LookupAccelerator(d.GPU)
	if err != nil {
		return nil, err
	}
	var out []int
	for n := 1; n <= d.GPUs; n *= 2 {
		if float64(m.WeightBytesPerGPU(n, 1, 1)) < weightShare*g.MemoryGiB*(1<<30) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s does not fit %d %s", name, d.GPUs, d.GPU)
	}
	return out, nil
}

// What a load is for.
const (
	burst  = "burst"  // everything at once
	closed = "closed" // so many at a time
	rate   = "rate"   // as it comes
)

// load chooses lengths, how requests come, and an objective that goes with it.
func (d *drawer) load(kind string) {
	in, out := d.between(80, 2500), d.between(50, 220)
	lengths := func(mean float64) calib.Lengths {
		return calib.Lengths{Mean: math.Round(mean), Shape: calib.LogNormal, Sigma: 0.6, Max: int(4 * mean)}
	}
	d.Load = calib.Load{Input: lengths(in), Output: lengths(out)}
	d.Set = map[string]string{engine.MaxModelLen: strconv.Itoa(4096 * int(math.Ceil((4*in+4*out+64)/4096)))}
	tokens := d.size.burst
	d.Objective = tune.Objective{Metric: "total_token_throughput", Higher: true, MinGain: 0.02}
	switch kind {
	case closed:
		d.Load.Concurrency = pick(d, 16, 32, 48, 64, 96)
	case rate:
		tokens = d.size.rate
		d.Busy = d.between(0.25, 0.9)
		d.Latency = true
		d.Objective = tune.Objective{Metric: pick(d, "mean_e2el_ms", "mean_e2el_ms", "p99_e2el_ms", "mean_tpot_ms", "mean_ttft_ms"), MinGain: 0.02}
		if d.shape.mtp && d.chance(0.7) {
			d.Narrow[engine.Speculative] = []string{"", "mtp:1", "mtp:2", "mtp:3"}
		} else if d.chance(0.5) {
			d.Narrow[engine.Speculative] = d.some(2, "ngram:2", "ngram:3", "ngram:4", "ngram:5")
		}
	}
	d.Load.Requests = max(30, tokens/240, min(tokens/75, int(float64(tokens)/out)))
	if kind == burst && d.chance(0.3) {
		d.Objective.Metric = "output_throughput"
	}
}

// hide draws what is true and nobody knows: how far the simulator is off, how noisy the
// machine is, and now and then a trap. Then it keeps the landscape small enough.
func (d *drawer) hide() {
	d.Wrong = Wrong{
		Engine: map[string]float64{},
		Memory: d.about(0.12, 0.3), Compute: d.about(0.12, 0.3), Network: d.about(0.2, 0.35), Host: d.about(0.2, 0.35), Accept: d.about(0.2, 0.4),
	}
	for _, e := range d.Engines {
		d.Wrong.Engine[e] = d.about(0.12, 0.26)
	}
	d.Noise = Noise{Launch: d.between(0.005, 0.035), Within: d.between(0.003, 0.012)}
	if d.chance(0.15) {
		d.Noise.Outlier = 0.05
	}
	d.traps()
}

// traps are what makes a plausible shortcut fail.
func (d *drawer) traps() {
	if d.chance(0.12) { // an engine runs few at once unless it is told to run more
		e, most := pick(d, d.Engines...), pick(d, 8, 12, 24)
		d.Effects = append(d.Effects, Effect{
			When:   func(c tune.Config) bool { return c["engine"] == e && c[engine.MaxNumSeqs] == "" },
			Change: func(c *engine.Config) { c.Seqs = min(c.Seqs, most) },
		})
	}
	if e := pick(d, d.Engines...); d.chance(0.12) && e != d.Baseline["engine"] { // another runs out of memory as it comes
		d.Narrow[engine.MemoryShare] = []string{"", "0.85", "0.95"}
		d.Refusals = append(d.Refusals, Refusal{
			When: func(c tune.Config) bool { return c["engine"] == e && c[engine.MemoryShare] != "0.85" },
		})
	}
	if d.chance(0.15) { // a cache that saves memory costs time
		d.slow(d.between(1.08, 1.35), tune.Config{engine.KVDtype: "fp8"})
	}
}

// slow makes all that has some settings take so many times as long.
func (d *drawer) slow(by float64, settings tune.Config) {
	d.Effects = append(d.Effects, Effect{When: has(settings), Slow: by})
}

// has reports whether a configuration has some settings; "" is the default.
func has(settings tune.Config) func(tune.Config) bool {
	return func(c tune.Config) bool {
		for name, v := range settings {
			if c[name] != v {
				return false
			}
		}
		return true
	}
}

// trim keeps the product of all values small enough: one value after another goes, by
// chance, that neither the baseline nor the class needs.
func (d *drawer) trim() {
	needed := func(name, v string) bool {
		return v == d.Baseline[name] || slices.ContainsFunc(d.Subject, func(s tune.Config) bool { w, ok := s[name]; return ok && w == v })
	}
	for d.product() > d.size.product {
		var may [][2]string
		for _, name := range sortedNames(d.Narrow) {
			for _, v := range d.Narrow[name] {
				if len(d.Narrow[name]) > 1 && !needed(name, v) {
					may = append(may, [2]string{name, v})
				}
			}
		}
		if len(may) == 0 {
			d.err = errors.New("too many configurations")
			return
		}
		gone := pick(d, may...)
		d.Narrow[gone[0]] = slices.DeleteFunc(slices.Clone(d.Narrow[gone[0]]), func(v string) bool { return v == gone[1] })
	}
}

func (d *drawer) product() int {
	n := len(d.Engines) * len(d.Models)
	for _, values := range d.Narrow {
		n *= len(values)
	}
	return n
}

// setting is a value of one of some parameters that there is more than one value of;
// where other is true, another than the baseline's.
func (d *drawer) setting(other bool, names ...string) (name, value string, ok bool) {
	var may [][2]string
	for _, name := range names {
		values := d.Narrow[name]
		switch name {
		case "engine":
			values = d.Engines
		case "model":
			values = d.Models
		}
		for _, v := range values {
			if len(values) > 1 && !(other && v == d.Baseline[name]) {
				may = append(may, [2]string{name, v})
			}
		}
	}
	if len(may) == 0 {
		return "", "", false
	}
	one := pick(d, may...)
	return one[0], one[1], true
}

// said are settings for a reader.
func said(c tune.Config) string {
	var text strings.Builder
	for _, name := range sortedNames(c) {
		text.WriteString(name + "=" + cmp.Or(c[name], "default") + " ")
	}
	return text.String()
}
