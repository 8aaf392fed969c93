package fleet

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
)

// Hub is the place where agents and leaders meet, embedded in this process: it lets leaders invite
// machines, and see and remove those that joined.
type Hub struct {
	*bus.Server
	conn  *bus.Conn // of who leads here
	own   *bus.Conn // that answers: a connection does not hear what it says itself
	stops []func()
}

// Folder is the hub's directory in that of a server's own things.
const Folder = "fleet"

// What leaders ask a hub.
const (
	askInvite  = "fleet.hub.invite"
	askMembers = "fleet.hub.members"
	askRevoke  = "fleet.hub.revoke"
)

// OpenHub starts a hub.
func OpenHub(ctx context.Context, o bus.Options) (*Hub, error) {
	s, err := bus.Start(o)
	if err != nil {
		return nil, err
	}
	h := &Hub{Server: s}
	for _, c := range []**bus.Conn{&h.conn, &h.own} {
		if err == nil {
			*c, err = s.Dial(ctx, bus.DialOptions{Version: o.Version, Log: o.Log})
		}
	}
	if err == nil {
		err = h.serve(o.Log)
	}
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("open the fleet's hub: %w", err)
	}
	return h, nil
}

// Conn is a leader's connection within this process.
func (h *Hub) Conn() *bus.Conn { return h.conn }

func (h *Hub) serve(log *slog.Logger) error {
	for subject, f := range map[string]func([]byte) (any, error){
		askInvite: func(b []byte) (any, error) {
			i, err := order.Decode[bus.Invite](b)
			if err != nil {
				return nil, err
			}
			return h.Invite(i)
		},
		askMembers: func([]byte) (any, error) { return h.Members(), nil },
		askRevoke: func(b []byte) (any, error) {
			id, err := order.Decode[string](b)
			if err != nil {
				return nil, err
			}
			return nil, h.Revoke(id)
		},
	} {
		stop, err := h.own.Handle(subject, func(m bus.Message) {
			v, err := f(m.Data)
			if m.Reply == nil {
				return
			}
			if err := m.Reply(order.Answer(v, err)); err != nil && log != nil {
				log.Warn("an answer did not leave", "to", subject, "error", err)
			}
		})
		if err != nil {
			return err
		}
		h.stops = append(h.stops, stop)
	}
	return nil
}

// Close ends the hub; its members stay.
func (h *Hub) Close() error {
	for _, stop := range h.stops {
		stop()
	}
	for _, c := range []*bus.Conn{h.conn, h.own} {
		if c != nil {
			c.Close()
		}
	}
	return h.Server.Close()
}

// hubAnswers is how long a hub may take.
const hubAnswers = 10 * time.Second

// Invite asks the hub for the URL by which a machine joins.
func (l *Leader) Invite(ctx context.Context, i bus.Invite) (string, error) {
	return askHub[string](ctx, l, askInvite, i)
}

// Members are all agents that ever joined.
func (l *Leader) Members(ctx context.Context) ([]bus.Member, error) {
	return askHub[[]bus.Member](ctx, l, askMembers, struct{}{})
}

// Revoke takes a membership back.
func (l *Leader) Revoke(ctx context.Context, id string) error {
	_, err := askHub[struct{}](ctx, l, askRevoke, id)
	return err
}

func askHub[T any](ctx context.Context, l *Leader, subject string, v any) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, hubAnswers)
	defer cancel()
	return order.Ask[T](ctx, l.conn, subject, v)
}
