package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func (e *Engine) lacks(p *Param, value string) *Rejection {
	return &Rejection{
		Rule:   "parameter",
		Reason: fmt.Sprintf("%s has no setting for %s=%s: leave it out", e.Title, p.Name, value),
		Log:    e.cli.unknown("--" + p.Name).Error(),
	}
}

// UsageError is a command line that the engine's own option parser refuses.
type UsageError struct {
	Text string // as the engine prints it on stderr
	Exit int    // its exit status
}

func (e *UsageError) Error() string {
	return strings.TrimPrefix(e.Text[strings.LastIndexByte(strings.TrimSpace(e.Text), '\n')+1:], "\n")
}

func (c cli) fail(format string, args ...any) *UsageError {
	msg := fmt.Sprintf(format, args...)
	if c.click {
		return &UsageError{Text: c.usage + "\nError: " + msg, Exit: 2}
	}
	return &UsageError{Text: c.usage + "\n" + c.prog + ": error: " + msg, Exit: 2}
}

func (c cli) unknown(args ...string) *UsageError {
	if c.click {
		return c.fail("No such option: %s", flagName(args[0]))
	}
	if c.plain {
		return &UsageError{Text: "error: invalid argument: " + args[0], Exit: 1}
	}
	return c.fail("unrecognized arguments: %s", strings.Join(args, " "))
}

func (c cli) badValue(d *Flag, value, kind string) *UsageError {
	if c.click {
		article := map[string]string{"int": "a valid integer", "float": "a valid float"}[kind]
		return c.fail("Invalid value for '%s': '%s' is not %s.", d.Flag, value, article)
	}
	return c.fail("argument %s: invalid %s value: '%s'", d.names(), kind, value)
}

func (c cli) badChoice(d *Flag, value string, choices []string) *UsageError {
	quoted := "'" + strings.Join(choices, "', '") + "'"
	if c.click {
		return c.fail("Invalid value for '%s': '%s' is not one of %s.", d.Flag, value, quoted)
	}
	return c.fail("argument %s: invalid choice: '%s' (choose from %s)", d.names(), value, quoted)
}

func (c cli) noValue(d *Flag, spelled string) *UsageError {
	if c.click {
		return c.fail("Option '%s' requires an argument.", spelled)
	}
	return c.fail("argument %s: expected one argument", d.names())
}

// help is the answer to --help: not the engine's text, only the flags that pass.
func (e *Engine) help(table map[string]flagRef) *UsageError {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(e.cli.usage) + "\n\nFlags of all known versions, without the engine's own explanations:")
	for _, name := range slices.Sorted(maps.Keys(table)) {
		if strings.HasPrefix(name, "--") {
			b.WriteString("\n  " + name)
		}
	}
	return &UsageError{Text: b.String()}
}
