package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/candidate"
	"perflab/internal/lab/prediction"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// Why the launches of a study can hardly tell its configurations apart, foreseen from the file
// and the predictions, then known from the baseline's first launch; or do not reach all that it names.

// otherLoad is what helps a study whose load bounds its objective.
const otherLoad = "Take a load that they cannot keep up with (request_rate: inf, or a max_concurrency), search the highest rate with find_max and goodput_rate, or improve a latency at this rate, such as p99_ttft_ms."

// foresee says, before the first launch, why configurations can hardly be told apart; "" where
// nothing speaks for that. p is what the search predicts by, and field what it may try, nil where
// the study lists it.
func (l *session) foresee(p tune.Predictor, field *candidate.Field) string {
	alike := l.predictedAlike(p, field)
	offers := l.Offers()
	if l.Baseline != nil && l.predictedBehind(p, offers) {
		offers = nil
	}
	switch {
	case len(offers) > 0:
		differ := "that fall behind"
		if len(l.Bounds) > 0 {
			differ += " or miss an SLO"
		}
		text := fmt.Sprintf("The load offers %s, and every configuration that keeps up has the same %s. Only those %s differ. ", offered(offers), l.Metric.Name, differ)
		if alike != "" {
			text += alike + ". "
		}
		return text + otherLoad
	case alike != "" && !l.predictedStep(p, field):
		return alike + ": launches can hardly tell them apart. Take a load under which they differ (more requests at once, longer prompts or answers), or another objective."
	}
	return ""
}

// shortBudget says that the budget has no launch for all that the study names; "" where it has.
func shortBudget(p tune.Plan) string {
	if p.Reached >= p.Named {
		return ""
	}
	configurations, launches := "configurations", "launches"
	if p.Named == 1 {
		configurations = "configuration"
	}
	if p.Reached == 1 {
		launches = "launch"
	}
	return fmt.Sprintf("The study names %d %s beside the baseline, and the budget of %d launches leaves %d %s for them: raise budget.trials to %d, or name fewer.",
		p.Named, configurations, p.Launches, p.Reached, launches, p.Enough)
}

