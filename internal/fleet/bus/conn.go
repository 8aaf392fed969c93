package bus

import (
	"context"
	"log/slog"
	"time"
)

// DialOptions say how a process takes part. The functions may be nil; they are called one at a time.
type DialOptions struct {
	Version string // of perflab; "": this program's
	Pending int    // messages that may wait for a handler; 0: 8,192 (and 64 MiB)
	Log     *slog.Logger
	Lost    func()                            // the connection broke, and is being made again
	Back    func()                            // and here it is
	Ended   func(error)                       // it comes back no more: a *RefusedError
	Slow    func(subject string, dropped int) // a handler does not keep up: messages of so many were dropped until now
}

// Conn is a connection to a hub, which makes itself anew for as long as it takes.
type Conn struct{}

// Message is one that came.
type Message struct {
	Subject string
	From    string // the ID of the agent that sent it; "leader" for a leader
	Data    []byte
	Reply   func([]byte) error // answers who asked; nil: nobody did
}

// Dial connects. A hub that refuses is a *RefusedError, a wrong one a *PinError; what else is wrong may pass.
func Dial(ctx context.Context, id Identity, o DialOptions) (*Conn, error) { return nil, errUnfinished }

// Close ends the connection.
func (c *Conn) Close() {}

// ID is the member's whose connection this is.
func (c *Conn) ID() string { return "" }

// Publish sends a message to whoever listens. While the connection is away it is ErrAway.
func (c *Conn) Publish(subject string, data []byte) error { return errUnfinished }

// Request sends a message and waits for its answer: ErrNobody where nobody listens, ErrAway where the connection breaks before.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	return nil, errUnfinished
}

// Handle calls f for each message of a subject, which may have "*" for one part and ">" for the rest, one after the other,
// until stop is called. When it returns, the hub knows.
func (c *Conn) Handle(subject string, f func(Message)) (stop func(), err error) {
	return nil, errUnfinished
}

// Dropped is how many messages came faster than handlers took them.
func (c *Conn) Dropped() int { return 0 }

// PutFile brings a file to the hub and says its SHA-256 in hexadecimal. What is there already is not sent.
func (c *Conn) PutFile(ctx context.Context, path string) (digest string, err error) {
	return "", errUnfinished
}

// GetFile fetches a file by its SHA-256. The path leads to all of it, or to nothing.
func (c *Conn) GetFile(ctx context.Context, digest, path string) error { return errUnfinished }

// Lease is something held for a time.
type Lease struct {
	Key      string
	Revision uint64 // the fencing token: a later holder's is higher
}

// Claim takes something that nobody holds, for a time of at least a second: else it is a *HeldError. For leaders.
func (c *Conn) Claim(ctx context.Context, key string, value []byte, ttl time.Duration) (*Lease, error) {
	return nil, errUnfinished
}

// Renew holds on for the time of the claim from now: ErrLost where that had ended.
func (l *Lease) Renew(ctx context.Context) error { return errUnfinished }

// Release lets go.
func (l *Lease) Release(ctx context.Context) error { return errUnfinished }

// Next is a number higher than every one that this hub gave before. For leaders.
func (c *Conn) Next(ctx context.Context, name string) (uint64, error) { return 0, errUnfinished }
