package scan

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"perflab/internal/redact"
)

// Kind is what a directory holds.
type Kind string

// Kinds of entries.
const (
	Run    Kind = "run"
	Series Kind = "series"
	Study  Kind = "study"
	Import Kind = "import"
	Site   Kind = "site"
	Folder Kind = "folder" // that cannot be opened: nobody knows what it holds
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Run, Series, Study, Import, Site, Folder} }

// State says whether something goes on.
type State string

// States of an entry.
const (
	Running  State = "running"
	Stopped  State = "stopped"  // before its end: its process is gone
	Partial  State = "partial"  // it was brought to an end with less than was planned
	Finished State = "finished" // all that was planned
)

// States are all of them.
func States() []State { return []State{Running, Stopped, Partial, Finished} }

// Facts are what a directory tells. They are computed from its files alone.
type Facts struct {
	ID    string `json:"id"`              // digest of what was measured: equal for copies
	Early string `json:"early,omitempty"` // the ID that it had while it was under way, where that differs
	Kind  Kind   `json:"kind"`
	Name  string `json:"name"` // of the directory
	Title string `json:"title,omitempty"`
	State State  `json:"state,omitempty"` // "": not known
	Fault string `json:"fault,omitempty"` // what could not be read, in a sentence

	Started  time.Time `json:"started,omitzero"`
	Duration float64   `json:"duration_s,omitzero"`

	Verdict   string   `json:"verdict,omitempty"` // sound, noted, void; of a study: confirmed, unconfirmed
	Reasons   []string `json:"reasons,omitempty"` // for it, short
	Simulated bool     `json:"simulated"`
	Predicted bool     `json:"predicted,omitempty"`
	Imported  string   `json:"imported,omitempty"` // the client that measured it; "": perflab

	Engine        string `json:"engine,omitempty"`
	EngineVersion string `json:"engine_version,omitempty"`
	Image         string `json:"image,omitempty"`
	Model         string `json:"model,omitempty"`
	Hardware      string `json:"hardware,omitempty"`
	GPUs          int    `json:"gpus,omitzero"`
	Config        string `json:"config,omitempty"` // key of the configuration: equal where all that matters is
	Known         bool   `json:"config_known"`     // the serving command was known for Config; else it is of model and address

	Workload    string  `json:"workload,omitempty"` // its name
	Load        string  `json:"load,omitempty"`     // in words: "sharegpt, 500 requests, 8 requests/s"
	Fingerprint string  `json:"fingerprint,omitempty"`
	Rate        float64 `json:"request_rate,omitzero"`
	Limit       int     `json:"max_concurrency,omitzero"`
	Requests    int     `json:"requests,omitzero"` // planned

	Command string `json:"command,omitempty"` // that serves, secrets masked
	Invoked string `json:"invoked,omitempty"` // that made it, secrets masked
	Build   string `json:"build,omitempty"`   // commit or label of what was measured
	Host    string `json:"host,omitempty"`    // that sent the load, in words
	Version string `json:"version,omitempty"` // of perflab
	Bytes   int64  `json:"bytes"`             // of the files that tell all this
	Trial   int    `json:"trial,omitzero"`    // of a study's run
	Label   string `json:"label,omitempty"`   // of its configuration in the study

	Headline *Headline `json:"headline,omitempty"`
	Figures  []Figure  `json:"-"`
	Calls    CallsFile `json:"-"` // that ID is of; zero where it is of none

	targets string
}

// Figure is a figure by the name that the metric table has.
type Figure struct {
	Metric string   `json:"metric"`
	Value  float64  `json:"value"`
	Low    *float64 `json:"low,omitempty"` // ends of its 95 % interval; nil: it has none
	High   *float64 `json:"high,omitempty"`
}

// Figures of entries that no run has, beside those of the metric table.
const (
	Gain     = "gain"      // of a study: of the objective over the baseline, 0.5 is half as good again
	Trials   = "trials"    // of a study
	Points   = "points"    // runs of a series or an import
	Findings = "findings"  // of the audit, on the runs of an import
	GPUHours = "gpu_hours" // that a study took
)

// OwnFigures are the names of figures that no run has.
func OwnFigures() []string { return []string{Gain, Trials, Points, Findings, GPUHours} }

// Headline is what a study or a series came to.
type Headline struct {
	Objective string   `json:"objective,omitempty"` // "Highest total token throughput"
	Metric    string   `json:"metric,omitempty"`
	Higher    bool     `json:"higher,omitempty"` // more of it is better
	SLOs      []string `json:"slos,omitempty"`
	Best      string   `json:"best,omitempty"` // label of what is recommended
	Command   string   `json:"command,omitempty"`
	Value     *float64 `json:"value,omitempty"` // of Metric
	Gain      *float64 `json:"gain,omitempty"`
	Low       *float64 `json:"low,omitempty"` // ends of the gain's 95 % interval
	High      *float64 `json:"high,omitempty"`
	Confirmed bool     `json:"confirmed,omitempty"`
	Trials    int      `json:"trials,omitzero"`
	Text      string   `json:"text,omitempty"` // the conclusion in a sentence
	Resume    string   `json:"resume,omitempty"`
}

// Lengths that texts of a directory are cut to: a header is as long as its writer wants.
const (
	mostShort   = 400
	mostCommand = 16 << 10
	mostReasons = 8
	mostReason  = 160 // a list has a line for it; all of it is in the run's report
)

// short makes a text of a file fit to be kept and shown: valid, without what steers a terminal,
// without secrets of a known form, and not endless.
func short(s string) string { return clean(s, mostShort) }

func command(s string) string { return clean(s, mostCommand) }

func clean(s string, most int) string {
	if s == "" {
		return ""
	}
	s = strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", ""), "\uFFFD")
	s = redact.Text(strings.TrimSpace(s))
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return strings.TrimRight(s[:most], " ") + "…"
}

// raw decodes JSON and leaves nothing where it is none.
func raw(b json.RawMessage, v any) { _ = json.Unmarshal(b, v) }
