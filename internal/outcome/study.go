// Package outcome holds what a study found, as facts: the document study.json
// with its trials, stages and race. lab writes it, and whoever shows a study
// reads it without knowing how one runs.
//
// Invariants: conclusions are kinds with their numbers (tune.Finding), and whoever
// shows them writes the sentence; documents of older versions, which have the
// sentence alone, still open; a figure that was not measured is absent, never
// zero.
//
// Absent: files (rundir), and decisions (tune).
package outcome

import (
	"fmt"
	"time"

	"perflab/internal/result"
	"perflab/internal/tune"
)

// Study is everything a tuning job found, as facts: the document study.json,
// from which every report is rendered. Renderers compute nothing.
type Study struct {
	Schema    string `json:"schema"` // "perflab.study/1"
	Version   string `json:"version"`
	Name      string `json:"name"`
	Title     string `json:"title"` // "Optimizing Qwen3-32B Throughput on NVIDIA H100 SXM"
	Simulated bool   `json:"simulated"`
	Predicted bool   `json:"predicted,omitempty"`
	Partial   bool   `json:"partial,omitempty"` // stopped or still running

	Started  time.Time `json:"started,omitzero"` // of the first trial; zero in studies of versions that did not keep it
	Ended    time.Time `json:"ended,omitzero"`   // of the last trial so far
	Strategy string    `json:"strategy"`
	Block    string    `json:"block"` // layout of its result blocks: vllm, gpustack

	Objective Objective  `json:"objective"`
	Model     string     `json:"model"`
	Hardware  string     `json:"hardware"`          // "8 x NVIDIA A100 SXM 80GB on one node"
	Visible   string     `json:"visible,omitempty"` // environment variable that deals accelerators out; absent: CUDA_VISIBLE_DEVICES
	Devices   []string   `json:"devices,omitempty"` // that engines were dealt, where not the machine's first
	Engines   []Software `json:"engines"`
	Method    string     `json:"method"` // how each trial was measured, in one paragraph
	Workloads []Load     `json:"workloads"`

	Baseline    *Pick   `json:"baseline,omitempty"`
	Recommended *Pick   `json:"recommended,omitempty"`
	Cases       []Case  `json:"cases,omitempty"`   // baseline against recommended, per workload
	Curves      []Curve `json:"curves,omitempty"`  // the same over the loads of a workload that has several
	Confirmed   bool    `json:"confirmed"`         // both were launched again, on fresh seeds, after the search
	Verdict     string  `json:"verdict,omitempty"` // Conclusion in one sentence, by whoever wrote it

	Conclusion *tune.Finding `json:"conclusion,omitempty"`

	Race      *Race             `json:"race,omitempty"`     // of strategy race
	Forecast  *Forecast         `json:"forecast,omitempty"` // of a search by prediction
	Reference *Reference        `json:"reference,omitempty"`
	Earlier   []Earlier         `json:"earlier,omitempty"`  // that directed its search, without their figures
	Machines  []tune.NodeEffect `json:"machines,omitempty"` // that trials were measured on at the same time, and how they differ
	Stages    []Stage           `json:"stages"`
	Trials    []Trial           `json:"trials"`
	Ledger    Ledger            `json:"ledger"`
	Notes     []string          `json:"notes,omitempty"`
	Doubts    []string          `json:"doubts,omitempty"` // why its launches can hardly tell configurations apart, a paragraph each
}

// Objective is what the study improved.
type Objective struct {
	Metric string   `json:"metric"`
	Better string   `json:"better"` // higher, lower
	SLOs   []string `json:"slos,omitempty"`
	Goal   string   `json:"goal"` // "Highest total token throughput", for the reader

	Weights map[string]float64 `json:"weights,omitempty"` // by workload, where more than the primary one is judged
}

// Software is an engine and the version the study says it is of.
type Software struct {
	Name    string `json:"name"`
	Title   string `json:"title"` // "vLLM"
	Version string `json:"version,omitempty"`
}

// Load is one workload of a study.
type Load struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Primary bool   `json:"primary,omitempty"`
	Text    string `json:"text"`    // "Random dataset: 4000 input tokens, 200 output tokens, 500 requests, all at once"
	Command string `json:"command"` // the perflab bench command that repeats it

	Sweep string `json:"sweep,omitempty"` // name of the workload of the study file of which this is one load
}

// Pick is a configuration the study singles out.
type Pick struct {
	Trial    int             `json:"trial"` // whose figures these are
	Label    string          `json:"label"`
	Engine   string          `json:"engine"`
	Command  string          `json:"command"`                   // one replica's serving command
	Replicas int             `json:"replicas"`                  // how many of them, measured together
	Summary  *result.Summary `json:"summary,omitempty"`         // on the primary workload
	Gain     *float64        `json:"gain"`                      // of the objective against the baseline: +0.5 is 50 % better; null where none can be given
	Interval *tune.Span      `json:"interval,omitempty"`        // of Gain at 95 %, corrected, where launches of both were repeated
	Launches int             `json:"launches,omitempty"`        // that Gain is of, where more than one
	SLOs     []Judged        `json:"slos,omitempty"`            // what became of the constraints, by these figures
	Shorter  string          `json:"shorter_context,omitempty"` // what it cuts of the context: "serves requests of up to ..."

	Processes []Process `json:"processes,omitempty"` // that start all of it by hand, in this order; none where another starts it
	Script    string    `json:"script,omitempty"`    // that starts all of it, relative to the study directory
}

