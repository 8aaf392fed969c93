package audit

import (
	"slices"

	"perflab/internal/interop"
)

// rule is a function that looks for what cannot be true in the figures of a
// run, and the types of findings that it is there for.
type rule struct {
	find   func(figures) []Finding
	checks []Check
}

// When checks apply, where several apply alike.
const (
	onPublished = "Blocks of documents with two blocks or more."
	onBound     = "Model and hardware known; 100 % of the datasheet's bandwidth and arithmetic, everything overlapped, the smallest format of the weights that the document speaks of."
)

// rules are all checks of the figures of a run: a new one is a function in the
// file of its subject, and a row below.
func rules() []rule {
	return slices.Concat(arithmeticRules, identityRules, missingRules, remarkRules, physicsRules)
}

// arithmeticRules hold the figures of a block against each other.
var arithmeticRules = []rule{
	{signs, []Check{{"negative-figure", Error, "A count, a rate or a time is below zero.",
		"Always; client-side lags may be negative."}}},
	{throughputs, []Check{
		{"throughput", Error, "A throughput is not its count over the duration.",
			"With duration and counts. Allowed for: failed requests counted in (throughput-definition), and a window of the client's own (throughput-window)."},
		{"throughput-definition", Warning, "The request throughput counts failed requests too.",
			"Where that fits and successful requests alone do not."},
		{"throughput-window", Warning, "A throughput is over a window that is shorter than the printed duration.",
			"Mean local rates (guidellm) run from the first event that the client counts to the last, so the window may lack the first wait and the last drain: P99 TTFT + P99 latency. Shorter than that is an error of type throughput."},
		{"throughput-sum", Error, "Total throughput over output throughput is not total tokens over output tokens.",
			"Without a duration; with one, throughput says it."},
	}},
	{counts, []Check{
		{"counts", Error, "Counts of requests contradict each other.",
			"More successful ones than were sent; goodput above throughput."},
		{"no-success", Warning, "No request succeeded: there is nothing to measure.",
			"No successful request and at least one that failed."},
	}},
	{concurrency, []Check{
		{"peak-concurrency", Error, "More requests were in flight at once than there were, or than the limit of our own client allows.",
			"Peak against successful and failed requests. Where failed ones are not printed, only against the limit; of other clients' limits see peak-above-cap."},
		{"peak-above-cap", Warning, "More requests were in flight at once than the cap that the client was given.",
			"The cap that the block prints, or that its benchmark command sets; of documents with two blocks or more a note where the client counts whole seconds and the excess is what requests that end and begin in one second make."},
	}},
	{peaks, []Check{
		{"peak-below-mean", Error, "The peak throughput is below the mean throughput.",
			"A peak over sliding seconds or of local rates is never below the mean. Fixed seconds may be: see peak-buckets."},
		{"peak-buckets", Warning, "The peak throughput is below the mean, which fixed seconds and messages of several tokens allow.",
			"vLLM's peak is the fullest of whole seconds since the start, counted in messages."},
		{"peak-beyond-total", Error, "The peak second has more tokens than the whole run.",
			"Peaks of tokens or messages in a second; two messages a request may carry no token."},
		{"peak-inverse-gap", Warning, "The peak throughput is the inverse of the shortest gap between events and no throughput of any second.",
			"guidellm's maximum of local rates, where it is above all tokens of the run in one second."},
	}},
	{durations, []Check{{"latency-beyond-duration", Error, "A request took longer than the run.",
		"TTFT and end-to-end latency; not for clients that trim their duration to a window."}}},
	{distributions, []Check{
		{"percentile-order", Error, "A lower percentile is above a higher one.",
			"Always, minimum, median and maximum included."},
		{"mean-impossible", Error, "The mean lies outside what the percentiles allow.",
			"Times are not negative, so a share 1 - q of them is at least the q-th percentile, whether it is interpolated, by rank or weighted; and no mean is beyond minimum and maximum."},
		{"std-impossible", Error, "The standard deviation cannot be, with this mean, median, minimum and maximum.",
			"Population or sample deviation."},
		{"single-request", Error, "Statistics of a single request differ.",
			"One successful request; TTFT, TPOT and end-to-end latency."},
	}},
}

