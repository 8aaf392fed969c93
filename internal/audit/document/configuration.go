package document

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"perflab/internal/result"
)

// configuration is the runs of one configuration of a model under one heading, at
// several loads.
type configuration struct {
	model string
	nodes string
	runs  []*citedRun
}

// configurationsOf are the configurations that runs in the order of their
// document are of.
func configurationsOf(runs []*citedRun) []configuration {
	var out []configuration
	for _, r := range runs {
		model, nodes := r.run.Header.Model, r.run.Header.Label(result.LabelNodes)
		if n := len(out); n > 0 && out[n-1].model == model && out[n-1].nodes == nodes && slices.Equal(out[n-1].runs[0].run.Place.Section, r.run.Place.Section) {
			out[n-1].runs = append(out[n-1].runs, r)
			continue
		}
		out = append(out, configuration{model, nodes, []*citedRun{r}})
	}
	return out
}

// smallestLoad and most are the runs of a setup at its smallest and largest load.
func (g configuration) smallestLoad() *citedRun { return slices.MinFunc(g.runs, byRequests) }
func (g configuration) largestLoad() *citedRun  { return slices.MaxFunc(g.runs, byRequests) }

func byRequests(a, b *citedRun) int { return cmp.Compare(a.requests(), b.requests()) }

// growth is how many times as large a figure is at the largest load as at the
// smallest; 0 where it is not known.
func (g configuration) growth(name string) float64 {
	if x := g.largestLoad().value(name) / g.smallestLoad().value(name); x > 0 && !math.IsInf(x, 0) {
		return x
	}
	return 0
}

// loads are the different loads of a setup.
func (g configuration) loads() []float64 {
	var out []float64
	for _, r := range g.runs {
		if n := r.requests(); n > 0 && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// spokenOf reports whether a line speaks of a configuration: it names its model, or no
// other run of the document has the figure.
func (g configuration) spokenOf(l statement, t citation) bool {
	if slices.ContainsFunc(modelNames(l.text), g.runs[0].named) {
		return true
	}
	return !slices.ContainsFunc(t.runs, func(r *citedRun) bool { return !slices.Contains(g.runs, r) })
}

// modelNames are the words of a text that may name a model: they have a hyphen and
// a digit.
func modelNames(text string) []string {
	var out []string
	for w := range strings.FieldsSeq(text) {
		w = strings.Trim(w, ".,;:()*•`'\"’“”")
		if strings.Contains(w, "-") && strings.ContainsAny(w, "0123456789") && isWord(w[0]) {
			out = append(out, w)
		}
	}
	return out
}
