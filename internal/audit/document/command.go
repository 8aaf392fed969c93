package document

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/interop/command"
)

// commandChecks are the types that commands finds.
func commandChecks() []check {
	return []check{
		{"engine-contradicts-heading", audit.Warning, "A command starts another engine than the one that the heading above it names.",
			"For serving commands under a heading, caption or label that names engines; a caption or comment goes before a heading, and the document's title does not count."},
		{"model-contradicts-heading", audit.Warning, "A command serves another model than the document says it is about.",
			"Where a section on the model or a heading names one; owners, formats such as -FP8 and dates are left out of the comparison, drafts and placeholders are not models."},
		{"flag-contradicts-heading", audit.Warning, "A heading gives a parallelism, such as TP4, that the command under it does not have.",
			"For TP, PP, DP, EP and DCP with a number, and for EP without one; a size that a command leaves out is 1, and vLLM's expert parallelism has the size of its layout."},
		{"more-devices-than-stated", audit.Warning, "A command needs more devices than the document says there are.",
			"For tensor times pipeline parallelism, where the text counts the devices of one node."},
		{"command-not-shell-safe", audit.Warning, "A shell makes something else of a command than its writer meant.",
			"For commands, not for flags alone: brace expansion, lost quotes of JSON, unquoted & and parentheses, quotes and dashes of print, a continuation followed by spaces, a line that lacks one."},
		{"command-placeholder", audit.Note, "A command has placeholders or private addresses that a reader must fill in.",
			"Single capital letters, <words>, variables that nothing in the document defines, addresses of private networks; one note a document."},
		{"flag-without-effect", audit.Warning, "A flag does nothing as it is given.",
			"vllm bench serve's flags of another dataset than the one chosen (random where none is), and SGLang's --enable-dp-attention at a data-parallel size of 1."},
		{"script-contradicts-block", audit.Warning, "The comment above a block names another value of a flag than the script that the block stands under.",
			"Where a comment spells flags; one finding a script."},
		{"change-not-recorded", audit.Warning, "A heading names a change that no command, model or flag of its blocks shows.",
			"Where the blocks have commands or flags; for changes other than quantisation only where an earlier block has the same words and other figures."},
		{"several-changes", audit.Warning, "A step changes several things at once against every earlier step of its engine and load.",
			"Flags of one feature count once (layout, speculation, attention backend), flags that shape answers not at all; comparisons of a baseline with a result are no steps."},
		{"benchmark-command-missing", audit.Note, "Blocks fit none of the benchmark commands that the document shows.",
			"By number of requests and lengths; a command with placeholders fits any, and profiles in YAML count as commands."},
		{"requests-missing", audit.Warning, "A block has fewer requests than its command asked for, and does not say that any failed.",
			"Where the run says how many it asked for; else from 20, where the number is none that one asks for (no multiple of 10, no power of two), below a command's and at least a third of it."},
		{"text-contradiction", audit.Note, "The text speaks of a draft model where every command speculates with the model's own layers.",
			"Where the text has a chosen draft model or one trained on something, and the commands tell their method."},
	}
}

// commands checks the commands of a document against its headings and blocks.
func commands(f *interop.File, _ audit.Options) []audit.Finding {
	if f.Doc == nil {
		return nil
	}
	steps := stepsOf(f)
	out := slices.Concat(headingFindings(f, steps), shellFindings(f), placeholders(f), flagsWithoutEffect(f),
		scriptContradictsBlock(f, steps), changeNotRecorded(f, steps), severalChanges(f, steps))
	return slices.Concat(out, benchmarkFindings(f), draftModel(f, steps))
}

