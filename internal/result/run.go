package result

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"perflab/internal/generator"
)

// What load generators say of themselves.
type (
	Host        = generator.Host
	SelfCheck   = generator.SelfCheck
	Client      = generator.Client
	Machine     = generator.Machine
	Waits       = generator.Waits
	CacheUse    = generator.CacheUse
	Fleet       = generator.Fleet
	Agent       = generator.Agent
	ClockOffset = generator.Offset
)

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
	Requests  int             `json:"requests"`                 // planned; 0: not known in advance, time decides
	Rate      float64         `json:"request_rate,omitzero"`    // requests/s; 0: all at once
	Limit     int             `json:"max_concurrency,omitzero"` // 0: none
	Closed    bool            `json:"closed_loop,omitempty"`    // requests have no due times: each is due when the limit lets it pass
	Command   string          `json:"command,omitempty"`        // serving command under test, where known
	Host      Host            `json:"host"`                     // that made the run, and sent the load where no fleet did
	Invoked   string          `json:"invoked,omitempty"`        // the command line that made the run, secrets replaced; "": a study made it, or another client

	Clock         string     `json:"clock,omitempty"`                // who stamps reads: ClockKernel, ClockMonotonic; "": not known
	LateReads     bool       `json:"late_reads,omitzero"`            // calls tell of the reads that were made late, in Call.Late
	Cache         string     `json:"cache,omitempty"`                // unique, reset, warm, shared
	Sharing       bool       `json:"shares_prefixes,omitempty"`      // the workload does, within the run and on purpose
	Lengths       string     `json:"output_lengths,omitempty"`       // LengthsExact, LengthsFixed; "": an answer may end by itself
	KnownInput    bool       `json:"input_lengths_known,omitempty"`  // Call.WantIn is what the prompts have, and no estimate of it
	Fingerprint   string     `json:"workload_fingerprint,omitempty"` // equal for two runs that sent the same
	Tokenizer     string     `json:"tokenizer,omitempty"`            // that lengths were counted by
	TokenizerFrom string     `json:"tokenizer_from,omitempty"`       // where that was found, or why lengths are estimates
	SelfCheck     *SelfCheck `json:"self_check,omitempty"`           // error bars of this client on this machine, where measured
	Fleet         *Fleet     `json:"fleet,omitempty"`                // who sent the load, as far as is known; nil: this machine
	Pods          []Pod      `json:"pods,omitempty"`                 // that engines ran in, of a Kubernetes cluster
	Service       *Service   `json:"service,omitempty"`              // of others in a Kubernetes cluster, whose pods they are
	Imported      *Imported  `json:"imported,omitempty"`             // another client measured it; nil: we did
}

// CountedBy says by what the lengths of prompts were counted; "" where that is not known.
func (h Header) CountedBy() string { return strings.TrimSpace(h.Tokenizer + " " + h.TokenizerFrom) }

// Who takes the stamp of a read.
const (
	ClockKernel    = "kernel"    // the kernel, when the packet arrived
	ClockMonotonic = "monotonic" // this process, when the read returned and before any parsing
)

// States of the server's prefix cache that a run may ask for, in Header.Cache.
const (
	CacheUnique = "unique" // every prompt new to the server
	CacheReset  = "reset"  // emptied before the run
	CacheWarm   = "warm"   // filled, as declared
	CacheShared = "shared" // the workload shares prefixes on purpose
)

// What was asked of the length of answers, in Header.Lengths.
const (
	LengthsExact = "exact" // the server was told to generate as many tokens as were asked for (ignore_eos)
	LengthsFixed = "fixed" // the workload wants as many, and the API has no way to say so
)

// SpanText writes a span of time as a reader takes it in: "2.5 s", "40 ms".
func SpanText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.3g ms", ms(d))
	}
	return fmt.Sprintf("%.3g s", d.Seconds())
}

// ClockText says who stamps the reads, "" when the header does not.
func (h Header) ClockText() string {
	switch h.Clock {
	case ClockKernel:
		return "the kernel, when a packet arrived"
	case ClockMonotonic:
		return "the client, when a read returned and before parsing"
	}
	return h.Clock
}

// HasRate reports whether requests come at a rate, and not all at once.
func (h Header) HasRate() bool { return h.Rate > 0 && !math.IsInf(h.Rate, 1) }

// RateText is the request rate of a run in words, "" where nobody recorded it.
func (h Header) RateText() string {
	switch {
	case h.HasRate():
		return fmt.Sprintf("%g requests/s", h.Rate)
	case h.Imported == nil || h.Label(LabelRate) == "inf":
		return "all at once"
	}
	return ""
}

// LimitText is the concurrency limit of a run in words, "" where nobody
// recorded it.
func (h Header) LimitText() string {
	switch {
	case h.Limit > 0:
		return strconv.Itoa(h.Limit)
	case h.Imported == nil || h.Label(LabelLimit) == "none":
		return "none"
	}
	return "" // a file without it may have had one
}

// Label returns a label of an imported run, "" for none.
func (h Header) Label(key string) string {
	if h.Imported == nil {
		return ""
	}
	return h.Imported.Labels[key]
}
