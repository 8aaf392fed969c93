package workload

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var inf = Rate(math.Inf(1))

func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   Spec
		want Spec
	}{
		{"nothing is vLLM's random", Spec{},
			Spec{Dataset: "random", NumPrompts: 1000, RandomInputLen: 1024, RandomOutputLen: 128, IgnoreEOS: true, Arrival: "inf", Rate: inf}},
		{"a rate is Poisson", Spec{Dataset: "jsonl", Rate: 8},
			Spec{Dataset: "jsonl", Rate: 8, Arrival: "poisson", Burstiness: 1}},
		{"a burstiness is gamma", Spec{Dataset: "jsonl", Rate: 8, Burstiness: 0.5},
			Spec{Dataset: "jsonl", Rate: 8, Arrival: "gamma", Burstiness: 0.5}},
		{"a ramp is Poisson", Spec{Dataset: "jsonl", Rate: inf, RampStrategy: "linear", RampStart: 1, RampEnd: 2},
			Spec{Dataset: "jsonl", Rate: inf, RampStrategy: "linear", RampStart: 1, RampEnd: 2, Arrival: "poisson", Burstiness: 1}},
		{"a trace keeps its times", Spec{Dataset: "azure"},
			Spec{Dataset: "azure", Arrival: "trace", Speed: 1, IgnoreEOS: true}},
		{"a trace with a rate", Spec{Dataset: "mooncake", Rate: 3},
			Spec{Dataset: "mooncake", Rate: 3, Arrival: "poisson", Burstiness: 1, IgnoreEOS: true}},
		{"a trace all at once", Spec{Dataset: "mooncake", Rate: inf},
			Spec{Dataset: "mooncake", Rate: inf, Arrival: "inf", IgnoreEOS: true}},
		{"sharegpt", Spec{Dataset: "sharegpt"},
			Spec{Dataset: "sharegpt", NumPrompts: 1000, Arrival: "inf", Rate: inf, ShareGPTFilter: "vllm"}},
		{"prefix repetition rounds down", Spec{Dataset: "prefix_repetition", PrefixRepetitionNumPrefixes: 7},
			Spec{Dataset: "prefix_repetition", NumPrompts: 994, Arrival: "inf", Rate: inf, IgnoreEOS: true, PrefixRepetitionNumPrefixes: 7,
				PrefixRepetitionPrefixLen: 256, PrefixRepetitionSuffixLen: 256, PrefixRepetitionOutputLen: 128}},
		{"shared prefix counts its groups", Spec{Dataset: "shared-prefix", GSPNumGroups: 3},
			Spec{Dataset: "shared-prefix", NumPrompts: 48, Arrival: "inf", Rate: inf, IgnoreEOS: true, GSPNumGroups: 3,
				GSPPromptsPerGroup: 16, GSPSystemPromptLen: 2048, GSPQuestionLen: 128, GSPOutputLen: 256}},
		{"sonnet", Spec{Dataset: "sonnet"},
			Spec{Dataset: "sonnet", NumPrompts: 1000, Arrival: "inf", Rate: inf, SonnetInputLen: 550, SonnetOutputLen: 150, SonnetPrefixLen: 200}},
		{"burstgpt keeps its times", Spec{Dataset: "burstgpt"},
			Spec{Dataset: "burstgpt", Arrival: "trace", Speed: 1, IgnoreEOS: true}},
		{"a scenario has its own lengths", Spec{Scenario: "D(3,4)"},
			Spec{Dataset: "random", NumPrompts: 1000, Scenario: "D(3,4)", IgnoreEOS: true, Arrival: "inf", Rate: inf}},
		{"texts get no answer", Spec{Scenario: "E(8)"},
			Spec{Dataset: "random", NumPrompts: 1000, Scenario: "E(8)", RandomBatchSize: 1, Arrival: "inf", Rate: inf}},
	} {
		got := tt.in.Defaults()
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if d := cmp.Diff(got, got.Defaults()); d != "" {
			t.Errorf("%s: filling twice differs:\n%s", tt.name, d)
		}
		if slices.Contains([]string{"sharegpt", "azure", "mooncake", "jsonl", "burstgpt"}, got.Dataset) {
			got.Path = "x"
		}
		if err := got.Validate(); err != nil {
			t.Errorf("%s: the filled spec is refused: %v", tt.name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string // faults separated by newlines
	}{
		{Spec{Dataset: "sharegpt", Path: "x", RandomInputLen: 1}, "random_input_len: applies to dataset_name random, not sharegpt"},
		{Spec{Dataset: "jsonl", Path: "x", RandomOutputLen: 1}, "random_output_len: applies to dataset_name random, not jsonl"},
		{Spec{Dataset: "azure", Path: "x", RandomRangeRatio: 0.1}, "random_range_ratio: applies to dataset_name random, not azure"},
		{Spec{Dataset: "mooncake", Path: "x", RandomPrefixLen: 1}, "random_prefix_len: applies to dataset_name random, not mooncake"},
		{Spec{Path: "x"}, "dataset_path: applies to dataset_name sharegpt, azure, mooncake, burstgpt, jsonl, custom, gsm8k, hf, sonnet, conversations or agents, not random"},
		{Spec{ShareGPTOutputLen: 1}, "sharegpt_output_len: applies to dataset_name sharegpt, not random"},
		{Spec{DisableShuffle: true}, "disable_shuffle: applies to dataset_name sharegpt, jsonl, custom, gsm8k, hf, prefix_repetition, shared-prefix, conversations or agents, not random"},
		{Spec{Dataset: "azure", Path: "x", NoOversample: true}, "no_oversample: applies to dataset_name sharegpt, jsonl, custom, gsm8k, hf, conversations or agents, not azure"},
		{Spec{Dataset: "custom", Path: "x", CustomOutputLen: -2}, "custom_output_len: -2 is neither a number of tokens nor -1"},
		{Spec{Dataset: "gsm8k"}, `dataset_name: gsm8k needs dataset_path: a file with one {"question": "...", "answer": "..."} per line, such as test.jsonl of openai/grade-school-math on GitHub`},
		{Spec{OutputLen: 5}, "output_len: applies to dataset_name jsonl or gsm8k, not random"},
		{Spec{Dataset: "sharegtp"}, "dataset_name: \"sharegtp\" is unknown: did you mean sharegpt? (known: random, sharegpt, azure, mooncake, burstgpt, jsonl, custom, gsm8k, hf, sonnet, prefix_repetition, shared-prefix, conversations, agents)"},
		{Spec{Dataset: "spec_bench_2"}, "dataset_name: \"spec_bench_2\" is unknown: use random, sharegpt, azure, mooncake, burstgpt, jsonl, custom, gsm8k, hf, sonnet, prefix_repetition, shared-prefix, conversations or agents"},
		{Spec{Arrival: "poison"}, "arrival: \"poison\" is unknown: did you mean poisson? (known: inf, constant, poisson, gamma, trace)"},
		{Spec{Arrival: "inf", Rate: 2}, "request_rate: applies to arrival constant, poisson or gamma, not inf"},
		{Spec{Dataset: "azure", Path: "x", Arrival: "trace", Rate: 2}, "request_rate: applies to arrival constant, poisson or gamma, not trace"},
		{Spec{Dataset: "azure", Path: "x", Arrival: "trace", Rate: inf}, "request_rate: inf applies to arrival inf, not trace"},
		{Spec{Arrival: "poisson"}, "arrival: poisson needs a finite request_rate"},
		{Spec{Arrival: "trace"}, "arrival: trace applies to dataset_name azure, mooncake or burstgpt, not random"},
		{Spec{Burstiness: 0.5}, "burstiness: applies to arrival gamma, not inf"},
		{Spec{Burstiness: 0.5, Rate: 1, Arrival: "constant"}, "burstiness: applies to arrival gamma, not constant"},
		{Spec{Burstiness: 0.5, Rate: 1, Arrival: "poisson"}, "burstiness: 0.5 applies to arrival gamma, not poisson (whose burstiness is 1)"},
		{Spec{Speed: 2, Rate: 1}, "speed: applies to arrival trace, not poisson"},
		{Spec{RampStart: 1}, "ramp_up_start_rps: applies with ramp_up_strategy linear or exponential only"},
		{Spec{RampEnd: 1}, "ramp_up_end_rps: applies with ramp_up_strategy linear or exponential only"},
		{Spec{RampStrategy: "linear", RampStart: 2, RampEnd: 1}, "ramp_up_strategy: linear needs 0 < ramp_up_start_rps < ramp_up_end_rps, not 2 and 1"},
		{Spec{RampStrategy: "linear", RampStart: 1, RampEnd: 2, Rate: 4}, "request_rate: does not apply with ramp_up_strategy, which takes ramp_up_start_rps and ramp_up_end_rps"},
		{Spec{RampStrategy: "linear", RampStart: 1, RampEnd: 2, Arrival: "inf"}, "ramp_up_strategy: applies to arrival constant, poisson or gamma, not inf"},
		{Spec{RampStrategy: "lineal", RampStart: 1, RampEnd: 2}, "ramp_up_strategy: \"lineal\" is unknown: did you mean linear? (known: linear, exponential)"},
		{Spec{NumPrompts: -1}, "num_prompts: -1 must not be negative"},
		{Spec{NumPrompts: 1e9}, "num_prompts: 1000000000 is over the limit of 10000000"},
		{Spec{MaxConcurrency: math.MaxInt}, "max_concurrency: 9223372036854775807 is over the limit of 10000000"},
		{Spec{RandomRangeRatio: 1}, "random_range_ratio: 1 must be at least 0 and below 1"},
		{Spec{Rate: -1}, "request_rate: -1 must be above 0 or inf"},
		{Spec{Rate: Rate(math.NaN())}, "request_rate: NaN must be above 0 or inf"},
		{Spec{Rate: 1, Burstiness: -1}, "burstiness: -1 must be a finite number above 0"},
		{Spec{Rate: 1, Burstiness: 1e-9, Duration: "3s"}, "burstiness: 1e-09 must be at least 0.01: below it nearly all gaps are 0"},
		{Spec{Dataset: "azure", Path: "x", Speed: math.Inf(1)}, "speed: +Inf must be a finite number above 0"},
		{Spec{Dataset: "jsonl"}, "dataset_name: jsonl needs dataset_path: a file with one {\"prompt\": \"...\", \"output_tokens\": 100} per line"},
		{Spec{MaxConcurrency: 8, UntilPrecision: "two"}, "until_precision: \"two\" is no share: write 2% or 0.02"},
		{Spec{MaxConcurrency: 8, UntilPrecision: "0"}, "until_precision: is 0: give how far the figure may be off to each side, such as 2%"},
		{Spec{UntilPrecision: "2%"}, "until_precision: needs a steady state, which a burst has not: give max_concurrency or request_rate"},
		{Spec{UntilPrecision: "2%", Rate: 4, RampStrategy: "linear", RampStart: 1, RampEnd: 2}, "request_rate: does not apply with ramp_up_strategy, which takes ramp_up_start_rps and ramp_up_end_rps\n" +
			"until_precision: needs a load that stays the same: give max_concurrency or one request_rate, and no ramp, steps or times of a trace"},
		{Spec{UntilPrecision: "2%", Dataset: "azure", Path: "x"}, "until_precision: needs a load that stays the same: give max_concurrency or one request_rate, and no ramp, steps or times of a trace"},
		{Spec{UntilPrecision: "2%", Dataset: "conversations", MaxConcurrency: 2}, "until_precision: does not apply to dataset_name conversations: its turns come at times of their own, so there is no steady state to look at"},
		{Spec{UntilPrecision: "2%", NumPrompts: 100, MaxConcurrency: 8}, "until_precision: cannot end a run of 100 requests: with 8 in flight it takes at least 140 to tell how the figure varies, so raise num_prompts or leave until_precision out"},
		{Spec{UntilMetric: "mean_steady_ttft_ms"}, "until_metric: applies with until_precision only"},
		{Spec{OutputLen: -1, MaxConcurrency: -1, Speed: 3}, "output_len: applies to dataset_name jsonl or gsm8k, not random\n" +
			"speed: applies to arrival trace, not inf\nmax_concurrency: -1 must not be negative"},
	} {
		err := tt.spec.Validate()
		if err == nil || err.Error() != tt.want {
			t.Errorf("%+v\n got %v\nwant %s", tt.spec, err, tt.want)
		}
		if _, openErr := Open(tt.spec); openErr == nil || openErr.Error() != tt.want {
			t.Errorf("Open(%+v) gives %v", tt.spec, openErr)
		}
	}
}

func TestRate(t *testing.T) {
	for _, tt := range []struct {
		json string
		want Rate
		ok   bool
	}{
		{`8`, 8, true}, {`0.5`, 0.5, true}, {`"inf"`, inf, true}, {`"Inf"`, inf, true}, {`".inf"`, inf, true}, {`"2.5"`, 2.5, true},
		{`0`, 0, false}, {`-1`, 0, false}, {`"fast"`, 0, false}, {`"nan"`, 0, false}, {`"-inf"`, 0, false}, {`[]`, 0, false}, {`""`, 0, false},
	} {
		var s Spec
		err := json.Unmarshal([]byte(`{"request_rate":`+tt.json+`}`), &s)
		if (err == nil) != tt.ok || s.Rate != tt.want {
			t.Errorf("%s: got %v, error %v", tt.json, float64(s.Rate), err)
		}
		if err != nil && !strings.Contains(err.Error(), "must be a number above 0 or inf") {
			t.Errorf("%s: error %q does not say what is wanted", tt.json, err)
		}
	}
}

func TestSpecJSON(t *testing.T) {
	for _, s := range []Spec{{}, {Rate: inf}, {Rate: 0.1, Seed: math.MaxUint64}, Spec{Dataset: "azure"}.Defaults(), Spec{}.Defaults()} {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Spec
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, back); d != "" {
			t.Errorf("%s comes back different:\n%s", b, d)
		}
	}
}
