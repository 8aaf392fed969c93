package engine

import (
	"regexp"
	"strings"
)

// StartupLog is the lines that the engine prints while it starts, without
// timestamps, in its own words and with the configuration's numbers.
func (c Config) StartupLog() []string {
	e, err := ByName(c.Engine)
	if err != nil {
		return nil
	}
	return e.behaviour().startup(&c)
}

// pattern is an expression with texts one of which is in every line that it matches.
// Looking for these first makes a log of 100 MB cheap to read: they are found at the
// speed of memory, an expression at a hundredth of it.
type pattern struct {
	keys []string
	re   *regexp.Regexp
}

// compile makes a pattern; without keys, the text that the expression begins with is
// the one to look for.
func compile(expr string, keys []string) pattern {
	p := pattern{keys: keys, re: regexp.MustCompile(expr)}
	if len(keys) == 0 {
		prefix, _ := p.re.LiteralPrefix()
		p.keys = []string{prefix}
	}
	return p
}

// each visits the lines that match, key by key, until visit says that it is enough.
// At is where a line begins, groups what the expression captured.
func (p pattern) each(log string, visit func(at int, line string, groups []string) (more bool)) {
	for _, key := range p.keys {
		for at := 0; at < len(log); {
			i := strings.Index(log[at:], key)
			if i < 0 {
				break
			}
			start := strings.LastIndexByte(log[:at+i], '\n') + 1
			end := len(log)
			if j := strings.IndexByte(log[at+i:], '\n'); j >= 0 {
				end = at + i + j
			}
			line := plain(log[start:end])
			if groups := p.re.FindStringSubmatch(line); groups != nil && !visit(start, line, groups) {
				break
			}
			at = end
		}
	}
}

var (
	ansi   = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	prefix = regexp.MustCompile(`^(?:\([^)]*\) *|\[[^\]]*\] *|(?:INFO|WARNING|ERROR|CRITICAL)\b:? *|\d\d-\d\d \d\d:\d\d:\d\d *|\d+\.\d\d\.\d{3}\.\d{3} [A-Z] *)+`)
	source = regexp.MustCompile(`^(?:raise |except |File ")`)
)

// plain is a line without colours and blanks around it.
func plain(line string) string {
	if strings.IndexByte(line, '\x1b') >= 0 {
		line = ansi.ReplaceAllString(line, "")
	}
	return strings.TrimSpace(line)
}

// bare is a plain line without time, level, process and rank before it.
func bare(line string) string { return prefix.ReplaceAllString(line, "") }
