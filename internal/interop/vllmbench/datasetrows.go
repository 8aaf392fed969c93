package vllmbench

import "slices"

// datasetRows are the flags of single datasets.
func datasetRows() []Row {
	file := "data sets are read from files: --dataset-name and --dataset-path"
	return slices.Concat(
		of(randoms,
			Row{Name: "random-input-len", State: Same, do: randomLen},
			Row{Name: "random-output-len", State: Same, do: randomLen},
			Row{Name: "random-range-ratio", State: Differs, Ours: "`--random-range-ratio`, `--scenario`", do: (*translation).rangeRatio,
				Note: "one number for both lengths; two become `--scenario U(least,most)/(least,most)`"},
			same("random-prefix-len", ""),
			Row{Name: "random-batch-size", State: Differs, Ours: "`--random-batch-size`", do: (*translation).batchSize, Note: "with `--scenario E(LENGTH)`, whose requests have several texts; `--num-prompts` counts texts behind vLLM's flag and requests behind perflab's"},
		),
		of("random-rerank", refused("no-reranker", "embeddings are not compared with each other: give --backend score --scenario 'R(1024,100)'")),
		of("random-mm",
			Row{Name: "random-mm-base-items-per-request", State: Differs, Ours: "`--random-images`", do: leaveOut},
			Row{Name: "random-mm-num-mm-items-range-ratio", State: Refused, do: refusedUnless("0", "0.0"), Note: "every request has the same number of images: leave it out"},
			Row{Name: "random-mm-limit-mm-per-prompt", State: Differs, Ours: "`--random-images`", do: leaveOut, Note: "no more images than it allows"},
			Row{Name: "random-mm-bucket-config", State: Differs, Ours: "`--random-image-size`", do: leaveOut,
				Note: "width before height, as 256x256:0.5,1280x720:0.5; videos are refused"},
			accepted("enable-multimodal-chat", "with `--backend openai-chat` text and images are messages anyway"),
		),
		of("sharegpt", same("sharegpt-output-len", "")),
		of("prefix_repetition",
			same("prefix-repetition-prefix-len", ""), same("prefix-repetition-suffix-len", ""),
			same("prefix-repetition-num-prefixes", ""), same("prefix-repetition-output-len", "")),
		of("timed_trace",
			trace("timed-trace-chunk-hash-size", "512"), trace("timed-trace-sec-multiplier", "0.001"),
			trace("timed-trace-label-timestamp", "timestamp"), trace("timed-trace-label-input-length", "input_length"),
			trace("timed-trace-label-output-length", "output_length"), trace("timed-trace-label-hash-ids", "hash_ids")),
		of("custom custom_audio custom_image",
			same("custom-output-len", ""),
			refused("custom-ensure-client-side-data", "give --dataset-name jsonl, whose images of files are always sent as data: URLs")),
		of("hf", same("hf-subset", ""), same("hf-split", ""), same("hf-name", ""), same("hf-output-len", ""), refused("hf-text-column", file),
			refused("blazedit-min-distance", file), refused("blazedit-max-distance", file), refused("bfcl-categories", file),
			refused("asr-max-audio-len-sec", "audio is not sent"), refused("asr-min-audio-len-sec", "audio is not sent")),
		of("spec_bench", refused("spec-bench-output-len", jsonlOf), refused("spec-bench-category", jsonlOf)),
		of("speed_bench", refused("speed-bench-dataset-subset", jsonlOf), refused("speed-bench-output-len", jsonlOf), refused("speed-bench-category", jsonlOf),
			refused("speed-bench-config", jsonlOf), refused("speed-bench-max-input-len", jsonlOf)),
	)
}

const jsonlOf = `write its prompts as lines of JSON, {"prompt": "...", "output_tokens": N}, and give --dataset-name jsonl --dataset-path FILE`

// trace is a flag that says of a trace what is so in the one format that is read.
func trace(name, only string) Row {
	return Row{Name: name, State: Accepted, do: leaveOut, Note: "a trace of Mooncake's format has " + only + " there; others are refused"}
}

// Choice is a value of one of vLLM's flags, and what it is in perflab bench.
type Choice struct {
	Value string
	State State
	Ours  string // flags; "" where the value is the same
	Note  string
}

// Datasets has every value of vLLM's --dataset-name.
func Datasets() []Choice {
	return []Choice{
		{"random", Same, "", ""},
		{"random-mm", Differs, "--dataset-name random --random-images N", "images alone"},
		{"random-rerank", Differs, "--dataset-name random --scenario R(DOCUMENT,QUERY)", "half of the input length is the query, as in vLLM"},
		{"sharegpt", Same, "", "the same conversations, from the same seed"},
		{"burstgpt", Differs, "--dataset-name burstgpt", "arrivals are the trace's own unless there is `--request-rate`; behind `serve` all at once, as in vLLM"},
		{"prefix_repetition", Same, "", ""},
		{"timed_trace", Differs, "--dataset-name mooncake", "traces of Mooncake's format, with hash ids of 512 tokens and times in ms"},
		{"custom", Same, "", "the same lines, from the same seed"},
		{"custom_image", Refused, "", "give --dataset-name jsonl, whose rows may name images"},
		{"custom_audio", Refused, "", "audio is not sent"},
		{"hf", Same, "", "from the Hugging Face cache or from files of this machine: nothing is downloaded; the order is that of `--no-stream`"},
		{"spec_bench", Refused, "", jsonlOf},
		{"speed_bench", Refused, "", jsonlOf},
		{"speed-bench", Refused, "", jsonlOf},
	}
}

// Backends has every value of vLLM's --backend.
func Backends() []Choice {
	return []Choice{
		{"vllm", Same, "", ""}, {"openai", Same, "", ""}, {"openai-chat", Same, "", ""}, {"openai-responses", Same, "", ""},
		{"openai-embeddings", Same, "", ""}, {"vllm-pooling", Same, "", ""}, {"vllm-rerank", Same, "", ""},
		{"infinity-embeddings", Differs, "--backend openai-embeddings", "the same API, at `--endpoint /embeddings`"},
		{"openai-embeddings-chat", Refused, "", "embeddings of messages are not asked for: give --backend openai-embeddings"},
		{"openai-embeddings-clip", Refused, "", "embeddings of images are not asked for"},
		{"openai-embeddings-vlm2vec", Refused, "", "embeddings of images are not asked for"},
		{"infinity-embeddings-clip", Refused, "", "embeddings of images are not asked for"},
		{"openai-audio", Refused, "", "audio is not sent"},
	}
}

func choiceOf(choices []Choice, value string) (Choice, bool) {
	i := slices.IndexFunc(choices, func(c Choice) bool { return c.Value == value })
	if i < 0 {
		return Choice{}, false
	}
	return choices[i], true
}