// said are the texts that say something.
func said(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// offered names the offers in one phrase.
func offered(offers []study.Offer) string {
	var parts []string
	for _, o := range offers {
		parts = append(parts, o.Text())
	}
	return strings.Join(parts, " and ")
}

// predictedAlike says that all configurations that may be raced are predicted within half of the
// gain that matters of each other; "" where they differ by more, or not all can be predicted.
func (l *session) predictedAlike(p tune.Predictor, field *candidate.Field) string {
	if field == nil {
		return ""
	}
	var logs []float64
	all := field.Candidates()
	l.predictAll(p, all)
	for _, c := range all {
		if c.Refused != "" {
			continue
		}
		v, ok := l.predictedLog(p, c.Config)
		if !ok {
			return ""
		}
		logs = append(logs, v)
	}
	if len(logs) < 2 || slices.Max(logs)-slices.Min(logs) > math.Log1p(l.Goal.MinGain/2) {
		return ""
	}
	these := "Both"
	if len(logs) > 2 {
		these = fmt.Sprintf("All %d", len(logs))
	}
	return fmt.Sprintf("%s configurations that may be raced are predicted within %.2g %% of each other on %s (SIMULATED)", these, 100*l.Goal.MinGain/2, l.Metric.Name)
}

// predictedStep reports whether a small step from the baseline is predicted to gain what matters.
func (l *session) predictedStep(p tune.Predictor, field *candidate.Field) bool {
	base, ok := l.predictedLog(p, l.BaselineConfig())
	return ok && slices.ContainsFunc(field.Steps(l.BaselineConfig()), func(ch tune.Change) bool {
		c := ch.Apply(l.BaselineConfig())
		v, ok := l.predictedLog(p, c)
		return ok && v-base > math.Log1p(l.Goal.MinGain/2) && field.Refuse(c) == ""
	})
}

// predictedBehind reports whether the baseline is predicted to fall behind what is offered, so
// that the rate does not bound what others may gain.
func (l *session) predictedBehind(p tune.Predictor, offers []study.Offer) bool {
	f, ok := p.(*prediction.Predictor)
	return ok && slices.ContainsFunc(offers, func(o study.Offer) bool { return f.Behind(l.BaselineConfig(), o.Workload) })
}

// doubts are why the launches can hardly tell configurations apart: as the baseline's first
// launch showed, else as was foreseen, unless a gain was found all the same.
func (m *factsMaker) doubts(trials []trialRecord, gain *float64) []string {
	text := m.foreseen
	if gain != nil && *gain > max(m.Goal.MinGain, likelyNoise) {
		text = ""
	}
	if i := slices.IndexFunc(trials, m.isBase); i >= 0 && len(m.Offers()) > 0 {
		text = m.bounded(&trials[i].Trial)
	}
	if text == "" {
		return nil
	}
	return []string{text}
}

// likelyNoise is what launches of one configuration may well differ by.
const likelyNoise = 0.02

// bounded says by a launch of the baseline that it keeps up with the load and meets every SLO, so
// that the load decides the objective; "" where there is something to gain.
func (m *factsMaker) bounded(t *outcome.Trial) string {
	offers, most := m.Offers(), 0.0
	for _, o := range offers {
		i := slices.IndexFunc(t.Runs, func(r outcome.Run) bool { return r.Workload == o.Workload })
		if i < 0 || !m.keptUp(t.Runs[i].Summary) {
			return ""
		}
		f := t.Runs[i].Summary.Figures
		most = max(most, f["request_rate"]/f["request_throughput"]-1)
	}
	if len(offers) == 0 {
		return ""
	}
	figures := t.Runs[0].Summary.Judged()
	for _, b := range m.Bounds {
		if limit, known := b.Against(figures); b.Metric != tune.AccuracyFigure && !(known && limit.Holds(figures)) {
			return ""
		}
	}
	better := "no configuration can be better"
	if most >= 0.0005 { // the last answers come after the last request was sent
		better += fmt.Sprintf(" by more than %.1f %%", 100*most)
	}
	return fmt.Sprintf("The baseline answers the %s as they come, so %s on %s. %s", offered(offers), better, m.Metric.Name, otherLoad)
}

// Of a run that kept up with its rate.
const (
	almostAll   = 0.05 // of the rate is missing at most, where too few calls ended to see a queue grow
	enoughCalls = 50
)

// keptUp reports whether a run answered its requests as they came: nothing waited longer and longer.
func (m *factsMaker) keptUp(s result.Summary) bool {
	rate, done := s.Figures["request_rate"], s.Figures["request_throughput"]
	if !(rate > 0 && done > 0) || outcome.Saturated(s) {
		return false
	}
	if strings.HasPrefix(m.Metric.Name, "request_goodput") && s.Figures["request_goodput"] < (1-almostAll)*done {
		return false // its bounds are missed: there is something to gain
	}
	return s.Figures["completed"] >= enoughCalls || done >= (1-almostAll)*rate
}

// isBase reports whether a trial measured the baseline.
func (m *factsMaker) isBase(t trialRecord) bool {
	return m.Baseline != nil && t.Status == tune.Measured && maps.Equal(t.Config, m.BaselineConfig())
}

// warn tells whoever waits for the study why its launches can hardly tell configurations apart:
// when it begins, with the trials of before, and when the baseline was measured first.
func (l *session) warn(begins bool, trials ...trialRecord) {
	first := !l.past.based && slices.ContainsFunc(trials, l.facts.isBase)
	l.past.based = l.past.based || first
	if l.Tell == nil || !begins && !first {
		return
	}
	for _, text := range l.facts.doubts(trials, nil) {
		if text != l.past.warned {
			l.Tell(text)
		}
		l.past.warned = text
	}
}
