package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/telemetry"
	"perflab/internal/verdict"
	"perflab/internal/workload"
)

// Spec is everything that decides a run. It is written into the run's header
// before the first request; there is no second way to configure a run.
type Spec struct {
	Targets  []string `json:"targets"` // base URLs, one a replica
	Backend  string   `json:"backend"` // one of openai.Backends, or an alias
	Endpoint string   `json:"endpoint,omitempty"`
	Model    string   `json:"model"`

	Headers     map[string]string `json:"headers,omitempty"` // values never leave the process: see redacted
	ExtraBody   json.RawMessage   `json:"extra_body,omitempty"`
	Temperature *float64          `json:"temperature,omitempty"`
	TopP        *float64          `json:"top_p,omitempty"`
	Insecure    bool              `json:"insecure,omitempty"`

	Workload workload.Spec `json:"workload"`
	Warmups  int           `json:"num_warmups"`
	Cache    string        `json:"cache,omitempty"` // unique (""), reset, warm, shared

	ReadyTimeout      time.Duration `json:"ready_timeout_ns,omitempty"`
	FirstTokenTimeout time.Duration `json:"timeout_first_token_ns,omitempty"`
	IdleTimeout       time.Duration `json:"timeout_idle_ns,omitempty"`
	TotalTimeout      time.Duration `json:"timeout_total_ns,omitempty"`

	Percentiles []float64         `json:"metric_percentiles,omitempty"`
	Goodput     []string          `json:"goodput,omitempty"`
	Compat      string            `json:"compat,omitempty"`
	KeepText    bool              `json:"save_detailed,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`

	Telemetry time.Duration `json:"telemetry_interval_ns,omitempty"` // between readings of the engines' metrics; 0: none
	Price     result.Price  `json:"price_per_hour,omitzero"`         // of the whole deployment
	GPUs      int           `json:"gpus,omitempty"`                  // allocated to it; 0: none, or not known
}

// Runner is one run to make.
type Runner struct {
	Spec     Spec
	APIKey   string // sent as a bearer token, never stored
	Name     string // of the workload, in the header; default its dataset
	Command  string // serving command under test, where known
	Dir      string // run directory to create; "" keeps nothing on disk
	Version  string // of perflab
	Progress *load.Progress
	Phase    func(string) // told when a phase begins

	SelfCheck *result.SelfCheck // what a self check of this version found on this machine; nil: there was none

	// Sources are read during the run beside the engines' metrics: GPUs and hosts.
	// Of a simulated engine there are no readings of GPUs, which it does not use.
	Sources []telemetry.Source
}

// Outcome is a finished run.
type Outcome struct {
	Header  result.Header
	Client  *result.Client
	Summary result.Summary
	Totals  workload.Totals // planned; where time decides, of the calls made
	Calls   []result.Call

	Readings []result.Reading // of what was around the calls

	Dir   string   // "" when nothing was kept; still with .tmp when it could not be finished
	Notes []string // what the user must know beside the figures, one sentence each

	Engine map[string]float64 // what the engine's metrics would show, of a prediction
}

// Run measures: wait until the server answers, warm up, load, summarise. An
// interrupted run returns its outcome (marked partial) beside ctx's cause, and
// one whose directory could not be finished returns it beside that error.
func (b Runner) Run(ctx context.Context) (*Outcome, error) {
	if err := rundir.Free(b.Dir); err != nil {
		return nil, err
	}
	tok, closeTok, err := b.tokenizer(ctx)
	if err != nil {
		return nil, err
	}
	defer closeTok()
	w, err := workload.OpenWith(b.Spec.Workload, tok)
	if err != nil {
		return nil, err
	}
	if err := ChatOnly(w, b.Spec.Backend); err != nil {
		return nil, err
	}
	if err := load.CheckCapacity(concurrent(w), len(b.Spec.Targets)); err != nil {
		return nil, err
	}
	clients, err := b.clients(w)
	if err != nil {
		return nil, err
	}
	hash := fingerprint(w)
	defer func() {
		for _, c := range clients {
			c.Close()
		}
	}()
	if err := accepts(clients[0], w); err != nil {
		return nil, err
	}
	simulated, note, err := b.prepare(ctx, clients)
	if err != nil {
		return nil, err
	}
	h, err := b.Header(w, simulated)
	if err != nil {
		return nil, err
	}
	h.Clock = clients[0].Clock()
	if err := b.warmUp(ctx, clients, w); err != nil {
		return nil, err
	}
	cache, cacheNote, err := b.prepareCache(ctx, clients, w)
	if err != nil {
		return nil, err
	}
	h.Fingerprint = hash()
	rec := telemetry.Start(ctx, b.sources(clients)...)
	defer rec.Stop()
	if err := b.open(ctx, w, clients); err != nil {
		return nil, err
	}
	out, err := b.measure(ctx, h, w, tok, clients, cache, rec)
	if out != nil {
		out.Notes = notes(note, cacheNote, w.Known(), dropped(w), conversations(w, out.Client))
	}
	return out, err
}

