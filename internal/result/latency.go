package result

import "perflab/internal/stat"

// addLatencies sets the statistics of every family.
func (a *Analysis) addLatencies() {
	if a.Completed > 0 && !a.Pooling() {
		a.Figures["merged_chunks"] = float64(a.Merged)
	}
	if a.Chunks > 0 {
		a.Figures["tokens_per_chunk"] = float64(a.OutputTokens) / float64(a.Chunks)
		a.Figures["tokens_per_read"] = float64(a.OutputTokens) / float64(a.Chunks-a.Merged)
	}
	for _, f := range families() {
		switch {
		case f.value == nil:
		case a.binned():
			a.addSingle(f.name, a.large.Families[f.name])
		default:
			a.addDistribution(f.name, a.samples(f), nil)
		}
	}
	gaps := a.pooledSamples((*Call).appendGaps)
	if a.large != nil {
		a.addPooled(familyITL, a.large.Gaps, gaps)
	} else {
		a.addDistribution(familyITL, gaps.Samples, gaps.Ends)
	}
	if a.oneTokenPerRead() {
		a.copyFamily(familyITL, familyITLToken)
		return
	}
	perToken := a.pooledSamples((*Call).appendPerToken)
	if a.large != nil {
		a.addPooled(familyITLToken, a.large.PerToken, perToken)
		return
	}
	a.addDistribution(familyITLToken, perToken.Samples, perToken.Ends)
}

// samples are those of a family of one sample a call.
func (a *Analysis) samples(f family) []float64 {
	x := make([]float64, 0, a.Completed)
	for c := range a.each() {
		x = f.collect(x, c, a.Header.Limit, a.Steady)
	}
	return x
}

// pooledSamples gathers samples that calls have many of.
func (a *Analysis) pooledSamples(appendTo func(*Call, []float64) []float64) stat.Clusters {
	p := stat.Clusters{Ends: make([]int, len(a.Succeeded))}
	for i, c := range a.Succeeded {
		p.Samples = appendTo(c, p.Samples)
		p.Ends[i] = len(p.Samples)
	}
	return p
}

// oneTokenPerRead reports whether every read brought one token: then the gaps by read
// and by token are the same.
func (a *Analysis) oneTokenPerRead() bool { return a.Uneven == 0 }
