// Package measure has the commands that send load: bench with its series, tune, status, which
// says how far they are, and selfcheck, which says how far to believe them. Each makes a spec of
// its flags, has another package do the work, and shows what came of it.
package measure

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"perflab/internal/bench"
	"perflab/internal/block"
	"perflab/internal/cli/console"
	"perflab/internal/cli/flagset"
	"perflab/internal/cli/library"
	"perflab/internal/cli/machines"
	"perflab/internal/durable"
	"perflab/internal/fleet"
	"perflab/internal/interop"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/redact"
	"perflab/internal/result"
	"perflab/internal/selfcheck"
	"perflab/internal/seriesdoc"
	"perflab/internal/workload"
)

// benchFlags are the flags of perflab bench, in the spelling of vllm bench
// serve where it has them.
type benchFlags struct {
	push   library.Push
	spans  spanFlags
	kube   kubeFlags
	fleet  string // agents that send the load
	hub    machines.Hub
	crew   bench.Crew // of the fleet; nil: this machine sends
	spec   bench.Spec
	series seriesFlags
	rules  profileFlags

	baseURLs         []string
	host             string
	port             int
	repo, served     string // of the model: its own name, and the one that the server has for it
	rate             string
	headers          []string
	extraBody        string
	metadata         []string
	label            string
	readyS           float64
	percentiles      string
	shownPercentiles []float64 // percentiles, parsed
	sections         string
	slos             []string
	bounds           []result.SLO // slos, parsed
	maxErrors        float64

	telemetry string        // auto, off, or a list of engine, gpu, host
	interval  time.Duration // between readings
	gpus      []string      // that serve; nil: all
	price     string

	block        string
	metricsAddr  string
	out          string
	html         string
	parquet      string
	save         bool
	detailed     bool
	appendResult bool
	resultDir    string
	resultFile   string

	from string // another client's command
}

const benchLong = `Drive a workload at an OpenAI-compatible endpoint and print the "Serving
Benchmark Result" block, with a verdict on whether its figures can be believed.

Flags are those of vllm bench serve; a flag that does not apply to the chosen
dataset or arrival is an error. The API key comes from OPENAI_API_KEY and is
stored nowhere.

perflab bench serve ... runs a command line of vllm bench serve as it is, with
that client's defaults; docs/from-vllm.md has its flags beside these.

Latencies count from the moment a request was sent, as in other tools; those
from the moment it was due carry _due in their name. docs/metrics.md defines
every figure.

--sweep, --find-max and --repeat make several runs, each with requests of its
own, and print a table of them; --out is then the directory of their directories.

The run directory keeps every call, so that any figure can be computed again:
perflab report DIR.

` + fromLong

// NewBench is perflab bench: one run, or a series of them.
func NewBench(env console.Env) *cobra.Command {
	f := &benchFlags{}
	c := &cobra.Command{
		Use:   "bench [--model MODEL] --base-url URL [flags]",
		Short: "Drive a workload at an OpenAI-compatible endpoint",
		Long:  benchLong,
		Example: `  # 100 random prompts of 1024 tokens, all at once
  perflab bench --base-url http://127.0.0.1:8000 --model Qwen/Qwen3-32B --num-prompts 100

  # ShareGPT at 8 requests/s, with an SLO that decides the exit status
  perflab bench --base-url http://127.0.0.1:8000 --model Qwen/Qwen3-32B \
    --dataset-name sharegpt --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json \
    --num-prompts 1000 --request-rate 8 --slo 'p99_ttft_ms <= 500'

  # the first 300 requests of a production trace, ten times faster
  perflab bench --base-url http://127.0.0.1:8000 --model Qwen/Qwen3-32B \
    --dataset-name azure --dataset-path AzureLLMInferenceTrace_conv.csv \
    --num-prompts 300 --speed 10

  # what others run in a Kubernetes cluster, with its pods and their metrics
  perflab bench --kube-service prod/llama --num-prompts 200`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return console.Usage(fmt.Errorf("%q is no flag, and no flag before it takes it as a value (see perflab bench --help)", args[0]))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("from") {
				return translateCommand(env, c.Flags(), f.from)
			}
			return f.run(c, env)
		},
	}
	f.add(c.Flags())
	console.GroupHelp(c, BenchHelp())
	return c
}

