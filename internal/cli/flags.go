package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a heading of a command's help, with its flags in their order.
type flagGroup struct {
	title string
	flags string // names, by spaces
}

// helpWidth is how wide the text of a flag may be.
const helpWidth = 100

// benchGroups are the headings of perflab bench --help; a test keeps every flag
// under one of them.
func benchGroups() []flagGroup {
	return []flagGroup{
		{"Endpoint", "base-url host port backend endpoint model served-model-name header extra-body temperature top-p insecure " +
			"ready-check-timeout-sec timeout-first-token timeout-idle timeout-total"},
		{"Workload", "dataset-name num-prompts seed cache nonce tokenizer ignore-eos lora-modules lora-assignment"},
		{"Shape of the load", "request-rate arrival burstiness max-concurrency steps duration ramp-up-strategy ramp-up-start-rps ramp-up-end-rps speed"},
		{"Made-up prompts", datasetFlags("Made-up prompts") + " random-image-size"},
		{"Prompts of a file", "dataset-path " + datasetFlags("Prompts of a file")},
		{"Conversations", datasetFlags("Conversations")},
		{"Measurement", "until-precision until-metric num-warmups percentile-metrics metric-percentiles goodput slo max-error-rate compat"},
		{"Telemetry and cost", "telemetry telemetry-interval telemetry-gpus price-per-hour gpus"},
		{"Series of runs", "sweep sweep-points find-max find-max-from find-max-to find-max-precision find-max-requests find-max-seconds repeat repeat-same-seed"},
		{"Output", "out block html parquet metrics-addr save-result append-result save-detailed result-dir result-filename label metadata"},
		{"Other", "help"},
	}
}

// groupHelp has a command print its flags under headings.
func groupHelp(c *cobra.Command, groups []flagGroup) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
		for _, g := range groups {
			fmt.Fprintf(&b, "\n%s:\n%s", g.title, section(c.Flags(), g).FlagUsagesWrapped(helpWidth))
		}
		_, err := fmt.Fprint(c.OutOrStderr(), b.String())
		return err
	})
}

// section is the flags of a group.
func section(all *pflag.FlagSet, g flagGroup) *pflag.FlagSet {
	fs := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
	fs.SortFlags = false
	for name := range strings.FieldsSeq(g.flags) {
		if f := all.Lookup(name); f != nil {
			fs.AddFlag(f)
		}
	}
	return fs
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

func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, item := range list {
		k, v, ok := strings.Cut(item, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("%s needs KEY=VALUE", flag) // the value may be a secret: not shown
		}
		out[k] = v
	}
	return out, nil
}

// makeRepeatable gives a flag of one load another value and text, for a list of them.
func makeRepeatable(fs *pflag.FlagSet, name string, v pflag.Value, usage string) {
	flag := fs.Lookup(name)
	flag.Usage = usage
	if v != nil {
		flag.Value = v
	}
}
