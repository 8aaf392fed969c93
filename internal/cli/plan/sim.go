// Package plan has the commands that measure nothing: they simulate engines, predict, fit the
// simulator to what was measured, show the catalogue and write deployments down. They read serving
// commands, in an engine's own flags, and refuse what the engine would refuse, in its words.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/arch"
	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/engine"
	"perflab/internal/sim"
	"perflab/internal/stat"
	"perflab/internal/study"
)

type simFlags struct {
	gpu     string
	gpus    int
	config  string
	version string
	seed    uint64
	startup time.Duration
	speed   float64
	list    bool
	pools   poolFlags
	otlp    string

	questions string
	declared  stat.Declared
}

const simLong = `Run a simulated engine: it takes an engine's own command line after --, behaves
like that engine on the given hardware, and serves the OpenAI API in real time.
No GPU is used; everything it answers is marked as simulated.

An impossible command is refused as the engine would refuse it: with its kind of
message and a non-zero exit status.

A configuration file that the command names (TensorRT-LLM's --extra_llm_api_options)
is read as the engine reads it.

The engine's own --host and --port decide where it listens: on this machine only
unless --host is given. What of the command changes a real engine and not this
one is named at the head of the log.

It has no model. With --questions it answers those of a file, right as often as
--accuracy declares and the same ones each time, so that what judges answers
can be tried.`

