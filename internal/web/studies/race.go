package studies

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"

	"perflab/internal/outcome"
	"perflab/internal/report"
	"perflab/internal/report/finding"
	"perflab/internal/report/plot"
	"perflab/internal/tune"
)

// raceView is where a race stands.
type raceView struct {
	Plots    []plotView
	Rows     []candidate
	Confirm  []comparison
	Never    []unlaunched // of candidates that no launch tells of, by why
	Noise    string
	Phases   []outcome.Phase
	Stopped  string
	Finished bool
}

// candidate is a configuration that was launched.
type candidate struct {
	Rank                                 int
	Label, Engine, State, Tone           string
	Predicted, Ratio, Interval, Why, Was string
	Trials                               []int
}

// comparison is one of those that decide.
type comparison struct{ Label, Against, Launches, Ratio, Interval, Verdict, Tone, Sentence string }

// unlaunched are candidates with one reason.
type unlaunched struct {
	State, Why string
	N          int
	Labels     []string // the first few
}

// raceOf is where a race stands; nil of other studies.
func raceOf(f *outcome.Study, finished bool) *raceView {
	r := f.Race
	if r == nil || len(r.Candidates) == 0 {
		return nil
	}
	v := &raceView{Stopped: r.Stopped, Finished: finished, Phases: r.Phases}
	if r.Noise.Launches > 0 {
		v.Noise = fmt.Sprintf("Launches of one configuration differ by %.2g %%, as estimated from %d.", 100*r.Noise.Between, r.Noise.Launches)
	}
	var rows []plot.Ratio
	for i, c := range r.Candidates {
		if len(c.Trials) == 0 && c.Measured == nil {
			continue
		}
		x := candidateRow(i+1, c, finished)
		v.Rows = append(v.Rows, x)
		if c.Measured != nil && c.Measured.Value > 0 {
			rows = append(rows, plot.Ratio{Name: fmt.Sprintf("%d  %s", i+1, c.Label), Class: plotClass(c.State), Value: c.Measured.Value, Low: c.Measured.Low, High: c.Measured.High, Mark: c.Predicted})
		}
	}
	v.Never = neverLaunched(r.Candidates)
	v.Plots = append(v.Plots, shownPlots(plot.Forest("race", "Ratios to the baseline, above 1 is better", f.Simulated || f.Predicted,
		[]string{"best", "bad", "void", "bg"}, []string{"carried on", "out", "measured", "◇ predicted"}, rows))...)
	v.confirm(f)
	return v
}

func plotClass(state string) string {
	return cmp.Or(map[string]string{tune.StateRefined: "best", tune.StateEliminated: "bad"}[state], "void")
}

func candidateRow(rank int, c outcome.Candidate, finished bool) candidate {
	x := candidate{Rank: rank, Label: c.Label, Engine: c.Engine, Why: c.Reason, Trials: c.Trials, Was: c.Prior}
	x.State, x.Tone = candidateState(c.State, finished)
	if c.Predicted != nil {
		x.Predicted = plot.Times(*c.Predicted)
	}
	if m := c.Measured; m != nil && m.Value > 0 {
		x.Ratio, x.Interval = plot.Times(m.Value), interval(*m)
	}
	return x
}

// candidateState is a state in words, with the class of its tag.
func candidateState(state string, finished bool) (text, tone string) {
	switch state {
	case tune.StateRefined:
		return "carried on", "ok"
	case tune.StateEliminated:
		return "out", "noted"
	case tune.StateFailed:
		return "failed", "failed"
	case tune.StateRefused:
		return "refused", "refused"
	case tune.StatePruned:
		return "pruned", ""
	case tune.StateNotWorse:
		if finished {
			return "not carried on", ""
		}
		return "measured", ""
	}
	return "not launched", ""
}

func interval(s tune.Span) string {
	if s.High <= 0 {
		return ""
	}
	return fmt.Sprintf("[%.3f, %.3f]", s.Low, s.High)
}

// mostLabels is how many candidates with one reason are named.
const mostLabels = 12

// neverLaunched are the candidates that no launch tells of.
func neverLaunched(all []outcome.Candidate) (out []unlaunched) {
	for _, c := range all {
		if len(c.Trials) > 0 || c.Measured != nil {
			continue
		}
		state, _ := candidateState(c.State, true)
		i := slices.IndexFunc(out, func(u unlaunched) bool { return u.State == state && u.Why == c.Reason })
		if i < 0 {
			i, out = len(out), append(out, unlaunched{State: state, Why: c.Reason})
		}
		out[i].N++
		if len(out[i].Labels) < mostLabels {
			out[i].Labels = append(out[i].Labels, c.Label)
		}
	}
	slices.SortStableFunc(out, func(a, b unlaunched) int { return b.N - a.N })
	return out
}

// confirm adds the comparisons that decide.
func (v *raceView) confirm(f *outcome.Study) {
	var rows []plot.Ratio
	for _, k := range f.Race.Comparisons {
		c := comparison{Label: k.Label, Against: k.Against, Launches: fmt.Sprintf("%d / %d", len(k.Trials), len(k.Others)), Verdict: k.Verdict, Sentence: k.Sentence}
		class := "void"
		switch k.Verdict {
		case tune.Better:
			c.Tone, class = "ok", "best"
		case tune.Worse, tune.Missed:
			c.Tone, class = "failed", "bad"
		}
		if k.Ratio.Value > 0 {
			c.Ratio, c.Interval = plot.Times(k.Ratio.Value), interval(k.Ratio)
			rows = append(rows, plot.Ratio{Name: k.Label, Under: "against " + k.Against, Class: class, Value: k.Ratio.Value, Low: k.Ratio.Low, High: k.Ratio.High})
		}
		v.Confirm = append(v.Confirm, c)
	}
	v.Plots = append(v.Plots, shownPlots(plot.Forest("confirmation", "The confirmation: fresh launches on fresh seeds", f.Simulated || f.Predicted,
		[]string{"best", "bad", "void"}, []string{"better", "worse, or misses a constraint", "no difference shown yet"}, rows))...)
}

// shownPlots are plots as they stand in a page: the text in them is escaped where they are drawn.
func shownPlots(all []plot.Plot) (out []plotView) {
	for _, p := range all {
		out = append(out, plotView{template.HTML(p.Inline()), template.HTML(p.Phone)})
	}
	return out
}

// stage is one step of a search by stages.
type stage struct {
	Name, Result, Gain string
	Trials             []int
}

// stagesOf are the stages of a study that has them.
func stagesOf(f *outcome.Study) (out []stage) {
	if f.Race != nil {
		return nil
	}
	for _, st := range f.Stages {
		x := stage{Name: st.Name, Result: st.Result, Trials: st.Trials}
		if st.Gain != nil && *st.Gain > -1 {
			x.Gain = finding.Ratio(tune.Span{Value: 1 + *st.Gain}, f.Objective.Better != "lower")
		}
		out = append(out, x)
	}
	return out
}

// studyPlots are the plots of a study without a race.
func studyPlots(f outcome.Study) []plotView { return shownPlots(report.Plots(f)) }
