package measure

import (
	"slices"
	"strconv"
	"strings"

	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/cli/machines"
	"perflab/internal/profile/preset"
)

// benchUsual are the flags of perflab bench that most runs need.
const benchUsual = "base-url model backend dataset-name dataset-path num-prompts random-input-len random-output-len request-rate max-concurrency duration " +
	"seed tokenizer goodput slo sweep find-max repeat out html save-result help"

// BenchHelp is what perflab bench tells of itself besides its description.
func BenchHelp() console.Help {
	return console.Help{Usual: benchUsual, Groups: benchGroups(), More: "\n" + exitRule + "\n\nPresets of bounds, for --goodput (each call) and --slo (at P99):\n  " + strings.Join(preset.Names(), "\n  ") + "\n"}
}

// benchGroups are the headings of perflab bench --help; a test keeps every flag
// under one of them.
func benchGroups() []console.FlagGroup {
	return slices.Concat([]console.FlagGroup{
		{Title: "Endpoint", Flags: "base-url host port " + kubeFlagNames + " backend endpoint model served-model-name header extra-body temperature top-p top-k min-p frequency-penalty presence-penalty repetition-penalty insecure " +
			"ready-check-timeout-sec timeout-first-token timeout-idle timeout-total"},
		{Title: "Workload", Flags: "dataset-name num-prompts seed cache nonce tokenizer ignore-eos lora-modules lora-assignment"},
	}, flagset.LoadGroups(), []console.FlagGroup{
		{Title: "Measurement", Flags: "until-precision until-metric num-warmups percentile-metrics metric-percentiles goodput slo max-error-rate compat"},
		{Title: "Benchmarks by their rules", Flags: "profile c-max c-min"},
		{Title: "Telemetry and cost", Flags: "telemetry telemetry-interval telemetry-gpus traceparent otlp price-per-hour gpus"},
		{Title: "Series of runs", Flags: "sweep sweep-points find-max find-max-from find-max-to find-max-precision find-max-requests find-max-seconds repeat repeat-same-seed"},
		{Title: "Several machines", Flags: "fleet " + machines.HubFlags},
		{Title: "Output", Flags: "out push block html parquet metrics-addr save-result append-result save-detailed result-dir result-filename label metadata"},
		{Title: "Other", Flags: "from help"},
	})
}

// invoked is the command line of a run, with the seed where one was drawn.
func (f *benchFlags) invoked(env console.Env) string {
	if slices.ContainsFunc(env.Args, func(w string) bool { return w == "--seed" || strings.HasPrefix(w, "--seed=") }) {
		return env.Invocation()
	}
	return env.Invocation("--seed", strconv.FormatUint(f.spec.Workload.Seed, 10))
}
