package workload

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// Spec says which requests to send and when. Zero fields take the defaults of
// `vllm bench serve`; see Defaults. JSON keys, YAML keys and flags share one
// spelling (a flag has - for _).
type Spec struct {
	Dataset    string  `json:"dataset_name" yaml:"dataset_name"` // see Datasets
	Path       string  `json:"dataset_path,omitempty" yaml:"dataset_path,omitempty"`
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
	OutputLen         int  `json:"output_len,omitempty" yaml:"output_len,omitempty"` // jsonl rows without their own

	Steps    string `json:"steps,omitempty" yaml:"steps,omitempty"`       // RATE:TIME,... in place of a rate
	Duration Span   `json:"duration,omitempty" yaml:"duration,omitempty"` // no request is due from then on; NumPrompts, where set, bounds too

	// Conversations: NumPrompts, rates and MaxConcurrency count conversations.
	Turns             Range  `json:"turns,omitempty" yaml:"turns,omitempty"`                     // 4; of a file: those with fewer are left out, of others the rest
	TurnInputLen      Range  `json:"turn_input_len,omitempty" yaml:"turn_input_len,omitempty"`   // 128; made-up ones
	TurnOutputLen     Range  `json:"turn_output_len,omitempty" yaml:"turn_output_len,omitempty"` // 128; of a file: in place of the answers' own
	SystemLen         int    `json:"system_len,omitempty" yaml:"system_len,omitempty"`           // made-up ones: a system prompt that all share
	ThinkTime         string `json:"think_time,omitempty" yaml:"think_time,omitempty"`           // mean, exponential; or constant:TIME
	History           string `json:"history,omitempty" yaml:"history,omitempty"`                 // answers (a file's default), generated
	NoSessionAffinity bool   `json:"no_session_affinity,omitempty" yaml:"no_session_affinity,omitempty"`

	LoraModules    []string `json:"lora_modules,omitempty" yaml:"lora_modules,omitempty"`       // model names in place of the run's
	LoraAssignment string   `json:"lora_assignment,omitempty" yaml:"lora_assignment,omitempty"` // random, round-robin

	RandomImages    int    `json:"random_images,omitempty" yaml:"random_images,omitempty"`         // of each request
	RandomImageSize string `json:"random_image_size,omitempty" yaml:"random_image_size,omitempty"` // 512x512

	Tokenizer string `json:"tokenizer,omitempty" yaml:"tokenizer,omitempty"` // a tokenizer.json or its directory, or server; "": package token's approximation
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

	BurstGPTModel string `json:"burstgpt_model,omitempty" yaml:"burstgpt_model,omitempty"` // rows of this model only; "": all
}

// Datasets returns the names that Spec.Dataset takes.
func Datasets() []string {
	return []string{"random", "sharegpt", "azure", "mooncake", "burstgpt", "jsonl", "sonnet", "prefix_repetition", "shared-prefix", "conversations"}
}

// Arrivals returns the names that Spec.Arrival takes.
func Arrivals() []string { return []string{"inf", "constant", "poisson", "gamma", "trace"} }

// Defaults returns the spec with every default that applies written out, so
// that it says what will run. It changes nothing that is set, and filling
// twice is filling once.
//
// Arrival: a finite rate or a ramp is Poisson, or gamma with a burstiness
// other than 1; a trace without a rate keeps its own times; the rest is all
// at once. Datasets whose prompts are made of random words ignore EOS, as
// `vllm bench serve` forces for random: such a prompt has no natural answer.
func (s Spec) Defaults() Spec {
	asked := s.NumPrompts
	s.Dataset = cmp.Or(s.Dataset, "random")
	switch s.Dataset {
	case "random":
		s.fillRandom()
	case "sharegpt":
		s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
		s.ShareGPTFilter = cmp.Or(s.ShareGPTFilter, "vllm")
	case "azure", "mooncake", "burstgpt":
		s.IgnoreEOS = true
	case "conversations":
		s = s.talkDefaults()
	default:
		s.fillMade()
	}
	s = s.mixDefaults()
	if s.timed() {
		s.NumPrompts = asked // time bounds the run
	}
	if s.Arrival == "" {
		s.Arrival = s.defaultArrival()
	}
	switch s.Arrival {
	case "inf":
		s.Rate = cmp.Or(s.Rate, Rate(math.Inf(1)))
	case "poisson":
		s.Burstiness = cmp.Or(s.Burstiness, 1)
	case "gamma":
		s.Burstiness = cmp.Or(s.Burstiness, 1)
	case "trace":
		s.Speed = cmp.Or(s.Speed, 1)
	}
	return s
}

func (s Spec) defaultArrival() string {
	switch {
	case s.Rate.Inf() && s.RampStrategy == "" && s.Steps == "":
		if s.Rate == 0 && s.isTrace() {
			return "trace"
		}
		return "inf"
	case s.Burstiness == 0 || s.Burstiness == 1:
		return "poisson"
	}
	return "gamma"
}

