package calib

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/sim"
)

// FitOptions are how a fit is made.
type FitOptions struct {
	Base *sim.Constants              // priors; nil: sim.Priors()
	Seed uint64                      // of drawn lengths
	Each func(n int, do func(i int)) // runs do for 0..n-1, perhaps at once; nil: one after another
}

// noise is how well a figure of a run can be expected to be met, as the
// standard deviation of its logarithm: by which fits weigh residuals. Lengths
// drawn anew move a throughput by 1-2 %, another tail of theirs by 4-9 %;
// start-up stalls move TTFT by 2-10 %; and a mean TPOT is one of short answers.
var noise = map[string]float64{Throughput: 0.04, MeanTTFT: 0.06, MedianTTFT: 0.10, MedianITL: 0.07, MeanTPOT: 0.10, MeanE2E: 0.05}

// huberDelta is where a residual, in units of its noise, begins to count linearly
// (Huber): one odd run must not move the constants of all others.
const huberDelta = 2.0

// Parameter is a constant that a fit may move.
type Parameter struct {
	Name        string      `json:"name"`
	Accelerator string      `json:"accelerator"`
	Format      arch.Format `json:"format,omitempty"`
	Engine      string      `json:"engine,omitempty"`
	Prior       float64     `json:"prior"`
	PriorSpread float64     `json:"prior_spread"` // relative
	Value       float64     `json:"value"`
	Spread      float64     `json:"spread"` // relative, after the fit
}

// Residual is a figure of a run against its prediction.
type Residual struct {
	ID       string  `json:"id"`
	Metric   string  `json:"metric"`
	Measured float64 `json:"measured"`
	Value    float64 `json:"value"` // predicted
}

// Off is the relative error of the prediction.
func (r Residual) Off() float64 { return r.Value/r.Measured - 1 }

// complete fills in what is not said.
func (o FitOptions) complete() FitOptions {
	o.Base = cmp.Or(o.Base, sim.Priors())
	if o.Each == nil {
		o.Each = func(n int, do func(int)) {
			for i := range n {
				do(i)
			}
		}
	}
	return o
}

// problem is the fit of one accelerator's constants. Its unknowns x are the
// logarithms of the parameters over their priors.
type problem struct {
	options     FitOptions
	accelerator string
	obs         []Observation
	params      []Parameter
	rows        []row
	report      []Residual
	x           []float64 // after fit
	pooled      []sim.Set // over the priors, from other accelerators

	// slopes are the derivatives of the rows' log figures by the unknowns at the
	// priors. They are the model's: no measured figure has a part in them.
	slopes [][]float64 // by unknown, then row

	prior    [][]float64 // inverse covariance of the unknowns before any run is seen
	atPriors []float64   // the rows' log figures there
}

// row is a figure of an observation.
type row struct {
	obs      int
	metric   string
	measured float64 // logarithm
}

func newProblem(accelerator string, obs []Observation, o FitOptions) (*problem, error) {
	p := &problem{options: o, accelerator: accelerator, obs: obs}
	p.unknowns()
	p.prior = invert(p.covariance())
	for i, b := range obs {
		for _, m := range b.scored() {
			if v, ok := b.Figures[m]; ok && v > 0 && !b.unmodelled(m) {
				p.rows = append(p.rows, row{i, m, math.Log(v)})
			}
		}
	}
	at, err := p.predict(make([]float64, len(p.params)), p.all())
	if err != nil {
		return nil, err
	}
	// A figure that a replay does not give (a TPOT of one token) is no row.
	keep := p.rows[:0]
	for i, r := range p.rows {
		if !math.IsNaN(at[i]) {
			keep = append(keep, r)
			p.atPriors = append(p.atPriors, at[i])
		}
	}
	p.rows = keep
	return p, nil
}

// all says that every observation counts.
func (p *problem) all() []bool {
	use := make([]bool, len(p.obs))
	for i := range use {
		use[i] = true
	}
	return use
}

// startAtPriors are the unknowns at the priors and the log figures there of the
// observations that count; those of the others are not numbers, as predict's.
func (p *problem) startAtPriors(use []bool) (x, at []float64) {
	at = slices.Clone(p.atPriors)
	for i, r := range p.rows {
		if !use[r.obs] {
			at[i] = math.NaN()
		}
	}
	return make([]float64, len(p.params)), at
}

// unknowns lists the constants that some observation depends on.
func (p *problem) unknowns() {
	formats, engines := map[arch.Format]bool{}, map[string]bool{}
	for _, b := range p.obs {
		formats[b.Config.Model.Kernels()] = true
		engines[b.Config.Engine] = true
	}
	add := func(name string, f arch.Format, engine string) {
		q := Parameter{Name: name, Accelerator: p.accelerator, Format: f, Engine: engine}
		if !slices.ContainsFunc(p.obs, func(b Observation) bool { return q.moves(&b) }) {
			return
		}
		q.Prior = p.options.Base.Value(engine, p.accelerator, f, name)
		q.PriorSpread = p.options.Base.Spread(engine, p.accelerator, f, name)
		if q.PriorSpread > 0 && q.Prior > 0 {
			p.params = append(p.params, q)
		}
	}
	for _, name := range p.options.Base.Names() {
		switch c, _ := p.options.Base.About(name); c.Of {
		case "device":
			add(name, "", "")
		case "format":
			for _, f := range slices.Sorted(maps.Keys(formats)) {
				add(name, f, "")
			}
		case "engine":
			for _, e := range slices.Sorted(maps.Keys(engines)) {
				add(name, "", e)
			}
		}
	}
}

