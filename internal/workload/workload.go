// Package workload turns a dataset, an arrival schedule and a seed into a
// deterministic sequence of requests.
//
//	w, err := workload.Open(workload.Spec{Dataset: "random", NumPrompts: 100})
//	for r := range w.All() { ... }
//
// Invariants: the sequence is a pure function of the Spec (and of the bytes of
// the dataset file); Due never decreases; shard i of n is exactly the requests
// whose Index % n == i.
package workload

import (
	"encoding/json"
	"math"
	"time"
)

// Spec says which requests to send and when. Zero fields take the defaults of
// `vllm bench serve`; see Defaults. JSON keys, YAML keys and flags share one
// spelling (a flag has - for _).
type Spec struct {
	Dataset    string  `json:"dataset_name"` // random, sharegpt, azure, mooncake, jsonl
	Path       string  `json:"dataset_path,omitempty"`
	NumPrompts int     `json:"num_prompts,omitempty"` // 0: 1000 (random, sharegpt) or the whole file (traces, jsonl)
	Seed       uint64  `json:"seed"`
	Rate       Rate    `json:"request_rate,omitempty"` // requests/s; 0 or +Inf: all at once
	Arrival    string  `json:"arrival,omitempty"`      // constant, poisson, gamma, trace; "": see Defaults
	Burstiness float64 `json:"burstiness,omitempty"`   // gamma shape; 1 is Poisson
	Speed      float64 `json:"speed,omitempty"`        // trace time runs this much faster; 0: 1

	// MaxConcurrency is part of the workload: the wait for it is a field of
	// the call. 0: no limit.
	MaxConcurrency int `json:"max_concurrency,omitempty"`

	RampStrategy string  `json:"ramp_up_strategy,omitempty"` // linear, exponential
	RampStart    float64 `json:"ramp_up_start_rps,omitempty"`
	RampEnd      float64 `json:"ramp_up_end_rps,omitempty"`

	IgnoreEOS bool `json:"ignore_eos,omitempty"`

	RandomInputLen   int     `json:"random_input_len,omitempty"`   // 1024
	RandomOutputLen  int     `json:"random_output_len,omitempty"`  // 128
	RandomRangeRatio float64 `json:"random_range_ratio,omitempty"` // lengths in [floor(L(1-r)), ceil(L(1+r))]
	RandomPrefixLen  int     `json:"random_prefix_len,omitempty"`  // shared by all prompts, before the random part

	ShareGPTOutputLen int  `json:"sharegpt_output_len,omitempty"` // 0: the answer's own length
	DisableShuffle    bool `json:"disable_shuffle,omitempty"`
	NoOversample      bool `json:"no_oversample,omitempty"`
	OutputLen         int  `json:"output_len,omitempty"` // jsonl rows without their own
}

// Request is what to send and when it is due.
type Request struct {
	Index  int
	Due    time.Duration // offset from the start of the run
	Prompt string
	Input  int  // prompt tokens by the workload's own count (package token)
	Output int  // max_tokens; 0: the server's default
	EOS    bool // the server may stop early; false sends ignore_eos
}

// Rate is requests per second; zero or +Inf means all at once. In JSON and
// YAML it is a number or the string "inf", as in vLLM's result files.
type Rate float64

// Inf reports whether all requests are due at once.
func (r Rate) Inf() bool { return r == 0 || math.IsInf(float64(r), 1) }

// MarshalJSON writes "inf" for an infinite rate.
func (r Rate) MarshalJSON() ([]byte, error) {
	if r.Inf() {
		return []byte(`"inf"`), nil
	}
	return json.Marshal(float64(r))
}
