// Package foresight searches where a predictor stands in for engine and hardware.
//
//	s, err := foresight.New(space, predictor, tune.Space{Baseline: base, Primary: "chat"}, objective)
//	for p, ok := s.Ask(); ok; p, ok = s.Ask() {
//		s.Tell(replayed(p))
//	}
//	fmt.Println(s.Result().Verdict.Kind)
//
// Invariants: what is recommended has a trial; the interval of a gain is the predictor's own
// error, and where that is not known there is none.
//
// Deliberately absent: what is near to a configuration and how figures are judged
// (tune.Outlook), and launches, which alone confirm anything (tune.Race).
package foresight

import (
	"cmp"
	"math"
	"slices"

	"perflab/internal/tune"
)

// Search looks for the best configuration by prediction. A prediction costs a fraction of a
// second and is the same each time: so it is asked of every candidate, and of what is near to
// the best of each kind until nothing improves, and no prediction is made twice. Settings that
// bring nothing are taken out.
//
// Trials are made of the baseline, of what the study names, and of the few best: each
// once, under every workload. What stands between a prediction and a measurement is the
// predictor's own error (see Doubter), which no repetition tells.
type Search struct {
	tune.Procedure
	ground    *tune.Outlook
	space     tune.Space
	around    tune.SearchSpace
	predictor tune.Predictor

	base     *tune.Foreseen
	named    []*tune.Foreseen          // what the study names beside it
	of       map[string]*tune.Foreseen // the same by label, the baseline too
	lead     *tune.Foreseen            // of the last search, without what brings nothing
	settings []tune.Ablation           // of lead
	ratio    *tune.Span                // of the pick to the baseline
	outside  []string                  // what the errors behind ratio are not known of
	trials   int
	ended    bool
}

var _ tune.Strategy = (*Search)(nil)

// Doubter is a Predictor that knows how far off it is.
type Doubter interface {
	// Doubt is the ratio of the objective's figure of a configuration to that of another
	// on a workload, with what it lies between in nine of ten cases, and what of the
	// question its errors are not known of; false where they are known of nothing like it.
	Doubt(of, to tune.Config, workload string) (ratio tune.Span, outside []string, ok bool)
}

const (
	starts = 12   // of the best candidates are improved on, beside the best of each kind
	shown  = 3    // of the best that differ in a choice have a trial
	step   = 5e-4 // gain under which a step leads nowhere
	worth  = 5e-3 // gain that a setting of the recommendation brings at least
)

// New returns a search by prediction, or everything that is wrong with what it was given.
func New(g tune.SearchSpace, p tune.Predictor, s tune.Space, o tune.Objective) (*Search, error) {
	ground, err := tune.NewOutlook(g, p, s, o)
	if err != nil {
		return nil, err
	}
	f := &Search{ground: ground, space: s, around: g, predictor: p, of: map[string]*tune.Foreseen{}}
	f.Procedure = ground.Searching(f.run)
	return f, nil
}

// run is the search. It is suspended in show while a trial is under way.
func (s *Search) run() {
	s.trials++
	s.base = s.ground.Baseline()
	for _, k := range s.around.Candidates {
		if k.Named && k.Refused == "" {
			f := s.ground.Look(k)[0]
			if s.of[k.Label] = f; f != s.base {
				s.named = append(s.named, f)
				s.show(f, tune.NamedStage)
			}
		}
	}
	s.ground.Look(s.around.Candidates...)
	s.explore()
	for {
		fresh, rejected := false, false
		for _, f := range s.best() {
			fresh = s.show(f, tune.BestStage) || fresh
			rejected = rejected || s.ground.Fails(f)
		}
		if !fresh || !rejected {
			break
		}
	}
	if p := s.pick(); p != nil && s.based() && p != s.base {
		s.ratio, s.outside = s.doubt(p.Config)
	}
	s.ended = true
}

// show makes the trial of a configuration; false where it had one.
func (s *Search) show(f *tune.Foreseen, stage string) bool {
	if f.Trial > 0 {
		return false
	}
	s.trials++
	return s.ground.Show(f, stage)
}

// prefer reports whether one score goes before another, and over says by how much.
func (s *Search) prefer(a, b tune.Score) bool  { return s.ground.Judge().Order(a, b) < 0 }
func (s *Search) over(a, b tune.Score) float64 { return s.ground.Judge().Over(a, b) }

// based reports whether the baseline has figures.
func (s *Search) based() bool { return s.base != nil && s.base.Judged.Known() }

// explore improves on the best candidates until nothing does.
func (s *Search) explore() {
	kinds := map[string]bool{}
	for i, f := range s.ranked() {
		kind := f.Config["engine"] + " " + s.around.Numerics(f.Config)
		if i < starts || !kinds[kind] {
			s.climb(f)
		}
		kinds[kind] = true
	}
}

// climb takes the step or the swap that brings most, again and again.
func (s *Search) climb(f *tune.Foreseen) {
	for {
		next := f
		for _, n := range s.ground.Near(f) {
			if s.prefer(n.Score, next.Score) && (next != f || s.over(n.Score, f.Score) > step) {
				next = n
			}
		}
		if next == f {
			return
		}
		f = next
	}
}

// ranked are the configurations with a figure, the best first and of equals the earliest:
// what the study names. Those that do not answer as the baseline does are left out.
func (s *Search) ranked() []*tune.Foreseen {
	var out []*tune.Foreseen
	for _, f := range s.ground.Seen {
		if f.Score.Known() && !s.ground.Fails(f) {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b *tune.Foreseen) int { return s.ground.Judge().Order(a.Score, b.Score) })
	return out
}

