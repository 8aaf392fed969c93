package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"perflab/internal/bench"
	"perflab/internal/compare"
	"perflab/internal/engine"
	"perflab/internal/engine/logs"
	"perflab/internal/result"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// workload is a workload of the study with the seed of one pass. All trials of
// a pass meet the same requests at the same times; another pass meets others.
func (l *study) workload(name string, pass int) workload.Spec {
	for i, w := range l.Workloads {
		if w.Name == name {
			spec := w.Spec
			spec.Seed += l.Seed + uint64(1000*pass+i)
			spec.Nonce = bench.FixedNonce(name, spec)
			return spec
		}
	}
	panic("lab: the strategy proposed a workload that the study does not have: " + name)
}

// load of a run that is shortened: what it keeps at least. Fewer calls say
// little, fewer than fill the limit on concurrency twice over are of a server
// that fills and drains, and a shorter time is mostly both.
const (
	leastCalls   = 100
	leastFill    = 2
	leastSeconds = 10
)

// part is a workload of which a share is sent: its first requests, at their
// times, and the same ones to each configuration. What cannot be shortened is
// the whole.
func (l *study) part(name string, pass int, share float64) workload.Spec {
	whole := l.workload(name, pass)
	if !(share > 0 && share < 1) || whole.Steps != "" {
		return whole
	}
	spec := whole
	if d, err := spec.Duration.Duration(); err == nil && d > 0 {
		if s := math.Max(math.Ceil(d.Seconds()*share), leastSeconds); s < d.Seconds() {
			spec.Duration = workload.Span(fmt.Sprintf("%gs", s))
		}
	}
	n := spec.NumPrompts
	if n == 0 && spec.Duration == "" {
		n = l.requests(name)
	}
	least := max(leastCalls, leastFill*spec.MaxConcurrency)
	if k := max(int(math.Ceil(float64(n)*share)), least); k < n {
		if spec = spec.Sized(k); spec.NumPrompts >= n {
			spec = whole
		}
	}
	if spec.Validate() != nil {
		return whole
	}
	return spec
}

// requests is how many a workload has whose spec leaves it to its dataset; 0
// where that cannot be known.
func (l *study) requests(name string) int {
	if n, ok := l.counts[name]; ok {
		return n
	}
	n := 0
	if w, _, err := bench.OpenWorkload(l.workload(name, 0)); err == nil {
		n = w.Len()
	}
	if l.counts == nil {
		l.counts = map[string]int{}
	}
	l.counts[name] = n
	return n
}

// shareOf is the share of the load that a proposal's trial is under; 0 where that
// is all of it, also because it could not be shortened.
func (l *study) shareOf(p tune.Proposal) float64 {
	for _, name := range p.Workloads {
		if l.search(name) != nil && p.Share < 1 {
			return p.Share
		}
		whole, part := l.workload(name, p.Pass), l.part(name, p.Pass, p.Share)
		if part.NumPrompts != whole.NumPrompts || part.Duration != whole.Duration {
			return p.Share
		}
	}
	return 0
}

// loaded is a run with what a search asks of it beside its figures.
type loaded struct {
	result.Run
	within float64            // standard error of the objective's figure, as a share of it; 0: not known
	engine map[string]float64 // what the engine's metrics would show, of a prediction
}

// within is the standard error of the objective's figure in one run; 0 where the
// run does not tell.
func (l *study) within(o *bench.Outcome) float64 {
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
func (l *study) asks(p tune.Proposal, t *trialRecord) []tune.Change {
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
func (l *study) missed(p tune.Proposal, figures map[string]float64) []string {
	if p.Stage == tune.BaselineStage && l.base == nil {
		l.base = figures
	}
	var out []string
	for _, text := range l.Objective.SLOs {
		b, err := ParseBound(text)
		if err != nil || b.Metric == tune.AccuracyFigure {
			continue // checked when the study was parsed; answers have a test of their own
		}
		limit, known := b.Against(l.base)
		if known && !limit.Holds(figures) && !slices.Contains(out, b.Metric) {
			out = append(out, b.Metric)
		}
	}
	return out
}

// recall takes from a journal what a study that is resumed goes on with.
func (l *study) recall(log tune.Log) {
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
