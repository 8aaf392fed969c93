package tune

import (
	"cmp"
	"math"
	"slices"
)

// Forecast looks for the best configuration where a predictor stands in for engine and
// hardware. A prediction costs a fraction of a second and is the same each time: so it is
// asked of every candidate, and of what is near to the best of each kind until nothing
// improves, and no prediction is made twice. Settings that bring nothing are taken out.
//
// Trials are made of the baseline, of what the study names, and of the few best: each
// once, under every workload. What stands between a prediction and a measurement is the
// predictor's own error (see Doubter), which no repetition tells.
type Forecast struct {
	Procedure
	state *forecastState
}

var _ Strategy = (*Forecast)(nil)

// Doubter is a Predictor that knows how far off it is.
type Doubter interface {
	// Doubt is the ratio of the objective's figure of a configuration to that of another
	// on a workload, with what it lies between in nine of ten cases, and what of the
	// question its errors are not known of; false where they are known of nothing like it.
	Doubt(of, to Config, workload string) (ratio Span, outside []string, ok bool)
}

const (
	forecastStarts = 12   // of the best candidates are improved on, beside the best of each kind
	forecastShown  = 3    // of the best that differ in a choice have a trial
	forecastMost   = 5000 // predictions: what is left then is not looked at
	forecastStep   = 5e-4 // gain under which a step leads nowhere
	forecastWorth  = 5e-3 // gain that a setting of the recommendation brings at least
)

// ForecastEvidence is what stands behind the conclusion of a Forecast.
type ForecastEvidence struct {
	Predicted int        `json:"predicted"`         // configurations
	Unknown   int        `json:"unknown,omitempty"` // of them without a figure
	Refused   int        `json:"refused,omitempty"` // further ones, by rules
	Cut       bool       `json:"cut,omitempty"`     // the search ended at its limit of predictions
	Named     []Entry    `json:"named,omitempty"`   // what the study names, with its gain over the baseline
	Settings  []Ablation `json:"settings,omitempty"`
	Outside   []string   `json:"outside,omitempty"` // what the errors behind Interval are not known of
}

// NewForecast returns a search by prediction, or everything that is wrong with what it
// was given.
func NewForecast(g SearchSpace, p Predictor, s Space, o Objective) (*Forecast, error) {
	race, err := NewRace(g, p, s, o, Budget{}, RaceOptions{})
	if err != nil {
		return nil, err
	}
	f := &Forecast{state: &forecastState{launcher: race.state.launcher, known: map[string]*foreseen{}}}
	f.body = func(p *Procedure) {
		f.state.starter = p
		f.state.run()
	}
	return f, nil
}

// Result is what the predictions so far say.
func (f *Forecast) Result() Result {
	f.start()
	return f.state.result()
}

// forecastState is how far a search by prediction has come.
type forecastState struct {
	*launcher
	known    map[string]*foreseen
	order    []*foreseen // predicted, in order
	named    []*foreseen
	lead     *foreseen // of the last search, without what brings nothing
	evidence ForecastEvidence
	ratio    *Span // of the pick to the baseline
	ended    bool
}

// foreseen is a configuration with what is predicted of it.
type foreseen struct {
	config Config
	origin lineage
	score  score // of class none: nothing
	trial  *trial
}

// run is the search. It is suspended in show while a trial is under way.
func (s *forecastState) run() {
	base := &foreseen{config: s.baseConfig(), origin: theBaseline}
	s.show(base, BaselineStage)
	s.base = append(s.base, base.trial) // bounds are of its figures
	for _, k := range s.search.Candidates {
		k.Config = Change{}.Apply(k.Config)
		s.candidates = append(s.candidates, &contender{Candidate: k, origin: lineage{candidate: k.Label}})
	}
	first := s.look(base.config, theBaseline)
	first.trial = base.trial
	var all []Config
	for _, c := range s.candidates {
		all = append(all, c.Config)
		if c.Named && c.Refused == "" {
			if f := s.look(c.Config, c.origin); f != first {
				s.named = append(s.named, f)
				s.show(f, NamedStage)
			}
		}
	}
	s.predictAhead(all)
	for _, c := range s.candidates {
		s.look(c.Config, c.origin)
	}
	s.explore()
	for {
		fresh, rejected := false, false
		for _, f := range s.best() {
			fresh = s.show(f, BestStage) || fresh
			rejected = rejected || s.failedGuard(f.config)
		}
		if !fresh || !rejected {
			break
		}
	}
	if p := s.pick(); p != nil && s.based() && !s.isBase(p.config) {
		s.ratio, s.evidence.Outside = s.doubt(p.config)
	}
	s.ended = true
}

// show makes the trial of a configuration, under every workload; false where it had one.
func (s *forecastState) show(f *foreseen, stage string) bool {
	if f.trial != nil {
		return false
	}
	label := f.origin.String()
	if stage == BaselineStage {
		label = BaselineStage
	}
	all := append([]string{s.space.Primary}, s.space.Others...)
	f.trial = s.measure(Proposal{Stage: stage, Label: label, Config: f.config, Workloads: all}, f.origin)
	return true
}

