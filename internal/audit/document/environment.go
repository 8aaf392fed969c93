package document

import (
	"regexp"
	"slices"
	"strings"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/result"
)

// environmentParts are what figures depend on, and how a text shows it.
var environmentParts = []struct {
	name  string
	shown func() *regexp.Regexp
}{
	{"the engine's version", audit.Pattern(`(?i)(vllm|sglang|tensorrt-llm|trt-llm|mindie|lmdeploy|engine|version)([^\n\d-]|-[^\n\d-]){0,30}\bv?\d+\.\d+(\.\d+)?([^.\d]|\.\D|\.?$)`)},
	{"the driver and CUDA version", audit.Pattern(`(?i)\bdriver\b|\bcuda[ -]?(toolkit |version |v)?:? ?1\d\b|\bcann\b|\brocm ?\d`)},
	{"clocks or power limit", audit.Pattern(`(?i)power (limit|cap)|\bclocks?\b[^\n]{0,20}\b(mhz|locked|ghz)|\b\d{3} ?w\b`)},
	{"the model's revision", audit.Pattern(`(?i)\brevision\b|--revision|commit [0-9a-f]{7}`)},
	{"the date", audit.Pattern(`(?i)\b20[12]\d[-/]\d{1,2}\b|\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* (\d{1,2},? )?20\d\d\b`)},
}

var (
	// twoForms are devices that are sold in forms of different speed.
	twoForms = audit.Pattern(`(?i)\b(h100|a100|h800|a800|h200)\b`)
	oneForm  = audit.Pattern(`(?i)\b(sxm\d?|pcie|nvl|hbm3e?|hgx|dgx)\b`)
	// deviceCount finds how many devices there are.
	deviceCount = audit.Pattern(`(?i)\b\d+ ?(x|×|\*|Ã—) ?|[a-z0-9]x\d+\b|\b(a )?single\b [a-z]*(nvidia|gpu|ascend|npu|amd|h\d|a\d)|\b\d+ (gpus|npus|cards|devices|nodes?|nvidia)\b|tensor-parallel|-tp\b|tp-size|tp_size`)
)

// environment finds what a document leaves out of the record.
func environment(d *document) []audit.Finding {
	text := strings.Join(proseOf(d), "\n")
	var missing []string
	for _, p := range environmentParts {
		if !p.shown().MatchString(text) && (p.name != "the engine's version" || !hasLabel(d, result.LabelEngineVersion)) {
			missing = append(missing, p.name)
		}
	}
	if !deviceCount().MatchString(hardwareText(d)) && !hasLabel(d, result.LabelGPUs) && !hasLabel(d, result.LabelNodes) {
		missing = append(missing, "the number of devices")
	}
	if m := twoForms().FindString(text); m != "" && !oneForm().MatchString(text) {
		missing = append(missing, "the form factor of the "+strings.ToUpper(m)+" (it is sold in forms of different speed)")
	}
	if !slices.ContainsFunc(d.file.Runs, func(r interop.Run) bool { return r.Header.Imported != nil && r.Header.Imported.Version != "" }) {
		missing = append(missing, "the client's version")
	}
	if len(missing) < 2 {
		return nil
	}
	line := 1
	var section []string
	for _, s := range d.file.Doc.Sections {
		if lower := strings.ToLower(s.Title); strings.Contains(lower, "hardware") || strings.Contains(lower, "environment") {
			line, section = s.Line, s.Path
			break
		}
	}
	return []audit.Finding{{Type: "environment-missing", Severity: audit.Note, Place: d.at(line, section),
		Text: "the document does not tell " + joinAnd(missing)}}
}

// proseOf are the lines of a document that are not figures: headings, prose,
// commands, cells.
func proseOf(d *document) []string {
	var out []string
	for _, s := range d.file.Doc.Sections {
		out = append(out, s.Title)
	}
	for _, p := range d.file.Doc.Prose {
		out = append(out, p.Text)
	}
	for _, s := range d.file.Doc.Scripts {
		out = append(out, s.Text, s.Note)
	}
	for _, t := range d.file.Doc.Tables {
		for _, r := range t.Rows {
			out = append(out, strings.Join(r.Cells, " "))
		}
	}
	return out
}

// hardwareText is what a document says of its devices: the title, the section
// on hardware, and the commands, whose layout is a count.
func hardwareText(d *document) string {
	out := []string{d.file.Doc.Title}
	for _, p := range d.file.Doc.Prose {
		if lower := strings.ToLower(strings.Join(p.Section, " ") + " " + p.Text); strings.Contains(lower, "hardware") {
			out = append(out, p.Text)
		}
	}
	for _, s := range d.file.Doc.Scripts {
		out = append(out, s.Text)
	}
	return strings.Join(out, "\n")
}

// hasLabel reports whether a run has a label.
func hasLabel(d *document, key string) bool {
	return slices.ContainsFunc(d.file.Runs, func(r interop.Run) bool { return r.Header.Label(key) != "" })
}
