package vllmbench

import "slices"

// State is what a flag of vLLM's is in perflab bench.
type State string

// States of a flag.
const (
	Same     State = "same"     // the flag of that name means the same
	Differs  State = "differs"  // another flag, or another default or meaning
	Accepted State = "accepted" // taken, and without effect
	Refused  State = "refused"
)

// Row is what one flag of vllm bench serve is in perflab bench.
type Row struct {
	Name  string // without --
	State State
	Ours  string // how perflab bench says it, where it is not the flag of that name; "" for nothing
	Note  string // why; of a refused one also what to give instead
	Say   bool   // the note is told whoever uses the flag, as what it asks for does not come

	only string // datasets, in vLLM's names, to which the flag applies; "" for all
	do   func(t *translation, it item) error
}

// Rows has every flag that vLLM's clients have, in groups.
func Rows() []Row {
	return slices.Concat(endpointRows(), loadRows(), datasetRows(), trafficRows(), figureRows(), fileRows(), rustRows(), rustConversationRows(), olderRows())
}

func rowOf(name string) (Row, bool) {
	all := Rows()
	i := slices.IndexFunc(all, func(r Row) bool { return r.Name == name })
	if i < 0 {
		return Row{}, false
	}
	return all[i], true
}

// Datasets of vLLM to which flags apply.
const (
	randoms = "random random-mm random-rerank"
	ofFiles = "sharegpt custom custom_audio custom_image hf spec_bench speed_bench"
)

func same(name, note string) Row { return Row{Name: name, State: Same, Note: note} }
func sampled(name, note string) Row {
	return Row{Name: name, State: Same, Note: note, do: (*translation).sampled}
}
func accepted(name, note string) Row { return Row{Name: name, State: Accepted, Note: note} }
func said(name, note string) Row     { return Row{Name: name, State: Accepted, Note: note, Say: true} }
func refused(name, note string) Row  { return Row{Name: name, State: Refused, Note: note} }

// of says to which datasets rows apply.
func of(datasets string, rows ...Row) []Row {
	for i := range rows {
		rows[i].only = datasets
	}
	return rows
}

func endpointRows() []Row {
	return []Row{
		{Name: "backend", State: Differs, do: (*translation).backend, Ours: "`--backend`",
			Note: "perflab's default is openai-chat, the API that applications use: its prompts go through the model's chat template. Behind `serve` it is openai, as in vLLM"},
		same("base-url", "several, by commas, are loaded as replicas"),
		{Name: "host", State: Same, do: unlessURL},
		{Name: "port", State: Same, do: unlessURL},
		{Name: "endpoint", State: Same, Note: "by default that of the backend"},
		same("header", ""),
		same("model", "without it the server is asked for its first model, as in vLLM"),
		same("served-model-name", ""),
		same("insecure", ""),
		{Name: "ready-check-timeout-sec", State: Same, Note: "waits for `/health`, and sends no prompt of the measured set as vLLM does"},
		{Name: "extra-body", State: Same, do: leaveOut}, // which finish gives
		{Name: "logprobs", State: Differs, Ours: "`--extra-body '{\"logprobs\": N}'`", do: logprobs,
			Note: "sent to /v1/completions alone, as by vLLM"},
		said("use-beam-search", "vllm bench serve reads it and sends nothing for it"),
		said("request-id-prefix", "requests carry no id of the client's; a server that wants one takes it by --header"),
		sampled("top-p", ""), sampled("top-k", ""), sampled("min-p", ""), sampled("temperature", "without it the server's default, as in vLLM"),
		sampled("frequency-penalty", ""), sampled("presence-penalty", ""),
		sampled("repetition-penalty", "vLLM sends 1 to /v1/completions where it is not given, and so does perflab behind `serve`; else the server's default"),
		same("lora-modules", ""),
		{Name: "lora-assignment", State: Same, do: needing("lora-modules")},
		{Name: "chat-template-kwargs", State: Refused, only: ofFiles,
			Note: `the server applies the chat template: give --extra-body '{"chat_template_kwargs": {...}}' with --backend openai-chat`},
	}
}

