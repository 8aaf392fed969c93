package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

// noRepeats finds documents that measure each configuration once.
func noRepeats(d *document) []audit.Finding {
	if repeatsTold(d) {
		return nil
	}
	groups, order := map[string][]step{}, []string{}
	for _, s := range withoutCopies(d.steps) {
		key := repeatKey(s)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], s)
	}
	var first, a, b step
	least, of := math.Inf(1), ""
	loads := map[string]step{}
	for _, key := range order {
		if len(groups[key]) > 1 {
			return nil
		}
		s := groups[key][0]
		if first.run == nil {
			first = s
		}
		last, seen := loads[s.load]
		if d, what := distance(last, s); seen && d > 0 && d < least {
			least, a, b, of = d, last, s, what
		}
		loads[s.load] = s
	}
	if len(order) < 2 {
		return nil
	}
	text := fmt.Sprintf("each of the %d measurements is a single run without an interval", len(order))
	if !math.IsInf(least, 1) {
		text += fmt.Sprintf("; the closest that are compared (lines %d and %d) differ by %.1f %% in %s", a.run.Place.Line, b.run.Place.Line, 100*least, of)
	}
	return []audit.Finding{{Type: "no-repeats", Severity: audit.Note, Place: d.at(first.run.Place.Line, nil), Text: text}}
}

// heldRate is the part of a rate that was set which a run must reach to be
// compared by its latency.
const heldRate = 0.8

// distance is how far two steps are apart in what they are compared by: latency at
// a rate that was set, throughput else.
func distance(a, b step) (share float64, of string) {
	rate, got := 0.0, 0.0
	if b.run != nil {
		rate, got = b.run.Header.Rate, b.run.Value("request_throughput")
	}
	if d := difference(a, b, "mean_e2el_ms"); d > 0 && rate > 0 && got > heldRate*rate {
		return d, "mean latency"
	}
	return difference(a, b, "total_token_throughput"), "total throughput"
}

// repeatKey is equal for runs that are measurements of one thing.
func repeatKey(s step) string {
	key := s.setup.Key() + "\x00" + s.load
	if s.run.Header.Command == "" {
		key += "\x00" + strings.Join(s.run.Place.Section, "/") + "\x00" + s.role
	}
	return key + "\x00" + command.ModelCore(s.run.Header.Model) + "\x00" + unrecordedChanges(s)
}

// withoutCopies are the steps without those that print the figures of one before.
func withoutCopies(steps []step) []step {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool {
		p := s.run.FigureKey()
		was := seen[p]
		seen[p] = true
		return was
	})
}

// difference is how far a figure of two runs is apart, as a share of the
// first; 0 where one lacks it.
func difference(a, b step, name string) float64 {
	if a.run == nil || b.run == nil {
		return 0
	}
	x, y := a.run.Value(name), b.run.Value(name)
	if x <= 0 || y <= 0 {
		return 0
	}
	return math.Abs(y/x - 1)
}

// duplicates finds blocks that print what an earlier one prints.
func duplicates(d *document) []audit.Finding {
	first := map[string]step{}
	var copies, others []string
	var at, otherAt int
	for _, s := range d.steps {
		if len(s.run.Figures) < audit.FewestCopied {
			continue
		}
		print := s.run.FigureKey()
		was, seen := first[print]
		if !seen {
			first[print] = s
			continue
		}
		pair := fmt.Sprintf("%d = %d", s.run.Place.Line, was.run.Place.Line)
		if d := command.Changes(was.setup, s.setup, true); was.run.Header.Command != "" && s.run.Header.Command != "" && len(d) > 0 && was.setup.Case == s.setup.Case {
			others = append(others, pair+" ("+strings.Join(command.Texts(d), "; ")+")")
			otherAt = firstLine(otherAt, s.run.Place.Line)
			continue
		}
		copies = append(copies, pair)
		at = firstLine(at, s.run.Place.Line)
	}
	var out []audit.Finding
	if len(copies) > 0 {
		out = append(out, audit.Finding{Type: "duplicate-block", Severity: audit.Warning, Place: d.at(at, nil),
			Text: fmt.Sprintf("%s every figure of an earlier one: copies are no second measurements (lines %s)", audit.BlocksRepeat(len(copies)), audit.ShortList(copies))})
	}
	if len(others) > 0 {
		out = append(out, audit.Finding{Type: "duplicate-block", Severity: audit.Warning, Place: d.at(otherAt, nil),
			Text: fmt.Sprintf("%s every figure of an earlier one under another command, so one of the two was not measured (lines %s)", audit.BlocksRepeat(len(others)), audit.ShortList(others))})
	}
	return out
}

