package tune

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"perflab/internal/tune/answers"
)

// Objective is the figure to improve, and what must hold besides.
type Objective struct {
	Metric  string  `json:"metric"`
	Higher  bool    `json:"higher"` // is more better
	SLOs    []Bound `json:"slos,omitempty"`
	MinGain float64 `json:"min_gain,omitempty"` // gains up to this are no difference: 0.02 is 2 %
	// Weights of workloads in the objective, of a race: the figure is the weighted
	// geometric mean of theirs. None: that of the primary workload alone.
	Weights map[string]float64 `json:"weights,omitempty"`
	Guard   *answers.Guard     `json:"guard,omitempty"` // what a change of numerics must pass; nil: none is asked for
}

// Bound is one constraint on a figure. A missing figure fails it.
type Bound struct {
	Metric string  `json:"metric"`
	Op     string  `json:"op"` // <= or >=
	Limit  float64 `json:"limit"`
	// Of, in a race, makes Limit one of the baseline's figure: Plus adds it, Times
	// multiplies by it.
	Of string `json:"of,omitempty"`
}

// What a bound's limit is of.
const (
	Plus  = "plus"
	Times = "times"
)

func (b Bound) String() string {
	if math.IsNaN(b.Limit) {
		return b.Metric + " " + b.Op + " a limit of the baseline, which has no such figure"
	}
	return b.Metric + " " + b.Op + " " + number(b.Limit)
}

// Holds reports whether figures keep the bound.
func (b Bound) Holds(figures map[string]float64) bool { return b.miss(figures) <= 0 }

// miss is how far a figure v lies beyond the limit L, as a share of it:
// (v-L)/|L| for <=, (L-v)/|L| for >=, without the divisor for L = 0. It is
// infinite for a missing figure and for a limit that there is none of, and not
// positive when the bound holds.
func (b Bound) miss(figures map[string]float64) float64 {
	v, ok := figures[b.Metric]
	if !ok || math.IsNaN(v) || math.IsNaN(b.Limit) {
		return math.Inf(1)
	}
	over := v - b.Limit
	if b.Op == ">=" {
		over = -over
	}
	if b.Limit != 0 {
		over /= math.Abs(b.Limit)
	}
	return over
}

// Validate says what is wrong with the objective.
func (o Objective) Validate() error {
	var errs []error
	if o.Metric == "" {
		errs = append(errs, errors.New("the objective names no metric: give the figure to improve"))
	}
	if !(o.MinGain >= 0 && o.MinGain < 1) {
		errs = append(errs, fmt.Errorf("min_gain is %v: give a share from 0 up to 1, such as 0.02 for 2 %%", o.MinGain))
	}
	for _, b := range o.SLOs {
		switch {
		case b.Metric == "":
			errs = append(errs, errors.New("an SLO names no metric: give the figure it bounds"))
		case b.Op != "<=" && b.Op != ">=":
			errs = append(errs, fmt.Errorf("SLO on %s has the operator %q: use <= or >=", b.Metric, b.Op))
		case !finite(b.Limit):
			errs = append(errs, fmt.Errorf("SLO on %s has the limit %v: give a number", b.Metric, b.Limit))
		}
	}
	return errors.Join(errs...)
}

// log is the logarithm of a figure in the direction that is better; not a number for
// one that is not positive.
func (o Objective) log(v float64) float64 {
	switch {
	case !(v > 0) || math.IsInf(v, 1):
		return math.NaN()
	case o.Higher:
		return math.Log(v)
	}
	return -math.Log(v)
}

// unlog is the figure of a logarithm.
func (o Objective) unlog(x float64) float64 {
	if o.Higher {
		return math.Exp(x)
	}
	return math.Exp(-x)
}

// resolve gives bounds that are of the baseline's figures their limits; one whose
// figure the baseline lacks is met by nothing.
func (o Objective) resolve(base map[string]float64) Objective {
	o.SLOs = slices.Clone(o.SLOs)
	for i, b := range o.SLOs {
		v, ok := base[b.Metric]
		switch {
		case b.Of == "":
			continue
		case !ok:
			b.Limit = math.NaN()
		case b.Of == Plus:
			b.Limit += v
		case b.Of == Times:
			b.Limit *= v
		}
		b.Of = ""
		o.SLOs[i] = b
	}
	return o
}

