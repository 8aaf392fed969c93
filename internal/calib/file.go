package calib

import (
	"perflab/internal/engine"
	"perflab/internal/sim"
)

// Calibration is the file that a fit writes: constants for the hardware and
// engines of its runs, how far off they are, and what they have seen.
type Calibration struct {
	Schema string     `json:"schema"`              // "perflab.calibration/2"
	Source string     `json:"source"`              // the runs, in one sentence
	Sets   []sim.Set  `json:"sets"`                // constants with their spread
	Errors []Error    `json:"errors"`              // held out
	Common float64    `json:"common,omitempty"`    // share of the errors' variance that configurations of one study under one load have in common
	After  []Error    `json:"after_run,omitempty"` // held out, after a run of the study they belong to
	Seen   []Envelope `json:"seen"`                // what the runs cover
	Site   []Envelope `json:"site,omitempty"`      // what the runs cover that it was corrected by, see With
	Runs   int        `json:"runs"`                // fitted
	Note   []string   `json:"note,omitempty"`      // what is odd
}

// Error is how far predictions of a figure were from runs that took no part in
// the fit: logarithms of predicted over measured.
type Error struct {
	New     Novelty `json:"new"`              // how much of what was predicted was
	Engine  string  `json:"engine,omitempty"` // "": all
	Metric  string  `json:"metric"`
	Runs    int     `json:"runs"`
	Studies int     `json:"studies,omitempty"` // that the runs are of; 0: of one, as all are
	Bias    float64 `json:"bias"`              // median
	Spread  float64 `json:"spread"`            // half of what holds nine in ten, see Fit

	Accelerator string `json:"accelerator,omitempty"` // in files of the first schema alone
}

// Envelope is what the runs on one accelerator with one engine cover.
type Envelope struct {
	Accelerator   string     `json:"accelerator"`
	Engine        string     `json:"engine"`
	Generation    string     `json:"generation,omitempty"`
	Models        []string   `json:"models"`
	Formats       []string   `json:"formats"`
	GPUs          []int      `json:"gpus"`
	Input         [2]float64 `json:"input"`  // mean tokens, from and to
	Output        [2]float64 `json:"output"` // mean tokens, from and to
	Rate          [2]float64 `json:"rate"`   // requests/s of open loops; 0, 0: none
	Burst         [2]int     `json:"burst"`  // requests sent at once; 0, 0: none
	Speculation   bool       `json:"speculation,omitempty"`
	Disaggregated bool       `json:"disaggregated,omitempty"` // replicas of prefill and decode engines
	Tiered        bool       `json:"tiered,omitempty"`        // memories that keep what the devices' KV caches give up
}

// of says whether the runs are of a configuration's engine, in the generation of its version.
func (e *Envelope) of(c *engine.Config) bool {
	return e.Engine == c.Engine && e.Generation == c.Generation
}
