package document

import (
	"slices"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// rule is a function that looks for what is wrong in a document, and the types
// of findings that it is there for. It may make one of another rule's type too.
type rule struct {
	find   func(*document) []audit.Finding
	checks []check
}

// check is a type of finding of this package.
type check audit.Check

// rules are all checks of a document: a new one is a function in the file of
// its subject, and a row below. Findings of one line and severity come in this
// order.
func rules() []rule { return slices.Concat(claimRules, commandRules, practiceRules) }

// claimRules hold what tables, summaries and prose say against the blocks.
var claimRules = []rule{
	{ratios, []check{
		{"percentage-wrong", audit.Error, "A percentage that does not follow from the two figures it stands with.",
			"The figures as printed, any value that rounds to them; a change of the figure or, for times, of the speed; per GPU where it says so."},
		{"factor-wrong", audit.Error, "A factor (\"1.63x faster\") that does not follow from the two figures it stands with.",
			"As percentage-wrong; times are divided the other way round than rates."},
		{"difference-wrong", audit.Error, "A difference (\"faster by 0.12s\") that is not that of its two figures, or has its direction reversed.",
			"The figures as printed, any value that rounds to them."},
	}},
	{gainsWithinNoise, []check{{"within-noise", audit.Warning, "A choice or gain that rests on a difference within the noise of single runs.",
		"The spread of equal configurations in the document, else 2 %; a note where the document draws no conclusion."}}},
	{contradictedTPOTs, []check{{"claim-on-broken-figure", audit.Warning, "A ratio or table row that uses a time per token that the block's own latency contradicts, or that has the first token in it.",
		"TPOT below half of (latency - TTFT) / (n - 1), with next to nothing as its median; or a TPOT that includes the first token. Where the times of the tokens after the first differ from the claim by over 10 %, or in their direction."}}},
	{gainsByDuration, []check{{"gain-not-by-duration", audit.Warning, "A gain in throughput that is another one, or none, where throughput is tokens over duration.",
		"Comparisons, tables of gains and rankings of runs whose printed throughput is not their count over the duration; a note where the gain changes by less than a percentage point."}}},
	{unmatchedFigures, []check{{"figure-unmatched", audit.Error, "A figure of a table or summary that no block of the document has.",
		"Documents with blocks that have the metric; a warning for prose and for approximate figures."}}},
	{derivedLatencies, []check{{"latency-not-derived", audit.Warning, "A latency of a request that no block prints and that its own parts do not make.",
		"TTFT + TPOT (n - 1), with the times and the tokens of the line, or of the runs that it may be of, where no block prints latencies; 10 % are allowed for answers of one length, 30 % for varied ones."}}},
	{replicas, []check{{"replicas-not-measured", audit.Error, "A throughput that was multiplied by a number of replicas, of which one was measured.",
		"No block has the product; the ratio of one replica is recomputed."}}},
	{wrongRankings, []check{{"ranking-wrong", audit.Error, "A ranking (A > B > C) that its own figures contradict.",
		"Figures as printed; equal ones may stand in either order."}}},
	{hiddenCosts, []check{{"hidden-cost", audit.Warning, "A figure that got worse by more than a tenth and is not shown beside the gain.",
		"Pairs of blocks that a table compares, combined options against the part that was measured alone, TTFT by its median where a few requests stalled; a note where it is shown."}}},
	{unequalWork, []check{{"unequal-work", audit.Warning, "Compared blocks that did not do the same work.",
		"Different success, prompts or generated totals; a note for generated totals within 5 %."}}},
	{combinedOptions, []check{{"baseline-mixed", audit.Warning, "A gain of an option that holds other changes besides.",
		"Rows of options that contain each other; the commands of the two blocks."}}},
	{optionGains, []check{{"option-without-run", audit.Warning, "A row of the table of options of which the document has no experiment.",
		"No heading, caption or command shares a word with it."}}},
	{recommended, []check{
		{"recommended-underuses-gpus", audit.Warning, "The recommended command starts fewer GPUs than the hardware of the document has.",
			"A number of GPUs in the text and in the command; the table multiplies or the baseline uses more."},
		{"recommended-not-measured", audit.Warning, "No block was measured with the recommended command.",
			"Flags that say nothing of performance are left out; blocks whose command is known."},
	}},
	{betterBaselines, []check{{"baseline-not-best", audit.Warning, "A gain quoted against a start that was not the best measured one.",
		"A ranking of starts, and a table against one of the lower; a note where the better start was built upon."}}},
	{promptTotals, []check{{"totals-across-workloads", audit.Note, "Total token throughput where nearly all tokens are prompt.",
		"Tables whose rows differ in length, and prose."}}},
	{cachedTTFTs, []check{{"claim-on-cached-ttft", audit.Warning, "A statement about a time to first token that the prefix cache explains.",
		"One prompt alone took under four decode steps, and prompts together took several times as long each."}}},
	{selectiveCitations, []check{{"selective-citation", audit.Note, "Prose that cites one configuration of a model where another is better in that figure.",
		"Equal load; more than 2 % better."}}},
	{modelSizes, []check{{"size-claim", audit.Note, "A comparison of model sizes that the parameters read per token contradict.",
		"Both models are known."}}},
	{boundClaims, []check{{"bound-claim", audit.Note, "Called latency-bound, while a step takes about as long as the weights take to read.",
		"Model, accelerator and nodes are known."}}},
	{degradationClaims, []check{{"degradation-claim", audit.Note, "Said to degrade most under load, while a figure of another model grows more.",
		"Mean TTFT and TPOT at the largest load of each model over those at its smallest."}}},
	{missingLoads, []check{{"missing-cell", audit.Note, "A model that lacks a load which all others were measured at.",
		"Three models or more."}}},
	{nodeCount, []check{{"count-contradiction", audit.Note, "A number of machines in the title that the blocks exceed.",
		"Numbers of nodes in headings."}}},
}

// commandRules hold commands against headings and blocks.
var commandRules = []rule{
	{engineContradictions, []check{{"engine-contradicts-heading", audit.Warning, "A command starts another engine than the one that the heading above it names.",
		"For serving commands under a heading, caption or label that names engines; a caption or comment goes before a heading, and the document's title does not count."}}},
	{modelContradictions, []check{{"model-contradicts-heading", audit.Warning, "A command serves another model than the document says it is about.",
		"Where a section on the model or a heading names one; owners, formats such as -FP8 and dates are left out of the comparison, drafts and placeholders are not models."}}},
	{layoutContradictions, []check{{"flag-contradicts-heading", audit.Warning, "A heading gives a parallelism, such as TP4, that the command under it does not have.",
		"For TP, PP, DP, EP and DCP with a number, and for EP without one; a size that a command leaves out is 1, and vLLM's expert parallelism has the size of its layout."}}},
	{tooManyDevices, []check{{"more-devices-than-stated", audit.Warning, "A command needs more devices than the document says there are.",
		"For tensor times pipeline parallelism, where the text counts the devices of one node."}}},
	{shellFaults, []check{{"command-not-shell-safe", audit.Warning, "A shell makes something else of a command than its writer meant.",
		"For commands, not for flags alone: brace expansion, lost quotes of JSON, unquoted & and parentheses, quotes and dashes of print, a continuation followed by spaces, a line that lacks one."}}},
	{placeholders, []check{{"command-placeholder", audit.Note, "A command has placeholders or private addresses that a reader must fill in.",
		"Single capital letters, <words>, variables that nothing in the document defines, addresses of private networks; one note a document."}}},
	{flagsWithoutEffect, []check{{"flag-without-effect", audit.Warning, "A flag does nothing as it is given.",
		"vllm bench serve's flags of another dataset than the one chosen (random where none is), and SGLang's --enable-dp-attention at a data-parallel size of 1."}}},
	{scriptContradictsBlock, []check{{"script-contradicts-block", audit.Warning, "The comment above a block names another value of a flag than the script that the block stands under.",
		"Where a comment spells flags; one finding a script, and a note where it stands for several variants, each with a comment of its own."}}},
	{changeNotRecorded, []check{{"change-not-recorded", audit.Warning, "A heading names a change that no command, model or flag of its blocks shows.",
		"Where the blocks have commands or flags; for changes other than quantisation only where an earlier block has the same words and other figures."}}},
	{severalChanges, []check{{"several-changes", audit.Warning, "A step changes several things at once against every earlier step of its engine and load.",
		"Flags of one feature count once (layout, speculation, attention backend), flags that shape answers not at all; comparisons of a baseline with a result are no steps."}}},
	{published(unfitBenchmarks), []check{
		{"benchmark-command-missing", audit.Note, "Blocks fit none of the benchmark commands that the document shows.",
			"By number of requests and lengths; a command with placeholders fits any, and profiles in YAML count as commands."},
		{"requests-missing", audit.Warning, "A block has fewer requests than its command asked for, and does not say that any failed.",
			"Where the run says how many it asked for; else from 20, where the number is none that one asks for (no multiple of 10, no power of two), below a command's and at least a third of it."},
	}},
	{draftModel, []check{{"text-contradiction", audit.Note, "The text speaks of a draft model where every command speculates with the model's own layers.",
		"Where the text has a chosen draft model or one trained on something, and the commands tell their method."}}},
}

// practiceRules look at how a publication measured and compared.
var practiceRules = []rule{
	{published(failuresNotReported), []check{{"failures-not-reported", audit.Note, "Blocks do not say how many requests failed.",
		"For documents that publish; one note a document."}}},
	{published(noRepeats), []check{{"no-repeats", audit.Note, "No configuration is measured twice, and no interval is given.",
		"For documents with several configurations of one load, none of them repeated."}}},
	{published(environment), []check{{"environment-missing", audit.Note, "The document leaves out parts of the environment that its figures depend on.",
		"For documents that publish: engine and driver versions, number and form factor of devices, clocks, the client's version, the date."}}},
	{published(duplicates), []check{{"duplicate-block", audit.Warning, "Two blocks print the same figures: one is a copy and no second measurement.",
		"Where every figure of at least six is equal; copies under another command are a finding of their own."}}},
	{published(repeatedSetups), []check{
		{"same-setup-differs", audit.Warning, "Two measurements of one command and load differ by more than 5 % in throughput.",
			"Where command, flags, captions and what was exported are equal, and no heading names a change that they do not show."},
		{"noise-floor", audit.Note, "Two measurements of one command and load show how far figures move by themselves.",
			"As same-setup-differs, within 5 %; a flag that repeats the engine's default counts as absent."},
	}},
	{published(unstableTails), []check{{"tail-unstable", audit.Note, "Runs with nearly equal throughput differ by more than 1.7 times in a P99.",
		"For runs of one engine and load with throughput within 2 % and mean TPOT within 10 %; one note a document."}}},
	{published(overloaded), []check{{"compared-under-overload", audit.Warning, "Engines are compared at one rate that one of them cannot hold.",
		"Where the rate is recorded: one run ends within 8 % of the sending time after it, the other takes over 15 % longer at twice the latency."}}},
	{published(oneFactor), []check{{"one-factor-search", audit.Note, "Options were tried one at a time from a moving start, so that none was tried together with another.",
		"Where at least three options of one engine were changed on one load and no two of them have all four combinations."}}},
	{mojibake, []check{{"mojibake", audit.Note, "Text was decoded with the wrong character set.",
		"For sequences that UTF-8 leaves when it is read as a Western single-byte set; one note a document."}}},
	{published(concurrencyIsPeak), []check{{"concurrency-is-peak", audit.Note, "The line on maximum concurrency repeats the measured peak and is no limit of the client.",
		"Where three blocks or more have both, equal in all of them, with three values or more."}}},
	{published(promptLengths), []check{{"prompt-length-differs", audit.Note, "Models of one table were sent prompts of slightly different length.",
		"Where input tokens per request are whole numbers that differ by less than 1 %."}}},
}

// published makes a check hold for publications alone.
func published(find func(*document) []audit.Finding) func(*document) []audit.Finding {
	return func(d *document) []audit.Finding {
		if !publishes(d) {
			return nil
		}
		return find(d)
	}
}

// publishes reports whether a file is a publication and not a client's output
// that was saved: it has results, and headings, commands or tables that say
// what they are of.
func publishes(d *document) bool {
	doc := d.file.Doc
	switch {
	case len(d.file.Runs) == 0:
		return false
	case len(d.file.Runs) > 1:
		return len(doc.Sections) > 2 || len(doc.Scripts) > 0 || len(doc.Tables) > 0
	}
	return len(doc.Sections) > 2 && len(doc.Tables) > 0
}

// Checks lists every type of finding, also those of figures.
func Checks() []audit.Check {
	all := audit.RunChecks()
	for _, r := range rules() {
		for _, c := range r.checks {
			all = append(all, audit.Check(c))
		}
	}
	return append(all, audit.AcrossChecks()...)
}

// Audit audits files, each alone and then beside each other. Findings come by
// file and line.
func Audit(files []interop.File, o audit.Options) []audit.Finding {
	var out []audit.Finding
	for i := range files {
		f := &files[i]
		out = append(out, audit.Runs(f, o)...)
		if f.Doc != nil {
			out = append(out, audit.Gather(ofDocument(f, o, rules()))...)
		}
	}
	out = append(out, audit.Across(files)...)
	audit.Sort(out, files)
	return out
}

// ofDocument are what rules find in a document, without repeats.
func ofDocument(f *interop.File, o audit.Options, rules []rule) []audit.Finding {
	d := readDocument(f, o)
	var out []audit.Finding
	for _, r := range rules {
		out = append(out, r.find(d)...)
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(out, func(f audit.Finding) bool {
		key := f.Place.String() + f.Type + f.Text
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// readDocument reads what a document says of its runs.
func readDocument(f *interop.File, o audit.Options) *document {
	d := &document{file: f, options: o, steps: stepsOf(f)}
	for i := range f.Runs {
		d.runs = append(d.runs, newCitedRun(&f.Runs[i]))
	}
	d.configurations = configurationsOf(d.runs)
	for i := range f.Doc.Tables {
		d.readTable(&f.Doc.Tables[i])
	}
	for _, t := range f.Doc.Prose {
		d.readLine(t)
	}
	return d
}
