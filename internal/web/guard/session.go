package guard

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/durable"
	"perflab/internal/input"
)

// session is a browser that is logged in. It is a file, so that the server can be started anew, and
// another serve the same laboratory, without that anybody notices. The file's name is the hash of the
// cookie and its text has that of the token, so that it opens nothing.
type session struct {
	Token string    `json:"token"` // hash
	Ends  time.Time `json:"ends"`
}

// sessionList is the directory of the sessions.
type sessionList struct {
	dir  string
	life time.Duration
	most int // then the one that would end first ends

	mu    sync.Mutex
	ended map[string]chan struct{} // of sessions that were asked for here, closed when they end before their time
}

const (
	mostSessions   = 2000
	largestSession = 1 << 10 // bytes of a file
	mostCookies    = 4       // of one request that are looked at
)

func openSessions(state string, life time.Duration) (*sessionList, error) {
	l := &sessionList{dir: filepath.Join(state, "sessions"), life: life, most: mostSessions, ended: map[string]chan struct{}{}}
	if err := durable.MkdirAll(l.dir); err != nil {
		return nil, fmt.Errorf("open the sessions: %w", err)
	}
	return l, nil
}

// begin makes a session and returns its cookie's value.
func (l *sessionList) begin(token string) (string, time.Time, error) {
	l.sweep()
	value := strings.ToLower(rand.Text() + rand.Text())
	ends := time.Now().Add(l.life).UTC().Truncate(time.Second)
	b, err := json.Marshal(session{token, ends})
	if err == nil {
		err = durable.WriteFile(filepath.Join(l.dir, hashOf(value)), b, 0o600)
	}
	if err != nil {
		return "", ends, fmt.Errorf("keep the session: %w", err)
	}
	return value, ends, nil
}

// read is a session by the hash of its cookie, if it has not ended.
func (l *sessionList) read(key string) (session, bool) {
	var s session
	b, err := input.File(filepath.Join(l.dir, key), largestSession)
	if err != nil || json.Unmarshal(b, &s) != nil || !time.Now().Before(s.Ends) {
		return session{}, false
	}
	return s, true
}

// all are the sessions that have not ended. What else is in the directory is cleared away with clear.
func (l *sessionList) all(clear bool) map[string]session {
	entries, _ := os.ReadDir(l.dir) // without a directory there is none
	of := map[string]session{}
	for _, e := range entries {
		if s, ok := l.read(e.Name()); ok {
			of[e.Name()] = s
			continue
		}
		if info, err := e.Info(); clear && err == nil && time.Since(info.ModTime()) > time.Minute { // else it may be under way
			_ = l.drop(e.Name()) // the next login tries again
		}
	}
	return of
}

// sweep takes out what has ended, and one more where there are too many.
func (l *sessionList) sweep() {
	of := l.all(true)
	if len(of) < l.most {
		return
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(of)), func(a, b string) int { return of[a].Ends.Compare(of[b].Ends) })
	_ = l.drop(first) // the next login tries again
}

// drop ends a session by the hash of its cookie.
func (l *sessionList) drop(key string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.ended[key]; c != nil {
		close(c)
		delete(l.ended, key)
	}
	if err := os.Remove(filepath.Join(l.dir, key)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// find is the session of a cookie, and what is closed when it ends before its time.
func (l *sessionList) find(value string) (s session, ended <-chan struct{}, ok bool) {
	key := hashOf(value)
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, ok = l.read(key); !ok {
		return s, nil, false
	}
	if l.ended[key] == nil {
		l.ended[key] = make(chan struct{})
	}
	return s, l.ended[key], true
}

func (l *sessionList) total() float64 { return float64(len(l.all(false))) }

// bySession tells who asks by a cookie. A session is as good as its token: when that is taken out of
// the file, or gets another role, so does the session.
func (g identity) bySession(who Who, r *http.Request) (Who, bool) {
	for _, c := range g.cookies(r) {
		s, ended, ok := g.sessions.find(c.Value)
		if !ok {
			continue
		}
		t, ok := g.tokens.find(s.Token)
		if !ok {
			continue
		}
		who.Name, who.key, who.Until, who.ended = t.Name, "token "+t.Name, s.Ends, ended
		who.Role, _ = ParseRole(t.Role) // checked when it was read
		return who, true
	}
	return who, false
}

// cookies are those of a request that may be a session's: one, where nobody plays tricks.
func (g *Guard) cookies(r *http.Request) []*http.Cookie {
	all := r.CookiesNamed(door{g}.cookieName())
	return all[:min(len(all), mostCookies)]
}
