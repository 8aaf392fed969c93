package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"perflab/internal/block"
	"perflab/internal/outcome"
	"perflab/internal/report/finding"
	"perflab/internal/result"
)

// study is a result.Study with the look-ups that every renderer needs.
type study struct {
	outcome.Study
	objective result.Metric
	primary   string
	trials    map[int]*outcome.Trial
	style     block.Style // of blocks
}

func index(s outcome.Study) study {
	x := study{Study: finding.Worded(s), trials: map[int]*outcome.Trial{}}
	x.objective = x.metric(s.Objective.Metric)
	for i := range s.Trials {
		x.trials[s.Trials[i].ID] = &s.Trials[i]
		for _, r := range s.Trials[i].Runs { // one simulated run taints the whole
			x.Simulated = x.Simulated || r.Summary.Simulated
			x.Predicted = x.Predicted || r.Summary.Predicted
		}
	}
	x.Simulated = x.Simulated || x.Predicted
	if x.survey() {
		x.Baseline = nil // no configuration of a list is measured against another
	}
	for _, l := range s.Workloads {
		if l.Primary || x.primary == "" {
			x.primary = l.Name
		}
		if l.Primary {
			break
		}
	}
	return x
}

// survey reports whether the study measured a list and improved nothing.
func (x study) survey() bool { return x.Strategy == "survey" }

func (x study) lower() bool { return x.Objective.Better == "lower" }

// summaryOf is a trial's on the primary workload, or nil.
func (x study) summaryOf(t *outcome.Trial) *result.Summary {
	if t == nil {
		return nil
	}
	for i := range t.Runs {
		if t.Runs[i].Workload == x.primary {
			return &t.Runs[i].Summary
		}
	}
	return nil
}

// name is how a trial is referred to: "#3 TP4 EP4".
func (x study) name(id int) string {
	if t := x.trials[id]; t != nil {
		return fmt.Sprintf("#%d %s", id, t.Label)
	}
	return fmt.Sprintf("#%d", id)
}

// workload is the title of a workload.
func (x study) workload(name string) string {
	for _, l := range x.Workloads {
		if l.Name == name {
			return cmp.Or(l.Title, l.Name)
		}
	}
	return name
}

// pickTitle names a side of the comparison with its number of replicas.
func (x study) pickTitle(p *outcome.Pick) string {
	if p == nil {
		return "none"
	}
	return x.name(p.Trial) + ", " + count(max(p.Replicas, 1), "replica")
}

// role marks the trials that the conclusion speaks of.
func (x study) role(id int) string {
	switch {
	case x.Recommended != nil && x.Recommended.Trial == id && x.survey():
		return "best"
	case x.Baseline != nil && x.Baseline.Trial == id:
		return "baseline"
	case x.Recommended != nil && x.Recommended.Trial == id:
		return strings.ToLower(x.standing().word)
	}
	return ""
}

// sentence gives a clause its capital and full stop. A clause that begins with
// the name of a configuration keeps it as it is spelt.
func (x study) sentence(s string) string {
	if named := func(t outcome.Trial) bool { return strings.HasPrefix(s, t.Label) }; s != "" && slices.ContainsFunc(x.Trials, named) {
		return strings.TrimSuffix(s, ".") + "."
	}
	return sentence(s)
}

// sentence gives a clause its capital and full stop; an identifier that it begins with, as lines
// of logs do, stays as it is spelt.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	if first, _, _ := strings.Cut(s, " "); s[0] < utf8.RuneSelf && !strings.Contains(first, "_") {
		s = strings.ToUpper(s[:1]) + s[1:]
	}
	return strings.TrimSuffix(s, ".") + "."
}

// weighed reports whether more workloads than the primary one are judged.
func (x study) weighed() bool { return len(x.Objective.Weights) > 1 }

// onGPUs reports whether any trial was given a GPU.
func (x study) onGPUs() bool {
	return slices.ContainsFunc(x.Trials, func(t outcome.Trial) bool { return t.GPUs > 0 })
}

// engine is the title of an engine.
func (x study) engine(name string) string {
	for _, e := range x.Engines {
		if e.Name == name {
			return cmp.Or(e.Title, e.Name)
		}
	}
	return name
}

// metric is a row of the metric table; a price is in the study's currency.
func (x study) metric(name string) result.Metric {
	m := metric(name)
	if m.Unit != "price" {
		m.Label = result.Label(m, x.summaries()...)
		return m
	}
	m.Unit = ""
	for _, t := range x.Trials {
		for _, r := range t.Runs {
			if r.Summary.Currency != "" {
				m.Unit = r.Summary.Currency
				m.Label += " (" + m.Unit + ")"
				return m
			}
		}
	}
	return m
}

// summaries are those of all runs.
func (x study) summaries() []*result.Summary {
	var out []*result.Summary
	for _, t := range x.Trials {
		for i := range t.Runs {
			out = append(out, &t.Runs[i].Summary)
		}
	}
	return out
}

// keepsBaseline reports whether the recommendation is the baseline itself.
func (x study) keepsBaseline() bool {
	return x.Baseline != nil && x.Recommended != nil && x.Baseline.Trial == x.Recommended.Trial
}

// has reports whether the comparison has a figure on either side.
func (x study) has(name string) bool {
	return slices.ContainsFunc(x.Cases, func(c outcome.Case) bool {
		_, before := value(c.Baseline, metric(name))
		_, after := value(c.Recommended, metric(name))
		return before || after
	})
}

// spent are the figures of energy and cost that the comparison has.
func (x study) spent() []string {
	names := []string{"energy_per_token_j", "output_tokens_per_s_per_w", "cost_per_million_tokens", "cost_per_million_output_tokens"}
	return slices.DeleteFunc(names, func(name string) bool { return !x.has(name) })
}
