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
	"context"
	"io"
	"net/http"
	"net/url"
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