// firstLine keeps the first line found.
func firstLine(line, found int) int {
	if line != 0 {
		return line
	}
	return found
}

// defaultFlags are flags that repeat what their engine does anyway.
var defaultFlags = map[string]string{command.VLLM + "/max-cudagraph-capture-size": "512"}

// repeated are the measurements of one setup and load.
type repeated struct {
	first, worst step // worst is the farthest from the first
	at           []int
	note         string
}

// sameSetup is how far measurements of one setup are apart in throughput at
// most, as a share: more is no noise.
const sameSetup = 0.05

// repeatedSetups finds measurements of one command and load.
func repeatedSetups(d *document) []audit.Finding {
	groups := map[string]*repeated{}
	var order []*repeated
	for _, s := range withoutCopies(d.steps) {
		if s.run.Header.Command == "" {
			continue
		}
		bare, note := withoutDefaults(s.setup)
		key := repeatKey(step{run: s.run, setup: bare, load: s.load})
		g := groups[key]
		if g == nil {
			g = &repeated{first: s}
			groups[key], order = g, append(order, g)
		} else if g.worst.run == nil || difference(g.first, s, "total_token_throughput") > difference(g.first, g.worst, "total_token_throughput") {
			g.worst = s
		}
		g.at = append(g.at, s.run.Place.Line)
		g.note = cmp.Or(g.note, note)
	}
	var out []audit.Finding
	reported := repeatsTold(d)
	for _, g := range order {
		if g.worst.run == nil {
			continue
		}
		text := fmt.Sprintf("%s have the same command and load%s, and differ by up to %s", audit.Lines(g.at), g.note, spreadText(g.first, g.worst))
		if difference(g.first, g.worst, "total_token_throughput") > sameSetup {
			out = append(out, audit.Finding{Type: "same-setup-differs", Severity: audit.Warning, Place: d.at(g.worst.run.Place.Line, g.worst.run.Place.Section),
				Text: text + ": something that is not recorded was changed, or steps of this size mean nothing"})
		} else if !reported { // else its own text says how far runs are apart
			out = append(out, audit.Finding{Type: "noise-floor", Severity: audit.Note, Place: d.at(g.worst.run.Place.Line, g.worst.run.Place.Section),
				Text: text + ": differences of this size between configurations mean nothing"})
		}
	}
	return out
}

// withoutDefaults leaves out the flags that repeat what their engine does
// anyway, and says which.
func withoutDefaults(s command.Setup) (bare command.Setup, note string) {
	bare = command.Setup{Engine: s.Engine, Model: s.Model, Flags: map[string]string{}, Case: s.Case}
	for name, value := range s.Flags {
		if d, ok := defaultFlags[s.Engine+"/"+name]; ok && d == value {
			note = fmt.Sprintf(" (--%s %s is the engine's default)", name, value)
			continue
		}
		bare.Flags[name] = value
	}
	return bare, note
}

// unrecordedChanges are the changes that a step's headings name and its words do not
// show: it is not the same setup as one without them.
func unrecordedChanges(s step) string {
	var names []string
	for _, c := range namedChanges {
		if c.section(s.run.Place.Section) != "" && !c.shownBy(s) && c.name == "quantisation" {
			names = append(names, c.name)
		}
	}
	return strings.Join(names, ",")
}

// spreadText writes how far two runs are apart.
func spreadText(a, b step) string {
	var parts []string
	for _, m := range []struct{ name, label string }{
		{"total_token_throughput", "total throughput"}, {"mean_e2el_ms", "mean latency"}, {"mean_ttft_ms", "mean TTFT"}, {"mean_tpot_ms", "mean TPOT"},
	} {
		if d := difference(a, b, m.name); d > 0 {
			parts = append(parts, fmt.Sprintf("%.1f %% in %s", 100*d, m.label))
		}
	}
	if len(parts) == 0 {
		return "less than is printed"
	}
	return strings.Join(parts, ", ")
}

// repeatWords are found where a document repeats runs or states spread.
var repeatWords = audit.Pattern(`(?i)±|std\.? ?dev|standard deviation|confidence interval|\brepeat(s|ed)? (runs?|measurements?|\d|each)|(average|mean|median) of (\d+|three|five|several) runs|\b\d+ (runs|repetitions|repeats) (each|per)`)

// repeatsTold reports whether a document speaks of repeated runs or their
// spread.
func repeatsTold(d *document) bool {
	return slices.ContainsFunc(d.file.Doc.Prose, func(t interop.Text) bool { return repeatWords().MatchString(t.Text) })
}
