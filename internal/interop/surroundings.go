package interop

import (
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
)

// scope is what a section has said so far.
type scope struct {
	section Section
	serving []*shownCommand // serving scripts and flags
	profile string
	nodes   string
	used    bool // a block stood in it
}

// facts goes through a document and gives its blocks what stands around them.
type facts struct {
	name       string
	scopes     []scope
	model      string // of the document
	hardware   string
	hardwareAt int               // line of the section that tells it
	versions   map[string]string // by engine
	profiles   []*profile
	benches    []bench
	fresh      bool   // nothing stood between here and the last block
	own        string // version of perflab bench that the document says it measured with
	runs       []Run
	faults     []Fault
}

// Bounds of what is compared with each block, so that no text takes long.
const (
	maxBenches     = 50
	maxProfiles    = 100
	maxProfileKeys = 50
	maxScripts     = 20   // of a section
	maxCommand     = 8192 // bytes
	maxTemplate    = 1024
)

// add keeps scripts, of many the last.
func (s *scope) add(commands ...*shownCommand) {
	s.serving = append(s.serving, commands...)
	s.serving = s.serving[max(0, len(s.serving)-maxScripts):]
}

func (f *facts) top() *scope { return &f.scopes[len(f.scopes)-1] }

// sectionModel returns the model that a heading above names.
func (f *facts) sectionModel() string {
	for _, s := range slices.Backward(f.scopes) {
		if isModelName(s.section.Title) {
			return s.section.Title
		}
	}
	return ""
}

// filled returns a command with its placeholders replaced by what is known of
// the run.
func (f *facts) filled(c *shownCommand, r *Run, p *profile) string {
	if !c.template {
		return c.text
	}
	ws := strings.Fields(c.text)
	for i, w := range ws {
		if i > 0 && isPlaceholder(w) {
			if v := f.value(ws[i-1], w, r, p); v != "" {
				ws[i] = v
			}
		}
	}
	return strings.Join(ws, " ")
}

// value returns what a placeholder after a flag stands for; "" where that is
// not known.
func (f *facts) value(flag, w string, r *Run, p *profile) string {
	if p != nil {
		if v := p.keys[strings.Trim(w, "${}<>")]; v != "" {
			return v
		}
	}
	switch strings.ReplaceAll(flag, "_", "-") {
	case "serve", "trtllm-serve", "--model", "--model-path", "--processor", "--tokenizer", "-m":
		return f.sectionModel()
	case "--num-prompts", "--max-requests", "--num-requests":
		if sum := sent(r); sum > 0 {
			return strconv.FormatFloat(sum, 'f', -1, 64)
		}
	case "-tp", "--tp", "--tp-size", "--tensor-parallel-size":
		return r.Header.Label(result.LabelNodes)
	}
	return ""
}

// Keys of labels that only texts have.
const (
	labelCaption = "caption" // of the fence a block stands in, or the line above it
	labelProfile = "profile" // name of the benchmark profile
)

// bench is a benchmark command of the document.
type bench struct {
	*shownCommand
	line             int
	client           string // of ours; "" for others
	requests         string
	dataset          string
	input, output    string // lengths
	rate, concurrent string
	serve            bool // vllm bench serve itself, whose defaults are known
}

// sent returns how many requests a block tells of.
func sent(r *Run) float64 {
	done, _ := r.Figure("completed")
	failed, _ := r.Figure("failed")
	return done.Value + failed.Value
}

// shownCommand is a script as runs refer to it.
type shownCommand struct {
	text     string // on one line, of a "docker exec ... -c “command”" the command alone
	template bool   // it has placeholders
	role     string
	engine   string // "" for none or several
	version  string // of its container image
	model    string // "" for none, or a placeholder
}
