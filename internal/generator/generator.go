// Package generator holds what load generators say of themselves: the machine, how exact its
// client was found to be, what it used of its processors during a run, and of a load that several
// machines sent, all of that of each.
//
//	share, ok := client.Share()
//
// Invariants: a fact that is not known is absent and never zero; nothing here is read from a
// machine, whoever runs there fills it in.
//
// Deliberately absent: figures of calls, which are package result's.
package generator

import (
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
	Start    time.Time     `json:"start,omitzero"` // the instant that the times of calls count from; zero: not known
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
