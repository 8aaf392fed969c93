package engine

import (
	"regexp"
	"strings"
	"sync"
)

// signature is a way an engine says that it cannot run its configuration. Lines of
// no class only tell that something before them went wrong. That a device is
// held by another process is not here: it says nothing about the configuration.
type signature struct {
	class string
	expr  string // RE2, found within a line
}

// commonSignatures are texts of PyTorch and of code that engines share.
func commonSignatures() []signature {
	return []signature{
		{"oom", `(?:torch\.(?:cuda\.)?OutOfMemoryError|CUDA out of memory)`},
		{"fp8-block", `= (\d+) is not divisible by weight quantization block_([nk]) = (\d+)`},
		{"divide", `(\d+) is not divisible by (\d+)`},
		{"quantization", `Cannot find the config file for|Quantization method specified in the model config`},
		{"speculative", `Unsupported speculative method|without speculative model`},
		{"value", `Input should be `},
		{"compute", `requires compute capability`},
	}
}

type compiled struct {
	named bool
	re    *regexp.Regexp
}

var compiledSignatures = sync.OnceValue(func() map[string][]compiled {
	all := map[string][]compiled{}
	for _, e := range All() {
		for _, s := range e.signatures {
			all[e.Name] = append(all[e.Name], compiled{s.class != "", regexp.MustCompile(s.expr)})
		}
	}
	return all
})

var (
	ansi   = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	prefix = regexp.MustCompile(`^(?:\([^)]*\) *|\[[^\]]*\] *|(?:INFO|WARNING|ERROR|CRITICAL)\b:? *|\d\d-\d\d \d\d:\d\d:\d\d *|\d+\.\d\d\.\d{3}\.\d{3} [A-Z] *)+`)
)

// Refusal finds in a log the first sign that the engine could not start with its
// configuration, and returns that line without colours and prefix. A line that
// only reports a failure further up counts when there is no other.
func (e *Engine) Refusal(log string) (reason string, ok bool) {
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(ansi.ReplaceAllString(line, ""))
		for _, s := range compiledSignatures()[e.Name] {
			if !s.re.MatchString(line) {
				continue
			}
			bare := prefix.ReplaceAllString(line, "")
			if s.named {
				return bare, true
			}
			if !ok {
				reason, ok = bare, true
			}
		}
	}
	return reason, ok
}

// StartupLog is the lines that the engine prints while it starts, without
// timestamps, in its own words and with the configuration's numbers.
func (c Config) StartupLog() []string {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	return e.behaviour().startup(&c)
}
