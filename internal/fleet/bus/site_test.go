package bus

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestSite has a leader at a hub and an agent at the server of a site talk, and fetch a file, as if they were at one place.
func TestSite(t *testing.T) {
	log := newRecorder()
	hub := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Leaves: "127.0.0.1:0", Log: log.logger()})
	o := Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Leaf: must[string](t)(hub.Invite(Invite{Site: true})), Log: log.logger()}
	site := must[*Server](t)(Start(o))
	id := join(t, site, "far")
	l := connected(t, must[Identity](t)(hub.Leader()), DialOptions{})
	ask := func(a *Conn) {
		t.Helper()
		must[func()](t)(a.Handle(Do(id.ID, "x"), func(m Message) {
			if err := m.Reply([]byte("here")); err != nil {
				t.Error(err)
			}
		}))
		var answer []byte
		for ctx, err := within(t), ErrNobody; errors.Is(err, ErrNobody); { // until the hub has heard of the agent's ears
			answer, err = l.Request(ctx, Do(id.ID, "x"), nil)
			if err != nil && !errors.Is(err, ErrNobody) {
				t.Fatal(err)
			}
		}
		if string(answer) != "here" {
			t.Errorf("the agent of the site answers %q", answer)
		}
		must[[]byte](t)(a.Request(within(t), Up(id.ID, "y"), nil))
	}
	must[func()](t)(l.Handle(Up("*", "y"), func(m Message) {
		if err := m.Reply(nil); err != nil || m.From != id.ID {
			t.Error(m.From, err)
		}
	}))
	a := connected(t, id, DialOptions{})
	ask(a)

	path, data := filepath.Join(t.TempDir(), "file"), bytes.Repeat([]byte("file"), pieceSize)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	digest := must[string](t)(l.PutFile(within(t), path))
	if err := a.GetFile(within(t), digest, path+".got"); err != nil {
		t.Fatal(err)
	}
	if b := must[[]byte](t)(os.ReadFile(path + ".got")); !bytes.Equal(b, data) {
		t.Error("the file came as another")
	}
	members := hub.Members()
	if len(members) != 1 || !members[0].Site || !members[0].Connected {
		t.Errorf("members of the hub: %+v", members)
	}

	// It is a site also when it is started again, without the invitation; what it was at before goes on.
	a.Close()
	if err := site.Close(); err != nil {
		t.Fatal(err)
	}
	o.Leaf, o.Listen = "", strings.TrimPrefix(id.Addr, "tls://")
	site = startHub(t, o)
	ask(connected(t, id, DialOptions{}))

	// A leader of the site, who may say everything there, says nothing at the hub.
	mine := join(t, hub, "near")
	near := connected(t, mine, DialOptions{})
	must[func()](t)(near.Handle(Do(mine.ID, "x"), func(m Message) { _ = m.Reply(m.Data) }))
	sl := connected(t, must[Identity](t)(site.Leader()), DialOptions{})
	if _, err := sl.Request(within(t), Do(mine.ID, "x"), nil); !errors.Is(err, ErrNobody) {
		t.Errorf("a leader of the site tells an agent of the hub what to do: %v", err)
	}
	spy := must[*nats.Subscription](t)(raw(t, must[Identity](t)(site.Leader())).SubscribeSync("fleet.>"))
	must[[]byte](t)(l.Request(within(t), Do(mine.ID, "x"), []byte("secret")))
	must[[]byte](t)(l.Request(within(t), Do(id.ID, "x"), nil)) // comes through after it
	for {
		m, err := spy.NextMsg(1)
		if err != nil {
			break
		}
		if strings.HasPrefix(m.Subject, inbox(leaderID)) && string(m.Data) == "secret" {
			t.Errorf("the site hears %s %s", m.Subject, m.Data)
		}
	}

	// Revoked, it is gone.
	if err := hub.Revoke(members[0].ID); err != nil {
		t.Fatal(err)
	}
	log.wait(t, "its membership was revoked")
	if _, err := l.Request(within(t), Do(id.ID, "x"), nil); !errors.Is(err, ErrNobody) {
		t.Errorf("a revoked site: %v", err)
	}
}

func TestSiteInvitations(t *testing.T) {
	hub := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Leaves: "127.0.0.1:0"})
	site, agent := must[string](t)(hub.Invite(Invite{Site: true})), must[string](t)(hub.Invite(Invite{}))
	if _, err := Join(within(t), site, t.TempDir(), "a"); err == nil || !strings.Contains(err.Error(), "is for the server of a site") {
		t.Errorf("an agent joins as a site: %v", err)
	}
	if _, err := Start(Options{Dir: t.TempDir(), Leaf: agent}); err == nil || !strings.Contains(err.Error(), "is for an agent") {
		t.Errorf("a site joins as an agent: %v", err)
	}
	// Neither was spent by that.
	startHub(t, Options{Dir: t.TempDir(), Leaf: site})
	must[Identity](t)(Join(within(t), agent, t.TempDir(), "a"))
	alone := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if _, err := alone.Invite(Invite{Site: true}); err == nil || !strings.Contains(err.Error(), "does not listen for servers of sites") {
		t.Errorf("a hub without a place for sites invites one: %v", err)
	}
}
