// Package record passes requests on to a server as they are, and writes a workload of what it saw:
// for each request that asks for tokens when it came, how long prompt and answer were, and salted
// hashes of the prompt's blocks, by which a replay has the same shared prefixes. Of the texts nothing
// is kept unless somebody wants it, and of a header never anything but a hash of the session's name.
//
//	rec, err := record.Open("traffic.jsonl", record.Options{})
//	p := &record.Proxy{Target: target, Recorder: rec}
//	err = p.Serve(ctx, listener)
//	summary, err := rec.Close()
//
// Invariants: each client's connection has one of its own to the server, over which its requests go one after
// the other; an answer's bytes go on as they were read, framing included, before the next read; what is
// recorded is looked at beside that, by one goroutine; the bodies of requests that wait for it are
// bounded, and what is beyond is recorded without its blocks, counted.
//
// Deliberately absent: HTTP/2, upgrades to other protocols, several servers, retries (but for a
// connection that the server had closed), caching, headers of its own.
package record

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Proxy passes requests on to one server.
type Proxy struct {
	Target   *url.URL
	Recorder *Recorder
	Dial     func() (net.Conn, error) // reaches the target; nil: over TCP

	mu       sync.Mutex
	clients  map[*client]bool // idle: nothing of a request has come
	stopping bool
	wg       sync.WaitGroup
}

// Grace is how long requests that are under way may take to end when the proxy is told to stop.
const Grace = 30 * time.Second

// ParseTarget reads the address of a server.
func ParseTarget(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("it is no address of a server: write http://HOST:PORT")
	case u.User != nil:
		return nil, errors.New("it has a user or a password: clients send their own, which are passed on")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("it has a query or a fragment: write http://HOST:PORT, or with a path before those of the requests")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// Serve passes requests on until ctx ends, and closes l. Then it waits, up to Grace, for those under way.
func (p *Proxy) Serve(ctx context.Context, l net.Listener) error {
	p.clients = map[*client]bool{}
	if p.Dial == nil {
		p.Dial = dialer(p.Target)
	}
	defer context.AfterFunc(ctx, func() { p.stop(l) })()
	var err error
	for err == nil {
		var conn net.Conn
		if conn, err = l.Accept(); err == nil {
			p.wg.Go(func() { p.serve(conn) })
		} else if ctx.Err() == nil && isTemporary(err) {
			err = nil
			select { // a process that has no file left for a connection gets one when another ends
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	p.stop(l)
	p.wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("accept connections: %w", err)
}

// stop has no new request come, and ends connections that wait for one.
func (p *Proxy) stop(l net.Listener) {
	l.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopping = true
	for c, idle := range p.clients {
		if idle {
			c.conn.Close()
		}
	}
}

// wait waits for what is under way, and ends it when it takes too long.
func (p *Proxy) wait() {
	t := time.AfterFunc(Grace, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for c := range p.clients {
			c.conn.Close()
		}
	})
	defer t.Stop()
	p.wg.Wait()
}

func (p *Proxy) serve(conn net.Conn) {
	c := newClient(p, conn)
	defer c.close()
	if !p.mark(c, false) {
		return
	}
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.clients, c)
	}()
	c.up.connect() // ahead of the first request, which finds out if it could not be
	for c.next() {
	}
}

// mark says whether a client waits for a request. It is false when none is to come any more.
func (p *Proxy) mark(c *client, idle bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients[c] = idle
	return !(p.stopping && idle)
}

func isTemporary(err error) bool {
	e, ok := errors.AsType[interface {
		error
		Temporary() bool
	}](err)
	return ok && e.Temporary()
}
