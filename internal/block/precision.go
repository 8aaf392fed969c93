package block

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// Precision returns the lines that stand between a block and its verdict: for
// each latency that the block shows, its 95 % interval, the samples behind it,
// a mark where these are fewer than the percentile needs, and how far a figure may be
// off of a run so long that not every call was kept. It is empty for
// a summary without samples. The block's own lines, which tools parse, are not
// repeated: no line here has their colon.
func Precision(s result.Summary, st Style) string {
	st = st.WithDefaults()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, family := range st.sections(&s) {
		if n := s.Samples[family]; n > 0 {
			for _, m := range st.shown(family) {
				writePrecision(w, s, m, n)
			}
		}
	}
	for _, m := range firstPart() {
		if bound := s.Within(m.Name); bound != "" {
			label, _, _ := strings.Cut(m.Label, " (")
			fmt.Fprintf(w, "  %s\t%s %s\t%s, counted in bins of time\n", label, strconv.FormatFloat(s.Figures[m.Name], 'f', m.Decimals, 64), m.Unit, bound)
		}
	}
	w.Flush() // into a strings.Builder, which never fails
	if b.Len() == 0 {
		return ""
	}
	return "Precision (95 % intervals, from the calls of this run alone)\n" + b.String()
}

func writePrecision(w *tabwriter.Writer, s result.Summary, m result.Metric, n int) {
	v, ok := s.Figures[m.Name]
	if !ok {
		return
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'f', m.Decimals, 64) }
	interval := "[no interval]"
	if i, ok := s.Intervals[m.Name]; ok {
		interval = "[" + number(i[0]) + ", " + number(i[1]) + "]"
	}
	few := ""
	if p, ok := result.Percentile(m.Name); ok && p > 0 && p < 100 {
		if need := stat.MinSamples(p / 100); n < need {
			few = fmt.Sprintf(", few for %s, which needs %d", strings.ToUpper(m.Stat), need)
		}
	}
	late := ""
	if low, high, share, ok := s.Doubt(m.Name); ok && share > result.Doubtful {
		late = fmt.Sprintf(", late reads leave it open from %s to %s", number(low), number(high))
	}
	within := ""
	if text := s.Within(m.Name); text != "" {
		within = ", " + text
	}
	label := strings.Replace(result.Label(m, &s), " (ms)", "", 1)
	fmt.Fprintf(w, "  %s\t%s %s\t%s\tn=%d%s%s%s\n", label, number(v), m.Unit, interval, n, few, late, within)
}