func (s Spec) isTrace() bool { return slices.Contains(traces(), s.Dataset) }

// traces are the datasets that have arrival times of their own.
func traces() []string { return []string{"azure", "mooncake", "burstgpt"} }

// Validate returns every fault of the spec, one field.Error each, with
// the field's JSON key as its path. A field that does not apply to the dataset or the arrival is a
// fault: ignored, it would make the run something else than what was asked.
func (s Spec) Validate() error {
	d := s.Defaults()
	if !slices.Contains(Datasets(), d.Dataset) {
		return unknown("dataset_name", d.Dataset, Datasets())
	}
	if !slices.Contains(Arrivals(), d.Arrival) {
		return unknown("arrival", d.Arrival, Arrivals())
	}
	var faults []error
	faults = append(faults, s.datasetFaults(d)...)
	faults = append(faults, s.madeFaults(d)...)
	faults = append(faults, s.arrivalFaults(d)...)
	faults = append(faults, s.talkFaults(d)...)
	faults = append(faults, s.mixFaults(d)...)
	faults = append(faults, s.rangeFaults()...)
	return errors.Join(faults...)
}

// datasetFaults names fields that belong to another dataset.
func (s Spec) datasetFaults(d Spec) (faults []error) {
	for _, f := range []struct {
		path string
		set  bool
		of   []string
	}{
		{"dataset_path", s.Path != "", []string{"sharegpt", "azure", "mooncake", "burstgpt", "jsonl", "sonnet", "conversations"}},
		{"random_input_len", s.RandomInputLen != 0, []string{"random"}},
		{"random_output_len", s.RandomOutputLen != 0, []string{"random"}},
		{"random_range_ratio", s.RandomRangeRatio != 0, []string{"random"}},
		{"random_prefix_len", s.RandomPrefixLen != 0, []string{"random"}},
		{"sharegpt_output_len", s.ShareGPTOutputLen != 0, []string{"sharegpt"}},
		{"disable_shuffle", s.DisableShuffle, []string{"sharegpt", "jsonl", "prefix_repetition", "shared-prefix", "conversations"}},
		{"no_oversample", s.NoOversample, []string{"sharegpt", "jsonl", "conversations"}},
		{"output_len", s.OutputLen != 0, []string{"jsonl"}},
		{"sharegpt_filter", s.ShareGPTFilter != "", []string{"sharegpt"}},
		{"random_rng", s.RandomRNG != "", []string{"random"}},
		{"random_ids", s.RandomIDs, []string{"random"}},
		{"random_batch_size", s.RandomBatchSize != 0, []string{"random"}},
		{"scenario", s.Scenario != "", []string{"random"}},
		{"gsp_zipf_alpha", s.GSPZipfAlpha != 0, []string{"shared-prefix"}},
		{"burstgpt_model", s.BurstGPTModel != "", []string{"burstgpt"}},
	} {
		if f.set && !slices.Contains(f.of, d.Dataset) {
			faults = append(faults, field.Errorf(f.path, "applies to [dataset_name] %s, not %s", either(f.of), d.Dataset))
		}
	}
	if s.Path == "" && !slices.Contains([]string{"random", "sonnet", "prefix_repetition", "shared-prefix", "conversations"}, d.Dataset) {
		faults = append(faults, field.Errorf("dataset_name", "%s needs [dataset_path]"+fileHint(d.Dataset), d.Dataset))
	}
	return faults
}

// arrivalFaults names fields that belong to another arrival, and what the
// chosen one lacks.
func (s Spec) arrivalFaults(d Spec) (faults []error) {
	fault := func(path, format string, a ...any) { faults = append(faults, field.Errorf(path, format, a...)) }
	paced := d.Arrival == "constant" || d.Arrival == "poisson" || d.Arrival == "gamma"
	ramped := s.RampStrategy != ""
	switch {
	case !s.Rate.Inf() && !paced:
		fault("request_rate", "applies to [arrival] constant, poisson or gamma, not %s", d.Arrival)
	case !s.Rate.Inf() && ramped:
		fault("request_rate", "does not apply with [ramp_up_strategy], which takes [ramp_up_start_rps] and [ramp_up_end_rps]")
	case s.Rate.Inf() && paced && !ramped && s.Steps == "":
		fault("arrival", "%s needs a finite [request_rate]", d.Arrival)
	case s.Rate != 0 && d.Arrival == "trace":
		fault("request_rate", "inf applies to [arrival] inf, not trace")
	}
	switch {
	case s.Burstiness == 0 || d.Arrival == "gamma":
	case d.Arrival != "poisson":
		fault("burstiness", "applies to [arrival] gamma, not %s", d.Arrival)
	case s.Burstiness != 1:
		fault("burstiness", "%g applies to [arrival] gamma, not poisson (whose burstiness is 1)", s.Burstiness)
	}
	if s.Speed != 0 && d.Arrival != "trace" {
		fault("speed", "applies to [arrival] trace, not %s", d.Arrival)
	}
	if d.Arrival == "trace" && !d.isTrace() {
		fault("arrival", "trace applies to [dataset_name] %s, not %s", either(traces()), d.Dataset)
	}
	return append(append(faults, s.rampFaults(d, paced)...), s.shapeFaults(d, paced)...)
}

