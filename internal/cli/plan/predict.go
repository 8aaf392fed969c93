package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/arch"
	"perflab/internal/bench"
	"perflab/internal/calib"
	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/engine"
	"perflab/internal/engine/shellwords"
	"perflab/internal/forecast"
	"perflab/internal/input"
	"perflab/internal/report"
	"perflab/internal/report/doc"
	"perflab/internal/report/prediction"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/workload"
)

// predictFlags are the flags of perflab predict; those of the workload are
// perflab bench's.
type predictFlags struct {
	spec        workload.Spec
	rates       string
	concurrency string

	gpu          []string
	gpus         int
	modelConfig  string
	version      string
	commands     []string
	commandsFile string
	grid         []string
	pools        poolFlags

	calibration string
	with        []string
	ran         map[string]string // versions of the engines of those runs
	simulated   bool
	draws       int

	goodput   []string
	slos      []string
	bounds    []result.SLO
	options   result.Options
	metrics   []string
	latency   string
	objective string

	json bool
	html string
	out  string
}

const predictLong = `Predict what a serving command gives on some hardware under a load: throughput,
TTFT, TPOT, ITL and end-to-end latency, each with the range that holds nine in
ten cases, what the KV cache holds, and what holds the load back. Nothing is
started and no GPU is used; every figure is SIMULATED.

The workload's flags are perflab bench's. Several commands (--command, --commands,
--grid), accelerators (--gpu a,b) and loads (--request-rate 1,2,4,
--max-concurrency 16,64) make a table, with the front of throughput per GPU and
latency marked. GPUs that a command leaves over are used by further replicas, as
perflab tune deploys them. What the engine would refuse stays in the table, with
the reason.

Ranges come from how far predictions were off on studies that the calibration was
not fitted to, by how much of the question was new to it. What is new is said.
--with RUN corrects all predictions by a run of your own machines, and ranges narrow
to what is left after one such run: measure a baseline once, and predict the rest.`

// NewPredict is perflab predict: what commands would give, with ranges.
func NewPredict(env console.Env) *cobra.Command {
	f := &predictFlags{}
	c := &cobra.Command{
		Use:   "predict --gpu NAME [--gpus N] [flags] -- ENGINE COMMAND",
		Short: "Predict throughput and latency of serving commands, with ranges and the bottleneck",
		Long:  predictLong,
		Example: `  perflab predict --gpu h100-sxm --gpus 8 --num-prompts 1000 --random-input-len 2000 \
    -- vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2

  # which tp, and how many sequences?
  perflab predict --gpu h100-sxm --gpus 8 --grid tp=1,2,4,8 --grid max_num_seqs=256,512 \
    --objective total_token_throughput --html front.html -- vllm serve Qwen/Qwen3-32B

  # two engines on two accelerators, at four rates
  perflab predict --gpu h100-sxm,h200 --request-rate 1,2,4,8 --slo 'p99_ttft_ms <= 500' \
    --command 'vllm serve Qwen/Qwen3-32B-FP8' --command 'trtllm-serve Qwen/Qwen3-32B-FP8'
  # the rest of a grid, of which a baseline was measured
  perflab predict --with baseline --grid max_num_seqs=128,256 -- vllm serve Qwen/Qwen3-32B`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.complete(); err != nil {
				return console.Usage(err)
			}
			return f.run(c.Context(), env, c.Flags(), args)
		},
	}
	f.add(c.Flags())
	console.GroupHelp(c, PredictHelp())
	return c
}