// best are the best that differ in a choice, without settings that bring nothing.
func (s *Search) best() []*tune.Foreseen {
	var out []*tune.Foreseen
	for _, f := range s.ranked() {
		if slices.ContainsFunc(out, func(o *tune.Foreseen) bool { return s.ground.Alike(o, f) }) {
			continue
		}
		p := s.plain(f, len(out) == 0)
		if slices.ContainsFunc(out, func(o *tune.Foreseen) bool { return s.idle(o.Config, p.Config) && s.idle(p.Config, o.Config) }) {
			continue // the same command
		}
		out = append(out, p)
		if len(out) == shown {
			break
		}
	}
	if len(out) > 0 {
		s.lead = out[0]
	}
	return out
}

// idle reports whether what one configuration says and another does not is no setting of
// it, as tp 1 is none.
func (s *Search) idle(c, other tune.Config) bool {
	for name, v := range c {
		switch w, told := other[name]; {
		case v == w:
		case told || s.around.Settings(tune.Change{Set: tune.Config{name: ""}}.Apply(c)) < s.around.Settings(c):
			return false
		}
	}
	return true
}

// plain is a configuration without its settings that bring too little, the one that costs
// least first: none of more than worth, not more than half of the gain that matters
// together, and nothing by which it falls behind what the study names.
func (s *Search) plain(f *tune.Foreseen, told bool) *tune.Foreseen {
	whole, settings := f, []tune.Ablation(nil)
	for {
		var next tune.Removal
		for _, k := range s.ground.Without(f) {
			if s.spares(f, k.Left, whole) && (next.Left == nil || s.prefer(k.Left.Score, next.Left.Score)) {
				next = k
			}
		}
		if next.Left == nil {
			break
		}
		settings = append(settings, s.setting(f, next, true))
		f = next.Left
	}
	if told {
		for _, k := range s.ground.Without(f) {
			if k.Left.Score.Known() {
				settings = append(settings, s.setting(f, k, false))
			}
		}
		s.settings = settings
	}
	return f
}

// spares reports whether what a setting brought may be given up.
func (s *Search) spares(with, without, whole *tune.Foreseen) bool {
	if !without.Score.Known() || s.ground.Fails(without) {
		return false
	}
	behind := func(f *tune.Foreseen) bool {
		return !s.ground.Fails(f) && !s.prefer(f.Score, whole.Score) && s.prefer(f.Score, without.Score)
	}
	return s.over(with.Score, without.Score) < worth && s.over(whole.Score, without.Score) <= s.ground.Judge().MinGain/2 && !slices.ContainsFunc(s.named, behind)
}

// setting is what a setting brings by prediction.
func (s *Search) setting(with *tune.Foreseen, k tune.Removal, dropped bool) tune.Ablation {
	a := tune.Ablation{Setting: k.Label, Dropped: dropped}
	f := &tune.Finding{Kind: tune.PredictedNeeded}
	if x := s.over(with.Score, k.Left.Score); !math.IsInf(x, 0) {
		g := math.Expm1(x)
		f.Kind, f.Value, a.Gain = tune.PredictedBrings, &g, &tune.Span{Value: g, Low: g, High: g}
	}
	a.Finding = f
	return a
}

// pick is the best by the trials; nil for none. What leads the predictions, which has no
// setting in vain, is not given up for less than such a setting is worth, unless it is for
// what the study names. Where the baseline has figures a pick is better by what matters.
func (s *Search) pick() *tune.Foreseen {
	counts := func(f *tune.Foreseen) bool { return f != nil && f.Judged.Known() && !s.ground.Fails(f) }
	var best *tune.Foreseen
	for _, f := range s.ground.Seen {
		if counts(f) && (best == nil || s.prefer(f.Judged, best.Judged)) {
			best = f
		}
	}
	if best == nil || best == s.base {
		return best
	}
	if l := s.lead; counts(l) && !slices.Contains(s.named, best) {
		if x := s.over(best.Judged, l.Judged); x < worth && !math.IsInf(x, 0) {
			best = l
		}
	}
	if counts(s.base) && !s.ground.Judge().Beats(best.Judged, s.base.Judged) {
		return s.base
	}
	return best
}

// doubt is the ratio of a configuration to the baseline with the predictor's error: of
// weighed workloads as if it erred alike on all. It is nil where no error is known.
func (s *Search) doubt(config tune.Config) (*tune.Span, []string) {
	d, ok := s.predictor.(Doubter)
	if !ok {
		return nil, nil
	}
	weights := s.ground.Judge().Weights
	var x [3]float64
	var outside []string
	all := 0.0
	for i, w := range append([]string{s.space.Primary}, s.space.Others...) {
		if i > 0 && !(weights[w] > 0) {
			continue
		}
		weight := cmp.Or(weights[w], 1)
		r, why, ok := d.Doubt(config, s.base.Config, w)
		if !ok || !(r.Low > 0) {
			return nil, why
		}
		for i, v := range []float64{r.Value, r.Low, r.High} {
			x[i] += weight * math.Log(v)
		}
		all += weight
		for _, text := range why {
			if !slices.Contains(outside, text) {
				outside = append(outside, text)
			}
		}
	}
	return &tune.Span{Value: math.Exp(x[0] / all), Low: math.Exp(x[1] / all), High: math.Exp(x[2] / all)}, outside
}
