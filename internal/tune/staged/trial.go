package staged

import "perflab/internal/tune"

// trial is a proposal with its end and what the objective makes of it.
type trial struct {
	tune.Proposal
	name  string // the labels that led to it, "TensorRT-LLM + FP8"
	end   tune.Observation
	score tune.Score
}

func ended(o tune.Objective, workload string, p tune.Proposal, name string, end tune.Observation) *trial {
	return &trial{p, name, end, o.Score(end.Status, end.Figures[workload])}
}

// figures of a workload; none for no trial or an unmeasured one.
func (t *trial) figures(workload string) map[string]float64 {
	if !t.measured() {
		return nil
	}
	return t.end.Figures[workload]
}

func (t *trial) measured() bool { return t != nil && t.score.Known() }

// id is the trial's, or 0 when it has no figures.
func (t *trial) id() int {
	if !t.measured() {
		return 0
	}
	return t.Trial
}

// note is what is wrong with a trial.
func (t *trial) note(o tune.Objective, workload string) *tune.Finding {
	return o.Note(t.end, t.score, workload, t.figures(workload))
}

// pair holds trial a against b; both have figures.
func pair(a, b *trial) *tune.Pair {
	return &tune.Pair{Name: a.name, Against: b.name, Value: a.score.Value, Other: b.score.Value}
}

// seconds are those of all trials and of the longest.
func seconds(trials []*trial) (sum, longest float64) {
	for _, t := range trials {
		sum += t.end.Seconds
		longest = max(longest, t.end.Seconds)
	}
	return sum, longest
}
