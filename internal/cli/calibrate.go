package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"perflab/internal/calib"
)

type calibrateFlags struct {
	observe observeFlags
	out     string
	holdOut string
	format  string
	seed    uint64
}

const calibrateLong = `Fit the simulator's constants to measured runs, and write them as a calibration
file for predict.

A source is a run directory, a study, a series or an import; a file of another
client or a published document, as import reads them (report.md#3 and
report.md:86 name one of its results); or a JSON file of observations. Serving
command and hardware are those that a run records. --command, --gpu, --gpus and
--replicas say them for runs that do not.

A constant stays near what it is elsewhere (its prior) unless runs speak against
it. Each accelerator is fitted by itself. Errors are shown twice: in sample, which
is no measure of accuracy, and held out, each run predicted by constants fitted
without its workload (--hold-out says otherwise). Ranges of predictions rest
on the held-out errors, which the file keeps.

What is not used is named with the reason. Simulated runs are refused, unless
--simulated takes them for a trial of the method; predicted ones always are.

Exit status: 0 done, 1 no run can be used or the file cannot be written.`

func newCalibrate(env Env) *cobra.Command {
	f := &calibrateFlags{}
	c := &cobra.Command{
		Use:   "calibrate SOURCE...",
		Short: "Fit the simulator's constants to measured runs",
		Long:  calibrateLong,
		Example: `  perflab calibrate perflab-out/my-study --out my-hardware.json
  perflab calibrate perflab-out/bench/* --gpu l40s --command 'vllm serve Qwen/Qwen3-8B' --out l40s.json
  perflab calibrate report.md 'results/*.json' --gpu h100-sxm --hold-out model --out h100.json
  perflab calibrate observations.json --format json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return wantArgs(1, "a run directory, a study or a file of results")(c, args)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return runCalibrate(c.Context(), env, f, args) },
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.out, "out", "", "file for the calibration; none is overwritten (default: print only)")
	fs.StringVar(&f.holdOut, "hold-out", "auto", "what runs are held out by for the errors: workload, model or study; auto is the workload, or the model where an accelerator has seen more of them")
	fs.StringVar(&f.observe.gpu, "gpu", "", "accelerator of runs that do not record it, see perflab sim --list")
	fs.IntVar(&f.observe.gpus, "gpus", 0, "how many of them one replica has (default: as many as its command takes)")
	fs.IntVar(&f.observe.replicas, "replicas", 0, "how many replicas shared the load (default: as the run has targets)")
	fs.StringVar(&f.observe.command, "command", "", "serving command of runs that do not record it")
	fs.StringVar(&f.observe.modelConfig, "model-config", "", "the model's config.json, where its name is not known")
	fs.BoolVar(&f.observe.simulated, "simulated", false, "take SIMULATED runs too; the file says so")
	fs.Uint64Var(&f.seed, "seed", 0, "of lengths that are known on average only")
	fs.StringVar(&f.format, "format", "text", "what to print: text or json")
	return c
}

// holdOuts are the keys that runs are held out by.
var holdOuts = map[string]func(calib.Observation) string{
	"workload": calib.ByWorkload,
	"model":    calib.ByModel,
	"study":    calib.ByStudy,
	"auto":     nil, // calib.Akin
}

func (f *calibrateFlags) validate() error {
	if _, ok := holdOuts[f.holdOut]; !ok {
		return usageError{fmt.Errorf("--hold-out %q is not known: auto, workload, model or study", f.holdOut)}
	}
	if f.format != "text" && f.format != "json" {
		return usageError{fmt.Errorf("--format %q is not known: text or json", f.format)}
	}
	if f.out != "" {
		if _, err := os.Stat(f.out); err == nil {
			return usageError{fmt.Errorf("%s exists: give --out another name", f.out)}
		}
		if info, err := os.Stat(filepath.Dir(f.out)); err != nil || !info.IsDir() {
			return usageError{fmt.Errorf("--out %s: there is no directory %s", f.out, filepath.Dir(f.out))}
		}
	}
	return f.observe.validate()
}

func runCalibrate(ctx context.Context, env Env, f *calibrateFlags, sources []string) error {
	if err := f.validate(); err != nil {
		return err
	}
	o, err := observe(env, f.observe, sources)
	if err != nil {
		return err
	}
	o.setAside()
	if len(o.obs) == 0 {
		fmt.Fprint(env.Stderr, leftText(o.left))
		return errors.New("no run can be used")
	}
	c := &calibrated{HoldOut: f.holdOut, Left: append([]unused{}, o.left...), obs: o.obs, Simulated: o.simulated}
	if err := within(ctx, func() error { return c.fit(env, f) }); err != nil {
		return err
	}
	c.Calibration = c.fitted.Calibration(c.source(sources), c.obs, c.Held)
	if c.Simulated {
		c.Calibration.Note = append(c.Calibration.Note, "SIMULATED: fitted to runs of a simulator; nothing in here is of hardware.")
	}
	if f.out != "" {
		if err := c.write(f.out); err != nil {
			return err
		}
	}
	if f.format == "json" {
		return c.json(env.Stdout)
	}
	return c.text(env.Stdout, f.out)
}

// within does work that has no context of its own. Interrupted, it is left to
// end with the process.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1) // so that work that nobody waits for ends
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// setAside leaves out what no constant should be fitted to.
func (o *observer) setAside() {
	o.obs = slices.DeleteFunc(o.obs, func(x calib.Observation) bool {
		if x.Ambiguous() {
			o.leave(x.ID, "it is %s", x.Apart)
		}
		return x.Ambiguous()
	})
}

// calibrated is all that a calibration found; its JSON is what --format json
// prints.
type calibrated struct {
	Simulated   bool              `json:"simulated,omitempty"`
	Calibration calib.Calibration `json:"calibration"`
	Parameters  []calib.Parameter `json:"parameters"`
	InSample    []calib.Residual  `json:"in_sample"`
	HoldOut     string            `json:"hold_out"`
	Held        []calib.Residual  `json:"held_out"`
	Left        []unused          `json:"left_out"`

	fitted *calib.Fitted
	obs    []calib.Observation
}

// fit fits the constants, and again without each workload, model or study.
func (c *calibrated) fit(env Env, f *calibrateFlags) error {
	o := calib.FitOptions{Seed: f.seed, Each: onEveryCore}
	log := func(format string, args ...any) { fmt.Fprintf(env.Stderr, format+"\n", args...) }
	log("fit %s", plural(len(c.obs), "run"))
	var err error
	if c.fitted, err = calib.Fit(c.obs, o); err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	c.Parameters, c.InSample = c.fitted.Parameters, c.fitted.Residuals
	log("hold out by %s", f.holdOut)
	key := holdOuts[f.holdOut]
	if key == nil {
		key = calib.Akin(c.obs)
	}
	folds, err := calib.HoldOut(c.obs, key, o)
	if err != nil {
		return fmt.Errorf("hold out by %s: %w", f.holdOut, err)
	}
	c.Held = calib.HeldResiduals(folds)
	return nil
}

// onEveryCore runs do on every core.
func onEveryCore(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				do(int(i - 1))
			}
		})
	}
	wg.Wait()
}

// source tells in one sentence what was fitted.
func (c *calibrated) source(args []string) string {
	var names []string
	for _, a := range args {
		names = append(names, filepath.Base(a))
	}
	word := "run"
	if c.Simulated {
		word = "SIMULATED run"
	}
	return fmt.Sprintf("%s of %s, held out by %s.", plural(len(c.obs), word), strings.Join(names, ", "), c.heldOutBy())
}

// write makes the calibration file, and overwrites none.
func (c *calibrated) write(path string) error {
	b, err := json.MarshalIndent(c.Calibration, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("%s exists: give --out another name", path)}
	}
	if err != nil {
		return fmt.Errorf("write the calibration: %w", err)
	}
	_, err = file.Write(append(b, '\n'))
	if err = cmp.Or(err, file.Close()); err != nil {
		return fmt.Errorf("write the calibration: %w", err)
	}
	return nil
}

func (c *calibrated) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return fmt.Errorf("print the calibration: %w", err)
	}
	return nil
}
