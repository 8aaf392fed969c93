// Package fleettest has a fleet for tests: a hub in this process and members that joined it over its
// socket, each with a key of its own. They say what a test has them say, and send no load.
//
//	f := fleettest.Open(t)
//	a := f.Join(t, order.Facts{Name: "load-1"})
//	a.Here(t)
package fleettest

import (
	"path/filepath"
	"testing"

	"perflab/internal/fleet"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/version"
)

// Version is that of the leader, and of agents that say none.
var Version = version.Read().Version

// Fleet is a hub with a leader.
type Fleet struct {
	Hub    *fleet.Hub
	Leader *fleet.Leader
}

// Open starts a hub that ends with the test.
func Open(t testing.TB) *Fleet {
	t.Helper()
	h, err := fleet.OpenHub(t.Context(), bus.Options{Dir: filepath.Join(t.TempDir(), "hub"), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := fleet.Lead(t.Context(), h.Conn(), fleet.Options{Who: "test", Version: Version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return &Fleet{Hub: h, Leader: l}
}

// Agent is a member that is connected.
type Agent struct {
	ID    string
	Facts order.Facts
	conn  *bus.Conn
}

// Join makes a member, and connects it.
func (f *Fleet) Join(t testing.TB, facts order.Facts) *Agent {
	t.Helper()
	if facts.Version == "" {
		facts.Version = Version
	}
	url, err := f.Hub.Invite(bus.Invite{})
	if err != nil {
		t.Fatal(err)
	}
	me, err := bus.Join(t.Context(), url, t.TempDir(), facts.Name)
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{ID: me.ID, Facts: facts}
	if a.conn, err = bus.Dial(t.Context(), me, bus.DialOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Leave)
	return a
}

// Leave ends its connection; it stays a member.
func (a *Agent) Leave() { a.conn.Close() }

// Here says once what the agent is. When it returns, the hub has it.
func (a *Agent) Here(t testing.TB) { a.say(t, order.Here, a.Facts) }

// Live says how far the agent is with the load that its facts name.
func (a *Agent) Live(t testing.TB, p order.Progress) {
	a.say(t, order.Of(order.Live, a.Facts.Epoch), p)
}

func (a *Agent) say(t testing.TB, what string, v any) {
	t.Helper()
	if !a.Say(what, v) {
		t.Fatalf("agent %s cannot say %s", a.Facts.Name, what)
	}
	if err := a.conn.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Say says something, and whether that left: of an agent that was removed nothing does.
func (a *Agent) Say(what string, v any) bool {
	return a.conn.Publish(bus.Up(a.ID, what), order.Encode(v)) == nil
}
