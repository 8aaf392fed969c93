package bus

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// door decides who may connect to a hub and what each may do there.
type door struct {
	register *register
	us       speaker
	log      *slog.Logger
	hubKey   string // of the hub's own connection, made anew at each start
	leader   string // public key of the leaders of this machine

	cut       func(client uint64)      // ends a connection; set before anybody connects
	connected func(client uint64) bool // says whether one is there
	account   func() *server.Account   // the one that all are in

	mu    sync.Mutex
	seats map[string]*seat // by member
}

// seat is where a member sits: at one connection of one process.
type seat struct {
	client   uint64
	instance string // of the process
	from     string
	version  string
	replaced []instanceEnd // processes that another one of the same identity has followed
}

type instanceEnd struct {
	instance, by string
	at           time.Time
}

// mostReplaced is how many processes a seat remembers that were replaced: one that comes back after so many
// others is taken for a new one.
const mostReplaced = 64

// Check is asked by the server about each connection before it may do anything.
func (d *door) Check(c server.ClientAuthentication) bool {
	o, from := c.GetOpts(), c.RemoteAddress().String()
	if k := c.Kind(); k != server.CLIENT && k != server.LEAF {
		return false
	}
	if o.Token != "" && c.Kind() == server.CLIENT {
		return d.admitGuest(c, o.Token, from)
	}
	if !proves(o, c.GetNonce()) {
		d.log.Warn("a connection was refused: it does not prove that it has the key it names", "from", from, "key", o.Nkey)
		return false
	}
	if o.Nkey == d.hubKey && c.Kind() == server.CLIENT {
		c.RegisterUser(&server.User{Username: hubID}) // without limits
		return true
	}
	member, ok := d.register.member(o.Nkey)
	if site := c.Kind() == server.LEAF; ok && (site || member.Site) {
		return site && member.Site && d.admitSite(c, member, from)
	}
	s, instance, named := parseConnectionName(o.Name)
	id := cmp.Or(member.ID, leaderID)
	if !ok && o.Nkey != d.leader || !named {
		d.log.Warn("a connection was refused: nobody with this key has joined", "from", from, "key", o.Nkey)
		return false
	}
	if refused := d.refusal(id, s, instance); refused != nil {
		d.log.Warn("a member was refused", "id", id, "name", member.Name, "from", from, "why", refused.Text)
		grant(c, id, refusedRights(id))
		return true
	}
	if id == leaderID {
		grant(c, id, leaderRights())
		return true
	}
	d.sit(id, seat{client: c.GetID(), instance: instance, from: from, version: s.version})
	if d.refusal(id, s, instance) != nil { // revoked meanwhile, or followed already
		grant(c, id, refusedRights(id))
		return true
	}
	grant(c, id, agentRights(id))
	return true
}

// admitSite lets the server of a site in. It is told nothing where it is not welcome: NATS has no words for that.
func (d *door) admitSite(c server.ClientAuthentication, m registeredMember, from string) bool {
	if m.Revoked {
		d.log.Warn("the server of a site was refused: its membership was revoked", "id", m.ID, "name", m.Name, "from", from)
		return false
	}
	d.sit(m.ID, seat{client: c.GetID(), from: from, version: m.Version})
	u := siteRights().user(m.ID)
	u.Account = d.account() // which NATS gives clients by itself, and servers of sites not
	c.RegisterUser(u)
	return true
}

// proves says that a connection has signed the server's nonce with the key it names.
func proves(o *server.ClientOpts, nonce []byte) bool {
	signature, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	return err == nil && len(nonce) > 0 && key.Verify(nonce, signature) == nil
}

// admitGuest lets somebody in who has a token: it may ask to join, and is told there what is wrong with a token
// that was good once. Who guesses learns nothing.
func (d *door) admitGuest(c server.ClientAuthentication, token, from string) bool {
	i, ok := d.register.invited(token)
	if !ok {
		d.log.Warn("a connection was refused: the hub does not know its invitation", "from", from)
		return false
	}
	grant(c, guest(i.short()), guestRights(i.short()))
	return true
}

// grant gives a connection its rights.
func grant(c server.ClientAuthentication, name string, r rights) { c.RegisterUser(r.user(name)) }

// user is how NATS is told of rights.
func (r rights) user(name string) *server.User {
	p := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: r.publish},
		Subscribe: &server.SubjectPermission{Allow: r.subscribe},
	}
	if r.answers {
		p.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: answerWithin}
	}
	return &server.User{Username: name, Permissions: p}
}

// answerWithin is how long an agent may take for an answer.
const answerWithin = 10 * time.Minute

// refusal is why a member is not welcome, nil if it is. Who has no instance yet is not asked for it.
func (d *door) refusal(id string, s speaker, instance string) *RefusedError {
	if m, ok := d.register.named(id); ok && m.Revoked {
		return &RefusedError{Revoked, "the membership of this machine was revoked: if it is to take part again, join by a new invitation"}
	}
	if r := d.us.refuse(s); r != nil {
		return r
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.seats[id]; t != nil {
		if i := slices.IndexFunc(t.replaced, func(e instanceEnd) bool { return e.instance == instance }); i >= 0 {
			return &RefusedError{Replaced, fmt.Sprintf(
				"another process has connected as this agent, from %s at %s: end one of them, or let one machine join by an invitation of its own",
				t.replaced[i].by, t.replaced[i].at.Format(time.TimeOnly))}
		}
	}
	return nil
}

// sit gives a member its seat. The connection that had it is cut: of one process it is what a broken link has
// left, of two the older gives way.
func (d *door) sit(id string, s seat) {
	d.mu.Lock()
	old := d.seats[id]
	if old != nil {
		s.replaced = old.replaced
		if old.instance != s.instance {
			s.replaced = append(s.replaced, instanceEnd{old.instance, s.from, time.Now()})
			s.replaced = s.replaced[max(0, len(s.replaced)-mostReplaced):]
		}
	}
	d.seats[id] = &s
	d.mu.Unlock()
	if old == nil || !d.connected(old.client) {
		return
	}
	if old.instance != s.instance {
		d.log.Warn("two processes have the identity of one agent: the older is cut off", "id", id, "older", old.from, "newer", s.from)
	}
	d.cut(old.client)
}

// leave ends the connection of a member.
func (d *door) leave(id string) {
	d.mu.Lock()
	s := d.seats[id]
	d.mu.Unlock()
	if s != nil {
		d.cut(s.client)
	}
}

// seated is where a member sits now.
func (d *door) seated(id string) (seat, bool) {
	d.mu.Lock()
	s := d.seats[id]
	d.mu.Unlock()
	if s == nil {
		return seat{}, false
	}
	return *s, d.connected(s.client)
}
