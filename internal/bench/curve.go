package bench

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"perflab/internal/field"
	"perflab/internal/load"
	"perflab/internal/profile"
	"perflab/internal/profile/agentx"
	"perflab/internal/profile/mlperf"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// checkRules refuses the rules of a benchmark that nobody knows, and what contradicts them from the start: they judge the rest.
func (s Spec) checkRules() error {
	w := s.Workload
	switch {
	case s.Rules == "":
	case profile.Known(s.Rules) != nil:
		return field.Errorf("profile_rules", "%v", profile.Known(s.Rules))
	case s.Rules == profile.AgentX && !w.Agents():
		return field.Errorf("dataset_name", "is %s: AgentX replays recorded sessions of agents (docs/agents.md)", w.Dataset)
	case profile.IsMLPerf(s.Rules) && w.Sessions():
		return field.Errorf("dataset_name", "is %s: perflab has the rules of MLPerf Endpoints for requests that stand alone", w.Dataset)
	}
	return nil
}

// FillRules gives a spec what the rules of its profile want where nobody has said otherwise: given tells that by the key
// of the spec. What is asked for against a rule stays, and the rules say so.
func (s Spec) FillRules(given func(key string) bool) Spec {
	w := &s.Workload
	switch {
	case profile.IsMLPerf(s.Rules):
		if !given("num_warmups") {
			s.Warmups = 0
		}
		if !given("seed") {
			w.Seed = mlperf.SeedSets()[0].Sample
		}
		if !given("duration") {
			w.Duration = workload.Span(mlperf.RulesOf(s.Rules).Load(mlperf.UltraLow + 1).String())
		}
	case s.Rules == profile.AgentX:
		if !given("duration") {
			w.Duration = workload.Span(agentx.Duration.String())
		}
		if !given("start_ratio") {
			w.StartRatio = agentx.StartRatio
		}
		s.MaxIdle = agentx.MaxIdle
	}
	return s
}

// Foreseen are the rules of the spec's profile that its run will break, as far as that is known before.
func (s Spec) Foreseen() []profile.Finding {
	if s.Rules != profile.AgentX {
		return nil
	}
	var settings agentx.Settings
	if b, err := json.Marshal(s.Workload); err != nil || json.Unmarshal(b, &settings) != nil {
		return nil // nothing is foreseen: the run is judged all the same
	}
	settings.SystemIdle, settings.Cache, settings.Body = s.MaxIdle, cmp.Or(s.Cache, CacheUnique), s.ExtraBody
	return agentx.Foresee(settings)
}

// InPasses makes of the requests that a spec asks for a pass over its dataset, of which a curve sends whole ones.
func (s Spec) InPasses() Spec {
	if w := &s.Workload; profile.IsMLPerf(s.Rules) {
		w.Pass, w.NumPrompts = w.NumPrompts, 0
	}
	return s
}

// PassOf is how many requests a pass over the dataset of a spec has: as many as it asks for, else all.
func PassOf(w workload.Spec) (int, error) {
	if w.Pass > 0 {
		return w.Pass, nil
	}
	w.Duration = ""
	opened, _, err := OpenWorkload(w)
	if err != nil {
		return 0, err
	}
	return opened.Len(), nil
}

// CurvePlan measures the concurrencies of a curve, each for as long as the rules of the profile want; timed: for as
// long as the spec says.
func CurvePlan(name string, s Sweep, timed bool) LoadPlan {
	rules := mlperf.RulesOf(name)
	p := &fixedPlan{}
	for _, l := range s.Loads() {
		step := Step{Load: l}
		if !timed {
			step.For = rules.Load(int(l.Value))
		}
		p.steps = append(p.steps, step)
	}
	return p
}

// addToCurve adds the run to what the rules of a benchmark look at.
func (s *Series) addToCurve(f *SeriesFacts, out *Outcome) error {
	if !profile.IsMLPerf(s.Bench.Spec.Rules) {
		return nil
	}
	if f.Curve == nil {
		f.Curve = &mlperf.Curve{Profile: s.Bench.Spec.Rules, CMax: s.CMax}
	}
	var bad error
	point := curvePoint(out.Header, out.Summary, func(yield func(result.Call) bool) {
		for c, err := range out.All() {
			if bad = err; err != nil || !yield(c) {
				return
			}
		}
	})
	f.Curve.Points = append(f.Curve.Points, point)
	return bad
}

// curvePoint is what the rules of MLPerf Endpoints look at of a run.
func curvePoint(h result.Header, s result.Summary, calls iter.Seq[result.Call]) mlperf.Point {
	var spec Spec
	_ = json.Unmarshal(h.Spec, &spec) // a header that was written by hand: the rules say what is missing
	w := spec.Workload
	p := mlperf.Point{
		Concurrency: h.Limit, Pass: w.Pass, Closed: h.Closed, Seed: w.Seed, Warmups: spec.Warmups, Cache: h.Cache,
		Partial: s.Partial, Simulated: s.Simulated, Workload: fmt.Sprintf("%s %s", w.Dataset, w.Path),
	}
	if s.Verdict.Status == result.Voided {
		p.Void = s.Verdict.Why()
	}
	var samples []mlperf.Sample
	for c := range calls {
		samples = append(samples, mlperf.SampleOf(&c))
	}
	return mlperf.Measure(p, mlperf.RulesOf(spec.Rules).Least(h.Limit), samples)
}

// idleNote says what a bound on idle times changed.
func idleNote(s load.Stats, most time.Duration) string {
	if s.Skips == 0 {
		return ""
	}
	times := "once"
	if s.Skips > 1 {
		times = fmt.Sprintf("%d times", s.Skips)
	}
	return fmt.Sprintf("all servers would have been idle for longer than %v %s: what waited came earlier, by %v in all", most, times, s.Skipped.Round(time.Second))
}
