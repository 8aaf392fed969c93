package calib

import (
	"iter"
	"math"
	"slices"
	"time"

	"perflab/internal/sim"
	"perflab/internal/stat"
)

// Load is what was sent, as far as it is known: every request, or how many
// there were and how long on average.
type Load struct {
	Requests    int     `json:"requests"`
	Rate        float64 `json:"rate,omitempty"`        // requests/s; 0: all at once
	Arrival     string  `json:"arrival,omitempty"`     // constant, poisson; of a rate
	Concurrency int     `json:"concurrency,omitempty"` // in flight at most; 0: no limit
	Input       Lengths `json:"input"`
	Output      Lengths `json:"output"`

	// Cached is how many of the first prompts the engine's prefix cache holds
	// when the load begins: clients send the first one as a test.
	Cached int `json:"cached,omitempty"`

	// FirstUse says that the load met a kernel which the engine compiles where it is first needed: the
	// machine's first launch with FlashInfer, by a client that sends no more than its first prompt before.
	FirstUse bool `json:"first_use,omitempty"`

	Exact   []Request `json:"-"` // every request, where calls are known
	Shuffle bool      `json:"-"` // the order of Exact is chance: another seed has another

	// Course begins a way through a load that no list of requests describes, on so many replicas: as it is, or with
	// what is chance in it drawn by another seed. nil: Exact or the lengths describe it. Requests may then be 0: they are not known in advance.
	Course   func(replicas int, seed *uint64) (Course, error) `json:"-"`
	Sessions bool                                             `json:"-"` // Course's requests wait for each other
	another  *uint64                                          // seed of Course; nil: as it is
}

// Lengths are token counts of prompts or answers: all of the mean, or drawn
// from a distribution with that mean, from 4 to Max.
type Lengths struct {
	Mean  float64 `json:"mean"`
	Shape Shape   `json:"shape,omitempty"` // "": all of the mean
	Sigma float64 `json:"sigma,omitempty"` // of the logarithm; log-normal
	Max   int     `json:"max,omitempty"`   // 0: no limit
}

// Shape is a distribution of lengths.
type Shape string

// Shapes. Answers of ShareGPT are half-normal: published latencies of single
// requests at 1 req/s, where a token takes the same time throughout, have a median
// of 0.85 of the mean, P95 of 2.59 and P99 of 3.19; half-normal lengths have
// 0.85, 2.46 and 3.23 (log-normal ones with the same P95: 0.72 and 4.4).
const (
	LogNormal  Shape = "log-normal"
	HalfNormal Shape = "half-normal"
)

// Request is one request of a load.
type Request struct {
	Due           time.Duration
	Input, Output int
	Prompt        []uint32 // nil: tokens that no other prompt begins with
}

const minLength = 4 // tokens of a drawn prompt or answer, at least: ShareGPT's filters drop shorter ones

// Jobs are the requests of a load; where lengths are only known on average,
// another seed draws others. Their total is that of the load.
func (l Load) Jobs(seed uint64) iter.Seq[sim.Job] {
	return func(yield func(sim.Job) bool) {
		if l.Exact != nil {
			for i, r := range l.Exact {
				if !yield(sim.Job{Index: i, Arrive: r.Due, Prompt: r.Prompt, PromptLen: r.Input, Output: r.Output}) {
					return
				}
			}
			return
		}
		in, out := l.Input.draw(l.Requests, seed, "input"), l.Output.draw(l.Requests, seed, "output")
		gaps := stat.Stream(seed, "arrivals")
		var due float64
		for i := range l.Requests {
			if !yield(sim.Job{Index: i, Arrive: time.Duration(due * 1e9), Prompt: l.cachedPrompt(i, in[i]), PromptLen: in[i], Output: out[i]}) {
				return
			}
			switch {
			case l.Rate <= 0:
			case l.Arrival == "poisson":
				due += gaps.ExpFloat64() / l.Rate
			default:
				due += 1 / l.Rate
			}
		}
	}
}

