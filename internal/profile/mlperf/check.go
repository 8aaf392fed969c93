package mlperf

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/profile"
)

// Curve is what was measured under the profile.
type Curve struct {
	Profile string  `json:"profile"`
	CMax    int     `json:"max_supported_concurrency"`
	Points  []Point `json:"points"`
}

// CMin is the lowest concurrency of the curve, at most 32.
func (c Curve) CMin() int { return LowestOf(c.concurrencies()) }

func (c Curve) concurrencies() []int {
	out := make([]int, len(c.Points))
	for i, p := range c.Points {
		out[i] = p.Concurrency
	}
	return out
}

// Regions are those of the curve.
func (c Curve) Regions() (Regions, error) { return RegionsOf(c.CMax, c.CMin()) }

// AccuracyAt are the concurrencies of a curve at which accuracy is wanted: one in each region. The highest
// is the Offline result as well. Nil where a region has no point.
func (c Curve) AccuracyAt() []int {
	r, err := c.Regions()
	if err != nil {
		return nil
	}
	out := []int{c.CMin()}
	for _, s := range []Span{r.Low, r.Medium, r.High} {
		highest := 0
		for _, k := range c.concurrencies() {
			if s.has(k) {
				highest = max(highest, k)
			}
		}
		if highest == 0 {
			return nil
		}
		out = append(out, highest)
	}
	return out
}

// findings are the rules that a curve breaks.
type findings struct{ profile.Findings }

// Check holds a curve against the rules.
func Check(c Curve) *profile.Outcome {
	var f findings
	rules := RulesOf(c.Profile)
	f.Add(rules.Short, RuleShort, "the short form measures each point for seconds: it shows what a curve would look like, and is no submission")
	f.Add(slices.ContainsFunc(c.Points, func(p Point) bool { return p.Simulated }), RuleSimulated, "SIMULATED: a simulator answered, no hardware was measured")
	f.coverage(c)
	for _, p := range c.Points {
		f.point(p, rules)
	}
	f.consistent(c.Points)
	return profile.Of(c.Profile, f.Findings, open(c))
}

// coverage looks at which concurrencies the curve has.
func (f *findings) coverage(c Curve) {
	n, all := len(c.Points), c.concurrencies()
	f.Add(n < LeastPoints, RulePointCount, "the curve has %d points: it needs %d at least", n, LeastPoints)
	f.Add(n > MostPoints, RulePointCap, "the curve has %d points: it may have %d at most", n, MostPoints)
	f.Add(c.CMax <= UltraLow, RuleCMax, "the highest supported concurrency (C_max) is %d: it must be above %d", c.CMax, UltraLow)
	f.Add(n == 0 || slices.Min(all) > UltraLow, RuleUltraLow, "no point has a concurrency of 1 to %d", UltraLow)
	f.Add(!slices.Contains(all, c.CMax), RuleOffline, "no point has the highest supported concurrency, %d, whose point is the Offline result too", c.CMax)
	r, err := c.Regions()
	if err != nil {
		f.Add(c.CMax > UltraLow, RuleRegions, "%v", err)
		return
	}
	for _, s := range []struct {
		rule, name string
		span       Span
	}{{RuleLow, "low", r.Low}, {RuleMedium, "medium", r.Medium}, {RuleHigh, "high", r.High}} {
		f.Add(!slices.ContainsFunc(all, s.span.has), s.rule, "no point is in the region of %s concurrency, %s", s.name, s.span.Text())
	}
	for _, k := range all {
		f.Add(r.Of(k) == "", RuleInRange, "the concurrency %d lies beyond %d, a tenth above the highest supported one", k, r.Above.To)
	}
}

// point looks at one run.
func (f *findings) point(p Point, rules Rules) {
	at := fmt.Sprintf("at concurrency %d", p.Concurrency)
	f.Add(!p.Closed, RuleLoad, "%s requests were sent at a rate: a point has a fixed concurrency", at)
	f.Add(p.Partial, RuleSound, "%s the run was stopped before its end", at)
	f.Add(p.Void != "", RuleSound, "%s the run is void: its verdict says why", at)
	least := rules.Least(p.Concurrency).Seconds()
	f.Add(p.BasisS() < least, RuleDuration, "%s %.0f s of the %s were measured: %.0f s are wanted", at, p.BasisS(), p.Basis, least)
	f.Add(p.Completed < p.Pass || p.Pass == 0, RuleQueries, "%s %d queries were completed: a pass over the data set has %d", at, p.Completed, p.Pass)
	f.Add(p.Pass > 0 && p.Issued%p.Pass != 0, RulePasses, "%s %d queries were sent: that is no whole number of passes of %d", at, p.Issued, p.Pass)
	f.Add(!(p.TPOTP90 > 0), RuleTPOT, "%s no P90 of TPOT is known: no answer had tokens that came one after the other", at)
	f.Add(p.Warmups > 0, RuleWarmup, "%s %d requests warmed the server up, of which no log is kept", at, p.Warmups)
	f.Add(p.Cache != "unique", RuleCache, "%s prompts were not new to the server's prefix cache (--cache %s)", at, p.Cache)
}

// consistent looks at what all points must have in common.
func (f *findings) consistent(points []Point) {
	if len(points) == 0 {
		return
	}
	first := points[0]
	for _, p := range points[1:] {
		if p.Pass != first.Pass || p.Workload != first.Workload {
			f.Add(true, RuleDataset, "the points at %d and %d did not send the same data set", first.Concurrency, p.Concurrency)
			break
		}
	}
	var unbound []string
	for _, p := range points {
		if _, ok := SeedSetOf(p.Seed); !ok && !slices.Contains(unbound, fmt.Sprint(p.Seed)) {
			unbound = append(unbound, fmt.Sprint(p.Seed))
		}
	}
	f.Add(len(unbound) > 0, RuleSeed, "samples were ordered by the seed %s, which is of no published set", strings.Join(unbound, ", "))
}

// SeedSetOf is the published set whose seed orders samples so.
func SeedSetOf(seed uint64) (SeedSet, bool) {
	for _, s := range SeedSets() {
		if s.Sample == seed {
			return s, true
		}
	}
	return SeedSet{}, false
}

// open is what perflab cannot show of a curve.
func open(c Curve) []profile.Finding {
	where := "one point in each region"
	if at := c.AccuracyAt(); at != nil {
		where = strings.Trim(fmt.Sprint(at), "[]") // "16 19 24 40"
		where = "concurrency " + strings.ReplaceAll(where, " ", ", ")
	}
	return []profile.Finding{
		{Rule: RuleAccuracy, Text: "accuracy on the benchmark's own questions is wanted once at " + where + ": measure it with the benchmark's scorer, and give its results to perflab export"},
		{Rule: RuleSystem, Text: "the system, its power, division and organisation are described by the submitter, and given to perflab export"},
		{Rule: RuleClient, Text: "a submission has to be measured by MLCommons' own client: a curve of perflab's shows what that would find, and practises the files"},
	}
}
