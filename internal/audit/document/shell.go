package document

import (
	"fmt"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

// shellFaults finds what a shell makes of commands.
func shellFaults(d *document) []audit.Finding {
	var out []audit.Finding
	for s := range d.scripts(interop.ScriptServing, interop.ScriptBenchmark) {
		var faults []string
		if strings.ContainsAny(s.Text, "“”„‘’") {
			faults = append(faults, "it has quotes of print (“ ” or ‘ ’), which a shell does not take for quotes")
		}
		for _, w := range command.Split(s.Text) {
			if t := w.Text(); strings.HasPrefix(t, "–") || strings.HasPrefix(t, "—") {
				faults = append(faults, t+" begins with a dash of print and not with a hyphen")
				continue
			}
			if fault := w.Fault(); fault != "" {
				faults = append(faults, fault)
			}
		}
		faults = append(faults, continuationFaults(d.file.Doc, s)...)
		if len(faults) > 0 {
			out = append(out, audit.Finding{Type: "command-not-shell-safe", Severity: audit.Warning, Place: d.at(s.Line, s.Section),
				Text: "a shell does not run this as it is meant: " + strings.Join(faults, "; ")})
		}
	}
	return out
}

// continuationFaults finds lines of a command that a shell does not join.
func continuationFaults(doc *interop.Document, s *interop.Script) []string {
	var out []string
	last := min(max(s.End, s.Line), len(doc.Lines))
	for n := s.Line; n >= 1 && n <= last; n++ {
		line := doc.Lines[n-1]
		trimmed := strings.TrimRight(line, " \t\r")
		if strings.HasSuffix(trimmed, `\`) {
			if rest := line[len(trimmed):]; strings.Trim(rest, "\r") != "" && n < last {
				out = append(out, fmt.Sprintf("spaces follow the backslash of line %d, which then joins nothing", n))
			}
			continue
		}
		if n < len(doc.Lines) && trimmed != "" && command.IsFlag(strings.TrimSpace(trimmed)+" ") == (n > s.Line) {
			next := strings.TrimSpace(doc.Lines[n])
			first, _, _ := strings.Cut(next, " ")
			if strings.HasPrefix(next, "-") && command.IsFlag(first) && indentOf(doc.Lines[n]) >= indentOf(doc.Lines[s.Line-1]) {
				out = append(out, fmt.Sprintf("line %d lacks a backslash at its end, so %s of line %d is run as a command of its own", n, first, n+1))
				break
			}
		}
	}
	return out
}

// indentOf counts leading spaces.
func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }
