package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"perflab/internal/durable"
	"perflab/internal/field"
)

// Options say how a hub runs.
type Options struct {
	Dir     string // keys, members, and what NATS keeps
	Listen  string // "host:port", port 0: one that is free; "": none, for this process alone
	Leaves  string // "host:port" where servers of sites connect; "": nowhere
	Leaf    string // an invitation of the hub whose site this server is; needed once, and kept in Dir
	Version string // of perflab; "": this program's
	Log     *slog.Logger
}

// Limits of a hub.
const (
	startWithin = 20 * time.Second
	pingEvery   = 5 * time.Second // so a link that is cut is noticed within three of them
	pingsOut    = 2
	mostPending = 64 << 20 // bytes that wait for a connection which does not read, until it is cut
	mostMessage = 8 << 20
)

// Server is a hub: the place where agents and leaders meet.
type Server struct {
	o           Options
	nats        *server.Server
	natsOptions *server.Options
	door        *door
	ca          *authority
	lock        *os.File
	own         *Conn  // the hub's
	leader      string // seed of the leaders of this machine
	site        bool   // it passes on what its agents and a hub say to each other
	unserve     []func()
}

// Start starts a hub. One directory has one at a time.
func Start(o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, field.Errorf("dir", "the hub needs a directory for its keys and members")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{o: o}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the fleet's hub in %s: %w", o.Dir, err), s.Close())
	}
	return s, nil
}

func (s *Server) start() error {
	if err := s.hold(); err != nil {
		return err
	}
	var err error
	if s.ca, err = openAuthority(s.o.Dir); err != nil {
		return err
	}
	hubSeed, err := newSeed()
	if err != nil {
		return err
	}
	if s.leader, err = s.leaderSeed(); err != nil {
		return err
	}
	if s.door, err = openDoor(s.o, hubSeed, s.leader); err != nil {
		return err
	}
	if s.natsOptions, err = s.options(); err != nil {
		return err
	}
	if s.nats, err = server.NewServer(s.natsOptions); err != nil {
		return err
	}
	s.door.cut = func(client uint64) { _ = s.nats.DisconnectClientByID(client) } // an error: it is gone already
	s.door.connected = func(client uint64) bool {
		return s.nats.GetClient(client) != nil || s.nats.GetLeafNode(client) != nil
	}
	s.door.account = s.nats.GlobalAccount
	s.nats.SetLoggerV2(serverLog{s.o.Log, slog.LevelDebug}, false, false, false) // what it warns of at a start is as it should be here
	s.nats.Start()
	if !s.nats.ReadyForConnections(startWithin) {
		return errors.New("NATS does not come up: is the disk full?")
	}
	s.nats.SetLoggerV2(serverLog{s.o.Log, slog.LevelWarn}, false, false, false)
	if err := s.serve(hubSeed); err != nil {
		return err
	}
	return s.keepLeader()
}

// hold keeps other hubs out of the directory.
func (s *Server) hold() error {
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.o.Dir, "hub.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	switch held, err := durable.Hold(f); {
	case err != nil:
		return errors.Join(err, f.Close())
	case !held:
		return errors.Join(errors.New("another hub uses this directory: end it, or choose another directory"), f.Close())
	}
	s.lock = f
	return nil
}

// leaderSeed is the key of the leaders of this machine, of before or new.
func (s *Server) leaderSeed() (string, error) {
	id, err := LoadLeader(s.o.Dir)
	if notThere(err) {
		return newSeed()
	}
	return id.seed, err
}

func openDoor(o Options, hubSeed, leaderSeed string) (*door, error) {
	hub, err := publicKey(hubSeed)
	if err != nil {
		return nil, err
	}
	leader, err := publicKey(leaderSeed)
	if err != nil {
		return nil, err
	}
	r, err := openRegister(o.Dir)
	if err != nil {
		return nil, err
	}
	return &door{register: r, us: speaks(o.Version), log: o.Log, hubKey: hub, leader: leader, seats: map[string]*seat{}}, nil
}

// options are NATS's.
func (s *Server) options() (*server.Options, error) {
	tls, err := s.ca.server()
	if err != nil {
		return nil, err
	}
	o := &server.Options{
		ServerName: "perflab-" + s.Fingerprint()[:16], DontListen: s.o.Listen == "", NoSigs: true,
		TLSConfig: tls, TLSHandshakeFirst: true, TLSTimeout: 10, AuthTimeout: 10,
		CustomClientAuthentication: s.door, AlwaysEnableNonce: true,
		JetStream: true, StoreDir: s.o.Dir, SyncAlways: true, JetStreamMaxMemory: mostPending,
		DisableJetStreamBanner: true,
		PingInterval:           pingEvery, MaxPingsOut: pingsOut, MaxPending: mostPending, MaxPayload: mostMessage,
		WriteDeadline: 10 * time.Second,
	}
	if err := errors.Join(s.listenForSites(o), s.joinHub(o)); err != nil {
		return nil, err
	}
	if s.o.Listen == "" {
		return o, nil
	}
	o.Host, o.Port, err = splitListen("listen", s.o.Listen)
	return o, err
}

