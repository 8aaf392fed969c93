package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// mergedShare is the share of chunks without an arrival of their own that is worth a
// remark: a client that is on time reads hardly any two together unless the server
// packs them.
const mergedShare = 0.01

// doubt is a figure and how far late reads leave it open.
type doubt struct {
	metric           result.Metric
	value, low, high float64
	share            float64 // of the figure
	few              bool    // samples for this percentile, which is said elsewhere
}

func (d doubt) String() string {
	return fmt.Sprintf("%s %.2f ms may be anything from %.2f to %.2f ms", strings.TrimSuffix(d.metric.Label, " (ms)"), d.value, d.low, d.high)
}

// judgedFamilies are the latencies that doubts are looked for in.
var judgedFamilies = []string{"ttft", "tpot", "itl", "e2el"}

// doubts are the figures that late reads leave open, the worst first.
func doubts(a *result.Analysis) []doubt {
	stats := []string{"mean", "median"} // which need no number of samples
	for _, p := range a.Options.AskedPercentiles() {
		if p != 50 {
			stats = append(stats, result.PercentileName(p))
		}
	}
	var out []doubt
	for _, family := range judgedFamilies {
		for _, s := range stats {
			name := s + "_" + family + "_ms"
			if low, high, share, ok := a.Doubt(name); ok {
				m, _ := result.Lookup(name) // every family has every statistic
				p, percentile := result.Percentile(name)
				few := percentile && a.Samples[family] < stat.MinSamples(p/100)
				out = append(out, doubt{m, a.Figures[name], low, high, share, few})
			}
		}
	}
	slices.SortStableFunc(out, func(x, y doubt) int { return cmp.Compare(y.share, x.share) })
	return out
}

// judgeMerged judges what chunks that were read together can have done to the
// figures. A client that is on time reads them so only if the server packed them;
// of one that was late, the stamps of all but the last say no more than that
// they came before it.
func judgeMerged(a *result.Analysis) (result.Status, string) {
	if a.Chunks == 0 {
		return notJudged("no call has a chunk")
	}
	text := fmt.Sprintf("%d of %d chunks (%.1f %%) came in one read or packet with the chunk before them", a.Merged, a.Chunks, 100*float64(a.Merged)/float64(a.Chunks))
	many := float64(a.Merged) > mergedShare*float64(a.Chunks)
	if !a.Header.LateReads && many && !a.Header.Predicted {
		text += "; the run does not say which of them the client read late"
	}
	all := doubts(a)
	if a.Late > 0 {
		text += fmt.Sprintf("; %d of the reads up to %s late", a.Late, result.SpanText(a.LateBy)) + lateReaders(a)
	}
	if len(all) > 0 && all[0].share > result.Doubtful {
		return judgeDoubts(all, text)
	}
	if len(all) > 0 {
		text += fmt.Sprintf(", which moved no figure by more than %.1f %%", 100*all[0].share)
	}
	if many {
		return result.Remark, text + ": they are in no ITL, which is of reads; ITL per token spreads a read's gap over its tokens"
	}
	return result.Sound, text
}

// judgeDoubts says which figures late reads spoiled. A percentile of few samples, which one
// read can move anywhere, makes no run void.
func judgeDoubts(all []doubt, text string) (result.Status, string) {
	const most = 3 // that a sentence names
	var parts []string
	for _, d := range all {
		if d.share > result.Doubtful {
			parts = append(parts, d.String())
		}
	}
	if n := len(parts); n > most {
		parts = append(parts[:most], fmt.Sprintf("and %d figures more", n-most))
	}
	text += ": " + strings.Join(parts, ", ") + "; keep other programs off the processors of the load generator, or send less"
	spoiled := func(d doubt) bool { return d.share > result.Hopeless && !d.few }
	if slices.ContainsFunc(all, spoiled) {
		return result.Voided, "client-bound, " + text
	}
	return result.Noted, text
}
