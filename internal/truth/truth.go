// Package truth is a server that knows when it did what: an OpenAI-compatible
// endpoint that streams made-up tokens on an exact schedule, at as little cost
// as it can, and tells afterwards when each request was whole and when each
// event was sent. A client's figures are compared with that.
//
//	l, err := net.Listen("tcp", "127.0.0.1:0")
//	err = truth.Serve(ctx, l, truth.Params{TTFT: 50 * time.Millisecond, ITL: 20 * time.Millisecond, Tokens: 100})
//
// GET /truth gives what it recorded, POST /truth takes new parameters and
// forgets the record; Remote does both. A request says which it is by the text
// of Prompt in its body, or by a header X-Request-Id that is a number.
//
// Invariants: a send's time is taken just before the send, and stands in the
// content of its events as Unix nanoseconds in 19 digits; dues are multiples
// from one start, so a late send delays none after it; the server's own
// lateness is recorded, so that its faults are not taken for a client's.
//
// On Linux one thread serves all connections by epoll; elsewhere, or on a
// listener that is not TCP, there is a goroutine for each, which is as correct
// and costs more. Deliberately absent: chance (every delay is what was asked
// for), TLS, HTTP/2, pipelined requests, and any model of an engine, which is package sim's.
package truth

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Params say what is sent and when.
type Params struct {
	TTFT   time.Duration `json:"ttft_ns"` // from a request being whole to its first event
	ITL    time.Duration `json:"itl_ns"`  // between the sends of a stream; 0: as fast as they go
	Tokens int           `json:"tokens"`  // events of a stream, one token each but for Pack
	Merge  int           `json:"merge"`   // events in one send; 0: 1
	Bytes  int           `json:"bytes"`   // of an event on the wire, at least; 0: DefaultBytes

	// Slots spreads the streams over the interval between two sends: 0 leaves
	// each where its own request put it, 1 lets all send together, as the
	// steps of an engine's batch do, and n gives the k-th stream the k-th of n
	// parts of the interval.
	Slots int `json:"slots"`

	// Gate holds all streams back until so many requests are whole; TTFT
	// counts from then. 0: none.
	Gate int `json:"gate"`

	// Pack is how many tokens an event carries, which only the usage at the end
	// and the length of its text tell; 0: 1. Alone leaves the first event
	// one token, as engines do that stream every so many.
	Pack  int  `json:"pack,omitzero"`
	Alone bool `json:"alone,omitzero"`

	NoRole bool `json:"no_role,omitempty"` // leave out the event before the first token that only sets the role
}

// DefaultBytes is the size of a chat event as vLLM sends it, HTTP's chunk
// framing included.
const DefaultBytes = 265

const (
	maxTokens = 1 << 20
	maxMerge  = 1 << 10
	maxPack   = 1 << 8
	maxBytes  = 1 << 16
)

// Validate checks the parameters.
func (p Params) Validate() error {
	switch {
	case p.Tokens < 1 || p.Tokens > maxTokens:
		return fmt.Errorf("%d tokens a stream: between 1 and %d are possible", p.Tokens, maxTokens)
	case p.TTFT < 0 || p.ITL < 0:
		return errors.New("a time to first token or between tokens is negative")
	case p.Merge < 0 || p.Merge > maxMerge:
		return fmt.Errorf("%d events in one send: between 1 and %d are possible", p.Merge, maxMerge)
	case p.Pack < 0 || p.Pack > maxPack:
		return fmt.Errorf("%d tokens in one event: between 1 and %d are possible", p.Pack, maxPack)
	case p.Bytes < 0 || p.Bytes > maxBytes:
		return fmt.Errorf("events of %d bytes: at most %d are possible", p.Bytes, maxBytes)
	case p.Slots < 0 || p.Gate < 0:
		return errors.New("a number of slots or of requests to wait for is negative")
	case p.Slots > 0 && p.ITL == 0:
		return errors.New("slots divide the time between two sends, and there is none")
	}
	return nil
}

func (p Params) withDefaults() Params {
	if p.Merge == 0 {
		p.Merge = 1
	}
	if p.Pack == 0 {
		p.Pack = 1
	}
	if p.Bytes == 0 {
		p.Bytes = DefaultBytes
	}
	return p
}

// sends is how many sends a stream has.
func (p Params) sends() int { return (p.Tokens + p.Merge - 1) / p.Merge }

// generated is how many tokens a stream has.
func (p Params) generated() int {
	if p.Alone {
		return (p.Tokens-1)*p.Pack + 1
	}
	return p.Tokens * p.Pack
}

// Prompt is a text by which the server knows the request that brings it.
func Prompt(id int) string { return promptMark + strconv.Itoa(id) }

const promptMark = "truth-id:"

// Truth is what a server knows about the requests since its parameters were
// set. Its times are Unix nanoseconds of its machine's clock.
type Truth struct {
	Params   Params    `json:"params"`
	Stamped  bool      `json:"kernel_stamps"` // Received is the kernel's stamp of a request's last byte, not the time of our read
	Requests []Request `json:"requests"`      // in the order in which they were whole
	Sends    int       `json:"sends"`
	Blocked  int       `json:"blocked"` // sends that found no room in their socket: the client did not read

	// The server's own lateness: when an event was sent, less when it was due.
	LateP50 time.Duration `json:"late_p50_ns"`
	LateP99 time.Duration `json:"late_p99_ns"`
	LateMax time.Duration `json:"late_max_ns"`
}

// Request is the truth about one request.
type Request struct {
	ID       int     `json:"id"`       // -1: it gave none
	Received int64   `json:"received"` // its last byte
	First    int64   `json:"first"`    // first send; 0: none
	Last     int64   `json:"last"`     // last send
	Events   int     `json:"events"`   // sent
	Sends    []int64 `json:"sends,omitempty"`
}

// Model is the one that the server serves; it takes any name.
const Model = "truth"
