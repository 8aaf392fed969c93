package wire

import (
	"cmp"
	"context"
	"errors"
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
// and which one it was, from 0. At is the arrival of its newest byte. The bytes
// before that one came up to Span earlier: so long before At the socket was
// last seen empty. 0: not known, as under net/http, where nobody looks at a
// socket between two reads.
type Stamp struct {
	At   time.Duration
	Read int32
	Span time.Duration
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

// Field is a header.
type Field struct{ Name, Value string }

// Exchange is one request and what is known of its answer. The caller sets the
// fields above Conn.
type Exchange struct {
	Start time.Time // all offsets count from it
	Body  []byte    // of the request; not changed and not used after Do
	Sink  Sink

	// Fields are headers of this request alone, of characters that HTTP allows, and none of Config.Header.
	Fields []Field

	Conn   Conn
	Sent   time.Duration // just before the request was written
	Wrote  time.Duration // its last byte was given to the kernel
	First  time.Duration // first byte of the answer
	Last   time.Duration // last read, the end of the body included
	Reads  int           // of the answer
	Coarse int           // of them, without a kernel stamp though the clock is Kernel
	sent   bool          // Sent is set
	packet int64         // the kernel's stamp of the last read, nanoseconds since 1970
	stamp  Stamp         // of that read
}

func (x *Exchange) now() time.Duration { return time.Since(x.Start) }

// read notes one read of the answer that the kernel stamped at wall (in
// nanoseconds since 1970; 0: it did not) and that returned at now.
func (x *Exchange) read(now time.Time, wall int64) Stamp {
	return x.note(now.Sub(x.Start), now.UnixNano(), wall)
}

// note is read with the instant of the return on both clocks, as an offset
// from Start and in nanoseconds since 1970.
func (x *Exchange) note(at time.Duration, now, wall int64) Stamp {
	if wall != 0 {
		switch age := time.Duration(now - wall); {
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

// replayWindow bounds the repetition of a request whose kept connection gave
// EOF or a reset before the first byte of an answer. Within it the server had
// closed an idle connection; later it had the request, and sending it again
// would hide a failure.
const replayWindow = time.Second

var errNoReplay = errors.New("the connection broke before a byte of the answer came")

const dialTimeout = 30 * time.Second
