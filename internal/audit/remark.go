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

// Zero gaps between tokens.
const (
	exactAnswer = 16    // tokens up to which the printed means tell a single gap more
	gapRounding = 0.002 // that their rounding leaves, as a share
	gapUnsure   = 0.5   // gaps that a longer answer's number must be sure to
)

// zeroGaps remarks on clients that count more gaps than lie between tokens.
func zeroGaps(g figures) []Finding {
	n, ok := g.outputPerRequest()
	v, ok2 := g.all("mean_tpot_ms", "mean_itl_ms")
	if !ok || !ok2 || n.Lo != n.Hi || n.Lo != math.Round(n.Lo) || n.Lo < 2 || v[1].Lo <= 0 || !v[0].above(v[1]) {
		return nil
	}
	tokens := n.Lo - 1
	gaps := v[0].scale(tokens).Over(v[1])
	m := math.Round(gaps.mid())
	short := n.Lo <= exactAnswer && gaps.widen(gapRounding).Meets(exactly(m))
	if m <= tokens || m > 2*tokens || !short && !(gaps.Meets(exactly(m)) && gaps.Hi-gaps.Lo < gapUnsure) {
		return nil
	}
	return []Finding{g.finding("itl-zero-gap", Note, g.text("mean_tpot_ms")+" ms",
		fmt.Sprintf("Mean ITL %s ms is %s/%s of Mean TPOT %s ms: %s tokens have %s gaps and the client counts %s, also those before messages without a token",
			g.text("mean_itl_ms"), num(tokens), num(m), g.text("mean_tpot_ms"), num(n.Lo), num(tokens), num(m)), "mean_itl_ms", "mean_tpot_ms")}
}

// tailSamples is from how many requests on a P99 is not their largest.
const tailSamples = 100

// fewSamples remarks on a P99 of so few requests that it is their largest.
func fewSamples(g figures) []Finding {
	done, ok := g.get("completed")
	if !ok || done.Hi >= tailSamples || done.Lo <= 0 || g.text("p99_ttft_ms") == "" {
		return nil
	}
	return []Finding{g.finding("few-samples", Note, "", fmt.Sprintf("of %s, P99 tells no more than the largest", Counted(int(done.mid()), "request")), "p99_ttft_ms", "completed")}
}

// stallFactor is how many medians a P99 of gaps takes where steps take in
// prompts besides.
const stallFactor = 3

// stalls remarks on gaps between tokens that are many times the median.
func stalls(g figures) []Finding {
	v, ok := g.all("p99_itl_ms", "median_itl_ms")
	d := g.definition("p99_itl_ms")
	if !ok || v[1].Lo <= 0 || v[0].Lo <= stallFactor*v[1].Hi || d != result.MessageGap && d != result.ChunkGap && d != result.Ours {
		return nil
	}
	return []Finding{g.finding("itl-stalls", Note, "",
		fmt.Sprintf("P99 ITL %s ms is %s times the median: streams stall while a step also takes in prompts", g.text("p99_itl_ms"), num(v[0].mid()/v[1].mid())), "p99_itl_ms", "median_itl_ms")}
}

// promptFactor is how many prompt tokens there are for each generated one where
// the total throughput is that of the prompts.
const promptFactor = 99

// promptTotal remarks on a total throughput that is nearly all prompt tokens.
func promptTotal(g figures) []Finding {
	v, ok := g.all("total_input_tokens", "total_output_tokens")
	if !ok || v[0].Lo < promptFactor*v[1].Hi || v[1].Lo <= 0 {
		return nil
	}
	return []Finding{g.finding("mostly-prompt", Note, "",
		fmt.Sprintf("%s of the total throughput are prompt tokens: generation runs at %s tok/s", percent(v[0].mid()/(v[0].mid()+v[1].mid())), g.text("output_throughput")),
		"total_token_throughput", "output_throughput")}
}

// What shows that all requests were sent at once. Shares are of the P99 of TTFT
// but for the last.
const (
	fewestBurst    = 10  // requests
	queueLeast     = 0.3 // mean TTFT of an even queue: half, but for steps of several
	queueMost      = 0.8
	queueFactor    = 5   // mean TPOTs that a mean TTFT is above where requests queue
	evenPace       = 0.1 // that mean and median TTFT are apart at most, as a share
	ingestionShare = 0.2 // of the run that passes before any token
)

