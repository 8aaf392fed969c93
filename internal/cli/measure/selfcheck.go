package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/load"
	"perflab/internal/selfcheck"
	"perflab/internal/truth"
)

type selfcheckFlags struct {
	pin   bool
	deep  bool
	store bool
}

const selfcheckLong = `Measure how far this load generator's figures are from the truth on this machine.

A small server is started on loopback that streams tokens on an exact schedule
and records when it did what. perflab bench's own client measures it, and the
two accounts are compared:

  arrival error   an event's time stamp less the moment at which it was sent
  shared reads    sends that came in one read, so that one of them has the
                  other's time: the client, or its CPU, was late
  latency errors  the client's mean TTFT, P99 ITL and mean E2E less the server's,
                  at 1,000 streams of 50 tokens/s, spread and all at once
  send lateness   when a request was at the server less when it was due, the
                  opening of a new connection included
  most events/s   the highest rate at which sends still come one to a read

On a machine of two CPUs the server has one of them and the client the other, as
if perflab bench had a machine of one; --pin=false lets both use both.

The goals that the figures stand beside: arrival error 5 us at p50 and 20 us at
p99, 1 % shared reads, mean TTFT within 1 ms when the streams are spread and 3 ms
when they come at once, P99 ITL within 0.2 ms, send lateness 20 us at p50 and
500 us at p99; with --deep no failed call, in 1 GB.

It takes less than half a minute (with --deep two). Nothing else should use the
machine meanwhile. Errors are those of this client, this machine's kernel and
loopback; a network adds its own.

The result is kept in the user's cache directory, for this machine and version,
and every later run of perflab bench cites it, under its block and in its header,
as the error bars of its figures. A figure over its goal is no failure: it says what to expect.`

// NewSelfcheck is perflab selfcheck: the client held against a server that knows the truth.
func NewSelfcheck(env console.Env) *cobra.Command {
	f := &selfcheckFlags{}
	c := &cobra.Command{
		Use:   "selfcheck",
		Short: "Measure this load generator's own errors on this machine",
		Long:  selfcheckLong,
		Example: `  perflab selfcheck
  perflab selfcheck --deep          hold 10,000 and 20,000 streams, too
  perflab selfcheck --pin=false     leave both processes to the scheduler`,
		Args: console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("pin") && f.pin && len(truth.CPUs()) < 2 {
				return console.Usage(errors.New("--pin needs two CPUs that this process may use, one for the server: leave it out"))
			}
			return f.run(c.Context(), env)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.pin, "pin", true, "keep the server on one CPU and the client on the others, where there are two or more")
	fs.BoolVar(&f.deep, "deep", false, "hold 10,000 and 20,000 streams as well, or as many as the limit on open files allows")
	fs.BoolVar(&f.store, "store", true, "keep the result for the headers of later runs")
	return c
}

// NewTruthServer is the other end of selfcheck, in a process of its own.
func NewTruthServer(env console.Env) *cobra.Command {
	return &cobra.Command{
		Use:    truthCommand,
		Hidden: true,
		Args:   console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := load.LiftFileLimit(); err != nil {
				return err
			}
			return truth.Main(c.Context(), os.Stdin, env.Data(), truth.Params{Tokens: 1})
		},
	}
}

const truthCommand = "truth-server"

func (f *selfcheckFlags) run(ctx context.Context, env console.Env) error {
	if env.Self == "" {
		return errors.New("start the truth server: this program does not know its own path")
	}
	server, unpin, err := f.start(env)
	if err != nil {
		return err
	}
	defer unpin()
	begin := time.Now()
	check := selfcheck.Check{Server: server.Remote, Deep: f.deep, Version: env.Version}
	t := &checkTable{w: env.Stdout}
	found, err := check.Run(ctx, t.line)
	if err := errors.Join(err, server.Close()); err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "%s in %.0f s\n", t.verdict(), time.Since(begin).Seconds())
	if !f.store {
		return nil
	}
	path, err := selfcheck.Store(found)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.Stderr, "kept for the headers of later runs in %s\n", path)
	return nil
}

// start starts the server and shares the CPUs out: the last one for it, the
// others for this process.
func (f *selfcheckFlags) start(env console.Env) (server *truth.Child, unpin func(), err error) {
	cmd := exec.Command(env.Self, truthCommand)
	cmd.Stderr = env.Stderr
	unpin = func() {}
	cpus := truth.CPUs()
	if !f.pin || len(cpus) < 2 {
		server, err = truth.Start(cmd, nil)
		return server, unpin, err
	}
	last := len(cpus) - 1
	if server, err = truth.Start(cmd, cpus[last:]); err != nil {
		return nil, nil, err
	}
	if unpin, err = truth.Pin(cpus[:last]); err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	return server, unpin, nil
}

// checkTable prints lines as they come, each load's name once.
type checkTable struct {
	w                   io.Writer
	load                string
	judged, over, other int
}

func (t *checkTable) line(c selfcheck.Line) {
	if c.Load != t.load {
		t.load = c.Load
		fmt.Fprintf(t.w, "%s\n", c.Load)
	}
	goal := ""
	if c.Goal != "" {
		goal = "goal " + c.Goal
	}
	fmt.Fprintln(t.w, strings.TrimRight(fmt.Sprintf("  %-43s %-30s %-17s %s", c.Figure, c.Value, goal, c.Verdict), " "))
	switch {
	case c.Verdict == selfcheck.WithinGoal:
		t.judged++
	case c.Verdict == selfcheck.OverGoal:
		t.judged++
		t.over++
	case c.Verdict != "":
		t.other++
	}
}

func (t *checkTable) verdict() string {
	text := fmt.Sprintf("%d of %d figures are within their goals", t.judged-t.over, t.judged)
	if t.other > 0 {
		text += fmt.Sprintf(", %d could not be judged", t.other)
	}
	return text
}
