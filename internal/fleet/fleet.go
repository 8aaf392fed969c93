// Package fleet is the leader's side of a fleet: who is there, and one load over many machines.
//
//	l, err := fleet.Lead(ctx, conn, fleet.Options{Who: "ada"})
//	crew, err := l.Crew(ctx, fleet.Choice{Count: 4})
//	out, err := bench.Runner{Spec: spec, Crew: crew}.Run(ctx)
//
// A load has an epoch, a number that no other load of the hub has. The agents get their shards, and when
// all are ready one instant in the future at which they start, each by its own clock, whose offset is
// measured before, during and after. Their calls come back as calls.
//
// Invariants: an agent works for one leader at a time; one that is lost makes the run partial, and nobody
// takes over what it did not send; a leader that is gone renews no lease, and the load ends by itself. No
// clock is believed beyond the bound that messages there and back prove.
//
// Deliberately absent: NATS (package bus), figures (package result), engines (package deploy).
package fleet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
)

// Options say who leads.
type Options struct {
	Who     string        // in words, for those who look at the fleet
	Version string        // of perflab; another one's agents are not chosen
	Say     func(string)  // told what of a load its agents may not bear; nil: nobody
	Lease   time.Duration // a load ends by itself when its leader was not heard of for so long; 0: 8 s
	Log     *slog.Logger
}

// Leader knows the agents of a hub.
type Leader struct {
	conn *bus.Conn
	o    Options
	log  *slog.Logger
	base time.Time // that its clock counts from
	stop func()

	mu     sync.Mutex
	seen   map[string]Agent
	hearts chan struct{} // closed and made anew when somebody said something
}

// Agent is a machine of the fleet.
type Agent struct {
	ID    string      `json:"id"`
	Facts order.Facts `json:"facts"`
	Heard time.Time   `json:"heard"` // when it last said that it is there
}

// Idle says that it sends nothing. A study may hold it all the same.
func (a Agent) Idle() bool { return a.Facts.Epoch == 0 }

// Free says that it is at nothing, and that no study holds it: a load beside an engine under test would spoil its figures.
func (a Agent) Free() bool { return a.Idle() && a.Facts.Held == nil }

// HeldText says who holds an agent for a study; "" where nobody does.
func (a Agent) HeldText() string {
	h := a.Facts.Held
	if h == nil {
		return ""
	}
	text := "held by " + cmp.Or(h.Who, "somebody")
	if h.Study != "" {
		text += " for study " + h.Study
	}
	return text
}

// gone is how long an agent may say nothing until it is thought to be gone.
const gone = 4 * order.HereEvery

// Lead begins to listen to the agents of a hub.
func Lead(ctx context.Context, conn *bus.Conn, o Options) (*Leader, error) {
	l := &Leader{conn: conn, o: o, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), base: time.Now(), seen: map[string]Agent{}, hearts: make(chan struct{})}
	l.o.Lease = cmp.Or(o.Lease, 8*time.Second)
	stop, err := conn.Handle(bus.Up("*", order.Here), l.heard)
	if err != nil {
		return nil, fmt.Errorf("listen to the agents of the fleet: %w", err)
	}
	l.stop = stop
	return l, nil
}

// Close stops listening.
func (l *Leader) Close() { l.stop() }

// now is the leader's clock.
func (l *Leader) now() time.Duration { return time.Since(l.base) }

func (l *Leader) heard(m bus.Message) {
	f, err := order.Decode[order.Facts](m.Data)
	if err != nil {
		l.log.Warn("an agent says what cannot be read", "agent", m.From, "error", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen[m.From] = Agent{m.From, f, time.Now()}
	close(l.hearts)
	l.hearts = make(chan struct{})
}

// Agents are those that are there, by name.
func (l *Leader) Agents() []Agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.seen, func(_ string, a Agent) bool { return time.Since(a.Heard) > gone })
	return slices.SortedFunc(maps.Values(l.seen), func(a, b Agent) int {
		return cmp.Or(cmp.Compare(a.Facts.Name, b.Facts.Name), cmp.Compare(a.ID, b.ID))
	})
}

// Changed is closed when an agent says something.
func (l *Leader) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hearts
}