// run makes the run, or the series, that the flags ask for.
func (f *benchFlags) run(c *cobra.Command, env console.Env) error {
	if err := f.complete(c.Flags()); err != nil {
		return console.Usage(err)
	}
	if err := f.spans.begin(env); err != nil {
		return err
	}
	ctx, leave, err := f.findService(c.Context(), env)
	if err != nil {
		return err
	}
	defer leave()
	if err := f.askModel(ctx, env); err != nil {
		return err
	}
	stop, err := f.meet(ctx, env)
	if err != nil {
		return err
	}
	defer stop()
	for _, broken := range f.spec.Foreseen() {
		fmt.Fprintf(env.Stderr, "perflab: submission_valid will be false: %s: %s\n", broken.Rule, broken.Text)
	}
	return f.push.After(c.Context(), env, func() error {
		if kind := f.series.kind(c.Flags()); kind != "" {
			return runSeries(ctx, env, f, kind)
		}
		return runBench(ctx, env, f)
	}, func() []string { return []string{f.out} })
}

func (f *benchFlags) add(fs *pflag.FlagSet) {
	fs.SortFlags = false
	s := &f.spec
	fs.StringSliceVar(&f.baseURLs, "base-url", nil, "endpoint, http://host:port; several (comma separated) are loaded as replicas")
	fs.StringVar(&f.host, "host", "127.0.0.1", "endpoint's host, without --base-url")
	fs.IntVar(&f.port, "port", 8000, "endpoint's port, without --base-url")
	f.kube.add(fs)
	fs.StringVar(&s.Backend, "backend", "openai-chat", "API to speak: openai-chat (/v1/chat/completions), openai or vllm (/v1/completions), openai-responses (/v1/responses), anthropic (/v1/messages), sglang (/generate), openai-embeddings (/v1/embeddings), rerank (/v1/rerank), score (/score), pooling (/pooling)")
	fs.StringVar(&s.Endpoint, "endpoint", "", "path of the API when it is not the backend's usual one")
	fs.StringVar(&s.Model, "model", "", "model name sent with each request (default the first that the server lists)")
	fs.StringVar(&f.served, "served-model-name", "", "name the server serves it under, when it is not --model")
	flagset.AddWorkload(fs, &s.Workload, &f.rate)
	flagset.AddUntil(fs, &s.Workload)
	fs.StringVar(&s.Cache, "cache", bench.CacheUnique, "unique (prompts new to the server: draws --seed where it is not given, and --nonce for texts of a file), reset (empties the server's prefix cache first), warm (sends the prompts once before) or shared (hits of earlier runs count)")
	fs.IntVar(&s.Warmups, "num-warmups", 8, "requests sent and thrown away before the run, for each endpoint; their prompts are never in the measured set")
	fs.Float64Var(&f.readyS, "ready-check-timeout-sec", 0, "wait this long for the server to answer; 0 does not wait")
	fs.DurationVar(&s.FirstTokenTimeout, "timeout-first-token", 10*time.Minute, "give a request up without a token for this long")
	fs.DurationVar(&s.IdleTimeout, "timeout-idle", 2*time.Minute, "give a stream up after a gap this long")
	fs.DurationVar(&s.TotalTimeout, "timeout-total", 6*time.Hour, "give a request up after this long")
	addSamplingFlags(fs, s)
	fs.StringArrayVar(&f.headers, "header", nil, "KEY=VALUE sent with each request; repeatable; values are not stored")
	fs.StringVar(&f.extraBody, "extra-body", "", "JSON object merged into each request's body")
	f.rules.add(fs, s)
	fs.BoolVar(&s.Insecure, "insecure", false, "accept any TLS certificate")
	fs.StringVar(&f.sections, "percentile-metrics", "ttft,tpot,itl,e2el", "sections of the block")
	fs.StringVar(&f.percentiles, "metric-percentiles", "99", "percentiles of the block, such as 50,95,99.9")
	fs.StringVar(&f.block, "block", "vllm", "layout of the block: vllm or gpustack")
	fs.StringSliceVar(&s.Goodput, "goodput", nil, "what makes a request good, such as ttft:500,tpot:50 (ms) or mlperf:llama3.1-8b; failed ones are not")
	fs.StringArrayVar(&f.slos, "slo", nil, "what must hold, such as 'p99_ttft_ms <= 500' or mlperf:llama2-70b-interactive (its bounds at P99); repeatable; exit status 3 when missed")
	fs.StringVar(&s.Compat, "compat", "", "vllm: TTFT, TPOT, ITL, E2EL, peaks and throughputs by the definitions of vllm bench serve; the verdict stays on perflab's own")
	fs.Float64Var(&f.maxErrors, "max-error-rate", 0.01, "exit status 1 when a larger share of the calls failed; above a tenth a run is void whatever is allowed")
	f.addTelemetry(fs)
	fs.StringVar(&f.metricsAddr, "metrics-addr", "", "serve the run's progress to Prometheus at this address while it lasts, such as 127.0.0.1:9400")
	fs.StringVar(&f.out, "out", "", "run directory, or that of a series' runs (default perflab-out/bench-TIME)")
	f.push.Add(fs)
	f.spans.add(fs, s)
	flagset.AddFiles(fs, &f.html, &f.parquet)
	fs.BoolVar(&f.save, "save-result", false, "also write the JSON file of vllm bench serve, of a series one for each run")
	fs.BoolVar(&f.detailed, "save-detailed", false, "with --save-result: per-request arrays and generated texts")
	fs.BoolVar(&f.appendResult, "append-result", false, "as --save-result, but append a line (of a series: one for each run) to the file")
	fs.StringVar(&f.resultDir, "result-dir", "", "with --save-result: directory (default .)")
	fs.StringVar(&f.resultFile, "result-filename", "", "with --save-result: file name (default as vLLM names it)")
	fs.StringVar(&f.label, "label", "", "with --save-result: label in the file and in its name (default the backend)")
	fs.StringArrayVar(&f.metadata, "metadata", nil, "KEY=VALUE kept with the result; repeatable")
	f.series.add(fs)
	fs.StringVar(&f.fleet, "fleet", "", "have agents of a fleet send the load: how many, their names, label=value, or all; each sends its shard")
	f.hub.Add(fs)
	fs.StringVar(&f.from, "from", "", "print another client's command as one of perflab bench, such as 'guidellm benchmark --target ...', and what differs")
}