func (f *predictFlags) add(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringSliceVar(&f.gpu, "gpu", []string{"h100-sxm"}, "accelerators, see perflab sim --list; several by commas")
	fs.IntVar(&f.gpus, "gpus", 1, "how many of them the machine has")
	fs.StringVar(&f.version, "engine-version", "", "version of the engine, such as 0.17: it decides defaults (default: that of the runs of --with, else the oldest that is known)")
	fs.StringVar(&f.modelConfig, "model-config", "", "the model's config.json, for a model that perflab sim --list does not know")
	fs.StringArrayVar(&f.commands, "command", nil, "a serving command in quotes, in place of the one after --; repeatable")
	fs.StringVar(&f.commandsFile, "commands", "", "file with a serving command in each line; # begins a comment")
	fs.StringArrayVar(&f.grid, "grid", nil, "NAME=VALUE,VALUE: each command with each value of an engine-neutral parameter, such as tp=1,2,4; repeatable; an empty value is the engine's default")
	f.pools.add(fs)
	flagset.AddWorkload(fs, &f.spec, &f.rates)
	list := pflag.NewFlagSet("", pflag.ContinueOnError)
	list.StringVar(&f.concurrency, "max-concurrency", "0", "")
	console.MakeRepeatable(fs, "max-concurrency", list.Lookup("max-concurrency").Value, "calls in flight at most; 0 has no limit; several as 16,64 or 8..64x2")
	console.MakeRepeatable(fs, "request-rate", nil, "requests/s; inf sends all at once; several as 1,2,4,inf or 1..16x2")
	fs.StringVar(&f.calibration, "calibration", "", "calibration file (default the shipped one)")
	fs.StringArrayVar(&f.with, "with", nil, "a measured run of your own machines that corrects the predictions: a run directory, a study or a file of results, as perflab calibrate reads them; repeatable")
	fs.BoolVar(&f.simulated, "simulated", false, "take SIMULATED runs for --with too")
	fs.IntVar(&f.draws, "draws", calib.Draws, "times that constants and loads are drawn for the ranges; 0 draws none")
	fs.StringSliceVar(&f.goodput, "goodput", nil, "what makes a request good, such as ttft:500,tpot:50 (ms) or mlperf:llama3.1-8b")
	fs.StringArrayVar(&f.slos, "slo", nil, "what must hold, such as 'p99_ttft_ms <= 500'; repeatable; exit status 3 when every row misses one")
	fs.StringSliceVar(&f.metrics, "metrics", nil, "figures to show, such as p99_ttft_ms (default total throughput, mean TTFT, TPOT and E2E, median ITL; of one prediction output throughput too)")
	fs.StringVar(&f.latency, "latency", "mean_tpot_ms", "latency of the front, against throughput per GPU")
	fs.StringVar(&f.objective, "objective", "", "order the rows by a metric, best first (default as they were given)")
	fs.BoolVar(&f.json, "json", false, "print JSON: every figure with its range, times by term, waits, memory")
	fs.StringVar(&f.html, "html", "", "write one page with table and plots")
	fs.StringVar(&f.out, "out", "", "directory for predictions.json, predictions.html and the plots as SVG")
}

// PredictHelp is what perflab predict tells of itself besides its description: its own
// headings, then those of a workload.
func PredictHelp() console.Help {
	own := []console.FlagGroup{
		{Title: "Configurations", Flags: "gpu gpus engine-version model-config command commands grid " + strings.Join(poolFlagNames, " ")},
		{Title: "Prediction", Flags: "calibration with simulated draws goodput slo metrics latency objective"},
		{Title: "Output", Flags: "json html out"},
		{Title: "Workload", Flags: "dataset-name num-prompts seed nonce tokenizer ignore-eos lora-modules lora-assignment"},
	}
	return console.Help{Groups: append(append(own, flagset.LoadGroups()...), console.FlagGroup{Title: "Other", Flags: "help"})}
}

// complete checks what needs no file.
func (f *predictFlags) complete() error {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	if f.gpus < 1 {
		note(fmt.Errorf("--gpus %d: a machine has at least one", f.gpus))
	}
	if f.draws < 0 || f.draws > 1000 {
		note(fmt.Errorf("--draws is %d: from 0 to 1000", f.draws))
	}
	for _, text := range f.slos {
		slos, err := result.ParseSLOs(text)
		note(err)
		f.bounds = append(f.bounds, slos...)
	}
	if len(f.goodput) > 0 {
		var err error
		f.options.Goodput, err = result.ParseGoodput(strings.Join(f.goodput, ","))
		note(err)
	}
	names := slices.Clone(f.metrics)
	names = append(names, f.latency)
	if f.objective != "" {
		names = append(names, f.objective)
	}
	for i, name := range names {
		m, err := result.Lookup(name)
		note(err)
		if i < len(f.metrics) {
			f.metrics[i] = m.Name
		}
		names[i] = m.Name
	}
	if m, err := result.Lookup(f.latency); err == nil && m.Better != result.Lower {
		note(fmt.Errorf("--latency %s is none: a lower one would have to be better", f.latency))
	}
	if m, err := result.Lookup(f.objective); f.objective != "" && err == nil && m.Better == result.Neither {
		note(fmt.Errorf("--objective %s is neither better when higher nor when lower", f.objective))
	}
	for _, b := range f.bounds {
		names = append(names, b.Metric)
	}
	f.options.Percentiles = append([]float64{50, 90, 95, 99}, bench.PercentilesOf(names...)...)
	slices.Sort(f.options.Percentiles)
	f.options.Percentiles = slices.Compact(f.options.Percentiles)
	return errors.Join(errs...)
}

