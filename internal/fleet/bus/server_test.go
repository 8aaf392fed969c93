package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"perflab/internal/test/deploytest"
)

func TestJoin(t *testing.T) {
	dir := t.TempDir()
	log := newRecorder()
	s := startHub(t, Options{Dir: dir, Listen: "127.0.0.1:0", Log: log.logger()})
	url := must[string](t)(s.Invite(Invite{}))
	home := t.TempDir()
	id := must[Identity](t)(Join(within(t), url, home, "gpu-1"))
	if again := must[Identity](t)(Join(within(t), url, home, "gpu-1")); again != id {
		t.Errorf("joined twice by one URL: %v, then %v", id, again)
	}
	if loaded := must[Identity](t)(Load(home)); loaded != id {
		t.Errorf("kept is %v, joined as %v", loaded, id)
	}
	for _, path := range []string{filepath.Join(home, "identity.json"), filepath.Join(dir, "leader.json"), filepath.Join(dir, "ca-key.pem"), filepath.Join(dir, "ca.pem"), filepath.Join(dir, "members.json")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if m := s.Members(); len(m) != 1 || m[0].Name != "gpu-1" || m[0].ID != id.ID || m[0].Connected || m[0].Version == "" || m[0].Joined.IsZero() {
		t.Errorf("members: %+v", m)
	}
	c := connected(t, id, DialOptions{})
	if m := s.Members(); !m[0].Connected || !strings.HasPrefix(m[0].From, "127.0.0.1:") {
		t.Errorf("members: %+v", m)
	}
	c.Close()
	p, err := parseJoin(url)
	if err != nil {
		t.Fatal(err)
	}
	kept := string(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "members.json"))))
	for what, text := range map[string]string{"the log": log.String(), "the file of members": kept, "an identity": fmt.Sprintf("%v %+v %#v", id, id, id)} {
		if strings.Contains(text, p.token) || strings.Contains(text, id.seed) {
			t.Errorf("%s shows a secret:\n%s", what, text)
		}
	}
}

// TestAnswerLost has a machine join whose answer does not come, and which asks again.
func TestAnswerLost(t *testing.T) {
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	url := must[string](t)(s.Invite(Invite{}))
	home := t.TempDir()
	first := must[Identity](t)(Join(within(t), url, home, "gpu-1"))
	if err := errors.Join(keepSecret(filepath.Join(home, joiningFile), []byte(first.seed)), os.Remove(filepath.Join(home, identityFile))); err != nil {
		t.Fatal(err)
	}
	if again := must[Identity](t)(Join(within(t), url, home, "gpu-1")); again != first {
		t.Errorf("joined as %v, and again as %v", first, again)
	}
	if m := s.Members(); len(m) != 1 {
		t.Errorf("members: %+v", m)
	}
	if _, err := os.Stat(filepath.Join(home, joiningFile)); !notThere(err) {
		t.Errorf("the key of joining is left: %v", err)
	}
}

func TestInvitationsThatAreNoGood(t *testing.T) {
	log := newRecorder()
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: log.logger()})
	other := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	used, ended := must[string](t)(s.Invite(Invite{})), must[string](t)(s.Invite(Invite{Lasts: time.Nanosecond}))
	must[Identity](t)(Join(within(t), used, t.TempDir(), "first"))
	guessed := joinURL(s.Addr(), strings.Repeat("A", 43), s.Fingerprint())
	elsewhere := must[place](t)(parseJoin(used))
	for _, c := range []struct{ name, url, says string }{
		{"stolen", used, "was used by another machine"},
		{"ended", ended, "has ended"},
		{"guessed", guessed, "does not know this invitation"},
		{"another hub", joinURL(other.Addr(), elsewhere.token, s.Fingerprint()), "is not the hub of the invitation: its fingerprint is " + other.Fingerprint()},
		{"nobody there", joinURL(fmt.Sprint("127.0.0.1:", deploytest.UnusedPorts(t, 1)), elsewhere.token, s.Fingerprint()), "nobody answers there"},
	} {
		home := t.TempDir()
		_, err := Join(within(t), c.url, home, "thief")
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := Load(home); !notThere(err) {
			t.Errorf("%s: there is an identity: %v", c.name, err)
		}
	}
	if m := s.Members(); len(m) != 1 || m[0].Name != "first" {
		t.Errorf("members: %+v", m)
	}
	if strings.Contains(log.String(), elsewhere.token) {
		t.Error("the log has a token")
	}
}