// shellFindings finds what a shell makes of commands.
func shellFindings(f *interop.File) []audit.Finding {
	var out []audit.Finding
	for i := range f.Doc.Scripts {
		s := &f.Doc.Scripts[i]
		if s.Kind != interop.ScriptServing && s.Kind != interop.ScriptBenchmark {
			continue
		}
		var faults []string
		if strings.ContainsAny(s.Text, "“”„‘’") {
			faults = append(faults, "it has quotes of print (“ ” or ‘ ’), which a shell does not take for quotes")
		}
		for _, w := range command.Split(s.Text) {
			if t := w.Text(); strings.HasPrefix(t, "–") || strings.HasPrefix(t, "—") {
				faults = append(faults, t+" begins with a dash of print and not with a hyphen")
				continue
			}
			if fault := shellFault(w); fault != "" {
				faults = append(faults, fault)
			}
		}
		faults = append(faults, continuationFaults(f.Doc, s)...)
		if len(faults) > 0 {
			out = append(out, audit.Finding{Type: "command-not-shell-safe", Severity: audit.Warning, Place: placed(f, s.Line, s.Section),
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

var (
	definition   = audit.Pattern(`(?m)(?:^|\s)([A-Za-z_][A-Za-z0-9_]*)(?:: |=)`)
	literal      = audit.Pattern(`'[^']*'`)
	variable     = audit.Pattern(`\$\{?([A-Za-z_][A-Za-z0-9_]*)`)
	angled       = audit.Pattern(`<[A-Za-z][A-Za-z0-9_ -]*>`)
	privateRange = audit.Pattern(`\b(?:10\.\d{1,3}|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.\d{1,3}\.\d{1,3}\b`)
)

// placeholders finds what a reader must fill in before a command runs.
func placeholders(f *interop.File) []audit.Finding {
	var found []string
	var at []int
	var section []string
	var defined map[string]bool // read once a command has a variable
	for i := range f.Doc.Scripts {
		s := &f.Doc.Scripts[i]
		if s.Kind != interop.ScriptServing && s.Kind != interop.ScriptBenchmark {
			continue
		}
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
				defined = definitionsIn(f.Doc)
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
			if len(found) < 8 && !slices.Contains(found, n) {
				found = append(found, n)
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	return []audit.Finding{{Type: "command-placeholder", Severity: audit.Note, Place: placed(f, at[0], section),
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
func flagsWithoutEffect(f *interop.File) []audit.Finding {
	var out []audit.Finding
	at := map[string][]int{}
	for i := range f.Doc.Scripts {
		s := &f.Doc.Scripts[i]
		text := ""
		switch s.Kind {
		case interop.ScriptBenchmark:
			text = idleBenchFlags(f, s)
		case interop.ScriptServing, interop.ScriptFlags:
			text = idleServingFlags(s)
		}
		if text == "" {
			continue
		}
		if at[text] == nil {
			out = append(out, audit.Finding{Type: "flag-without-effect", Severity: audit.Warning, Place: placed(f, s.Line, s.Section), Text: text})
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
func idleBenchFlags(f *interop.File, s *interop.Script) string {
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
		text = strings.Join(idle, " and ") + " has no effect without --dataset-name: the client sends its default, random prompts of 1024 tokens and 128 tokens of output"
		if n, exact := defaultLengths(f.Runs); n > 0 && exact {
			text += fmt.Sprintf(", and so do all %d blocks (%s)", n, lengthsOf(f.Runs))
		}
	}
	return text
}

// defaultLengths tells whether all runs have the lengths of the client's
// default: 128 out exactly, and 1024 in but for a token of the tokenizer's.
func defaultLengths(runs []interop.Run) (n int, exact bool) {
	for i := range runs {
		in, out := runs[i].PerRequest("total_input_tokens"), runs[i].PerRequest("total_output_tokens")
		if out != 128 || in < 1022 || in > 1026 {
			return 0, false
		}
		n++
	}
	return n, n > 0
}

// lengthsOf writes the lengths per request that runs have.
func lengthsOf(runs []interop.Run) string {
	var all []string
	for i := range runs {
		t := fmt.Sprintf("%s in and %s out a request", strconv.FormatFloat(runs[i].PerRequest("total_input_tokens"), 'f', -1, 64),
			strconv.FormatFloat(runs[i].PerRequest("total_output_tokens"), 'f', -1, 64))
		if !slices.Contains(all, t) && len(all) < 3 {
			all = append(all, t)
		}
	}
	return strings.Join(all, ", ")
}

// draftText finds prose on a draft model that was chosen.
var draftText = audit.Pattern(`(?i)chosen draft model|draft model (?:here|used here)|draft model[^.]{0,40} trained on`)

// draftModel finds prose on a draft model where none is used.
func draftModel(f *interop.File, steps []stage) []audit.Finding {
	own := 0
	for _, s := range steps {
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
	for _, p := range f.Doc.Prose {
		if m := draftText().FindString(p.Text); m != "" {
			return []audit.Finding{{Type: "text-contradiction", Severity: audit.Note, Place: placed(f, p.Line, p.Section),
				Text: fmt.Sprintf("the text speaks of a draft model (%q), but the commands speculate with the model's own layers, as at line %d: it is of another document", m, own)}}
		}
	}
	return nil
}
