package guard

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"perflab/internal/field"
)

// Listen opens the address of the options, with TLS where they ask for it.
func (g *Guard) Listen() (net.Listener, error) {
	l, err := net.Listen("tcp", g.o.Listen)
	if err != nil {
		return nil, field.Errorf("listen", "%v", err)
	}
	// What a name stands for is known only now: localhost can be anything.
	if at, ok := l.Addr().(*net.TCPAddr); g.needsLoopback() && (!ok || !at.IP.IsLoopback()) {
		return nil, errors.Join(field.Errorf("listen", "%s is %s here, which others can reach: give 127.0.0.1", g.o.Listen, l.Addr()), l.Close())
	}
	if g.certs == nil {
		return l, nil
	}
	return g.secured(l), nil
}

// secured is a listener with TLS.
func (g *Guard) secured(l net.Listener) net.Listener {
	return tls.NewListener(l, &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.certs.current(), nil },
	})
}

// needsLoopback says that the server may not be reached by others.
func (g *Guard) needsLoopback() bool { return g.Open() || !g.Secure() }

// largestHeader bounds the header of a request. A share link of many ids is the longest path.
const largestHeader = 96 << 10

// Server is a server with the limits of the options. It sets no bound for a whole request: Handler
// bounds how long a client sends nothing or takes nothing, so that event streams go on. They end
// when it is told to shut down.
func (g *Guard) Server(h http.Handler) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: g.o.Limits.Header,
		IdleTimeout:       g.o.Limits.Idle,
		MaxHeaderBytes:    largestHeader,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: g.o.Limits.Streams, SendPingTimeout: g.o.Limits.Stalled, PingTimeout: g.o.Limits.Stalled},
	}
	s.RegisterOnShutdown(g.stop)
	return s
}

// closing is how long requests have to end when a server is told to.
const closing = 5 * time.Second

// Serve serves until the context ends. Event streams end with it; other requests have some seconds more.
func (g *Guard) Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := g.Server(h)
	base := context.WithoutCancel(ctx)
	s.BaseContext = func(net.Listener) context.Context { return base }
	stopped := make(chan error, 1) // one: nobody may be there to take it
	stop := context.AfterFunc(ctx, func() {
		wait, cancel := context.WithTimeout(base, closing)
		defer cancel()
		stopped <- s.Shutdown(wait)
	})
	err := s.Serve(l)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(fmt.Errorf("serve on %s: %w", l.Addr(), err), s.Close())
	}
	return errors.Join(<-stopped, s.Close())
}