// TestGuest has somebody with a good invitation do what is not asking to join.
func TestGuest(t *testing.T) {
	log := newRecorder()
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: log.logger()})
	p := must[place](t)(parseJoin(must[string](t)(s.Invite(Invite{}))))
	short := shortOf(hashOf(p.token))
	c := must[*Conn](t)(dialGuest(within(t), Identity{ID: guest(short), Addr: p.addr, fingerprint: p.fingerprint}, p.token))
	t.Cleanup(c.Close)
	for _, subject := range []string{Up("x", "calls"), Do("x", "start"), joins + "0123456789abcdef", hellos + "x", "$JS.API.INFO"} {
		if err := errors.Join(c.nats.Publish(subject, nil), c.nats.Flush()); err != nil {
			t.Fatal(err)
		}
		log.wait(t, `Subject \"`+subject+`\"`)
	}
	// It has the invitation and names a key that it does not have.
	j := joining{Key: join(t, s, "victim").public(t), Name: "thief", Version: speaks("").version, Protocol: Protocol, Signature: []byte("no")}
	answer := must[[]byte](t)(c.request(within(t), joins+short, must[[]byte](t)(json.Marshal(j))))
	if !strings.Contains(string(answer), "does not prove") {
		t.Errorf("a key of somebody else: %s", answer)
	}
	j.Protocol++
	if answer := must[[]byte](t)(c.request(within(t), joins+short, must[[]byte](t)(json.Marshal(j)))); !strings.Contains(string(answer), "use the same version on both") {
		t.Errorf("another protocol: %s", answer)
	}
}

func (i Identity) public(t testing.TB) string { return must[string](t)(publicKey(i.seed)) }

// TestStrangers connect without a key that the hub knows.
func TestStrangers(t *testing.T) {
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	other := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	stranger := join(t, other, "stranger")
	known := join(t, s, "known")
	stranger.Addr, stranger.fingerprint = s.Addr(), s.Fingerprint()
	_, err := Dial(within(t), stranger, DialOptions{})
	if r, ok := asRefused(err); !ok || r.Reason != Unknown {
		t.Errorf("a stranger: %v", err)
	}
	c := &Conn{id: known, us: speaks("")}
	base := must[[]nats.Option](t)(c.options(within(t)))
	base = append(base, nats.NoReconnect(), nats.ClosedHandler(nil), nats.DisconnectErrHandler(nil), nats.ErrorHandler(nil))
	for name, how := range map[string]nats.Option{
		"without a key":      nats.Name("x"),
		"with another's key": nats.Nkey(known.public(t), func(b []byte) ([]byte, error) { k, err := stranger.key(); return must[[]byte](t)(k.Sign(b)), err }),
		"with a password":    nats.UserInfo("leader", "leader"),
	} {
		n, err := nats.Connect("nats://"+s.Addr(), append(base, how)...)
		if !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			n.Close()
		}
	}
	if n, err := nats.Connect("nats://"+s.Addr(), nats.Timeout(time.Second)); err == nil {
		n.Close()
		t.Error("a connection without TLS is there")
	}
	known.fingerprint = other.Fingerprint()
	_, err = Dial(within(t), known, DialOptions{})
	if wrong, ok := errors.AsType[*PinError](err); !ok || wrong.Have != s.Fingerprint() {
		t.Errorf("a wrong fingerprint: %v", err)
	}
}

