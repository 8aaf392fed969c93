package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
)

// Conn is an agent's connection to a hub, as bus.Dial makes it.
type Conn interface {
	ID() string
	Handle(subject string, f func(bus.Message)) (stop func(), err error)
}

// Options say what an agent lets a leader do.
type Options struct {
	Conn       Conn
	Dir        string        // for logs and files of engines that run
	Processes  bool          // whoever leads may run programs as this user
	Containers deploy.Places // where engines may be started in containers; nil: nowhere
	Log        *slog.Logger

	Watch *Watch // told who holds the node; nil: nobody is
}

// server is an agent that starts engines.
type server struct {
	o       Options
	id      string
	process string
	log     *slog.Logger

	changing sync.Mutex // one holder comes, or goes, at a time
	mu       sync.Mutex
	newest   uint64  // token that was seen
	holder   *holder // nil: nobody
	closed   bool
	rooms    rooms

	work sync.WaitGroup
}

// begin starts work that Serve waits for; nothing is begun once it does.
func (s *server) begin(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Go(f)
	}
}

// Serve starts engines as leaders say, until ctx ends and all that they started has.
func Serve(ctx context.Context, o Options) error {
	s := newServer(o.Conn.ID(), o)
	o.Watch.of(s)
	if _, err := s.sweep(ctx); err != nil {
		s.log.Warn("what an earlier agent may have left in containers could not be ended: it is tried again before the next container is started", "error", err)
	}
	stop, err := s.listen()
	if err != nil {
		return fmt.Errorf("listen to who wants engines: %w", err)
	}
	<-ctx.Done()
	stop()
	s.close()
	return context.Cause(ctx)
}

func newServer(id string, o Options) *server {
	return &server{o: o, id: id, process: rand.Text(), log: cmp.Or(o.Log, slog.New(slog.DiscardHandler))}
}

// listen takes orders until stop is called.
func (s *server) listen() (stop func(), err error) {
	return s.o.Conn.Handle(bus.Do(s.id, words), func(m bus.Message) {
		s.begin(func() { s.answer(m) }) // which may wait: other orders go on
	})
}

// close ends what was started, and waits for it.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.release(nil, errors.New("the agent was stopped"))
	s.work.Wait()
	s.rooms.leave()
}

// answer does what an order says.
func (s *server) answer(m bus.Message) {
	word := m.Subject[strings.Index(m.Subject, ".do.")+len(".do."):]
	var e envelope
	a := answer{Process: s.process}
	err := json.Unmarshal(m.Data, &e)
	if err == nil {
		a.Token = e.Token
		var v any
		if v, err = s.do(word, e); err == nil && v != nil {
			a.Value, err = json.Marshal(v)
		}
	}
	a.Fault = faultOf(err)
	if fenced, ok := errors.AsType[*FencedError](err); ok {
		s.log.Warn("an order was refused", "order", word, "token", e.Token, "why", fenced.Text)
	}
	if m.Reply == nil {
		return
	}
	if err := m.Reply(order.Encode(a)); err != nil {
		s.log.Warn("an answer did not leave", "to", m.Subject, "error", err)
	}
}

// orders are what a holder may want.
var orders = map[string]func(*holder, json.RawMessage) (any, error){
	wordRenew:  func(*holder, json.RawMessage) (any, error) { return nil, nil },
	wordPorts:  taking((*holder).ports),
	wordSpawn:  taking((*holder).spawn),
	wordLog:    taking((*holder).readLog),
	wordStop:   taking((*holder).stop),
	wordReady:  taking((*holder).ready),
	wordRun:    taking((*holder).run),
	wordOutput: taking((*holder).output),
	wordKill:   taking((*holder).killCommand),
	wordOpen:   taking((*holder).open),
	wordRead:   taking((*holder).read),
	wordWrite:  taking((*holder).write),
	wordShut:   taking((*holder).shut),
}

// taking decodes what a method of a holder takes.
func taking[In, Out any](f func(*holder, In) (Out, error)) func(*holder, json.RawMessage) (any, error) {
	return func(h *holder, raw json.RawMessage) (any, error) {
		var in In
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil, fmt.Errorf("read the order: %w", err)
		}
		return f(h, in)
	}
}

func (s *server) do(word string, e envelope) (any, error) {
	if word == wordHold {
		var o holdOrder
		if err := json.Unmarshal(e.Order, &o); err != nil {
			return nil, fmt.Errorf("read the order: %w", err)
		}
		return s.hold(e.Token, o)
	}
	h, err := s.of(e.Token)
	if err != nil {
		return nil, err
	}
	if word == wordLeave {
		s.release(h, errors.New("its holder has left"))
		return nil, nil
	}
	f := orders[word]
	if f == nil {
		return nil, fmt.Errorf("this agent knows no order %q: give leader and agents the same version of perflab", word)
	}
	h.renew()
	return f(h, e.Order)
}

// of is the holder that a token is of.
func (s *server) of(token uint64) (*holder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case token < s.newest:
		return nil, &FencedError{fmt.Sprintf("the order has token %d, and the node was given to a holder with %d since", token, s.newest)}
	case s.holder == nil || s.holder.token != token:
		return nil, &FencedError{fmt.Sprintf("nobody holds the node by token %d: its lease has ended, or the agent was started anew", token)}
	}
	return s.holder, nil
}

// Bounds of the lease that a leader may ask for.
const (
	leastLease = time.Second
	mostLease  = time.Minute
)

// hold gives the node to a new holder, once nothing of an earlier one runs.
func (s *server) hold(token uint64, o holdOrder) (held, error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.Lock()
	if s.holder != nil && s.holder.token == token { // its answer was lost
		h := s.holder
		s.mu.Unlock()
		h.renew()
		return held{h.found}, nil
	}
	if token <= s.newest {
		defer s.mu.Unlock()
		return held{}, &FencedError{fmt.Sprintf("token %d is not above %d, which the node was given away with already", token, s.newest)}
	}
	s.newest = token
	s.mu.Unlock()
	h := &holder{
		s: s, token: token, who: o.Who, study: o.Study, session: o.Session, since: time.Now().UTC(), lease: min(max(o.Lease, leastLease), mostLease),
		engines: map[int]*engine{}, commands: map[int]*command{}, streams: map[int]*stream{},
	}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	h.found = s.replace(nil, fmt.Errorf("the node was given to a holder with token %d", token))
	left, err := s.sweep(context.Background())
	h.found, h.unswept = append(h.found, left...), err
	h.heard = make(chan struct{}, 1)
	s.begin(h.watch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder = h
	s.log.Info("the node has a holder", "who", o.Who, "study", o.Study, "token", token)
	return held{h.found}, nil
}

// release is replace where nobody comes in the holder's place.
func (s *server) release(only *holder, why error) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.replace(only, why)
}

// replace takes the node from its holder (only: if it is this one), and ends what that started.
func (s *server) replace(only *holder, why error) []leftover {
	s.mu.Lock()
	h := s.holder
	if h == nil || only != nil && h != only {
		s.mu.Unlock()
		return nil
	}
	s.holder = nil
	s.mu.Unlock()
	return h.end(why)
}
