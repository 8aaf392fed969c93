// Package result holds what a run observed and what follows from it: calls as
// facts, the one metric table, the summary of figures, and SLOs.
//
//	sum, err := result.Summarize(header, client, result.Options{}, slices.Values(calls))
//	ttft, ok := sum.Get("p99_ttft")
//	slo, err := result.ParseSLO("p99_ttft < 500ms")
//	met, why := slo.Judge(sum)
//
// Definitions, per call, with n the output tokens and k those of them that
// came with the first read (1 unless the server packs several into a chunk):
//
//	TTFT = t_first - Sent
//	E2E  = t_last - Sent                  the usage chunk and [DONE] are not tokens
//	TPOT = (t_last - t_first) / (n - k)   undefined with fewer than two reads
//	TTFT + TPOT*(n - k) = E2E
//
// Figures carry the names that `vllm bench serve` gives them; those counted
// from the scheduled time instead of the sending carry _due. Options.Compat puts
// vLLM's own definitions in the place of ours, from the same calls.
//
// Invariants: calls are facts and figures are computed from them, by this
// package alone; Summarize is pure, exact up to a length (below) and does not depend on the order of
// the calls; a failed call is counted as failed and enters no latency, token
// or throughput figure; a figure without data is absent, never zero; every
// name, label, unit and rounding stands in the metric table and nowhere else;
// what a simulator made says SIMULATED.
//
// Memory: calls are taken in one at a time by an Accumulator. Whatever is counted
// or summed is counted exactly and at once (Tally); a check or a figure that needs
// something of each call gets a field there, and never goes over the calls. Of a
// run whose calls fit into Limits.Bytes all are kept and everything is exact. Of a
// longer one there are, in its stead,
//
//	rows      each call without its stream, 50 bytes: figures of one sample a
//	          call and of calls in flight stay exact, up to Limits.Rows
//	sketches  gaps between tokens, and beyond Limits.Rows every family: mean,
//	          deviation, least and most exact, percentiles within 0.0031 %
//	course    tokens in bins of 2 ms to 4 ms, and beyond Limits.Rows sendings and ends
//	          in bins of 16 ms to 32 ms: peaks, windows, the pace
//	kept      one whole call in every so many, by a hash of its index: for plots,
//	          the blocks of compare, and the intervals of pooled percentiles
//
// A figure that so is not exact has its bound in Summary.Approximate, and says it
// wherever it is shown. Save and Load store all of this beside calls.jsonl, which
// stays the truth.
//
// Deliberately absent: files (callers hand in readers and writers), readings beside the calls (package gauge), text for
// people (package block prints a summary), the checks of a verdict (package verdict), comparisons
// of runs (package compare), and other tools' formats (package interop).
package result
