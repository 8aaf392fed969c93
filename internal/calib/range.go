package calib

import (
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/sim"
	"perflab/internal/stat"
)

// Range is a predicted figure and what it lies between in nine of ten cases.
type Range struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// rangeQuantile is the quantile whose tails leave nine in ten between them.
const rangeQuantile = 0.95

// normalRangeQuantile is that quantile of the normal distribution.
const normalRangeQuantile = 1.6449

// leastRuns is how many held-out runs an error must rest on to be believed.
const leastRuns = 3

// fewStudies are too few to take each run after a run of its site for an error by itself.
const fewStudies = 5

// ownRuns is how many held-out errors of the very engine are better than more of all.
const ownRuns = 12

// Widths of a range whose error is borrowed.
const (
	likeFigure = 1.5 // of a like figure
	lessNew    = 1.5 // of questions in which less is new
)

// sharedDuration are figures that vary as one whose error is known: the tokens of a load
// are fixed, so its rates have one duration in common.
var sharedDuration = map[string]string{"output_throughput": Throughput, "request_throughput": Throughput}

// likeFigures vary together with one whose error is not known itself. The error
// of a sum lies between those of its parts: of E2E no more is to be feared than of
// the worse of the two.
var likeFigures = map[string][]string{
	MeanE2E: {MeanTTFT, MeanTPOT}, MeanTTFT: {MedianTTFT}, MedianTTFT: {MeanTTFT},
	MeanTPOT: {MeanE2E}, MedianITL: {MeanTPOT, MeanE2E}, Throughput: {MeanE2E},
}

// ranges are those of all figures that an error is known of.
func (a answered) ranges() map[string]Range {
	out := map[string]Range{}
	for _, name := range append(slices.Clone(Scored), "output_throughput", "request_throughput") {
		off, bias, ok := a.off(name)
		v, has := a.run.Figures[name]
		if !ok || !has || !(v > 0) {
			continue
		}
		d := spreadOf(a.draws, name, v)
		r := interval(v, d, bias, off)
		if erring(name) == Throughput && a.Load.Rate > 0 {
			full := interval(a.burst[name], d, bias, off)
			r = paced(r, d, full.Low, a.Load.Rate*v/a.run.Figures["request_throughput"])
		}
		out[name] = r
	}
	return out
}

// errorOf is the held-out error of a figure where so much is new, and by how much its
// range is widened for being borrowed: from a like figure, or from questions in which
// less is new.
func (c *Calibration) errorOf(engine string, n Novelty, metric string) (e Error, widen float64, ok bool) {
	if e, widen, ok = c.known(engine, n, metric); ok {
		return e, widen, true
	}
	like := likeFigures[metric]
	parts := 0
	for _, m := range like {
		if x, w, has := c.known(engine, n, m); has {
			if x = x.unbiased(); !ok || x.Spread*w > e.Spread*widen {
				e, widen, ok = x, w, true
			}
			parts++
		}
	}
	if ok && !(metric == MeanE2E && parts == len(like)) {
		widen *= likeFigure
	}
	return e, widen, ok
}

// known is the error of a figure itself: where so much is new, else where more is, else
// where less is. Few studies tell of each: an error where less is new is not exceeded by
// chance alone, so it is the least that is taken.
func (c *Calibration) known(engine string, n Novelty, metric string) (e Error, widen float64, ok bool) {
	at := slices.Index(Novelties, n)
	for i := max(0, at); i < len(Novelties); i++ {
		if e, ok = c.at(engine, Novelties[i], metric); !ok {
			continue
		}
		for k := slices.Index(Novelties, NothingNew); k < at; k++ {
			if less, has := c.at(engine, Novelties[k], metric); has && less.Spread > e.Spread {
				e = less
			}
		}
		return e, 1, true
	}
	widen = 1.0
	for i := at - 1; i >= 0; i-- {
		widen *= lessNew
		if e, ok = c.at(engine, Novelties[i], metric); ok {
			return e, widen, true
		}
	}
	return e, 0, false
}

// at is the error of a figure where so much is new: of the engine, or of all engines where
// too few of its runs were held out.
func (c *Calibration) at(engine string, n Novelty, metric string) (e Error, ok bool) {
	for _, x := range c.Errors {
		switch {
		case x.New != n || x.Metric != metric || x.Runs < leastRuns:
		case x.Engine == engine && x.Runs >= ownRuns:
			return x, true
		case x.Engine == "":
			e, ok = x, true
		}
	}
	return e, ok
}

// unbiased is an error whose bias is that of something else: a part of the
// spread.
func (e Error) unbiased() Error {
	e.Spread, e.Bias = e.Spread+math.Abs(e.Bias), 0
	return e
}

