package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/openai"
	"perflab/internal/profile"
	"perflab/internal/profile/preset"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/workload"
)

// addCompletions has shells complete the values of flags, and what the commands take.
func addCompletions(root *cobra.Command) {
	metricNames := namesOf(result.Metrics, func(m result.Metric) string { return m.Name })
	values := map[string]func() []string{
		"model": namesOf(arch.Models, func(m arch.Model) string { return m.Name }), "gpu": namesOf(arch.Accelerators, func(a arch.Accelerator) string { return a.Name }), "dataset-name": workload.Datasets, "backend": openai.Backends,
		"strategy": study.Strategies, "objective": metricNames, "metrics": metricNames, "latency": metricNames, "until-metric": metricNames,
		"percentile-metrics": result.Families,
		"profile":            profile.Names, "cache": func() []string {
			return []string{bench.CacheUnique, bench.CacheReset, bench.CacheWarm, bench.CacheShared}
		},
		"arrival":          func() []string { return []string{"constant", "poisson", "gamma", "trace"} },
		"ramp-up-strategy": func() []string { return []string{"linear", "exponential"} },
		"find-max":         func() []string { return []string{bench.AxisRate, bench.AxisConcurrency} },
		"sweep":            func() []string { return []string{"rate=auto", "rate=1..16x2", "concurrency=1..64x2"} },
		"goodput":          preset.Names, "slo": preset.Names,
		"compat": func() []string { return []string{"vllm"} },
		"block":  func() []string { return []string{"vllm", "gpustack"} },
	}
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if of, ok := values[f.Name]; ok {
				// It fails where a command has said how already, which then counts.
				_ = c.RegisterFlagCompletionFunc(f.Name, oneOf(of))
			}
		})
		switch c.Name() {
		case "engines":
			c.ValidArgsFunction = oneOf(namesOf(engine.All, func(e *engine.Engine) string { return e.Name }))
		case "tune":
			c.ValidArgsFunction = filesNamed("yaml", "yml")
		case "report", "compare", "export", "audit":
			c.ValidArgsFunction = runsAndFiles
		}
	}
}

// oneOf completes one of some values.
func oneOf(of func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var out []cobra.Completion
		for _, v := range of() {
			if strings.HasPrefix(strings.ToLower(v), strings.ToLower(typed)) {
				out = append(out, v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// filesNamed completes files with one of some endings.
func filesNamed(endings ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// runsAndFiles completes the runs and studies where they are put by default, and files.
func runsAndFiles(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, facts := range []string{"header.json", "sweep.json", "repeat.json", "study.json"} {
		found, err := filepath.Glob(filepath.Join("perflab-out", "*", facts))
		if err != nil {
			continue // the pattern is right
		}
		for _, path := range found {
			if dir := filepath.Dir(path); strings.HasPrefix(dir, typed) {
				out = append(out, dir)
			}
		}
	}
	slices.Sort(out)
	return out, cobra.ShellCompDirectiveDefault
}

// namesOf are the names of all of a kind.
func namesOf[T any](all func() []T, name func(T) string) func() []string {
	return func() (names []string) {
		for _, x := range all() {
			names = append(names, name(x))
		}
		return names
	}
}
