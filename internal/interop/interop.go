// Package interop reads and writes the result files of other load generators,
// and tags every figure with the definition it was made by.
//
//	f := interop.Read("report.md", data)
//	for _, r := range f.Runs {
//		s := r.Summary() // figures by metric name, with their definitions
//	}
//	for _, fault := range f.Faults {
//		fmt.Println(fault) // report.md:12: what could not be read, and why
//	}
//
// Invariants: reading never fails and never panics; what cannot be read is a
// Fault with its line, and nothing is dropped without one. A figure keeps the
// text it was printed as, so that rounding is known. A figure the file lacks is
// absent, never zero.
//
// Deliberately absent: files and directories (the caller reads them), and
// judgement: whether figures can be true is package audit's.
package interop

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
)

// Formats of files.
const (
	FormatText          = "text"           // blocks in a text or Markdown file
	FormatVLLM          = "vllm"           // vllm bench serve --save-result, Python or Rust, also appended lines
	FormatSGLang        = "sglang"         // sglang.bench_serving's JSON lines
	FormatGuideLLM      = "guidellm"       // guidellm's report, also benchmark-runner's
	FormatAIPerf        = "aiperf"         // profile_export_aiperf.json and its per-request lines
	FormatInferencePerf = "inference-perf" // lifecycle metrics
	FormatCSV           = "csv"            // perflab export --to csv
	FormatParquet       = "parquet"        // perflab export --to parquet
	FormatRun           = "run"            // a run directory of perflab
)

// Place is where something stands.
type Place struct {
	File    string   `json:"file"`
	Line    int      `json:"line,omitzero"` // from 1; 0: the whole file
	End     int      `json:"end_line,omitzero"`
	Section []string `json:"section,omitempty"` // headings above it, outermost first
}

// String returns "file:line".
func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Fault is something that could not be read, or not as it should be.
type Fault struct {
	Place
	Kind FaultKind
	Text string // one sentence, what is wrong and what to do
}

// FaultKind tells faults apart by what became of what they speak of.
type FaultKind string

// Kinds of faults.
const (
	Unread     FaultKind = ""            // it was not read
	Recovered  FaultKind = "recovered"   // it was read although it is not as it should be
	NoResult   FaultKind = "no-result"   // it is of something else
	PassedOver FaultKind = "passed-over" // files of a directory that are of something else
	Unmeasured FaultKind = "unmeasured"  // zeros that stand for no measurement: they are in Run.Unmeasured
)

// String returns "file:line: text".
func (f Fault) String() string { return f.Place.String() + ": " + f.Text }

// File is what one file holds.
type File struct {
	Name   string // as given
	Runs   []Run
	Doc    *Document // of a text; nil for data files
	Faults []Fault
}

// Run is one measured load as a file tells of it. Header.Imported is set, and
// holds what the file says around the figures; Header.Command is the serving
// command (or, where no more is written, its flags).
type Run struct {
	Place   Place
	Header  result.Header
	Figures []Figure                     // in the order of the file; a name may be there once
	Defs    map[string]result.Definition // of those that are not ours, by family or scalar
	Other   []Pair                       // lines of a block that are no figure of ours

	// Unmeasured are figures of which every statistic of a family is zero: they
	// are no figures, and a block that prints them did not measure them.
	Unmeasured []Figure
	// Absent are figures of which the file says that there is none: "N/A".
	Absent []Figure

	Calls   []result.Call  // where the file has requests
	Lacks   []string       // families and scalars that the calls cannot give, because they tell of less than ours do
	Sim     bool           // the file says that it was simulated
	Verdict result.Verdict // of perflab's own, as the file has it; empty where it has none
}

// Figure is one number as a file has it.
type Figure struct {
	Name  string  // our metric that it is under, in our unit; Run.Defs has its definition
	Label string  // as the file has it: "Mean TPOT (ms)"
	Text  string  // the number as the file has it: "2.35"
	Value float64 // in the unit of the metric
	Half  float64 // half a unit of the last printed digit: any value in Value ± Half prints so; 0 for a count
	Line  int
}

// Pair is a label and its text.
type Pair struct {
	Label, Text string
	Line        int
}

// Figure returns a figure by the name of a metric of ours.
func (r *Run) Figure(name string) (Figure, bool) {
	for _, f := range r.Figures {
		if f.Name == name {
			return f, true
		}
	}
	return Figure{}, false
}

// Value is a figure's value; 0 where the run lacks it.
func (r *Run) Value(name string) float64 {
	f, _ := r.Figure(name)
	return f.Value
}

// Text is a figure as printed; "" where the run lacks it.
func (r *Run) Text(name string) string {
	f, _ := r.Figure(name)
	return f.Text
}

// PerRequest is a total per completed request; 0 where the run lacks either.
func (r *Run) PerRequest(total string) float64 {
	if n := r.Value("completed"); n > 0 {
		return r.Value(total) / n
	}
	return 0
}