// complete turns flags into the spec and checks everything before any work.
func (f *benchFlags) complete(fs *pflag.FlagSet) error {
	s := &f.spec
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	note(f.targets(fs))
	if f.repo = s.Model; f.served != "" {
		s.Model = f.served
	}
	if err := f.rules.fill(fs, &f.series); err != nil {
		return err // what the rules leave out would be missed by others too
	}
	note(f.series.parse(fs, &s.Workload))
	note(flagset.FillWorkload(fs, &s.Workload, f.rate))
	*s = s.InPasses()
	note(errors.Join(f.request(fs), f.spans.parse(fs, s)))
	s.ReadyTimeout = time.Duration(f.readyS * float64(time.Second))
	s.KeepText = f.detailed
	var err error
	f.shownPercentiles, err = flagset.Percentiles(f.percentiles)
	note(err)
	s.Metadata, err = console.Pairs("--metadata", f.metadata)
	note(err)
	note(f.output(fs))
	note(f.completeTelemetry(fs))
	s.Percentiles = slices.Clone(f.shownPercentiles)
	for _, text := range f.slos {
		slos, err := result.ParseSLOs(text)
		note(err)
		f.bounds = append(f.bounds, slos...)
		for _, slo := range slos {
			s.Percentiles = append(s.Percentiles, bench.PercentilesOf(slo.Metric)...)
		}
	}
	note(f.checkBounds())
	note(f.checkHub(fs))
	if f.maxErrors < 0 || f.maxErrors > 1 {
		note(fmt.Errorf("--max-error-rate is %g: it is a share between 0 and 1", f.maxErrors))
	}
	known := *s
	known.Model = cmp.Or(s.Model, "asked") // of the server, when all else is right
	if err := known.Validate(); err != nil {
		note(err)
	} else {
		note(s.CheckTargets())
		note(f.series.check(fs, *s))
	}
	if f.out == "" {
		f.out = seriesDir(f.series.kind(fs), time.Now().Format("20060102-150405.000"))
	}
	*s = s.Freshen(fs.Changed("seed"))
	return errors.Join(errs...)
}

// targets are the endpoints that flags name.
func (f *benchFlags) targets(fs *pflag.FlagSet) error {
	s := &f.spec
	s.Targets = f.baseURLs
	err := f.kube.complete(fs, f.baseURLs)
	switch {
	case len(s.Targets) == 0 && f.kube.given():
		s.Targets = []string{"http://" + serviceHost} // until it is found
	case len(s.Targets) == 0:
		s.Targets = []string{"http://" + net.JoinHostPort(f.host, strconv.Itoa(f.port))}
	case fs.Changed("host") || fs.Changed("port"):
		err = errors.Join(err, errors.New("--host and --port are for when there is no --base-url: give one or the other"))
	}
	for i, t := range s.Targets {
		s.Targets[i] = strings.TrimRight(t, "/")
	}
	return err
}

// checkHub refuses a hub without a fleet.
func (f *benchFlags) checkHub(fs *pflag.FlagSet) error {
	if f.fleet == "" && (fs.Changed("hub") || fs.Changed("hub-seed") || fs.Changed("hub-ca")) {
		return errors.New("--hub says where a fleet meets: say which of its agents send the load by --fleet")
	}
	return nil
}

