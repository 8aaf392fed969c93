// Package flagset holds the flags that several commands have, so that one has the same spelling,
// text and rules in each: those of a workload, of what is printed and written, of a model that
// no list has. What the user gave goes into the specs of other packages; nothing is run.
package flagset

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"perflab/internal/cli/console"
	"perflab/internal/field"
	"perflab/internal/workload"
)

// AddWorkload adds the flags that make up workload.Spec; a study file has
// the same names with _ for -.
func AddWorkload(fs *pflag.FlagSet, w *workload.Spec, rate *string) {
	names := workload.Datasets()
	last := len(names) - 1
	fs.StringVar(&w.Dataset, "dataset-name", names[0], strings.Join(names[:last], ", ")+" or "+names[last])
	fs.StringVar(&w.Path, "dataset-path", "", "file of the dataset; of hf its name in the Hugging Face cache, its directory or a file")
	fs.IntVar(&w.NumPrompts, "num-prompts", 0, "requests (of conversations and agents: conversations and sessions) to send (default 1000; for a trace, jsonl or gsm8k: the whole file; for shared-prefix: its groups; with --steps or --duration: as many as there is time for)")
	fs.Uint64Var(&w.Seed, "seed", 0, "every random choice follows from it")
	fs.StringVar(rate, "request-rate", "inf", "requests/s; inf sends all at once (a trace keeps its own times unless this is given)")
	fs.StringVar(&w.Arrival, "arrival", "", "constant, poisson, gamma or trace (default poisson with a rate; the trace's own times with a trace)")
	fs.Float64Var(&w.Burstiness, "burstiness", 1, "shape of gamma arrivals: below 1 burstier than Poisson, above 1 more even")
	fs.Float64Var(&w.Speed, "speed", 1, "run a trace's time this many times faster")
	fs.IntVar(&w.MaxConcurrency, "max-concurrency", 0, "calls in flight at most; 0 has no limit")
	fs.StringVar(&w.RampStrategy, "ramp-up-strategy", "", "linear or exponential: the rate goes from start to end over the run")
	fs.Float64Var(&w.RampStart, "ramp-up-start-rps", 0, "rate at the first request")
	fs.Float64Var(&w.RampEnd, "ramp-up-end-rps", 0, "rate at the last request")
	fs.BoolVar(&w.IgnoreEOS, "ignore-eos", false, "ask the server for exactly max_tokens (random always does)")
	fs.StringVar(&w.Tokenizer, "tokenizer", "", "what measures lengths: a tokenizer.json or its directory, the name of a model in the Hugging Face cache (bench asks the server where it is not there), server, or estimate (default: the cached tokenizer of the model, else an estimate)")
	fs.StringVar(&w.Nonce, "nonce", "", "begin every prompt with a few words made from this text, so that no prompt repeats one of another run")
	addDatasetFlags(fs, w)
	addTimeFlags(fs, w)
	addModelFlags(fs, w)
}

// FillWorkload keeps what the user gave by the flags of AddWorkload and
// leaves the rest to the workload's own defaults, so that a flag that does not
// apply is noticed.
func FillWorkload(fs *pflag.FlagSet, w *workload.Spec, rate string) error {
	if !fs.Changed("burstiness") {
		w.Burstiness = 0
	}
	if !fs.Changed("speed") {
		w.Speed = 0
	}
	// A zero in the spec means the default, which is not what was asked for.
	for _, name := range positiveFlags() {
		if v := fs.Lookup(strings.TrimPrefix(name, "--")); v.Changed && v.Value.String() == "0" {
			return fmt.Errorf("%s is 0: it must be above 0", name)
		}
	}
	if fs.Changed("request-rate") {
		if err := w.Rate.UnmarshalText([]byte(rate)); err != nil {
			return fmt.Errorf("--request-rate: %w", err)
		}
	}
	*w = w.Defaults()
	return nil
}

