package bus

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// meeting is a server with whatever it takes to get identities on it.
type meeting struct {
	leader func(t testing.TB) Identity
	agent  func(t testing.TB, name string) Identity
	log    *recorder
	inside bool // the hub is perflab's
}

// files is the log of who serves files, given a leader's.
func (m meeting) files(leader *recorder) *recorder {
	if m.inside {
		return m.log
	}
	return leader
}

// recorder is a log that tests read.
type recorder struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{} // has something when something was written
}

func newRecorder() *recorder { return &recorder{news: make(chan struct{}, 1)} }

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
	return r.text.Write(b)
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// wait waits until the log has a text.
func (r *recorder) wait(t testing.TB, text string) {
	t.Helper()
	for late := time.After(patience); !strings.Contains(r.String(), text); {
		select {
		case <-r.news:
		case <-late:
			t.Fatalf("the log never says %q:\n%s", text, r)
		}
	}
}

func (r *recorder) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// patience is how long a test waits for what must come: long enough for a machine that does other things.
const patience = time.Minute

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// come waits for something.
func come[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: it did not come", what)
	}
	panic("not reached")
}

func startHub(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func join(t testing.TB, s *Server, name string) Identity {
	t.Helper()
	url := must[string](t)(s.Invite(Invite{}))
	return must[Identity](t)(Join(within(t), url, t.TempDir(), name))
}

func connected(t testing.TB, id Identity, o DialOptions) *Conn {
	t.Helper()
	c := must[*Conn](t)(Dial(within(t), id, o))
	t.Cleanup(c.Close)
	return c
}

// embedded is a meeting at a hub of this program.
func embedded(t testing.TB) meeting {
	log := newRecorder()
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", Log: log.logger()})
	return meeting{
		leader: func(t testing.TB) Identity { return must[Identity](t)(LoadLeader(s.o.Dir)) },
		agent:  func(t testing.TB, name string) Identity { return join(t, s, name) },
		log:    log,
		inside: true,
	}
}

// outsideServer is a meeting at a NATS server that is started from a configuration file, with accounts and
// users of nkeys as Accounts writes them, and TLS.
func outsideServer(t testing.TB) meeting {
	dir := t.TempDir()
	all := []User{must[User](t)(NewUser("the leader", Leader))}
	for i := range 4 {
		all = append(all, must[User](t)(NewUser(fmt.Sprint("agent \"", i, "\"\n}"), Agent)))
	}
	certificate, key := writeCertificate(t, dir)
	config := filepath.Join(dir, "nats.conf")
	text := fmt.Sprintf("listen: \"127.0.0.1:-1\"\ntls { cert_file: %q, key_file: %q }\njetstream { store_dir: %q, sync_interval: always }\n%s",
		certificate, key, filepath.Join(dir, "store"), Accounts(all))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, all[0].Seed) {
		t.Fatal("the configuration shows a secret")
	}
	o := must[*server.Options](t)(server.ProcessConfigFile(config))
	o.NoSigs = true
	s := must[*server.Server](t)(server.NewServer(o))
	log := newRecorder()
	s.SetLoggerV2(serverLog{log.logger(), slog.LevelWarn}, false, false, false)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not come up")
	}
	identity := func(t testing.TB, u User) Identity {
		seed := filepath.Join(t.TempDir(), "seed")
		if err := os.WriteFile(seed, []byte("# a key\n"+u.Seed+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		id := must[Identity](t)(Outside("tls://"+s.Addr().String(), seed, certificate, u.Role))
		if id.ID != u.ID {
			t.Fatalf("the seed of %s gives %s", u.ID, id.ID)
		}
		return id
	}
	next := 0
	return meeting{
		leader: func(t testing.TB) Identity { return identity(t, all[0]) },
		agent:  func(t testing.TB, name string) Identity { next++; return identity(t, all[next]) },
		log:    log,
	}
}

// writeCertificate makes a certificate for the loopback address, which signs itself, as an administrator would.
func writeCertificate(t testing.TB, dir string) (certificate, key string) {
	t.Helper()
	private := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	c := must[*x509.Certificate](t)(template("nats"))
	c.IPAddresses, c.IsCA, c.BasicConstraintsValid = []net.IP{net.IPv4(127, 0, 0, 1)}, true, true
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, c, c, &private.PublicKey, private))
	secret := must[[]byte](t)(x509.MarshalPKCS8PrivateKey(private))
	certificate, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, b := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

