package result

import (
	"maps"
	"math"
	"slices"
)

// Definition names how a figure was made, where clients differ. The empty one is
// ours, as docs/metrics.md has it. Figures of different definitions are never
// put in one row.
type Definition string

// Definitions of other clients, by what they count.
const (
	Ours Definition = ""

	FirstMessage   Definition = "first_message"   // TTFT to the first message with choices, with or without a token: the role message counts
	FirstText      Definition = "first_text"      // TTFT to the first non-empty text, connecting included
	FirstIteration Definition = "first_iteration" // TTFT to the first message the handler counts, which may be an empty role message
	FirstChunk     Definition = "first_chunk"     // TTFT to the first chunk in which the client's tokenizer finds a token

	DecodePerToken         Definition = "decode_per_token"          // (last - first) / (n - 1), one sample a request
	DecodePerTokenWeighted Definition = "decode_per_token_weighted" // the same, each request weighted by its tokens
	E2EPerToken            Definition = "e2e_per_token"             // (last - start) / n: the TTFT is in it
	E2EPerTokenWeighted    Definition = "e2e_per_token_weighted"    // the same, each request weighted by its tokens

	MessageGap    Definition = "message_gap"     // ITL between messages with choices, pooled; the finishing message is one more
	ChunkGap      Definition = "chunk_gap"       // ITL between chunks with text, pooled
	TokenGapZeros Definition = "token_gap_zeros" // ITL between tokens as the client's tokenizer counts them: tokens of one chunk are zeros
	TokenGapMean  Definition = "token_gap_mean"  // ITL between tokens: a chunk's gap divided by its tokens, one sample a token

	LastMessage Definition = "last_message" // E2E to the last message with choices, the finishing one included
	StreamEnd   Definition = "stream_end"   // E2E to the end of the stream

	MessageBuckets Definition = "message_buckets"     // peak: messages in the fullest whole second since the start
	InverseGapPeak Definition = "inverse_gap_peak"    // peak: inverse of the shortest gap between events, no throughput of any second
	RateWeighted   Definition = "local_rate_weighted" // throughput: mean of local rates over a window of the client's, not tokens / duration

	MeasuredMaximum Definition = "measured_maximum" // maximum concurrency: what was seen, not the limit that was set
	SecondBuckets   Definition = "second_buckets"   // peak concurrency: requests that touch one second, which overcounts
	MeanInFlight    Definition = "mean_in_flight"   // sum of E2E / duration
)

// DefinitionDoc explains a definition.
type DefinitionDoc struct {
	Tag     Definition
	Of      string // the families or scalars it is of: "ttft", "tpot, itl"
	Formula string
	Clients string // who makes figures so
}

// DefinitionsOf returns the definitions that the figures of a client have, by
// family or scalar; a figure that is not named is ours. Only VLLM, whose
// figures Options.Compat computes, is known here; other clients' are interop's.
func DefinitionsOf(compat string) map[string]Definition {
	if compat != VLLM {
		return nil
	}
	return map[string]Definition{
		"ttft": FirstMessage, "tpot": DecodePerToken, familyITL: MessageGap, "e2el": LastMessage,
		"max_output_tokens_per_s": MessageBuckets,
	}
}

// Definition returns the definition of a figure.
func (s Summary) Definition(name string) Definition {
	if d, ok := s.Definitions[name]; ok {
		return d
	}
	if m, err := Lookup(name); err == nil && m.Family != "" {
		return s.Definitions[m.Family]
	}
	return Ours
}

// Complete adds the figures of own that s lacks, which were computed from the
// calls that came with s. One row must not hold two meanings, so left out are
// families and scalars that s has by a definition which calls do not give,
// families of which s and own have a figure in common and not its value, and
// those that lacks names, of which the calls tell too little. An interval comes
// along where the figure is the same.
func (s *Summary) Complete(own Summary, lacks ...string) {
	figures, intervals, samples := maps.Clone(s.Figures), map[string][2]float64{}, map[string]int{}
	if figures == nil {
		figures = map[string]float64{}
	}
	unlike := s.unlike(own)
	for name, v := range own.Figures {
		m, err := Lookup(name)
		if err != nil || slices.Contains(lacks, m.Name) || slices.Contains(lacks, m.Family) || unlike[m.Family] {
			continue
		}
		if given, has := s.Figures[name]; !has && s.Definition(name).ofEvents() {
			figures[name] = v
		} else if !has || !same(v, given) {
			continue
		}
		if i, ok := own.Intervals[name]; ok {
			intervals[name] = i
		}
		if n, ok := own.Samples[m.Family]; ok {
			samples[m.Family] = n
		}
	}
	maps.Copy(intervals, s.Intervals)
	maps.Copy(samples, s.Samples)
	s.Figures, s.Intervals, s.Samples = figures, intervals, samples
	if s.Failures == nil {
		s.Failures = own.Failures
	}
	s.Simulated = s.Simulated || own.Simulated
}

// unlike are the families of which s and own have a figure in common, and not
// the same one.
func (s *Summary) unlike(own Summary) map[string]bool {
	out := map[string]bool{}
	for name, given := range s.Figures {
		m, err := Lookup(name)
		if v, ok := own.Figures[name]; ok && err == nil && m.Family != "" && !same(v, given) {
			out[m.Family] = true
		}
	}
	return out
}

// same reports whether a figure computed from a file's calls is the one that
// the file gives: clients write times with three to nine digits.
func same(computed, given float64) bool {
	return math.Abs(computed-given) <= 0.01+1e-3*math.Abs(given)
}

// ofEvents reports whether our formula gives the figure when it is applied to
// the events as the client saw them: it differs in what counts as an event.
func (d Definition) ofEvents() bool {
	return slices.Contains([]Definition{Ours, FirstMessage, FirstText, FirstIteration, FirstChunk, DecodePerToken, MessageGap, ChunkGap, LastMessage}, d)
}

// Percentiles returns the percentiles that the sections of a block have
// figures for, in percent, the median aside.
func (s Summary) Percentiles() []float64 {
	out := []float64{}
	for name := range s.Figures {
		m, err := Lookup(name)
		if p, ok := percentile(m.Stat); err == nil && ok && p != 50 && slices.Contains(BlockSections(), m.Family) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Sections returns the sections of a block that the summary has figures for.
func (s Summary) Sections() []string {
	out := []string{}
	for _, f := range families() {
		if _, ok := s.Figures["mean_"+f.name+"_ms"]; ok {
			out = append(out, f.name)
		} else if _, ok := s.Figures["median_"+f.name+"_ms"]; ok {
			out = append(out, f.name)
		}
	}
	return out
}
