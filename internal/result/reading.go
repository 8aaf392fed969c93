package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
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

// Gauge is one row of the table of what readings may hold.
type Gauge struct {
	Name    string // key in Reading.Values
	Source  string
	Label   string // of a plot: "GPU utilisation"
	Unit    string // "ratio", "bytes", "W", "Hz", "C", "requests", "tokens", "steps", "s", "yes"
	Counter bool   // since the source started: only differences say something
	Doc     string // one sentence
}

// Gauges returns the table of gauges.
func Gauges() []Gauge {
	return []Gauge{
		{Name: "running", Source: SourceEngine, Label: "Requests running", Unit: "requests", Doc: "Requests that are being computed."},
		{Name: "waiting", Source: SourceEngine, Label: "Requests waiting", Unit: "requests", Doc: "Requests that wait for room."},
		{Name: "kv_usage", Source: SourceEngine, Label: "KV cache in use", Unit: "ratio", Doc: "Share of the KV cache in use."},
		{Name: "preemptions", Source: SourceEngine, Label: "Preemptions", Unit: "requests", Counter: true, Doc: "Requests that gave their KV cache up again for lack of room."},
		{Name: "prefix_queries", Source: SourceEngine, Label: "Prefix cache queries", Unit: "tokens", Counter: true, Doc: "Prompt tokens looked up in the prefix cache."},
		{Name: "prefix_hits", Source: SourceEngine, Label: "Prefix cache hits", Unit: "tokens", Counter: true, Doc: "Prompt tokens that were found there."},
		{Name: "prefix_share", Source: SourceEngine, Label: "Prefix cache hit share", Unit: "ratio", Doc: "Share of the prompts found in the prefix cache, over the engine's own span of time."},
		{Name: "prompt_tokens", Source: SourceEngine, Label: "Prompt tokens", Unit: "tokens", Counter: true, Doc: "Prompt tokens that the engine took in."},
		{Name: "generation_tokens", Source: SourceEngine, Label: "Generated tokens", Unit: "tokens", Counter: true, Doc: "Tokens that the engine generated."},
		{Name: "finished", Source: SourceEngine, Label: "Requests finished", Unit: "requests", Counter: true, Doc: "Requests that ended, whatever the reason."},
		{Name: "spec_drafts", Source: SourceEngine, Label: "Guesses verified", Unit: "steps", Counter: true, Doc: "Guesses of speculation that the model verified."},
		{Name: "spec_draft_tokens", Source: SourceEngine, Label: "Tokens guessed", Unit: "tokens", Counter: true, Doc: "Tokens guessed in them."},
		{Name: "spec_accepted", Source: SourceEngine, Label: "Guessed tokens accepted", Unit: "tokens", Counter: true, Doc: "Guessed tokens that were accepted."},
		{Name: "spec_length", Source: SourceEngine, Label: "Acceptance length", Unit: "tokens", Doc: "Tokens that a verified guess yields, the model's own among them, over the engine's own span of time."},
		{Name: "queue_seconds", Source: SourceEngine, Label: "Time in the engine's queue", Unit: "s", Counter: true, Doc: "Time that requests waited before they were computed, all together."},
		{Name: "queued", Source: SourceEngine, Label: "Requests queued", Unit: "requests", Counter: true, Doc: "Requests that queue_seconds is of."},

		{Name: GPUUtilization, Source: SourceGPU, Label: "GPU utilisation", Unit: "ratio", Doc: "Share of the time in which a kernel ran, over the driver's last sampling period (up to 1 s)."},
		{Name: MemoryUsed, Source: SourceGPU, Label: "GPU memory", Unit: "bytes", Doc: "Device memory in use, by whatever program."},
		{Name: MemoryTotal, Source: SourceGPU, Label: "GPU memory in all", Unit: "bytes", Doc: "Device memory there is."},
		{Name: GPUPower, Source: SourceGPU, Label: "GPU power", Unit: "W", Doc: "Power of the whole board, which newer devices average over 1 s."},
		{Name: GPUClock, Source: SourceGPU, Label: "SM clock", Unit: "Hz", Doc: "Clock of the multiprocessors."},
		{Name: GPUMemoryClock, Source: SourceGPU, Label: "Memory clock", Unit: "Hz", Doc: "Clock of the device memory."},
		{Name: GPUTemperature, Source: SourceGPU, Label: "GPU temperature", Unit: "C", Doc: "Temperature of the device."},
		{Name: ThrottlePower, Source: SourceGPU, Label: "Held back by power", Unit: "yes", Doc: "1 while clocks are lowered to keep to the power limit, or by a power brake."},
		{Name: ThrottleThermal, Source: SourceGPU, Label: "Held back by heat", Unit: "yes", Doc: "1 while clocks are lowered because the device or its memory is too hot."},
		{Name: ThrottleHW, Source: SourceGPU, Label: "Held back by the hardware", Unit: "yes", Doc: "1 while the hardware lowers clocks by half or more, for heat, power or an external brake."},

		{Name: CPUUtilization, Source: SourceHost, Label: "Host CPU", Unit: "ratio", Doc: "Share of all processors' time that was used since the reading before, the load generator's on the same machine included."},
		{Name: MemoryUsed, Source: SourceHost, Label: "Host memory", Unit: "bytes", Doc: "Memory that is not available to new programs."},
		{Name: MemoryTotal, Source: SourceHost, Label: "Host memory in all", Unit: "bytes", Doc: "Memory there is."},
	}
}

// ReadReadings yields the readings of telemetry.jsonl. Errors name the line and end
// the sequence; a last line that was cut off is dropped.
func ReadReadings(r io.Reader) iter.Seq2[Reading, error] {
	return func(yield func(Reading, error) bool) {
		br := bufio.NewReaderSize(r, 1<<16)
		for n := 1; ; n++ {
			line, err := br.ReadBytes('\n')
			whole := err == nil
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Reading{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			var v Reading
			switch jerr := json.Unmarshal(line, &v); {
			case len(bytes.TrimSpace(line)) == 0:
			case jerr == nil:
				if !yield(v, nil) {
					return
				}
			case whole:
				yield(Reading{}, fmt.Errorf("line %d is not a reading: %w", n, jerr))
				return
			}
			if !whole {
				return
			}
		}
	}
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