// notes leaves out what there is nothing to say about.
func notes(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// dropped says which rows of the dataset were left out, "" for none.
func dropped(w *workload.Workload) string {
	drops, read := w.Dropped()
	if len(drops) == 0 {
		return ""
	}
	parts := make([]string, len(drops))
	for i, d := range drops {
		parts[i] = fmt.Sprintf("%d %s", d.Rows, d.Reason)
	}
	return fmt.Sprintf("of %d rows read from %s, these were left out: %s", read, w.Spec().Path, strings.Join(parts, ", "))
}

// Phases of a run, as told to Bench.Phase.
const (
	PhaseWaiting   = "waiting for the server"
	PhaseWarmUp    = "warming up"
	PhaseReset     = "emptying the prefix cache"
	PhaseFilling   = "filling the prefix cache"
	PhaseMeasuring = "measuring"
)

func (b Runner) phase(text string) {
	if b.Phase != nil {
		b.Phase(text)
	}
}

// holdTime is how long a call is thought to hold its connection at most when
// nothing but time bounds how many there are.
const holdTime = time.Minute

// concurrent is how many connections the workload may need at once.
func concurrent(w *workload.Workload) int {
	limit, n := w.Spec().MaxConcurrency, w.PeakDue(holdTime)
	if limit > 0 && n > 0 {
		return min(limit, n)
	}
	return max(limit, n)
}

func (b Runner) clients(w *workload.Workload) ([]*openai.Client, error) {
	var out []*openai.Client
	for _, target := range b.Spec.Targets {
		cfg := b.config(target)
		cfg.Concurrency, cfg.Seen = concurrent(w), b.seen()
		cfg.KeepText = b.Spec.KeepText || w.Generates() || b.Spec.Workload.Tokenizer != ""
		c, err := openai.New(cfg)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// config is what every use of a target has in common.
func (b Runner) config(target string) openai.Config {
	s := b.Spec
	return openai.Config{
		BaseURL: target, Backend: s.Backend, Endpoint: s.Endpoint, Model: s.Model,
		APIKey: b.APIKey, Headers: s.Headers, ExtraBody: s.ExtraBody,
		Temperature: s.Temperature, TopP: s.TopP, Insecure: s.Insecure,
		FirstTokenTimeout: s.FirstTokenTimeout, IdleTimeout: s.IdleTimeout, TotalTimeout: s.TotalTimeout,
	}
}

// firstRequests stand for all of a workload where each would take too long.
const firstRequests = 100

// accepts checks that the backend's API has a place for what the workload
// sends. The first requests tell for all: to build every prompt of a long trace
// takes seconds.
func accepts(c *openai.Client, w *workload.Workload) error {
	for r := range w.All() {
		if err := c.Accepts(r); err != nil || r.Index >= firstRequests {
			return err
		}
	}
	return nil
}

// Accepts checks the same of a backend, without a server.
func Accepts(backend string, w *workload.Workload) error {
	client, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1", Backend: backend})
	if err != nil {
		return err
	}
	defer client.Close()
	return accepts(client, w)
}

// seen is where tokens are told of as they come: nowhere before the run itself.
func (b Runner) seen() func(int, time.Duration, bool) {
	if b.Progress == nil {
		return nil
	}
	return func(tokens int, since time.Duration, first bool) {
		if b.Progress.Running.Load() {
			b.Progress.Seen(tokens, since, first)
		}
	}
}

func Senders(clients []*openai.Client) []load.Sender {
	out := make([]load.Sender, len(clients))
	for i, c := range clients {
		out[i] = c
	}
	return out
}

// prepare waits for every target and asks what it serves. note says what could
// not be checked.
func (b Runner) prepare(ctx context.Context, clients []*openai.Client) (simulated bool, note string, err error) {
	b.phase(PhaseWaiting)
	for _, c := range clients {
		if b.Spec.ReadyTimeout > 0 {
			if err := c.Ready(ctx, b.Spec.ReadyTimeout); err != nil {
				return false, "", err
			}
		}
		info, err := c.Probe(ctx)
		if err != nil {
			return false, "", err
		}
		simulated = simulated || info.Simulated
		note = cmp.Or(note, info.Note)
	}
	return simulated, note, nil
}

func (b Runner) Header(w *workload.Workload, simulated bool) (result.Header, error) {
	spec, err := json.Marshal(b.Spec.redacted())
	if err != nil {
		return result.Header{}, fmt.Errorf("encode the run's spec: %w", err)
	}
	s := b.Spec
	h := result.Header{
		Schema: rundir.Schema, Version: b.Version, Simulated: simulated, Started: time.Now().UTC(),
		Model: s.Model, Backend: s.Backend, Targets: s.Targets, Workload: b.Name, Spec: spec,
		Requests: w.Len(), Limit: s.Workload.MaxConcurrency, Command: b.Command, Host: host(),
		SelfCheck: b.SelfCheck, Tokenizer: w.MeasuredBy(),
		Cache: cmp.Or(s.Cache, CacheUnique), Sharing: s.Workload.Defaults().SharesPrefixes(),
	}
	if h.Workload == "" {
		h.Workload = s.Workload.Dataset
	}
	h.Rate = w.Offered()
	return h, nil
}

// redacted is the spec without secrets: header values are replaced, since an
// authorization header is the usual reason to give one.
func (s Spec) redacted() Spec {
	if s.Headers != nil {
		s.Headers = maps.Clone(s.Headers)
		for k := range s.Headers {
			s.Headers[k] = "(not stored)"
		}
	}
	return s
}

func host() result.Host {
	return result.Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
}

// warmUp sends requests whose prompts are never in the measured set, so that
// the first measured ones meet neither cold kernels nor cold connections, and
// throws the answers away. All of them failing is the user's first sign of a
// wrong endpoint, so it ends the run.
func (b Runner) warmUp(ctx context.Context, clients []*openai.Client, measured *workload.Workload) error {
	if b.Spec.Warmups == 0 {
		return nil
	}
	b.phase(PhaseWarmUp)
	w, err := workload.Open(workload.Spec{
		NumPrompts: b.Spec.Warmups * len(clients), Seed: b.Spec.Workload.Seed ^ warmupSeed,
		RandomInputLen: 64, RandomOutputLen: 8, MaxConcurrency: b.Spec.Warmups,
		LoraModules: b.Spec.Workload.LoraModules, LoraAssignment: roundRobin(b.Spec.Workload),
	}.Defaults())
	if err != nil {
		return err
	}
	var failed []result.Call
	n := 0
	_, err = load.Run(ctx, withMeasuredAttributes(w.All(), measured), Senders(clients), load.Options{MaxConcurrency: w.Spec().MaxConcurrency}, func(c result.Call) {
		n++
		if c.Class != result.OK {
			failed = append(failed, c)
		}
	})
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if n > 0 && len(failed) == n {
		return &WarmupError{N: n, First: failed[0]}
	}
	return nil
}

// warmupSeed keeps the warm-up's prompts apart from those of any usual seed.
const warmupSeed = 0x77_61_72_6d_75_70

// WarmupError says that no warm-up request was answered: nothing is measured.
type WarmupError struct {
	N     int
	First result.Call
}

func (e *WarmupError) Error() string {
	return fmt.Sprintf("all %d warm-up requests failed (%s): %s", e.N, e.First.Class, e.First.Error)
}

// open makes the connections that the first instant needs: a burst, or the
// first requests of a closed loop, should not measure how fast this client
// connects.
func (b Runner) open(ctx context.Context, w *workload.Workload, clients []*openai.Client) error {
	n, limit := w.Burst(), b.Spec.Workload.MaxConcurrency
	switch {
	case w.Closed():
		n = concurrent(w)
	case limit > 0:
		n = min(n, limit)
	}
	for _, c := range clients {
		if err := c.Open(ctx, (n+len(clients)-1)/len(clients)); err != nil {
			return err
		}
		c.Sockets() // those of the warm-up are not the run's
	}
	return nil
}

// HeapGrowth is GOGC during a load: the heap is the calls themselves, to be
// collected a few times and not all along.
const HeapGrowth = 400

// measure runs the load and summarises. The calls stay in memory, so a disk
// that fills up costs the directory and not the figures.
func (b Runner) measure(ctx context.Context, h result.Header, w *workload.Workload, tok workload.Tokenizer, clients []*openai.Client, cache *cacheWatch, rec *telemetry.Recording) (*Outcome, error) {
	out := &Outcome{Header: h, Totals: w.Totals(), Calls: make([]result.Call, 0, w.Len())}
	var dir *rundir.Writer
	if b.Dir != "" {
		var err error
		if dir, err = rundir.Create(b.Dir, h); err != nil {
			return nil, err
		}
		defer dir.Abandon()
	}
	if b.Progress != nil {
		b.Progress.Planned.Store(int64(w.Len()))
	}
	b.phase(PhaseMeasuring)
	defer debug.SetGCPercent(debug.SetGCPercent(HeapGrowth))
	count := counter{tok: tok, late: b.Spec.Workload.Tokenizer == workload.ServerTokenizer, keep: func(c result.Call) {
		if !b.Spec.KeepText {
			c.Text = "" // kept until here for the next turn's prompt
		}
		out.Calls = append(out.Calls, c)
		if dir != nil {
			dir.Add(&c)
		}
	}}
	stats, err := load.Run(ctx, w.All(), Senders(clients), b.options(w), count.take)
	if err != nil {
		return nil, err
	}
	count.finish()
	if w.Len() == 0 {
		out.Totals = sentTotals(out.Calls)
	}
	out.Client = &stats.Client
	for _, c := range clients {
		most, opened := c.Sockets()
		out.Client.Sockets, out.Client.Opened = out.Client.Sockets+most, out.Client.Opened+opened
	}
	rec.Stop()
	out.Readings = believable(rec.Readings(stats.Start), h.Simulated)
	out.Client.Cache = cache.use(ctx)
	if err := out.Summarise(b.Spec); err != nil {
		return nil, err
	}
	if dir != nil {
		out.Dir = b.Dir
		if err := dir.Finish(out.Client, &out.Summary, out.Readings); err != nil {
			out.Dir = dir.Unfinished()
			return out, fmt.Errorf("the run directory is incomplete: %w", err)
		}
	}
	if ctx.Err() != nil {
		return out, context.Cause(ctx)
	}
	return out, nil
}

// sentTotals sums what was sent where no plan says it.
func sentTotals(calls []result.Call) workload.Totals {
	t := workload.Totals{Requests: len(calls)}
	for i := range calls {
		t.Input += calls[i].WantIn
		t.Output += calls[i].Want
		t.Span = max(t.Span, calls[i].Due)
	}
	return t
}

func (o *Outcome) Summarise(s Spec) error {
	opt, err := s.summaryOptions()
	if err != nil {
		return err
	}
	opt.Readings = o.Readings
	slices.SortFunc(o.Calls, func(a, b result.Call) int { return a.Index - b.Index })
	o.Summary, err = verdict.Summarize(o.Header, o.Client, opt, slices.Values(o.Calls))
	return err
}

func (s Spec) summaryOptions() (result.Options, error) {
	return rundir.FigureSpec{Percentiles: s.Percentiles, Goodput: s.Goodput, Compat: s.Compat, Price: s.Price, GPUs: s.GPUs}.Options()
}

// PercentilesOf are the percentiles that metrics ask for by their names: 99.9
// of p99.9_ttft_ms. A summary has them only when its spec does.
func PercentilesOf(metrics ...string) []float64 {
	var out []float64
	for _, name := range metrics {
		if p, ok := result.Percentile(name); ok {
			out = append(out, p)
		}
	}
	return out
}

// MostGPUs keeps a slip of the finger from starting a million replicas.
const MostGPUs = 4096

// Validate checks a spec before any work.
func (s Spec) Validate() error {
	var errs []error
	if len(s.Targets) == 0 {
		errs = append(errs, field.Errorf("targets", "is missing: where the server answers, as http://HOST:PORT"))
	}
	for _, t := range s.Targets {
		if !strings.HasPrefix(t, "http://") && !strings.HasPrefix(t, "https://") {
			errs = append(errs, field.Errorf("targets", "%q is no URL: it begins with http:// or https://", t))
		}
	}
	if s.Model == "" {
		errs = append(errs, field.Errorf("model", "is missing: the name under which the server serves it"))
	}
	if s.Warmups < 0 {
		errs = append(errs, field.Errorf("num_warmups", "is %d: it cannot be negative", s.Warmups))
	}
	for _, p := range s.Percentiles {
		if !(p > 0 && p < 100) { // nor NaN
			errs = append(errs, field.Errorf("metric_percentiles", "has %g: percentiles lie between 0 and 100", p))
		}
	}
	if _, err := s.summaryOptions(); err != nil {
		errs = append(errs, err)
	}
	if s.Telemetry != 0 && s.Telemetry < MinTelemetry {
		errs = append(errs, field.Errorf("telemetry_interval_ns", "is %v: it must be at least %v, since each reading costs the server work", s.Telemetry, MinTelemetry))
	}
	if s.GPUs < 0 || s.GPUs > MostGPUs {
		errs = append(errs, field.Errorf("gpus", "is %d: give the number of GPUs that the deployment has, at most %d", s.GPUs, MostGPUs))
	}
	if err := s.CheckCache(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, s.Workload.Validate(), ChatOnly(s.Workload, s.Backend), ScenarioFits(s.Workload.Scenario, s.Backend))
	return errors.Join(errs...)
}
