package vllmbench

// rustRows are the flags that only the client in Rust has.
func rustRows() []Row {
	return []Row{
		{Name: "num-runs", State: Differs, Ours: "`--repeat`", do: numRuns, Note: "with other seeds in each run"},
		{Name: "reset-prefix-cache", State: Differs, Ours: "`--cache reset`", do: resetCache},
		{Name: "sweep-max-concurrency", State: Differs, Ours: "`--sweep concurrency=...`", do: sweep("concurrency"), Note: "in ascending order"},
		{Name: "sweep-request-rate", State: Differs, Ours: "`--sweep rate=...`", do: sweep("rate"), Note: "in ascending order; inf is refused, `--sweep rate=auto` has all requests at once"},
		refused("sweep-num-prompts-factor", "every run of --sweep has --num-prompts requests, or --duration: give one of them"),
		said("sweep-summary-percentiles", "the table of --sweep has its own columns, and --metric-percentiles adds percentiles"),
		refused("compare", "perflab compare RUN RUN compares runs, with intervals, and takes vLLM's result files too"),
		refused("dry-run", "nothing prints the prompts alone: --num-prompts 1 makes the shortest run"),
		{Name: "prompt-token-ids", State: Differs, Ours: "`--random-ids`", do: randomIDs, Note: "needs `--tokenizer`"},
		refused("max-model-len", "requests are not filtered by the context: give lengths that fit, which the server checks"),
		refused("random-cache-hit-fraction", "give --dataset-name shared-prefix, whose groups share a prompt's beginning"),
		refused("random-cache-ratio", "give --dataset-name shared-prefix, whose groups share a prompt's beginning"),
		said("steady-state-threshold", "the steady part of a run is found from its calls, whatever the threshold"),
		said("steady-state-min-window", "the steady part of a run is found from its calls, whatever the window"),
		accepted("no-steady-state", "figures of the steady part are apart from the others anyway"),
		refused("profile-batch-threshold", "--profile covers the whole run; start the server's profiler yourself for a part of it"),
		refused("profile-duration", "--profile covers the whole run; start the server's profiler yourself for a part of it"),
	}
}

// rustConversationRows are the flags of its conversations.
func rustConversationRows() []Row {
	conversations := "give --dataset-name conversations, with --turns, --turn-input-len, --turn-output-len and --think-time"
	var rows []Row
	for _, name := range []string{
		"multi-turn", "multi-turn-num-turns", "multi-turn-min-turns", "multi-turn-max-turns", "multi-turn-concurrency", "multi-turn-delay-ms", "per-turn-input-len",
	} {
		rows = append(rows, refused(name, conversations))
	}
	shared := conversations + "; --system-len is a beginning that all share"
	return append(rows, refused("multi-turn-prefix-global-ratio", shared), refused("multi-turn-prefix-conversation-ratio", shared))
}