// NewSim is perflab sim: a simulated engine that serves.
func NewSim(env console.Env) *cobra.Command {
	f := &simFlags{}
	c := &cobra.Command{
		Use:   "sim --gpu NAME [--gpus N] -- ENGINE COMMAND",
		Short: "A simulated engine: takes an engine's own command line, needs no GPU",
		Long:  simLong,
		Example: `  perflab sim --gpu h100-sxm -- vllm serve Qwen/Qwen3-32B-FP8 --max-num-seqs 512
  perflab sim --gpu a100-sxm-80 --gpus 8 -- python3 -m sglang.launch_server \
    --model-path Qwen/Qwen3-235B-A22B-Instruct-2507 --tp-size 8
  perflab sim --gpu h100-sxm -- trtllm-serve Qwen/Qwen3-32B --port 8001
  perflab sim --list`,
		RunE: func(c *cobra.Command, args []string) error {
			if f.list {
				_, err := io.WriteString(env.Stdout, arch.Listing()+"and their -FP8, -AWQ, -GPTQ-Int4 and NVFP4 variants; --model-config describes any other model\n")
				return err
			}
			if len(args) == 0 {
				return console.Usage(errors.New("perflab sim needs an engine's command line after --, such as: vllm serve Qwen/Qwen3-32B (see perflab sim --help)"))
			}
			return runSim(c.Context(), env, f, args)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.gpu, "gpu", "h100-sxm", "accelerator, see --list")
	fs.IntVar(&f.gpus, "gpus", 1, "how many of them the machine has")
	fs.StringVar(&f.config, "model-config", "", "the model's config.json, for a model that --list does not know")
	fs.StringVar(&f.version, "engine-version", "", "version of the engine, such as 0.17: it decides defaults (default: the oldest that is known)")
	f.pools.add(fs)
	fs.Uint64Var(&f.seed, "seed", 0, "of what is random in the simulated engine")
	fs.DurationVar(&f.startup, "startup", 500*time.Millisecond, "time from start to ready; a real engine loads for minutes")
	fs.Float64Var(&f.speed, "speed", 1, "how fast the machine is beside others of its kind: at 0.97 each step takes 3 % longer")
	fs.StringVar(&f.questions, "questions", "", "JSONL file of question and answer: a prompt that holds one of them is answered")
	fs.Float64Var(&f.declared.Accuracy, "accuracy", 1, "declared share of --questions that is answered right")
	fs.Float64Var(&f.declared.Flips, "flips", 0, "declared share of --questions answered otherwise besides, half of them each way")
	fs.Float64Var(&f.declared.Agreement, "agreement", 1, "declared share of a text that is as without --numerics")
	fs.StringVar(&f.declared.Numerics, "numerics", "", "name of the choices (quantisation, KV cache) whose flips and texts they are")
	fs.StringVar(&f.otlp, "otlp", "", "file to add a span to for each request with a W3C trace context (bench --traceparent), in OTLP/JSON under vLLM's names, marked as simulated")
	fs.BoolVar(&f.list, "list", false, "list known models and accelerators")
	return c
}

// runSim refuses as the engine would, else serves until it is told to stop.
func runSim(ctx context.Context, env console.Env, f *simFlags, argv []string) error {
	gpu, err := f.machine()
	if err != nil {
		return console.Usage(err)
	}
	questions, err := f.quiz()
	if err != nil {
		return console.Usage(err)
	}
	cmd, err := typed(argv, f.version)
	if err == nil {
		cmd, err = f.pools.apply(cmd)
	}
	if err != nil {
		return refuse(env, usageUnlessTyped(err))
	}
	if err := cmd.Modelled(); err != nil {
		return console.Usage(err)
	}
	if cmd, err = study.ReadCommandFile(cmd); err != nil {
		return refuse(env, usageUnlessTyped(err))
	}
	model, err := flagset.LookupModel(cmd.Model, f.config)
	if err != nil {
		return console.Usage(err)
	}
	cfg, err := cmd.Resolve(model, gpu, f.gpus)
	if err != nil {
		return refuse(env, err)
	}
	options := sim.Options{Seed: f.seed}
	if f.speed != 1 {
		options.Speed = f.speed
	}
	core, err := sim.New(cfg, options)
	if err != nil {
		return refuse(env, err)
	}
	addr := net.JoinHostPort(listenHost(cmd.Host), fmt.Sprint(cfg.Port))
	spans, closeSpans, err := f.spans()
	if err != nil {
		return err
	}
	defer closeSpans()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w (the engine's own --host and --port choose another)", addr, err)
	}
	notes := append(simNotes(cmd, cfg, l.Addr().String()), f.notes(len(questions))...)
	server := sim.NewServer(core, sim.ServerOptions{
		Questions: questions, Declared: f.declared,
		Spans: spans, Log: env.Stderr, StartupDelay: f.startup,
		ReasoningParser: cmp.Or(cmd.Flag("--reasoning-parser"), cmd.Flag("--reasoning_parser")),
		APIKey:          apiKey(cmd), Notes: notes, Guesses: cmd.Flag("--per-request-spec-decode-metrics"),
	})
	return serve(ctx, l, server)
}

// spans opens the file of spans; nil: there is none.
func (f *simFlags) spans() (w io.Writer, done func(), err error) {
	if f.otlp == "" {
		return nil, func() {}, nil
	}
	file, err := os.OpenFile(f.otlp, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("--otlp: %w", err)
	}
	return file, func() { file.Close() }, nil
}

// machine is the device that is simulated.
func (f *simFlags) machine() (arch.Accelerator, error) {
	gpu, err := arch.LookupAccelerator(f.gpu)
	switch {
	case err != nil:
		return gpu, err
	case !gpu.Known():
		return gpu, fmt.Errorf("nothing is known of %s but that it is there: name a device of perflab sim --list", gpu.Title)
	case f.gpus < 1:
		return gpu, fmt.Errorf("--gpus %d: a machine has at least one", f.gpus)
	case !(f.speed > 0) || math.IsInf(f.speed, 1):
		return gpu, fmt.Errorf("--speed %v: give a factor above 0, such as 0.97", f.speed)
	}
	return gpu, nil
}

// quiz are the questions that the engine is to answer, none without a file.
func (f *simFlags) quiz() ([]sim.Question, error) {
	for _, share := range []struct {
		flag  string
		value float64
	}{{"accuracy", f.declared.Accuracy}, {"flips", f.declared.Flips}, {"agreement", f.declared.Agreement}} {
		if !(share.value >= 0 && share.value <= 1) {
			return nil, fmt.Errorf("--%s %v: a share lies between 0 and 1", share.flag, share.value)
		}
	}
	if f.questions == "" {
		return nil, nil
	}
	set, err := study.ReadQuestions(f.questions)
	if err != nil {
		return nil, err
	}
	out := make([]sim.Question, len(set))
	for i, q := range set {
		out[i] = sim.Question{Text: q.Text, Right: q.Gold, Wrong: q.Wrong()}
	}
	return out, nil
}

// notes say at the head of the log what is declared of the answers.
func (f *simFlags) notes(questions int) []string {
	if questions == 0 {
		return nil
	}
	return []string{fmt.Sprintf("SIMULATED answers to %d questions: %g %% right, as declared", questions, 100*f.declared.Accuracy)}
}

// apiKey is the key that clients must bring, "" for none.
func apiKey(cmd engine.Command) string {
	if key := cmd.Flag("--api-key"); key != "" || cmd.Engine != "vllm" {
		return key
	}
	for _, kv := range cmd.Env {
		if key, ok := strings.CutPrefix(kv, "VLLM_API_KEY="); ok {
			return key
		}
	}
	return ""
}

// simNotes is what a reader of the log must know of this simulation: where it
// really listens, and what of the command changes nothing here.
func simNotes(cmd engine.Command, cfg engine.Config, addr string) []string {
	notes := []string{fmt.Sprintf("SIMULATED on %d x %s, listening on http://%s only", cfg.GPUs, cfg.GPU.Title, addr)}
	if flags := cmd.Unmodelled(); len(flags) > 0 {
		notes = append(notes, "WARNING not simulated, figures are as without: "+strings.Join(flags, " "))
	}
	var names []string
	for _, kv := range cmd.Env {
		if name, _, _ := strings.Cut(kv, "="); name != "VLLM_API_KEY" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		notes = append(notes, "WARNING not simulated, the environment has no effect: "+strings.Join(names, " "))
	}
	if cfg.Spec != "" && !strings.HasSuffix(cfg.Spec, "mtp") {
		notes = append(notes, fmt.Sprintf("WARNING speculation by %s is simulated with the acceptance and cost that were fitted on MTP", cfg.Spec))
	}
	return notes
}

// listenHost keeps the simulator on this machine unless the command itself names
// an address: vLLM listens on every interface by default, a toy should not.
func listenHost(host string) string {
	if host == "" || host == "localhost" {
		return "127.0.0.1"
	}
	return host
}

// serve answers until ctx ends or the listener breaks, and leaves nothing
// running.
func serve(ctx context.Context, l net.Listener, server *sim.Server) error {
	h := &http.Server{Handler: server, ReadHeaderTimeout: time.Minute}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { server.Run(ctx) }) // ends with ctx alone
	wg.Go(func() {
		<-ctx.Done()
		h.Close()
	})
	err := h.Serve(l)
	cancel()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
