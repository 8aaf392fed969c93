package result

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"perflab/internal/stat"
)

// Host is the machine that sent the load.
type Host struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Go         string `json:"go"`
	CPUs       int    `json:"cpus"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// Header is written before the first request: what is in it is what ran.
type Header struct {
	Schema    string          `json:"schema"` // "perflab.run/1"
	Version   string          `json:"version"`
	Simulated bool            `json:"simulated"`           // a simulator answered (or, with Predicted, nobody did)
	Predicted bool            `json:"predicted,omitempty"` // replayed in virtual time, no server
	Started   time.Time       `json:"started"`             // wall clock
	Model     string          `json:"model"`
	Backend   string          `json:"backend"`
	Targets   []string        `json:"targets"`
	Workload  string          `json:"workload"`                 // its name in the study, or its dataset
	Spec      json.RawMessage `json:"spec"`                     // the complete spec, secrets redacted
	Requests  int             `json:"requests"`                 // planned; 0: not known in advance, time decides
	Rate      float64         `json:"request_rate,omitzero"`    // requests/s; 0: all at once
	Limit     int             `json:"max_concurrency,omitzero"` // 0: none
	Closed    bool            `json:"closed_loop,omitempty"`    // requests have no due times: each is due when the limit lets it pass
	Command   string          `json:"command,omitempty"`        // serving command under test, where known
	Host      Host            `json:"host"`
	Invoked   string          `json:"invoked,omitempty"` // the command line that made the run, secrets replaced; "": a study made it, or another client

	Clock         string     `json:"clock,omitempty"`                // who stamps reads: ClockKernel, ClockMonotonic; "": not known
	LateReads     bool       `json:"late_reads,omitzero"`            // calls tell of the reads that were made late, in Call.Late
	Cache         string     `json:"cache,omitempty"`                // unique, reset, warm, shared
	Sharing       bool       `json:"shares_prefixes,omitempty"`      // the workload does, within the run and on purpose
	Lengths       string     `json:"output_lengths,omitempty"`       // LengthsExact, LengthsFixed; "": an answer may end by itself
	KnownInput    bool       `json:"input_lengths_known,omitempty"`  // Call.WantIn is what the prompts have, and no estimate of it
	Fingerprint   string     `json:"workload_fingerprint,omitempty"` // equal for two runs that sent the same
	Tokenizer     string     `json:"tokenizer,omitempty"`            // that lengths were counted by
	TokenizerFrom string     `json:"tokenizer_from,omitempty"`       // where that was found, or why lengths are estimates
	SelfCheck     *SelfCheck `json:"self_check,omitempty"`           // error bars of this client on this machine, where measured
	Imported      *Imported  `json:"imported,omitempty"`             // another client measured it; nil: we did
}

// CountedBy says by what the lengths of prompts were counted; "" where that is not known.
func (h Header) CountedBy() string { return strings.TrimSpace(h.Tokenizer + " " + h.TokenizerFrom) }

// Who takes the stamp of a read.
const (
	ClockKernel    = "kernel"    // the kernel, when the packet arrived
	ClockMonotonic = "monotonic" // this process, when the read returned and before any parsing
)

// States of the server's prefix cache that a run may ask for, in Header.Cache.
const (
	CacheUnique = "unique" // every prompt new to the server
	CacheReset  = "reset"  // emptied before the run
	CacheWarm   = "warm"   // filled, as declared
	CacheShared = "shared" // the workload shares prefixes on purpose
)

// What was asked of the length of answers, in Header.Lengths.
const (
	LengthsExact = "exact" // the server was told to generate as many tokens as were asked for (ignore_eos)
	LengthsFixed = "fixed" // the workload wants as many, and the API has no way to say so
)

// SelfCheck is what perflab selfcheck found on this machine: how far the
// client's figures were from the truth of a server that knows it.
type SelfCheck struct {
	Taken      time.Time `json:"taken"`
	Version    string    `json:"version"` // of perflab
	Streams    int       `json:"streams"`
	EventRate  float64   `json:"events_per_s"`
	ArrivalP50 float64   `json:"arrival_error_p50_us"` // stamp - server's send time
	ArrivalP99 float64   `json:"arrival_error_p99_us"`
	TTFTError  float64   `json:"mean_ttft_error_ms"` // client's mean - server's
	ITLError   float64   `json:"p99_itl_error_ms"`
	SendP50    float64   `json:"send_lateness_p50_us"`
	SendP99    float64   `json:"send_lateness_p99_us"`
	MaxEvents  float64   `json:"max_events_per_s"` // at which one core was full
}

// Client is what the load generator itself used during a run, sampled from
// the operating system and the Go runtime. A run that was killed has none.
type Client struct {
	Wall     time.Duration `json:"wall_ns"`
	CPU      time.Duration `json:"cpu_ns"`                // user+system of this process
	GCPause  time.Duration `json:"gc_pause_ns"`           // sum of stop-the-world pauses
	GCMax    time.Duration `json:"gc_max_ns"`             // longest of them
	Procs    int           `json:"procs"`                 // GOMAXPROCS
	SchedP50 time.Duration `json:"sched_p50_ns,omitzero"` // a goroutine's wait for a processor
	SchedP99 time.Duration `json:"sched_p99_ns,omitzero"`
	SchedMax time.Duration `json:"sched_max_ns,omitzero"`
	Sockets  int           `json:"sockets,omitzero"`           // most connections open at once
	Opened   int           `json:"opened,omitzero"`            // connections opened in the run
	CPUs     int           `json:"cpus,omitzero"`              // that this process may use
	Stolen   float64       `json:"stolen,omitzero"`            // share of the machine's CPU time that its host took away
	Memory   int64         `json:"peak_memory_bytes,omitzero"` // the most that this process has had, before the run too
	Machine  *Machine      `json:"machine,omitempty"`          // who used its processors; nil: not known
	Profiled bool          `json:"profiled,omitempty"`         // the server's profiler ran
	Cache    *CacheUse     `json:"cache,omitempty"`            // the server's prefix cache over the run, where it tells
	Unsent   int           `json:"unsent_turns,omitzero"`      // of conversations, given up because the turn before failed
	Partial  bool          `json:"partial"`                    // stopped before the end
	StopNote string        `json:"stop_note,omitempty"`

	Precision *stat.Watched `json:"precision,omitempty"` // of a run that was to end when its figure is known well enough
}

// Machine is who used the processors of the load generator's machine during a run.
// Times are of all processors together.
type Machine struct {
	CPUs      int           `json:"cpus"`    // that are there
	Time      time.Duration `json:"time_ns"` // that they had
	Idle      time.Duration `json:"idle_ns"`
	Stolen    time.Duration `json:"stolen_ns,omitzero"`        // that the host of a virtual machine gave to others
	Client    time.Duration `json:"client_ns"`                 // used by this process
	Here      bool          `json:"engine_here"`               // a target has an address of this machine
	Processes int           `json:"engine_processes,omitzero"` // of the engines here; 0: none could be told
	Engine    time.Duration `json:"engine_ns,omitzero"`        // that these used

	ClientWaits Waits `json:"client_waits,omitzero"` // of its threads
	EngineWaits Waits `json:"engine_waits,omitzero"` // of those of the engines here
}

// Waits are how long threads that could have run had no processor.
type Waits struct {
	Time time.Duration `json:"ns"`
	Runs int           `json:"runs"` // how often one got a processor
}

// Mean is how long a thread waited each time; 0 where that is not known.
func (w Waits) Mean() time.Duration { return w.Time / time.Duration(max(1, w.Runs)) }

// Since returns what w has more than an earlier sample. A thread that ended takes its waits with it.
func (w Waits) Since(before Waits) Waits {
	return Waits{max(0, w.Time-before.Time), max(0, w.Runs-before.Runs)}
}

// Others is the time that processes used which are neither the load generator nor known to
// be the engine's.
func (m *Machine) Others() time.Duration {
	return max(0, m.Time-m.Idle-m.Stolen-m.Client-m.Engine)
}

// Share is a time as a share of what the processors had.
func (m *Machine) Share(d time.Duration) float64 { return float64(d) / float64(max(1, m.Time)) }

// CacheUse is what the server's own counters of its prefix cache grew by.
type CacheUse struct {
	Reset   bool    `json:"reset"`          // emptied before the run
	Queries float64 `json:"queries_tokens"` // prompt tokens looked up
	Hits    float64 `json:"hits_tokens"`    // of them, found
	From    string  `json:"from"`           // the metric's name
}

// SpanText writes a span of time as a reader takes it in: "2.5 s", "40 ms".
func SpanText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.3g ms", ms(d))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// ClockText says who stamps the reads, "" when the header does not.
func (h Header) ClockText() string {
	switch h.Clock {
	case ClockKernel:
		return "the kernel, when a packet arrived"
	case ClockMonotonic:
		return "the client, when a read returned and before parsing"
	}
	return h.Clock
}

// HasRate reports whether requests come at a rate, and not all at once.
func (h Header) HasRate() bool { return h.Rate > 0 && !math.IsInf(h.Rate, 1) }

// RateText is the request rate of a run in words, "" where nobody recorded it.
func (h Header) RateText() string {
	switch {
	case h.HasRate():
		return fmt.Sprintf("%g requests/s", h.Rate)
	case h.Imported == nil || h.Label(LabelRate) == "inf":
		return "all at once"
	}
	return ""
}

// LimitText is the concurrency limit of a run in words, "" where nobody
// recorded it.
func (h Header) LimitText() string {
	switch {
	case h.Limit > 0:
		return strconv.Itoa(h.Limit)
	case h.Imported == nil || h.Label(LabelLimit) == "none":
		return "none"
	}
	return "" // a file without it may have had one
}

// Label returns a label of an imported run, "" for none.
func (h Header) Label(key string) string {
	if h.Imported == nil {
		return ""
	}
	return h.Imported.Labels[key]
}