// Process is one process of a deployment as a shell takes it.
type Process struct {
	Replica int    `json:"replica"`
	Name    string `json:"name,omitempty"`  // among those of its replica: "rank-1"; "" for the one that serves
	Node    string `json:"node,omitempty"`  // its machine; "" the one
	Files   string `json:"files,omitempty"` // here-documents that write what it reads
	Command string `json:"command"`         // with its environment, devices and ports; secrets and addresses that are not known are variables
	Wait    string `json:"wait,omitempty"`  // for what, before the next is started: "until it ends"
}

// Judged is whether figures keep a constraint.
type Judged struct {
	SLO string `json:"slo"` // as the study has it
	Met bool   `json:"met"`
	Why string `json:"why"` // with figure and limit
}

// Case compares baseline and recommended on one workload.
type Case struct {
	Workload    string          `json:"workload"`
	Baseline    *result.Summary `json:"baseline,omitempty"`
	Recommended *result.Summary `json:"recommended,omitempty"`
	Gain        *float64        `json:"gain,omitempty"`
}

// Stage is one step of the search with what it concluded.
type Stage struct {
	Name   string   `json:"name"`
	Trials []int    `json:"trials"`
	Before int      `json:"before"` // the incumbent it began with
	Winner int      `json:"winner"`
	Gain   *float64 `json:"gain,omitempty"`   // of the winner against Before
	Result string   `json:"result,omitempty"` // Finding in one sentence, by whoever wrote it

	Finding *tune.Finding `json:"finding,omitempty"`
	Skipped []tune.Entry  `json:"skipped,omitempty"` // candidates that no trial stands for
}

// Trial is one configuration measured: one launch, one run per workload.
type Trial struct {
	ID        int               `json:"id"`
	Stage     string            `json:"stage"`
	Label     string            `json:"label"`
	Engine    string            `json:"engine"`
	Version   string            `json:"version,omitempty"` // of the engine, by its own account or as the study says
	Config    map[string]string `json:"config"`
	Machine   string            `json:"machine,omitempty"` // that it was measured on, of several
	Share     float64           `json:"share,omitempty"`   // of the full load; 0: all of it
	Command   string            `json:"command"`
	Replicas  int               `json:"replicas"`
	GPUs      int               `json:"gpus"`                       // allocated, leftover ones included; 0: it ran on the CPU
	Each      int               `json:"gpus_per_replica,omitempty"` // of them
	Published *float64          `json:"published,omitempty"`        // figure of the objective that somebody published of the configuration
	Status    string            `json:"status"`                     // ok, refused, failed, void
	Reason    string            `json:"reason,omitempty"`
	Class     string            `json:"class,omitempty"`  // of the failure, as the engine's signatures name it
	Advice    string            `json:"advice,omitempty"` // what to do about it
	Facts     []EngineFact      `json:"facts,omitempty"`  // that the engine's log tells, of its last launch
	Image     string            `json:"image,omitempty"`  // of its containers, by digest
	Notes     []string          `json:"notes,omitempty"`  // what the reader must know about its figures, one sentence each
	Pods      []result.Pod      `json:"pods,omitempty"`   // that its last launch ran in, of a Kubernetes cluster
	Log       string            `json:"log,omitempty"`    // relative to the study directory
	Started   time.Time         `json:"started,omitzero"`
	Ended     time.Time         `json:"ended,omitzero"`
	Runs      []Run             `json:"runs"`

	Processes []Process `json:"processes,omitempty"` // that start all of it by hand, see Pick
	Script    string    `json:"script,omitempty"`    // likewise
}

// EngineFact is something that an engine said of itself in its log.
type EngineFact struct {
	Name  string  `json:"name"` // kv_tokens, load_s ...
	Unit  string  `json:"unit,omitempty"`
	Value float64 `json:"value"`
	Doc   string  `json:"doc"`
}

// Run is one load of one workload within a trial.
type Run struct {
	Workload string         `json:"workload"`
	Dir      string         `json:"dir"` // run directory, relative to the study directory
	Seed     uint64         `json:"seed"`
	Summary  result.Summary `json:"summary"`

	Search *result.Search `json:"search,omitempty"` // that found its load; nil: the workload says it
}

// Ledger is what the study cost.
type Ledger struct {
	Launches   int     `json:"launches"`
	LoadS      float64 `json:"load_s"` // seconds under load
	GPUSeconds float64 `json:"gpu_s"`  // allocated GPU seconds, from launch to stop
}

// LoadSeconds is how long the run, or the search that it is the edge of, was under load.
func (r Run) LoadSeconds() float64 {
	if r.Search != nil {
		return r.Search.LoadS
	}
	return r.Summary.Figures["duration"]
}

// MostAlike is how often one configuration was launched, and measured, at most. Of a study that
// was stopped these may be launches under different loads, or with different requests.
func (s Study) MostAlike() (launched, measured int) {
	launches, runs := map[string]int{}, map[string]int{}
	for _, t := range s.Trials {
		if k := fmt.Sprint(t.Config); len(t.Config) > 0 { // in the order of its keys
			if t.Status == tune.Measured {
				runs[k]++
			}
			if t.Status == tune.Measured || t.Log != "" {
				launches[k]++
			}
			launched, measured = max(launched, launches[k]), max(measured, runs[k])
		}
	}
	return launched, measured
}
