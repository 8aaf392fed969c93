package result

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"
)

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

// Names of gauges of GPUs and hosts; those of engines are the common names of
// package engine.
const (
	GPUUtilization  = "gpu_utilization"
	GPUPower        = "power_w"
	GPUClock        = "sm_clock_hz"
	GPUMemoryClock  = "memory_clock_hz"
	GPUTemperature  = "temperature_c"
	ThrottlePower   = "throttle_power"
	ThrottleThermal = "throttle_thermal"
	ThrottleHW      = "throttle_hw"

	CPUUtilization = "cpu_utilization"

	MemoryUsed  = "memory_used_bytes" // of a GPU or a host
	MemoryTotal = "memory_total_bytes"
)

// ReadReadings yields the readings of telemetry.jsonl. Errors name the line and end
// the sequence; a last line that was cut off is dropped.
func ReadReadings(r io.Reader) iter.Seq2[Reading, error] {
	return readLines(r, "a reading", func(line []byte, x *Reading) error { return json.Unmarshal(line, x) })
}

// WriteReadings writes readings as ReadReadings reads them.
func WriteReadings(w io.Writer, readings []Reading) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	for i := range readings {
		if err := enc.Encode(&readings[i]); err != nil {
			return fmt.Errorf("write reading %d: %w", i, err)
		}
	}
	return bw.Flush()
}
