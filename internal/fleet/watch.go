package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"perflab/internal/field"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
)

// Watch follows what all agents of a hub say, also at work for other leaders. It changes nothing.
type Watch struct {
	l     *Leader
	stops []func()

	mu   sync.Mutex
	seen map[string]*seen
}

// seen is what an agent said last.
type seen struct {
	Agent
	epoch  uint64 // of the load that the reports are of
	report []report
}

// report is how far an agent was.
type report struct {
	at time.Duration // by the leader's clock
	order.Progress
}

// How the pace of a load is found: over the reports of a few seconds, and not from one that is old.
const (
	paceOver  = 3 * time.Second
	paceLeast = time.Second
	paceOld   = 2 * time.Second
)

// remembered is how long an agent that is gone is remembered: a machine that is switched on each day is.
const remembered = 48 * time.Hour

// Watch begins to follow the agents.
func (l *Leader) Watch() (*Watch, error) {
	w := &Watch{l: l, seen: map[string]*seen{}}
	for subject, f := range map[string]func(bus.Message){
		bus.Up("*", order.Here):      w.onHere,
		bus.Up("*", order.Live+".*"): w.onLive,
	} {
		stop, err := l.conn.Handle(subject, f)
		if err != nil {
			w.Close()
			return nil, err
		}
		w.stops = append(w.stops, stop)
	}
	return w, nil
}

// Close stops following.
func (w *Watch) Close() {
	for _, stop := range w.stops {
		stop()
	}
}

func (w *Watch) onHere(m bus.Message) {
	f, err := order.Decode[order.Facts](m.Data)
	if err != nil {
		return // the leader has said so
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.of(m.From)
	s.Agent = Agent{m.From, f, time.Now()}
}

func (w *Watch) onLive(m bus.Message) {
	epoch, err := strconv.ParseUint(m.Subject[strings.LastIndex(m.Subject, ".")+1:], 10, 64)
	if err != nil {
		return // nobody asked for it
	}
	p, err := order.Decode[order.Progress](m.Data)
	if err != nil {
		return // the next one comes soon
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(m.From).tells(epoch, report{w.l.now(), p})
}

// of is what is known of an agent; those that are long gone are forgotten.
func (w *Watch) of(id string) *seen {
	s := w.seen[id]
	if s == nil {
		maps.DeleteFunc(w.seen, func(_ string, s *seen) bool { return !s.Heard.IsZero() && time.Since(s.Heard) > remembered })
		s = &seen{}
		w.seen[id] = s
	}
	return s
}

// tells adds a report.
func (s *seen) tells(epoch uint64, r report) {
	if s.epoch != epoch {
		s.epoch, s.report = epoch, nil
	}
	s.report = slices.DeleteFunc(s.report, func(old report) bool { return r.at-old.at > paceOver })
	s.report = append(s.report, r)
}

// Pace is how far an agent, or all of a load together, is.
type Pace struct {
	order.Progress
	TokensPerS *float64 `json:"tokens_per_s,omitempty"` // that came back over the last seconds; nil: not known
}

// pace is how far the agent is with what it says that it is at; nil: it has not said.
func (s *seen) pace(now time.Duration) *Pace {
	if s.Idle() || s.epoch != s.Facts.Epoch || len(s.report) == 0 {
		return nil
	}
	first, last := s.report[0], s.report[len(s.report)-1]
	p := &Pace{Progress: last.Progress}
	if span := last.at - first.at; span >= paceLeast && now-last.at <= paceOld {
		rate := float64(last.Tokens-first.Tokens) / span.Seconds()
		p.TokensPerS = &rate
	}
	return p
}

// NewInvitation asks for an invitation.
type NewInvitation struct {
	Host  string  `json:"host,omitempty"`    // by which the machine reaches the hub: a name or an address without a port; "": an address of the hub's machine
	Lasts float64 `json:"lasts_s,omitempty"` // seconds, up to 30 days; 0: an hour
}

// Invitation lets one machine join, once. It is a secret until then.
type Invitation struct {
	URL     string    `json:"url"`
	Command string    `json:"command"` // for that machine's shell
	Until   time.Time `json:"until"`
}

// Bounds of an invitation, in seconds.
const (
	usualInvitation = 3600
	mostInvitation  = 30 * 24 * 3600
)

var hostForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

// validate says what of it is wrong. A host becomes part of a command.
func (n NewInvitation) validate() error {
	if n.Host != "" && !hostForm.MatchString(n.Host) && net.ParseIP(n.Host) == nil {
		return field.Errorf("host", "%q is no name and no address of a machine: give it without a port, like lab.example.org", n.Host)
	}
	if !(n.Lasts >= 1 && n.Lasts <= mostInvitation) { // not a number either
		return field.Errorf("lasts_s", "an invitation lasts from 1 second to 30 days")
	}
	return nil
}

// Invite makes an invitation.
func (w *Watch) Invite(ctx context.Context, n NewInvitation) (Invitation, error) {
	n.Lasts = cmp.Or(n.Lasts, usualInvitation)
	if err := n.validate(); err != nil {
		return Invitation{}, err
	}
	lasts := time.Duration(n.Lasts * float64(time.Second))
	until := time.Now().Add(lasts)
	url, err := w.l.Invite(ctx, bus.Invite{Host: n.Host, Lasts: lasts})
	if errors.Is(err, bus.ErrNobody) {
		return Invitation{}, ErrOutside
	}
	if err != nil {
		return Invitation{}, err
	}
	return Invitation{URL: url, Command: "perflab agent --join '" + url + "'", Until: until}, nil
}

// ErrOutside says that nobody can be invited, since the hub is a NATS server outside.
var ErrOutside = errors.New("the fleet meets at an outside NATS server, which lets in who has a key: make keys by perflab fleet accounts")

// ErrStranger says that there is no member with an ID.
var ErrStranger = errors.New("the fleet has no such member: it may have been removed a moment ago")

// Member is a member of the fleet by its ID.
func (w *Watch) Member(ctx context.Context, id string) (bus.Member, error) {
	all, err := w.l.Members(ctx)
	if err != nil {
		return bus.Member{}, err
	}
	i := slices.IndexFunc(all, func(m bus.Member) bool { return m.ID == id && !m.Revoked })
	if i < 0 {
		return bus.Member{}, ErrStranger
	}
	return all[i], nil
}

// Remove takes a membership back.
func (w *Watch) Remove(ctx context.Context, id string) error {
	if _, err := w.Member(ctx, id); err != nil {
		return err
	}
	return w.l.Revoke(ctx, id)
}
