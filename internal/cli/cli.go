// Package cli is perflab's terminal: one file per command, each a function
// from flags to a spec and from an outcome to text and an exit code. It wires
// the packages that may not know each other (the simulator's replay as lab's
// predictor) and measures nothing itself.
//
// What goes where: results and reports on standard output; progress, messages
// and errors on standard error, lower case and without a full stop. A live
// line appears only on a terminal; elsewhere progress is plain log lines.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/lab"
	"perflab/internal/load"
	"perflab/internal/source"
	"perflab/internal/study"
)

// Env is the process as a value, so that a whole command runs inside a test.
type Env struct {
	Args     []string
	Stdin    io.Reader
	Stdout   io.Writer
	Stderr   io.Writer
	Getenv   func(string) string
	Self     string // path of this program, started again as simulated engine
	Version  string
	Terminal bool       // standard error is a terminal
	Width    func() int // of that terminal now, which its user may change; nil: unknown
}

// System is the real process.
func System(args []string) Env {
	e := Env{
		Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Version: version(), Terminal: term.IsTerminal(int(os.Stderr.Fd())),
		Width: func() int {
			w, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil {
				return 0
			}
			return w
		},
	}
	e.Self, _ = os.Executable() // empty when unknown; only simulated engines need it and say so
	return e
}

// columns is the width of the terminal now, or a guess.
func (e Env) columns() int {
	if e.Width != nil {
		if w := e.Width(); w > 0 {
			return w
		}
	}
	return 100
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "devel"
	}
	return info.Main.Version
}

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

// Main runs the command line and returns the exit code. The first interrupt
// stops the work and keeps what was measured; the second ends the process.
func Main(env Env) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 2) // the second one must not be lost while the first is handled
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	defer signal.Stop(signals)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-done:
			return
		}
		select {
		case <-signals:
			os.Exit(exitInterrupted) // engines end with their parent
		case <-done:
		}
	}()
	root := newRoot(env)
	root.SetArgs(env.Args)
	return conclude(env, root.ExecuteContext(ctx))
}

func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "perflab",
		Short: "Benchmark and tune LLM serving engines, with figures that can be trusted and repeated",
		Long: `perflab benchmarks and tunes LLM serving engines (vLLM, SGLang, TensorRT-LLM,
llama.cpp), with figures that can be trusted and repeated.

Exit status: 0 done, 1 failed, 2 usage, 3 SLO missed, regression or error found,
4 measurement void, 130 interrupted (what was measured is kept).`,
		Version:       env.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q%s", args[0], nearest(c, args[0]))}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpWidth)))
	root.SetVersionTemplate("perflab {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w (see %s --help)", explainUnknown(err), c.CommandPath())}
	})
	addCommands(root, env)
	return root
}

// addCommands adds the commands, under headings of what they are for.
func addCommands(root *cobra.Command, env Env) {
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"measure", "Measure and tune:", []*cobra.Command{newBench(env), newTune(env)}},
		{"engines", "Engines:", []*cobra.Command{newEngines(env), newRender(env)}},
		{"simulate", "Without a GPU:", []*cobra.Command{newSim(env), newPredict(env), newCalibrate(env)}},
		{"results", "Results:", []*cobra.Command{newReport(env), newCompare(env), newImport(env), newExport(env), newAudit(env)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(newSelfcheck(env), newTruthServer(env))
}

// nearest says which command may have been meant.
func nearest(root *cobra.Command, word string) string {
	root.SuggestionsMinimumDistance = 2
	if names := root.SuggestionsFor(word); len(names) > 0 {
		return ": did you mean " + strings.Join(names, " or ") + "?"
	}
	return " (see perflab --help)"
}

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