// addSamplingFlags are the flags that say how tokens are drawn.
func addSamplingFlags(fs *pflag.FlagSet, s *bench.Spec) {
	fs.Var(console.OptionalFloat(&s.Temperature), "temperature", "sampling temperature; as of the next ones the server's default when not given")
	fs.Var(console.OptionalFloat(&s.TopP), "top-p", "nucleus sampling")
	fs.Var(console.OptionalInt(&s.TopK), "top-k", "sample from this many tokens")
	fs.Var(console.OptionalFloat(&s.MinP), "min-p", "least probability, as a share of the likeliest token's")
	fs.Var(console.OptionalFloat(&s.FrequencyPenalty), "frequency-penalty", "penalty by how often a token has come")
	fs.Var(console.OptionalFloat(&s.PresencePenalty), "presence-penalty", "penalty for tokens that have come")
	fs.Var(console.OptionalFloat(&s.RepetitionPenalty), "repetition-penalty", "factor against tokens that have come, in the prompt too")
}

// askModel asks the server for the model that no flag names.
func (f *benchFlags) askModel(ctx context.Context, env console.Env) (err error) {
	if f.spec.Model == "" {
		if f.spec.Model, err = (bench.Runner{Spec: f.spec, APIKey: env.Getenv("OPENAI_API_KEY")}).FirstModel(ctx); err == nil {
			fmt.Fprintf(env.Stderr, "model: %s, the first that the server lists\n", f.spec.Model)
		}
	}
	return err
}

func (f *benchFlags) request(fs *pflag.FlagSet) error {
	s := &f.spec
	if s.Endpoint != "" && !fs.Changed("backend") {
		s.Backend = openai.BackendOf(s.Endpoint)
	}
	if f.readyS < 0 {
		return fmt.Errorf("--ready-check-timeout-sec is %g: it cannot be negative", f.readyS)
	}
	for _, t := range []struct {
		name string
		d    time.Duration
	}{{"timeout-first-token", s.FirstTokenTimeout}, {"timeout-idle", s.IdleTimeout}, {"timeout-total", s.TotalTimeout}} {
		if t.d <= 0 {
			return fmt.Errorf("--%s is %v: it must be above 0", t.name, t.d)
		}
	}
	if f.extraBody != "" {
		var object map[string]any
		if err := json.Unmarshal([]byte(f.extraBody), &object); err != nil {
			return fmt.Errorf("--extra-body %.60q is no JSON object: write it as '{\"min_p\":0.1}'", f.extraBody)
		}
		s.ExtraBody = json.RawMessage(f.extraBody)
	}
	var err error
	s.Headers, err = console.Pairs("--header", f.headers)
	return err
}

func (f *benchFlags) output(fs *pflag.FlagSet) error {
	f.save = f.save || f.appendResult
	if !f.save {
		for _, name := range []string{"save-detailed", "result-dir", "result-filename", "label"} {
			if fs.Changed(name) {
				return fmt.Errorf("--%s needs --save-result", name)
			}
		}
	}
	if f.block != "vllm" && f.block != "gpustack" {
		return fmt.Errorf("--block %q is not known: vllm or gpustack", f.block)
	}
	for name := range strings.SplitSeq(f.sections, ",") {
		if !slices.Contains(result.Families(), name) {
			return fmt.Errorf("--percentile-metrics has %q: the sections are %s", name, strings.Join(result.Families(), ", "))
		}
	}
	if !f.save {
		return nil
	}
	return f.vllm().Validate()
}

// vllm is what the flags say of the result file.
func (f *benchFlags) vllm() interop.VLLMOptions {
	w := f.spec.Workload
	return interop.VLLMOptions{
		Label: redact.Text(f.label), Burstiness: w.Burstiness, Sections: strings.Split(f.sections, ","), Percentiles: f.shownPercentiles,
		Detailed: f.detailed, Metadata: concealed(f.spec.Metadata),
		RampStrategy: w.RampStrategy, RampStart: w.RampStart, RampEnd: w.RampEnd,
	}
}

// concealed are pairs without the secrets in their values.
func concealed(pairs map[string]string) map[string]string {
	out := maps.Clone(pairs)
	for name, value := range out {
		out[name] = redact.Field(name, value)
	}
	return out
}