// look predicts a configuration, once.
func (s *forecastState) look(config Config, from lineage) *foreseen {
	k := config.key()
	if f, ok := s.known[k]; ok {
		return f
	}
	f := &foreseen{config: config, origin: from}
	if len(s.order) == forecastMost {
		s.evidence.Cut = true
		return f
	}
	s.known[k] = f
	if s.search.Refuse(config) != "" {
		s.evidence.Refused++
		return f
	}
	s.order = append(s.order, f)
	if f.score = s.bounds.score(Measured, s.predict(config).figures); f.score.class == none {
		s.evidence.Unknown++
	}
	return f
}

// explore improves on the best candidates until nothing does.
func (s *forecastState) explore() {
	kinds := map[string]bool{}
	for i, f := range s.ranked() {
		kind := f.config[engineParameter] + " " + s.search.Numerics(f.config)
		if i < forecastStarts || !kinds[kind] {
			s.climb(f)
		}
		kinds[kind] = true
	}
}

// climb takes the step or the swap that brings most, again and again.
func (s *forecastState) climb(f *foreseen) {
	for {
		next := f
		changes := s.around(f.config)
		s.predictAhead(made(f.config, changes))
		for _, k := range changes {
			n := s.look(k.Apply(f.config), f.origin.with(k))
			if s.bounds.prefer(n.score, next.score) && (next != f || s.over(n, f) > forecastStep) {
				next = n
			}
		}
		if next == f {
			return
		}
		f = next
	}
}

// over is the gain of one over another as a logarithm; without an end where bounds decide.
func (s *forecastState) over(a, b *foreseen) float64 {
	if a.score.class != b.score.class || a.score.miss != b.score.miss {
		if s.bounds.prefer(a.score, b.score) {
			return math.Inf(1)
		}
		return math.Inf(-1)
	}
	return s.objective.log(a.score.value) - s.objective.log(b.score.value)
}

// ranked are the configurations with a figure, the best first and of equals the earliest:
// what the study names. Those that do not answer as the baseline does are left out.
func (s *forecastState) ranked() []*foreseen {
	var out []*foreseen
	for _, f := range s.order {
		if f.score.class != none && !s.failedGuard(f.config) {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b *foreseen) int { return s.bounds.order(a.score, b.score) })
	return out
}

// best are the best that differ in a choice, without settings that bring nothing.
func (s *forecastState) best() []*foreseen {
	var out []*foreseen
	for _, f := range s.ranked() {
		if slices.ContainsFunc(out, func(o *foreseen) bool { return s.sameChoices(o.config, f.config) }) {
			continue
		}
		out = append(out, s.plain(f, len(out) == 0))
		if len(out) == forecastShown {
			break
		}
	}
	if len(out) > 0 {
		s.lead = out[0]
	}
	return out
}

// plain is a configuration without its settings that bring too little, the one that costs
// least first: none of more than forecastWorth, not more than half of the gain that matters
// together, and nothing by which it falls behind what the study names.
func (s *forecastState) plain(f *foreseen, told bool) *foreseen {
	whole, settings := f, []Ablation(nil)
	for {
		var next *foreseen
		var goes Change
		for _, k := range s.search.Removals(f.config) {
			n := s.look(k.Apply(f.config), f.origin.without(k))
			if s.spares(f, n, whole) && (next == nil || s.bounds.prefer(n.score, next.score)) {
				next, goes = n, k
			}
		}
		if next == nil {
			break
		}
		settings = append(settings, s.setting(goes, f, next, true))
		f = next
	}
	if told {
		for _, k := range s.search.Removals(f.config) {
			if n := s.look(k.Apply(f.config), f.origin.without(k)); n.score.class != none {
				settings = append(settings, s.setting(k, f, n, false))
			}
		}
		s.evidence.Settings = settings
	}
	return f
}

// spares reports whether what a setting brought may be given up.
func (s *forecastState) spares(with, without, whole *foreseen) bool {
	if without.score.class == none || s.failedGuard(without.config) {
		return false
	}
	behind := func(f *foreseen) bool {
		return !s.failedGuard(f.config) && !s.bounds.prefer(f.score, whole.score) && s.bounds.prefer(f.score, without.score)
	}
	return s.over(with, without) < forecastWorth && s.over(whole, without) <= s.objective.MinGain/2 && !slices.ContainsFunc(s.named, behind)
}

// setting is what a setting brings by prediction.
func (s *forecastState) setting(k Change, with, without *foreseen, dropped bool) Ablation {
	a := Ablation{Setting: k.Label, Dropped: dropped}
	f := &Finding{Kind: PredictedNeeded}
	if x := s.over(with, without); !math.IsInf(x, 0) {
		g := math.Expm1(x)
		f.Kind, f.Value, a.Gain = PredictedBrings, &g, &Span{g, g, g}
	}
	a.Finding = f
	return a
}