// everywhere runs a test at both kinds of server.
func everywhere(t *testing.T, f func(t *testing.T, m meeting)) {
	t.Run("embedded", func(t *testing.T) { f(t, embedded(t)) })
	t.Run("outside", func(t *testing.T) { f(t, outsideServer(t)) })
}

func TestTalk(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		a, l := connected(t, m.agent(t, "a"), DialOptions{}), connected(t, m.leader(t), DialOptions{})
		got := make(chan Message, 10)
		must[func()](t)(a.Handle(Do(a.ID(), "prepare"), func(m Message) {
			got <- m
			if err := m.Reply(append([]byte("done "), m.Data...)); err != nil {
				t.Error(err)
			}
		}))
		answer := must[[]byte](t)(l.Request(within(t), Do(a.ID(), "prepare"), []byte("work")))
		if string(answer) != "done work" {
			t.Errorf("the leader got %q", answer)
		}
		if m := <-got; m.From != leaderID || m.Subject != Do(a.ID(), "prepare") || string(m.Data) != "work" {
			t.Errorf("the agent got %+v", m)
		}
		up := make(chan Message, 10)
		stop := must[func()](t)(l.Handle(Up("*", "calls"), func(m Message) {
			up <- m
			if m.Reply != nil {
				if err := m.Reply(nil); err != nil {
					t.Error(err)
				}
			}
		}))
		if answer, err := a.Request(within(t), Up(a.ID(), "calls"), []byte("1")); err != nil || len(answer) != 0 {
			t.Errorf("the agent got %q, %v", answer, err)
		}
		if m := come(t, "calls", up); m.From != a.ID() || string(m.Data) != "1" {
			t.Errorf("the leader got %+v", m)
		}
		if err := a.Publish(Up(a.ID(), "calls"), []byte("2")); err != nil {
			t.Fatal(err)
		}
		if m := come(t, "more calls", up); m.Reply != nil || string(m.Data) != "2" {
			t.Errorf("the leader got %+v", m)
		}
		stop()
		if _, err := a.Request(within(t), Up(a.ID(), "calls"), nil); !errors.Is(err, ErrNobody) {
			t.Errorf("after the end of its handler: %v", err)
		}
	})
}

// raw is a connection with an identity's key, by a program that does not keep to what this package lets it do.
func raw(t testing.TB, id Identity, more ...nats.Option) *nats.Conn {
	t.Helper()
	c := &Conn{id: id, o: DialOptions{}, us: speaks(""), instance: "raw"}
	options, err := c.options(within(t))
	if err != nil {
		t.Fatal(err)
	}
	key, err := id.key()
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	options = append(options, nats.Nkey(public, key.Sign), nats.ErrorHandler(nil), nats.DisconnectErrHandler(nil), nats.ReconnectHandler(nil), nats.ClosedHandler(nil), nats.NoReconnect())
	n := must[*nats.Conn](t)(nats.Connect("nats://"+id.Addr, append(options, more...)...))
	t.Cleanup(n.Close)
	return n
}