// Warm are the requests that the engine has served before the load.
func (l Load) Warm(seed uint64) []sim.Job {
	if l.Cached == 0 {
		return nil // without drawing the lengths of a whole load
	}
	var jobs []sim.Job
	for j := range l.Jobs(seed) {
		if j.Index >= l.Cached {
			break
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// cachedPrompt is a prompt of n tokens that the prefix cache holds; nil for one that it
// does not.
func (l Load) cachedPrompt(i, n int) []uint32 {
	if i >= l.Cached {
		return nil
	}
	p := make([]uint32, n)
	for k := range p {
		p[k] = uint32(i)<<20 | uint32(k)
	}
	return p
}

// burst is the load without a schedule: every request at the first instant, and
// at least so many where they can be made up, so that filling and draining the
// engine is a small part of it.
func (l Load) burst(least int) Load {
	l.Rate, l.Arrival = 0, ""
	if l.Exact == nil {
		l.Requests = max(l.Requests, least)
		return l
	}
	known := slices.ContainsFunc(l.Exact, func(r Request) bool { return r.Prompt != nil })
	was := l.Exact
	l.Exact = nil
	for len(l.Exact) < len(was) || !known && len(l.Exact) < least && len(was) > 0 {
		l.Exact = append(l.Exact, was...)
	}
	for i := range l.Exact {
		l.Exact[i].Due = 0
	}
	l.Requests = len(l.Exact)
	return l
}

// redraw is the load as another seed would have it: exact requests in another
// order, where that is chance, and at other times of the same rate. Lengths
// that are only known on average are drawn by Jobs.
func (l Load) redraw(seed uint64) Load {
	if l.Course != nil {
		l.another = &seed
		return l
	}
	if len(l.Exact) == 0 {
		return l
	}
	was := l.Exact
	l.Exact = slices.Clone(was)
	if l.Shuffle {
		for i, k := range stat.Stream(seed, "order").Perm(len(was)) {
			due := was[i].Due
			l.Exact[i] = was[k]
			l.Exact[i].Due = due
		}
	}
	if l.Rate > 0 && l.Arrival == "poisson" {
		gaps := stat.Stream(seed, "arrivals")
		due := float64(was[0].Due)
		for i := range l.Exact {
			l.Exact[i].Due = time.Duration(due)
			due += gaps.ExpFloat64() / l.Rate * 1e9
		}
	}
	return l
}

// loadFacts are sums over a load.
type loadFacts struct {
	requests      int
	input, output float64 // mean tokens
}

func (l Load) facts() loadFacts {
	if l.Exact == nil {
		return loadFacts{l.Requests, l.Input.Mean, l.Output.Mean}
	}
	f := loadFacts{requests: len(l.Exact)}
	for _, r := range l.Exact {
		n := r.Input
		if r.Prompt != nil {
			n = len(r.Prompt)
		}
		f.input, f.output = f.input+float64(n), f.output+float64(r.Output)
	}
	if n := float64(f.requests); n > 0 {
		f.input, f.output = f.input/n, f.output/n
	}
	return f
}

// atOnce is how many requests of a load without a rate are in flight at each replica.
func (l Load) atOnce(replicas int) int {
	n := l.facts().requests
	switch {
	case l.Course != nil && l.Concurrency > 0:
		n = l.Concurrency // whose number of requests may not be known
	case l.Concurrency > 0:
		n = min(n, l.Concurrency)
	}
	replicas = max(1, replicas)
	return (n + replicas - 1) / replicas
}

// draw makes n lengths of the mean.
func (l Lengths) draw(n int, seed uint64, purpose string) []int {
	out := make([]int, n)
	if l.Shape == "" {
		spread(out, l.Mean)
		return out
	}
	r := stat.Stream(seed, purpose)
	z := make([]float64, n)
	for i := range z {
		z[i] = r.NormFloat64()
	}
	limit := l.Mean * float64(n) // no length is above the total
	if l.Max > 0 {
		limit = float64(l.Max)
	}
	fill := func(mu float64) (sum float64) {
		for i, x := range z {
			v := math.Floor(min(limit, max(minLength, l.at(mu, x))))
			out[i] = int(v)
			sum += v
		}
		return sum
	}
	lo, hi := 0.0, 20.0
	for range 50 {
		mu := (lo + hi) / 2
		if fill(mu) < l.Mean*float64(n) {
			lo = mu
		} else {
			hi = mu
		}
	}
	fill(lo)
	return out
}

// at is the length of a standard normal draw z at a scale of e^mu.
func (l Lengths) at(mu, z float64) float64 {
	if l.Shape == HalfNormal {
		return math.Exp(mu) * math.Abs(z)
	}
	return math.Exp(mu + l.Sigma*z)
}

// spread fills out with whole numbers of a mean, as even as they can be.
func spread(out []int, mean float64) {
	owed := 0.0
	for i := range out {
		owed += mean
		out[i] = max(1, int(math.Round(owed)))
		owed -= float64(out[i])
	}
}