// Better reports whether a is strictly better than b.
func (o Objective) Better(a, b float64) bool {
	if o.Higher {
		return a > b
	}
	return a < b
}

// Gain is the objective's ratio in the direction that is better, less one:
// after/before - 1 where higher is better, before/after - 1 where lower is.
// So 0.5 is half as much again, or 1.5 times faster; a negative gain is a
// loss. It is nil if either lacks the figure or has one that is not positive.
func (o Objective) Gain(before, after map[string]float64) *float64 {
	b, a := before[o.Metric], after[o.Metric] // zero, so not positive, when missing
	if !(a > 0 && b > 0) || math.IsInf(a, 1) || math.IsInf(b, 1) {
		return nil
	}
	if o.Higher {
		return new(a/b - 1)
	}
	return new(b/a - 1)
}

// Misses are the SLOs that figures of one measurement miss, in order.
func (o Objective) Misses(figures map[string]float64) []Constraint {
	var misses []Constraint
	for _, b := range o.SLOs {
		if b.Holds(figures) {
			continue
		}
		k := Constraint{Bound: b.String()}
		if v, ok := figures[b.Metric]; ok {
			k.Mean = &v
		}
		misses = append(misses, k)
	}
	return misses
}

// Score is where figures stand: first by class, then within it. The zero one is of no figure.
type Score struct {
	class class
	miss  float64 // of class missing: the worst Bound.miss
	Value float64 // of the objective; 0: none
}

type class int

const (
	none    class = iota // no figure
	missing              // an SLO is missed
	meeting              // every SLO is met
)

// Known reports whether there is a figure.
func (s Score) Known() bool { return s.class != none }

// keepsAs reports whether two keep the bounds alike: the objective decides between them.
func (s Score) keepsAs(o Score) bool { return s.class == o.class && s.miss == o.miss }

// Score is where the figures of a trial with a status stand.
func (o Objective) Score(status string, figures map[string]float64) Score {
	v, ok := figures[o.Metric]
	if status != Measured || !ok || !finite(v) {
		return Score{}
	}
	s := Score{class: meeting, Value: v}
	for _, b := range o.SLOs {
		if m := b.miss(figures); m > 0 {
			s.class, s.miss = missing, max(s.miss, m)
		}
	}
	return s
}

// prefer reports whether a stands strictly above b. Meeting every SLO goes
// before any figure. Where neither does, the one whose worst miss is smaller
// is preferred, since that is the way out; the objective decides only among
// equal misses.
func (o Objective) prefer(a, b Score) bool {
	switch {
	case a.class != b.class:
		return a.class > b.class
	case a.class == none:
		return false
	case a.miss != b.miss:
		return a.miss < b.miss
	}
	return o.Better(a.Value, b.Value)
}

// Order puts the better of two before the other, for sorting: below 0, a goes first.
func (o Objective) Order(a, b Score) int {
	switch {
	case o.prefer(a, b):
		return -1
	case o.prefer(b, a):
		return 1
	}
	return 0
}

// Beats reports whether a goes before b, where a difference of the objective alone must exceed
// MinGain: one that does not is no reason to leave an incumbent.
func (o Objective) Beats(a, b Score) bool {
	if !o.prefer(a, b) {
		return false
	}
	if !a.keepsAs(b) {
		return true
	}
	gain := o.Gain(map[string]float64{o.Metric: b.Value}, map[string]float64{o.Metric: a.Value})
	return gain == nil || *gain > o.MinGain
}

// Over is the gain of a over b as a logarithm; without an end where bounds decide.
func (o Objective) Over(a, b Score) float64 {
	if !a.keepsAs(b) {
		if o.prefer(a, b) {
			return math.Inf(1)
		}
		return math.Inf(-1)
	}
	return o.log(a.Value) - o.log(b.Value)
}

// number prints a figure with the six digits that a reader can use.
func number(x float64) string {
	if a := math.Abs(x); a >= 1e6 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}
