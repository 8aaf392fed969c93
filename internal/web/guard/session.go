package guard

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/input"
)

// session is a browser that is logged in. It is kept, so that the server can be started anew without
// that anybody notices; by the hash of its cookie and of its token, so that the file opens nothing.
type session struct {
	Token string    `json:"token"` // hash
	Ends  time.Time `json:"ends"`

	ended chan struct{} // closed when it ends before its time
}

// sessionList is the sessions, by the hash of their cookie.
type sessionList struct {
	path string
	life time.Duration

	mu sync.Mutex
	of map[string]*session
}

// mostSessions is how many there are at most; then the one that would end first ends.
const mostSessions = 2000

const largestSessions = 4 << 20

func openSessions(state string, life time.Duration) (*sessionList, error) {
	l := &sessionList{path: filepath.Join(state, "sessions.json"), life: life, of: map[string]*session{}}
	b, err := input.File(l.path, largestSessions)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return nil, fmt.Errorf("open the sessions: %w", err)
	}
	if err := json.Unmarshal(b, &l.of); err != nil {
		return nil, fmt.Errorf("open the sessions: %s: %w: remove it, and everybody logs in again", l.path, err)
	}
	for key, s := range l.of {
		if s == nil {
			delete(l.of, key)
			continue
		}
		s.ended = make(chan struct{})
	}
	return l, nil
}

// begin makes a session and returns its cookie's value.
func (l *sessionList) begin(token string) (string, time.Time, error) {
	value := strings.ToLower(rand.Text() + rand.Text())
	now := time.Now()
	ends := now.Add(l.life).UTC().Truncate(time.Second)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	l.of[hashOf(value)] = &session{token, ends, make(chan struct{})}
	if err := l.save(); err != nil {
		delete(l.of, hashOf(value))
		return "", ends, fmt.Errorf("keep the session: %w", err)
	}
	return value, ends, nil
}

// sweep takes out what has ended, and one more where there are too many.
func (l *sessionList) sweep(now time.Time) {
	first := ""
	for key, s := range l.of {
		if !now.Before(s.Ends) {
			l.drop(key)
		} else if first == "" || s.Ends.Before(l.of[first].Ends) {
			first = key
		}
	}
	if len(l.of) >= mostSessions {
		l.drop(first)
	}
}

func (l *sessionList) drop(key string) {
	close(l.of[key].ended)
	delete(l.of, key)
}

func (l *sessionList) save() error {
	b, err := json.Marshal(l.of)
	if err != nil {
		return err
	}
	return durable.WriteFile(l.path, b, 0o600)
}

// find is the session of a cookie.
func (l *sessionList) find(value string) (session, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[hashOf(value)]
	if s == nil || !time.Now().Before(s.Ends) {
		return session{}, false
	}
	return *s, true
}

// end ends the session of a cookie.
func (l *sessionList) end(value string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of[hashOf(value)] == nil {
		return nil
	}
	l.drop(hashOf(value))
	return l.save()
}

func (l *sessionList) total() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, now := 0, time.Now()
	for _, s := range l.of {
		if now.Before(s.Ends) {
			n++
		}
	}
	return float64(n)
}

// bySession tells who asks by a cookie. A session is as good as its token: when that is taken out of
// the file, or gets another role, so does the session.
func (g *Guard) bySession(who Who, r *http.Request) (Who, bool) {
	for _, c := range r.CookiesNamed(g.cookieName()) {
		s, ok := g.sessions.find(c.Value)
		if !ok {
			continue
		}
		t, ok := g.tokens.find(s.Token)
		if !ok {
			continue
		}
		who.Name, who.key, who.Until, who.ended, who.cookie = t.Name, "token "+t.Name, s.Ends, s.ended, c.Value
		who.Role, _ = ParseRole(t.Role) // checked when it was read
		return who, true
	}
	return who, false
}
