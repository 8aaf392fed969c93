package bus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"
)

// Message is one that came.
type Message struct {
	Subject string
	From    string // the ID of the agent that sent it; "leader" for a leader
	Data    []byte
	Reply   func([]byte) error // answers who asked; nil: nobody did
}

// Headers of messages.
const (
	speaksHeader   = "Perflab"          // who speaks: protocol and version
	instanceHeader = "Perflab-Process"  // and which process, on a server that is not perflab's
	reasonHeader   = "Perflab-Refused"  // of an answer: the Reason
	textHeader     = "Perflab-Sentence" // and what the user is told
)

// new makes a message that says who speaks.
func (c *Conn) new(subject string, data []byte) *nats.Msg {
	m := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{speaksHeader: {c.us.String()}}}
	if c.id.outside() && c.id.Role == Agent {
		m.Header[instanceHeader] = []string{c.instance}
	}
	return m
}

// Publish sends a message to whoever listens. While the connection is away it is ErrAway.
func (c *Conn) Publish(subject string, data []byte) error {
	if !c.id.mayPublish(subject) {
		return fmt.Errorf("%s %s may not publish on %q", c.id.Role, c.id.ID, subject)
	}
	return c.failure(subject, c.nats.PublishMsg(c.new(subject, data)))
}

// Flush waits until the hub has all that was published.
func (c *Conn) Flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	return c.failure("flush", c.nats.FlushWithContext(ctx))
}

// Request sends a message and waits for its answer: ErrNobody where nobody listens, ErrAway where the connection breaks before,
// a *RefusedError where the other side does not want this process.
func (c *Conn) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	if !c.id.mayPublish(subject) {
		return nil, fmt.Errorf("%s %s may not publish on %q", c.id.Role, c.id.ID, subject)
	}
	return c.request(ctx, subject, data)
}

func (c *Conn) request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	c.mu.Lock()
	link := c.link
	c.mu.Unlock()
	both, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(link, func() { cancel(ErrAway) })()
	m, err := c.nats.RequestMsgWithContext(both, c.new(subject, data))
	if err != nil {
		if cause := context.Cause(both); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return nil, c.failure(subject, err)
	}
	if reason := m.Header.Get(reasonHeader); reason != "" {
		return nil, c.refused(&RefusedError{Reason(reason), m.Header.Get(textHeader)})
	}
	return m.Data, nil
}

// refused is an answer that does not want this process. One that another has replaced stops for good.
func (c *Conn) refused(r *RefusedError) error {
	if r.Reason == Replaced {
		c.end(r)
	}
	return r
}

// failure says what an error of NATS means here.
func (c *Conn) failure(subject string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrNoResponders):
		err = ErrNobody
	case errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting), errors.Is(err, nats.ErrDisconnected), errors.Is(err, nats.ErrStaleConnection):
		err = ErrAway
	case errors.Is(err, nats.ErrConnectionClosed):
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ended != nil {
			return c.ended
		}
		err = net.ErrClosed
	case errors.Is(err, nats.ErrTimeout):
		err = context.DeadlineExceeded
	}
	return fmt.Errorf("%s: %w", subject, err)
}

// versions say whose messages a handler takes.
type versions bool

const (
	sameVersion versions = false
	anyVersion  versions = true // it says itself what it thinks of another
)

// Handle calls f for each message of a subject, which may have "*" for one part and ">" for the rest, one after the other,
// until stop is called. When it returns, the hub knows. What waits too long is dropped: see DialOptions.Slow.
func (c *Conn) Handle(subject string, f func(Message)) (stop func(), err error) {
	if !c.id.mayHandle(subject) {
		return nil, fmt.Errorf("%s %s may not listen to %q", c.id.Role, c.id.ID, subject)
	}
	return c.subscribe(subject, "", sameVersion, f)
}

