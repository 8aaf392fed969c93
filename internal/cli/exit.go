package cli

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"perflab/internal/bench"
	"perflab/internal/cli/console"
	"perflab/internal/deploy/kube"
	"perflab/internal/engine"
	"perflab/internal/lab"
	"perflab/internal/load"
	"perflab/internal/source"
	"perflab/internal/study"
)

// errInterrupted is the cause of a context that an interrupt ended.
var errInterrupted = errors.New("interrupted")

// conclude shows an error once and maps it to the exit code.
func conclude(env console.Env, err error) int {
	if err == nil {
		return console.ExitDone
	}
	code := exitCode(err)
	if _, silent := errors.AsType[console.ExitError](err); silent {
		return code
	}
	fmt.Fprintf(env.Stderr, "perflab: %s\n", console.InFlags(err))
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

// exitCode is the one place that maps errors to exit codes.
func exitCode(err error) int {
	if e, ok := errors.AsType[console.ExitError](err); ok {
		return e.Code
	}
	if _, ok := errors.AsType[*load.VoidError](err); ok {
		return console.ExitVoid
	}
	if _, ok := errors.AsType[*kube.ChangedError](err); ok {
		return console.ExitVoid
	}
	if _, ok := errors.AsType[console.UsageError](err); ok {
		return console.ExitUsage
	}
	if _, ok := errors.AsType[*study.Error](err); ok {
		return console.ExitUsage
	}
	if _, ok := errors.AsType[*engine.UsageError](err); ok {
		return console.ExitUsage
	}
	if _, ok := errors.AsType[*source.ArgumentError](err); ok {
		return console.ExitUsage
	}
	switch {
	case errors.Is(err, errInterrupted), errors.Is(err, context.Canceled):
		return console.ExitInterrupted
	case errors.Is(err, console.ErrMissed), errors.Is(err, console.ErrRegression), errors.Is(err, console.ErrWorse):
		return console.ExitMissed
	}
	return console.ExitFailed
}
