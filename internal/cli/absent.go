package cli

// vllmOnlyFlags are flags of vllm bench serve that perflab bench does not have, each
// with the reason or what to give instead: somebody's script will use them.
var vllmOnlyFlags = map[string]string{
	"tokenizer-mode":     "a tokenizer.json (--tokenizer) says all there is to set",
	"trust-remote-code":  "no code of a model is loaded",
	"skip-chat-template": "the server applies the chat template; --backend openai sends plain prompts",
	"disable-tqdm":       "progress goes to standard error, and is a plain line now and then when that is no terminal",
	"custom-output-len":  "give --output-len with --dataset-name jsonl",
	"hf-name":            "data sets are read from files: --dataset-name and --dataset-path",
	"hf-subset":          "data sets are read from files: --dataset-name and --dataset-path",
	"hf-split":           "data sets are read from files: --dataset-name and --dataset-path",
	"hf-output-len":      "data sets are read from files: --dataset-name and --dataset-path",
	"use-beam-search":    "beams do not stream",
	"logprobs":           `give --extra-body '{"logprobs": true}'`,
	"top-k":              `give --extra-body '{"top_k": K}'`,
	"min-p":              `give --extra-body '{"min_p": P}'`,
	"frequency-penalty":  `give --extra-body '{"frequency_penalty": X}'`,
	"presence-penalty":   `give --extra-body '{"presence_penalty": X}'`,
	"repetition-penalty": `give --extra-body '{"repetition_penalty": X}'`,
	"num-runs":           "give --repeat",
	"reset-prefix-cache": "give --cache reset",
	"compare":            "perflab compare RUN RUN compares runs, with intervals",
	"endpoint-type":      "give --backend",
	"request-id-prefix":  "requests carry no id of the client's; a server that wants one takes it by --header",
	"plot-timeline":      "give --html, whose page draws the run over time",
	"plot-dataset-stats": "give --html, whose page draws lengths and latencies",

	"random-mm-base-items-per-request": "give --random-images",
	"random-mm-bucket-config":          "give --random-image-size",
	"random-mm-limit-mm-per-prompt":    "give --random-images",

	"profile": "start the engine's profiler yourself",
}