// subscribe is Handle for every subject. Of those that share a queue one gets each message.
func (c *Conn) subscribe(subject, queue string, v versions, f func(Message)) (stop func(), err error) {
	take := func(m *nats.Msg) { c.take(m, v, f) }
	s, err := c.nats.QueueSubscribe(subject, queue, take)
	if err != nil {
		return func() {}, c.failure(subject, err)
	}
	if err := s.SetPendingLimits(c.o.Pending, mostWaiting); err != nil {
		return func() {}, c.failure(subject, err)
	}
	c.mu.Lock()
	c.subs[s] = 0
	c.mu.Unlock()
	if err := c.nats.FlushTimeout(connectWithin); err != nil {
		c.unsubscribe(s)
		return func() {}, c.failure(subject, err)
	}
	return func() { c.unsubscribe(s) }, nil
}

// unsubscribe ends a subscription, so that who asks after it hears that nobody is there. An error means that the
// connection is gone, and the subscription with it.
func (c *Conn) unsubscribe(s *nats.Subscription) {
	if s.Unsubscribe() == nil && c.nats.IsConnected() {
		_ = c.nats.FlushTimeout(connectWithin)
	}
}

// take gives a message to its handler, if it comes from who may send it.
func (c *Conn) take(m *nats.Msg, v versions, f func(Message)) {
	from := sender(m.Subject)
	to := Message{Subject: m.Subject, From: from, Data: m.Data}
	if m.Reply != "" {
		to.Reply = func(b []byte) error { return c.reply(m, from, c.new(m.Reply, b)) }
	}
	if v == sameVersion {
		if r := c.suspect(m, from); r != nil {
			c.o.Log.Warn("a message was refused", "subject", m.Subject, "why", r.Text)
			c.refuse(m, from, r)
			return
		}
	}
	f(to)
}

// reply answers who asked. An answer goes to the inbox of the sender: who puts another subject there would have
// this process, which may more, speak for it.
func (c *Conn) reply(m *nats.Msg, from string, answer *nats.Msg) error {
	if !strings.HasPrefix(m.Reply, inbox(from)+".") {
		return fmt.Errorf("%s asks on %q for an answer to %q, which is not its own inbox: it gets none", from, m.Subject, m.Reply)
	}
	return c.failure(m.Reply, c.nats.PublishMsg(answer))
}

func (c *Conn) refuse(m *nats.Msg, from string, r *RefusedError) {
	if m.Reply == "" {
		return
	}
	answer := c.new(m.Reply, nil)
	answer.Header[reasonHeader], answer.Header[textHeader] = []string{string(r.Reason)}, []string{r.Text}
	if err := c.reply(m, from, answer); err != nil {
		c.o.Log.Warn("a refusal was not sent", "to", from, "error", err)
	}
}

// suspect says why a message is not taken, nil if it is.
func (c *Conn) suspect(m *nats.Msg, from string) *RefusedError {
	if said := m.Header.Get(speaksHeader); said != c.us.String() {
		them, _, ok := parseSpeaker(said)
		if !ok {
			return &RefusedError{OtherVersion, "the message does not say which perflab has sent it: use the same version on both sides"}
		}
		if r := c.us.refuse(them); r != nil {
			return r
		}
	}
	if !c.id.outside() || c.id.Role != Leader || from == leaderID {
		return nil
	}
	return c.heard(from, m.Header.Get(instanceHeader))
}

// peer is the process that speaks for an agent on a server that lets several do so.
type peer struct {
	instance string
	replaced []string
}

// heard says whether a process still speaks for its agent: the one that was heard first last. One that another has
// followed is never heard again.
func (c *Conn) heard(agent, instance string) *RefusedError {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peers[agent]
	if p == nil {
		p = &peer{instance: instance}
		c.peers[agent] = p
	}
	if p.instance == instance {
		return nil
	}
	if slices.Contains(p.replaced, instance) {
		return &RefusedError{Replaced, "another process has connected as this agent: end one of them, or give each machine a key of its own"}
	}
	p.replaced = append(p.replaced, p.instance)
	p.replaced = p.replaced[max(0, len(p.replaced)-mostReplaced):]
	p.instance = instance
	return nil
}

// asRefused finds a refusal in an error.
func asRefused(err error) (*RefusedError, bool) { return errors.AsType[*RefusedError](err) }
