package result

import (
	"encoding/json"
	"time"
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
	Requests  int             `json:"requests"`                 // planned
	Rate      float64         `json:"request_rate,omitzero"`    // requests/s; 0: all at once
	Limit     int             `json:"max_concurrency,omitzero"` // 0: none
	Command   string          `json:"command,omitempty"`        // serving command under test, where known
	Host      Host            `json:"host"`
}

// Client is what the load generator itself used during a run, sampled from
// the operating system and the Go runtime. A run that was killed has none.
type Client struct {
	Wall     time.Duration `json:"wall_ns"`
	CPU      time.Duration `json:"cpu_ns"`      // user+system of this process
	GCPause  time.Duration `json:"gc_pause_ns"` // sum of stop-the-world pauses
	GCMax    time.Duration `json:"gc_max_ns"`   // longest of them
	Procs    int           `json:"procs"`       // GOMAXPROCS
	Partial  bool          `json:"partial"`     // stopped before the end
	StopNote string        `json:"stop_note,omitempty"`
}