// TestShownCertificate has a server show the authority's certificate, which everybody can have, with a key of its own.
func TestShownCertificate(t *testing.T) {
	real := must[*authority](t)(openAuthority(t.TempDir()))
	false := must[*authority](t)(openAuthority(t.TempDir()))
	config := must[*tlsConfig](t)(false.server())
	config.Certificates[0].Certificate[1] = real.certificate.Raw
	var wrong *PinError
	client := pinned("hub:1", real.fingerprint(), func(e *PinError) { wrong = e })
	if err := handshake(t, config, client); err == nil || wrong == nil || wrong.Have != "" {
		t.Errorf("a false hub is trusted: %v", err)
	}
	if err := handshake(t, must[*tlsConfig](t)(real.server()), client); err != nil {
		t.Errorf("the hub is not trusted: %v", err)
	}
}

// ends are what a connection was told.
type ends struct {
	lost, back chan struct{}
	ended      chan error
	wasLost    atomic.Int32
}

func newEnds() *ends {
	return &ends{lost: make(chan struct{}, 100), back: make(chan struct{}, 100), ended: make(chan error, 100)}
}

func (e *ends) options() DialOptions {
	return DialOptions{
		Lost:  func() { e.wasLost.Add(1); e.lost <- struct{}{} },
		Back:  func() { e.back <- struct{}{} },
		Ended: func(err error) { e.ended <- err },
	}
}

// TestDuplicate has two processes connect with one identity: the newer is heard, the older is cut, told and heard no more.
func TestDuplicate(t *testing.T) {
	log := newRecorder()
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: log.logger()})
	id := join(t, s, "a")
	e := newEnds()
	older := connected(t, id, e.options())
	newer := connected(t, id, DialOptions{})
	err := come(t, "the end of the older", e.ended)
	if r, ok := asRefused(err); !ok || r.Reason != Replaced || !strings.Contains(r.Text, "another process has connected as this agent, from 127.0.0.1") {
		t.Errorf("the older is told: %v", err)
	}
	log.wait(t, "two processes have the identity of one agent")
	if err := older.Publish(Up(id.ID, "x"), nil); err != nil {
		if r, ok := asRefused(err); !ok || r.Reason != Replaced {
			t.Errorf("the older publishes: %v", err)
		}
	} else {
		t.Error("the older publishes")
	}
	l := connected(t, must[Identity](t)(s.Leader()), DialOptions{})
	must[func()](t)(newer.Handle(Do(id.ID, "x"), func(m Message) { _ = m.Reply([]byte("newer")) }))
	if answer := must[[]byte](t)(l.Request(within(t), Do(id.ID, "x"), nil)); string(answer) != "newer" {
		t.Errorf("%q answers", answer)
	}
}

// TestDuplicateOutside does so on a server that lets both connect: a leader takes the messages of the newer.
func TestDuplicateOutside(t *testing.T) {
	m := outsideServer(t)
	id := m.agent(t, "a")
	l := connected(t, m.leader(t), DialOptions{})
	must[func()](t)(l.Handle(Up("*", "x"), func(m Message) { _ = m.Reply(m.Data) }))
	e := newEnds()
	older, newer := connected(t, id, e.options()), connected(t, id, DialOptions{})
	for _, c := range []*Conn{older, older, newer, newer} {
		must[[]byte](t)(c.Request(within(t), Up(id.ID, "x"), nil))
	}
	_, err := older.Request(within(t), Up(id.ID, "x"), nil)
	if r, ok := asRefused(err); !ok || r.Reason != Replaced {
		t.Errorf("the older asks: %v", err)
	}
	if r, ok := asRefused(come(t, "the end of the older", e.ended)); !ok || r.Reason != Replaced {
		t.Errorf("the older ends: %v", r)
	}
	must[[]byte](t)(newer.Request(within(t), Up(id.ID, "x"), nil))
}

