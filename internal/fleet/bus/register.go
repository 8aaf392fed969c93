package bus

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/input"
)

// register is who belongs to a hub and who is invited, in the file members.json. What it says is on the
// disk before anybody hears of it.
type register struct {
	path string

	mu   sync.Mutex
	kept registered
}

type registered struct {
	Members     []registeredMember `json:"members"`
	Invitations []invitation       `json:"invitations"`
}

type registeredMember struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Key     string    `json:"key"` // public
	Version string    `json:"version"`
	Joined  time.Time `json:"joined"`
	Revoked bool      `json:"revoked,omitzero"`
	Site    bool      `json:"site,omitzero"`
}

// invitation is a token that was given out. The token itself is nowhere but in the URL.
type invitation struct {
	Hash   string    `json:"hash"` // SHA-256 of the token
	Ends   time.Time `json:"ends"`
	Site   bool      `json:"site,omitzero"`
	UsedBy string    `json:"used_by,omitempty"` // the public key that traded it in
}

// short is the part of its hash by which an invitation is called in subjects. It proves nothing.
func (i invitation) short() string { return shortOf(i.Hash) }

func shortOf(hash string) string { return hash[:16] }

// Limits of what the register keeps.
const (
	mostRegister   = 64 << 20
	rememberTokens = 30 * 24 * time.Hour // of an invitation that has ended, so that who comes late gets the right sentence
)

func openRegister(dir string) (*register, error) {
	r := &register{path: filepath.Join(dir, "members.json")}
	b, err := input.File(r.path, mostRegister)
	if notThere(err) {
		return r, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &r.kept)
	}
	if err != nil {
		return nil, fmt.Errorf("the members of the fleet in %s: %w", r.path, err)
	}
	return r, nil
}

// change writes the register with what a function has made of it, or leaves it as it was.
func (r *register) change(f func(*registered)) error {
	next := registered{slices.Clone(r.kept.Members), slices.Clone(r.kept.Invitations)}
	f(&next)
	b, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := durable.WriteFile(r.path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("keep the members of the fleet: %w", err)
	}
	r.kept = next
	return nil
}

// invite makes a token.
func (r *register) invite(lasts time.Duration, site bool) (token string, err error) {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	return token, r.change(func(k *registered) {
		k.Invitations = slices.DeleteFunc(k.Invitations, func(i invitation) bool { return now.After(i.Ends.Add(rememberTokens)) })
		k.Invitations = append(k.Invitations, invitation{Hash: hashOf(token), Ends: now.Add(lasts), Site: site})
	})
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// invited finds the invitation of a token, whether it is still good or not.
func (r *register) invited(token string) (invitation, bool) {
	hash := hashOf(token) // of two hashes nobody learns the token by timing
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.kept.Invitations, func(i invitation) bool { return i.Hash == hash })
	if i < 0 {
		return invitation{}, false
	}
	return r.kept.Invitations[i], true
}

// join trades an invitation for membership. Who has traded it already gets the same answer again.
func (r *register) join(short string, m registeredMember) (registeredMember, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.kept.Invitations, func(i invitation) bool { return i.short() == short })
	if at < 0 {
		return m, errNoInvitation
	}
	i := r.kept.Invitations[at]
	member := slices.IndexFunc(r.kept.Members, func(o registeredMember) bool { return o.Key == m.Key })
	switch {
	case i.UsedBy != "" && i.UsedBy != m.Key:
		return m, &RefusedError{Invitation, "this invitation was used by another machine: ask for a new one, and if no machine of yours has used it, revoke the member that joined by it"}
	case i.UsedBy == m.Key && member >= 0:
		return r.kept.Members[member], nil
	case i.Site != m.Site && i.Site:
		return m, &RefusedError{Invitation, "this invitation is for the server of a site, and not for an agent: ask for another"}
	case i.Site != m.Site:
		return m, &RefusedError{Invitation, "this invitation is for an agent, and not for the server of a site: ask for another"}
	case time.Now().After(i.Ends):
		return m, &RefusedError{Invitation, "this invitation has ended: ask for a new one"}
	case slices.ContainsFunc(r.kept.Members, func(o registeredMember) bool { return o.ID == m.ID && o.Key != m.Key }):
		return m, &RefusedError{Invitation, "another machine has the ID of this one's key already: join again, with a new key"}
	}
	m.Joined = time.Now().Truncate(time.Second)
	return m, r.change(func(k *registered) {
		k.Invitations[at].UsedBy = m.Key
		k.Members = slices.DeleteFunc(k.Members, func(o registeredMember) bool { return o.Key == m.Key })
		k.Members = append(k.Members, m)
	})
}

var errNoInvitation = &RefusedError{Invitation, "the hub does not know this invitation: ask for a new one"}

// member finds who has a public key.
func (r *register) member(key string) (registeredMember, bool) {
	return r.find(func(m registeredMember) bool { return m.Key == key })
}

// named finds who has an ID.
func (r *register) named(id string) (registeredMember, bool) {
	return r.find(func(m registeredMember) bool { return m.ID == id })
}

func (r *register) find(is func(registeredMember) bool) (registeredMember, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.kept.Members, is); i >= 0 {
		return r.kept.Members[i], true
	}
	return registeredMember{}, false
}

// revoke takes a membership back.
func (r *register) revoke(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.kept.Members, func(m registeredMember) bool { return m.ID == id })
	if i < 0 {
		return fmt.Errorf("no member of the fleet has the ID %q", id)
	}
	return r.change(func(k *registered) { k.Members[i].Revoked = true })
}

// all are the members, by name.
func (r *register) all() []registeredMember {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(slices.Values(r.kept.Members), func(a, b registeredMember) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
}

// hash is the whole hash of an invitation.
func (r *register) hash(short string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.kept.Invitations, func(i invitation) bool { return i.short() == short })
	if i < 0 {
		return "", false
	}
	return r.kept.Invitations[i].Hash, true
}
