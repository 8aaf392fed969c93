package calib

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/sim"
)

// FitOptions are how a fit is made.
type FitOptions struct {
	Base *sim.Constants // priors; nil: sim.Priors()
	Seed uint64         // of drawn lengths
	Each Each
}

// Each runs do for 0..n-1, perhaps at once; nil: one after another. One that leaves out what
// nobody waits for any more spoils the answer, and nothing else.
type Each func(n int, do func(i int))

// Do runs do for 0..n-1.
func (e Each) Do(n int, do func(i int)) {
	if e != nil {
		e(n, do)
		return
	}
	for i := range n {
		do(i)
	}
}

// noise is how well a figure of a run can be expected to be met, as the standard deviation
// of its logarithm: by which fits weigh residuals. Lengths drawn anew move a throughput by
// 1-2 %, another tail of theirs by 4-9 %; start-up stalls move TTFT by 2-10 %; and a mean
// TPOT is one of short answers. What the form of the model cannot tell of a study is more
// than all of that: with these values studies that take no part in a fit are predicted
// better than with a third of them (median error of throughput with vLLM 11.9 and 13.6 %,
// found with weights by Huber of each figure).
var noise = map[string]float64{Throughput: 0.12, MeanTTFT: 0.18, MedianTTFT: 0.30, MedianITL: 0.18, MeanTPOT: 0.30, MeanE2E: 0.15}

// A TTFT of so few requests at a time is a few steps long. What an engine does between two
// steps decides it, and a simulator of steps is off by more: its standard deviation is
// noiseOfFew times as large. It matters where one run is believed: in a fit of many, their
// weights see to it.
const (
	fewAtOnce  = 8
	noiseOfFew = 3.0
)

// noise is that of a figure.
func (p *problem) noise(r row) float64 {
	b := &p.obs[r.obs]
	if p.believed && (r.metric == MeanTTFT || r.metric == MedianTTFT) && b.Load.Rate == 0 && b.Load.atOnce(b.Replicas) <= fewAtOnce {
		return noiseOfFew * noise[r.metric]
	}
	return noise[r.metric]
}

// degrees are those of freedom of Student's distribution of what a run is off. A run that is
// off by much more than its noise, as of an engine that fell back to slow kernels, counts for
// little: it must not move the constants of all others.
const degrees = 4.0

// Parameter is a constant that a fit may move.
type Parameter struct {
	Name        string      `json:"name"`
	Accelerator string      `json:"accelerator,omitempty"`
	Format      arch.Format `json:"format,omitempty"`
	Engine      string      `json:"engine,omitempty"`
	Generation  string      `json:"generation,omitempty"` // of the engine's versions
	Family      string      `json:"family,omitempty"`     // of models
	Study       string      `json:"study,omitempty"`      // of a constant of a site
	Prior       float64     `json:"prior"`
	PriorSpread float64     `json:"prior_spread"` // relative
	Value       float64     `json:"value"`
	Spread      float64     `json:"spread"` // relative, after the fit
}

// subject is what the parameter is a constant of.
func (q *Parameter) subject() sim.Subject {
	return sim.Subject{Engine: q.Engine, Generation: q.Generation, Accelerator: q.Accelerator, Format: q.Format, Family: q.Family}
}

// set is one of what the parameter belongs to, without values.
func (q *Parameter) set() sim.Set {
	return sim.Set{Accelerator: q.Accelerator, Format: q.Format, Engine: q.Engine, Generation: q.Generation, Family: q.Family, Values: map[string]float64{}, Spread: map[string]float64{}}
}

// Residual is a figure of a run against its prediction.
type Residual struct {
	ID       string  `json:"id"`
	Metric   string  `json:"metric"`
	Measured float64 `json:"measured"`
	Value    float64 `json:"value"`         // predicted
	New      Novelty `json:"new,omitempty"` // to the fit, of a run that was held out

	// Flooded says that by the prediction more was offered than could be served: what is off
	// then is a capacity, and the latency by as much as the load is long.
	Flooded bool `json:"flooded,omitempty"`
}

// Off is the relative error of the prediction.
func (r Residual) Off() float64 { return r.Value/r.Measured - 1 }

// complete fills in what is not said.
func (o FitOptions) complete() FitOptions {
	o.Base = cmp.Or(o.Base, sim.Priors())
	return o
}

