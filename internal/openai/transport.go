package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// DialFunc opens a connection.
type DialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

const (
	dialTimeout = 30 * time.Second

	// Servers commonly drop a connection that was idle for 5 s (uvicorn's
	// default). Ours go first, so that a request never meets the drop.
	idleTimeout = 4 * time.Second

	// A connection reads into 64 KiB unless so many are expected that all
	// buffers together would pass 512 MiB.
	connBuffer    = 64 << 10
	connBufferMin = 4 << 10
	connBufferSum = 512 << 20
)

// newTransport is HTTP/1.1 only, asks for no compression and keeps every
// connection it opened. Proxies come from the environment; the standard rule
// leaves localhost and loopback addresses out.
func newTransport(cfg Config) *http.Transport {
	dial := cfg.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	size := connBuffer
	if cfg.Concurrency > 0 {
		size = max(connBufferMin, min(connBuffer, connBufferSum/cfg.Concurrency))
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dial,
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
}

// replayWindow bounds the transport's own repetition of a request whose kept
// connection gave EOF or a reset before the first byte of an answer. Within it
// the server had closed an idle connection; later it had the request, and
// sending it again would hide a failure.
const replayWindow = time.Second

var errNoReplay = errors.New("the connection broke before a byte of the answer came")