func TestRevoked(t *testing.T) {
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	home := t.TempDir()
	id := must[Identity](t)(Join(within(t), must[string](t)(s.Invite(Invite{})), home, "a"))
	e := newEnds()
	connected(t, id, e.options())
	if err := s.Revoke("nobody"); err == nil {
		t.Error("nobody was revoked")
	}
	if err := s.Revoke(id.ID); err != nil {
		t.Fatal(err)
	}
	if r, ok := asRefused(come(t, "the end", e.ended)); !ok || r.Reason != Revoked {
		t.Errorf("who is revoked is told %v", r)
	}
	if _, err := Dial(within(t), id, DialOptions{}); err == nil || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("it comes back: %v", err)
	}
	if m := s.Members(); !m[0].Revoked || m[0].Connected && m[0].From != "" {
		t.Errorf("members: %+v", m)
	}
	// A new invitation makes it a member again, by the same key.
	again := must[Identity](t)(Join(within(t), must[string](t)(s.Invite(Invite{})), home, "a"))
	if again.ID != id.ID {
		t.Errorf("it was %s and is %s", id.ID, again.ID)
	}
	connected(t, again, DialOptions{})
}

// TestHubStartsAgain ends the hub and starts it again where it was: connections, members, leases, numbers and files are there.
func TestHubStartsAgain(t *testing.T) {
	o := Options{Dir: t.TempDir(), Listen: fmt.Sprint("127.0.0.1:", deploytest.UnusedPorts(t, 1))}
	s := must[*Server](t)(Start(o))
	id := join(t, s, "a")
	ae, le := newEnds(), newEnds()
	a, l := connected(t, id, ae.options()), connected(t, must[Identity](t)(LoadLeader(o.Dir)), le.options())
	must[func()](t)(a.Handle(Do(id.ID, "x"), func(m Message) { _ = m.Reply([]byte("here")) }))
	lease := must[*Lease](t)(l.Claim(within(t), "node.a", []byte("me"), time.Hour))
	number := must[uint64](t)(l.Next(within(t), "epoch"))
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	digest := must[string](t)(l.PutFile(within(t), path))
	fingerprint := s.Fingerprint()
	if _, err := Start(o); err == nil || !strings.Contains(err.Error(), "another hub uses this directory") {
		t.Errorf("two hubs in one directory: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	come(t, "the agent hears that the hub is away", ae.lost)
	come(t, "the leader hears that the hub is away", le.lost)
	if err := a.Publish(Up(id.ID, "live"), nil); !errors.Is(err, ErrAway) {
		t.Errorf("while the hub is away: %v", err)
	}
	if _, err := l.Request(within(t), Do(id.ID, "x"), nil); !errors.Is(err, ErrAway) {
		t.Errorf("while the hub is away: %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- a.GetFile(within(t), digest, path+".got") }() // it waits for the hub; read below

	s = startHub(t, o)
	come(t, "the agent is back", ae.back)
	come(t, "the leader is back", le.back)
	if err := come(t, "the file", got); err != nil {
		t.Error(err)
	}
	if s.Fingerprint() != fingerprint {
		t.Error("the hub has another authority")
	}
	if answer := must[[]byte](t)(l.Request(within(t), Do(id.ID, "x"), nil)); string(answer) != "here" {
		t.Errorf("the agent answers %q", answer)
	}
	if n := must[uint64](t)(l.Next(within(t), "epoch")); n <= number {
		t.Errorf("the number %d follows %d", n, number)
	}
	if err := lease.Renew(within(t)); err != nil {
		t.Error(err)
	}
	if m := s.Members(); len(m) != 1 || !m[0].Connected {
		t.Errorf("members: %+v", m)
	}
}

// TestCutWhileWaiting breaks the connection under a request.
func TestCutWhileWaiting(t *testing.T) {
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	id := join(t, s, "a")
	e := newEnds()
	a := connected(t, id, e.options())
	l := must[*Conn](t)(s.Dial(within(t), DialOptions{}))
	t.Cleanup(l.Close)
	asked := make(chan struct{}, 1)
	must[func()](t)(l.Handle(Up("*", "x"), func(Message) { asked <- struct{}{} })) // and never answers
	failed := make(chan error, 1)
	go func() { _, err := a.Request(within(t), Up(id.ID, "x"), nil); failed <- err }()
	come(t, "the question", asked)
	s.door.leave(id.ID)
	if err := come(t, "its end", failed); !errors.Is(err, ErrAway) {
		t.Errorf("a request under which the connection breaks: %v", err)
	}
	come(t, "the connection", e.back)
}

// TestSlowHandler has messages come faster than they are taken: what is dropped is counted and told.
func TestSlowHandler(t *testing.T) {
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	id := join(t, s, "a")
	slow := make(chan int, 1000)
	l := connected(t, must[Identity](t)(s.Leader()), DialOptions{Pending: 10, Slow: func(subject string, dropped int) {
		if subject != Up("*", "live") {
			t.Errorf("slow is %s", subject)
		}
		slow <- dropped
	}})
	release := make(chan struct{})
	taken := make(chan struct{}, 1000)
	must[func()](t)(l.Handle(Up("*", "live"), func(Message) { <-release; taken <- struct{}{} }))
	a := connected(t, id, DialOptions{})
	const sent = 500
	for range sent {
		if err := a.Publish(Up(id.ID, "live"), []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Flush(within(t)); err != nil {
		t.Fatal(err)
	}
	if n := come(t, "the news of slowness", slow); n < 1 {
		t.Errorf("%d were dropped", n)
	}
	if err := l.Flush(within(t)); err != nil { // all of them have come
		t.Fatal(err)
	}
	close(release)
	for range sent - l.Dropped() {
		come(t, "what was not dropped", taken)
	}
	if n := l.Dropped(); n < 1 || n >= sent {
		t.Errorf("of %d messages %d were dropped", sent, n)
	}
	// The connection is as good as before.
	must[func()](t)(l.Handle(Up("*", "ask"), func(m Message) { _ = m.Reply(nil) }))
	must[[]byte](t)(a.Request(within(t), Up(id.ID, "ask"), nil))
}

// gate is a dialer whose connections stop reading when it is closed.
type gate struct{ open chan struct{} }

func (g *gate) Dial(network, address string) (net.Conn, error) {
	c, err := net.Dial(network, address)
	return &gated{c, g}, err
}

type gated struct {
	net.Conn
	g *gate
}

func (c *gated) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	<-c.g.open
	return n, err
}

// TestSlowConnection has a machine not read what is sent to it: its connection is cut, and the others' are not.
func TestSlowConnection(t *testing.T) {
	log := newRecorder()
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: log.logger()})
	slow, good := join(t, s, "slow"), join(t, s, "good")
	g := &gate{make(chan struct{}, 1)}
	feeding, fed := make(chan struct{}), make(chan struct{})
	go func() { // lets it read until it is to be slow; waited for below
		defer close(fed)
		for {
			select {
			case g.open <- struct{}{}:
			case <-feeding:
				return
			}
		}
	}()
	n := raw(t, slow, nats.SetCustomDialer(g))
	must[*nats.Subscription](t)(n.Subscribe(Do(slow.ID, "x"), func(*nats.Msg) {}))
	if err := n.Flush(); err != nil {
		t.Fatal(err)
	}
	close(feeding)
	<-fed
	a := connected(t, good, DialOptions{})
	must[func()](t)(a.Handle(Do(good.ID, "x"), func(m Message) { _ = m.Reply(nil) }))
	l := must[*Conn](t)(s.Dial(within(t), DialOptions{}))
	t.Cleanup(l.Close)
	data := make([]byte, 900<<10)
	for ctx := within(t); s.SlowConsumers() == 0; {
		if err := errors.Join(l.Publish(Do(slow.ID, "x"), data), l.Flush(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	close(g.open)
	log.wait(t, "Slow Consumer Detected")
	must[[]byte](t)(l.Request(within(t), Do(good.ID, "x"), nil))
	connected(t, slow, DialOptions{}) // it may come back
}

// TestNotAllowed is what a member hears at once when it tries what the hub would refuse.
func TestNotAllowed(t *testing.T) {
	s := startHub(t, Options{Dir: t.TempDir()})
	if s.Addr() != "" {
		t.Errorf("a hub for this process listens at %s", s.Addr())
	}
	if _, err := s.Invite(Invite{}); err == nil || !strings.Contains(err.Error(), "listens at no address") {
		t.Errorf("it invites: %v", err)
	}
	l := must[*Conn](t)(s.Dial(within(t), DialOptions{}))
	t.Cleanup(l.Close)
	if err := l.Publish("other.subject", nil); err == nil {
		t.Error("a leader publishes outside of the fleet")
	}
	agent := Identity{ID: "a", Role: Agent}
	for subject, may := range map[string]bool{Up("a", "x"): true, Up("b", "x"): false, Do("a", "x"): false, Up("*", "x"): false} {
		if agent.mayPublish(subject) != may {
			t.Errorf("an agent may publish on %s: %v", subject, !may)
		}
	}
	for subject, may := range map[string]bool{Do("a", "x"): true, Do("b", "x"): false, Up("a", "x"): false, Do("*", "x"): false, "fleet.>": false} {
		if agent.mayHandle(subject) != may {
			t.Errorf("an agent may listen to %s: %v", subject, !may)
		}
	}
}

// TestTakenAddress has a hub listen where something listens: it says so at once.
func TestTakenAddress(t *testing.T) {
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	defer l.Close()
	for field, o := range map[string]Options{"listen": {Listen: l.Addr().String()}, "leaves": {Leaves: l.Addr().String()}} {
		o.Dir = t.TempDir()
		s, err := Start(o)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "cannot listen at "+l.Addr().String()) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := Start(Options{Dir: t.TempDir(), Listen: "nowhere"}); err == nil || !strings.Contains(err.Error(), "is no address to listen at") {
		t.Errorf("nowhere: %v", err)
	}
}

func TestHostFor(t *testing.T) {
	for listen, want := range map[string]string{"192.0.2.1": "192.0.2.1", "hub.example.com": "hub.example.com", "127.0.0.1": "127.0.0.1"} {
		if got := hostFor(listen); got != want {
			t.Errorf("who listens at %s is reached by %s", listen, got)
		}
	}
	for _, listen := range []string{"0.0.0.0", "::"} {
		if got := hostFor(listen); net.ParseIP(got) != nil && net.ParseIP(got).IsUnspecified() || got == "" {
			t.Errorf("who listens at %s is reached by %q", listen, got)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		us, them string
		same     bool
	}{
		{"v0.3.0", "0.3.7", true}, {"v0.3.0", "v0.3.0-4-g9d72427", true}, {"v0.3.0", "v0.4.0", false}, {"v0.3.0", "v1.3.0", false},
		{"(devel)", "(devel)", true}, {"(devel)", "v0.3.0", false},
	} {
		r := speaks(c.us).refuse(speaks(c.them))
		if (r == nil) != c.same {
			t.Errorf("%s and %s: %v", c.us, c.them, r)
		}
		if r != nil && (!strings.Contains(r.Text, c.us) || !strings.Contains(r.Text, c.them)) {
			t.Errorf("%s and %s: %s", c.us, c.them, r.Text)
		}
	}
	if speaks("v1.0.0").refuse(speaker{Protocol + 1, "v1.0.0"}) == nil {
		t.Error("another protocol is taken")
	}
}