// run predicts every configuration under every load and shows what came out.
func (f *predictFlags) run(ctx context.Context, env console.Env, fs *pflag.FlagSet, args []string) error {
	cal, name, err := f.readCalibration()
	if err != nil {
		return err
	}
	if len(f.with) > 0 {
		if cal, err = f.correct(ctx, env, cal); err != nil {
			return err
		}
	}
	deployments, err := f.deployments(args)
	if err != nil {
		return console.Usage(err)
	}
	if len(deployments) == 1 && deployments[0].Refused != nil {
		return refuse(env, deployments[0].Refused)
	}
	loads, err := f.loads(fs, forecast.SharedModel(deployments))
	if err != nil {
		return console.Usage(err)
	}
	table, err := f.predict(ctx, env, &cal, deployments, loads)
	if err != nil {
		return err
	}
	table.Version, table.Calibration.Name = env.Version, name
	if err := f.show(env, table); err != nil {
		return err
	}
	return f.judge(table)
}

// predict answers the question on every core, and shows how far it is.
func (f *predictFlags) predict(ctx context.Context, env console.Env, cal *calib.Calibration, deployments []forecast.Deployment, loads []forecast.Load) (table forecast.Table, err error) {
	var done, all atomic.Int64
	live := console.StartLive(env, func() string { return fmt.Sprintf("predicting %d of %d", min(done.Load()+1, all.Load()), all.Load()) }, nil)
	defer live.End()
	q := forecast.Question{
		Options: f.options, Draws: f.draws, SLOs: f.bounds, Metrics: f.metrics, Latency: f.latency, Objective: f.objective,
		Each: func(n int, do func(int)) {
			all.Add(int64(n))
			bench.OnEveryCore(n, func(i int) {
				if ctx.Err() == nil {
					do(i)
				}
				done.Add(1)
			})
		},
	}
	err = console.Within(ctx, func() (err error) {
		table, err = q.Answer(cal, deployments, loads)
		return err
	})
	return table, err
}

// Sizes of what is read whole: a calibration keeps the errors of each run that was
// held out, some 200 bytes; commands and topologies are written or read by people.
const (
	mostCalibration = 64 << 20
	mostText        = 1 << 20
)

func (f *predictFlags) readCalibration() (calib.Calibration, string, error) {
	if f.calibration == "" {
		c, err := calib.Shipped()
		return c, "shipped", err
	}
	data, err := input.File(f.calibration, mostCalibration)
	if err != nil {
		return calib.Calibration{}, "", console.Usage(fmt.Errorf("read --calibration: %w", err))
	}
	c, err := calib.Parse(data)
	if err != nil {
		return c, "", console.Usage(fmt.Errorf("--calibration %s: %w", f.calibration, err))
	}
	return c, filepath.Base(f.calibration), nil
}

// correct fits what is uncertain of the calibration to the runs of --with.
func (f *predictFlags) correct(ctx context.Context, env console.Env, cal calib.Calibration) (calib.Calibration, error) {
	o, err := (&knownFlags{gpu: f.gpu[0], modelConfig: f.modelConfig, version: f.version, simulated: f.simulated}).observer(env, f.with)
	if err != nil {
		return cal, err
	}
	err = console.Within(ctx, func() (err error) {
		cal, err = o.Correct(cal, bench.OnEveryCore)
		return err
	})
	if errors.Is(err, forecast.ErrNoRuns) {
		fmt.Fprint(env.Stderr, prediction.OmissionsText(withFlags(o.Omitted)))
		err = console.Usage(err)
	}
	f.ran = versions(o.Observations)
	return cal, err
}

// versions are those of the engines of some runs; "" of one of several versions.
func versions(runs []calib.Observation) map[string]string {
	out := map[string]string{}
	for _, r := range runs {
		if v, seen := out[r.Config.Engine]; seen && v != r.Version {
			r.Version = ""
		}
		out[r.Config.Engine] = r.Version
	}
	return out
}

// show prints and writes a forecast in the forms that were asked for.
func (f *predictFlags) show(env console.Env, t forecast.Table) error {
	d := prediction.Forecast(t)
	var err error
	if f.json {
		err = prediction.ForecastJSON(env.Stdout, t)
	} else {
		err = doc.Text(env.Stdout, d)
	}
	if err != nil {
		return err
	}
	files := map[string]func(io.Writer) error{}
	report.AddRepeat(&d, env.Invocation(), report.Fact{Label: "Predicted by", Value: "perflab " + env.Version + " on " + report.Date(time.Now())})
	page := func(w io.Writer) error { return doc.HTML(w, d) }
	if f.html != "" {
		files[f.html] = page
	}
	if f.out != "" {
		files[filepath.Join(f.out, "predictions.json")] = func(w io.Writer) error { return prediction.ForecastJSON(w, t) }
		files[filepath.Join(f.out, "predictions.html")] = page
		for _, p := range prediction.ForecastPlots(t) {
			files[filepath.Join(f.out, "plots", p.Name+".svg")] = func(w io.Writer) error { _, err := io.WriteString(w, p.SVG); return err }
		}
	}
	for path, write := range files {
		if err := env.WriteText(path, write); err != nil {
			return err
		}
	}
	for _, path := range []string{f.html, f.out} {
		if path != "" {
			fmt.Fprintf(env.Stderr, "written: %s\n", path)
		}
	}
	return nil
}

