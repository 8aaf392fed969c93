package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/redact"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/telemetry"
	"perflab/internal/workload"
)

// Runner is one run to make.
type Runner struct {
	Spec     Spec
	Repo     string        // the model's repository, whose tokenizer is looked for; "": Spec.Model is its name
	APIKey   string        // sent as a bearer token, never stored
	Name     string        // of the workload, in the header; default its dataset
	Command  string        // serving command under test, where known
	Invoked  string        // the command line that makes the run; "": none does
	Dir      string        // run directory to create; "" keeps nothing on disk
	Version  string        // of perflab
	Secrets  redact.Values // that are known beside those of the spec: none of them is stored
	Progress *load.Progress
	Phase    func(string) // told when a phase begins

	Early *Early // how the run may end before its plan; nil: it may not

	TokenizerFrom string // see result.Header; ChooseTokenizer sets it
	instead       string // what measures lengths in place of what was asked for, for the user

	Crew Crew // other machines that send the load; nil: this one does

	SelfCheck *result.SelfCheck // what a self check of this version found on this machine; nil: there was none

	// Meters are engines that publish metrics where the targets do not: those behind a router.
	Meters []Meter

	// Pods are those that the targets are, where they are pods of a cluster.
	Pods []result.Pod

	// Service is what others run in a cluster, where the targets are that. Its metrics are read as Meters says, and none
	// where there are no Meters: its address is now one pod's and now another's.
	Service *result.Service

	// Sources are read during the run beside the engines' metrics: GPUs and hosts.
	// Of a simulated engine there are no readings of GPUs, which it does not use.
	Sources []telemetry.Source
}

// Meter is an engine whose metrics are read.
type Meter struct {
	Source string // of its readings: gauge.SourceEngine, gauge.SourcePrefill
	Index  int
	URL    string
}

// Phases of a run, as told to Bench.Phase.
const (
	PhaseWaiting   = "waiting for the server"
	PhaseWarmUp    = "warming up"
	PhaseReset     = "emptying the prefix cache"
	PhaseFilling   = "filling the prefix cache"
	PhaseMeasuring = "measuring"
	PhaseProfile   = "writing the profile"
)

func (b Runner) phase(text string) {
	if b.Phase != nil {
		b.Phase(text)
	}
}

// config is what every use of a target has in common.
func (b Runner) config(target string) openai.Config {
	s := b.Spec
	return openai.Config{
		BaseURL: target, Backend: s.Backend, Endpoint: s.Endpoint, Model: s.Model,
		APIKey: b.APIKey, Headers: s.Headers, ExtraBody: s.ExtraBody,
		Sampling: s.Sampling, Insecure: s.Insecure, Traceparent: s.Traceparent,
		SessionHeader: s.Workload.SessionHeader, SessionRun: sessionRun(s.Workload),
		FirstTokenTimeout: s.FirstTokenTimeout, IdleTimeout: s.IdleTimeout, TotalTimeout: s.TotalTimeout,
	}
}

// progressHook is where tokens are told of as they come: nowhere before the run itself.
func (b Runner) progressHook() func(int, time.Duration, bool) {
	if b.Progress == nil {
		return nil
	}
	return func(tokens int, since time.Duration, first bool) {
		if b.Progress.Running.Load() {
			b.Progress.Seen(tokens, since, first)
		}
	}
}

func (b Runner) Header(w *workload.Workload, simulated bool) (result.Header, error) {
	spec, err := json.Marshal(b.Spec.redacted())
	if err != nil {
		return result.Header{}, fmt.Errorf("encode the run's spec: %w", err)
	}
	spec = b.Secrets.JSON(spec)
	s := b.Spec
	h := result.Header{
		Schema: rundir.Schema, Version: b.Version, Simulated: simulated, Started: time.Now().UTC(),
		Model: s.Model, Backend: s.Backend, Targets: s.Targets, Workload: b.Name, Spec: spec,
		Requests: w.Len(), Limit: s.Workload.MaxConcurrency, Command: b.Command, Invoked: b.Invoked, Host: host(),
		Pods: b.Pods, Service: b.Service, SelfCheck: b.SelfCheck, Tokenizer: w.MeasuredBy(), TokenizerFrom: b.TokenizerFrom,
		Cache: cmp.Or(s.Cache, CacheUnique), Sharing: s.Workload.Defaults().SharesPrefixes(),
	}
	if h.Workload == "" {
		h.Workload = s.Workload.Dataset
	}
	h.Rate, h.KnownInput, h.Closed = w.Offered(), w.KnowsInput(), w.Closed()
	if w.Spec().IgnoreEOS {
		h.Lengths = result.LengthsExact // of a prediction; a client says whether its API can
	}
	for _, text := range []*string{&h.Model, &h.Backend, &h.Workload, &h.Command, &h.Invoked, &h.Tokenizer, &h.TokenizerFrom} {
		*text = b.Secrets.Text(*text)
	}
	h.Targets = slices.Clone(h.Targets)
	for i, t := range h.Targets {
		h.Targets[i] = b.Secrets.Text(t)
	}
	return h, nil
}