// TestForged has an agent try everything that is not its own. None of it reaches anybody, and the server says so.
func TestForged(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		evil, victim := m.agent(t, "evil"), m.agent(t, "victim")
		l := connected(t, m.leader(t), DialOptions{})
		v := connected(t, victim, DialOptions{})
		heard := make(chan Message, 100)
		must[func()](t)(l.Handle("fleet.a.>", func(m Message) { heard <- m }))
		must[func()](t)(v.Handle(Do(victim.ID, ">"), func(m Message) { heard <- m }))

		n := raw(t, evil)
		for _, subject := range []string{
			Up(victim.ID, "calls"), Do(victim.ID, "start"), Do(evil.ID, "start"), inbox(leaderID) + ".x", inbox(victim.ID) + ".x",
			fileSubjects + "a.0", "$KV." + bucket + ".lease.x", "$JS.API.STREAM.DELETE." + stream, "$JS.API.DIRECT.GET." + stream, "$SYS.REQ.USER.INFO", "$JS.ACK.x",
		} {
			spied := must[*nats.Subscription](t)(raw(t, m.leader(t), nats.CustomInboxPrefix("fleet.in.spy")).SubscribeSync("fleet.>"))
			if err := errors.Join(spied.SetPendingLimits(-1, -1), n.Publish(subject, []byte("forged")), n.Flush()); err != nil {
				t.Fatal(err)
			}
			m.log.wait(t, `Subject \"`+subject+`\"`)
			if _, err := spied.NextMsg(time.Millisecond); !errors.Is(err, nats.ErrTimeout) {
				t.Errorf("%s came through: %v", subject, err)
			}
		}
		for _, subject := range []string{Do(victim.ID, "start"), Up("*", "calls"), inbox(leaderID) + ".>", inbox(victim.ID) + ".>", ">", "fleet.>"} {
			must[*nats.Subscription](t)(n.SubscribeSync(subject))
			if err := n.Flush(); err != nil {
				t.Fatal(err)
			}
			m.log.wait(t, fmt.Sprintf(`Subject \"%s\"`, subject))
		}
		select {
		case m := <-heard:
			t.Errorf("somebody heard %+v", m)
		default:
		}
	})
}

// TestBorrowedVoice has an agent ask for an answer that goes to another: whoever answers, who may more, must not
// speak for it.
func TestBorrowedVoice(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		evil, victim := m.agent(t, "evil"), m.agent(t, "victim")
		leads := newRecorder()
		l := connected(t, m.leader(t), DialOptions{Log: leads.logger()})
		v := connected(t, victim, DialOptions{})
		heard, failed := make(chan Message, 10), make(chan error, 10)
		must[func()](t)(v.Handle(Do(victim.ID, ">"), func(m Message) {
			heard <- m
			_ = m.Reply(nil)
		}))
		must[func()](t)(l.Handle(Up("*", "ask"), func(m Message) { failed <- m.Reply([]byte("go")) }))
		n := raw(t, evil)
		ask := &nats.Msg{Subject: Up(evil.ID, "ask"), Reply: Do(victim.ID, "start"), Header: nats.Header{speaksHeader: {speaks("").String()}, instanceHeader: {"raw"}}}
		if err := n.PublishMsg(ask); err != nil {
			t.Fatal(err)
		}
		if err := come(t, "the answer", failed); err == nil || !strings.Contains(err.Error(), "not its own inbox") {
			t.Errorf("the leader answers: %v", err)
		}
		// A wrong version is answered too, and must not be there either; nor may a file.
		ask.Header[speaksHeader] = []string{"99 v99.0.0"}
		file := &nats.Msg{Subject: Up(evil.ID, fileAsk), Reply: ask.Reply, Data: []byte(strings.Repeat("0", 64) + ".contents"), Header: nats.Header{speaksHeader: {speaks("").String()}, instanceHeader: {"raw"}}}
		if err := errors.Join(n.PublishMsg(ask), n.PublishMsg(file), n.Flush()); err != nil {
			t.Fatal(err)
		}
		leads.wait(t, "a refusal was not sent")
		m.files(leads).wait(t, "a piece of a file was not sent")
		must[[]byte](t)(l.Request(within(t), Do(victim.ID, "last"), nil))
		if m := come(t, "what the leader itself said", heard); m.Subject != Do(victim.ID, "last") {
			t.Errorf("the victim heard %+v", m)
		}
	})
}

