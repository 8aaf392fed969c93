package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"perflab/internal/field"
	"perflab/internal/input"
)

// Invite is what an invitation is for.
type Invite struct {
	Host  string        // by which the new machine reaches the hub; "": an address of this machine
	Lasts time.Duration // 0: an hour
	Site  bool          // for the server of a site, not for an agent
}

// Invite makes a join URL, perflab://HOST:PORT/#TOKEN.FINGERPRINT, whose token is used once, and ends.
func (s *Server) Invite(i Invite) (string, error) {
	listen, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return "", field.Errorf("listen", "the hub listens at no address, so nobody can join: give it one, like 0.0.0.0:7422")
	}
	if err := s.inviteSite(i); err != nil {
		return "", err
	}
	if i.Lasts < 0 {
		return "", field.Errorf("lasts", "an invitation must last some time, like an hour")
	}
	host := cmp.Or(i.Host, hostFor(listen))
	token, err := s.door.register.invite(cmp.Or(i.Lasts, time.Hour), i.Site)
	if err != nil {
		return "", err
	}
	return joinURL(net.JoinHostPort(host, port), token, s.Fingerprint()), nil
}

func joinURL(addr, token, fingerprint string) string {
	u := url.URL{Scheme: "perflab", Host: addr, Path: "/", Fragment: token + "." + fingerprint}
	return u.String()
}

// hostFor is an address by which other machines may reach this one: where it listens, or if that is everywhere
// the first that is not of this machine alone.
func hostFor(listen string) string {
	if ip := net.ParseIP(listen); ip == nil || !ip.IsUnspecified() {
		return listen
	}
	all, _ := net.InterfaceAddrs() // none: the machine's name is left
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "127.0.0.1"
}

// place is what a join URL says.
type place struct{ addr, token, fingerprint string }

