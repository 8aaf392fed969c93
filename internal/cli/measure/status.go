package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/outcome"
	"perflab/internal/report/progress"
	"perflab/internal/source"
)

const statusLong = `Say how far a study, a run or a series of runs has come: from another terminal
while perflab tune or perflab bench works in DIR, or afterwards.

Of a study: which launch is under way and why, how far its load is, how long the
study may still take and by what that is estimated, and what leads so far. Of one
that was stopped or killed: where, and the command that goes on with it. Nothing is
changed in DIR, and the load that is being sent is not disturbed.`

// statusEvery is how often a directory is looked into with --follow.
const statusEvery = time.Second

// NewStatus is perflab status: where a study, a series or a run stands.
func NewStatus(env console.Env) *cobra.Command {
	var asJSON, follow bool
	c := &cobra.Command{
		Use:     "status DIR",
		Short:   "How far a study, a run or a series of runs is, while it runs or after",
		Long:    statusLong,
		Example: "  perflab status perflab-out/quickstart\n  perflab status perflab-out/quickstart --follow\n  perflab status run-1 --json",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return console.Usage(errors.New("perflab status needs one directory, of a study, a run or a series"))
			}
			return runStatus(c.Context(), env, args[0], asJSON, follow)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print it as JSON; with --follow a line each second")
	c.Flags().BoolVar(&follow, "follow", false, "go on until it has ended or an interrupt")
	return c
}

func runStatus(ctx context.Context, env console.Env, dir string, asJSON, follow bool) error {
	s, err := source.Standing(dir)
	if err != nil {
		return err
	}
	e := json.NewEncoder(env.Stdout)
	if follow {
		show := e.Encode
		if !asJSON {
			live, set := startStanding(env, s)
			defer live.End()
			show = set
		}
		for s.State == outcome.Running {
			if err := show(s); err != nil {
				return err
			}
			if s, err = nextStanding(ctx, dir); ctx.Err() != nil {
				return nil // that is how one stops to follow
			} else if err != nil {
				return err
			}
		}
	} else {
		e.SetIndent("", "  ")
	}
	if asJSON {
		return e.Encode(s)
	}
	_, err = fmt.Fprintln(env.Stdout, strings.Join(progress.Standing(s), "\n"))
	return err
}

// startStanding begins to show where things stand, and returns what is told of it later.
func startStanding(env console.Env, s outcome.Standing) (*console.Live, func(any) error) {
	var now atomic.Pointer[[]string]
	set := func(v any) error {
		now.Store(new(progress.Standing(v.(outcome.Standing))))
		return nil
	}
	_ = set(s)
	panel := func(time.Time) []string { return *now.Load() }
	return console.StartLive(env, func() string { return strings.Join(panel(time.Time{}), "  |  ") }, panel), set
}

// nextStanding looks again, a little later.
func nextStanding(ctx context.Context, dir string) (outcome.Standing, error) {
	select {
	case <-ctx.Done():
		return outcome.Standing{}, context.Cause(ctx)
	case <-time.After(statusEvery):
		return source.Standing(dir)
	}
}
