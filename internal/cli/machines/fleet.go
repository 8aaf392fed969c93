package machines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"perflab/internal/cli/console"
	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
)

const fleetLong = `Show the agents of a fleet: who is there, at work for whom, and what each machine has.

A fleet is machines that send one load together. They meet at a hub, to which all of
them connect outwards:

  perflab serve --fleet :7422            the laboratory's server is the hub
  perflab fleet hub --listen :7422       or a hub by itself
  perflab fleet invite                   prints the command by which a machine joins
  perflab bench --fleet 4 ...            4 agents send the load

docs/fleet.md goes from one machine to eight in five minutes.`

// NewFleet is perflab fleet: the agents, and what is done about them.
func NewFleet(env console.Env) *cobra.Command {
	var h Hub
	asJSON := false
	c := &cobra.Command{
		Use:     "fleet",
		Short:   "Show the machines of a fleet, let machines join, run a hub",
		Long:    fleetLong,
		Example: "  perflab fleet\n  perflab fleet invite --host lab.example.org",
		Args:    console.WantArgs(0, "hub, invite, remove, calls or accounts, or nothing"),
		RunE: func(c *cobra.Command, _ []string) error {
			l, stop, err := h.Lead(c.Context(), env)
			if err != nil {
				return err
			}
			defer stop()
			agents := l.Gather(c.Context(), nil)
			members, err := l.Members(c.Context())
			if err != nil && !errors.Is(err, bus.ErrNobody) { // an outside server keeps no members
				return err
			}
			if asJSON {
				return console.WriteJSON(env.Stdout, map[string]any{"agents": agents, "members": members})
			}
			return show(env.Stdout, agents, members)
		},
	}
	h.Add(c.Flags())
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.AddCommand(newHub(env), newInvite(env), newRemove(env), newCalls(env), newAccounts(env))
	return c
}

// show prints a fleet as a table.
func show(w io.Writer, agents []fleet.Agent, members []bus.Member) error {
	if len(agents) == 0 && len(members) == 0 {
		_, err := fmt.Fprintln(w, "The fleet has no agents yet. perflab fleet invite prints the command by which a machine joins.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSTATE\tMACHINE\tLABELS\tVERSION\tID")
	for _, a := range agents {
		state := "idle"
		switch {
		case !a.Idle():
			state = a.Facts.Doing
		case !a.Free():
			state = "held"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", a.Facts.Name, state, Brief(a.Facts), labels(a.Facts.Labels), a.Facts.Version, a.ID)
	}
	for _, m := range members {
		if m.Revoked || slices.ContainsFunc(agents, func(a fleet.Agent) bool { return a.ID == m.ID }) {
			continue
		}
		fmt.Fprintf(t, "%s\tnot there\t-\t-\t%s\t%s\n", m.Name, cmp.Or(m.Version, "-"), m.ID)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return showHeld(w, agents)
}

// showHeld prints who holds nodes for studies, and what those run.
func showHeld(w io.Writer, agents []fleet.Agent) error {
	const clock = "2006-01-02 15:04:05"
	for _, a := range agents {
		h := a.Facts.Held
		if h == nil {
			continue
		}
		if _, err := fmt.Fprintf(w, "%s is %s since %s\n", a.Facts.Name, a.HeldText(), h.Since.Local().Format(clock)); err != nil {
			return err
		}
		for _, e := range h.Runs {
			if _, err := fmt.Fprintf(w, "  runs %s (%s, since %s): %s\n", e.Name, e.Kind, e.Since.Local().Format(clock), e.Command); err != nil {
				return err
			}
		}
	}
	return nil
}

func labels(all map[string]string) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, name+"="+all[name])
	}
	return cmp.Or(strings.Join(out, " "), "-")
}