// splitListen takes an address to listen at apart; port 0 is NATS's -1. Whether one can listen there is tried here,
// since NATS would say it to nobody and wait.
func splitListen(path, address string) (string, int, error) {
	host, p, err := net.SplitHostPort(address)
	port, number := strconv.ParseUint(p, 10, 16)
	if err != nil || number != nil {
		return "", 0, field.Errorf(path, "%q is no address to listen at, like 0.0.0.0:7422", address)
	}
	host = cmp.Or(host, "0.0.0.0")
	l, err := net.Listen("tcp", net.JoinHostPort(host, p))
	if err != nil {
		return "", 0, field.Errorf(path, "cannot listen at %s: %v", address, err)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, l.Close()
	}
	return host, int(port), l.Close()
}

// serve connects the hub to itself and answers what members ask of it.
func (s *Server) serve(seed string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	me := Identity{ID: hubID, Name: hubID, Role: Leader, seed: seed, local: s.nats}
	own, err := dial(ctx, me, DialOptions{Version: s.o.Version, Log: s.o.Log})
	if err != nil {
		return fmt.Errorf("connect the hub to itself: %w", err)
	}
	s.own = own
	store := depot{own}
	if err := store.makeStores(ctx, roomForFiles(s.nats.JetStreamConfig().MaxStore)); err != nil {
		return err
	}
	if err := store.makeRoom(ctx, 0); err != nil { // the disk may have less than before
		return err
	}
	for subject, f := range map[string]func(Message){hellos + "*": s.answerHello, joins + "*": s.answerJoin} {
		stop, err := own.subscribe(subject, "", anyVersion, f)
		if err != nil {
			return err
		}
		s.unserve = append(s.unserve, stop)
	}
	if s.site {
		return nil // the hub has the files
	}
	serve, err := store.serveFiles()
	take, err2 := store.takeFiles(filepath.Join(s.o.Dir, "uploads"))
	s.unserve = append(s.unserve, serve, take)
	return errors.Join(err, err2)
}

// keepLeader writes the identity of the leaders of this machine, who reach the hub over loopback if it is there.
func (s *Server) keepLeader() error {
	id, err := s.Leader()
	if err != nil {
		return err
	}
	return id.keep(filepath.Join(s.o.Dir, leaderFile))
}

// Close ends the hub; its members stay.
func (s *Server) Close() error {
	for _, stop := range s.unserve {
		stop()
	}
	if s.own != nil {
		s.own.Close()
	}
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	if s.lock == nil {
		return nil
	}
	err := s.lock.Close()
	s.lock = nil
	return err
}

// Addr is where agents reach the hub; "" where it does not listen.
func (s *Server) Addr() string {
	if s.o.Listen == "" || s.nats.Addr() == nil {
		return ""
	}
	return s.nats.Addr().String()
}

// Fingerprint is the SHA-256 of the certificate of the hub's authority, in hexadecimal.
func (s *Server) Fingerprint() string { return s.ca.fingerprint() }

// Member is an agent that may connect, or that could once.
type Member struct {
	ID, Name  string
	Version   string // of perflab when it last connected, or joined
	Joined    time.Time
	Revoked   bool
	Site      bool // the server of a site
	Connected bool
	From      string // the address of its connection; "": none now
}

// Members are all who ever joined, by name.
func (s *Server) Members() []Member {
	var all []Member
	for _, r := range s.door.register.all() {
		m := Member{ID: r.ID, Name: r.Name, Version: r.Version, Joined: r.Joined, Revoked: r.Revoked, Site: r.Site}
		if seat, here := s.door.seated(r.ID); here {
			m.Connected, m.From, m.Version = true, seat.from, seat.version
		}
		all = append(all, m)
	}
	return all
}

// Revoke takes a membership back and cuts the connection.
func (s *Server) Revoke(id string) error {
	if err := s.door.register.revoke(id); err != nil {
		return err
	}
	s.door.leave(id)
	return nil
}

// Leader is the identity of a leader on this machine, kept in the file leader.json.
func (s *Server) Leader() (Identity, error) {
	id := Identity{ID: leaderID, Name: leaderID, Role: Leader, seed: s.leader, fingerprint: s.Fingerprint(), local: s.nats}
	id.Name, _ = os.Hostname() // a name for people
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return id, nil // it does not listen
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	id.Addr = net.JoinHostPort(host, port)
	return id, nil
}

// Dial connects a leader of this process, without a socket.
func (s *Server) Dial(ctx context.Context, o DialOptions) (*Conn, error) {
	id, err := s.Leader()
	if err != nil {
		return nil, err
	}
	return Dial(ctx, id, o)
}

// SlowConsumers is how many connections were cut because they did not read what was sent to them.
func (s *Server) SlowConsumers() int64 { return s.nats.NumSlowConsumers() }

// serverLog gives what NATS logs to slog. What the server traces, passwords among it, is not asked for.
type serverLog struct {
	log      *slog.Logger
	warnings slog.Level // as what its warnings appear
}

func (l serverLog) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "nats: "+fmt.Sprintf(format, v...))
}

func (l serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l serverLog) Warnf(format string, v ...any)   { l.say(l.warnings, format, v) }
func (l serverLog) Errorf(format string, v ...any)  { l.say(slog.LevelWarn, format, v) }
func (l serverLog) Fatalf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l serverLog) Debugf(string, ...any)           {}
func (l serverLog) Tracef(string, ...any)           {}
