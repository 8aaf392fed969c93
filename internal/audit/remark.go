package audit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// remarkChecks are the types that remarks finds.
func remarkChecks() []Check {
	const published = "Blocks of documents with two blocks or more."
	return []Check{
		{"itl-zero-gap", Note, "The client counts more gaps than there are between tokens: the mean ITL is (N - 1) / gaps of the mean TPOT.",
			published + " Answers of one length, as far as the totals tell; the finishing message is one gap more, with a usage message two."},
		{"few-samples", Note, "A P99 rests on so few requests that it is their largest.", published + " Fewer than 100 requests."},
		{"burst", Note, "All requests were sent at once: TTFT is the place in the queue, and there is no steady state.",
			published + " As many in flight as there were, no finite rate, mean TTFT 0.3 to 0.8 of P99 and over 5 times the mean TPOT."},
		{"ingestion", Note, "A large part of a burst passed before the first token of any request.",
			published + " A burst whose mean and median TTFT agree within 10 %, as of first tokens at an even pace: the first is then at 2 mean - P99; from 20 % of the run."},
		{"mostly-prompt", Note, "The total throughput is nearly all prompt tokens.", published + " From 99 %."},
		{"short-outputs", Note, "Answers are shorter than the length that was asked for.",
			published + " The length is that of the block's profile, its benchmark command (vLLM's default where it names no dataset or random), or a line of the document that names input and output tokens, chosen by the input length; from 0.5 %."},
		{"short-inputs", Note, "Prompts are shorter than the length that was asked for.", published + " As short-outputs; from 0.05 %."},
		{"itl-stalls", Note, "Some gaps between tokens are many times the median: prefill shares steps with decoding.",
			published + " P99 ITL over 3 medians, of gaps between messages or chunks."},
	}
}

// remarks says what figures of a published block mean.
func remarks(f *interop.File, r *interop.Run, said []saidLengths) []Finding {
	if f.Doc == nil || len(f.Runs) < 2 {
		return nil
	}
	g := figuresOf(r)
	var out []Finding
	out = append(out, gaps(g)...)
	out = append(out, queue(g)...)
	out = append(out, lengths(said, g)...)
	if v, ok := g.all("total_input_tokens", "total_output_tokens"); ok && v[0].Lo >= 99*v[1].Hi && v[1].Lo > 0 {
		out = append(out, g.finding("mostly-prompt", Note, "",
			fmt.Sprintf("%s of the total throughput are prompt tokens: generation runs at %s tok/s", percent(v[0].mid()/(v[0].mid()+v[1].mid())), g.text("output_throughput")),
			"total_token_throughput", "output_throughput"))
	}
	if done, ok := g.get("completed"); ok && done.Hi < 100 && done.Lo > 0 && g.text("p99_ttft_ms") != "" {
		out = append(out, g.finding("few-samples", Note, "", fmt.Sprintf("of %s, P99 tells no more than the largest", Counted(int(done.mid()), "request")), "p99_ttft_ms", "completed"))
	}
	return out
}

// gaps remarks on how the client counts gaps between tokens, and on stalls.
func gaps(g figures) []Finding {
	var out []Finding
	n, ok := g.outputPerRequest()
	v, ok2 := g.all("mean_tpot_ms", "mean_itl_ms")
	if ok && ok2 && n.Lo == n.Hi && n.Lo == math.Round(n.Lo) && n.Lo >= 2 && v[1].Lo > 0 && v[0].above(v[1]) {
		tokens := n.Lo - 1
		counted := v[0].scale(tokens).Over(v[1])
		if m := math.Round(counted.mid()); m > tokens && m <= 2*tokens && (n.Lo <= 16 && counted.widen(0.002).Meets(exactly(m)) || counted.Meets(exactly(m)) && counted.Hi-counted.Lo < 0.5) {
			out = append(out, g.finding("itl-zero-gap", Note, g.text("mean_tpot_ms")+" ms",
				fmt.Sprintf("Mean ITL %s ms is %s/%s of Mean TPOT %s ms: %s tokens have %s gaps and the client counts %s, also those before messages without a token",
					g.text("mean_itl_ms"), num(tokens), num(m), g.text("mean_tpot_ms"), num(n.Lo), num(tokens), num(m)), "mean_itl_ms", "mean_tpot_ms"))
		}
	}
	if v, ok := g.all("p99_itl_ms", "median_itl_ms"); ok && v[1].Lo > 0 && v[0].Lo > 3*v[1].Hi {
		if d := g.definition("p99_itl_ms"); d == result.MessageGap || d == result.ChunkGap || d == result.Ours {
			out = append(out, g.finding("itl-stalls", Note, "",
				fmt.Sprintf("P99 ITL %s ms is %s times the median: streams stall while a step also takes in prompts", g.text("p99_itl_ms"), num(v[0].mid()/v[1].mid())), "p99_itl_ms", "median_itl_ms"))
		}
	}
	return out
}