// identityRules hold against each other what must agree between the sections
// of a block.
var identityRules = []rule{
	{latency, []Check{
		{"latency-identity", Error, "TTFT, time per token and number of tokens do not make the end-to-end latency.",
			"Exact for one request and for means weighted by tokens (guidellm): TTFT + TPOT (n - 1) or, with the first token in it, TPOT n. 10 % are allowed for the end of the stream; any of these that fits is accepted, and a sum above the latency may be of gaps between messages of several tokens."},
		{"latency-doubtful", Warning, "TTFT, time per token and number of tokens are far from the end-to-end latency.",
			"A factor of 3 for means over requests of varied length, between which the identity does not hold exactly; 10 % for answers of one length."},
	}},
	{firstToken, []Check{{"tpot-includes-first", Warning, "A time per token that is said to exclude the first token includes it.",
		"A text block: TPOT is above ITL and TPOT n = TTFT + ITL (n - 1), within rounding, or within 3 % where the client is known to define it so."}}},
	{zeroMedian, []Check{{"zero-median", Warning, "Half of the times per token are zero.",
		"A median of nothing beside a mean that is not: the client saw tokens of one instant. Not where tokens of one chunk are counted as zeros by definition."}}},
	{meanAboveTail, []Check{{"mean-above-percentile", Warning, "A mean lies above its own P99: a few samples make it.",
		"Where the few beyond the percentile can be as long as that needs; longer than the run, or of fewer requests than the percentile tells apart, it is an error of type mean-impossible."}}},
	{inFlight, []Check{{"in-flight", Error, "The latencies sum to more than the duration times the peak of requests in flight.",
		"Little's law as an inequality, which holds over a whole run, idle ends included: sum of E2E <= duration x peak; with TTFT where no latency is printed."}}},
	{offered, []Check{{"offered-rate-missed", Warning, "The run lasted much longer than its requests took to send.",
		"A finite rate. Sending takes (N - 1) / rate, and the drain comes after it: only where sending lasts 3 mean latencies and over 10 % of the run come after, or sending lasts a minute and the run half as long again."}}},
	{stall, []Check{{"first-token-stall", Warning, "A few requests waited very long for their first token: a cold start or a stall.",
		"From 20 requests: P99 TTFT over 20 medians and over 5 times P95, or the mean above P95."}}},
}

// remarkRules say what figures of a published block mean.
var remarkRules = []rule{
	{published(zeroGaps), []Check{{"itl-zero-gap", Note, "The client counts more gaps than there are between tokens: the mean ITL is (N - 1) / gaps of the mean TPOT.",
		onPublished + " Answers of one length, as far as the totals tell; the finishing message is one gap more, with a usage message two."}}},
	{published(fewSamples), []Check{{"few-samples", Note, "A P99 rests on so few requests that it is their largest.",
		onPublished + " Fewer than 100 requests."}}},
	{published(bursts), []Check{
		{"burst", Note, "All requests were sent at once: TTFT is the place in the queue, and there is no steady state.",
			onPublished + " As many in flight as there were, no finite rate, mean TTFT 0.3 to 0.8 of P99 and over 5 times the mean TPOT."},
		{"ingestion", Note, "A large part of a burst passed before the first token of any request.",
			onPublished + " A burst whose mean and median TTFT agree within 10 %, as of first tokens at an even pace: the first is then at 2 mean - P99; from 20 % of the run."},
	}},
	{published(promptTotal), []Check{{"mostly-prompt", Note, "The total throughput is nearly all prompt tokens.",
		onPublished + " From 99 %."}}},
	{published(lengths), []Check{
		{"short-outputs", Note, "Answers are shorter than the length that was asked for.",
			onPublished + " The length is that of the block's profile, its benchmark command (vLLM's default where it names no dataset or random), or a line of the document that names input and output tokens, chosen by the input length; from 0.5 %."},
		{"short-inputs", Note, "Prompts are shorter than the length that was asked for.",
			onPublished + " As short-outputs; from 0.05 %."},
	}},
	{published(stalls), []Check{{"itl-stalls", Note, "Some gaps between tokens are many times the median: prefill shares steps with decoding.",
		onPublished + " P99 ITL over 3 medians, of gaps between messages or chunks."}}},
}

// missingRules find what a block does not have, and prints something for.
var missingRules = []rule{
	{unmeasured, []Check{{"unmeasured-zeros", Warning, "Every statistic of a time is zero: the client measured nothing.",
		"TTFT and latency where requests succeeded, times per token where answers have more than one. Import leaves these figures out."}}},
	{absentFigures, []Check{{"figure-not-given", Warning, "A statistic of a time is given as N/A beside others of the same time.",
		"Lines of a text block that say that there is no figure; not where the whole family has none."}}},
}

