package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/calib"
	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/durable"
	"perflab/internal/engine"
	"perflab/internal/forecast"
	"perflab/internal/report/doc"
	"perflab/internal/report/prediction"
	"perflab/internal/source"
)

type calibrateFlags struct {
	known   knownFlags
	out     string
	holdOut string
	format  string
	seed    uint64
	plan    bool
}

const calibrateLong = `Fit the simulator's constants to measured runs, and write them as a calibration
file for predict.

A source is a run directory, a study, a series or an import; a file of another
client or a published document, as import reads them (report.md#3 and
report.md:86 name one of its results); or a JSON file of observations. Serving
command, the engine's version and hardware are those that a run records. --command,
--engine-version, --gpu, --gpus and --replicas say them for runs that do not.

A constant stays near what it is elsewhere (its prior) unless runs speak against
it. Each accelerator is fitted by itself. Errors are shown twice: in sample, which
is no measure of accuracy, and held out, each run predicted by constants fitted
without its workload (--hold-out says otherwise). Ranges of predictions rest
on the held-out errors, which the file keeps.

--plan reads no run: it says which three runs of a serving command would narrow
predictions most for their time, on hardware that nobody has measured.

What is not used is named with the reason. Simulated runs are refused, unless
--simulated takes them for a trial of the method; predicted ones always are.

Exit status: 0 done, 1 no run can be used or the file cannot be written.`

// NewCalibrate is perflab calibrate: the simulator fitted to measured runs.
func NewCalibrate(env console.Env) *cobra.Command {
	f := &calibrateFlags{}
	c := &cobra.Command{
		Use:   "calibrate SOURCE...",
		Short: "Fit the simulator's constants to measured runs",
		Long:  calibrateLong,
		Example: `  perflab calibrate perflab-out/my-study --out my-hardware.json
  perflab calibrate perflab-out/bench/* --gpu l40s --command 'vllm serve Qwen/Qwen3-8B' --out l40s.json
  perflab calibrate report.md 'results/*.json' --gpu h100-sxm --hold-out model --out h100.json
  perflab calibrate observations.json --format json
  perflab calibrate --plan --gpu l40s -- vllm serve Qwen/Qwen3-8B`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return console.WantArgs(1, "a run directory, a study or a file of results")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runCalibrate(c.Context(), env, f, args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.out, "out", "", "file for the calibration; none is overwritten (default: print only)")
	fs.BoolVar(&f.plan, "plan", false, "say which runs of the command after -- to take first; needs --gpu")
	fs.StringVar(&f.holdOut, "hold-out", "auto", "what runs are held out by for the errors: workload, model or study; auto is the workload, or the model where an accelerator has seen more of them")
	fs.StringVar(&f.known.gpu, "gpu", "", "accelerator of runs that do not record it, see perflab sim --list")
	fs.IntVar(&f.known.gpus, "gpus", 0, "how many of them one replica has (default: as many as its command takes)")
	fs.IntVar(&f.known.replicas, "replicas", 0, "how many replicas shared the load (default: as the run has targets)")
	fs.StringVar(&f.known.command, "command", "", "serving command of runs that do not record it")
	fs.StringVar(&f.known.version, "engine-version", "", "version of the engine of runs that do not record it, such as 0.25")
	fs.StringVar(&f.known.modelConfig, "model-config", "", "the model's config.json, where its name is not known")
	fs.BoolVar(&f.known.simulated, "simulated", false, "take SIMULATED runs too; the file says so")
	fs.Uint64Var(&f.seed, "seed", 0, "of lengths that are known on average only")
	fs.StringVar(&f.format, "format", "text", "what to print: text or json")
	return c
}

func (f *calibrateFlags) validate() error {
	if !forecast.IsHoldOut(f.holdOut) {
		return console.Usage(fmt.Errorf("--hold-out %q is not known: auto, workload, model or study", f.holdOut))
	}
	if f.format != "text" && f.format != "json" {
		return console.Usage(fmt.Errorf("--format %q is not known: text or json", f.format))
	}
	if f.out != "" {
		if _, err := os.Stat(f.out); err == nil {
			return console.Usage(fmt.Errorf("%s exists: give --out another name", f.out))
		}
		if info, err := os.Stat(filepath.Dir(f.out)); err != nil || !info.IsDir() {
			return console.Usage(fmt.Errorf("--out %s: there is no directory %s", f.out, filepath.Dir(f.out)))
		}
	}
	return f.known.validate()
}

func runCalibrate(ctx context.Context, env console.Env, f *calibrateFlags, sources []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	if f.plan {
		return f.showPlan(ctx, env, sources)
	}
	o, err := f.known.observer(env, sources)
	if err != nil {
		return err
	}
	var fit *forecast.Fit
	err = console.Within(ctx, func() (err error) {
		fit, err = forecast.Calibrate(o, forecast.FitOptions{
			HoldOut: f.holdOut, Sources: sources, Seed: f.seed, Each: bench.OnEveryCore,
			Log: func(format string, args ...any) { fmt.Fprintf(env.Stderr, format+"\n", args...) },
		})
		return err
	})
	if errors.Is(err, forecast.ErrNoRuns) {
		fmt.Fprint(env.Stderr, prediction.OmissionsText(withFlags(o.Omitted)))
	}
	if err != nil {
		return err
	}
	fit.Omitted = withFlags(fit.Omitted)
	if f.out != "" {
		if err := writeCalibration(f.out, fit.Calibration); err != nil {
			return err
		}
	}
	return f.show(env, fit)
}

// showPlan says which runs of a serving command to take first.
func (f *calibrateFlags) showPlan(ctx context.Context, env console.Env, command []string) error {
	if f.known.gpu == "" {
		return console.Usage(errors.New("--plan needs --gpu: the accelerator to plan for, see perflab sim --list"))
	}
	q := forecast.PlanQuestion{
		Command: command, GPU: f.known.gpu, GPUs: f.known.gpus, Replicas: f.known.replicas, Each: bench.OnEveryCore,
		Model: func(name string) (arch.Model, error) { return flagset.LookupModel(name, f.known.modelConfig) },
	}
	var plan calib.Plan
	cal, err := calib.Shipped()
	if err != nil {
		return err
	}
	err = console.Within(ctx, func() (err error) {
		plan, err = q.Answer(&cal)
		return err
	})
	switch {
	case forecast.IsRefusal(err):
		return refuse(env, err)
	case err != nil:
		return console.Usage(fmt.Errorf("plan runs: %w", err))
	case f.format == "json":
		return console.WriteJSON(env.Stdout, plan)
	}
	return prediction.WritePlan(env.Stdout, plan)
}

// withFlags names in each reason the flags that give what a run does not say.
func withFlags(omitted []forecast.Omission) []forecast.Omission {
	omitted = slices.Clone(omitted)
	for i := range omitted {
		omitted[i].Spell(console.FlagOf)
	}
	return omitted
}

// show prints the fit.
func (f *calibrateFlags) show(env console.Env, fit *forecast.Fit) error {
	var err error
	if f.format == "json" {
		err = console.WriteJSON(env.Stdout, fit)
	} else if err = doc.Text(env.Stdout, prediction.Calibration(fit)); err == nil {
		said := "No file was written: give --out FILE."
		if f.out != "" {
			said = "Written to " + f.out
		}
		_, err = fmt.Fprintln(env.Stdout, said)
	}
	if err != nil {
		return fmt.Errorf("print the calibration: %w", err)
	}
	return nil
}

// writeCalibration makes the calibration file, and overwrites none.
func writeCalibration(path string, c calib.Calibration) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := os.Lstat(path); err == nil { // since validate looked
		return console.Usage(fmt.Errorf("%s exists: give --out another name", path))
	}
	if err := durable.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the calibration: %w", err)
	}
	return nil
}