// pick is the best by the trials; nil for none. What leads the predictions, which has no
// setting in vain, is not given up for less than such a setting is worth, unless it is for
// what the study names. Where the baseline has figures a pick is better by what matters.
func (s *forecastState) pick() *foreseen {
	var best, base *foreseen
	for _, f := range s.order {
		if f.trial == nil || !f.trial.measured() || s.failedGuard(f.config) {
			continue
		}
		if s.isBase(f.config) {
			base = f
		}
		if best == nil || s.bounds.prefer(f.trial.score, best.trial.score) {
			best = f
		}
	}
	if best == nil || base == best {
		return best
	}
	if l := s.lead; l != nil && l.trial.measured() && !s.failedGuard(l.config) && !slices.Contains(s.named, best) {
		if best.trial.score.class == l.trial.score.class && best.trial.score.miss == l.trial.score.miss && best.trial.log-l.trial.log < forecastWorth {
			best = l
		}
	}
	if base != nil && !s.bounds.beats(best.trial.score, base.trial.score) {
		return base
	}
	return best
}

// doubt is the ratio of a configuration to the baseline with the predictor's error: of
// weighed workloads as if it erred alike on all. It is nil where no error is known.
func (s *forecastState) doubt(config Config) (*Span, []string) {
	d, ok := s.predictor.(Doubter)
	if !ok {
		return nil, nil
	}
	var x [3]float64
	var outside []string
	all := 0.0
	for _, w := range s.workloads() {
		weight := cmp.Or(s.objective.Weights[w], 1)
		r, why, ok := d.Doubt(config, s.baseConfig(), w)
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
	return &Span{math.Exp(x[0] / all), math.Exp(x[1] / all), math.Exp(x[2] / all)}, outside
}

// without is the lineage of a configuration that lost a setting.
func (l lineage) without(k Change) lineage {
	out := l.beside(k)
	if out.String() == l.String() {
		out.changes = append(out.changes, Change{Label: "without " + k.Label, Set: k.Set})
	}
	return out
}

// result is what the predictions so far say.
func (s *forecastState) result() Result {
	e := s.evidence
	e.Predicted = len(s.order)
	r := Result{Forecast: &e}
	if len(s.base) > 0 {
		r.Baseline = s.base[0].id()
	}
	r.Winner = r.Baseline
	p := s.pick()
	if p != nil && !s.isBase(p.config) {
		r.Winner, r.Challenger = p.trial.Trial, p.trial.Trial
	}
	for _, c := range s.candidates {
		if c.Named {
			e.Named = append(e.Named, s.entry(c))
		}
	}
	if p != nil && s.based() {
		r.Gain = s.objective.Gain(s.base[0].merged, p.trial.merged)
		r.Misses = s.bounds.Misses(p.trial.merged)
	}
	if r.Gain != nil && s.ratio != nil && s.ended {
		// The error is a ratio: of what the trials say, which may be of more requests.
		by := (1 + *r.Gain) / s.ratio.Value
		r.Interval = &Span{*r.Gain, by*s.ratio.Low - 1, by*s.ratio.High - 1}
	}
	r.Verdict = s.verdict(p, r)
	return r
}

// entry is what is predicted of a candidate that the study names.
func (s *forecastState) entry(c *contender) Entry {
	out := Entry{Label: c.Label}
	f := s.known[c.Config.key()]
	switch {
	case c.Refused != "":
		out.Finding = &Finding{Kind: RefusedByRule, Reason: c.Refused}
	case f != nil && f.trial != nil:
		out.Trial, out.Finding = f.trial.Trial, s.note(f.trial)
		if f.trial.measured() && s.based() {
			out.Total = s.objective.Gain(s.base[0].merged, f.trial.merged)
		}
	}
	return out
}

// verdict is the conclusion.
func (s *forecastState) verdict(p *foreseen, r Result) Finding {
	f := Finding{N: len(s.order), Misses: r.Misses}
	switch {
	case !s.ended:
		f.After = new(len(s.trials))
		f.Kind = NothingYet
		if p != nil {
			f.Kind, f.Name = PredictedLeads, p.origin.String()
		}
		return f
	case p == nil:
		f.Kind, f.Against, f.Cause = PredictedNothing, theBaseline.candidate, s.note(s.base[0])
		return f
	case s.isBase(p.config):
		f.Kind = PredictedBaseline
		return f
	}
	f.Name, f.Value = p.origin.String(), &p.trial.score.value
	if !s.based() {
		f.Kind, f.Cause = PredictedAlone, s.note(s.base[0])
		return f
	}
	base := s.base[0]
	f.Kind, f.Pair = PredictedBetter, s.bounds.decided(&Pair{Name: f.Name, Against: base.name, Value: p.trial.score.value, Other: base.score.value}, p.trial, base, s.space.Primary)
	if r.Interval != nil {
		f.Comparison = &Comparison{Label: f.Name, Against: base.name, Workload: s.space.Primary, MinGain: s.objective.MinGain, Ratio: Span{1 + r.Interval.Value, 1 + r.Interval.Low, 1 + r.Interval.High}}
	}
	return f
}
