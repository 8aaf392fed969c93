package bus

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"perflab/internal/input"
)

// DialOptions say how a process takes part. The functions may be nil; they are called one at a time.
type DialOptions struct {
	Version string // of perflab; "": this program's
	Pending int    // messages that may wait for a handler; 0: 8,192 (and at most 64 MiB)
	Log     *slog.Logger
	Lost    func()                            // the connection broke, and is being made again
	Back    func()                            // and here it is
	Ended   func(error)                       // it comes back no more: a *RefusedError says why
	Slow    func(subject string, dropped int) // a handler does not keep up: so many messages were dropped until now
}

// Conn is a connection to a hub, which makes itself anew for as long as it takes.
type Conn struct {
	id       Identity
	o        DialOptions
	us       speaker
	instance string // of this process
	nats     *nats.Conn
	js       jetstream.JetStream

	wrong atomic.Pointer[PinError] // of the last try

	uploading sync.Mutex // one file of an agent comes at a time

	mu      sync.Mutex
	link    context.Context // ends when the connection breaks
	unlink  context.CancelFunc
	ended   error                      // why it comes back no more
	closing bool                       // Close was called
	subs    map[*nats.Subscription]int // messages that each dropped
	peers   map[string]*peer           // of an outside server: who speaks for each agent
	stops   []func()                   // what the connection serves by itself
}

// Limits of a connection.
const (
	connectWithin  = 10 * time.Second
	answerHelloIn  = 10 * time.Second
	defaultPending = 8192
	mostWaiting    = 64 << 20 // bytes that may wait for a handler
	firstPause     = 100 * time.Millisecond
	longestPause   = time.Second
)