// FigureKey is equal for runs that print the same figures.
func (r *Run) FigureKey() string {
	var b strings.Builder
	for _, f := range r.Figures {
		b.WriteString(f.Name + "=" + strconv.FormatFloat(f.Value, 'g', -1, 64) + ";")
	}
	return b.String()
}

// dropUnmeasured takes away the latencies of which every statistic is zero:
// vllm bench serve and clients like it write so what they have no sample of.
// It returns the faults to tell of those that the run should have measured.
func (r *Run) dropUnmeasured() []Fault {
	family := func(f Figure) string {
		_, of, _ := strings.Cut(strings.TrimSuffix(f.Name, "_ms"), "_")
		return of
	}
	most := map[string]float64{"ttft": 0, "tpot": 0, "itl": 0, "e2el": 0}
	for _, f := range r.Figures {
		if v, ok := most[family(f)]; ok {
			most[family(f)] = max(v, math.Abs(f.Value))
		}
	}
	dropped := map[string][]Figure{}
	r.Figures = slices.DeleteFunc(r.Figures, func(f Figure) bool {
		v, latency := most[family(f)]
		if !latency || v != 0 {
			return false
		}
		r.Other = append(r.Other, Pair{f.Label, f.Text, f.Line})
		r.Unmeasured = append(r.Unmeasured, f)
		dropped[family(f)] = append(dropped[family(f)], f)
		return true
	})
	var faults []Fault
	for _, of := range []string{"ttft", "tpot", "itl", "e2el"} {
		if zeros := dropped[of]; len(zeros) > 0 && len(r.Figures) > 0 && r.Measurable(of) {
			place := r.Place
			place.Line, place.End = cmp.Or(zeros[0].Line, place.Line), 0
			faults = append(faults, Fault{Place: place, Kind: Unmeasured, Text: fmt.Sprintf("every %s figure is zero, which stands for no measurement: they are left out", strings.ToUpper(of))})
		}
	}
	return faults
}

// Measurable reports whether the requests of a run had times of a family to
// measure: answers of one token have no time between tokens.
func (r *Run) Measurable(family string) bool {
	done := r.Value("completed")
	if family == "itl" || family == "tpot" {
		return done > 0 && r.Value("total_output_tokens") > done
	}
	return done > 0
}

// Definition returns the definition of a figure.
func (r *Run) Definition(name string) result.Definition {
	return result.Summary{Definitions: r.Defs}.Definition(name)
}

// Summary returns the figures of the file as a summary, those it lacks
// computed from the calls where there are calls (see result.Summary.Complete).
// Its verdict is empty: see audit.
func (r *Run) Summary() (result.Summary, error) {
	s := result.Summary{Figures: map[string]float64{}, Definitions: r.Defs, Simulated: r.Sim || r.Header.Simulated}
	for _, f := range r.Figures {
		if _, err := result.Lookup(f.Name); err == nil {
			s.Figures[f.Name] = f.Value
		}
	}
	if len(r.Calls) == 0 {
		return s, nil
	}
	own, err := result.Summarize(r.Header, &result.Client{}, result.Options{}, slices.Values(r.Calls))
	if err != nil {
		return s, fmt.Errorf("summarise %s: %w", r.Place, err)
	}
	s.Complete(own, r.Lacks...)
	return s, nil
}

// Document is a text that publishes results: what stands in it besides the
// blocks, all with their lines.
type Document struct {
	Title    string
	Lines    []string // all of them, without their ends; line n is Lines[n-1]
	Sections []Section
	Tables   []Table
	Scripts  []Script
	Prose    []Text // lines that are none of the above, admonitions included, in order
}

// Section is a heading. Text files without Markdown have lines that serve as one.
type Section struct {
	Level int // 1 is the title
	Title string
	Line  int
	Path  []string // its own title last
}

// Table is a Markdown table.
type Table struct {
	Place
	Head []string // cells as text: tags and emphasis removed, <br> a newline
	Rows []Row
}

// Row is one row of a table's body.
type Row struct {
	Line  int
	Cells []string
}

// Kinds of scripts.
const (
	ScriptServing   = "serving"   // starts an engine
	ScriptBenchmark = "benchmark" // starts a load generator
	ScriptFlags     = "flags"     // flags of an engine, without the command
	ScriptOther     = "other"
)

// Script is a command that the document shows, in a fence or as a line of
// text, with its continuation lines joined.
type Script struct {
	Place
	Kind    string
	Caption string // of the admonition or the line above it: "Baseline serving script"
	Text    string // one line; several commands of a fence are several scripts
	Note    string // comment lines above it in its fence
}

// Text is a line of prose.
type Text struct {
	Line    int
	Section []string
	Text    string
}

// Slug makes a directory name of words.
func Slug(words ...string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(strings.Join(words, "-")) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-.")
}