// interval is what a figure lies between in nine of ten cases: what its draws
// vary by, and what held-out predictions were off by, as independent errors of
// its logarithm. The draws go through the simulator at the very load that is
// asked about, so only the error, which was found at others, is ever widened.
// The middle is moved by the known bias, and the value is never outside.
func interval(value float64, d drawSpread, bias, off float64) Range {
	return Range{
		Value: value,
		Low:   min(value, value*math.Exp(-bias-math.Hypot(d.down, off))),
		High:  max(value, value*math.Exp(-bias+math.Hypot(d.up, off))),
	}
}

// independent is how many errors an error is made of that tell of another one. After a run all
// of a study rest on that run: of few studies, there are no more than studies, but so many that
// Student's quantile leaves a range.
func (e Error) independent() int {
	if e.New.measured() && e.Studies > 0 && e.Studies < fewStudies {
		return max(leastRuns, e.Studies)
	}
	return e.Runs
}

// fewRuns is by how much the spread of n errors understates that of the next
// one.
func fewRuns(n int) float64 {
	return stat.StudentQuantile(rangeQuantile, float64(n-1)) * math.Sqrt(1+1/float64(n)) / normalRangeQuantile
}

// paced narrows the range of a throughput that the offered rate holds down: no
// more than what is offered can be served, and no less unless the server's own
// capacity may lie below it.
func paced(r Range, d drawSpread, capacity, offered float64) Range {
	r.High = max(r.Value*math.Exp(d.up), min(r.High, offered))
	r.Low = min(r.Value*math.Exp(-d.down), max(r.Low, capacity))
	return r
}

// drawSpread is how far, in logarithms, nine in ten draws of a figure lie below and
// above its value. Latency near saturation leans far to one side.
type drawSpread struct{ down, up float64 }

// spreadOf takes both halves of the draws for normal, each with a width of its
// own.
func spreadOf(draws []map[string]float64, name string, value float64) drawSpread {
	var square, n [2]float64
	for _, d := range draws {
		if v := d[name]; v > 0 {
			x := math.Log(v / value)
			side := 0
			if x > 0 {
				side = 1
			}
			square[side], n[side] = square[side]+x*x, n[side]+1
		}
	}
	all := n[0] + n[1]
	if all < 2 {
		return drawSpread{}
	}
	width := func(side int) float64 {
		if n[side] == 0 {
			return 0
		}
		return stat.StudentQuantile(rangeQuantile, all-1) * math.Sqrt(square[side]/n[side])
	}
	return drawSpread{width(0), width(1)}
}

// betweenEngines are constants of what a replica of one engine does not do.
var betweenEngines = []string{"kv_link", "kv_setup", "route"}

// belowDevices are constants of memories that keep what the devices' KV caches give up.
var belowDevices = []string{"host_link", "host_setup", "disk_rate"}

// tiered says whether a configuration has the memory that a constant is of.
func tiered(c *engine.Config, name string) bool {
	of := map[string]string{"host_link": engine.HostTier, "disk_rate": engine.DiskTier}[name]
	return slices.ContainsFunc(c.Tiers, func(t engine.Tier) bool { return of == "" || t.Name == of })
}

// drawConstants draws every constant of a configuration around its value,
// log-normal and independent, by the spread that is known of it.
func drawConstants(k *sim.Constants, cfg engine.Config, seed uint64) (*sim.Constants, error) {
	r := stat.Stream(seed, "constants")
	formats := []arch.Format{cfg.Model.Kernels(), arch.BF16} // head and attention may stay in 16 bit
	if formats[0] == arch.BF16 {
		formats = formats[1:]
	}
	var sets []sim.Set
	for _, f := range formats {
		of := sim.SubjectOf(cfg)
		of.Format = f
		s := sim.Set{Accelerator: cfg.GPU.Name, Engine: cfg.Engine, Generation: cfg.Generation, Format: f, Values: map[string]float64{}}
		for _, name := range k.Names() {
			if cfg.Prefills == 0 && slices.Contains(betweenEngines, name) || slices.Contains(belowDevices, name) && !tiered(&cfg, name) {
				continue
			}
			v, sd := k.Value(of, name), k.Spread(of, name)
			s.Values[name] = bounded(k, name, v, v*math.Exp(sd*r.NormFloat64()))
		}
		sets = append(sets, s)
	}
	return k.With(sets...)
}

// bounded keeps a drawn share below 1 unless its middle is above.
func bounded(k *sim.Constants, name string, middle, drawn float64) float64 {
	if c, _ := k.About(name); strings.HasPrefix(c.Unit, "share") || c.Unit == "probability" {
		return min(drawn, max(1, middle))
	}
	return drawn
}
