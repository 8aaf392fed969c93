package calib

import (
	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/sim"
)

// Question is what a prediction is asked of.
type Question struct {
	Config   engine.Config
	Replicas int // 0: 1
	Load     Load
	Options  result.Options // percentiles and bounds of the figures
	Seed     uint64
	Draws    int // of constants and lengths, for the ranges; 0: 12
}

// Range is a predicted figure and what it lies between in nine of ten cases.
type Range struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Prediction is what the simulator says of one configuration under one load.
// It is SIMULATED throughout.
type Prediction struct {
	Summary    result.Summary   // of the run with the middle constants
	Figures    map[string]Range // of the figures of Summary that a range is known of
	Bottleneck Bottleneck
	KV         KVUse
	Outside    []string // what the calibration has not seen, one sentence each
	Steps      sim.Stats
}

// Bottleneck is what holds the load back.
type Bottleneck struct {
	Name  string  `json:"name"`  // stable: see Bottlenecks
	Share float64 `json:"share"` // of the time
	Text  string  `json:"text"`  // one sentence with the numbers and what to try
}

// KVUse is what the KV cache holds.
type KVUse struct {
	Tokens      int     `json:"tokens"`      // of one replica
	Peak        float64 `json:"peak"`        // share of it in use at most
	Concurrency float64 `json:"concurrency"` // requests of the load's mean length that it holds
	Preemptions int     `json:"preemptions"`
}