// Gather waits until every agent that is there has said so, or until so many have.
func (l *Leader) Gather(ctx context.Context, enough func([]Agent) bool) []Agent {
	ctx, cancel := context.WithTimeout(ctx, order.HereEvery+order.HereEvery/2)
	defer cancel()
	for {
		changed := l.Changed()
		if all := l.Agents(); enough != nil && enough(all) {
			return all
		}
		select {
		case <-ctx.Done():
			return l.Agents()
		case <-changed:
		}
	}
}

// Choice says which agents are meant.
type Choice struct {
	Count  int               // as many as that; 0: all that are meant
	Names  []string          // these, by name or ID
	Labels map[string]string // those that have all of these
}

// ParseChoice reads what --fleet takes: a number, label=value, or names; several are joined by commas.
func ParseChoice(text string) (Choice, error) {
	var c Choice
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		n := 0
		switch name, value, label := strings.Cut(part, "="); {
		case part == "":
			return c, fmt.Errorf("%q names no agents: give a number of them, names, or label=value", text)
		case part == "all":
		case label && (name == "" || value == ""):
			return c, fmt.Errorf("%q is no label: write it as NAME=VALUE", part)
		case label:
			if c.Labels == nil {
				c.Labels = map[string]string{}
			}
			c.Labels[name] = value
		case number(part, &n):
			if c.Count != 0 {
				return c, fmt.Errorf("%q has two numbers of agents: give one", text)
			}
			if n < 1 {
				return c, fmt.Errorf("%d agents send nothing: give 1 at least", n)
			}
			c.Count = n
		default:
			c.Names = append(c.Names, part)
		}
	}
	return c, nil
}

func number(s string, n *int) bool {
	if s[0] != '-' && (s[0] < '0' || s[0] > '9') {
		return false
	}
	rest := ""
	_, err := fmt.Sscanf(s+" .", "%d %s", n, &rest)
	return err == nil && rest == "."
}

// Choose are the agents of a choice among those that are there: idle ones of this version.
func (l *Leader) Choose(all []Agent, c Choice) ([]Agent, error) {
	var out []Agent
	var not []string
	for _, a := range all {
		if !c.means(a) {
			continue
		}
		switch {
		case l.o.Version != "" && a.Facts.Version != l.o.Version:
			not = append(not, fmt.Sprintf("%s is perflab %s, and this is %s: give both the same", a.Facts.Name, a.Facts.Version, l.o.Version))
		case !a.Idle():
			not = append(not, fmt.Sprintf("%s is at work (%s)", a.Facts.Name, a.Facts.Doing))
		case !a.Free():
			not = append(not, fmt.Sprintf("%s is %s", a.Facts.Name, a.HeldText()))
		default:
			out = append(out, a)
		}
	}
	for _, name := range c.Names {
		if !slices.ContainsFunc(all, func(a Agent) bool { return a.Facts.Name == name || a.ID == name }) {
			not = append(not, "there is no agent "+name)
		}
	}
	want := max(1, c.Count, len(c.Names))
	if len(out) < want {
		return nil, &FewError{Want: want, Have: len(out), There: len(all), Not: not}
	}
	if c.Count > 0 {
		out = out[:c.Count]
	}
	return out, nil
}

func (c Choice) means(a Agent) bool {
	if len(c.Names) > 0 && !slices.Contains(c.Names, a.Facts.Name) && !slices.Contains(c.Names, a.ID) {
		return false
	}
	for name, value := range c.Labels {
		if a.Facts.Labels[name] != value {
			return false
		}
	}
	return true
}

// FewError says that there are not as many agents as are wanted.
type FewError struct {
	Want, Have, There int
	Not               []string // why others cannot be had
}

func (e *FewError) Error() string {
	text := fmt.Sprintf("%d of the %d agents that are wanted can be had", e.Have, e.Want)
	if e.Want == 1 {
		text = "no agent can be had"
	}
	if e.There == 0 {
		return text + ": the fleet has none"
	}
	if len(e.Not) > 0 {
		text += ": " + strings.Join(e.Not, "; ")
	}
	return text
}

// Hint says how to go on.
func (e *FewError) Hint() string {
	return "perflab fleet shows who is there; perflab fleet invite prints the command by which a machine joins"
}
