package document

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

var (
	definition   = audit.Pattern(`(?m)(?:^|\s)([A-Za-z_][A-Za-z0-9_]*)(?:: |=)`)
	literal      = audit.Pattern(`'[^']*'`)
	variable     = audit.Pattern(`\$\{?([A-Za-z_][A-Za-z0-9_]*)`)
	angled       = audit.Pattern(`<[A-Za-z][A-Za-z0-9_ -]*>`)
	privateRange = audit.Pattern(`\b(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b`)
)

// mostPlaceholders is how many are named.
const mostPlaceholders = 8

// placeholders finds what a reader must fill in before a command runs.
func placeholders(d *document) []audit.Finding {
	var found []string
	var at []int
	var section []string
	var defined map[string]bool // read once a command has a variable
	for s := range d.scripts(interop.ScriptServing, interop.ScriptBenchmark) {
		var names []string
		for _, w := range command.Words(s.Text) {
			if len(w) == 1 && w[0] >= 'A' && w[0] <= 'Z' {
				names = append(names, w)
			}
		}
		names = append(names, angled().FindAllString(s.Text, -1)...)
		names = append(names, privateRange().FindAllString(s.Text, -1)...)
		for _, m := range variable().FindAllStringSubmatch(literal().ReplaceAllString(s.Text, ""), -1) {
			if defined == nil {
				defined = definitionsIn(d.file.Doc)
			}
			if !defined[m[1]] {
				names = append(names, "$"+m[1])
			}
		}
		if len(names) > 0 && len(at) == 0 {
			section = s.Section
		}
		if len(names) > 0 {
			at = append(at, s.Line)
		}
		for _, n := range names {
			if len(found) < mostPlaceholders && !slices.Contains(found, n) {
				found = append(found, n)
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	return []audit.Finding{{Type: "command-placeholder", Severity: audit.Note, Place: d.at(at[0], section),
		Text: fmt.Sprintf("the commands at %s do not run as printed: the reader must supply %s", audit.Lines(at), strings.Join(found, ", "))}}
}

// definitionsIn are the names that a document gives a value, as NAME=value or
// as a key of a profile.
func definitionsIn(doc *interop.Document) map[string]bool {
	out := map[string]bool{}
	for _, l := range doc.Lines {
		for _, m := range definition().FindAllStringSubmatch(l, -1) {
			out[m[1]] = true
		}
	}
	return out
}

// flagsWithoutEffect finds flags that do nothing as they are given.
func flagsWithoutEffect(d *document) []audit.Finding {
	var out []audit.Finding
	at := map[string][]int{}
	for s := range d.scripts(interop.ScriptServing, interop.ScriptFlags, interop.ScriptBenchmark) {
		text := ""
		switch s.Kind {
		case interop.ScriptBenchmark:
			text = idleBenchFlags(d, s)
		case interop.ScriptServing, interop.ScriptFlags:
			text = idleServingFlags(s)
		}
		if text == "" {
			continue
		}
		if at[text] == nil {
			out = append(out, audit.Finding{Type: "flag-without-effect", Severity: audit.Warning, Place: d.at(s.Line, s.Section), Text: text})
		}
		at[text] = append(at[text], s.Line)
	}
	for i, o := range out {
		if len(at[o.Text]) > 1 {
			out[i].Text += " (" + audit.Lines(at[o.Text]) + ")"
		}
	}
	return out
}

// idleServingFlags finds the serving flags that their engine turns off.
func idleServingFlags(s *interop.Script) string {
	w := command.Read(s.Text)
	_, on := w.Flags["enable-dp-attention"]
	if w.Engine != command.SGLang || !on || w.Flags["dp"] != "" || strings.Contains(strings.ToLower(w.Model), "v3.2") {
		return "" // the sparse models of DeepSeek set a size of their own
	}
	return "--enable-dp-attention without --dp-size does nothing: SGLang turns it off at a data-parallel size of 1, so this is the same server as without it"
}

// benchDatasets are the prefixes of vllm bench serve's flags that hold for one
// kind of dataset alone.
var benchDatasets = []struct{ prefix, dataset string }{
	{"hf-", "hf"}, {"sharegpt-", "sharegpt"}, {"sonnet-", "sonnet"}, {"custom-", "custom"}, {"random-", "random"},
	{"prefix-repetition-", "prefix_repetition"}, {"blazedit-", "hf"},
}

// idleBenchFlags finds the flags of vllm bench serve that its dataset ignores.
func idleBenchFlags(d *document, s *interop.Script) string {
	if !strings.Contains(s.Text, "vllm bench") {
		return ""
	}
	w := command.Read(s.Text)
	dataset, chosen := w.Flags["dataset-name"]
	if !chosen {
		dataset = "random"
	}
	var idle []string
	for _, name := range slices.Sorted(maps.Keys(w.Flags)) {
		for _, d := range benchDatasets {
			if strings.HasPrefix(name, d.prefix) && !strings.HasPrefix(dataset, d.dataset) && !(name == "hf-overrides") {
				idle = append(idle, strings.TrimSpace("--"+name+" "+w.Flags[name]))
			}
		}
	}
	if _, ok := w.Flags["burstiness"]; ok && (w.Flags["request-rate"] == "" || w.Flags["request-rate"] == "inf") {
		idle = append(idle, "--burstiness "+w.Flags["burstiness"])
	}
	if len(idle) == 0 {
		return ""
	}
	text := strings.Join(idle, " and ") + " has no effect with --dataset-name " + dataset
	if !chosen {
		text = strings.Join(idle, " and ") + " has no effect without --dataset-name: the client sends its default, random prompts of " + strconv.Itoa(command.DefaultInput) + " tokens and " + strconv.Itoa(command.DefaultOutput) + " tokens of output"
		if n, exact := defaultLengths(d.file.Runs); n > 0 && exact {
			text += fmt.Sprintf(", and so do all %d blocks (%s)", n, lengthsOf(d.file.Runs))
		}
	}
	return text
}

// defaultLengths tells whether all runs have the lengths of the client's
// default: the output exactly, and the input but for two tokens of the tokenizer's.
func defaultLengths(runs []interop.Run) (n int, exact bool) {
	for i := range runs {
		in, out := runs[i].PerRequest("total_input_tokens"), runs[i].PerRequest("total_output_tokens")
		if out != command.DefaultOutput || math.Abs(in-command.DefaultInput) > 2 {
			return 0, false
		}
		n++
	}
	return n, n > 0
}

// lengthsOf writes the lengths per request that runs have.
func lengthsOf(runs []interop.Run) string {
	const mostShown = 3
	var all []string
	for i := range runs {
		t := fmt.Sprintf("%s in and %s out a request", strconv.FormatFloat(runs[i].PerRequest("total_input_tokens"), 'f', -1, 64),
			strconv.FormatFloat(runs[i].PerRequest("total_output_tokens"), 'f', -1, 64))
		if !slices.Contains(all, t) && len(all) < mostShown {
			all = append(all, t)
		}
	}
	return strings.Join(all, ", ")
}

// draftText finds prose on a draft model that was chosen.
var draftText = audit.Pattern(`(?i)chosen draft model|draft model (?:here|used here)|draft model[^.]{0,40} trained on`)

// draftModel finds prose on a draft model where none is used.
func draftModel(d *document) []audit.Finding {
	own := 0
	for _, s := range d.steps {
		if _, ok := s.setup.Flags["speculative-draft-model"]; ok {
			return nil
		}
		c := s.setup.Flags["speculative-config"] + s.setup.Flags["speculative-algorithm"]
		if strings.Contains(c, "model:") {
			return nil
		}
		if lower := strings.ToLower(c); strings.Contains(lower, "mtp") || strings.Contains(lower, "nextn") {
			own = max(own, s.line())
		}
	}
	if own == 0 {
		return nil
	}
	for _, p := range d.file.Doc.Prose {
		if m := draftText().FindString(p.Text); m != "" {
			return []audit.Finding{{Type: "text-contradiction", Severity: audit.Note, Place: d.at(p.Line, p.Section),
				Text: fmt.Sprintf("the text speaks of a draft model (%q), but the commands speculate with the model's own layers, as at line %d: it is of another document", m, own)}}
		}
	}
	return nil
}
