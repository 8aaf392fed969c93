package result

import "slices"

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
// figures Options.Compat computes, is known here; other clients' are interop's,
// and package redefine computes them.
func DefinitionsOf(compat string) map[string]Definition {
	if compat != VLLM {
		return nil
	}
	return map[string]Definition{
		"ttft": FirstMessage, "tpot": DecodePerToken, familyITL: MessageGap, "e2el": LastMessage,
		"max_output_tokens_per_s": MessageBuckets,
	}
}

// definitions explains every definition that is not ours.
func definitions() []DefinitionDoc {
	return []DefinitionDoc{
		{Tag: FirstMessage, Of: "ttft", Formula: "t(first message with choices) - start, connecting included; a role message without a token counts", Clients: "vllm bench serve"},
		{Tag: FirstText, Of: "ttft", Formula: "t(first non-empty text, answer or reasoning) - start, connecting included", Clients: "sglang.bench_serving, AIPerf, genai-bench, llmperf"},
		{Tag: FirstIteration, Of: "ttft", Formula: "t(first message that the handler counts) - start; of some handlers an empty role message", Clients: "guidellm before 0.7, benchmark-runner (GPUStack)"},
		{Tag: FirstChunk, Of: "ttft", Formula: "t(first chunk in which the client's tokenizer finds a token) - start", Clients: "inference-perf"},

		{Tag: DecodePerToken, Of: "tpot, itl", Formula: "(t_last - t_first) / (n - 1), one sample a request",
			Clients: "vllm bench serve, sglang.bench_serving, inference-perf and genai-bench as TPOT; AIPerf as ITL"},
		{Tag: DecodePerTokenWeighted, Of: "itl, tpot", Formula: "(t_last - t_first) / (n - 1), each request weighted by its tokens",
			Clients: "guidellm and benchmark-runner (GPUStack) as ITL"},
		{Tag: E2EPerToken, Of: "tpot, itl", Formula: "(t_last - start) / n, one sample a request: the TTFT is in it",
			Clients: "llmperf as ITL, inference-perf as normalized TPOT"},
		{Tag: E2EPerTokenWeighted, Of: "tpot", Formula: "(t_last - start) / n, each request weighted by its tokens: the TTFT is in it",
			Clients: "guidellm and benchmark-runner (GPUStack)"},

		{Tag: MessageGap, Of: familyITL, Formula: "t_i - t_(i-1) of messages with choices, pooled; zeros and the finishing message included", Clients: "vllm bench serve"},
		{Tag: ChunkGap, Of: familyITL, Formula: "t_i - t_(i-1) of chunks with text, pooled, whatever their tokens", Clients: "sglang.bench_serving, AIPerf as inter-chunk latency"},
		{Tag: TokenGapMean, Of: familyITL, Formula: "(t_i - t_(i-1)) / tokens of chunk i, each token one sample", Clients: "sglang.bench_serving on its native API and with an accept length"},
		{Tag: TokenGapZeros, Of: familyITL, Formula: "gap between tokens as the client's tokenizer counts them: k tokens of one chunk are k - 1 zeros", Clients: "inference-perf"},

		{Tag: LastMessage, Of: "e2el", Formula: "t(last message with choices, the finishing one included) - start", Clients: "vllm bench serve"},
		{Tag: StreamEnd, Of: "e2el", Formula: "end of the stream - start, usage and [DONE] included", Clients: "sglang.bench_serving, guidellm, inference-perf, genai-bench, llmperf"},

		{Tag: MessageBuckets, Of: "max_output_tokens_per_s", Formula: "most messages in a whole second since the start, one token each", Clients: "vllm bench serve, sglang.bench_serving"},
		{Tag: InverseGapPeak, Of: "max_output_tokens_per_s", Formula: "largest tokens / gap between neighbouring events of all requests: no throughput of any second", Clients: "guidellm, benchmark-runner (GPUStack)"},
		{Tag: RateWeighted, Of: "output_throughput, total_token_throughput, request_throughput", Formula: "mean of local rates over the client's own window, not tokens / duration", Clients: "guidellm, benchmark-runner (GPUStack)"},

		{Tag: MeasuredMaximum, Of: "max_concurrency", Formula: "most requests that were seen in flight, not the limit that was set", Clients: "benchmark-runner (GPUStack)"},
		{Tag: SecondBuckets, Of: "max_concurrent_requests", Formula: "most requests that touch one whole second, those included that do not overlap", Clients: "vllm bench serve before its sweep line and in Rust, sglang.bench_serving"},
		{Tag: MeanInFlight, Of: "max_concurrent_requests", Formula: "sum of E2E / duration", Clients: "sglang.bench_serving as Concurrency"},
	}
}

// Doc explains a definition; of ours, and of one that is unknown here, there
// is nothing to explain.
func (d Definition) Doc() (DefinitionDoc, bool) {
	for _, doc := range definitions() {
		if doc.Tag == d && d != Ours {
			return doc, true
		}
	}
	return DefinitionDoc{}, false
}

// VLLM names the definitions, and the block's layout, of vllm bench serve.
const VLLM = "vllm"

// ofEvents reports whether our formula gives the figure when it is applied to
// the events as the client saw them: it differs in what counts as an event.
func (d Definition) ofEvents() bool {
	return slices.Contains([]Definition{Ours, FirstMessage, FirstText, FirstIteration, FirstChunk, DecodePerToken, MessageGap, ChunkGap, LastMessage}, d)
}
