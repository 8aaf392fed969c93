package forecast

import (
	"cmp"
	"encoding/json"
	"slices"

	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/result"
)

// Schema is that of a Table's JSON.
const Schema = "perflab.prediction/1"

// Table is what the simulator predicts of configurations under loads: what
// perflab predict shows, and its JSON. Everything in it is SIMULATED.
type Table struct {
	Schema         string          `json:"schema"` // see Schema
	Version        string          `json:"version"`
	Simulated      bool            `json:"simulated"` // always
	Workload       string          `json:"workload"`  // in one line
	Spec           json.RawMessage `json:"spec"`      // of the first load, complete
	Calibration    Source          `json:"calibration"`
	Metrics        []string        `json:"metrics"`             // shown
	Latency        string          `json:"latency"`             // of the front
	Objective      string          `json:"objective,omitempty"` // that the rows are ordered by, best first
	SLOs           []string        `json:"slos,omitempty"`
	Notes          []string        `json:"notes,omitempty"` // on all rows
	Rows           []Row           `json:"predictions"`
	Configurations []Configuration `json:"configurations"` // by number, from 1
}

// Source is where constants and errors come from.
type Source struct {
	Name   string `json:"name"` // "shipped", or the file
	Source string `json:"source,omitempty"`
	Runs   int    `json:"runs"`
	Draws  int    `json:"draws"` // of constants and loads, for the ranges
}

// Configuration is a serving command on hardware.
type Configuration struct {
	Label    string         `json:"label"` // where it differs from the others
	Command  string         `json:"command"`
	Engine   string         `json:"engine,omitempty"`
	Model    string         `json:"model,omitempty"`
	GPU      string         `json:"gpu"`
	GPUTitle string         `json:"gpu_title"`
	GPUs     int            `json:"gpus"` // of the machine
	Each     int            `json:"gpus_of_replica,omitempty"`
	Replicas int            `json:"replicas,omitempty"`
	Refused  string         `json:"refused,omitempty"` // why the engine would not start
	Memory   *engine.Memory `json:"memory_per_gpu,omitempty"`
	Notes    []string       `json:"notes,omitempty"`
}

// Row is a configuration under a load.
type Row struct {
	Configuration int                 `json:"configuration"` // its number
	Load          string              `json:"load,omitempty"`
	Rate          float64             `json:"request_rate,omitempty"`
	Concurrency   int                 `json:"max_concurrency,omitempty"`
	Figures       map[string]Estimate `json:"figures,omitempty"`
	PerGPU        map[string]Estimate `json:"figures_per_gpu,omitempty"`
	Bottleneck    *calib.Bottleneck   `json:"bottleneck,omitempty"`
	KV            *calib.KVUse        `json:"kv,omitempty"`
	Utilisation   float64             `json:"utilisation,omitempty"` // offered rate over that of the same requests sent at once
	Times         map[string]float64  `json:"step_s,omitempty"`      // seconds of all replicas' steps, by term
	Waits         map[string]float64  `json:"wait_s,omitempty"`      // seconds in which a request waited, by what for
	Steps         int                 `json:"steps,omitempty"`
	Running       int                 `json:"peak_running,omitempty"` // of one replica
	Outside       []string            `json:"outside,omitempty"`      // the calibration
	Hangs         []calib.Hinge       `json:"hangs_on,omitempty"`     // constants that throughput, or at a rate E2E latency, is uncertain by
	Measure       *calib.Step         `json:"measure,omitempty"`      // the run that would narrow the configuration's figures most for its cost
	Front         bool                `json:"front,omitempty"`        // no other row is better in throughput per GPU and latency
	SLO           string              `json:"slo,omitempty"`          // met, missed; unsure where a range holds the limit
	Missed        []string            `json:"missed,omitempty"`
	Failed        string              `json:"failed,omitempty"` // requests that would not be served, and why
}

// Estimate is a figure, with what it lies between in nine of ten cases where
// that is known.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
}

// over is the estimate divided by n.
func (e Estimate) over(n float64) Estimate {
	divided := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(*v / n)
	}
	return Estimate{Value: e.Value / n, Low: divided(e.Low), High: divided(e.High)}
}

// Served reports whether some configuration would start.
func (t *Table) Served() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Figures != nil })
}

// Met reports whether some row meets every SLO by its predicted figures.
func (t *Table) Met() bool {
	return slices.ContainsFunc(t.Rows, func(r Row) bool { return r.Figures != nil && len(r.Missed) == 0 })
}

// markFront marks the rows that no other beats in throughput per GPU and
// latency both.
func markFront(rows []Row, latency string) {
	at := func(r *Row) (x, y float64, ok bool) {
		a, has := r.Figures[latency]
		b, too := r.PerGPU[calib.Throughput]
		return a.Value, b.Value, has && too
	}
	for i := range rows {
		x, y, ok := at(&rows[i])
		rows[i].Front = ok && !slices.ContainsFunc(rows, func(r Row) bool {
			a, b, ok := at(&r)
			return ok && a <= x && b >= y && (a < x || b > y)
		})
	}
}

// sortBy sorts rows by the objective, best first and refusals last; of equals
// and without one they stay as given.
func sortBy(rows []Row, objective string) {
	m, err := result.Lookup(objective)
	if err != nil {
		return
	}
	slices.SortStableFunc(rows, func(a, b Row) int {
		x, ok := a.Figures[m.Name]
		y, too := b.Figures[m.Name]
		switch {
		case ok && too && m.Better == result.Higher:
			return cmp.Compare(y.Value, x.Value)
		case ok && too:
			return cmp.Compare(x.Value, y.Value)
		case ok:
			return -1
		case too:
			return 1
		}
		return 0
	})
}
