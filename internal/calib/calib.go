// Package calib fits the simulator's constants to measured runs, and gives what
// the simulator predicts a range: of the constants' own spread, of the lengths
// that a workload may draw, and of what the simulator has been found wrong by.
//
//	cal, err := calib.Fit(observations, calib.FitOptions{})
//	p, err := cal.Predict(calib.Question{Config: cfg, Replicas: 1, Load: load})
//	p.Figures["mean_ttft_ms"] // {Value, Low, High}
//	p.Bottleneck.Text         // "reading the experts' weights takes 61 % of the steps"
//	here, err := cal.With(runs, calib.FitOptions{}) // corrected by runs of one's own machines
//
// Invariants: everything here is a pure function of its arguments. A range is
// made of held-out errors (the scored run's study, workload or model took no part
// in the fit) and never of the residuals of the fit itself. What lies outside the
// runs of a calibration is said, never extrapolated in silence.
//
// Deliberately absent: files and commands, which cli reads.
package calib

import "perflab/internal/engine"

// The figures that a fit looks at and that ranges are known of, by metric name.
const (
	Throughput = "total_token_throughput"
	MeanTTFT   = "mean_ttft_ms"
	MedianTTFT = "median_ttft_ms"
	MeanTPOT   = "mean_tpot_ms"
	MedianITL  = "median_itl_ms"
	MeanE2E    = "mean_e2el_ms"
)

// Scored are the figures that ranges are known of, in the order of tables.
var Scored = []string{Throughput, MeanTTFT, MedianTTFT, MeanTPOT, MedianITL, MeanE2E}

// fitted says that constants may be fitted to the run. One that is scored apart
// is not, but for speculation, whose constants are its own.
func (b *Observation) fitted() bool {
	return b.Apart == "" || b.Apart == "speculation"
}

// unmodelled says that the simulator lacks what decides a figure of the run, so
// that no constant may take its place: what a draft model does to the steps that
// prompts pass.
func (b *Observation) unmodelled(metric string) bool {
	return b.Config.SpecTokens > 0 && (metric == MeanTTFT || metric == MedianTTFT)
}

// servedShare is the share of the offered rate from which on an engine keeps up with it.
const servedShare = 0.9

// Saturated says that more was offered to the engine than it could serve: its throughput
// is then its own, and its latencies are those of a queue that grows as long as the load
// lasts, in which a small error of capacity is a large one of time.
func (b *Observation) Saturated() bool {
	served, ok := b.Figures["request_throughput"]
	return ok && b.Load.Rate > 0 && served < servedShare*b.Load.Rate
}

// scored are the figures of a run that can be held against a prediction. The
// throughput of an open loop is the client's doing; its mean TTFT is that of a
// few requests that meet a stall at the start, so the median counts.
func (b *Observation) scored() []string {
	switch {
	case b.Saturated():
		return []string{Throughput}
	case b.Load.Rate > 0:
		return []string{MedianTTFT, MeanE2E}
	case b.Figures[MeanTPOT] == 0 && b.Figures[MeanE2E] > 0:
		return []string{Throughput, MeanTTFT, MeanE2E}
	}
	return []string{Throughput, MeanTTFT, MeanTPOT, MedianITL}
}

// Observation is one measured run: what ran, what was sent, what came out.
type Observation struct {
	ID       string             `json:"id"`
	Study    string             `json:"study"`              // what it was measured as a part of
	Workload string             `json:"workload"`           // name of the load within the study
	Note     string             `json:"note,omitempty"`     // what is inferred or odd
	Apart    string             `json:"apart,omitempty"`    // why it is scored by itself; "" for most
	Command  string             `json:"command"`            // of one replica
	Version  string             `json:"version,omitempty"`  // of the engine, where known: it decides defaults
	GPU      string             `json:"gpu"`                // accelerator, by its short name
	GPUs     int                `json:"gpus"`               // of one replica's machine
	Replicas int                `json:"replicas,omitempty"` // 0: 1
	Load     Load               `json:"load"`
	Figures  map[string]float64 `json:"figures"` // as measured, by metric name; those of Scored enter a fit

	Config engine.Config `json:"-"` // what the command means; see Resolve
}