// conceal replaces the secrets in what came from the server and was not sent to
// it: the client has done so with those that it sends.
func (b Runner) conceal(c *result.Call) {
	c.Error, c.Text = b.Secrets.Mask(c.Error), b.Secrets.Mask(c.Text)
}

// lengths is what a client asks of the length of answers: its own requests tell, into
// which a user's fields are merged.
func lengths(c *openai.Client, w *workload.Workload) string {
	ignore := w.Spec().IgnoreEOS
	if c.Build(workload.Request{Prompt: "p", Output: 1, EOS: !ignore}).IgnoresEOS() {
		return result.LengthsExact
	}
	if ignore {
		return result.LengthsFixed
	}
	return ""
}

func host() result.Host {
	return result.Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(),
		CPUs: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0),
	}
}

// options say how a share is sent.
func (b Runner) options(w share) load.Options {
	o := load.Options{
		MaxConcurrency: w.limit(), Spin: load.DefaultSpin, Progress: b.Progress,
		Until: w.Until(), Closed: w.Closed(), Affinity: !w.Spec().NoSessionAffinity, Servers: addresses(b.Spec.Targets, b.Meters),
	}
	if s := w.Spec(); w.n == 1 {
		o.Pass, o.MaxIdle = s.Pass, b.Spec.MaxIdle
	}
	switch {
	case w.Trees():
		o.Begin = func(first workload.Request, at time.Duration) (load.Session, []workload.Step) {
			return w.Begin(first, at)
		}
		o.Home = func(first workload.Request) int { return b.home(w, first) }
	case w.Conversations():
		o.Next = w.Next
	}
	if w.Conversations() && w.Spec().RandomImages > 0 {
		o.Prepare = w.Prepare
	}
	return o
}

// addresses are those of base URLs and of engines behind them, with their ports.
func addresses(targets []string, behind []Meter) []string {
	var out []string
	all := slices.Clone(targets)
	for _, m := range behind {
		all = append(all, m.URL)
	}
	for _, t := range all {
		u, err := url.Parse(t)
		if err != nil {
			continue // Spec.Validate has refused it
		}
		port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
		out = append(out, net.JoinHostPort(u.Hostname(), port))
	}
	return out
}

// record starts to read what surrounds a run: the metrics of every target, or of the engines
// behind it, and what the caller added. stop ends that, and gives up what it holds.
func (b Runner) record(ctx context.Context, clients []*openai.Client) (rec *telemetry.Recording, stop func(), err error) {
	meters := b.Meters
	if b.Spec.Telemetry == 0 || b.Service != nil && len(meters) == 0 {
		clients, meters = nil, nil
	}
	var own []*openai.Client
	var sources []telemetry.Source
	for _, m := range meters {
		c, err := openai.New(b.config(m.URL))
		if err != nil {
			closeAll(own)
			return nil, nil, err
		}
		own = append(own, c)
		sources = append(sources, telemetry.Engine(m.Source, m.Index, b.Spec.Telemetry, c.Metrics))
	}
	if len(meters) == 0 {
		for i, c := range clients {
			sources = append(sources, telemetry.Engine(gauge.SourceEngine, i, b.Spec.Telemetry, c.Metrics))
		}
	}
	rec = telemetry.Start(ctx, append(sources, b.Sources...)...)
	return rec, func() { rec.Stop(); closeAll(own) }, nil
}

func closeAll(clients []*openai.Client) {
	for _, c := range clients {
		c.Close()
	}
}

// clients are those of the targets for a share; seen is told of tokens as they come.
func (b Runner) clients(w share, seen func(int, time.Duration, bool)) ([]*openai.Client, error) {
	var out []*openai.Client
	for _, target := range b.Spec.Targets {
		cfg := b.config(target)
		cfg.Concurrency, cfg.Seen = w.concurrent(), seen
		cfg.KeepText = b.Spec.KeepText || w.Generates() || b.Spec.Workload.Tokenizer != ""
		c, err := openai.New(cfg)
		if err != nil {
			closeAll(out)
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func Senders(clients []*openai.Client) []load.Sender {
	out := make([]load.Sender, len(clients))
	for i, c := range clients {
		out[i] = c
	}
	return out
}

// OnThisMachine reports whether a base URL is of a server on this machine, as far
// as its address tells: a tunnel looks like one.
func OnThisMachine(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	if ip == nil {
		return false
	}
	if ip.IsLoopback() || ip.IsUnspecified() {
		return true
	}
	own, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.IP.Equal(ip)
	})
}
