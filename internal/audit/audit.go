// Package audit finds what cannot be true in figures: in those of one run by
// arithmetic, identities and the physics of its hardware, and in runs beside
// each other. It is pure: figures in, findings out. What documents say of their
// figures is package audit/document's, whose Audit calls this package too.
//
//	findings := audit.Runs(&file, audit.Options{})
//
// Invariants: a figure stands for every value that rounds to it, and a check
// fires only when no value of the intervals satisfies it under any definition
// that a known tool uses; findings say which definition fits where one does. A
// check that lacks a figure does not fire. A clean block yields nothing.
//
// Deliberately absent: reading files (interop) and measured intervals
// (compare): what a document prints once has no spread to judge by.
package audit

import (
	"cmp"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/interop"
)

// Severity of a finding.
type Severity string

// Severities. An error is arithmetic: figures that contradict each other under
// every definition known, or a document that contradicts its own figures. A
// warning is physics or practice that makes a conclusion doubtful. A note is
// what a reader should know.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// rank orders severities, the worst first.
func (s Severity) rank() int { return slices.Index([]Severity{Error, Warning, Note}, s) }

// Finding is one thing that is wrong or doubtful.
type Finding struct {
	Type     string        `json:"type"` // stable: see Checks
	Severity Severity      `json:"severity"`
	Place    interop.Place `json:"place"`
	Figures  []Cited       `json:"figures,omitempty"`  // that it speaks of
	Expected string        `json:"expected,omitempty"` // the recomputed value, with its unit
	Text     string        `json:"text"`               // one sentence

	// Run is the run of the file that it is of, for findings of one block; nil
	// where it is of the document.
	Run *interop.Run `json:"-"`
	// Also are findings that say the same of further places of the file, each
	// complete, where one line says it for all.
	Also []Finding `json:"also,omitempty"`
}

// Cited is a figure as the file has it.
type Cited struct {
	Label string `json:"label"`
	Text  string `json:"text"`
	Line  int    `json:"line,omitzero"`
}

// Cite is a figure as a finding shows it.
func Cite(f interop.Figure) Cited { return Cited{Label: f.Label, Text: f.Text, Line: f.Line} }

// Check is one type of finding, for documentation.
type Check struct {
	Type     string
	Severity Severity
	Doc      string // one sentence: what it finds
	Holds    string // when it applies, and which definitions are allowed for
}

// Options are what the reader of a document knows and it does not say.
type Options struct {
	Model       *arch.Model       // nil: recognised from the text
	Accelerator *arch.Accelerator // nil: recognised from the text
	GPUs        int               // 0: recognised from the text
}

// Sort puts findings in the order of the files and of their lines, the worst of
// a line first.
func Sort(findings []Finding, files []interop.File) {
	order := map[string]int{}
	for i := range files {
		order[files[i].Name] = i
	}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(order[a.Place.File]-order[b.Place.File], a.Place.Line-b.Place.Line, a.Severity.rank()-b.Severity.rank())
	})
}

// Gather puts findings that say the same of several places of a file into the
// first of them: a sentence that differs by its numbers alone lies in a client
// or a habit of the document.
func Gather(of []Finding) []Finding {
	var out []Finding
	first := map[string]int{}
	for _, f := range of {
		key := f.Type + "\x00" + wording(f.Text)
		if i, seen := first[key]; seen && out[i].Severity == f.Severity {
			out[i].Also = append(out[i].Also, f)
			continue
		}
		first[key] = len(out)
		out = append(out, f)
	}
	return out
}

// wording is a sentence without its numbers and their plurals.
func wording(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' || r == ',' || r == '+' || r == '-' || r == 's' {
			return -1
		}
		return r
	}, text)
}

// ByRun are the findings on each run, those beside others too.
func ByRun(findings []Finding) map[*interop.Run][]Finding {
	out := map[*interop.Run][]Finding{}
	for _, f := range findings {
		for _, x := range append([]Finding{f}, f.Also...) {
			if x.Run != nil {
				out[x.Run] = append(out[x.Run], x)
			}
		}
	}
	return out
}
