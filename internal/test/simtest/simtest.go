// Package simtest starts a simulated engine on an in-memory listener for the
// tests of other packages. It works inside a synctest bubble, where a whole
// benchmark takes no time and every stamp is exact.
//
//	e := simtest.Start(t, cfg, simtest.Options{})
//	resp, err := e.Client.Get(e.URL + "/v1/models")
package simtest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"perflab/internal/engine"
	"perflab/internal/sim"
)

// Options are passed to the engine as they are; the zero value is ready at
// once and logs nothing.
type Options struct {
	Core   sim.Options
	Server sim.ServerOptions
}

// Engine is a running simulated engine.
type Engine struct {
	URL      string
	Listener *Listener
	Client   *http.Client // reaches URL, and nothing else
	Server   *sim.Server
	stop     context.CancelCauseFunc
}

// Start runs an engine until the test ends.
func Start(t testing.TB, cfg engine.Config, o Options) *Engine {
	t.Helper()
	core, err := sim.New(cfg, o.Core)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	l := Listen()
	transport := &http.Transport{DialContext: l.DialContext, MaxIdleConnsPerHost: 1 << 12}
	e := &Engine{URL: "http://sim.test", Listener: l, Client: &http.Client{Transport: transport}, Server: sim.NewServer(core, o.Server), stop: stop}
	hs := &http.Server{Handler: e.Server}
	var wg sync.WaitGroup
	wg.Go(func() { e.Server.Run(ctx) })
	wg.Go(func() { hs.Serve(l) })
	t.Cleanup(func() {
		stop(errors.New("the test has ended"))
		transport.CloseIdleConnections()
		hs.Close()
		wg.Wait()
	})
	for o.Server.StartupDelay == 0 { // ready in a moment
		resp, err := e.Client.Get(e.URL + "/health")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return e
}

// Kill ends the engine as a crash does: streams break, nothing answers.
func (e *Engine) Kill() {
	e.stop(errors.New("killed by the test"))
	e.Listener.Close()
}

// Listener accepts in-memory connections.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Listen makes a listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept and DialContext fail.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is a name and no address.
func (l *Listener) Addr() net.Addr { return addr{} }

// DialContext connects to the listener, whatever the address; it fits
// http.Transport.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "sim.test:80" }