// errNonePredicted ends predictions of nothing that would start.
var errNonePredicted = errors.New("every configuration would be refused: the table has each one's reason")

// judge decides the exit status.
func (f *predictFlags) judge(t forecast.Table) error {
	switch {
	case !t.Served():
		return errNonePredicted
	case len(f.bounds) > 0 && !t.Met():
		return fmt.Errorf("%w: no prediction meets every bound", console.ErrMissed)
	}
	return nil
}

// deployments are all commands with all values of the grid on all
// accelerators.
func (f *predictFlags) deployments(args []string) ([]forecast.Deployment, error) {
	lines, err := f.lines(args)
	if err != nil {
		return nil, err
	}
	h := forecast.Hardware{GPUs: f.gpus, Model: func(name string) (arch.Model, error) { return flagset.LookupModel(name, f.modelConfig) }}
	for _, name := range f.gpu {
		g, err := arch.LookupAccelerator(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		h.Accelerators = append(h.Accelerators, g)
	}
	grid, err := forecast.ParseGrid(f.grid)
	if err != nil {
		return nil, fmt.Errorf("--grid %w", err)
	}
	var commands []forecast.Command
	for _, words := range lines {
		c := forecast.Command{Line: strings.Join(words, " ")}
		if c.Command, c.Refused = f.parse(words); c.Refused != nil && !forecast.IsRefusal(c.Refused) {
			return nil, c.Refused
		}
		commands = append(commands, c)
	}
	return forecast.Deployments(commands, grid, h)
}

// parse reads a command and the configuration file that it names.
func (f *predictFlags) parse(words []string) (engine.Command, error) {
	cmd, err := engine.Parse(words)
	if err == nil {
		cmd, err = ofVersion(cmd, words, cmp.Or(f.version, f.ran[cmd.Engine]))
	}
	if err == nil {
		cmd, err = f.pools.apply(cmd)
	}
	if err != nil {
		return engine.Command{}, err
	}
	if cmd, err = study.ReadCommandFile(cmd); err != nil {
		return engine.Command{}, err
	}
	return cmd, nil
}

// lines are the words of each command.
func (f *predictFlags) lines(args []string) ([][]string, error) {
	var out [][]string
	if len(args) > 0 {
		out = append(out, args)
	}
	texts := slices.Clone(f.commands)
	if f.commandsFile != "" {
		data, err := input.File(f.commandsFile, mostText)
		if err != nil {
			return nil, fmt.Errorf("read --commands: %w", err)
		}
		texts = append(texts, shellwords.Lines(string(data))...)
	}
	for _, text := range texts {
		words, err := shellwords.Split(text)
		if err != nil {
			return nil, fmt.Errorf("command %.60q: %w", text, err)
		}
		out = append(out, words)
	}
	if len(out) == 0 {
		return nil, errors.New("perflab predict needs a serving command after --, such as: vllm serve Qwen/Qwen3-32B, or --command, or --commands FILE (see perflab predict --help)")
	}
	return out, nil
}

// loads are those of every rate and concurrency, measured by the tokenizer of a model
// where it is at hand.
func (f *predictFlags) loads(fs *pflag.FlagSet, model string) ([]forecast.Load, error) {
	rates, err := bench.SplitLoads(bench.AxisRate, f.rates)
	if err != nil {
		return nil, fmt.Errorf("--request-rate: %w", err)
	}
	limits, err := bench.SplitLoads(bench.AxisConcurrency, f.concurrency)
	if err != nil {
		return nil, fmt.Errorf("--max-concurrency: %w", err)
	}
	var out []forecast.Load
	for _, rate := range rates {
		for _, limit := range limits {
			spec := f.spec
			if spec.MaxConcurrency, err = strconv.Atoi(limit); err != nil || spec.MaxConcurrency < 0 {
				return nil, fmt.Errorf("--max-concurrency has %q: write whole numbers", limit)
			}
			if err := flagset.FillWorkload(fs, &spec, rate); err != nil {
				return nil, err
			}
			w, tokenizer, err := bench.OpenPredicted(bench.MeasuredByModel(spec, model))
			if err != nil {
				return nil, err
			}
			l, err := forecast.NewLoad(w, tokenizer)
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		}
	}
	return out, nil
}
