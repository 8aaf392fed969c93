package guard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Role is what somebody may do. Each includes the ones before it.
type Role int

// The roles. Shared is that of a share link, which opens what it names and nothing else; the zero
// Role may do nothing.
const (
	Nobody     Role = iota
	Shared          // see what a share link names
	Read            // see everything
	Launch          // start, stop, import, tag
	Administer      // delete, and read the audit log
)

var roleNames = []string{"nobody", "shared", "read", "launch", "administer"}

// String is the role's name.
func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return fmt.Sprintf("Role(%d)", int(r))
	}
	return roleNames[r]
}

// ParseRole reads the name of a role that a token can have.
func ParseRole(s string) (Role, error) {
	if i := slices.Index(roleNames, s); i >= int(Read) {
		return Role(i), nil
	}
	return Nobody, fmt.Errorf("there is no role %q: it is read, launch or administer", s)
}

// Who is the one who asks.
type Who struct {
	Name    string // of the token; "local" without tokens, "share link" of one
	Role    Role
	Address string    // of the client, as a proxy of Options.Proxies tells it
	Request string    // id of the request, also in its answer's header X-Request-Id
	Until   time.Time // when the session or link ends; zero: it does not

	Base string   // what links of a page begin with: "/share/..." for who comes by a share link, else ""
	IDs  []string // what a share link opens

	key   string          // what limits of one client go by
	ended <-chan struct{} // closed when the session is ended before its time; nil: it cannot be
}

// May says whether somebody has a role.
func (w Who) May(role Role) bool { return w.Role >= role }

// Sees says whether somebody may see what has an id: those who may read see everything.
func (w Who) Sees(id string) bool {
	return w.Role >= Read || w.Role == Shared && slices.Contains(w.IDs, id)
}

type whoKey struct{}

// From is who asks, in the context of a request behind Guard.Handler; elsewhere it is Nobody.
func From(ctx context.Context) Who {
	w, _ := ctx.Value(whoKey{}).(Who)
	return w
}

// With is a context in which somebody asks: for what the server does on somebody's behalf after
// the request.
func With(ctx context.Context, w Who) context.Context { return context.WithValue(ctx, whoKey{}, w) }

// Need lets nobody to a handler who has not the role.
func (g *Guard) Need(role Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := From(r.Context())
		if !who.May(role) {
			g.refuseRole(w, r, who, role)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (g *Guard) refuseRole(w http.ResponseWriter, r *http.Request, who Who, role Role) {
	if who.Role == Nobody {
		g.unknown(w, r)
		return
	}
	g.refuse(w, r, refusal{http.StatusForbidden, "role", fmt.Sprintf("this needs the role %s, and %s has the role %s", role, who.Name, who.Role)})
}

// unknown answers somebody who has shown nothing: a browser with the way to the login page.
func (g *Guard) unknown(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") && !wantsJSON(r) {
		door{g}.toLogin(w, r)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="perflab"`)
	g.refuse(w, r, refusal{http.StatusUnauthorized, "token", "this needs a token: send it as Authorization: Bearer, or log in at " + loginPath})
}