func newHub(env console.Env) *cobra.Command {
	o := bus.Options{}
	c := &cobra.Command{
		Use:   "hub",
		Short: "Run a hub by itself, where no perflab serve does",
		Long: `Run the place where agents and leaders of a fleet meet. It embeds a NATS server, whose
connections are encrypted by a certificate that it makes, and lets in who was invited.

Its directory has its keys and its members, and leader.json, which who leads reads: run
perflab bench --fleet on this machine, as the same user.

A site whose machines reach no other network has a hub of its own, whose one connection
leads to this one: here --sites and perflab fleet invite --site, there --site-of.`,
		Example: `  perflab fleet hub --dir fleet --listen :7422
  perflab fleet hub --dir fleet --listen :7422 --sites :7423
  perflab fleet hub --dir site --listen :7422 --site-of 'perflab://lab.example.org:7423/#TOKEN.FINGERPRINT'`,
		Args: console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			o.Version, o.Log = env.Version, slog.New(slog.NewTextHandler(env.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			h, err := fleet.OpenHub(c.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprintf(env.Stdout, "Hub: %s, in %s\nAn interrupt (Ctrl-C) ends it; its members stay\n", h.Addr(), o.Dir)
			<-c.Context().Done()
			return h.Close()
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&o.Dir, "dir", "fleet", "directory of its keys and members")
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:7422", "address to listen on, host:port; :7422 is every address of this machine")
	fs.StringVar(&o.Leaves, "sites", "", "address where hubs of sites connect, host:port (default none can)")
	fs.StringVar(&o.Leaf, "site-of", "", "invitation of the hub that this one is a site of; needed once")
	return c
}

func newInvite(env console.Env) *cobra.Command {
	var h Hub
	var i bus.Invite
	c := &cobra.Command{
		Use:   "invite",
		Short: "Print the command by which a machine joins",
		Long: `Make an invitation, and print the command that takes it. It has a token that one machine
can use once, and the fingerprint of the hub's certificate: give it to nobody else.`,
		Example: "  perflab fleet invite --host lab.example.org",
		Args:    console.WantArgs(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			l, stop, err := h.Lead(c.Context(), env)
			if err != nil {
				return err
			}
			defer stop()
			url, err := l.Invite(c.Context(), i)
			if err != nil {
				return err
			}
			fmt.Fprintf(env.Stderr, "one machine may use this once, within %v:\n", cmp.Or(i.Lasts, time.Hour))
			command := "perflab agent --join"
			if i.Site {
				command = "perflab fleet hub --site-of"
			}
			_, err = fmt.Fprintf(env.Data(), "%s '%s'\n", command, url)
			return err
		},
	}
	h.Add(c.Flags())
	c.Flags().StringVar(&i.Host, "host", "", "name or address by which the machine reaches the hub (default an address of the hub's machine)")
	c.Flags().BoolVar(&i.Site, "site", false, "for the hub of a site, not for an agent: print the URL for its --site-of")
	c.Flags().DurationVar(&i.Lasts, "lasts", time.Hour, "how long the invitation can be used")
	return c
}

func newRemove(env console.Env) *cobra.Command {
	var h Hub
	c := &cobra.Command{
		Use:     "remove AGENT",
		Short:   "Take a machine's membership back",
		Long:    "Cut a machine off, by its name or ID. It can join again by another invitation.",
		Example: "  perflab fleet remove load-3",
		Args:    console.WantArgs(1, "the name or ID of an agent"),
		RunE: func(c *cobra.Command, args []string) error {
			l, stop, err := h.Lead(c.Context(), env)
			if err != nil {
				return err
			}
			defer stop()
			m, err := member(c.Context(), l, args[0])
			if err != nil {
				return err
			}
			if err := l.Revoke(c.Context(), m.ID); err != nil {
				return err
			}
			_, err = fmt.Fprintf(env.Stdout, "Removed %s (%s)\n", m.Name, m.ID)
			return err
		},
	}
	h.Add(c.Flags())
	return c
}

// member finds a member by its name or ID.
func member(ctx context.Context, l *fleet.Leader, what string) (bus.Member, error) {
	all, err := l.Members(ctx)
	if err != nil {
		return bus.Member{}, err
	}
	all = slices.DeleteFunc(all, func(m bus.Member) bool { return m.Revoked || m.ID != what && m.Name != what })
	switch len(all) {
	case 0:
		return bus.Member{}, console.Usage(fmt.Errorf("there is no agent %q: perflab fleet shows who there is", what))
	case 1:
		return all[0], nil
	}
	return bus.Member{}, console.Usage(fmt.Errorf("%d agents are called %q: give the ID of one, which perflab fleet shows", len(all), what))
}