// problem is the fit of all constants that some observation depends on. Its unknowns x
// are the logarithms of the parameters over their priors, which are correlated: see
// covariance. So runs on one device, or of one engine, say something of others too.
type problem struct {
	options FitOptions
	obs     []Observation
	params  []Parameter
	rows    []row
	moved   [][]int // by observation: the unknowns that it depends on
	x       []float64

	believed bool // the runs are of the site that is asked about: see believe

	inverse [][]float64 // covariance of x after the fit
	report  []Residual

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

func newProblem(obs []Observation, o FitOptions) (*problem, error) {
	p := &problem{options: o, obs: obs}
	p.unknowns()
	p.prior = invert(covariance(p.params))
	for i, b := range obs {
		for _, m := range b.scored() {
			if v, ok := b.Figures[m]; ok && v > 0 && !b.unmodelled(m) {
				p.rows = append(p.rows, row{i, m, math.Log(v)})
			}
		}
	}
	at, err := p.predict(make([]float64, len(p.params)), p.all(), p.options.Each)
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

// unknowns lists the constants that some observation depends on, and for each observation
// those that it does.
func (p *problem) unknowns() {
	const never = -1 // index of a constant that is not fitted
	index := map[Parameter]int{}
	p.moved = make([][]int, len(p.obs))
	for _, name := range p.options.Base.Names() {
		about, _ := p.options.Base.About(name)
		for i := range p.obs {
			for _, q := range parametersOf(&p.obs[i], name, about.Of) {
				k, has := index[q]
				if !has {
					k = never
					v, sd := p.options.Base.Value(q.subject(), name), p.options.Base.Spread(q.subject(), name)
					if index[q] = k; sd > 0 && v > 0 {
						k = len(p.params)
						index[q] = k
						q.Prior, q.PriorSpread = v, sd
						p.params = append(p.params, q)
					}
				}
				if k != never {
					p.moved[i] = append(p.moved[i], k)
				}
			}
		}
	}
}

// parametersOf are the parameters of a name that can matter to an observation.
func parametersOf(b *Observation, name, of string) []Parameter {
	c := &b.Config
	if !matters(c, name) || name == "t_compile" && !b.Load.FirstUse {
		return nil
	}
	switch of {
	case "site":
		return []Parameter{{Name: name, Study: b.Study}}
	case "installation":
		return []Parameter{{Name: name, Study: b.Study, Engine: c.Engine}}
	case "model":
		return []Parameter{{Name: name, Accelerator: c.GPU.Name, Engine: c.Engine, Generation: c.Generation, Family: c.Model.Family()}}
	case "family":
		return []Parameter{{Name: name, Engine: c.Engine, Generation: c.Generation, Family: c.Model.Family()}}
	case "engine":
		return []Parameter{{Name: name, Accelerator: c.GPU.Name, Engine: c.Engine, Generation: c.Generation}}
	case "format":
		own := Parameter{Name: name, Accelerator: c.GPU.Name, Format: c.Model.Kernels(), Engine: c.Engine, Generation: c.Generation}
		// The head and what is not quantised are 16 bit in every checkpoint.
		if own.Format == arch.BF16 || strings.HasPrefix(name, "moe_") {
			return []Parameter{own}
		}
		head := own
		head.Format = arch.BF16
		return []Parameter{own, head}
	}
	return []Parameter{{Name: name, Accelerator: c.GPU.Name, Generation: c.Generation}} // attention's kernels came with it
}

// matters says whether a configuration does what a constant is of.
func matters(c *engine.Config, name string) bool {
	switch name {
	case "ar_latency", "ar_bandwidth":
		return c.TP > 1
	case "kv_link", "kv_setup", "route":
		return c.Prefills > 0
	case "host_link", "host_setup", "disk_rate":
		return tiered(c, name)
	case "moe_compute", "moe_bandwidth", "moe_tile", "routing":
		return c.Model.MoE != nil
	case "ep_imbalance":
		return c.EP > 1
	case "overlap":
		return c.Overlap
	case "flash_sinks":
		return c.Model.Sinks
	case "accept", "accept_mtp", "accept_eagle3":
		return c.SpecTokens > 0 && name == sim.Acceptance(*c)
	case "t_draft", "t_draft_seq":
		return c.SpecTokens > 0
	}
	return true
}

// Correlations, before any run is seen, of the logarithms of a constant's values for two
// devices, two weight formats, two engines, two generations of one: kernels differ, and share what they are made
// of and where they run. Where several differ, the correlations multiply. An engine's times on a host hang on its
// code: they are more alike beside two devices than kernels are on them (what a study's hosts do is site_host), and less alike
// for two engines, which share a device's limits and libraries of kernels.
const (
	acrossDevices     = 0.5
	hostAcrossDevices = 0.8
	acrossFormats     = 0.5
	acrossEngines     = 0.7
	hostAcrossEngines = 0.5
	acrossGenerations = 0.5
	acrossFamilies    = 0.3
)

// ofHost says whether a constant is a time of an engine's processes on a host.
func ofHost(name string) bool {
	return strings.HasPrefix(name, "t_") || name == "f_req" || name == "overlap"
}

// correlation is that of two parameters.
func correlation(a, b *Parameter) float64 {
	if a.Name != b.Name || a.Study != b.Study {
		return 0
	}
	c, devices, engines := 1.0, acrossDevices, acrossEngines
	if ofHost(a.Name) {
		devices, engines = hostAcrossDevices, hostAcrossEngines
	}
	if a.Accelerator != b.Accelerator {
		c *= devices
	}
	if a.Format != b.Format {
		c *= acrossFormats
	}
	switch {
	case a.Engine != b.Engine:
		c *= engines
	case a.Generation != b.Generation:
		c *= acrossGenerations
	}
	if a.Family != b.Family {
		c *= acrossFamilies
	}
	return c
}

// covariance is that of the logarithms of parameters before any run is seen.
func covariance(params []Parameter) [][]float64 {
	c := make([][]float64, len(params))
	for i := range params {
		c[i] = make([]float64, len(params))
		for j := range params {
			a, b := &params[i], &params[j]
			c[i][j] = correlation(a, b) * a.PriorSpread * b.PriorSpread
		}
	}
	return c
}

// site are the constants of a study's own machines, and of its engines on them, at x.
func (p *problem) site(x []float64, study string) []sim.Set {
	var sets []sim.Set
	for i, q := range p.params {
		if study == "" || q.Study != study {
			continue
		}
		at := slices.IndexFunc(sets, func(s sim.Set) bool { return s.Engine == q.Engine })
		if at < 0 {
			at = len(sets)
			sets = append(sets, q.set())
			sets[at].Source = "of the site of these runs"
		}
		sets[at].Values[q.Name] = q.Prior * math.Exp(x[i])
		if q.Spread > 0 {
			sets[at].Spread[q.Name] = q.Spread
		}
	}
	return sets
}

// setsAt groups the parameters at x by what they belong to, but for those of sites.
func (p *problem) setsAt(x []float64) []sim.Set {
	var sets []sim.Set
	index := map[sim.Subject]int{}
	for i, q := range p.params {
		if q.Study != "" {
			continue
		}
		at, ok := index[q.subject()]
		if !ok {
			at = len(sets)
			index[q.subject()] = at
			sets = append(sets, q.set())
		}
		sets[at].Values[q.Name] = q.Prior * math.Exp(x[i])
		if q.Spread > 0 {
			sets[at].Spread[q.Name] = q.Spread
		}
	}
	slices.SortStableFunc(sets, bySelectors)
	return sets
}

// bySelectors sorts sets so that the more exact come later and win.
func bySelectors(a, b sim.Set) int {
	return cmp.Or(cmp.Compare(selectors(&a), selectors(&b)), strings.Compare(a.Accelerator, b.Accelerator), strings.Compare(a.Engine, b.Engine), strings.Compare(a.Generation, b.Generation), strings.Compare(string(a.Format), string(b.Format)), strings.Compare(a.Family, b.Family))
}

func selectors(s *sim.Set) (n int) {
	for _, v := range []string{s.Accelerator, string(s.Format), s.Engine, s.Family} {
		if v != "" {
			n++
		}
	}
	return n
}

// constantsAt are those of each study at x.
func (p *problem) constantsAt(x []float64) (map[string]*sim.Constants, error) {
	shared, err := p.options.Base.With(p.setsAt(x)...)
	if err != nil {
		return nil, err
	}
	out := map[string]*sim.Constants{}
	for i := range p.obs {
		if study := p.obs[i].Study; out[study] == nil {
			if out[study], err = shared.With(p.site(x, study)...); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// predict gives the log figures of the rows at x; those of observations that
// do not count are not numbers.
func (p *problem) predict(x []float64, use []bool, each Each) ([]float64, error) {
	constants, err := p.constantsAt(x)
	if err != nil {
		return nil, err
	}
	figures := make([]map[string]float64, len(p.obs))
	errs := make([]error, len(p.obs))
	each.Do(len(p.obs), func(i int) {
		if b := &p.obs[i]; use[i] {
			if figures[i], errs[i] = replay(b.Config, b.Replicas, b.Load, constants[b.Study], p.options.Seed); errs[i] != nil {
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

// measureSlopes replays every observation with each unknown that it depends on moved a
// little from x, where the log figures are at.
func (p *problem) measureSlopes(x, at []float64) error {
	p.slopes = make([][]float64, len(p.params))
	for i := range p.slopes {
		p.slopes[i] = make([]float64, len(at)) // of work that Each leaves out, as when nobody waits for it any more
	}
	errs := make([]error, len(p.params))
	p.options.Each.Do(len(p.params), func(i int) { p.slopes[i], errs[i] = p.slopesOf(i, x, at) })
	return cmp.Or(errs...)
}

// slopesOf are those of one unknown.
func (p *problem) slopesOf(unknown int, x, at []float64) ([]float64, error) {
	use := make([]bool, len(p.obs))
	for k := range p.obs {
		use[k] = slices.Contains(p.moved[k], unknown)
	}
	moved := slices.Clone(x)
	moved[unknown] += slopeStep
	y, err := p.predict(moved, use, nil)
	for k := range y {
		y[k] = (y[k] - at[k]) / slopeStep
		if math.IsNaN(y[k]) {
			y[k] = 0
		}
	}
	return y, err
}