// Dial connects. A hub that refuses is a *RefusedError, a wrong one a *PinError; what else is wrong may pass.
func Dial(ctx context.Context, id Identity, o DialOptions) (*Conn, error) {
	c, err := dial(ctx, id, o)
	if err != nil {
		return nil, err
	}
	if err = c.greet(ctx); err == nil && id.outside() && id.Role == Leader {
		err = c.standIn(ctx)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// standIn does for an outside server what an embedded hub does for itself.
func (c *Conn) standIn(ctx context.Context) error {
	if err := (depot{c}).makeStores(ctx, 0); err != nil {
		return err
	}
	serve, err := depot{c}.serveFiles()
	take, err2 := depot{c}.takeFiles(filepath.Join(os.TempDir(), "perflab-fleet-"+c.instance))
	c.mu.Lock()
	c.stops = append(c.stops, serve, take)
	c.mu.Unlock()
	return errors.Join(err, err2)
}

// dial connects and asks nothing.
func dial(ctx context.Context, id Identity, o DialOptions) (*Conn, error) {
	key, err := id.key()
	if err != nil {
		return nil, fmt.Errorf("the key of %v: %w", id, err)
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	return connect(ctx, id, o, nats.Nkey(public, key.Sign), nats.MaxReconnects(-1))
}

// dialGuest connects one that has an invitation only.
func dialGuest(ctx context.Context, id Identity, token string) (*Conn, error) {
	c, err := connect(ctx, id, DialOptions{}, nats.Token(token), nats.NoReconnect())
	if r, ok := asRefused(err); ok {
		r.Reason, r.Text = errNoInvitation.Reason, errNoInvitation.Text
	}
	return c, err
}

func connect(ctx context.Context, id Identity, o DialOptions, more ...nats.Option) (*Conn, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Pending = cmp.Or(o.Pending, defaultPending)
	instance := make([]byte, 8)
	_, _ = rand.Read(instance) // never fails
	c := &Conn{id: id, o: o, us: speaks(o.Version), instance: hex.EncodeToString(instance),
		subs: map[*nats.Subscription]int{}, peers: map[string]*peer{}}
	c.link, c.unlink = context.WithCancel(context.Background())
	options, err := c.options(ctx)
	if err != nil {
		return nil, err
	}
	c.nats, err = nats.Connect("nats://"+id.Addr, append(options, more...)...)
	if err != nil {
		return nil, c.connectError(ctx, err)
	}
	if c.js, err = jetstream.New(c.nats); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// options are NATS's for this connection.
func (c *Conn) options(ctx context.Context) ([]nats.Option, error) {
	within := connectWithin
	if d, ok := ctx.Deadline(); ok {
		within = max(time.Millisecond, min(within, time.Until(d)))
	}
	all := []nats.Option{
		nats.Name(connectionName(c.us, c.instance)), nats.CustomInboxPrefix(inbox(c.id.ID)), nats.Timeout(within),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut), nats.NoEcho(),
		nats.CustomReconnectDelay(pause), nats.IgnoreDiscoveredServers(),
		nats.ReconnectBufSize(-1), // what cannot be sent now is an error: a start that comes late would be worse than none
		nats.DisconnectErrHandler(c.onLost), nats.ReconnectHandler(c.onBack), nats.ClosedHandler(c.onClosed), nats.ErrorHandler(c.onError),
		nats.SetCustomDialer(&dialer{first: ctx, within: within}),
	}
	switch {
	case c.id.local != nil:
		return append(all, nats.InProcessServer(c.id.local)), nil
	case !c.id.outside():
		return append(all, nats.Secure(pinned(c.id.Addr, c.id.fingerprint, c.wrong.Store)), nats.TLSHandshakeFirst()), nil
	case c.id.plain:
		return all, nil
	}
	trust, err := c.id.trust()
	return append(all, nats.Secure(trust)), err
}

// trust is the TLS for an outside server.
func (i Identity) trust() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if i.ca == "" {
		return config, nil
	}
	b, err := input.File(i.ca, mostIdentity)
	if err != nil {
		return nil, err
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s has no certificate in PEM", i.ca)
	}
	return config, nil
}

// pause is how long a connection waits before it is tried again: half to all of a time that grows, so that
// those of a hundred agents do not come at one instant.
func pause(tries int) time.Duration {
	longest := min(firstPause<<min(tries, 10), longestPause)
	return longest/2 + mathrand.N(longest/2)
}

// dialer opens sockets. The first connection ends with the context of its caller.
type dialer struct {
	first  context.Context // given up once the first socket is there
	within time.Duration
	mu     sync.Mutex
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	ctx := d.first
	d.first = nil
	d.mu.Unlock()
	if ctx == nil {
		ctx = context.Background()
	}
	return (&net.Dialer{Timeout: d.within}).DialContext(ctx, network, address)
}

// connectError says why there is no connection.
func (c *Conn) connectError(ctx context.Context, err error) error {
	switch wrong := c.wrong.Load(); {
	case wrong != nil:
		return wrong
	case errors.Is(err, nats.ErrAuthorization):
		return &RefusedError{Unknown, fmt.Sprintf("the hub at %s does not know this machine: join by a new invitation", c.id.Addr)}
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.Is(err, nats.ErrNoServers):
		err = errors.New("nobody answers there: is the hub running, and no firewall between?")
	}
	return fmt.Errorf("connect to the hub at %s: %w", c.id.Addr, err)
}

// greet asks an embedded hub whether this process is welcome. An outside server has nobody to ask: there the
// versions are told with each message.
func (c *Conn) greet(ctx context.Context) error {
	if c.id.outside() || c.id.ID == hubID {
		return nil
	}
	b, err := json.Marshal(hello{c.us.version, c.us.protocol, c.instance})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerHelloIn)
	defer cancel()
	answer, err := c.request(ctx, hellos+c.id.ID, b)
	if err != nil {
		return fmt.Errorf("greet the hub at %s: %w", c.id.Addr, err)
	}
	var a joined
	if err := json.Unmarshal(answer, &a); err != nil {
		return fmt.Errorf("greet the hub at %s: its answer: %w", c.id.Addr, err)
	}
	if a.Reason != "" {
		return &RefusedError{a.Reason, a.Text}
	}
	return nil
}

func (c *Conn) onLost(*nats.Conn, error) {
	c.mu.Lock()
	c.unlink()
	quiet := c.closing || c.ended != nil
	c.mu.Unlock()
	if !quiet && c.o.Lost != nil {
		c.o.Lost()
	}
}

func (c *Conn) onBack(*nats.Conn) {
	c.mu.Lock()
	c.link, c.unlink = context.WithCancel(context.Background())
	c.mu.Unlock()
	for tries := 0; ; tries++ {
		err := c.greet(context.Background())
		if r, ok := asRefused(err); ok {
			c.end(r)
			return
		}
		if err == nil {
			break
		}
		if !c.nats.IsConnected() {
			return // it comes back again
		}
		c.o.Log.Warn("the connection to the hub is back, and the hub does not answer", "error", err)
		time.Sleep(pause(tries)) // whoever is not welcome any more must hear of it
	}
	if c.o.Back != nil {
		c.o.Back()
	}
}

// end gives the connection up.
func (c *Conn) end(why error) {
	c.mu.Lock()
	first := c.ended == nil
	if first {
		c.ended = why
	}
	c.mu.Unlock()
	if first {
		c.o.Log.Warn("the connection to the hub has ended", "why", why)
		c.nats.Close()
	}
}

// onClosed is called when NATS gives a connection up, which it does where the server refuses its key twice.
func (c *Conn) onClosed(*nats.Conn) {
	c.mu.Lock()
	c.unlink()
	if c.ended == nil && !c.closing {
		c.ended = &RefusedError{Unknown, fmt.Sprintf("the hub at %s does not know this machine any more: join by a new invitation", c.id.Addr)}
	}
	why := c.ended
	c.mu.Unlock()
	if why != nil && c.o.Ended != nil {
		c.o.Ended(why)
	}
}

// onError hears what goes wrong beside: messages that are dropped, and what the server does not allow.
func (c *Conn) onError(_ *nats.Conn, s *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		c.o.Log.Debug("the hub does not allow what was tried", "error", err) // the hub's log has who tried what; one that is refused hears why
		return
	}
	if s == nil || !errors.Is(err, nats.ErrSlowConsumer) {
		c.o.Log.Warn("the hub says that something was wrong", "error", err)
		return
	}
	c.mu.Lock()
	if dropped, err := s.Dropped(); err == nil && c.subs[s] < dropped {
		c.subs[s] = dropped
	}
	dropped := c.subs[s]
	c.mu.Unlock()
	c.o.Log.Warn("messages come faster than they are taken, and are dropped", "subject", s.Subject, "dropped", dropped)
	if c.o.Slow != nil {
		c.o.Slow(s.Subject, dropped)
	}
}

// Dropped is how many messages came faster than handlers took them.
func (c *Conn) Dropped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := 0
	for s, before := range c.subs {
		if now, err := s.Dropped(); err == nil {
			before = max(before, now)
		}
		all += before
	}
	return all
}

// Close ends the connection. What was published is sent before, if the connection is there.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closing = true
	stops := c.stops
	c.stops = nil
	c.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
	if c.nats.IsConnected() {
		_ = c.nats.FlushTimeout(time.Second) // nothing more can be done for what does not go
	}
	c.nats.Close()
}

// ID is the member's whose connection this is.
func (c *Conn) ID() string { return c.id.ID }

// Connected says whether the connection is there now.
func (c *Conn) Connected() bool { return c.nats.IsConnected() }
