package audit

import (
	"fmt"

	"perflab/internal/result"
)

// fewestBeyond is how many samples must lie beyond a percentile for it to tell
// them from the largest: where N (1 - q) is less than one, the percentile q of N
// samples is the largest of them or nearly so, and no mean lies above it.
const fewestBeyond = 1.0

// meanAboveTail finds a mean that lies above a high percentile of its own: a
// share 1 - q of the samples then takes more than all others together would
// suggest. How long they are at least follows, for the mean m and the q-th
// percentile v:
//
//	m <= (1 - p) v + p x, so x >= v + (m - v) / p for their mean x and their share p,
//
// which is 1 - q, and by interpolation up to one sample more.
func meanAboveTail(g figures) []Finding {
	var out []Finding
	for _, s := range g.families {
		m, ok := g.get(s.mean)
		i := len(s.quantiles) - 1
		for i >= 0 && s.quantiles[i].at >= 1 {
			i--
		}
		if !ok || i < 0 || s.quantiles[i].at < highPercentile || !m.above(s.quantiles[i].v) || len(order(g, s)) > 0 || s.family == "dispatch_lag" {
			continue
		}
		if f, ok := g.aboveTail(s, m, s.quantiles[i]); ok {
			out = append(out, f)
		}
	}
	return out
}

// highPercentile is from which percentile on a mean above it needs a reason: a
// twentieth of the gaps may wait for prompts, so that a mean ITL lies above P95.
const highPercentile = 0.99

// tailShare is by how much a mean must lie above its percentile, as a share:
// where all gaps are alike, a handful of longer ones lifts it above by less.
const tailShare = 0.05

// aboveTail is the finding on a mean above a percentile.
func (g figures) aboveTail(s *spread, m Interval, q quantile) (Finding, bool) {
	share := 1 - q.at
	done, counted := g.get("completed")
	alone := g.oneEach(s.family)
	few := counted && alone && done.Hi*share < fewestBeyond
	if counted && alone && done.Lo > 0 {
		share += 1 / done.Lo
	}
	tail := q.v.Hi + (m.Lo-q.v.Hi)/share
	label, at := g.by[s.mean].Label, g.by[q.name].Label
	said := fmt.Sprintf("%s %s is above %s %s", label, g.text(s.mean), at, g.text(q.name))
	cite := []string{s.mean, q.name}
	least := "at least " + num(tail) + " ms each on average"
	if few {
		return g.finding("mean-impossible", Error, "at most "+g.text(q.name),
			fmt.Sprintf("%s: of %s, that percentile is the largest", said, Counted(int(done.mid()), "request")), append(cite, "completed")...), true
	}
	if most, name, ok := g.longest(s); ok && tail > most {
		return g.finding("mean-impossible", Error, "at most "+num(share*most+(1-share)*q.v.Hi)+" ms",
			fmt.Sprintf("%s: the %s of the samples beyond it would take %s, longer than %s", said, percent(share), least, name), cite...), true
	}
	if m.Lo < (1+tailShare)*q.v.Hi || s.family == "ttft" && len(stall(g)) > 0 { // which first-token-stall says
		return Finding{}, false
	}
	return g.finding("mean-above-percentile", Warning, least,
		fmt.Sprintf("%s: the %s of the samples beyond it take %s, so the mean tells of a few stalls and not of the usual time", said, percent(share), least), cite...), true
}

// oneEach reports whether a family has one sample a request, all of one weight.
func (g figures) oneEach(family string) bool {
	switch g.definition("mean_" + family + "_ms") {
	case result.DecodePerTokenWeighted, result.E2EPerTokenWeighted:
		return false
	}
	return family == "ttft" || family == "tpot" || family == "e2el"
}

// longest is the longest that a sample of a family can be, in ms, and what
// bounds it: the largest that is printed, or the run.
func (g figures) longest(s *spread) (most float64, name string, ok bool) {
	for _, of := range []string{"max_" + s.family + "_ms", "max_e2el_ms"} {
		if v, there := g.get(of); there {
			return v.Hi, g.by[of].Label + " " + g.text(of), true
		}
	}
	if v, there := g.get("duration"); there && !g.trimmed() {
		return 1000 * v.Hi, "the " + g.text("duration") + " s of the whole run", true
	}
	return 0, "", false
}