var (
	tokenForm       = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	fingerprintForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// parseJoin reads a join URL. Its errors do not show it: it has a secret.
func parseJoin(text string) (place, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "perflab" {
		return place{}, field.Errorf("join", "that is no join URL: it must look like perflab://HOST:PORT/#TOKEN.FINGERPRINT, as the hub printed it")
	}
	token, fingerprint, _ := strings.Cut(u.Fragment, ".")
	if host, port, err := net.SplitHostPort(u.Host); err != nil || host == "" || port == "" || !tokenForm.MatchString(token) || !fingerprintForm.MatchString(fingerprint) {
		return place{}, field.Errorf("join", "the join URL is not whole: it must look like perflab://HOST:PORT/#TOKEN.FINGERPRINT, in quotes so that the shell keeps what is after #")
	}
	return place{u.Host, token, fingerprint}, nil
}

// joining is what somebody with an invitation says.
type joining struct {
	Key       string `json:"key"`
	Name      string `json:"name"`
	Version   string `json:"version"`
	Protocol  int    `json:"protocol"`
	Site      bool   `json:"site,omitempty"`
	Signature []byte `json:"signature"` // of the invitation by the key
}

// joined is the hub's answer.
type joined struct {
	ID     string `json:"id,omitempty"`
	Name   string `json:"name,omitempty"`
	Sites  string `json:"sites,omitempty"` // port for servers of sites
	Reason Reason `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"`
}

// signedText is what proves that who joins has the key.
func signedText(hash string) []byte { return []byte("perflab joins " + hash) }

// Join makes a key, trades the token of a join URL for membership, and keeps the identity in dir/identity.json.
// Where it was cut off, or has joined by this URL before, it goes on with the key it has: that is the same member.
func Join(ctx context.Context, joinURL, dir, name string) (Identity, error) {
	return joinAs(ctx, joinURL, dir, name, Agent)
}

// file is where an identity is kept.
func (r Role) file() string {
	return map[Role]string{Agent: identityFile, Leader: leaderFile, Site: siteFile}[r]
}

func joinAs(ctx context.Context, joinURL, dir, name string, role Role) (Identity, error) {
	p, err := parseJoin(joinURL)
	if err != nil {
		return Identity{}, err
	}
	if name == "" || len(name) > 200 {
		return Identity{}, field.Errorf("name", "a member needs a name of up to 200 bytes")
	}
	path := filepath.Join(dir, role.file())
	old, err := load(path)
	hash := hashOf(p.token)
	switch {
	case err != nil && !notThere(err):
		return Identity{}, err
	case err == nil && old.invitation == hash && old.fingerprint == p.fingerprint:
		return old, nil
	}
	id := Identity{Name: name, Role: role, Addr: p.addr, fingerprint: p.fingerprint, invitation: hash}
	if id.seed, err = joinSeed(dir, old, p); err != nil {
		return Identity{}, err
	}
	a, err := askToJoin(ctx, id, p)
	if err != nil {
		return Identity{}, err
	}
	id.ID, id.Name, id.sites = a.ID, a.Name, withHost(p.addr, a.Sites)
	if err := id.keep(path); err != nil {
		return Identity{}, fmt.Errorf("keep the identity: %w", err)
	}
	_ = os.Remove(filepath.Join(dir, joiningFile)) // what is left of it has the same key
	return id, nil
}

// joiningFile has the key of who is about to join, so that an answer which is lost can be asked for again.
const joiningFile = "joining.key"

// joinSeed is the key to join with: the one that this hub knows or may know already, or a new one.
func joinSeed(dir string, old Identity, p place) (string, error) {
	if old.seed != "" && old.fingerprint == p.fingerprint {
		return old.seed, nil
	}
	path := filepath.Join(dir, joiningFile)
	b, err := input.File(path, mostIdentity)
	if err == nil {
		if seed, err := findSeed(string(b)); err == nil {
			return seed, nil
		}
	} else if !notThere(err) {
		return "", err
	}
	seed, err := newSeed()
	if err != nil {
		return "", err
	}
	return seed, keepSecret(path, []byte(seed+"\n"))
}

// askToJoin trades the token in.
func askToJoin(ctx context.Context, id Identity, p place) (joined, error) {
	pair, err := id.key()
	if err != nil {
		return joined{}, err
	}
	us := speaks("")
	j := joining{Name: id.Name, Version: us.version, Protocol: us.protocol, Site: id.Role == Site}
	if j.Key, err = pair.PublicKey(); err != nil {
		return joined{}, err
	}
	if j.Signature, err = pair.Sign(signedText(id.invitation)); err != nil {
		return joined{}, err
	}
	short := shortOf(id.invitation)
	id.ID = guest(short)
	c, err := dialGuest(ctx, id, p.token)
	if err != nil {
		return joined{}, err
	}
	defer c.Close()
	b, err := json.Marshal(j)
	if err != nil {
		return joined{}, err
	}
	answer, err := c.request(ctx, joins+short, b)
	if err != nil {
		return joined{}, fmt.Errorf("join the fleet at %s: %w", p.addr, err)
	}
	var a joined
	if err := json.Unmarshal(answer, &a); err != nil {
		return joined{}, fmt.Errorf("join the fleet at %s: its answer: %w", p.addr, err)
	}
	if a.Reason != "" || a.ID == "" {
		return joined{}, &RefusedError{a.Reason, a.Text}
	}
	return a, nil
}

// answerJoin answers one who asks to be a member.
func (s *Server) answerJoin(m Message) {
	short := strings.TrimPrefix(m.Subject, joins)
	member, err := s.join(short, m.Data)
	a := joined{ID: member.ID, Name: member.Name}
	if member.Site {
		a.Sites = s.sitePort()
	}
	if err != nil {
		a = refusedJoin(err)
		s.o.Log.Warn("a machine was not let into the fleet", "name", member.Name, "why", a.Text)
	} else {
		s.o.Log.Info("a machine has joined the fleet", "id", member.ID, "name", member.Name)
	}
	s.answer(m, a)
}

// answer sends an answer as JSON. Who asked and is gone gets none.
func (s *Server) answer(m Message, a any) {
	b, err := json.Marshal(a)
	if err == nil && m.Reply != nil {
		err = m.Reply(b)
	}
	if err != nil {
		s.o.Log.Warn("an answer of the hub was not sent", "to", m.From, "error", err)
	}
}

func refusedJoin(err error) joined {
	if r, ok := asRefused(err); ok {
		return joined{Reason: r.Reason, Text: r.Text}
	}
	return joined{Reason: Unknown, Text: "the hub cannot take a new member: " + err.Error()}
}

// join takes a new member in.
func (s *Server) join(short string, data []byte) (registeredMember, error) {
	var j joining
	if err := json.Unmarshal(data, &j); err != nil {
		return registeredMember{}, fmt.Errorf("what it said cannot be read: %w", err)
	}
	m := registeredMember{ID: agentID(j.Key), Name: j.Name, Key: j.Key, Version: j.Version, Site: j.Site}
	if r := s.door.us.refuse(speaker{j.Protocol, j.Version}); r != nil {
		return m, r
	}
	if j.Name == "" || len(j.Name) > 200 {
		return m, fmt.Errorf("a member needs a name of up to 200 bytes")
	}
	hash, ok := s.door.register.hash(short)
	if !ok {
		return m, errNoInvitation
	}
	key, err := nkeys.FromPublicKey(j.Key)
	if err != nil || !nkeys.IsValidPublicUserKey(j.Key) || key.Verify(signedText(hash), j.Signature) != nil {
		return m, fmt.Errorf("it does not prove that the key it names is its own")
	}
	return s.door.register.join(short, m)
}

// hello is what a member says when it has connected.
type hello struct {
	Version  string `json:"version"`
	Protocol int    `json:"protocol"`
	Instance string `json:"instance"`
}

// answerHello tells a member whether it is welcome, and if not, why.
func (s *Server) answerHello(m Message) {
	var h hello
	var a joined
	if err := json.Unmarshal(m.Data, &h); err != nil {
		a = joined{Reason: OtherVersion, Text: "the hub does not understand this perflab: use the same version on both"}
	} else if r := s.door.refusal(m.From, speaker{h.Protocol, h.Version}, h.Instance); r != nil {
		a = joined{Reason: r.Reason, Text: r.Text}
	}
	s.answer(m, a)
}
