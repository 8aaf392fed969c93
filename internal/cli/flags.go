package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/cli/console"
)

// benchUsual are the flags of perflab bench that most runs need.
const benchUsual = "base-url model backend dataset-name dataset-path num-prompts random-input-len random-output-len request-rate max-concurrency duration " +
	"seed tokenizer goodput slo sweep find-max repeat out html save-result help"

// benchGroups are the headings of perflab bench --help; a test keeps every flag
// under one of them.
func benchGroups() []console.FlagGroup {
	return []console.FlagGroup{
		{Title: "Endpoint", Flags: "base-url host port backend endpoint model served-model-name header extra-body temperature top-p top-k min-p frequency-penalty presence-penalty repetition-penalty insecure " +
			"ready-check-timeout-sec timeout-first-token timeout-idle timeout-total"},
		{Title: "Workload", Flags: "dataset-name num-prompts seed cache nonce tokenizer ignore-eos lora-modules lora-assignment"},
		{Title: "Shape of the load", Flags: "request-rate arrival burstiness max-concurrency steps duration ramp-up-strategy ramp-up-start-rps ramp-up-end-rps speed"},
		{Title: "Made-up prompts", Flags: datasetFlags("Made-up prompts") + " random-image-size"},
		{Title: "Prompts of a file", Flags: "dataset-path " + datasetFlags("Prompts of a file")},
		{Title: "Conversations", Flags: datasetFlags("Conversations")},
		{Title: "Measurement", Flags: "until-precision until-metric num-warmups profile percentile-metrics metric-percentiles goodput slo max-error-rate compat"},
		{Title: "Telemetry and cost", Flags: "telemetry telemetry-interval telemetry-gpus price-per-hour gpus"},
		{Title: "Series of runs", Flags: "sweep sweep-points find-max find-max-from find-max-to find-max-precision find-max-requests find-max-seconds repeat repeat-same-seed"},
		{Title: "Output", Flags: "out block html parquet metrics-addr save-result append-result save-detailed result-dir result-filename label metadata"},
		{Title: "Other", Flags: "from help"},
	}
}

// invoked is the command line of a run, with the seed where one was drawn.
func (f *benchFlags) invoked(env console.Env) string {
	if slices.ContainsFunc(env.Args, func(w string) bool { return w == "--seed" || strings.HasPrefix(w, "--seed=") }) {
		return env.Invocation()
	}
	return env.Invocation("--seed", strconv.FormatUint(f.spec.Workload.Seed, 10))
}

func parsePercentiles(text string) ([]float64, error) {
	var out []float64
	for part := range strings.SplitSeq(text, ",") {
		p, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil {
			return nil, fmt.Errorf("--metric-percentiles has %q: write numbers such as 50,95,99.9", part)
		}
		if !(p > 0 && p < 100) { // nor NaN
			return nil, fmt.Errorf("--metric-percentiles has %g: percentiles lie between 0 and 100", p)
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out, nil
}
