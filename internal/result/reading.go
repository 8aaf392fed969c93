package result

import "time"

// Reading is the state of one source at one instant of a run, sampled beside its
// calls and on their clock. The readings of a run are the lines of telemetry.jsonl.
type Reading struct {
	At     time.Duration      `json:"at_ns"`           // since the run's start, as in calls; before it: negative
	Source string             `json:"source"`          // SourceGPU, SourceEngine, SourceHost
	Node   string             `json:"node,omitempty"`  // machine; "": this one
	Index  int                `json:"index,omitzero"`  // of the GPU on its node, of the replica
	Values map[string]float64 `json:"values"`          // gauge's name -> value, in base units; one that is not told is absent
	Error  string             `json:"error,omitempty"` // why there are no values, said once a source
}

// Sources of readings.
const (
	SourceGPU    = "gpu"    // nvidia-smi, one reading a device
	SourceEngine = "engine" // the engine's metrics, one a replica
	SourceHost   = "host"   // a machine that engines run on
)