// addDatasetFlags are the flags of single datasets, as the registry of datasets
// lists them; their defaults are the workload's own.
func addDatasetFlags(fs *pflag.FlagSet, w *workload.Spec) {
	for _, p := range workload.Params() {
		name, usage := strings.TrimPrefix(console.FlagOf(p.Key), "--"), field.Spell(p.Usage, console.FlagOf)
		switch v := w.Field(p.Key).(type) {
		case *int:
			fs.IntVar(v, name, 0, usage)
		case *float64:
			fs.Float64Var(v, name, 0, usage)
		case *bool:
			fs.BoolVar(v, name, false, usage)
		case *string:
			fs.StringVar(v, name, "", usage)
		case *workload.Span:
			fs.StringVar((*string)(v), name, "", usage)
		case *workload.Range:
			fs.StringVar((*string)(v), name, "", usage)
		default:
			panic(fmt.Sprintf("flagset: no flag can set %s, a %T", p.Key, v)) // every start of the program comes here
		}
	}
}

// datasetFlags are the names of those flags that stand under a heading.
func datasetFlags(group string) string {
	var names []string
	for _, p := range workload.Params() {
		if p.Group == group {
			names = append(names, strings.TrimPrefix(console.FlagOf(p.Key), "--"))
		}
	}
	return strings.Join(names, " ")
}

// LoadGroups are the headings of the flags that say what is sent, and when, below that of the
// workload itself.
func LoadGroups() []console.FlagGroup {
	return []console.FlagGroup{
		{Title: "Shape of the load", Flags: "request-rate arrival burstiness max-concurrency steps duration ramp-up-strategy ramp-up-start-rps ramp-up-end-rps speed"},
		{Title: "Made-up prompts", Flags: datasetFlags("Made-up prompts") + " random-image-size"},
		{Title: "Prompts of a file", Flags: "dataset-path " + datasetFlags("Prompts of a file")},
		{Title: "Conversations", Flags: datasetFlags("Conversations")},
		{Title: "Agent sessions", Flags: datasetFlags("Agent sessions")},
	}
}

// positiveFlags are the flags of a workload that cannot be 0, which in a spec
// means the default.
func positiveFlags() []string {
	names := []string{"--num-prompts", "--burstiness", "--speed"}
	for _, p := range workload.Params() {
		if p.Positive {
			names = append(names, console.FlagOf(p.Key))
		}
	}
	return names
}

// addTimeFlags are the flags of a load that is bounded by time.
func addTimeFlags(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringVar(&w.Steps, "steps", "", "rates one after another, RATE:TIME,... such as 2:30s,8:60s,2:30s, in place of --request-rate; a rate of 0 is a pause")
	fs.StringVar((*string)(&w.Duration), "duration", "", "no request is due from then on, such as 60s; with --max-concurrency and no rate: send for this long")
}

// AddUntil adds the flags of a load that ends when its figure is known.
func AddUntil(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringVar((*string)(&w.UntilPrecision), "until-precision", "", "end the run when the 95 % interval of --until-metric reaches no further than this share of it to each side, such as 2%; --num-prompts and --duration are then the most. For a closed loop (--max-concurrency) or one rate")
	fs.StringVar(&w.UntilMetric, "until-metric", "", "figure of the steady part that --until-precision is of, such as mean_steady_ttft_ms (default steady_output_throughput; at a rate mean_steady_e2el_ms; in a study its objective)")
}

// addModelFlags are the flags of adapters and images.
func addModelFlags(fs *pflag.FlagSet, w *workload.Spec) {
	fs.StringSliceVar(&w.LoraModules, "lora-modules", nil, "names of LoRA adapters, a,b,c, sent as the model in place of --model")
	fs.StringVar(&w.LoraAssignment, "lora-assignment", "", "random or round-robin: which request gets which adapter (default random)")
	fs.StringVar(&w.RandomImageSize, "random-image-size", "", "size of --random-images in pixels, 512x512 or 256x256-1024x1024, or several with their shares, 256x256:0.5,1280x720:0.5 (default 512x512)")
}
