package bus

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

var errUnfinished = errors.New("this part of the fleet is not built yet")

// Options say how a hub runs.
type Options struct {
	Dir     string // keys, members, and what NATS keeps
	Listen  string // "host:port", port 0: one that is free; "": none, for this process alone
	Leaves  string // "host:port" where servers of sites connect; "": nowhere
	Leaf    string // an invitation of the hub that this server is a site of; needed once
	Version string // of perflab; "": this program's
	Log     *slog.Logger
}

// Server is a hub: the place where agents and leaders meet.
type Server struct{}

// Start starts a hub.
func Start(o Options) (*Server, error) { return nil, errUnfinished }

// Close ends the hub; its members stay.
func (s *Server) Close() error { return errUnfinished }

// Addr is where agents reach the hub; "" where it does not listen.
func (s *Server) Addr() string { return "" }

// Fingerprint is the SHA-256 of the certificate of the hub's authority, in hexadecimal.
func (s *Server) Fingerprint() string { return "" }

// Invite is what an invitation is for.
type Invite struct {
	Host  string        // by which the new machine reaches the hub; "": an address of this machine
	Lasts time.Duration // 0: an hour
	Site  bool          // for the server of a site, not for an agent
}

// Invite makes a join URL, perflab://HOST:PORT/#TOKEN.FINGERPRINT, whose token is used once, and ends.
func (s *Server) Invite(i Invite) (string, error) { return "", errUnfinished }

// Member is an agent that may connect.
type Member struct {
	ID, Name  string
	Version   string // of perflab when it last connected
	Joined    time.Time
	Revoked   bool
	Connected bool
	From      string // the address of its connection; "": none now
}

// Members are all who ever joined, by name.
func (s *Server) Members() []Member { return nil }

// Revoke takes a membership back and cuts the connection.
func (s *Server) Revoke(id string) error { return errUnfinished }

// Leader is the identity of a leader on this machine, kept in the file leader.json.
func (s *Server) Leader() (Identity, error) { return Identity{}, errUnfinished }

// Dial connects a leader of this process, without a socket.
func (s *Server) Dial(ctx context.Context, o DialOptions) (*Conn, error) { return nil, errUnfinished }

// SlowConsumers is how many connections were cut because they did not read what was sent to them.
func (s *Server) SlowConsumers() int64 { return 0 }

// Join makes a key, trades the token of a join URL for membership, and keeps the identity in dir/identity.json.
func Join(ctx context.Context, url, dir, name string) (Identity, error) {
	return Identity{}, errUnfinished
}