// knownFlags say of runs what they do not say themselves.
type knownFlags struct {
	command     string
	gpu         string
	gpus        int
	replicas    int
	modelConfig string
	version     string
	simulated   bool
}

// validate checks the flags before any file is read.
func (f *knownFlags) validate() error {
	if f.gpu != "" {
		if _, err := arch.LookupAccelerator(f.gpu); err != nil {
			return console.Usage(fmt.Errorf("--gpu: %w", err))
		}
	}
	if f.command != "" {
		if _, err := engine.ParseText(f.command); err != nil {
			return console.Usage(fmt.Errorf("--command: %w", err))
		}
	}
	if f.gpus < 0 || f.replicas < 0 {
		return console.Usage(fmt.Errorf("--gpus is %d and --replicas %d: neither can be negative", f.gpus, f.replicas))
	}
	return nil
}

// observer reads the sources with what the flags say of them.
func (f *knownFlags) observer(env console.Env, sources []string) (*forecast.Observer, error) {
	o := &forecast.Observer{Known: forecast.Known{
		Command: f.command, GPU: f.gpu, GPUs: f.gpus, Replicas: f.replicas, Version: f.version, Simulated: f.simulated,
	}}
	if f.modelConfig != "" {
		m, err := flagset.LookupModel("", f.modelConfig)
		if err != nil {
			return nil, console.Usage(err)
		}
		o.Known.Model = &m
	}
	source.Observe(o, sources, env.Stdin)
	return o, nil
}