// bursts remarks on requests that were sent all at once.
func bursts(g figures) []Finding {
	v, ok := g.all("completed", "max_concurrent_requests", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "duration")
	rate, finite := g.offeredRate()
	if !ok || v[0].Lo < fewestBurst || v[1].Hi < v[0].Lo || finite && rate < v[0].Hi {
		return nil
	}
	mean, p99, duration := v[2], v[3], v[5]
	share := mean.mid() / p99.mid()
	var out []Finding
	if share >= queueLeast && share <= queueMost && mean.Lo > queueFactor*v[4].Hi {
		out = append(out, g.finding("burst", Note, "",
			fmt.Sprintf("all %s requests were sent at once: mean TTFT %s ms is the wait in the queue (%s of P99, %s of the run), and the figures are those of a batch job", g.text("completed"), g.text("mean_ttft_ms"), percent(share), percent(mean.mid()/1000/duration.mid())),
			"mean_ttft_ms", "p99_ttft_ms", "max_concurrent_requests", "duration"))
	}
	median, ok := g.get("median_ttft_ms")
	first := (2*mean.mid() - p99.mid()) / 1000
	if ok && math.Abs(median.mid()/mean.mid()-1) < evenPace && first > ingestionShare*duration.mid() {
		out = append(out, g.finding("ingestion", Note, "",
			fmt.Sprintf("the first token of all came after about %s s (2 x mean - P99 of TTFT): %s of the run went by taking in requests, without generating", num(first), percent(first/duration.mid())),
			"mean_ttft_ms", "p99_ttft_ms", "duration"))
	}
	return out
}

// Shares of the tokens asked for below which lengths are short. Prompts are cut
// to their length, and answers may end early.
const (
	shortAnswers = 0.995
	shortPrompts = 0.9995
)

// lengths compares prompts and answers with what was asked for.
func lengths(g figures) []Finding {
	v, ok := g.all("completed", "total_input_tokens", "total_output_tokens")
	if !ok || v[0].Lo < 1 {
		return nil
	}
	in, out := v[1].Over(v[0]).mid(), v[2].Over(v[0]).mid()
	wantIn, wantOut := requestedLengths(g.stated, g.run, in)
	var found []Finding
	if wantOut > 0 && out < shortAnswers*wantOut {
		found = append(found, g.finding("short-outputs", Note, num(wantOut*v[0].mid())+" tokens",
			fmt.Sprintf("%s of %s generated tokens asked for (%s): answers ended early, so runs did unequal work", g.text("total_output_tokens"), num(wantOut*v[0].mid()), percent(out/wantOut)), "total_output_tokens", "completed"))
	}
	if wantIn > 0 && in < shortPrompts*wantIn {
		found = append(found, g.finding("short-inputs", Note, num(wantIn*v[0].mid())+" tokens",
			fmt.Sprintf("prompts have %s tokens on average and %s were asked for: prompts cut by one tokenizer are counted by another", num(in), num(wantIn)), "total_input_tokens", "completed"))
	}
	return found
}

// lengthsIn finds lengths of prompts and answers in a line of text.
var lengthsIn = Pattern(`(?i)(\d[\d,]*)\s*(?:input|prompt) tokens,?\s*(?:and )?(\d[\d,]*)\s*output tokens`)

// sameAsked is how far the prompts of a run are from a length that was asked for
// at most, as a share: tokenizers count that far apart.
const sameAsked = 0.02

// requestedLengths returns the lengths that a run asked for, by its profile, its command
// or its document, where prompts of that length were sent; 0 where they are not
// known.
func requestedLengths(stated []statedLengths, r *interop.Run, in float64) (wantIn, wantOut float64) {
	bench, profile := r.Header.Label(result.LabelBenchCommand), Profile(r)
	all := []statedLengths{{profile.Input, profile.Output}}
	if !strings.Contains(strings.ToLower(r.Header.Label(result.LabelDataset)), "sharegpt") || strings.Contains(bench, "--hf-name") {
		wanted := command.ReadBenchmark(bench)
		all = append(append(all, statedLengths{wanted.Input, wanted.Output}), stated...)
	}
	for _, l := range all {
		if l.in > 0 && l.out > 0 && math.Abs(in/l.in-1) < sameAsked {
			return l.in, l.out
		}
	}
	return 0, 0
}

// mostLengths bounds the lengths that a length is compared with, so that no
// document takes long.
const mostLengths = 64

// statedLengthsOf are the lengths that the text of a document names.
func statedLengthsOf(doc *interop.Document) []statedLengths {
	if doc == nil {
		return nil
	}
	number := func(digits string) float64 {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
		return v
	}
	var out []statedLengths
	for _, t := range doc.Prose {
		for _, m := range lengthsIn().FindAllStringSubmatch(t.Text, -1) {
			if l := (statedLengths{number(m[1]), number(m[2])}); !slices.Contains(out[max(0, len(out)-mostLengths):], l) {
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