func TestRefusedByVersion(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		id := m.agent(t, "old")
		l := connected(t, m.leader(t), DialOptions{})
		must[func()](t)(l.Handle(Up("*", "ask"), func(m Message) { t.Error("an old version was heard"); _ = m.Reply(nil) }))
		c, err := Dial(within(t), id, DialOptions{Version: "v9.9.9"})
		if err == nil { // an outside server does not know perflab's versions: those who speak do
			t.Cleanup(c.Close)
			_, err = c.Request(within(t), Up(id.ID, "ask"), nil)
		}
		r, ok := asRefused(err)
		if !ok || r.Reason != OtherVersion || !strings.Contains(r.Text, "v9.9.9") || !strings.Contains(r.Text, speaks("").version) {
			t.Errorf("an old version is told %v", err)
		}
	})
}

func TestFiles(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		l, a := connected(t, m.leader(t), DialOptions{}), connected(t, m.agent(t, "a"), DialOptions{})
		dir := t.TempDir()
		for _, size := range []int{0, 1, pieceSize, 3*pieceSize + 17} {
			data := make([]byte, size)
			_, _ = rand.Read(data)
			path := filepath.Join(dir, fmt.Sprint(size))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			digest := must[string](t)(l.PutFile(within(t), path))
			if sum := sha256.Sum256(data); digest != hex.EncodeToString(sum[:]) {
				t.Errorf("%d bytes have the digest %s", size, digest)
			}
			sent := stored(t, l)
			if again := must[string](t)(l.PutFile(within(t), path)); again != digest || stored(t, l) != sent {
				t.Errorf("%d bytes were sent again", size)
			}
			for _, c := range []*Conn{a, l} {
				got := path + ".got"
				if err := c.GetFile(within(t), digest, got); err != nil {
					t.Fatal(err)
				}
				if b := must[[]byte](t)(os.ReadFile(got)); !bytes.Equal(b, data) {
					t.Errorf("%d bytes came back as others", size)
				}
			}
		}
		none := strings.Repeat("0", 64)
		for _, c := range []*Conn{a, l} {
			err := c.GetFile(within(t), none, filepath.Join(dir, "none"))
			if missing, ok := errors.AsType[*MissingError](err); !ok || missing.Digest != none {
				t.Errorf("a file that is not there: %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "none")); !notThere(err) {
				t.Errorf("it left something: %v", err)
			}
		}
	})
}

// TestRoomForFiles brings more than there is room for: the oldest go, and what is too large is refused. Leases and numbers go on.
func TestRoomForFiles(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		l, a := connected(t, m.leader(t), DialOptions{}), connected(t, m.agent(t, "a"), DialOptions{})
		if err := (depot{l}).makeStores(within(t), 6*pieceSize); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		var digests []string
		for n, size := range []int{pieceSize, pieceSize, pieceSize, 3 * pieceSize} {
			path := filepath.Join(dir, fmt.Sprint(n))
			if err := os.WriteFile(path, bytes.Repeat([]byte{byte(n)}, size), 0o600); err != nil {
				t.Fatal(err)
			}
			digests = append(digests, must[string](t)(l.PutFile(within(t), path)))
		}
		for n, there := range []bool{false, false, true, true} {
			err := a.GetFile(within(t), digests[n], filepath.Join(dir, "got"))
			if _, missing := errors.AsType[*MissingError](err); missing == there || there && err != nil {
				t.Errorf("file %d: %v", n, err)
			}
		}
		large := filepath.Join(dir, "large")
		if err := os.WriteFile(large, make([]byte, 6*pieceSize), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*Conn{l, a} {
			if _, err := c.PutFile(within(t), large); err == nil || !strings.Contains(err.Error(), "has room for files of 3 MiB in all") {
				t.Errorf("a file that is too large: %v", err)
			}
		}
		must[uint64](t)(l.Next(within(t), "epoch"))
	})
	for all, want := range map[int64]int64{0: 0, 100 << 20: 50 << 20, 1 << 30: 1<<30 - keepFree} {
		if got := roomForFiles(all); got != want {
			t.Errorf("of %d bytes files have %d", all, got)
		}
	}
}

