package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// standard is the way over net/http.
type standard struct {
	cfg       Config
	url       *url.URL
	header    http.Header
	transport *http.Transport
	buffers   sync.Pool // of *[readSize]byte
	count     count
}

const (
	readSize = 16 << 10

	// Servers commonly drop a connection that was idle for 5 s (uvicorn's
	// default). Ours go first, so that a request never meets the drop.
	idleTimeout = 4 * time.Second

	// A connection reads into 64 KiB unless so many are expected that all
	// buffers together would pass 512 MiB.
	connBuffer    = 64 << 10
	connBufferMin = 4 << 10
	connBufferSum = 512 << 20
)

// newStandard is HTTP/1.1 only, asks for no compression and keeps every
// connection it opened. Proxies come from the environment; the standard rule
// leaves localhost and loopback addresses out.
func newStandard(cfg Config) *standard {
	s := &standard{cfg: cfg, url: cfg.URL, header: cfg.Header.Clone()}
	if s.header == nil {
		s.header = http.Header{}
	}
	// An empty value is not sent; it lets net/http repeat a request on a fresh
	// connection when a kept one turns out to be dead. See replayWindow.
	if _, ok := s.header["Idempotency-Key"]; !ok {
		s.header["Idempotency-Key"] = nil
	}
	size := connBuffer
	if cfg.Concurrency > 0 {
		size = max(connBufferMin, min(connBuffer, connBufferSum/cfg.Concurrency))
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	s.transport = &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           s.dial,
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: cfg.Insecure},
		TLSHandshakeTimeout:   dialTimeout,
		DisableCompression:    true,
		MaxIdleConns:          0, // no limit
		MaxIdleConnsPerHost:   max(cfg.Concurrency, 1<<20),
		IdleConnTimeout:       idleTimeout,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        size,
		WriteBufferSize:       connBuffer,
		Protocols:             protocols,
	}
	s.buffers.New = func() any { return new([readSize]byte) }
	return s
}

// clock is who stamps the reads of the connections that dial opens.
func (s *standard) clock() string {
	if haveKernelStamps() && s.cfg.Dial == nil {
		return Kernel
	}
	return Monotonic
}

func (s *standard) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dial := s.cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	nc, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	s.count.add()
	c := &stamped{Conn: nc}
	if s.cfg.Dial == nil {
		c = stampConn(nc)
	}
	c.done = s.count.drop
	return c, nil
}

// watcher notes the phases of one exchange as net/http goes through them. Its
// methods run in goroutines of net/http.
type watcher struct {
	x     *Exchange
	clock string

	mu       sync.Mutex
	conn     *stamped
	before   int // reads of the connection before this exchange
	begun    time.Time
	dns, tls time.Duration
	wrote    time.Duration
}

func (w *watcher) trace() *httptrace.ClientTrace {
	var phase time.Time
	return &httptrace.ClientTrace{
		GetConn:           func(string) { w.lock(func() { w.begun = time.Now() }) },
		GotConn:           func(i httptrace.GotConnInfo) { w.lock(func() { w.got(i) }) },
		DNSStart:          func(httptrace.DNSStartInfo) { w.lock(func() { phase = time.Now() }) },
		DNSDone:           func(httptrace.DNSDoneInfo) { w.lock(func() { w.dns = time.Since(phase) }) },
		TLSHandshakeStart: func() { w.lock(func() { phase = time.Now() }) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { w.lock(func() { w.tls = time.Since(phase) }) },
		WroteRequest:      func(httptrace.WroteRequestInfo) { w.lock(func() { w.wrote = w.x.now() }) },
	}
}

func (w *watcher) lock(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// got is told of each connection that the request is tried on.
func (w *watcher) got(i httptrace.GotConnInfo) {
	x := w.x
	if x.sent {
		x.Conn.Replaced++
	}
	nc := i.Conn
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	w.conn, _ = nc.(*stamped)
	if w.before = 0; w.conn != nil {
		_, _, w.before, _ = w.conn.last() // of earlier exchanges, and of TLS
	}
	x.Conn.New = !i.Reused
	if x.Conn.New {
		x.Conn.Dial, x.Conn.DNS, x.Conn.TLS = time.Since(w.begun), w.dns, w.tls
	}
	x.Sent, x.sent = x.now(), true
}

// stamp is the instant of the latest read.
func (w *watcher) stamp() Stamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest()
}

func (w *watcher) latest() Stamp {
	x := w.x
	now, wall, reads, ended := time.Now(), int64(0), x.Reads+1, false
	if w.conn != nil {
		now, wall, reads, ended = w.conn.last()
		reads -= w.before
	}
	if reads <= x.Reads { // what is given was read before, or is nothing
		if ended {
			x.Last = max(x.Last, now.Sub(x.Start))
		}
		return Stamp{At: x.Last, Read: int32(max(0, x.Reads-1))}
	}
	st := x.read(now, wall)
	if wall == 0 && w.clock == Kernel {
		x.Coarse++
	}
	x.Reads = max(x.Reads, reads)
	st.Read = int32(x.Reads - 1)
	return st
}

func (s *standard) do(ctx context.Context, x *Exchange) error {
	w := &watcher{x: x, clock: s.clock(), begun: time.Now()}
	req := s.request(httptrace.WithClientTrace(ctx, w.trace()), x)
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		w.lock(func() { x.Wrote = w.wrote })
		if !x.sent {
			x.Sent = w.begun.Sub(x.Start)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	defer resp.Body.Close()
	at := w.stamp()
	x.Sink.Head(resp.StatusCode, resp.Header, at)
	err = s.body(resp.Body, x, w)
	w.lock(func() { x.Wrote = w.wrote })
	switch {
	case err == nil || errors.Is(err, errStop):
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return err
}

func (s *standard) body(r io.Reader, x *Exchange, w *watcher) error {
	buf := s.buffers.Get().(*[readSize]byte)
	defer s.buffers.Put(buf)
	for {
		n, err := r.Read(buf[:])
		at := w.stamp()
		if n > 0 && !x.Sink.Body(buf[:n], at) {
			return errStop
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *standard) request(ctx context.Context, x *Exchange) *http.Request {
	begun := time.Now()
	header := s.header
	if len(x.Fields) > 0 {
		header = header.Clone()
	}
	for _, f := range x.Fields {
		header.Set(f.Name, f.Value)
	}
	req := (&http.Request{
		Method: http.MethodPost, URL: s.url, Host: s.cfg.host(), Header: header,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(x.Body)), ContentLength: int64(len(x.Body)),
	}).WithContext(ctx)
	req.GetBody = func() (io.ReadCloser, error) {
		if time.Since(begun) > replayWindow {
			return nil, errNoReplay
		}
		return io.NopCloser(bytes.NewReader(x.Body)), nil
	}
	return req
}