// runBench makes the run and shows it.
// meet finds the agents that send the load, where a fleet does.
func (f *benchFlags) meet(ctx context.Context, env console.Env) (stop func(), err error) {
	if f.fleet == "" {
		return func() {}, nil
	}
	choice, err := fleet.ParseChoice(f.fleet)
	if err != nil {
		return nil, console.Usage(fmt.Errorf("--fleet: %w", err))
	}
	l, stop, err := f.hub.Lead(ctx, env)
	if err != nil {
		return nil, err
	}
	if f.crew, err = l.Crew(ctx, choice); err != nil {
		stop()
		return nil, err
	}
	if f.kube.found != nil {
		f.crew = f.kube.found.Beside(f.crew)
	}
	return stop, nil
}

func runBench(ctx context.Context, env console.Env, f *benchFlags) error {
	if err := f.placeFiles(); err != nil {
		return err
	}
	progress := &load.Progress{}
	var phase phase
	view := panel{p: progress}
	line := console.StartLive(env, func() string { return benchLine(&phase, progress) }, view.shown)
	stop, err := f.serveMetrics(env, func() *load.Progress { return progress })
	if err != nil {
		line.End()
		return err
	}
	defer stop()
	b := bench.Runner{
		Spec: f.spec, Repo: f.repo, APIKey: env.Getenv("OPENAI_API_KEY"), Secrets: env.Secrets, Dir: f.out, Version: env.Version, Invoked: f.invoked(env), SelfCheck: selfcheck.Load(env.Version),
		Progress: progress, Phase: phase.set, Sources: f.sources(), Crew: f.crew,
	}
	f.kube.tell(&b)
	var out *bench.Outcome
	if err = b.ChooseTokenizer(ctx); err == nil {
		out, err = b.Run(ctx)
	}
	line.End()
	if out == nil {
		return err
	}
	if err != nil {
		err = console.Stopped(err, fmt.Sprintf("the figures are of the %d calls that were made", int(out.Summary.Figures["completed"]+out.Summary.Figures["failed"])))
	}
	if serr := f.show(env, out); serr != nil {
		return errors.Join(err, serr)
	}
	f.spans.write(ctx, out, func(format string, args ...any) { fmt.Fprintf(env.Stderr, format+"\n", args...) })
	var p bench.Point
	p.Judge(out, f.bounds, f.maxErrors)
	showSLOs(env, f.bounds, p)
	if err != nil {
		return err
	}
	return judgeRun(p, len(f.bounds), f.maxErrors)
}

func (f *benchFlags) show(env console.Env, out *bench.Outcome) error {
	style := block.Style{Layout: f.block, Sections: strings.Split(f.sections, ","), Percentiles: f.shownPercentiles}
	if _, err := fmt.Fprint(env.Stdout, block.Text(out.Summary, style), block.Precision(out.Summary, style), block.Sessions(out.Summary), block.Cache(out.Summary), block.Telemetry(out.Summary), block.Speculation(out.Summary), out.Summary.Verdict.Text()); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	for _, note := range out.Notes {
		fmt.Fprintf(env.Stderr, "perflab: %s\n", note)
	}
	fmt.Fprintln(env.Stderr, workloadLine(out, f.spec.Workload))
	if out.Dir != "" {
		fmt.Fprintf(env.Stderr, "run directory: %s\n", out.Dir)
	}
	if err := f.writeFiles(env, out, style); err != nil {
		return err
	}
	if !f.save {
		return nil
	}
	path, err := f.saveResult(out, cmp.Or(f.resultFile, interop.VLLMFileName(out.Header, f.vllm())))
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "result file: %s\n", path)
	return nil
}

// saveResult writes the file of vllm bench serve under a name.
func (f *benchFlags) saveResult(out *bench.Outcome, name string) (string, error) {
	calls := out.Calls
	if f.detailed && out.Every > 1 {
		var err error
		if calls, err = allCalls(out); err != nil {
			return "", err
		}
	}
	b, err := interop.VLLM(out.Header, out.Summary, calls, f.vllm())
	if err != nil {
		return "", fmt.Errorf("encode the result file: %w", err)
	}
	path, write := filepath.Join(f.resultDir, name), durable.WriteFile
	if f.appendResult {
		write = durable.AppendFile
	}
	if err := write(path, append(b, '\n'), 0o644); err != nil {
		return "", fmt.Errorf("write the result file: %w", err)
	}
	return path, nil
}

// workloadLine says what a run sent, so that two can be told apart or alike.
func workloadLine(out *bench.Outcome, w workload.Spec) string {
	return fmt.Sprintf("workload %s, %s requests, %s prompt tokens %s, seed %d%s, cache %s",
		out.Header.Fingerprint, console.Grouped(out.Totals.Requests), console.Grouped(out.Totals.Input), out.CountedBy(), w.Seed, seriesdoc.NonceText(w.Nonce), out.Header.Cache)
}
