package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/block"
	"perflab/internal/report/doc"
	"perflab/internal/result"
)

// origin says where an imported run came from; "" for a run of ours.
func origin(h result.Header) string {
	if h.Imported == nil {
		return ""
	}
	text := fmt.Sprintf("Imported from %s, measured by %s", sourceOf(h.Imported), clientName(h))
	if strings.HasPrefix(h.Imported.Client, "perflab") { // an export of ours that came back
		return text
	}
	return text + "; perflab did not measure it"
}

// sourceOf is the file of an imported run, and the line in it.
func sourceOf(i *result.Imported) string {
	if i.Line == 0 {
		return i.File
	}
	return fmt.Sprintf("%s:%d", i.File, i.Line)
}

// clientName is the client that measured a run, with its version.
func clientName(h result.Header) string {
	if h.Imported != nil {
		return strings.TrimSpace(cmp.Or(h.Imported.Client, "an unknown client") + " " + h.Imported.Version)
	}
	return strings.TrimSpace("perflab bench " + h.Version)
}

// plannedText is how many requests a run planned; "" where nobody recorded it.
func plannedText(h result.Header) string {
	switch {
	case h.Requests > 0:
		return fmt.Sprint(h.Requests)
	case h.Imported == nil:
		return "as many as there was time for"
	}
	return ""
}

// notRecorded stands where a file does not say what a header of ours does.
const notRecorded = "not recorded"

// importedFacts says what the file tells of a run besides its figures. Labels
// that have no meaning to us follow under their own names.
func importedFacts(h result.Header) []Fact {
	i := h.Imported
	if i == nil {
		return nil
	}
	known := []struct{ key, label string }{
		{result.LabelCase, "Case"}, {result.LabelRole, "Role"}, {result.LabelEngine, "Engine"}, {result.LabelEngineVersion, "Engine version"},
		{result.LabelHardware, "Hardware"}, {result.LabelGPUs, "GPUs"}, {result.LabelNodes, "Nodes"}, {result.LabelDataset, "Dataset"},
		{result.LabelBenchCommand, "Benchmark command"}, {result.LabelFailed, "Failures"},
	}
	f := []Fact{{"Imported from", sourceOf(i)}, {"Section", strings.Join(i.Section, " / ")}}
	rest := maps.Clone(i.Labels)
	delete(rest, result.LabelRate) // under Request rate
	delete(rest, result.LabelLimit)
	for _, k := range known {
		f = append(f, Fact{k.label, i.Labels[k.key]})
		delete(rest, k.key)
	}
	for _, k := range slices.Sorted(maps.Keys(rest)) {
		f = append(f, Fact{"Label " + k, rest[k]})
	}
	for _, k := range slices.Sorted(maps.Keys(i.Other)) {
		f = append(f, Fact{"Also in the file: " + k, i.Other[k]})
	}
	return f
}

// ImportedStyle is how the block of an imported run is printed: in the layout
// of its origin, with the percentiles that its file has. A run of ours has
// none of its own.
func ImportedStyle(h result.Header, percentiles []float64) (st block.Style, ok bool) {
	if h.Imported == nil {
		return st, false
	}
	st.Percentiles = percentiles
	st.Sections = []string{"ttft", "tpot", "itl", "e2el"}
	if strings.Contains(h.Imported.Client, "benchmark-runner") {
		st.Layout, st.Sections = block.GPUStack, []string{"e2el", "ttft", "tpot", "itl"}
	}
	return st, true
}

// definition explains figures of a run that are not by our definitions.
type definition struct{ Of, Tag, Formula, Clients string }

// definitions lists what of a summary is by other definitions, in the order
// of the metric table; only what has a figure.
func definitions(s *result.Summary) []definition {
	var out []definition
	seen := map[string]bool{}
	for _, m := range result.Metrics() {
		of := cmp.Or(m.Family, m.Name)
		tag := s.Definition(m.Name)
		if _, ok := value(s, m); !ok || tag == result.Ours || seen[of] {
			continue
		}
		seen[of] = true
		out = append(out, explained(m, tag))
	}
	return out
}

// explained says how the figures of a metric's kind are made by a definition.
func explained(m result.Metric, tag result.Definition) definition {
	label := m.Label
	if m.Family != "" {
		label = familyLabel(m)
	}
	label, _, _ = strings.Cut(label, " (")
	d := definition{Of: label, Tag: string(tag), Formula: "not known here"}
	if doc, ok := tag.Doc(); ok {
		d.Formula, d.Clients = doc.Formula, doc.Clients
	}
	return d
}

// definitionLines name each definition under a heading, for a terminal.
func definitionLines(all []definition) []string {
	if len(all) == 0 {
		return nil
	}
	width := 0
	for _, d := range all {
		width = max(width, len(d.Of))
	}
	lines := []string{"Not by perflab's definitions (docs/metrics.md):"}
	for _, d := range all {
		lines = append(lines, fmt.Sprintf("  %-*s  %s: %s", width, d.Of, d.Tag, d.Formula))
	}
	return lines
}

// definitionTable has a row for each definition.
func definitionTable(all []definition) doc.Table {
	t := doc.Table{Columns: doc.Columns("Figure", "Definition", "Formula", "Clients")}
	for _, d := range all {
		t.Rows = append(t.Rows, doc.Cells(d.Of, doc.Code(d.Tag), doc.Code(d.Formula), d.Clients))
	}
	return t
}

// tagged is the label of a figure with the definition it is by, where that is
// not ours.
func tagged(label string, d result.Definition) string {
	if d == result.Ours {
		return label
	}
	return label + ", " + string(d)
}
