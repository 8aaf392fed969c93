// Package gauge holds what was read beside the calls of a run: the state of GPUs, engines
// and hosts at instants on the clock of the calls.
//
//	for r, err := range gauge.Read(file) { ... }
//	power := gauge.Telemetry{Readings: readings}.Tracks(gauge.SourceGPU, gauge.GPUPower)
//	watts, gpus, ok := power.SumOfMeans(gauge.Span{From: from, To: to})
//
// Invariants: a value that a source does not tell is absent, never zero; a mean is given only
// where readings cover a span, and the growth of a counter only where it was read before and
// after.
//
// Deliberately absent: how readings are taken (package telemetry), the names of engines' gauges
// (package engine), and the figures that are made of them (package result).
package gauge

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"perflab/internal/jsonl"
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

	SourcePrefill = "prefill" // metrics of an engine that only computes prompts; SourceEngine is then one that generates
)

// IsSource reports whether a name is that of a source.
func IsSource(name string) bool {
	return name == SourceGPU || name == SourceEngine || name == SourceHost
}

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

// Read yields the readings of telemetry.jsonl. Errors name the line and end the
// sequence; a last line that was cut off is dropped.
func Read(r io.Reader) iter.Seq2[Reading, error] {
	return jsonl.Read(r, "a reading", func(line []byte, x *Reading) error { return json.Unmarshal(line, x) })
}

// Sort puts readings in the order of time, and those of one instant in that of their sources.
func Sort(readings []Reading) {
	slices.SortStableFunc(readings, func(a, b Reading) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Source, b.Source), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index))
	})
}

// Write writes readings as Read reads them.
func Write(w io.Writer, readings []Reading) error {
	bw := bufio.NewWriter(w)
	enc := json.NewEncoder(bw)
	for i := range readings {
		if err := enc.Encode(&readings[i]); err != nil {
			return fmt.Errorf("write reading %d: %w", i, err)
		}
	}
	return bw.Flush()
}
