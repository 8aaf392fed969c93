package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"perflab/internal/report/plot"
	"perflab/internal/tune"
)

// raceText is the summary of a race for a terminal.
func (x study) raceText() string {
	b := &strings.Builder{}
	if x.Simulated {
		b.WriteString("SIMULATED: no GPU was measured.\n")
	}
	fmt.Fprintf(b, "%s\n%s\n\n", cmp.Or(x.Title, x.Name), x.sentence(x.Verdict))
	for _, note := range x.warnings() {
		fmt.Fprintln(b, note)
	}
	r := x.raced()
	for _, a := range r.Answers {
		fmt.Fprintf(b, "%-16s %s\n", a.Head, plot.Clip(oneLine(a.Text), 300))
	}
	x.textComparisons(b)
	b.WriteString(x.textFailed())
	if p := x.Recommended; p != nil {
		fmt.Fprintf(b, "\nRecommended (%s, %s):\n%s\n", x.name(p.Trial), count(max(p.Replicas, 1), "replica"), cmp.Or(x.textScript(p), p.Command))
	} else {
		b.WriteString("\nNo configuration is recommended.\n")
	}
	return b.String()
}

// textComparisons lists the comparisons by repeated launches, the first few.
func (x study) textComparisons(b *strings.Builder) {
	const most = 4
	all := x.Race.Comparisons
	if len(all) == 0 {
		return
	}
	b.WriteString("\n")
	tw := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprint(tw, "compared\tratio\t95 % interval\tlaunches\tverdict\n")
	for _, k := range all[:min(most, len(all))] {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%d / %d\t%s\n", plot.Clip(oneLine(k.Label), 36)+" against "+plot.Clip(oneLine(k.Against), 36), plot.Times(k.Ratio.Value), interval(k.Ratio), len(k.Trials), len(k.Others), k.Verdict)
	}
	tw.Flush() // into a Builder, which never fails
	if n := len(all) - most; n > 0 {
		fmt.Fprintf(b, "and %d more in the report\n", n)
	}
}

// textFailed counts launches without figures by their class, with the advice
// for the first of each.
func (x study) textFailed() string {
	type kind struct {
		name, advice string
		ids          []int
	}
	var kinds []kind
	for _, t := range x.Trials {
		if t.Status == tune.Measured {
			continue
		}
		name := cmp.Or(t.Class, statusWord(t.Status))
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, kind{name: name, advice: x.sentence(oneLine(cmp.Or(t.Advice, t.Reason)))})
		}
		kinds[i].ids = append(kinds[i].ids, t.ID)
	}
	const most = 3
	b := &strings.Builder{}
	for _, k := range kinds[:min(most, len(kinds))] {
		fmt.Fprintf(b, "Without figures: %s, %s\n", trialIDs(k.ids), plot.Clip(strings.TrimSuffix(k.name+": "+k.advice, ": "), 200))
	}
	if n := len(kinds) - most; n > 0 {
		fmt.Fprintf(b, "and %d more kinds of failure in the report\n", n)
	}
	return b.String()
}
