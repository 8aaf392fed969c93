package study

import (
	"cmp"
	"fmt"
	"maps"
	"math"

	"perflab/internal/bench"
	"perflab/internal/stat"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// WorkloadSpec is a workload of the study with the seed of one pass. All trials of
// a pass meet the same requests at the same times; another pass meets others.
func (s *Study) WorkloadSpec(name string, pass int) workload.Spec {
	for i, w := range s.Workloads {
		if w.Name == name {
			spec := w.Spec
			spec.Seed += s.Seed + uint64(1000*pass+i)
			spec.Tokenizer = cmp.Or(spec.Tokenizer, s.Tokenizers[name].Path)
			spec.Nonce = bench.FixedNonce(name, spec)
			return spec
		}
	}
	panic("study: the strategy proposed a workload that the study does not have: " + name)
}

// Tokenizer is one that was found for a workload.
type Tokenizer struct {
	Path string `json:"path"`
	Name string `json:"name"` // with the start of its SHA-256
	From string `json:"from"` // see result.Header.TokenizerFrom
}

// MeasureBy gives the study tokenizers for workloads that name none, by their names: what
// sends loads finds them before the first.
func (s *Study) MeasureBy(found map[string]Tokenizer) {
	maps.Copy(s.Tokenizers, found) // which the study as each of its machines runs it shares
	clear(s.lengths)
	clear(s.counts)
}

// What a load that is shortened keeps at least. Fewer calls say
// little, fewer than fill the limit on concurrency twice over are of a server
// that fills and drains, and a shorter time is mostly both.
const (
	leastCalls   = 100
	leastFill    = 2
	leastSeconds = 10
)

// ShortenedSpec is a workload of which a share is sent: its first requests, at their
// times, and the same ones to each configuration. What cannot be shortened is
// the whole.
func (s *Study) ShortenedSpec(name string, pass int, share float64) workload.Spec {
	whole := s.WorkloadSpec(name, pass)
	if !(share > 0 && share < 1) || whole.Steps != "" {
		return whole
	}
	spec := whole
	if v, err := spec.UntilPrecision.Value(); err == nil && v > 0 { // with so many fewer requests so much less is known
		spec.UntilPrecision = workload.Share(fmt.Sprintf("%.3g%%", 100*v/math.Sqrt(share)))
	}
	if d, err := spec.Duration.Duration(); err == nil && d > 0 {
		if least := math.Max(math.Ceil(d.Seconds()*share), leastSeconds); least < d.Seconds() {
			spec.Duration = workload.Span(fmt.Sprintf("%gs", least))
		}
	}
	n := spec.NumPrompts
	if n == 0 && spec.Duration == "" {
		n = s.requests(name)
	}
	least := max(leastCalls, leastFill*spec.MaxConcurrency)
	if spec.UntilPrecision != "" {
		least = max(least, stat.WatchEnds(spec.MaxConcurrency))
	}
	if k := max(int(math.Ceil(float64(n)*share)), least); k < n {
		if sized := spec.Sized(k); sized.NumPrompts < n {
			spec = sized
		}
	}
	if spec.Validate() != nil {
		return whole
	}
	return spec
}

// requests is how many a workload has whose spec leaves it to its dataset; 0
// where that cannot be known.
func (s *Study) requests(name string) int {
	n, ok := s.counts[name]
	if !ok {
		if w, _, err := bench.OpenWorkload(s.WorkloadSpec(name, 0)); err == nil {
			n = w.Len()
		}
		s.counts[name] = n
	}
	return n
}

// LoadShare is the share of the load that a proposal's trial is under; 0 where that
// is all of it, also because it could not be shortened.
func (s *Study) LoadShare(p tune.Proposal) float64 {
	for _, name := range p.Workloads {
		if s.LoadSearch(name) != nil && p.Share < 1 {
			return p.Share
		}
		whole, part := s.WorkloadSpec(name, p.Pass), s.ShortenedSpec(name, p.Pass, p.Share)
		if part.NumPrompts != whole.NumPrompts || part.Duration != whole.Duration || part.UntilPrecision != whole.UntilPrecision {
			return p.Share
		}
	}
	return 0
}

// Lengths are the longest requests of a workload.
type Lengths struct {
	Whole, Prompt workload.Extent
	Exact         bool // else they are estimates
}

// Lengths are the longest requests of a workload in one pass; nil where they cannot be
// known beforehand: its run says what is wrong with it, and only a server that runs can be
// the tokenizer.
func (s *Study) Lengths(name string, pass int) *Lengths {
	key := fmt.Sprintf("%s %d", name, pass)
	e, ok := s.lengths[key]
	if !ok {
		if w, _, err := bench.OpenWorkload(s.WorkloadSpec(name, pass)); err == nil {
			e = &Lengths{}
			e.Whole, e.Prompt, e.Exact = w.Longest()
		}
		s.lengths[key] = e
	}
	return e
}