// kernelCorrelation is the correlation, before any run is seen, of one constant's values
// for two weight formats, or for two engines, on one device: kernels differ, the
// device and its host are the same.
const kernelCorrelation = 0.5

// covariance is that of the unknowns before any run is seen.
func (p *problem) covariance() [][]float64 {
	c := make([][]float64, len(p.params))
	for i, a := range p.params {
		c[i] = make([]float64, len(p.params))
		for j, b := range p.params {
			switch {
			case i == j:
				c[i][j] = a.PriorSpread * b.PriorSpread
			case a.Name == b.Name:
				c[i][j] = kernelCorrelation * a.PriorSpread * b.PriorSpread
			}
		}
	}
	return c
}

// moves says whether the parameter can matter to an observation.
func (q *Parameter) moves(b *Observation) bool {
	c := &b.Config
	switch q.Name {
	case "ar_latency", "ar_bandwidth":
		return c.TP > 1
	case "kv_link":
		return c.Prefills > 0
	case "kv_setup", "route":
		return c.Prefills > 0 && q.Engine == c.Engine
	case "moe_compute", "moe_bandwidth", "moe_tile":
		return c.Model.MoE != nil && q.Format == c.Model.Kernels()
	case "routing":
		return c.Model.MoE != nil
	case "ep_imbalance":
		return c.EP > 1
	case "t_draft", "t_draft_seq", "accept":
		return c.SpecTokens > 0 && q.Engine == c.Engine
	}
	if q.Engine != "" {
		return q.Engine == c.Engine
	}
	// The head and what is not quantised are 16 bit in every checkpoint.
	return q.Format == "" || q.Format == c.Model.Kernels() || q.Format == arch.BF16
}

// sets are the fitted parameters, rounded.
func (p *problem) sets() []sim.Set {
	sets := p.setsAt(p.x)
	for _, s := range sets {
		for name, v := range s.Values {
			s.Values[name] = round(v)
		}
	}
	for i := range sets {
		sets[i].Source = fmt.Sprintf("fitted to %d runs", len(p.obs))
	}
	return sets
}

// setsAt groups the parameters at x by what they belong to.
func (p *problem) setsAt(x []float64) []sim.Set {
	var sets []sim.Set
	index := map[string]int{}
	for i, q := range p.params {
		key := string(q.Format) + "/" + q.Engine
		at, ok := index[key]
		if !ok {
			at = len(sets)
			index[key] = at
			sets = append(sets, sim.Set{Accelerator: q.Accelerator, Format: q.Format, Engine: q.Engine, Values: map[string]float64{}, Spread: map[string]float64{}})
		}
		sets[at].Values[q.Name] = q.Prior * math.Exp(x[i])
		if q.Spread > 0 {
			sets[at].Spread[q.Name] = q.Spread
		}
	}
	slices.SortStableFunc(sets, func(a, b sim.Set) int {
		return cmp.Or(cmp.Compare(a.Engine, b.Engine), strings.Compare(string(a.Format), string(b.Format)))
	})
	return sets
}

// predict gives the log figures of the rows at x; those of observations that
// do not count are not numbers.
func (p *problem) predict(x []float64, use []bool) ([]float64, error) {
	k, err := p.options.Base.With(p.setsAt(x)...)
	if err != nil {
		return nil, err
	}
	figures := make([]map[string]float64, len(p.obs))
	errs := make([]error, len(p.obs))
	p.options.Each(len(p.obs), func(i int) {
		if b := &p.obs[i]; use[i] {
			if figures[i], errs[i] = replay(b.Config, b.Replicas, b.Load, k, p.options.Seed); errs[i] != nil {
				errs[i] = fmt.Errorf("replay %s: %w", b.ID, errs[i])
			}
		}
	})
	out := make([]float64, len(p.rows))
	for i, r := range p.rows {
		out[i] = math.NaN()
		if v, ok := figures[r.obs][r.metric]; ok {
			out[i] = math.Log(v)
		}
	}
	return out, cmp.Or(errs...)
}

// measureSlopes replays every observation with each unknown moved a little from
// its prior.
func (p *problem) measureSlopes() error {
	p.slopes = make([][]float64, len(p.params))
	for i := range p.params {
		use := make([]bool, len(p.obs))
		for k := range p.obs {
			use[k] = p.params[i].moves(&p.obs[k])
		}
		moved := make([]float64, len(p.params))
		moved[i] = slopeStep
		y, err := p.predict(moved, use)
		if err != nil {
			return err
		}
		for k := range y {
			y[k] = (y[k] - p.atPriors[k]) / slopeStep
			if math.IsNaN(y[k]) {
				y[k] = 0
			}
		}
		p.slopes[i] = y
	}
	return nil
}