// TestAgentBringsFiles has an agent, which may not speak to the store, bring files to it.
func TestAgentBringsFiles(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		l, a := connected(t, m.leader(t), DialOptions{}), connected(t, m.agent(t, "a"), DialOptions{})
		dir := t.TempDir()
		for _, size := range []int{0, 1, 2 * pieceSize, 3*pieceSize + 17} {
			data := make([]byte, size)
			_, _ = rand.Read(data)
			path := filepath.Join(dir, fmt.Sprint(size))
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			digest := must[string](t)(a.PutFile(within(t), path))
			sent := stored(t, l)
			if again := must[string](t)(a.PutFile(within(t), path)); again != digest || stored(t, l) != sent {
				t.Errorf("%d bytes were sent again", size)
			}
			if err := l.GetFile(within(t), digest, path+".got"); err != nil {
				t.Fatal(err)
			}
			if b := must[[]byte](t)(os.ReadFile(path + ".got")); !bytes.Equal(b, data) {
				t.Errorf("%d bytes came back as others", size)
			}
		}
		// What is not what it says it is, and what is more than it says, never gets into the store.
		none := strings.Repeat("0", 64)
		for _, u := range []upload{{Digest: none, Size: 3}, {Digest: none, Size: 2}, {Digest: "../x", Size: 3}, {Digest: none, Size: mostUpload + 1}} {
			answer := uploaded{}
			for ctx := within(t); !answer.Done && answer.Wrong == ""; {
				answer = must[uploaded](t)(depot{a}.askUpload(ctx, uploadAsk, u, []byte("abc")))
			}
			if answer.Done || answer.Wrong == "" {
				t.Errorf("%+v is taken: %+v", u, answer)
			}
		}
		if err := l.GetFile(within(t), none, filepath.Join(dir, "none")); err == nil {
			t.Error("a wrong file is in the store")
		}
	})
}

// TestUploadGoesOn cuts the connection under a file that an agent brings.
func TestUploadGoesOn(t *testing.T) {
	s := startHub(t, Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	id := join(t, s, "a")
	cuts := 0
	a := connected(t, id, DialOptions{Back: func() {
		if cuts++; cuts < 3 {
			s.door.leave(id.ID)
		}
	}})
	data := bytes.Repeat([]byte("some of a file "), 5*pieceSize/10)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s.door.leave(id.ID)
	digest := must[string](t)(a.PutFile(within(t), path))
	l := must[*Conn](t)(s.Dial(within(t), DialOptions{}))
	t.Cleanup(l.Close)
	if err := l.GetFile(within(t), digest, path+".got"); err != nil {
		t.Fatal(err)
	}
	if left := must[[]os.DirEntry](t)(os.ReadDir(filepath.Join(s.o.Dir, "uploads"))); len(left) != 0 {
		t.Errorf("of the upload is left %v", left)
	}
}

// stored is the last number of the store of files: how much was ever sent there.
func stored(t testing.TB, c *Conn) uint64 {
	t.Helper()
	s, err := c.js.Stream(within(t), stream)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.LastSeq
}

// TestDamagedFile has the store give other bytes than were brought.
func TestDamagedFile(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		l, a := connected(t, m.leader(t), DialOptions{}), connected(t, m.agent(t, "a"), DialOptions{})
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte("what was brought"), 0o600); err != nil {
			t.Fatal(err)
		}
		digest := must[string](t)(l.PutFile(within(t), path))
		if _, err := l.js.Publish(within(t), pieceSubject(digest, 0), []byte("something else!!")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := a.GetFile(within(t), digest, path); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("a damaged file: %v", err)
		}
		if b := must[[]byte](t)(os.ReadFile(path)); string(b) != "before" {
			t.Errorf("a damaged file is there: %q", b)
		}
	})
}

