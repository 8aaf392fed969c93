package result

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"perflab/internal/stat"
)

// Precision returns the lines that stand between a block and its verdict: for
// each latency that the block shows, its 95 % interval, the samples behind it,
// and a mark where these are fewer than the percentile needs. It is empty for
// a summary without samples. The block's own lines, which tools parse, are not
// repeated: no line here has their colon.
func Precision(s Summary, st Style) string {
	st = st.WithDefaults()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, name := range st.Sections {
		f, ok := familyOf(name)
		if n := s.Samples[name]; ok && n > 0 {
			for _, stat := range st.shown() {
				writePrecision(w, s, f.metric(stat), n)
			}
		}
	}
	w.Flush() // into a strings.Builder, which never fails
	if b.Len() == 0 {
		return ""
	}
	return "Precision (95 % intervals, from the calls of this run alone)\n" + b.String()
}

// shown returns the statistics that a section shows.
func (st Style) shown() []string {
	names := []string{"mean", "median"}
	for _, p := range st.Percentiles {
		names = append(names, PercentileName(p))
	}
	return names
}

func writePrecision(w *tabwriter.Writer, s Summary, m Metric, n int) {
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
	if p, ok := percentile(m.Stat); ok && p > 0 && p < 100 {
		if need := stat.MinSamples(p / 100); n < need {
			few = fmt.Sprintf(", few for %s, which needs %d", strings.ToUpper(m.Stat), need)
		}
	}
	fmt.Fprintf(w, "  %s\t%s %s\t%s\tn=%d%s\n", strings.TrimSuffix(m.Label, " (ms)"), number(v), m.Unit, interval, n, few)
}
