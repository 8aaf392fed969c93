package result

import "perflab/internal/stat"

// addLatencies sets the statistics of every family.
func (a *Analysis) addLatencies() {
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
			a.addDistribution(f.name, f.collect(x, a.Succeeded, a.Header.Limit, a.Steady), nil)
		}
	}
	gaps := a.pooledSamples((*Call).appendGaps)
	a.addDistribution(familyITL, gaps.Samples, gaps.Ends)
	if a.oneTokenPerRead() {
		a.copyFamily(familyITL, familyITLToken)
		return
	}
	perToken := a.pooledSamples((*Call).appendPerToken)
	a.addDistribution(familyITLToken, perToken.Samples, perToken.Ends)
}

// pooledSamples gathers samples that calls have many of.
func (a *Analysis) pooledSamples(appendTo func(*Call, []float64) []float64) stat.Clusters {
	p := stat.Clusters{Samples: make([]float64, 0, max(0, a.Chunks-len(a.Succeeded))), Ends: make([]int, len(a.Succeeded))}
	for i, c := range a.Succeeded {
		p.Samples = appendTo(c, p.Samples)
		p.Ends[i] = len(p.Samples)
	}
	return p
}

// oneTokenPerRead reports whether every read brought one token: then the gaps by read
// and by token are the same.
func (a *Analysis) oneTokenPerRead() bool { return a.Uneven == 0 }