func TestLeases(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		one, two := connected(t, m.leader(t), DialOptions{}), connected(t, m.leader(t), DialOptions{})
		first := must[*Lease](t)(one.Claim(within(t), "node.a", []byte("one"), time.Hour))
		_, err := two.Claim(within(t), "node.a", []byte("two"), time.Hour)
		if held, ok := errors.AsType[*HeldError](err); !ok || string(held.Value) != "one" {
			t.Errorf("the second claim: %v", err)
		}
		token := first.Revision
		for range 3 {
			if err := first.Renew(within(t)); err != nil {
				t.Fatal(err)
			}
		}
		if first.Revision != token {
			t.Errorf("the fencing token has changed from %d to %d", token, first.Revision)
		}
		first.last-- // the answer to the last renewal was lost
		if err := first.Renew(within(t)); err != nil {
			t.Errorf("after an answer that was lost: %v", err)
		}
		if err := first.Release(within(t)); err != nil {
			t.Fatal(err)
		}
		second := must[*Lease](t)(two.Claim(within(t), "node.a", []byte("two"), time.Second))
		if second.Revision <= token {
			t.Errorf("fencing tokens %d, then %d", token, second.Revision)
		}
		if err := first.Renew(within(t)); !errors.Is(err, ErrLost) {
			t.Errorf("the first holder renews: %v", err)
		}
		if err := first.Release(within(t)); !errors.Is(err, ErrLost) {
			t.Errorf("the first holder releases: %v", err)
		}
		// The second holder dies: its second ends by itself.
		var third *Lease
		for ctx := within(t); third == nil; {
			if third, err = one.Claim(ctx, "node.a", []byte("three"), time.Hour); err != nil {
				if _, held := errors.AsType[*HeldError](err); !held {
					t.Fatal(err)
				}
			}
		}
		if third.Revision <= second.Revision {
			t.Errorf("fencing tokens %d, then %d", second.Revision, third.Revision)
		}
		if err := second.Renew(within(t)); !errors.Is(err, ErrLost) {
			t.Errorf("a dead holder comes back: %v", err)
		}
	})
}

// TestOldServer: a NATS server that ends no lease by itself is refused by a sentence that says which one is needed.
func TestOldServer(t *testing.T) {
	m := outsideServer(t)
	c := connected(t, m.leader(t), DialOptions{})
	err := c.stored(jetstream.ErrLimitMarkerTTLNotSupported)
	if want := "the hub is NATS server " + server.VERSION + ", and leases need one of 2.11 or later"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestNumbersGrow(t *testing.T) {
	everywhere(t, func(t *testing.T, m meeting) {
		var all []*Conn
		for range 3 {
			all = append(all, connected(t, m.leader(t), DialOptions{}))
		}
		var mu sync.Mutex
		seen := map[uint64]bool{}
		var wg sync.WaitGroup
		for _, c := range all {
			wg.Go(func() {
				last := uint64(0)
				for range 20 {
					n, err := c.Next(context.Background(), "epoch")
					if err != nil || n <= last {
						t.Errorf("after %d came %d, %v", last, n, err)
						return
					}
					last = n
					mu.Lock()
					if seen[n] {
						t.Errorf("%d was given twice", n)
					}
					seen[n] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		a := connected(t, m.agent(t, "a"), DialOptions{})
		if _, err := a.Next(within(t), "epoch"); err == nil {
			t.Error("an agent takes a number")
		}
		if _, err := a.Claim(within(t), "x", nil, time.Hour); err == nil {
			t.Error("an agent claims something")
		}
	})
}
