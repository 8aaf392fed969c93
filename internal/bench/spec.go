package bench

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/openai"
	"perflab/internal/price"
	"perflab/internal/profile"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/stat"
	"perflab/internal/workload"
)

// Spec is everything that decides a run. It is written into the run's header
// before the first request; there is no second way to configure a run.
type Spec struct {
	Targets  []string `json:"targets"` // base URLs, one a replica
	Backend  string   `json:"backend"` // one of openai.Backends, or an alias
	Endpoint string   `json:"endpoint,omitempty"`
	Model    string   `json:"model"`

	Headers   map[string]string `json:"headers,omitempty"` // values never leave the process: see redacted
	ExtraBody json.RawMessage   `json:"extra_body,omitempty"`
	Insecure  bool              `json:"insecure,omitempty"`

	Traceparent bool `json:"traceparent,omitempty"` // each request has a W3C trace context, kept in its call

	openai.Sampling

	Workload workload.Spec `json:"workload"`
	Warmups  int           `json:"num_warmups"`
	Cache    string        `json:"cache,omitempty"`   // unique (""), reset, warm, shared
	Profile  bool          `json:"profile,omitempty"` // the server's profiler runs during the load

	Rules   string        `json:"profile_rules,omitempty"`      // of a benchmark: one of profile.Names
	MaxIdle time.Duration `json:"max_system_idle_ns,omitempty"` // of all servers at once, of a load of sessions; 0: any

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
	Price     price.Hourly  `json:"price_per_hour,omitzero"`         // of the whole deployment
	GPUs      int           `json:"gpus,omitempty"`                  // allocated to it; 0: none, or not known
}

// What a run does about prompts that the server's prefix cache may hold. A
// workload that shares prefixes within itself does so under each of them.
const (
	CacheUnique = result.CacheUnique // the prompts are new to the server; the default
	CacheReset  = result.CacheReset  // the server's prefix cache is emptied first
	CacheWarm   = result.CacheWarm   // the prompts are sent once before they are measured
	CacheShared = result.CacheShared // as the workload is: what earlier runs left may be found
)

// CachePolicies returns the names that Spec.Cache takes.
func CachePolicies() []string { return []string{CacheUnique, CacheReset, CacheWarm, CacheShared} }

// DefaultTelemetry is how often the engines' metrics are read. MinTelemetry is the
// least: a page costs an engine's front end some milliseconds.
const (
	DefaultTelemetry = time.Second
	MinTelemetry     = 100 * time.Millisecond
)

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
	for name := range s.Headers {
		if strings.EqualFold(name, s.Workload.SessionHeader) {
			errs = append(errs, field.Errorf("session_header", "%s is also a header of every request: give it another name", s.Workload.SessionHeader))
		}
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
	errs = append(errs, s.checkRules(), s.Workload.Validate(), s.checkPrecision(), ChatOnly(s.Workload, s.Backend), ScenarioFits(s.Workload.Scenario, s.Backend))
	return errors.Join(errs...)
}

// CheckTargets checks what only the client of an endpoint knows: the form of its
// URLs, and whether backend, path and sampling agree.
func (s Spec) CheckTargets() error {
	for _, target := range s.Targets {
		if _, err := openai.New(Runner{Spec: s}.config(target)); err != nil {
			return err
		}
	}
	return nil
}

// CheckCache says what is wrong with the spec's policy.
func (s Spec) CheckCache() error {
	if s.Cache != "" && !slices.Contains(CachePolicies(), s.Cache) {
		return field.Errorf("cache", "%q is not known: use %s", s.Cache, strings.Join(CachePolicies(), ", "))
	}
	w := s.Workload.Defaults()
	if s.Cache == CacheWarm && w.Generates() {
		return field.Errorf("cache", "warm needs to know the prompts beforehand, and those of conversations with [history] generated hold what the server answers: choose [history] answers")
	}
	return nil
}

// ChatOnly refuses a workload that a backend without messages cannot send.
func ChatOnly(w interface{ NeedsChat() (path, value string) }, backend string) error {
	path, value := w.NeedsChat()
	if path == "" && value == "" || !slices.Contains([]string{openai.BackendCompletions, openai.BackendVLLM}, backend) {
		return nil
	}
	return field.Errorf(path, "%sneeds a chat API: [backend] %s sends one text, [backend] %s messages", strings.TrimLeft(value+" ", " "), backend, openai.BackendChat)
}

// ScenarioFits refuses a scenario that embeds or ranks beside a backend that
// does not: a chat would generate, without a limit, and be measured as such.
func ScenarioFits(scenario, backend string) error {
	var what string
	var fit []string
	switch {
	case strings.HasPrefix(scenario, "E"):
		what, fit = "embeds texts", []string{openai.BackendEmbeddings, openai.BackendPooling}
	case strings.HasPrefix(scenario, "R"):
		what, fit = "ranks documents", []string{openai.BackendRerank, openai.BackendScore, openai.BackendEmbeddings}
	}
	if len(fit) == 0 || slices.Contains(fit, backend) {
		return nil
	}
	return field.Errorf("scenario", "%s %s, which [backend] %s does not: use [backend] %s", scenario, what, backend, strings.Join(fit, " or "))
}

// Freshen makes the prompts of a unique run new to any server: it draws the
// seed of made-up prompts, unless seeded says that it was asked for, and a
// nonce for texts that are the same under every seed. What was drawn is in the
// spec, so that the run can be made again.
func (s Spec) Freshen(seeded bool) Spec {
	w := &s.Workload
	if cmp.Or(s.Cache, CacheUnique) != CacheUnique || w.Nonce != "" {
		return s
	}
	var b [8]byte
	rand.Read(b[:]) // never fails
	switch {
	case !w.MadeUp() || profile.IsMLPerf(s.Rules): // its curve has one seed
		w.Nonce = hex.EncodeToString(b[:4])
	case !seeded:
		w.Seed = uint64(binary.LittleEndian.Uint32(b[:]))
	}
	return s
}

// FixedNonce is the nonce of a study's workload, a function of its seed: all
// trials of a pass send the same.
func FixedNonce(name string, w workload.Spec) string {
	if w.Nonce != "" || w.MadeUp() {
		return w.Nonce
	}
	return fmt.Sprintf("%08x", stat.Stream(w.Seed, "nonce "+name).Uint32())
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
