package lab

import (
	"maps"
	"slices"

	"perflab/internal/bench"
	"perflab/internal/compare"
	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// loaded is a run with what a search asks of it beside its figures.
type loaded struct {
	result.Run
	within float64            // standard error of the objective's figure, as a share of it; 0: not known
	engine map[string]float64 // what the engine's metrics would show, of a prediction
}

// within is the standard error of the objective's figure in one run; 0 where the
// run does not tell.
func (l *session) within(o *bench.Outcome) float64 {
	se, _ := compare.StandardError(compare.Run{Header: o.Header, Summary: o.Summary, Calls: o.Calls}, l.Objective.Metric)
	return se
}

// failed is why an engine refused a command.
type failed struct {
	logs.Failure
	cmd engine.Command
}

// asks is what the end of a trial asks for next: a repair of a refusal, or an
// answer to what bounds the primary workload.
func (l *session) asks(p tune.Proposal, t *trialRecord) []tune.Change {
	switch {
	case l.field == nil:
		return nil
	case t.Status == tune.Refused && t.failed != nil:
		return l.field.Repairs(p.Config, t.failed.Failure, t.failed.cmd)
	case t.Status != tune.Measured || len(t.Runs) == 0:
		return nil
	}
	figures := maps.Clone(t.Runs[0].Summary.Figures)
	for name, v := range t.engine {
		if _, told := figures[name]; !told {
			figures[name] = v
		}
	}
	return l.field.Moves(p.Config, figures, l.missed(p, figures))
}

// missed are the metrics of the constraints that a run's figures do not keep.
// The baseline's own figures are those that its first trial had.
func (l *session) missed(p tune.Proposal, figures map[string]float64) []string {
	if p.Stage == tune.BaselineStage && l.base == nil {
		l.base = figures
	}
	var out []string
	for _, b := range l.Bounds {
		if b.Metric == tune.AccuracyFigure {
			continue // answers have a test of their own
		}
		limit, known := b.Against(l.base)
		if known && !limit.Holds(figures) && !slices.Contains(out, b.Metric) {
			out = append(out, b.Metric)
		}
	}
	return out
}

// recall takes from a journal what a study that is resumed goes on with.
func (l *session) recall(log tune.Log) {
	for _, t := range log.Trials {
		o := t.Observation
		if o == nil {
			continue
		}
		l.ended++
		if t.Proposal.Stage == tune.BaselineStage && o.Status == tune.Measured && l.base == nil {
			l.base = o.Figures[l.Workloads[0].Name]
		}
	}
}
