package document

import (
	"fmt"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// benchmarksShown returns what the benchmark commands and profiles of a document ask for.
func benchmarksShown(d *document) (all []command.Benchmark, shown []int) {
	for s := range d.scripts(interop.ScriptBenchmark) {
		if len(all) < lookback {
			all, shown = append(all, command.ReadBenchmark(s.Text)), append(shown, s.Line)
		}
	}
	for i := range d.file.Runs {
		if a := audit.Profile(&d.file.Runs[i]); a.Requests > 0 && !slices.Contains(all, a) && len(all) < 2*lookback {
			all = append(all, a)
		}
	}
	return all, shown
}

// How far a run's lengths may be from those that were asked for.
const (
	tokenizerShare = 0.06 // of a prompt: two tokenizers count it that far apart
	templateTokens = 16   // what a chat template adds to a short prompt
	overlongShare  = 0.02 // of an answer, for tokens that end it
)

// Mean lengths of samples of ShareGPT, in tokens, of any tokenizer.
const (
	shareGPTLeastIn, shareGPTMostIn   = 150, 600
	shareGPTLeastOut, shareGPTMostOut = 100, 600
)

// fitsLengths reports whether a run can be of the prompts that were asked for.
func fitsLengths(a command.Benchmark, r *interop.Run) bool {
	in, out := r.PerRequest("total_input_tokens"), r.PerRequest("total_output_tokens")
	if a.Input > 0 && in > 0 && (in < (1-tokenizerShare)*a.Input || in > (1+tokenizerShare)*a.Input+templateTokens) {
		return false
	}
	if a.Output > 0 && out > (1+overlongShare)*a.Output {
		return false
	}
	return !a.ShareGPT || in == 0 || in > shareGPTLeastIn && in < shareGPTMostIn && (a.Output > 0 || out > shareGPTLeastOut && out < shareGPTMostOut)
}

// unfitBenchmarks compares blocks with the benchmark commands shown.
func unfitBenchmarks(d *document) []audit.Finding {
	const mostCases = 6 // that are named
	all, shown := benchmarksShown(d)
	var unfit, short []int
	var cases, shortOf []string
	for i := range d.file.Runs {
		r := &d.file.Runs[i]
		n, failed := r.Value("completed"), r.Value("failed")
		if n == 0 {
			continue
		}
		if slices.ContainsFunc(all, func(a command.Benchmark) bool { return a.Requests == n+failed && fitsLengths(a, r) }) {
			continue
		}
		if requested := requestsAsked(all, r, n+failed); requested > 0 {
			short = append(short, r.Place.Line)
			if t := fmt.Sprintf("%.0f of %.0f", n+failed, requested); !slices.Contains(shortOf, t) {
				shortOf = append(shortOf, t)
			}
			continue
		}
		if r.Header.Label(result.LabelBenchCommand) != "" || slices.ContainsFunc(all, func(a command.Benchmark) bool { return a.Requests == 0 && fitsLengths(a, r) }) {
			continue
		}
		unfit = append(unfit, r.Place.Line)
		if t := fmt.Sprintf("%.0f x %.0f in / %.0f out", n, r.PerRequest("total_input_tokens"), r.PerRequest("total_output_tokens")); !slices.Contains(cases, t) && len(cases) < mostCases {
			cases = append(cases, t)
		}
	}
	var out []audit.Finding
	if len(short) > 0 {
		out = append(out, audit.Finding{Type: "requests-missing", Severity: audit.Warning, Place: d.at(short[0], nil),
			Text: fmt.Sprintf("at %s are fewer requests than were asked for (%s), and no word of what became of the others", audit.Lines(short), strings.Join(shortOf, ", "))})
	}
	if len(unfit) > 0 {
		what := fmt.Sprintf("fit none of the %s shown (%s)", audit.Counted(len(all), "benchmark command"), audit.Lines(shown))
		if len(all) == 0 {
			what = "have no benchmark command"
		}
		out = append(out, audit.Finding{Type: "benchmark-command-missing", Severity: audit.Note, Place: d.at(unfit[0], nil),
			Text: fmt.Sprintf("%d of %s %s: %s at %s", len(unfit), audit.Counted(len(d.file.Runs), "block"), what, strings.Join(cases, ", "), audit.Lines(unfit))})
	}
	return out
}

// What makes a number of requests one that nobody asks for.
const (
	fewestAsked  = 20 // below it any number may have been asked for
	fewestServed = 3  // a run with less than this part of a command's requests is of another command
)

// requestsAsked returns the number of requests of which n can be what was left
// when some failed; 0 for none.
func requestsAsked(all []command.Benchmark, r *interop.Run, n float64) float64 {
	if requested := float64(r.Header.Requests); requested > n {
		return requested
	}
	whole := int(n)
	if whole < fewestAsked || whole%10 == 0 || whole&(whole-1) == 0 {
		return 0
	}
	best := 0.0
	for _, a := range all {
		if a.Requests > n && n >= a.Requests/fewestServed && (best == 0 || a.Requests < best) {
			best = a.Requests
		}
	}
	return best
}
