// Package audited builds documents of what an audit found.
package audited

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/report/doc"
	"perflab/internal/report/plot"
)

// Audit is what an audit found.
type Audit struct {
	Files    []string        // that were audited, in order
	Findings []audit.Finding // by file and line
	Least    audit.Severity  // that is shown; "": all. Counts are of all findings
}

// severities are those there are, the worst first.
var severities = []audit.Severity{audit.Error, audit.Warning, audit.Note}

// shown are the findings at least as severe as asked for.
func (a Audit) shown() []audit.Finding {
	last := slices.Index(severities, a.Least)
	if last < 0 {
		return a.Findings
	}
	var out []audit.Finding
	for _, f := range a.Findings {
		if slices.Contains(severities[:last+1], f.Severity) {
			out = append(out, f)
		}
	}
	return out
}

// Count returns how many findings have a severity.
func (a Audit) Count(s audit.Severity) int {
	n := 0
	for _, f := range a.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// conclusion is the line that counts.
func (a Audit) conclusion() string {
	parts := make([]string, len(severities))
	for i, s := range severities {
		parts[i] = plot.Count(a.Count(s), string(s))
	}
	text := strings.Join(parts, ", ")
	places := 0
	for _, f := range a.Findings {
		places += 1 + len(f.Also)
	}
	if places > len(a.Findings) {
		text += fmt.Sprintf(" at %d places", places)
	}
	text += " in " + plot.Count(len(a.Files), "file")
	if hidden := len(a.Findings) - len(a.shown()); hidden > 0 {
		text += fmt.Sprintf(" (%d below %s not shown)", hidden, a.Least)
	}
	return text
}

// evidence is what a finding rests on, in one line; "" for nothing.
func evidence(f audit.Finding) string {
	var parts []string
	for _, c := range f.Figures {
		text := strings.TrimSpace(c.Label + " " + c.Text)
		if c.Line > 0 && c.Line != f.Place.Line {
			text += fmt.Sprintf(" (line %d)", c.Line)
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, ", ")
	if f.Expected != "" {
		text = strings.TrimPrefix(text+"; expected "+f.Expected, "; ")
	}
	return text
}

// also says where else the same was found; "" for nowhere.
func also(f audit.Finding) string {
	const most = 12
	var lines []string
	for _, x := range f.Also[:min(len(f.Also), most)] {
		at := x.Place.String()
		if x.Place.File == f.Place.File && x.Place.Line > 0 {
			at = fmt.Sprint(x.Place.Line)
		}
		if x.Expected != "" && x.Expected != f.Expected && len(x.Expected) < 40 {
			at += " (" + x.Expected + ")"
		}
		lines = append(lines, at)
	}
	if len(lines) == 0 {
		return ""
	}
	text := "the same at " + strings.Join(lines, ", ")
	if more := len(f.Also) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Document shows the findings of a file together: for a terminal as compilers
// print theirs, in Markdown as a comment on the document.
func (a Audit) Document() doc.Document {
	d := doc.New("Audit", "", "the audit")
	d.Bare = doc.InMarkdown
	shown := a.shown()
	file := ""
	for _, f := range shown {
		if file != "" && f.Place.File != file {
			d.Body.Text("")
		}
		file = f.Place.File
		d.Body.Textf("%s: %s %s: %s", f.Place, f.Severity, f.Type, f.Text)
		for _, text := range []string{evidence(f), also(f)} {
			if text != "" {
				d.Body.Text("    " + text)
			}
		}
	}
	if len(shown) > 0 {
		d.Body.Text("")
	}
	d.Body.Text(a.conclusion())
	a.AddTo(d.Body.Part(doc.InDocument, doc.Section{ID: "audit", Title: "Audit", Page: "Findings", Listed: true}))
	return d
}

// AddTo adds the findings to a section of a page or of Markdown, a table a file.
func (a Audit) AddTo(comment *doc.Section) {
	comment.Para(a.conclusion() + ".")
	for _, file := range a.Files {
		t := doc.Table{Class: "grid", HeadCell: -1, Columns: doc.Columns(">Line", "Severity", "=Finding", "=Figures")}
		t.Columns[1].Class = "code"
		for _, f := range a.shown() {
			if f.Place.File != file {
				continue
			}
			line := ""
			if f.Place.Line > 0 {
				line = fmt.Sprint(f.Place.Line)
			}
			severity := doc.Cell{
				Text: doc.Spans(doc.Bold(string(f.Severity)), " ", doc.Code(f.Type)),
				Page: doc.Spans(doc.Tag(tones[f.Severity], string(f.Severity)), " ", doc.Code(f.Type)),
			}
			t.Rows = append(t.Rows, doc.Cells(line, severity, f.Text, strings.Trim(evidence(f)+"; "+also(f), "; ")))
		}
		comment.Part(doc.InDocument, doc.Section{Title: file}).Add(doc.InDocument, t)
	}
}

// tones are how a page shows severities.
var tones = map[audit.Severity]string{audit.Error: "void", audit.Warning: "noted", audit.Note: "remark"}

// JSON writes an audit for scripts.
func JSON(w io.Writer, a Audit) error {
	counts := map[audit.Severity]int{}
	for _, s := range severities {
		counts[s] = a.Count(s)
	}
	findings := a.shown()
	if findings == nil {
		findings = []audit.Finding{}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Files    []string               `json:"files"`
		Findings []audit.Finding        `json:"findings"`
		Counts   map[audit.Severity]int `json:"counts"`
	}{a.Files, findings, counts})
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}

// Checks lists the types of findings for a terminal.
func Checks(checks []audit.Check) doc.Document {
	d := doc.New("Findings", "", "the types of findings")
	for _, c := range checks {
		d.Body.Textf("%s (%s): %s", c.Type, c.Severity, c.Doc)
		if c.Holds != "" {
			d.Body.Text("    " + c.Holds)
		}
	}
	return d
}
