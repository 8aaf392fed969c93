package workload

import "time"

// Spec says which requests to send and when. Zero fields take the defaults of
// `vllm bench serve`; see Defaults. JSON keys, YAML keys and flags share one
// spelling (a flag has - for _).
type Spec struct {
	Dataset    string  `json:"dataset_name" yaml:"dataset_name"` // see Datasets
	Path       string  `json:"dataset_path,omitempty" yaml:"dataset_path,omitempty"`
	ImagesAt   string  `json:"-" yaml:"-"`                                         // directory of the images that rows name, on another machine than the one that chose them: see At
	NumPrompts int     `json:"num_prompts,omitempty" yaml:"num_prompts,omitempty"` // 0: 1000 (random, sharegpt) or the whole file (traces, jsonl)
	Seed       uint64  `json:"seed" yaml:"seed"`
	Rate       Rate    `json:"request_rate,omitempty" yaml:"request_rate,omitempty"` // requests/s; +Inf: all at once; 0: a trace's own times, else all at once
	Arrival    string  `json:"arrival,omitempty" yaml:"arrival,omitempty"`           // inf, constant, poisson, gamma, trace; "": see Defaults
	Burstiness float64 `json:"burstiness,omitempty" yaml:"burstiness,omitempty"`     // gamma shape; 1 is Poisson
	Speed      float64 `json:"speed,omitempty" yaml:"speed,omitempty"`               // trace time runs this much faster; 0: 1

	// MaxConcurrency is part of the workload: the wait for it is a field of
	// the call. 0: no limit.
	MaxConcurrency int `json:"max_concurrency,omitempty" yaml:"max_concurrency,omitempty"`

	RampStrategy string  `json:"ramp_up_strategy,omitempty" yaml:"ramp_up_strategy,omitempty"` // linear, exponential
	RampStart    float64 `json:"ramp_up_start_rps,omitempty" yaml:"ramp_up_start_rps,omitempty"`
	RampEnd      float64 `json:"ramp_up_end_rps,omitempty" yaml:"ramp_up_end_rps,omitempty"`

	IgnoreEOS bool `json:"ignore_eos,omitempty" yaml:"ignore_eos,omitempty"`

	RandomInputLen   int     `json:"random_input_len,omitempty" yaml:"random_input_len,omitempty"`     // 1024
	RandomOutputLen  int     `json:"random_output_len,omitempty" yaml:"random_output_len,omitempty"`   // 128
	RandomRangeRatio float64 `json:"random_range_ratio,omitempty" yaml:"random_range_ratio,omitempty"` // lengths in [floor(L(1-r)), ceil(L(1+r))]
	RandomPrefixLen  int     `json:"random_prefix_len,omitempty" yaml:"random_prefix_len,omitempty"`   // shared by all prompts, before the random part

	ShareGPTOutputLen int  `json:"sharegpt_output_len,omitempty" yaml:"sharegpt_output_len,omitempty"` // 0: the answer's own length
	DisableShuffle    bool `json:"disable_shuffle,omitempty" yaml:"disable_shuffle,omitempty"`
	NoOversample      bool `json:"no_oversample,omitempty" yaml:"no_oversample,omitempty"`
	OutputLen         int  `json:"output_len,omitempty" yaml:"output_len,omitempty"`               // jsonl: rows without their own; gsm8k: in place of the answers'
	CustomOutputLen   int  `json:"custom_output_len,omitempty" yaml:"custom_output_len,omitempty"` // 256; -1: each row's own

	Steps    string `json:"steps,omitempty" yaml:"steps,omitempty"`       // RATE:TIME,... in place of a rate
	Duration Span   `json:"duration,omitempty" yaml:"duration,omitempty"` // no request is due from then on; NumPrompts, where set, bounds too

	// Pass is the requests of a pass over the dataset, whose rows come again in each: a load that Duration ends sends whole
	// ones, and the nonce is another one in each of them. 0: there are no passes. For closed loops without NumPrompts.
	Pass int `json:"pass,omitempty" yaml:"-" jsonschema:"-"`

	UntilPrecision Share  `json:"until_precision,omitempty" yaml:"until_precision,omitempty"` // the run ends when UntilMetric is known so well; NumPrompts and Duration are then the most
	UntilMetric    string `json:"until_metric,omitempty" yaml:"until_metric,omitempty"`

	// Conversations: NumPrompts, rates and MaxConcurrency count conversations.
	Turns             Range  `json:"turns,omitempty" yaml:"turns,omitempty"`                     // 4; of a file: those with fewer are left out, of others the rest
	TurnInputLen      Range  `json:"turn_input_len,omitempty" yaml:"turn_input_len,omitempty"`   // 128; made-up ones
	TurnOutputLen     Range  `json:"turn_output_len,omitempty" yaml:"turn_output_len,omitempty"` // 128; of a file: in place of the answers' own
	SystemLen         int    `json:"system_len,omitempty" yaml:"system_len,omitempty"`           // made-up ones: a system prompt that all share
	ThinkTime         string `json:"think_time,omitempty" yaml:"think_time,omitempty"`           // mean, exponential; or constant:TIME
	History           string `json:"history,omitempty" yaml:"history,omitempty"`                 // answers (a file's default), generated
	NoSessionAffinity bool   `json:"no_session_affinity,omitempty" yaml:"no_session_affinity,omitempty"`

	SessionHeader string `json:"session_header,omitempty" yaml:"session_header,omitempty"` // name of a header that says to which session a request belongs; "": none

	// Sessions of agents: NumPrompts, rates and MaxConcurrency count sessions.
	StartRatio  string `json:"start_ratio,omitempty" yaml:"start_ratio,omitempty"` // 0.25..0.75: where the sessions begin that are there at first
	MaxIdle     Span   `json:"max_idle,omitempty" yaml:"max_idle,omitempty"`
	MaxContext  int    `json:"max_context,omitempty" yaml:"max_context,omitempty"`   // tokens of prompt and answer; 0: any number
	OverContext string `json:"over_context,omitempty" yaml:"over_context,omitempty"` // drop, truncate

	LoraModules    []string `json:"lora_modules,omitempty" yaml:"lora_modules,omitempty"`       // model names in place of the run's
	LoraAssignment string   `json:"lora_assignment,omitempty" yaml:"lora_assignment,omitempty"` // random, round-robin

	RandomImages    int    `json:"random_images,omitempty" yaml:"random_images,omitempty"`         // of each request
	RandomImageSize string `json:"random_image_size,omitempty" yaml:"random_image_size,omitempty"` // 512x512

	Tokenizer string `json:"tokenizer,omitempty" yaml:"tokenizer,omitempty"` // a tokenizer.json or its directory, a model in the Hugging Face cache, server, or estimate; "": package token's approximation
	Nonce     string `json:"nonce,omitempty" yaml:"nonce,omitempty"`         // makes the start of every prompt this run's own

	RandomRNG       string `json:"random_rng,omitempty" yaml:"random_rng,omitempty"`               // vllm: the prompts of vllm bench serve; "": our own
	RandomIDs       bool   `json:"random_ids,omitempty" yaml:"random_ids,omitempty"`               // token ids in place of text
	RandomBatchSize int    `json:"random_batch_size,omitempty" yaml:"random_batch_size,omitempty"` // texts of a scenario's E request, documents of its R request; 1
	Scenario        string `json:"scenario,omitempty" yaml:"scenario,omitempty"`                   // lengths in place of the random ones: D(in,out), N, U, E, R
	ShareGPTFilter  string `json:"sharegpt_filter,omitempty" yaml:"sharegpt_filter,omitempty"`     // vllm, guidellm

	SonnetInputLen  int `json:"sonnet_input_len,omitempty" yaml:"sonnet_input_len,omitempty"`   // 550, at most
	SonnetOutputLen int `json:"sonnet_output_len,omitempty" yaml:"sonnet_output_len,omitempty"` // 150
	SonnetPrefixLen int `json:"sonnet_prefix_len,omitempty" yaml:"sonnet_prefix_len,omitempty"` // 200 of the input, shared

	PrefixRepetitionPrefixLen   int `json:"prefix_repetition_prefix_len,omitempty" yaml:"prefix_repetition_prefix_len,omitempty"`     // 256
	PrefixRepetitionSuffixLen   int `json:"prefix_repetition_suffix_len,omitempty" yaml:"prefix_repetition_suffix_len,omitempty"`     // 256
	PrefixRepetitionNumPrefixes int `json:"prefix_repetition_num_prefixes,omitempty" yaml:"prefix_repetition_num_prefixes,omitempty"` // 10
	PrefixRepetitionOutputLen   int `json:"prefix_repetition_output_len,omitempty" yaml:"prefix_repetition_output_len,omitempty"`     // 128

	GSPNumGroups       int     `json:"gsp_num_groups,omitempty" yaml:"gsp_num_groups,omitempty"`               // 64
	GSPPromptsPerGroup int     `json:"gsp_prompts_per_group,omitempty" yaml:"gsp_prompts_per_group,omitempty"` // 16, on average with gsp_zipf_alpha
	GSPSystemPromptLen int     `json:"gsp_system_prompt_len,omitempty" yaml:"gsp_system_prompt_len,omitempty"` // 2048
	GSPQuestionLen     int     `json:"gsp_question_len,omitempty" yaml:"gsp_question_len,omitempty"`           // 128
	GSPOutputLen       int     `json:"gsp_output_len,omitempty" yaml:"gsp_output_len,omitempty"`               // 256
	GSPZipfAlpha       float64 `json:"gsp_zipf_alpha,omitempty" yaml:"gsp_zipf_alpha,omitempty"`               // exponent of the groups' popularity; 0: all alike

	HFName      string `json:"hf_name,omitempty" yaml:"hf_name,omitempty"`             // of the dataset that the path's files are of
	HFSubset    string `json:"hf_subset,omitempty" yaml:"hf_subset,omitempty"`         // "": the only one
	HFSplit     string `json:"hf_split,omitempty" yaml:"hf_split,omitempty"`           // train; test of some
	HFOutputLen int    `json:"hf_output_len,omitempty" yaml:"hf_output_len,omitempty"` // 0: the dataset's own

	BurstGPTModel string `json:"burstgpt_model,omitempty" yaml:"burstgpt_model,omitempty"` // rows of this model only; "": all
}

// length is the duration of a valid spec.
func (s Spec) length() time.Duration {
	d, _ := s.Duration.Duration() // Validate has seen the error
	return d
}

// timed reports whether the load is bounded by time.
func (s Spec) timed() bool { return s.Steps != "" || s.Duration != "" }

// closed reports whether a request goes out when another one ends, with no
// schedule of its own.
func (s Spec) closed() bool { return s.Arrival == "inf" && s.MaxConcurrency > 0 }