// physicsRules hold figures against what their hardware can do.
var physicsRules = []rule{
	{weightsFit, []Check{{"weights-do-not-fit", Warning, "The weights of the model are more than the memory of the devices that the document names.",
		"Model and hardware known, and the number of devices by the command, the text or --gpus; the smallest format of the weights that the document speaks of. Not where the command offloads weights, reads a configuration file, or names a format that is not known here."}}},
	{physics, []Check{
		{"prefix-cache-suspected", Warning, "A first token came sooner than the hardware can take in the prompt.",
			onBound + " One request at a time: reading the weights and the experts that the prompt touches, or its arithmetic, whichever is longer."},
		{"prefix-cache-likely", Note, "A first token came sooner than the hardware can take in the prompt without overlapping communication.",
			onBound + " Attention and dense layers, experts and all-reduce after each other, each at its datasheet rate."},
		{"decode-beyond-hardware", Warning, "Tokens follow each other faster than the weights can be read.",
			onBound + " One sequence and the experts it is routed to; with speculation, divided by the tokens a step may yield."},
		{"throughput-beyond-hardware", Warning, "More tokens were generated than the requests in flight can be given.",
			onBound + " c requests in flight get c tokens a step, and a step reads the weights, the experts that c tokens touch when routing is even (0.7 of them in effect), and recurrent states."},
		{"peak-beyond-hardware", Warning, "The peak throughput is more than the requests in flight can be given.",
			"As throughput-beyond-hardware."},
		{"prefill-beyond-hardware", Warning, "More prompt tokens were processed than the hardware has arithmetic for: they came from a prefix cache.",
			onBound},
		{"cache-starved", Note, "Few sequences ran at once because the cache was full: the run tells the size of the cache more than the speed of the engine.",
			"Blocks of documents with two blocks or more. Running sequences (peak times median ITL) under half of those in flight, holding half or more of the cache that weights leave."},
		{"physics-skipped", Note, "Figures were not held against the hardware: model or hardware is not known.",
			"Documents that name one of them."},
	}},
}

// acrossRules hold runs of several files beside each other.
var acrossRules = []struct {
	find  func([]interop.File) []Finding
	check Check
}{
	{workloadMismatch, Check{"workload-mismatch", Warning, "Runs of one dataset and number of requests have very different totals: they sent different requests.",
		"Where prompts differ by more than 6 %, which no tokenizer makes, or generated tokens by more than 15 %; once a pair of groups."}},
	{definitionsMixed, Check{"definitions-mixed", Warning, "Figures of one name are made by different definitions.",
		"For the definitions of the clients that made the files; once a pair of groups."}},
	{sharedBlocks, Check{"block-in-two-files", Note, "A block stands in two files.",
		"Where every figure of at least six is equal; once a pair of files, and a warning where the two name different models or hardware."}},
}

// published makes a check hold for blocks of documents with several.
func published(find func(figures) []Finding) func(figures) []Finding {
	return func(g figures) []Finding {
		if g.file.Doc == nil || len(g.file.Runs) < 2 {
			return nil
		}
		return find(g)
	}
}

// Findings that stand for faults of reading.
const (
	typeUnreadable = "unreadable"
	typeRecovered  = "recovered"
	typePassedOver = "passed-over"
)

// RunChecks lists the types of findings that Runs makes.
func RunChecks() []Check {
	all := []Check{{typeUnreadable, Warning, "Something in the file could not be read, and so was not checked.", "Always; the sentence says what."},
		{typeRecovered, Note, "Something in the file is not as it should be, and was read nevertheless.", "A block that lost its head line: three figures that begin as a client's block does, or five with a section's title among them."},
		{typePassedOver, Note, "Files of a directory that hold no result.", "JSON that no load generator writes; one note a directory that was named, not for files that were."}}
	for _, r := range rules() {
		all = append(all, r.checks...)
	}
	return all
}

// AcrossChecks lists the types of findings that Across makes.
func AcrossChecks() []Check {
	var all []Check
	for _, r := range acrossRules {
		all = append(all, r.check)
	}
	return all
}

// Runs audits the runs of a file, each by itself, and says what of the file
// could not be read.
func Runs(f *interop.File, o Options) []Finding {
	var out, runs []Finding
	for _, fault := range f.Faults {
		switch fault.Kind {
		case interop.Recovered:
			out = append(out, Finding{Type: typeRecovered, Severity: Note, Place: fault.Place, Text: fault.Text})
		case interop.PassedOver:
			out = append(out, Finding{Type: typePassedOver, Severity: Note, Place: fault.Place, Text: fault.Text})
		case interop.Unmeasured: // the check of that name says it with its figures
		default:
			out = append(out, Finding{Type: typeUnreadable, Severity: Warning, Place: fault.Place, Text: fault.Text})
		}
	}
	printed := statedLengthsOf(f.Doc)
	for i := range f.Runs {
		g := figuresOf(&f.Runs[i])
		g.file, g.options, g.stated, g.families = f, o, printed, g.spreads()
		for _, r := range rules() {
			runs = append(runs, r.find(g)...)
		}
	}
	return append(out, Gather(runs)...)
}

// Across audits files beside each other.
func Across(files []interop.File) []Finding {
	var out []Finding
	for _, r := range acrossRules {
		out = append(out, r.find(files)...)
	}
	return out
}
