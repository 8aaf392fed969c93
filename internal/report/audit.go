package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"perflab/internal/audit"
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
		parts[i] = count(a.Count(s), string(s))
	}
	text := strings.Join(parts, ", ")
	places := 0
	for _, f := range a.Findings {
		places += 1 + len(f.Also)
	}
	if places > len(a.Findings) {
		text += fmt.Sprintf(" at %d places", places)
	}
	text += " in " + count(len(a.Files), "file")
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

// AuditText writes an audit for a terminal: the findings of a file together,
// each as compilers print theirs, with the figures it speaks of under it.
func AuditText(w io.Writer, a Audit) error {
	var b strings.Builder
	file := ""
	for _, f := range a.shown() {
		if file != "" && f.Place.File != file {
			b.WriteString("\n")
		}
		file = f.Place.File
		fmt.Fprintf(&b, "%s: %s %s: %s\n", f.Place, f.Severity, f.Type, f.Text)
		for _, text := range []string{evidence(f), also(f)} {
			if text != "" {
				fmt.Fprintf(&b, "    %s\n", text)
			}
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintln(&b, a.conclusion())
	return writeAll(w, b.String())
}

// AuditMarkdown writes an audit as a comment on the document it is of.
func AuditMarkdown(w io.Writer, a Audit) error {
	m := &mdWriter{}
	m.heading(2, "Audit")
	m.para("%s.", mdText(a.conclusion()))
	shown := a.shown()
	for _, file := range a.Files {
		first := true
		for _, f := range shown {
			if f.Place.File != file {
				continue
			}
			if first {
				m.heading(3, file)
				m.row("Line", "Severity", "Finding", "Figures")
				m.row("---:", "---", "---", "---")
				first = false
			}
			line := ""
			if f.Place.Line > 0 {
				line = fmt.Sprint(f.Place.Line)
			}
			m.row(line, fmt.Sprintf("**%s** %s", f.Severity, mdCode(f.Type)), mdText(f.Text), mdText(strings.Trim(evidence(f)+"; "+also(f), "; ")))
		}
		if !first {
			m.b.WriteString("\n")
		}
	}
	return m.writeTo(w, "the audit")
}

// AuditJSON writes an audit for scripts.
func AuditJSON(w io.Writer, a Audit) error {
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

// ChecksText lists the types of findings for a terminal.
func ChecksText(w io.Writer, checks []audit.Check) error {
	var b strings.Builder
	for _, c := range checks {
		fmt.Fprintf(&b, "%s (%s): %s\n", c.Type, c.Severity, c.Doc)
		if c.Holds != "" {
			fmt.Fprintf(&b, "    %s\n", c.Holds)
		}
	}
	return writeAll(w, b.String())
}