func (s Spec) rampFaults(d Spec, paced bool) (faults []error) {
	fault := func(path, format string, a ...any) { faults = append(faults, field.Errorf(path, format, a...)) }
	switch s.RampStrategy {
	case "":
		if s.RampStart != 0 {
			fault("ramp_up_start_rps", "applies with [ramp_up_strategy] linear or exponential only")
		}
		if s.RampEnd != 0 {
			fault("ramp_up_end_rps", "applies with [ramp_up_strategy] linear or exponential only")
		}
		return faults
	case "linear", "exponential":
		if !paced {
			fault("ramp_up_strategy", "applies to [arrival] constant, poisson or gamma, not %s", d.Arrival)
		}
		if !(s.RampStart > 0 && s.RampStart < s.RampEnd) || math.IsInf(s.RampEnd, 1) {
			fault("ramp_up_strategy", "%s needs 0 < [ramp_up_start_rps] < [ramp_up_end_rps], not %g and %g",
				s.RampStrategy, s.RampStart, s.RampEnd)
		}
		return faults
	}
	return append(faults, unknown("ramp_up_strategy", s.RampStrategy, []string{"linear", "exponential"}))
}

// Bounds that a typing error passes before memory or time runs out.
const (
	maxRequests = 10_000_000
	maxTokens   = 1 << 24 // of one prompt or answer
	maxBatch    = 10_000  // texts of one request

	leastBurstiness = 0.01 // gaps of shape k are powers U^(1/k), which no float holds for long
)

// rangeFaults names values outside their range.
func (s Spec) rangeFaults() (faults []error) {
	for _, f := range []struct {
		path  string
		value int
		limit int
	}{
		{"num_prompts", s.NumPrompts, maxRequests},
		{"max_concurrency", s.MaxConcurrency, maxRequests},
		{"random_input_len", s.RandomInputLen, maxTokens},
		{"random_output_len", s.RandomOutputLen, maxTokens},
		{"random_prefix_len", s.RandomPrefixLen, maxTokens},
		{"sharegpt_output_len", s.ShareGPTOutputLen, maxTokens},
		{"output_len", s.OutputLen, maxTokens},
		{"system_len", s.SystemLen, maxTokens},
		{"random_images", s.RandomImages, maxImages},
		{"random_batch_size", s.RandomBatchSize, maxBatch},
	} {
		switch {
		case f.value < 0:
			faults = append(faults, field.Errorf(f.path, "%d must not be negative", f.value))
		case f.value > f.limit:
			faults = append(faults, field.Errorf(f.path, "%d is over the limit of %d", f.value, f.limit))
		}
	}
	if !(s.RandomRangeRatio >= 0 && s.RandomRangeRatio < 1) {
		faults = append(faults, field.Errorf("random_range_ratio", "%g must be at least 0 and below 1", s.RandomRangeRatio))
	}
	if !(s.Rate >= 0) {
		faults = append(faults, field.Errorf("request_rate", "%g must be above 0 or inf", float64(s.Rate)))
	}
	for _, f := range []struct {
		path  string
		value float64
	}{{"burstiness", s.Burstiness}, {"speed", s.Speed}, {"gsp_zipf_alpha", s.GSPZipfAlpha}} {
		if !(f.value >= 0) || math.IsInf(f.value, 1) {
			faults = append(faults, field.Errorf(f.path, "%g must be a finite number above 0", f.value))
		}
	}
	if s.Burstiness > 0 && s.Burstiness < leastBurstiness {
		faults = append(faults, field.Errorf("burstiness", "%g must be at least %g: below it nearly all gaps are 0", s.Burstiness, leastBurstiness))
	}
	return faults
}

// either joins names: "a", "a or b", "a, b or c".
func either(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// unknown says that a field has no such value, and the nearest that it has.
func unknown(path, got string, known []string) error {
	best := slices.MinFunc(known, func(a, b string) int { return cmp.Compare(stat.Distance(got, a), stat.Distance(got, b)) })
	if stat.Distance(got, best) <= 1+len(got)/3 {
		return field.Errorf(path, "%q is unknown: did you mean %s? (known: %s)", got, best, strings.Join(known, ", "))
	}
	return field.Errorf(path, "%q is unknown: use %s", got, either(known))
}
