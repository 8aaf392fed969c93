package document

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
	"perflab/internal/result"
)

// severalChanges finds steps that change more than one thing against every
// earlier step of their engine and load.
func severalChanges(d *document) []audit.Finding {
	var out []audit.Finding
	reported := map[int]bool{}
	for i, s := range d.steps {
		if s.role != "" || s.script == nil || reported[s.line()] {
			continue
		}
		var nearest []command.Change
		var base step
		for _, e := range slices.Backward(d.steps[max(0, i-lookback):i]) {
			if e.setup.Engine != s.setup.Engine || e.setup.Engine == "" || e.load != s.load || e.role != "" || e.script == nil || audit.Differ(command.ModelCore(e.setup.Model), command.ModelCore(s.setup.Model)) {
				continue
			}
			if nearest != nil && len(command.ChangedFeatures(e.setup, s.setup, false)) >= len(nearest) {
				continue // before it is put in words
			}
			d := command.Changes(e.setup, s.setup, false)
			if d = slices.DeleteFunc(d, func(d command.Change) bool { return d.Feature == "case" }); nearest == nil || len(d) < len(nearest) {
				nearest, base = d, e
			}
		}
		if len(nearest) < 2 {
			continue
		}
		reported[s.line()] = true
		text := fmt.Sprintf("against the nearest earlier step (%s) this one changes %s at once: %s", audit.Lines([]int{base.line()}), command.Spelled(len(nearest))+" things", strings.Join(command.Texts(nearest), "; "))
		if a, b := base.run.Value("total_token_throughput"), s.run.Value("total_token_throughput"); a > 0 && b > 0 {
			text += fmt.Sprintf("; together %+.1f %% (%s against %s tok/s)", 100*(b/a-1), s.run.Text("total_token_throughput"), base.run.Text("total_token_throughput"))
		}
		if len(out) < fewFindings {
			text += splitOf(d.steps[max(0, i-lookback):min(len(d.steps), i+lookback)], nearest)
		}
		out = append(out, audit.Finding{Type: "several-changes", Severity: audit.Warning, Place: d.at(s.line(), s.run.Place.Section), Text: text})
	}
	return out
}

// splitOf names two steps that differ by one of the changes alone, and what it
// was worth there; "" for none.
func splitOf(steps []step, mixed []command.Change) string {
	for i, s := range steps {
		for _, e := range steps[max(0, i-lookback):i] {
			if e.load != s.load || e.setup.Engine != s.setup.Engine || e.role != "" || s.role != "" {
				continue
			}
			if len(command.ChangedFeatures(e.setup, s.setup, true)) > 1 {
				continue
			}
			d := command.Changes(e.setup, s.setup, true)
			if len(d) != 1 || !slices.Contains(mixed, d[0]) {
				continue
			}
			a, b := e.run.Value("total_token_throughput"), s.run.Value("total_token_throughput")
			if a > 0 && b > 0 {
				return fmt.Sprintf("; %s alone is %+.1f %% (%s against %s tok/s, lines %d and %d)", d[0].Text, 100*(b/a-1),
					s.run.Text("total_token_throughput"), e.run.Text("total_token_throughput"), s.run.Place.Line, e.run.Place.Line)
			}
		}
	}
	return ""
}

// namedChange is a change that a heading can name, and the flags that show it.
type namedChange struct {
	name    string
	heading func() *regexp.Regexp
	shown   func() *regexp.Regexp // in a command, its model or the flags of a caption
}

var namedChanges = []namedChange{
	{"quantisation", audit.Pattern(`(?i)quanti[sz]ation|\b(fp8|awq|gptq|int8|int4|w8a8|nvfp4|mxfp4)\b`),
		audit.Pattern(`(?i)quant|fp8|awq|gptq|int8|int4|w8a8|w4a16|nvfp4|mxfp4|fp4|bnb|gguf|-dtype|gpt-oss`)},
	{"speculative decoding", audit.Pattern(`(?i)speculative|\bmtp\b|\beagle`), audit.Pattern(`(?i)speculative|mtp|eagle|draft`)},
	{"prefix caching", audit.Pattern(`(?i)prefix[ -]cach`), audit.Pattern(`(?i)prefix|radix|block_reuse`)},
	{"chunked prefill", audit.Pattern(`(?i)chunked[ -]prefill`), audit.Pattern(`(?i)chunked|batched[-_]tokens|max_num_tokens`)},
	{"CUDA graphs", audit.Pattern(`(?i)cuda[ -]?graph`), audit.Pattern(`(?i)graph|compilation|eager`)},
	{"expert parallelism", audit.Pattern(`(?i)expert[ -]parallel`), audit.Pattern(`(?i)expert|ep[-_]size|--ep\b|deepep`)},
	{"compilation", audit.Pattern(`(?i)torch[. ]?compile`), audit.Pattern(`(?i)compil`)},
}