// queue remarks on bursts.
func queue(g figures) []Finding {
	v, ok := g.all("completed", "max_concurrent_requests", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "duration")
	rate, finite := g.offeredRate()
	if !ok || v[0].Lo < 10 || v[1].Hi < v[0].Lo || finite && rate < v[0].Hi {
		return nil
	}
	mean, p99, duration := v[2], v[3], v[5]
	share := mean.mid() / p99.mid()
	var out []Finding
	if share >= 0.3 && share <= 0.8 && mean.Lo > 5*v[4].Hi {
		out = append(out, g.finding("burst", Note, "",
			fmt.Sprintf("all %s requests were sent at once: mean TTFT %s ms is the wait in the queue (%s of P99, %s of the run), and the figures are those of a batch job", g.text("completed"), g.text("mean_ttft_ms"), percent(share), percent(mean.mid()/1000/duration.mid())),
			"mean_ttft_ms", "p99_ttft_ms", "max_concurrent_requests", "duration"))
	}
	median, ok := g.get("median_ttft_ms")
	first := (2*mean.mid() - p99.mid()) / 1000
	if ok && math.Abs(median.mid()/mean.mid()-1) < 0.1 && first > 0.2*duration.mid() {
		out = append(out, g.finding("ingestion", Note, "",
			fmt.Sprintf("the first token of all came after about %s s (2 x mean - P99 of TTFT): %s of the run went by taking in requests, without generating", num(first), percent(first/duration.mid())),
			"mean_ttft_ms", "p99_ttft_ms", "duration"))
	}
	return out
}

// lengths compares prompts and answers with what was asked for.
func lengths(said []saidLengths, g figures) []Finding {
	v, ok := g.all("completed", "total_input_tokens", "total_output_tokens")
	if !ok || v[0].Lo < 1 {
		return nil
	}
	in, out := v[1].Over(v[0]).mid(), v[2].Over(v[0]).mid()
	wantIn, wantOut := asked(said, g.run, in)
	var found []Finding
	if wantOut > 0 && out < 0.995*wantOut {
		found = append(found, g.finding("short-outputs", Note, num(wantOut*v[0].mid())+" tokens",
			fmt.Sprintf("%s of %s generated tokens asked for (%s): answers ended early, so runs did unequal work", g.text("total_output_tokens"), num(wantOut*v[0].mid()), percent(out/wantOut)), "total_output_tokens", "completed"))
	}
	if wantIn > 0 && in < 0.9995*wantIn {
		found = append(found, g.finding("short-inputs", Note, num(wantIn*v[0].mid())+" tokens",
			fmt.Sprintf("prompts have %s tokens on average and %s were asked for: prompts cut by one tokenizer are counted by another", num(in), num(wantIn)), "total_input_tokens", "completed"))
	}
	return found
}

// lengthsIn finds lengths of prompts and answers in a line of text.
var lengthsIn = Pattern(`(?i)(\d[\d,]*)\s*(?:input|prompt) tokens,?\s*(?:and )?(\d[\d,]*)\s*output tokens`)

// saidLengths are lengths of prompt and answer as a text has them.
type saidLengths struct{ in, out float64 }

// asked returns the lengths that a run asked for, by its profile, its command
// or its document, where prompts of that length were sent; 0 where they are not
// known.
func asked(said []saidLengths, r *interop.Run, in float64) (wantIn, wantOut float64) {
	bench, profile := r.Header.Label(result.LabelBenchCommand), Profile(r)
	all := []saidLengths{{profile.Input, profile.Output}}
	if !strings.Contains(strings.ToLower(r.Header.Label(result.LabelDataset)), "sharegpt") || strings.Contains(bench, "--hf-name") {
		wanted := command.ReadBenchmark(bench)
		all = append(append(all, saidLengths{wanted.Input, wanted.Output}), said...)
	}
	for _, l := range all {
		if l.in > 0 && l.out > 0 && math.Abs(in/l.in-1) < 0.02 {
			return l.in, l.out
		}
	}
	return 0, 0
}

// mostLengths bounds the lengths that a length is compared with, so that no
// document takes long.
const mostLengths = 64

// lengthsSaid are the lengths that the text of a document names.
func lengthsSaid(doc *interop.Document) []saidLengths {
	if doc == nil {
		return nil
	}
	number := func(digits string) float64 {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
		return v
	}
	var out []saidLengths
	for _, t := range doc.Prose {
		for _, m := range lengthsIn().FindAllStringSubmatch(t.Text, -1) {
			if l := (saidLengths{number(m[1]), number(m[2])}); !slices.Contains(out[max(0, len(out)-mostLengths):], l) {
				out = append(out, l)
			}
		}
	}
	return out
}

// Profile reads what the profile of a run asks for.
func Profile(r *interop.Run) command.Benchmark {
	number := func(label string) float64 {
		v, _ := strconv.ParseFloat(r.Header.Label(label), 64)
		return v
	}
	return command.Benchmark{Requests: number("total_requests"), Input: number("dataset_input_tokens"), Output: number("dataset_output_tokens")}
}
