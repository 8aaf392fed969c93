package result

import (
	"fmt"
	"strings"
)

// Definitions explains every definition that is not ours.
func Definitions() []DefinitionDoc {
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

		{Tag: LastMessage, Of: "e2el", Formula: "t(last message with choices, the finishing one included) - start", Clients: "vllm bench serve, AIPerf"},
		{Tag: StreamEnd, Of: "e2el", Formula: "end of the stream - start, usage and [DONE] included", Clients: "sglang.bench_serving, guidellm, inference-perf, genai-bench, llmperf"},

		{Tag: MessageBuckets, Of: "max_output_tokens_per_s", Formula: "most messages in a whole second since the start, one token each", Clients: "vllm bench serve, sglang.bench_serving"},
		{Tag: InverseGapPeak, Of: "max_output_tokens_per_s", Formula: "largest tokens / gap between neighbouring events of all requests: no throughput of any second", Clients: "guidellm, benchmark-runner (GPUStack)"},
		{Tag: RateWeighted, Of: "output_throughput, total_token_throughput, request_throughput", Formula: "mean of local rates over the client's own window, not tokens / duration", Clients: "guidellm, benchmark-runner (GPUStack)"},

		{Tag: MeasuredMaximum, Of: "max_concurrency", Formula: "most requests that were seen in flight, not the limit that was set", Clients: "benchmark-runner (GPUStack)"},
		{Tag: SecondBuckets, Of: "max_concurrent_requests", Formula: "most requests that touch one whole second, those included that do not overlap", Clients: "vllm bench serve before its sweep line and in Rust, sglang.bench_serving"},
		{Tag: MeanInFlight, Of: "max_concurrent_requests", Formula: "sum of E2E / duration", Clients: "sglang.bench_serving as Concurrency"},
	}
}

// sectionTitle is the title of a family's section in the block, of another
// client's figures where ours would be untrue.
func (f family) sectionTitle(d Definition) string {
	switch {
	case d == E2EPerToken || d == E2EPerTokenWeighted:
		return "Latency per Output Token (incl. 1st token)"
	case f.name == familyITL && (d == DecodePerToken || d == DecodePerTokenWeighted):
		return "Mean Inter-token Latency of a Request"
	}
	return f.section
}

// Doc explains a definition; of ours, and of one that is unknown here, there
// is nothing to explain.
func (d Definition) Doc() (DefinitionDoc, bool) {
	for _, doc := range Definitions() {
		if doc.Tag == d && d != Ours {
			return doc, true
		}
	}
	return DefinitionDoc{}, false
}

// definitionsMarkdown is the table of definitions for docs/metrics.md.
func definitionsMarkdown() string {
	var b strings.Builder
	b.WriteString("## Definitions of other clients\n\n" +
		"A figure that was imported from another client's file, or computed with `--compat`, keeps the definition of that client: summaries have it under\n" +
		"`definitions`, by family or figure, and figures of different definitions never share a row. What is not named there is by our definition above.\n\n" +
		"| Tag | Of | Formula | Clients |\n| --- | --- | --- | --- |\n")
	for _, d := range Definitions() {
		fmt.Fprintf(&b, "| `%s` | `%s` | `%s` | %s |\n", d.Tag, strings.ReplaceAll(d.Of, ", ", "`, `"), strings.ReplaceAll(d.Formula, "|", `\|`), d.Clients)
	}
	return b.String()
}
