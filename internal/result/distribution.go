package result

import (
	"slices"

	"perflab/internal/stat"
)

// confidence of the intervals.
const confidence = 0.95

// latencies sets the statistics of every family.
func (r *run) latencies() {
	for _, c := range r.ok {
		r.chunks += len(c.Chunks)
		for i := 1; i < len(c.Chunks); i++ {
			if c.joined(i) {
				r.merged++
			}
		}
	}
	if len(r.ok) > 0 && !r.pooled() {
		r.figures["merged_chunks"] = float64(r.merged)
	}
	if r.chunks > 0 {
		r.figures["tokens_per_chunk"] = float64(r.tokens) / float64(r.chunks)
		r.figures["tokens_per_read"] = float64(r.tokens) / float64(r.chunks-r.merged)
	}
	for _, f := range families() {
		if f.value != nil {
			r.distribution(f.name, r.values(f), nil)
		}
	}
	gaps := r.pool((*Call).appendGaps)
	r.distribution(familyITL, gaps.Samples, gaps.Ends)
	if r.plain() {
		r.copyFigures(familyITL, familyITLToken)
		return
	}
	perToken := r.pool((*Call).appendPerToken)
	r.distribution(familyITLToken, perToken.Samples, perToken.Ends)
}

// values returns the family's samples, one a call at most.
func (r *run) values(f family) []float64 {
	x := make([]float64, 0, len(r.ok))
	for _, c := range r.ok {
		if f.steady && !(r.steady.ok && r.steady.contains(c.Sent)) {
			continue
		}
		if v, ok := f.value(c, r.h.Limit); ok {
			x = append(x, v)
		}
	}
	return x
}

// pool gathers samples that calls have many of.
func (r *run) pool(appendTo func(*Call, []float64) []float64) stat.Clusters {
	p := stat.Clusters{Samples: make([]float64, 0, max(0, r.chunks-len(r.ok))), Ends: make([]int, len(r.ok))}
	for i, c := range r.ok {
		p.Samples = appendTo(c, p.Samples)
		p.Ends[i] = len(p.Samples)
	}
	return p
}

// plain reports whether every read brought one token: then the gaps by read
// and by token are the same.
func (r *run) plain() bool {
	return r.merged == 0 && !slices.ContainsFunc(r.ok, func(c *Call) bool {
		return c.weight() != 1 || slices.ContainsFunc(c.Chunks, func(k Chunk) bool { return k.Tokens != 1 })
	})
}

// distribution sets the statistics of one family from its samples, and their
// intervals: of order statistics and Student's for one sample a call, by the
// variance between calls for pooled ones, which ends divide. Sums over sorted
// values do not depend on the order of the calls.
func (r *run) distribution(name string, x []float64, ends []int) {
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
			r.intervals[figure(stat)] = [2]float64{lo, hi}
		}
	}
	quantile := func(name string, p float64) {
		r.figures[figure(name)] = stat.Quantile(sorted, p/100)
		if ends != nil {
			lo, hi, ok := pooled.QuantileCI(sorted, p/100, confidence)
			interval(name, lo, hi, ok)
			return
		}
		lo, hi, ok := stat.QuantileCI(sorted, p/100, confidence)
		interval(name, lo, hi, ok)
	}
	r.samples[name] = len(x)
	mean, std := stat.Mean(sorted), stat.StdDev(sorted)
	r.figures[figure("mean")], r.figures[figure("std")] = mean, std
	lo, hi, ok := stat.MeanCI(mean, std, len(x), confidence)
	if ends != nil {
		lo, hi, ok = pooled.MeanCI(mean, confidence)
	}
	interval("mean", lo, hi, ok)
	r.figures[figure("min")] = sorted[0]
	r.figures[figure("max")] = sorted[len(sorted)-1]
	for _, p := range r.percentiles() {
		quantile(pName(p), p)
	}
	r.same(figure("p50"), figure("median"))
}

// same gives a figure, with its interval, a second name.
func (r *run) same(from, to string) {
	if v, ok := r.figures[from]; ok {
		r.figures[to] = v
	}
	if v, ok := r.intervals[from]; ok {
		r.intervals[to] = v
	}
}

// copyFigures gives one family the figures of another.
func (r *run) copyFigures(from, to string) {
	if _, ok := r.samples[from]; !ok {
		return
	}
	r.samples[to] = r.samples[from]
	for _, s := range stats {
		r.same(s.name+"_"+from+"_ms", s.name+"_"+to+"_ms")
	}
	for _, p := range r.percentiles() {
		r.same(pName(p)+"_"+from+"_ms", pName(p)+"_"+to+"_ms")
	}
}

// percentiles returns those every summary has and those asked for.
func (r *run) percentiles() []float64 {
	p := slices.Concat(percentiles, r.o.Percentiles)
	slices.Sort(p)
	return slices.Compact(p)
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