func loadRows() []Row {
	return []Row{
		{Name: "seed", State: Differs, Ours: "`--seed`", Note: "without it each run draws a seed of its own, so that the server's prefix cache holds none of its prompts; behind `serve` it is 0, as in vLLM"},
		{Name: "num-prompts", State: Same, do: numPrompts, Note: "of a trace the default is the whole file; behind `serve` it is 1000"},
		{Name: "dataset-name", State: Differs, Ours: "`--dataset-name`", do: (*translation).datasetName, Note: "see the table of datasets"},
		same("dataset-path", ""),
		accepted("no-stream", "data sets are read as files"),
		{Name: "no-oversample", State: Same, do: ofLines},
		{Name: "disable-shuffle", State: Same, do: ofLines, Note: "made-up prompts have no order to shuffle"},
		accepted("trust-remote-code", "no code of a model is loaded"),
		same("tokenizer", "a name is looked up in the Hugging Face cache, else the server counts, else lengths are estimated, and the run says which; behind `serve` with a tokenizer the random prompts are those that vLLM makes from the same seed (`--random-rng vllm`)"),
		{Name: "tokenizer-mode", State: Accepted, do: tokenizerMode, Note: "a `tokenizer.json` is read whatever the mode; others are not"},
		accepted("skip-tokenizer-init", "without `--tokenizer` none is opened"),
		accepted("skip-chat-template", "the client never applies a chat template: the server does, of `--backend openai-chat`"),
		{Name: "input-len", State: Differs, Ours: "`--random-input-len`", only: randoms, do: inputLen},
		{Name: "output-len", State: Differs, Ours: "the dataset's own `--...-output-len`", do: outputLen, Note: "of a dataset that has one; `--output-len` itself is jsonl's"},
		same("ignore-eos", "as in vLLM always on with random prompts"),
	}
}

func trafficRows() []Row {
	return []Row{
		{Name: "request-rate", State: Same, do: ownRate, Note: "Poisson arrivals, as in vLLM; `--arrival` has others"},
		{Name: "burstiness", State: Same, do: burstiness},
		same("max-concurrency", ""),
		same("ramp-up-strategy", ""),
		{Name: "ramp-up-start-rps", State: Same, do: needing("ramp-up-strategy")},
		{Name: "ramp-up-end-rps", State: Same, do: needing("ramp-up-strategy")},
		{Name: "probe-request-rate", State: Refused, do: refusedUnless("0", "0.0"),
			Note: "requests beside the load are not sent: run a second perflab bench against the server with --request-rate while the first one runs"},
		{Name: "num-warmups", State: Differs, Ours: "`--num-warmups`",
			Note: "8 by default (0 behind `serve`), since the first requests pay for compiled kernels and connections; their prompts are others than the measured ones, where vLLM repeats the first of those"},
		{Name: "profile", State: Same, Note: "figures of a run that is profiled are slower, and the run says so"},
		{Name: "self-timed", State: Accepted, only: "timed_trace", Note: "a trace keeps its own times"},
		{Name: "no-self-timed", State: Accepted, only: "timed_trace", do: leaveOut, Note: "`--request-rate` replaces a trace's own times"},
		accepted("disable-tqdm", "progress goes to standard error, and is a plain line now and then when that is no terminal"),
	}
}

func figureRows() []Row {
	return []Row{
		{Name: "percentile-metrics", State: Differs, Ours: "`--percentile-metrics`", do: sections,
			Note: "e2el too by default (behind `serve` as in vLLM); client_queue_time is `queue` here, e2el_including_client_queue is `e2el_due`"},
		same("metric-percentiles", ""),
		{Name: "goodput", State: Same, Note: "e2el, ttft and tpot, separated by spaces as in vLLM or by commas; more figures are known"},
	}
}

func fileRows() []Row {
	return []Row{
		same("save-result", "vLLM's keys and its file name; figures that are missing are null, and the verdict is added"),
		{Name: "save-detailed", State: Same, do: saved},
		same("append-result", ""),
		{Name: "result-dir", State: Same, do: saved},
		{Name: "result-filename", State: Same, do: saved},
		{Name: "label", State: Same, do: saved},
		same("metadata", ""),
		{Name: "plot-timeline", State: Differs, Ours: "`--html FILE`", do: plotPage, Note: "the page draws the run over time; without `--html` it is named as vLLM names its own"},
		{Name: "plot-dataset-stats", State: Differs, Ours: "`--html FILE`", do: plotPage, Note: "the page draws lengths and latencies"},
		{Name: "timeline-itl-thresholds", State: Accepted, Note: "the page has no colours by ITL: --goodput and --slo judge by bounds", Say: true},
	}
}

// olderRows are flags of earlier releases, and --config.
func olderRows() []Row {
	return []Row{
		{Name: "endpoint-type", State: Differs, Ours: "`--backend`", do: (*translation).backend, Note: "goes before `--backend`, which named the server in vLLM up to 0.10"},
		accepted("custom-skip-chat-template", "the client never applies a chat template"),
		same("sonnet-input-len", ""), same("sonnet-output-len", ""), same("sonnet-prefix-len", ""),
		refused("config", "a file of flags is not read: give its flags on the command line"),
	}
}
