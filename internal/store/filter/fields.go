// Package filter reads what a user asks a list for, and writes it in SQL.
//
//	f, err := filter.Parse("engine=vllm, p99_ttft_ms<=200, started>=2026-11-01", now)
//	clause := f.Clause() // "lower(e.engine)=? AND ...", its values apart
//	order, err := filter.ParseOrder("-output_throughput")
//
// An expression is bounds on figures in the syntax that SLOs have, comparisons of facts, and words
// that stand somewhere in an entry; a comma, "and" or a space joins them, and all must hold.
//
// Invariants: SQL is put together of constants of this package alone, and whatever a user wrote is
// a value beside it; an error says at which character it is and, where one is near, what was meant;
// what an entry does not have meets no bound.
//
// Absent: what columns hold (package store), brackets and "or", which several values of one fact
// ("engine=vllm|sglang") stand for.
package filter

import (
	"slices"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// Type is how the values of a fact are written and compared.
type Type string

// Types of facts.
const (
	Text    Type = "text"
	Choice  Type = "choice" // one of Values
	Number  Type = "number"
	Size    Type = "size"    // bytes: 10MB
	Seconds Type = "seconds" // 90s, 5m, 2h, 7d
	Time    Type = "time"    // 2026-11-01, 2026-11-01T14:30
	Age     Type = "age"     // a span before now: 7d
	Bool    Type = "bool"    // true, false
)

// Field is a fact that can be filtered, sorted and grouped by.
type Field struct {
	Name   string
	Type   Type
	Doc    string
	Values []string // of a Choice

	column  string // expression over e, a row of entries
	related string // subquery that begins "SELECT ... WHERE ... AND ", column being its value
	figure  string // name of the figure that it is; column is then not used
	unit    string // of figure
}

// Sortable reports whether a list can be put in the order of the fact.
func (f Field) Sortable() bool { return f.related == "" }

// Groupable reports whether a list can be grouped by the fact.
func (f Field) Groupable() bool {
	return f.related == "" && (f.Type == Text || f.Type == Choice || f.Type == Bool)
}

const (
	labelsOf = "SELECT 1 FROM labels x WHERE x.entry=e.n AND x.kind="
	placesOf = "SELECT 1 FROM places x WHERE x.entry=e.n AND "
)

// fields are the facts in the order in which help lists them.
var fields = []Field{
	{Name: "kind", Type: Choice, column: "e.kind", Values: []string{"run", "series", "study", "import", "site", "folder"}, Doc: "what it is"},
	{Name: "id", Type: Text, column: "e.id", Doc: "its ID, or the beginning of it"},
	{Name: "name", Type: Text, column: "e.name", Doc: "of its directory, or given by somebody"},
	{Name: "title", Type: Text, column: "e.title", Doc: "title of a study, file of an import"},
	{Name: "path", Type: Text, column: "x.path", related: placesOf, Doc: "where it lies below the root"},
	{Name: "parent", Type: Text, column: "e.parent", Doc: "ID of the study, series or import that it is a part of"},
	{Name: "trial", Type: Number, column: "e.trial", Doc: "number in its study"},
	{Name: "started", Type: Time, column: "e.started", Doc: "when it began"},
	{Name: "age", Type: Age, column: "e.started", Doc: "how long ago it began"},
	{Name: "duration", Type: Seconds, column: "e.duration", Doc: "how long it took"},
	{Name: "state", Type: Choice, column: "e.state", Values: []string{"running", "stopped", "partial", "finished"}, Doc: "whether it goes on"},
	{Name: "verdict", Type: Choice, column: "e.verdict", Values: []string{"sound", "noted", "void", "confirmed", "unconfirmed"}, Doc: "whether its figures can be believed"},
	{Name: "simulated", Type: Bool, column: "e.simulated", Doc: "a simulator answered"},
	{Name: "predicted", Type: Bool, column: "e.predicted", Doc: "nobody answered: it was replayed in virtual time"},
	{Name: "imported", Type: Text, column: "e.imported", Doc: "the other client that measured it"},
	{Name: "engine", Type: Text, column: "e.engine", Doc: "vllm, sglang, trtllm, llamacpp"},
	{Name: "engine_version", Type: Text, column: "e.engine_version", Doc: "version of the engine"},
	{Name: "image", Type: Text, column: "e.image", Doc: "container image"},
	{Name: "model", Type: Text, column: "e.model", Doc: "model that was served"},
	{Name: "hardware", Type: Text, column: "e.hardware", Doc: "accelerators, in words"},
	{Name: "gpus", Type: Number, column: "e.gpus", Doc: "how many were allocated"},
	{Name: "config", Type: Text, column: "e.config", Doc: "key of the configuration: equal where all that matters is"},
	{Name: "workload", Type: Text, column: "e.workload", Doc: "its name"},
	{Name: "fingerprint", Type: Text, column: "e.fingerprint", Doc: "of the workload: equal for runs that sent the same"},
	{Name: "rate", Type: Number, column: "e.request_rate", Doc: "requests/s that were offered"},
	{Name: "limit", Type: Number, column: "e.max_concurrency", Doc: "limit of requests in flight"},
	{Name: "command", Type: Text, column: "e.command", Doc: "serving command"},
	{Name: "build", Type: Text, column: "e.build", Doc: "commit or label of what was measured"},
	{Name: "host", Type: Text, column: "e.host", Doc: "machine that sent the load"},
	{Name: "version", Type: Text, column: "e.version", Doc: "of perflab"},
	{Name: "size", Type: Size, column: "e.bytes", Doc: "of its files"},
	{Name: "gain", Type: Number, figure: "gain", unit: "ratio", Doc: "of a study over its baseline: 5%"},
	{Name: "trials", Type: Number, figure: "trials", Doc: "of a study"},
	{Name: "points", Type: Number, figure: "points", Doc: "runs of a series or an import"},
	{Name: "findings", Type: Number, figure: "findings", Doc: "of the audit of an import"},
	{Name: "gpu_hours", Type: Number, figure: "gpu_hours", Doc: "that a study took"},
	{Name: "tag", Type: Text, column: "x.value", related: labelsOf + "'tag' AND ", Doc: "that somebody gave it"},
	{Name: "issue", Type: Text, column: "x.value", related: labelsOf + "'issue' AND ", Doc: "known issue that it is marked with"},
	{Name: "note", Type: Text, column: "e.note", Doc: "that somebody wrote"},
	{Name: "pinned", Type: Bool, column: "e.pinned", Doc: "somebody pinned it"},
	{Name: "fault", Type: Text, column: "e.fault", Doc: "what of it could not be read"},
}

// Fields are all facts, for help and completion. Bounds may also be on every figure of the
// metric table.
func Fields() []Field { return slices.Clone(fields) }

// find returns the fact, or the figure, of a name.
func find(name string) (Field, string) {
	for _, f := range fields {
		if f.Name == name {
			return f, ""
		}
	}
	m, err := result.Lookup(name)
	if err == nil {
		return Field{Name: m.Name, Type: Number, figure: m.Name, unit: m.Unit, Doc: m.Doc}, ""
	}
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.Name
	}
	if near := stat.Nearest(name, known); near != "" {
		return Field{}, "did you mean " + near + "?"
	}
	return Field{}, err.Error()
}
