package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"perflab/internal/field"
	"perflab/internal/workload"
)

// addDatasetFlags are the flags of single datasets, as the registry of datasets
// lists them; their defaults are the workload's own.
func addDatasetFlags(fs *pflag.FlagSet, w *workload.Spec) {
	for _, p := range workload.Params() {
		name, usage := strings.TrimPrefix(flagOf(p.Key), "--"), field.Spell(p.Usage, flagOf)
		switch v := w.Field(p.Key).(type) {
		case *int:
			fs.IntVar(v, name, 0, usage)
		case *float64:
			fs.Float64Var(v, name, 0, usage)
		case *bool:
			fs.BoolVar(v, name, false, usage)
		case *string:
			fs.StringVar(v, name, "", usage)
		case *workload.Range:
			fs.StringVar((*string)(v), name, "", usage)
		default:
			panic(fmt.Sprintf("cli: no flag can set %s, a %T", p.Key, v)) // every start of the program comes here
		}
	}
}

// datasetFlags are the names of those flags that stand under a heading.
func datasetFlags(group string) string {
	var names []string
	for _, p := range workload.Params() {
		if p.Group == group {
			names = append(names, strings.TrimPrefix(flagOf(p.Key), "--"))
		}
	}
	return strings.Join(names, " ")
}

// positiveFlags are the flags of a workload that cannot be 0, which in a spec
// means the default.
func positiveFlags() []string {
	names := []string{"--num-prompts", "--burstiness", "--speed"}
	for _, p := range workload.Params() {
		if p.Positive {
			names = append(names, flagOf(p.Key))
		}
	}
	return names
}

// addTimeFlags are the flags of a load that is bounded by time.
func addTimeFlags(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringVar(&w.Steps, "steps", "", "rates one after another, RATE:TIME,... such as 2:30s,8:60s,2:30s, in place of --request-rate; a rate of 0 is a pause")
	fs.StringVar((*string)(&w.Duration), "duration", "", "no request is due from then on, such as 60s; with --max-concurrency and no rate: send for this long")
}

// addModelFlags are the flags of adapters and images.
func addModelFlags(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringSliceVar(&w.LoraModules, "lora-modules", nil, "names of LoRA adapters, a,b,c, sent as the model in place of --model")
	fs.StringVar(&w.LoraAssignment, "lora-assignment", "", "random or round-robin: which request gets which adapter (default random)")
	fs.StringVar(&w.RandomImageSize, "random-image-size", "", "size of --random-images in pixels, 512x512 or 256x256-1024x1024 (default 512x512)")
}
