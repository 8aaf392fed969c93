// Package wire carries HTTP/1.1 exchanges with one endpoint and tells when
// their bytes arrived.
//
//	t := wire.New(wire.Config{URL: u, Header: h})
//	x := wire.Exchange{Start: start, Body: body, Sink: sink}
//	err := t.Do(ctx, &x)
//
// There are two ways to the same end. On Linux a plain http endpoint is read by
// an event loop: one goroutine waits for many sockets, takes the bytes of one
// with the instant at which the kernel received them, and feeds the sink in
// place, so that an event of a stream wakes no goroutine and copies nothing.
// Everything else (TLS, proxies, tunnels, other systems) goes over net/http,
// on Linux above connections that read kernel stamps as well.
//
// Invariants: a stamp is taken before a byte of the read is looked at, and all
// that one read brought shares it; stamps of an exchange never decrease; no
// request is sent twice, but for one whose kept connection proved closed before
// a byte of an answer; Do returns soon after its context ends.
//
// Deliberately absent: HTTP/2 (one connection for many streams blurs the
// arrival of each), redirects, compression, bodies of unknown length to send.
package wire

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Config says which endpoint to talk to. URL must be set.
type Config struct {
	URL      *url.URL
	Header   http.Header // of every request, Host for another than the URL's; not changed after New
	Insecure bool        // skip the check of TLS certificates

	// Concurrency is how many exchanges there may be at once, as far as is
	// known: it sizes the buffers of net/http. 0: unknown.
	Concurrency int

	Dial     DialFunc // replaces the network, for tunnels and in-memory servers
	Standard bool     // take net/http although the event loop could do it
}

// host is the one that requests name, as a gateway in front of several needs it.
func (cfg Config) host() string { return cmp.Or(cfg.Header.Get("Host"), cfg.URL.Host) }

// DialFunc opens a connection.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// Clocks that take the stamps of reads.
const (
	Kernel    = "kernel"    // when the packet arrived
	Monotonic = "monotonic" // when the read returned
)

// Stamp is when a read of the answer came, as an offset from Exchange.Start,
// and which one it was, from 0.
type Stamp struct {
	At   time.Duration
	Read int32
}

// Sink takes an answer as it arrives. Its methods are called by one goroutine
// at a time, in order, and never after Do has returned.
type Sink interface {
	// Head is called once, when the last byte of the head is there.
	Head(status int, h http.Header, at Stamp)
	// Body is called with bytes of the body, transfer coding removed; they are
	// valid during the call only. false ends the exchange.
	Body(p []byte, at Stamp) bool
}

// Conn is how an exchange came by its connection.
type Conn struct {
	New      bool          // opened for it
	DNS      time.Duration // of a new one
	Dial     time.Duration // of a new one, from asking to having it: DNS, TCP and TLS
	TLS      time.Duration // of a new one
	Replaced int           // kept ones that proved closed, met before this one
}

// Exchange is one request and what is known of its answer. The caller sets the
// first three fields.
type Exchange struct {
	Start time.Time // all offsets count from it
	Body  []byte    // of the request; not changed and not used after Do
	Sink  Sink

	Conn   Conn
	Sent   time.Duration // just before the request was written
	Wrote  time.Duration // its last byte was given to the kernel
	First  time.Duration // first byte of the answer
	Last   time.Duration // last read, the end of the body included
	Reads  int           // of the answer
	Coarse int           // of them, without a kernel stamp though the clock is Kernel
	sent   bool          // Sent is set
}

func (x *Exchange) now() time.Duration { return time.Since(x.Start) }

// read notes one read of the answer that the kernel stamped at wall (in
// nanoseconds since 1970; 0: it did not) and that returned at now.
func (x *Exchange) read(now time.Time, wall int64) Stamp {
	at := now.Sub(x.Start)
	if wall != 0 {
		switch age := time.Duration(now.UnixNano() - wall); {
		case age < -clockSlack || age > maxAge:
			x.Coarse++ // the wall clock was set while the bytes waited
		case age > 0:
			at -= age
		}
	}
	at = max(at, x.Last, x.Sent)
	if x.Reads == 0 {
		x.First = at
	}
	x.Last = at
	x.Reads++
	return Stamp{At: at, Read: int32(x.Reads - 1)}
}

// Bounds of the time between a packet's arrival and the read of it; outside
// them the wall clock was set.
const (
	clockSlack = time.Millisecond
	maxAge     = time.Minute
)

// Transport talks to one endpoint. It is safe for concurrent use.
type Transport struct {
	std   *standard
	fast  *pool // nil: net/http does everything
	clock string
	keep  io.Closer // see keepStamping
}

// New prepares a transport; it opens no connection.
func New(cfg Config) *Transport {
	t := &Transport{std: newStandard(cfg)}
	if t.clock = t.std.clock(); t.clock == Kernel {
		t.keep = keepStamping()
	}
	if !cfg.Standard && cfg.Dial == nil && cfg.URL.Scheme == "http" && !proxied(cfg.URL) {
		t.fast = newPool(cfg)
	}
	return t
}

func proxied(u *url.URL) bool {
	p, err := http.ProxyFromEnvironment(&http.Request{URL: u})
	return p != nil || err != nil
}

// Clock says who takes the stamps: Kernel or Monotonic.
func (t *Transport) Clock() string { return t.clock }

// HTTP is the net/http side, for questions beside the measurement.
func (t *Transport) HTTP() http.RoundTripper { return t.std.transport }

// Close closes idle connections; exchanges under way go on.
func (t *Transport) Close() {
	t.std.transport.CloseIdleConnections()
	if t.fast != nil {
		t.fast.close()
	}
	if t.keep != nil {
		t.keep.Close() // twice does no harm
	}
}

// Sockets says how many connections were open at most, and how many were
// opened, since the last call.
func (t *Transport) Sockets() (most, opened int) {
	most, opened = t.std.count.take()
	if t.fast != nil {
		m, o := t.fast.count.take()
		most, opened = most+m, opened+o
	}
	return most, opened
}

// Open opens connections until n are idle, so that a burst does not pay for
// them. Only the event loop keeps connections that served no request: elsewhere
// it does nothing.
func (t *Transport) Open(ctx context.Context, n int) error {
	if t.fast == nil {
		return nil
	}
	return t.fast.open(ctx, n)
}

// Do sends the request and gives the answer to the sink until the body ends,
// the sink has enough, or something breaks. A context that ends is reported as
// its cause.
func (t *Transport) Do(ctx context.Context, x *Exchange) error { return t.Start(x).Wait(ctx) }

// Start sends the request if that needs no waiting: over a connection that is
// idle. Else Wait does it.
func (t *Transport) Start(x *Exchange) Started {
	s := Started{t: t, x: x}
	if t.fast != nil {
		s.sent = t.fast.start(x)
	}
	return s
}

// Started is an exchange that has begun.
type Started struct {
	t    *Transport
	x    *Exchange
	sent *sent // nil: nothing was sent yet
}

// Wait returns when the exchange has ended, as Do does.
func (s Started) Wait(ctx context.Context) error {
	if s.t.fast != nil {
		return s.t.fast.do(ctx, s.x, s.sent)
	}
	return s.t.std.do(ctx, s.x)
}

// replayWindow bounds the repetition of a request whose kept connection gave
// EOF or a reset before the first byte of an answer. Within it the server had
// closed an idle connection; later it had the request, and sending it again
// would hide a failure.
const replayWindow = time.Second

var errNoReplay = errors.New("the connection broke before a byte of the answer came")

const dialTimeout = 30 * time.Second
