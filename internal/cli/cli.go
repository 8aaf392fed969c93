// Package cli is perflab's terminal: the tree of commands, what an interrupt does, and the exit
// code that each kind of error has. The commands are below it by what users do: measure, plan,
// read and library, a file each, from flags to a spec and from an outcome to text and an error. Here are those
// of this machine and this program. All of them wire packages that may not know each other (the
// simulator's replay as lab's predictor) and measure nothing themselves.
//
// What goes where: results and reports on standard output; progress, messages
// and errors on standard error, lower case and without a full stop. A live
// line appears only on a terminal; elsewhere progress is plain log lines.
package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/cli/library"
	"perflab/internal/cli/machines"
	"perflab/internal/cli/measure"
	"perflab/internal/cli/plan"
	"perflab/internal/cli/read"
)

// Main runs the command line and returns the exit code. The first interrupt
// stops the work and keeps what was measured; the second ends the process.
func Main(env console.Env) int {
	env = env.Guarded()
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
			os.Exit(console.ExitInterrupted) // engines end with perflab
		case <-done:
		}
	}()
	env.Args = measure.NamedProfile(env.Args)
	var err error
	if env.Args, err = measure.FromVLLM(env); err != nil {
		return conclude(env, err)
	}
	root := newRoot(env)
	root.SetArgs(env.Args)
	return conclude(env, root.ExecuteContext(ctx))
}

func newRoot(env console.Env) *cobra.Command {
	env = env.Guarded()
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
				return console.Usage(fmt.Errorf("unknown command %q%s", args[0], nearest(c, args[0])))
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", console.HelpWidth)))
	root.SetVersionTemplate("perflab {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		err = console.FlagErrors(c.Flags(), env.Args, err)
		return console.Usage(fmt.Errorf("%w (see %s --help)", err, c.CommandPath()))
	})
	addCommands(root, env)
	addCompletions(root)
	return root
}

// addCommands adds the commands, under headings of what they are for.
func addCommands(root *cobra.Command, env console.Env) {
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"measure", "Measure and tune:", []*cobra.Command{measure.NewBench(env), measure.NewTune(env), measure.NewStatus(env), measure.NewRecord(env)}},
		{"engines", "Engines:", []*cobra.Command{plan.NewEngines(env), plan.NewRender(env)}},
		{"simulate", "Without a GPU:", []*cobra.Command{plan.NewSim(env), plan.NewPredict(env), plan.NewCalibrate(env)}},
		{"results", "Results:", []*cobra.Command{read.NewReport(env), read.NewCompare(env), read.NewImport(env), read.NewExport(env), read.NewAudit(env)}},
		{"library", "Laboratory:", []*cobra.Command{library.NewServe(env), library.NewList(env), library.NewShow(env), library.NewHistory(env), library.NewTag(env), library.NewNote(env), library.NewRm(env), library.NewPush(env), library.NewPull(env)}},
		{"fleet", "Several machines:", []*cobra.Command{machines.NewFleet(env), machines.NewAgent(env), machines.NewKube(env)}},
		{"machine", "This machine and this program:", []*cobra.Command{measure.NewSelfcheck(env), read.NewSite(env), newInit(env), newDoctor(env), newVersion(env)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.AddCommand(measure.NewTruthServer(env))
	root.SetHelpCommandGroupID("machine")
	root.SetCompletionCommandGroupID("machine")
}

// nearest says which command may have been meant.
func nearest(root *cobra.Command, word string) string {
	root.SuggestionsMinimumDistance = 2
	if names := root.SuggestionsFor(word); len(names) > 0 {
		return ": did you mean " + strings.Join(names, " or ") + "?"
	}
	return " (see perflab --help)"
}

// Command is the tree of commands, of which manual pages and completions are made.
func Command() *cobra.Command { return newRoot(console.Env{}) }
