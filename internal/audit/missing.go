package audit

import (
	"fmt"
	"strings"

	"perflab/internal/interop"
	"perflab/internal/result"
)

// latencyFamilies are the families of times that a block prints, in its order.
var latencyFamilies = []string{"e2el", "ttft", "tpot", "itl"}

// unmeasured finds families of times that are zero throughout, although the
// requests of the run had such times: the client measured none.
func unmeasured(g figures) []Finding {
	var out []Finding
	for _, family := range latencyFamilies {
		zeros := familyOf(g.run.Unmeasured, family)
		if len(zeros) == 0 || !g.run.Measurable(family) {
			continue
		}
		text := fmt.Sprintf("%s: the client measured nothing and prints zeros", allAre(zeros, "0"))
		if n, ok := g.outputPerRequest(); ok && (family == "itl" || family == "tpot") {
			text = fmt.Sprintf("%s, of answers of %s tokens: the client measured no time between tokens and prints zeros", allAre(zeros, "0"), num(n.mid()))
		}
		f := g.finding("unmeasured-zeros", Warning, "", text)
		out = append(out, citing(f, zeros))
	}
	return out
}

// absentFigures finds statistics that a block says it has not, of times of
// which it has others.
func absentFigures(g figures) []Finding {
	var out []Finding
	for _, family := range latencyFamilies {
		var missing []interop.Figure
		percentiles := true
		for _, f := range familyOf(g.run.Absent, family) {
			if _, there := g.by[f.Name]; there {
				continue
			}
			_, ok := result.Percentile(f.Name)
			percentiles = percentiles && (ok || strings.HasPrefix(f.Name, "median_"))
			missing = append(missing, f)
		}
		mean, ok := g.by["mean_"+family+"_ms"]
		if len(missing) == 0 || !hasFamily(g.run, family) {
			continue
		}
		why := "the figure was left out"
		if percentiles {
			why = "how the slow requests fared is not known"
		}
		beside := ""
		if ok {
			beside = fmt.Sprintf(" beside %s %s", mean.Label, mean.Text)
		}
		out = append(out, citing(g.finding("figure-not-given", Warning, "", allAre(missing, missing[0].Text)+beside+": "+why), missing))
	}
	return out
}

// familyOf are the figures of a family.
func familyOf(all []interop.Figure, family string) []interop.Figure {
	var out []interop.Figure
	for _, f := range all {
		if strings.HasSuffix(f.Name, "_"+family+"_ms") {
			out = append(out, f)
		}
	}
	return out
}

// allAre says that all of some figures have one text.
func allAre(of []interop.Figure, text string) string {
	var labels []string
	for _, f := range of {
		labels = append(labels, f.Label)
	}
	if len(of) == 1 {
		return labels[0] + " is " + text
	}
	return strings.Join(labels[:len(of)-1], ", ") + " and " + labels[len(of)-1] + " are " + text
}

// citing gives a finding figures that are none of the run, and their place.
func citing(f Finding, all []interop.Figure) Finding {
	if all[0].Line > 0 {
		f.Place.Line, f.Place.End = all[0].Line, 0
	}
	for _, x := range all {
		f.Figures = append(f.Figures, Cite(x))
	}
	return f
}
