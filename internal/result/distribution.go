package result

import (
	"slices"

	"perflab/internal/stat"
)

// confidence of the intervals.
const confidence = 0.95

// statistics are figures by metric name, with the samples behind those of a
// family and their 95 % intervals.
type statistics struct {
	Figures   map[string]float64
	Samples   map[string]int
	Intervals map[string][2]float64

	percentiles []float64 // of each family
}

// newStatistics makes an empty set, with the percentiles every summary has and
// those asked for.
func newStatistics(asked []float64) statistics {
	p := slices.Concat(percentiles, asked)
	slices.Sort(p)
	return statistics{
		Figures: map[string]float64{}, Samples: map[string]int{}, Intervals: map[string][2]float64{},
		percentiles: slices.Compact(p),
	}
}

// latencies sets the statistics of every family.
func (a *Analysis) latencies() {
	for _, c := range a.Succeeded {
		a.Chunks += len(c.Chunks)
		for i := 1; i < len(c.Chunks); i++ {
			if c.joined(i) {
				a.Merged++
			}
		}
	}
	if len(a.Succeeded) > 0 && !a.Pooling() {
		a.Figures["merged_chunks"] = float64(a.Merged)
	}
	if a.Chunks > 0 {
		a.Figures["tokens_per_chunk"] = float64(a.OutputTokens) / float64(a.Chunks)
		a.Figures["tokens_per_read"] = float64(a.OutputTokens) / float64(a.Chunks-a.Merged)
	}
	for _, f := range families() {
		if f.value != nil {
			x := make([]float64, 0, len(a.Succeeded))
			a.distribution(f.name, f.collect(x, a.Succeeded, a.Header.Limit, a.Steady), nil)
		}
	}
	gaps := a.pool((*Call).appendGaps)
	a.distribution(familyITL, gaps.Samples, gaps.Ends)
	if a.plain() {
		a.copyFamily(familyITL, familyITLToken)
		return
	}
	perToken := a.pool((*Call).appendPerToken)
	a.distribution(familyITLToken, perToken.Samples, perToken.Ends)
}

// pool gathers samples that calls have many of.
func (a *Analysis) pool(appendTo func(*Call, []float64) []float64) stat.Clusters {
	p := stat.Clusters{Samples: make([]float64, 0, max(0, a.Chunks-len(a.Succeeded))), Ends: make([]int, len(a.Succeeded))}
	for i, c := range a.Succeeded {
		p.Samples = appendTo(c, p.Samples)
		p.Ends[i] = len(p.Samples)
	}
	return p
}

// plain reports whether every read brought one token: then the gaps by read
// and by token are the same.
func (a *Analysis) plain() bool {
	return a.Merged == 0 && !slices.ContainsFunc(a.Succeeded, func(c *Call) bool {
		return c.weight() != 1 || slices.ContainsFunc(c.Chunks, func(k Chunk) bool { return k.Tokens != 1 })
	})
}

// distribution sets the statistics of one family from its samples, and their
// intervals: of order statistics and Student's for one sample a call, by the
// variance between calls for pooled ones, which ends divide. Sums over sorted
// values do not depend on the order of the calls.
func (t *statistics) distribution(name string, x []float64, ends []int) {
	if len(x) == 0 {
		return
	}
	sorted := x
	if ends != nil {
		sorted = slices.Clone(x)
	}
	if !slices.IsSorted(sorted) {
		stat.Sort(sorted)
	}
	pooled := stat.Clusters{Samples: x, Ends: ends}
	figure := func(stat string) string { return stat + "_" + name + "_ms" }
	interval := func(stat string, lo, hi float64, ok bool) {
		if ok {
			t.Intervals[figure(stat)] = [2]float64{lo, hi}
		}
	}
	quantile := func(name string, p float64) {
		t.Figures[figure(name)] = stat.Quantile(sorted, p/100)
		if ends != nil {
			lo, hi, ok := pooled.QuantileCI(sorted, p/100, confidence)
			interval(name, lo, hi, ok)
			return
		}
		lo, hi, ok := stat.QuantileCI(sorted, p/100, confidence)
		interval(name, lo, hi, ok)
	}
	t.Samples[name] = len(x)
	mean, std := stat.Mean(sorted), stat.StdDev(sorted)
	t.Figures[figure("mean")], t.Figures[figure("std")] = mean, std
	lo, hi, ok := stat.MeanCI(mean, std, len(x), confidence)
	if ends != nil {
		lo, hi, ok = pooled.MeanCI(mean, confidence)
	}
	interval("mean", lo, hi, ok)
	t.Figures[figure("min")] = sorted[0]
	t.Figures[figure("max")] = sorted[len(sorted)-1]
	for _, p := range t.percentiles {
		quantile(PercentileName(p), p)
	}
	t.copyFigure(figure("p50"), figure("median"))
}

// copyFigure gives a figure, with its interval, a second name.
func (t *statistics) copyFigure(from, to string) {
	if v, ok := t.Figures[from]; ok {
		t.Figures[to] = v
	}
	if v, ok := t.Intervals[from]; ok {
		t.Intervals[to] = v
	}
}

// copyFamily gives one family the figures of another.
func (t *statistics) copyFamily(from, to string) {
	if _, ok := t.Samples[from]; !ok {
		return
	}
	t.Samples[to] = t.Samples[from]
	for _, s := range stats {
		t.copyFigure(s.name+"_"+from+"_ms", s.name+"_"+to+"_ms")
	}
	for _, p := range t.percentiles {
		t.copyFigure(PercentileName(p)+"_"+from+"_ms", PercentileName(p)+"_"+to+"_ms")
	}
}

// appendGaps appends the gaps between reads that carried tokens. A chunk that
// came with the one before it has no gap.
func (c *Call) appendGaps(x []float64) []float64 {
	for i := 1; i < len(c.Chunks); i++ {
		if !c.joined(i) {
			x = append(x, ms(c.Chunks[i].At-c.Chunks[i-1].At))
		}
	}
	return x
}

// appendPerToken appends, for every read after the first, its gap divided by
// its tokens, once a counted token.
func (c *Call) appendPerToken(x []float64) []float64 {
	w := c.weight()
	if w == 0 {
		return x // nothing counted
	}
	for i := 1; i < len(c.Chunks); i++ {
		if c.joined(i) {
			continue // of the read before, which has taken it in
		}
		tokens := int(c.Chunks[i].Tokens)
		for j := i + 1; j < len(c.Chunks) && c.joined(j); j++ {
			tokens += int(c.Chunks[j].Tokens)
		}
		v := ms(c.Chunks[i].At-c.Chunks[i-1].At) / (float64(tokens) * w)
		for range tokens {
			x = append(x, v)
		}
	}
	return x
}

// weight is how many output tokens one counted token of the call stands for,
// so that a call's chunks sum to n. Without a counted token it is 0.
func (c *Call) weight() float64 {
	n, from := c.Output()
	if from == FromChunks {
		return 1
	}
	counted := c.Counted()
	if counted == 0 {
		return 0
	}
	return float64(n) / float64(counted)
}
