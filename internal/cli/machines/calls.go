package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/fleet"
)

const callsLong = `Show the calls that agents keep, because the leader of their load was gone when it ended.

An agent sends calls to its leader while a load goes on. Where the leader is killed, or cut
off for too long, the load ends and what was not taken stays on the agent's disk: for 14
days, of at most 32 loads and 8 GiB, of which the oldest goes first.

--fetch brings them here. Where the leader's own directory is there, DIR.tmp, it is completed:
each call is in it once, and header, figures and verdict are made again. Else the directory is
new, with the header that the agents got with the load; of another directory of the same load
--with takes the calls too. The agents remove theirs when the directory is on this disk.`

type callsFlags struct {
	hub         Hub
	fetch, drop uint64
	out, with   string
	json        bool
}

func newCalls(env console.Env) *cobra.Command {
	f := &callsFlags{}
	c := &cobra.Command{
		Use:   "calls",
		Short: "Show, fetch or drop the calls of loads whose leader was gone",
		Long:  callsLong,
		Example: `  perflab fleet calls
  perflab fleet calls --fetch 7 -o runs/evening
  perflab fleet calls --drop 7`,
		Args: console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			fetch, drop := c.Flags().Changed("fetch"), c.Flags().Changed("drop")
			switch {
			case fetch && drop:
				return console.Usage(errors.New("--fetch brings calls here and removes them there, --drop only removes them: give one"))
			case !fetch && (f.out != "" || f.with != ""):
				return console.Usage(errors.New("--out and --with say where fetched calls go: give the load by --fetch"))
			}
			l, stop, err := f.hub.Lead(c.Context(), env)
			if err != nil {
				return err
			}
			defer stop()
			switch {
			case fetch:
				return f.bring(c.Context(), env, l)
			case drop:
				return f.remove(c.Context(), env, l)
			}
			return f.list(c.Context(), env, l)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.Uint64Var(&f.fetch, "fetch", 0, "`LOAD` whose calls are brought here")
	fs.StringVarP(&f.out, "out", "o", "", "with --fetch: run directory to complete or to make (default that of the leader, where it was cut off on this machine, else load-LOAD)")
	fs.StringVar(&f.with, "with", "", "with --fetch: run directory of the same load whose calls are taken too; it stays as it is")
	fs.Uint64Var(&f.drop, "drop", 0, "`LOAD` whose calls are removed where they are")
	fs.BoolVar(&f.json, "json", false, "print JSON")
	f.hub.Add(fs)
	return c
}

func (f *callsFlags) list(ctx context.Context, env console.Env, l *fleet.Leader) error {
	agents := l.Gather(ctx, nil)
	kept := fleet.KeptBy(agents)
	if f.json {
		return console.WriteJSON(env.Stdout, map[string]any{"loads": kept})
	}
	if len(kept) == 0 {
		fmt.Fprintf(env.Stdout, "No calls are kept by the %s that %s there.\n", console.Plural(len(agents), "agent"), map[bool]string{true: "is", false: "are"}[len(agents) == 1])
	} else if err := showKept(env.Stdout, kept); err != nil {
		return err
	}
	for _, a := range agents {
		for _, g := range a.Facts.GaveUp {
			fmt.Fprintf(env.Stdout, "Agent %s has removed %s of load %d: %s\n", a.Facts.Name, console.Plural(g.Calls, "call"), g.Epoch, g.Why)
		}
	}
	return nil
}

func showKept(w io.Writer, all []fleet.Kept) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LOAD\tLED BY\tMODEL\tAGENT\tSHARD\tENDED\tCALLS\tMIB\tKEPT UNTIL")
	for _, k := range all {
		model := cmp.Or(k.Model, "-")
		if k.Simulated {
			model += " (SIMULATED)"
		}
		for _, p := range k.Parts {
			shard := "-"
			if p.Of > 0 {
				shard = fmt.Sprintf("%d of %d", p.Shard+1, p.Of)
			}
			fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%d\t%.1f\t%s\n", k.Epoch, cmp.Or(k.Who, "-"), model, p.Name, shard,
				p.Ended.Local().Format("2006-01-02 15:04"), p.Calls, float64(p.Bytes)/(1<<20), p.Until.Local().Format(time.DateOnly))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, k := range all {
		if k.Dir != "" {
			fmt.Fprintf(w, "Load %d: its leader kept %s.tmp\n", k.Epoch, k.Dir)
		}
	}
	return nil
}

func (f *callsFlags) bring(ctx context.Context, env console.Env, l *fleet.Leader) error {
	n := 0
	live := console.StartLive(env, func() string { return "fetching calls" }, nil)
	x, err := l.Fetch(ctx, fleet.Fetch{Epoch: f.fetch, Dir: f.out, With: f.with, Told: func(_ string, calls int) { n += calls }})
	live.End()
	if err != nil {
		return err
	}
	for _, who := range x.Still {
		fmt.Fprintf(env.Stderr, "perflab: agent %s did not answer and still keeps its calls: perflab fleet calls --drop %d removes them\n", who, x.Epoch)
	}
	if f.json {
		return console.WriteJSON(env.Stdout, struct {
			*fleet.Fetched
			Verdict any `json:"verdict"`
		}{x, x.Out.Summary.Verdict})
	}
	fmt.Fprintf(env.Stdout, "%s of load %d came from %s, %d were there: %s\n", console.Plural(x.Came, "call"), x.Epoch, strings.Join(x.Agents, ", "), x.Had, x.Dir)
	for _, text := range x.Lacks {
		fmt.Fprintf(env.Stdout, "Not all is there of agent %s\n", text)
	}
	_, err = fmt.Fprintf(env.Stdout, "%sperflab report %s shows the figures\n", x.Out.Summary.Verdict.Text(), x.Dir)
	return err
}

func (f *callsFlags) remove(ctx context.Context, env console.Env, l *fleet.Leader) error {
	d, err := l.Drop(ctx, f.drop)
	if len(d.Agents) > 0 && f.json {
		err = errors.Join(err, console.WriteJSON(env.Stdout, d))
	} else if len(d.Agents) > 0 {
		fmt.Fprintf(env.Stdout, "Removed %s of load %d from %s\n", console.Plural(d.Calls, "call"), d.Epoch, strings.Join(d.Agents, ", "))
	}
	return err
}