// changeNotRecorded finds sections that name a change which no command, model
// or flag of theirs shows.
func changeNotRecorded(d *document) []audit.Finding {
	var out []audit.Finding
	for _, c := range namedChanges {
		var bare []step
		shown := map[string]bool{}
		for _, s := range d.steps {
			if at := c.section(s.run.Place.Section); at != "" && c.shownBy(s) {
				shown[at] = true
			}
		}
		for _, s := range d.steps {
			at := c.section(s.run.Place.Section)
			if at != "" && !shown[at] && s.run.Header.Command != "" {
				bare = append(bare, s)
			}
		}
		if len(bare) == 0 {
			continue
		}
		var at []int
		for _, s := range bare {
			at = append(at, s.run.Place.Line)
		}
		text := fmt.Sprintf("the headings name %s, but no command, model or flag of %s at %s shows it", c.name, blocks(len(at)), audit.Lines(at))
		if twin, was, ok := sameWordsOtherFigures(d.steps, bare); ok {
			text += fmt.Sprintf("; the flags of line %d equal those of line %d, where the figures differ (%s)", twin.run.Place.Line, was.run.Place.Line, firstDifference(was.run, twin.run))
		} else if c.name != "quantisation" {
			continue // the engine may do it by default
		}
		out = append(out, audit.Finding{Type: "change-not-recorded", Severity: audit.Warning, Place: d.at(bare[0].line(), bare[0].run.Place.Section), Text: text + ": it cannot be repeated from the text"})
	}
	return out
}

// blocks writes a number of blocks.
func blocks(n int) string {
	if n == 1 {
		return "the block"
	}
	return fmt.Sprintf("the %d blocks", n)
}

// section returns the path down to the innermost heading that names the
// change, the title apart; "" for none.
func (c namedChange) section(path []string) string {
	for i := len(path) - 1; i >= 1; i-- {
		if c.heading().MatchString(path[i]) {
			return strings.Join(path[:i+1], "\x00")
		}
	}
	return ""
}

// shownBy reports whether a step shows the change.
func (c namedChange) shownBy(s step) bool {
	var text strings.Builder
	text.WriteString(s.run.Header.Command + " " + s.run.Header.Label(result.LabelCase))
	for name := range s.setup.Flags {
		text.WriteString(" " + name)
	}
	return c.shown().MatchString(text.String())
}

// sameWordsOtherFigures returns the first of some steps that has an earlier step with equal
// words in another section and other figures.
func sameWordsOtherFigures(steps, some []step) (twin, was step, ok bool) {
	first, wanted := map[string]step{}, map[*interop.Run]bool{}
	for _, s := range some {
		wanted[s.run] = true
	}
	for _, s := range steps {
		key := s.setup.Key() + "\x00" + s.load
		was, seen := first[key]
		if !seen {
			first[key] = s
			continue
		}
		if wanted[s.run] && !sameFigures(was.run, s.run) && !slices.Equal(was.run.Place.Section, s.run.Place.Section) {
			return s, was, true
		}
	}
	return step{}, step{}, false
}

// sameFigures reports whether two runs print the same, figure by figure.
func sameFigures(a, b *interop.Run) bool { return a.FigureKey() == b.FigureKey() }

// firstDifference writes the first figure of a few that differs between two runs.
func firstDifference(a, b *interop.Run) string {
	for _, name := range []string{"mean_e2el_ms", "total_token_throughput", "mean_ttft_ms", "mean_tpot_ms", "duration"} {
		x, okA := a.Figure(name)
		y, okB := b.Figure(name)
		if okA && okB && x.Value != y.Value {
			return fmt.Sprintf("%s %s against %s", y.Label, y.Text, x.Text)
		}
	}
	return "see there"
}

// scriptContradictsBlock finds scripts above blocks whose comments say another
// value of a flag. A script that stands for several variants, each with a comment
// of its own, is a template, of which a reader is to know.
func scriptContradictsBlock(d *document) []audit.Finding {
	var out []audit.Finding
	var order []*interop.Script
	wrong := map[*interop.Script][]int{}
	example := map[*interop.Script]string{}
	variants := map[*interop.Script][]string{}
	for _, s := range d.steps {
		over := command.CaptionFlags(s.run.Header.Label(result.LabelCase))
		if s.script == nil || over == nil {
			continue
		}
		if v := fmt.Sprint(over); !slices.Contains(variants[s.script], v) && len(variants[s.script]) < 2 {
			variants[s.script] = append(variants[s.script], v)
		}
		written := command.Read(s.script.Text)
		for _, name := range slices.Sorted(maps.Keys(over)) {
			value, ok := written.Flags[name]
			if ok && value == over[name] || name == "model" {
				continue
			}
			if wrong[s.script] == nil {
				order = append(order, s.script)
				has := "--" + strings.TrimSpace(name+" "+value)
				if !ok {
					has = "no --" + name
				}
				example[s.script] = fmt.Sprintf("line %d says --%s where the script has %s", s.run.Place.Line, strings.TrimSpace(name+" "+over[name]), has)
			}
			wrong[s.script] = append(wrong[s.script], s.run.Place.Line)
			break
		}
	}
	for _, sc := range order {
		f := audit.Finding{Type: "script-contradicts-block", Severity: audit.Warning, Place: d.at(sc.Line, sc.Section),
			Text: fmt.Sprintf("the script is not the one of the results at %s, by the comments above them: %s", audit.Lines(wrong[sc]), example[sc])}
		if len(variants[sc]) > 1 {
			f.Severity = audit.Note
			f.Text = fmt.Sprintf("one script stands for several variants, and those at %s differ from it by the comments above them: %s", audit.Lines(wrong[sc]), example[sc])
		}
		out = append(out, f)
	}
	return out
}

// fewFindings is for how many findings of a document more is looked up.
const fewFindings = 8
