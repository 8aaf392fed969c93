package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/lab"
	"perflab/internal/load"
	"perflab/internal/source"
	"perflab/internal/study"
)

// Exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitMissed      = 3 // an SLO was missed, a regression or an error found
	exitVoid        = 4 // the measurement cannot be believed
	exitInterrupted = 130
)

// Errors that carry an exit code of their own.
var (
	errMissed      = errors.New("SLO missed")
	errRegression  = errors.New("the comparison does not pass")
	errInterrupted = errors.New("interrupted")
)

// usageError is bad input found before any work.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

func (e usageError) Unwrap() error { return e.err }

// exitError ends the process with an engine's own exit status, its message
// already shown in the engine's own form.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// stoppedError ends work before its end, with what was kept of it.
type stoppedError struct {
	err  error
	kept string
}

func (e *stoppedError) Error() string { return "stopped: " + e.err.Error() }

func (e *stoppedError) Unwrap() error { return e.err }

// Hint says what was kept.
func (e *stoppedError) Hint() string { return e.kept }

// conclude shows an error once and maps it to the exit code.
func conclude(env Env, err error) int {
	if err == nil {
		return exitDone
	}
	code := exitCode(err)
	if _, silent := errors.AsType[exitError](err); silent {
		return code
	}
	fmt.Fprintf(env.Stderr, "perflab: %s\n", inFlags(err))
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(env.Stderr, "  hint: %s\n", hint)
	}
	if errors.Is(err, syscall.ENOSPC) {
		fmt.Fprintln(env.Stderr, "  hint: free some space; what was written before is kept")
	}
	return code
}

// hintOf says how to go on after an error; "" where nothing helps in general.
func hintOf(err error) string {
	if _, ok := errors.AsType[*lab.BusyError](err); ok {
		return "wait for it or stop it, then --resume; --out DIR starts another study"
	}
	if _, ok := errors.AsType[*lab.ExistsError](err); ok {
		return "--resume continues it; --out DIR starts another"
	}
	if _, ok := errors.AsType[*bench.WarmupError](err); ok {
		return "check --base-url, --endpoint and --model; --num-warmups 0 measures without warming up"
	}
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// inFlags is the message of an error, with the values that a user can mend
// called by their flags.
func inFlags(err error) string {
	if e, ok := err.(*field.Error); ok {
		return strings.TrimSpace(flagOf(e.Path) + " " + e.Says(flagOf))
	}
	text := err.Error()
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapper.Unwrap(); inner != nil {
			text = strings.Replace(text, inner.Error(), inFlags(inner), 1)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			text = strings.Replace(text, inner.Error(), inFlags(inner), 1)
		}
	}
	return text
}

// flagOf is the flag that sets the value at a path, which has - for _. What lies
// deeper, in a file, has no flag.
func flagOf(path string) string {
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

// exitCode is the one place that maps errors to exit codes.
func exitCode(err error) int {
	if e, ok := errors.AsType[exitError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*load.VoidError](err); ok {
		return exitVoid
	}
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*study.Error](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*engine.UsageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[*source.ArgumentError](err); ok {
		return exitUsage
	}
	switch {
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, errMissed), errors.Is(err, errRegression):
		return exitMissed
	}
	return exitFailed
}

// wantArgs is cobra.ExactArgs with a sentence that says what is missing.
func wantArgs(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s needs %s, and got %d arguments (see %s --help)", c.CommandPath(), what, len(args), c.CommandPath())}
		}
		return nil
	}
}

// within does work that has no context of its own. Interrupted, it is left to
// end with the process.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1) // so that work that nobody waits for ends
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
