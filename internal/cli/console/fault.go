package console

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"perflab/internal/field"
)

// UsageError is bad input found before any work.
type UsageError struct{ err error }

// Usage is an error as bad input.
func Usage(err error) error { return UsageError{err} }

func (e UsageError) Error() string { return e.err.Error() }

func (e UsageError) Unwrap() error { return e.err }

// ExitError ends the process with an engine's own exit status, its message
// already shown in the engine's own form.
type ExitError struct{ Code int }

func (e ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// StoppedError ends work before its end, with what was kept of it.
type StoppedError struct {
	err  error
	kept string
}

// Stopped is an error that ended work, with what was kept.
func Stopped(err error, kept string) error { return &StoppedError{err, kept} }

func (e *StoppedError) Error() string { return "stopped: " + e.err.Error() }

func (e *StoppedError) Unwrap() error { return e.err }

// Hint says what was kept.
func (e *StoppedError) Hint() string { return e.kept }

// InFlags is the message of an error, with the values that a user can mend
// called by their flags.
func InFlags(err error) string {
	if e, ok := err.(*field.Error); ok {
		return strings.TrimSpace(FlagOf(e.Path) + " " + e.Says(FlagOf))
	}
	text := err.Error()
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapper.Unwrap(); inner != nil {
			text = strings.Replace(text, inner.Error(), InFlags(inner), 1)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			text = strings.Replace(text, inner.Error(), InFlags(inner), 1)
		}
	}
	return text
}

// FlagOf is the flag that sets the value at a path, which has - for _. What lies
// deeper, in a file, has no flag.
func FlagOf(path string) string {
	switch {
	case path == "" || strings.ContainsAny(path, ".["):
		return path
	case path == "targets":
		return "--base-url"
	case path == "telemetry_interval_ns":
		return "--telemetry-interval"
	}
	return "--" + strings.ReplaceAll(path, "_", "-")
}

// WantArgs is cobra.ExactArgs with a sentence that says what is missing.
func WantArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return Usage(fmt.Errorf("%s needs %s, and got %d arguments (see %s --help)", c.CommandPath(), what, len(args), c.CommandPath()))
		}
		return nil
	}
}

// Within does work that has no context of its own. Interrupted, it is left to
// end with the process.
func Within(ctx context.Context, do func() error) error {
	done := make(chan error, 1) // so that work that nobody waits for ends
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
