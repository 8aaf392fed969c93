package guard

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"perflab/internal/web/guard/trail"
)

// Handler stands before a server's routes: it lets pass who may, and says who it is.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(raw http.ResponseWriter, r *http.Request) {
		w := newWriter(raw, g.o.Limits.Stalled)
		who := Who{Name: "nobody", Request: strings.ToLower(rand.Text()[:16])}
		began, route := time.Now(), ""
		defer func() {
			g.recovered(w, r, who.Request, recover())
			took := time.Since(began)
			if w.events {
				took = -1
			}
			g.meter.Request(route, max(w.status, http.StatusOK), took)
			w.last()
		}()
		setHeaders(w.Header(), who.Request)
		r = r.WithContext(With(r.Context(), who))
		b := limitBody(w, r, g.o.Limits.Body)
		if r = g.outside(w, r); r == nil {
			route = "refused"
			return
		}
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
		route = g.enter(w, r, next)
	})
}

// recovered answers for a handler that panicked, as the server would, with the request's id in the log.
func (g *Guard) recovered(w *writer, r *http.Request, id string, p any) {
	if p == nil {
		return
	}
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	g.log.Error("a handler panicked", "request", id, "path", shownPath(r.URL.Path), "panic", p, "stack", string(debug.Stack()))
	if w.status == 0 {
		http.Error(w, "something went wrong in the server: its log has it under "+id, http.StatusInternalServerError)
	}
}

// outside checks where a request comes from, and gives it with the client's address; nil where it
// was refused.
func (g *Guard) outside(w *writer, r *http.Request) *http.Request {
	who := From(r.Context())
	ip, err := g.client(r)
	if err != nil {
		g.refuse(w, r, refusal{http.StatusForbidden, "proxy", err.Error()})
		return nil
	}
	who.Address, who.key = ip.String(), network(ip)
	r = r.WithContext(With(r.Context(), who))
	ok, wait := g.rates.take(who.key)
	f := g.otherSite(r)
	switch {
	case !ok:
		g.tooFast(w, r, "rate", "too many requests: try again later", wait)
		return nil
	case !g.knows(r):
		f = refusal{http.StatusForbidden, "host", "this server is not called by that name: start it with --host and the name if it shall be"}
	case g.Open() && (!ip.IsLoopback() || forwarded(r)):
		f = refusal{http.StatusForbidden, "proxy", "a server without a token serves this machine alone, and no proxy: start it with a token"}
	}
	if f.status != 0 {
		g.refuse(w, r, f)
		return nil
	}
	return r
}

// forwarded says that a proxy asks for somebody.
func forwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(name)) > 0 {
			return true
		}
	}
	return false
}

// otherSite refuses what a page of another site asks for.
func (g *Guard) otherSite(r *http.Request) refusal {
	if g.cross.Check(r) != nil || foreign(r) {
		return refusal{http.StatusForbidden, "site", "a page of another site asks for this, which only pages of this server may"}
	}
	return refusal{}
}

// enter finds out who asks and serves what that one may have. It returns the route that was taken.
func (g *Guard) enter(w *writer, r *http.Request, next http.Handler) string {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, sharePath):
		return g.serveShared(w, r)
	case path == loginPath && !g.Open():
		door{g}.login(w, r)
		return loginPath
	case path == logoutPath && !g.Open():
		door{g}.logout(w, r)
		return logoutPath
	}
	who, f := identity{g}.identify(w, r)
	r = r.WithContext(With(r.Context(), who))
	switch {
	case f.status == http.StatusTooManyRequests:
		g.tooFast(w, r, f.reason, f.why, time.Minute)
	case f.status != 0:
		w.Header().Set("WWW-Authenticate", `Bearer realm="perflab", error="invalid_token"`)
		g.refuse(w, r, f)
	case !who.May(Read) && !g.isPublic(r.URL.Path):
		g.unknown(w, r)
	default:
		next.ServeHTTP(w, r)
		return r.Pattern
	}
	return "refused"
}

// identity finds out who asks.
type identity struct{ *Guard }

// identify tells who asks, by a token or a session.
func (g identity) identify(w *writer, r *http.Request) (Who, refusal) {
	who := From(r.Context())
	if g.Open() {
		who.Name, who.Role = "local", Administer
		return who, refusal{}
	}
	if values := r.Header.Values("Authorization"); len(values) > 0 {
		scheme, token, _ := strings.Cut(values[0], " ")
		if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") {
			return who, refusal{http.StatusUnauthorized, "wrong token", "the header Authorization is not Bearer and a token"}
		}
		return g.byToken(who, strings.TrimSpace(token))
	}
	if found, ok := g.bySession(who, r); ok {
		return found, refusal{}
	}
	if len(g.cookies(r)) > 0 {
		http.SetCookie(w, door(g).cookie("", -1))
	}
	return who, refusal{}
}

// byToken tells whose a token is. An address from which too many wrong ones came is not looked at, for
// else it could go on guessing.
func (g identity) byToken(who Who, token string) (Who, refusal) {
	if ok, _ := g.wrong.has(who.key); !ok {
		return who, refusal{http.StatusTooManyRequests, "wrong tokens", "too many wrong tokens came from this address: try again in a minute"}
	}
	t, ok := g.tokens.find(hashOf(token))
	if !ok {
		g.wrong.take(who.key)
		return who, refusal{http.StatusUnauthorized, "wrong token", "this token is not known here"}
	}
	who.Name, who.key = t.Name, "token "+t.Name
	who.Role, _ = ParseRole(t.Role) // checked when it was read
	return who, refusal{}
}

// Stream lets handlers send events: there are not too many of them, and none outlives the session or
// the link by which it was opened. It ends after Limits.Stream at the latest, whereupon a browser opens
// it again by what it may then.
func (g *Guard) Stream(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := From(r.Context())
		if !g.streams.enter(who.key) {
			g.tooFast(w, r, "streams", "too many event streams are open: close a page and try again", 10*time.Second)
			return
		}
		defer g.streams.leave(who.key)
		if b, ok := r.Context().Value(bodyKey{}).(*body); ok {
			b.answer.events = true
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Accel-Buffering", "no") // a proxy shall not hold events back
		until := time.Now().Add(g.o.Limits.Stream)
		if !who.Until.IsZero() && who.Until.Before(until) {
			until = who.Until
		}
		timed, stop := context.WithDeadlineCause(r.Context(), until, errEnded)
		defer stop()
		ctx, cancel := context.WithCancelCause(timed)
		var watch sync.WaitGroup
		defer watch.Wait()
		defer cancel(nil)
		watch.Go(func() {
			select {
			case <-who.ended: // nil without a session: never
				cancel(errEnded)
			case <-g.stopping:
				cancel(http.ErrServerClosed)
			case <-ctx.Done():
			}
		})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// errEnded is why the events of somebody end who is no longer logged in.
var errEnded = errors.New("the session has ended")

// Audit writes down what somebody did. Time, name, role, address and request come from the context;
// what is in the event already stays. Who does what must not happen unseen asks for the error first.
func (g *Guard) Audit(ctx context.Context, e trail.Event) error {
	who := From(ctx)
	setDefault(&e.Time, time.Now())
	setDefault(&e.Who, who.Name)
	setDefault(&e.Role, who.Role.String())
	setDefault(&e.Address, who.Address)
	setDefault(&e.Request, who.Request)
	setDefault(&e.Outcome, trail.Done)
	err := g.trail.Add(e)
	if err != nil {
		g.unaudited.Add(1)
	}
	return err
}

// History is a page of the audit log: see trail.Trail.Page.
func (g *Guard) History(cursor string, n int, match func(trail.Event) bool) (trail.Page, error) {
	return g.trail.Page(cursor, n, match)
}

// Metrics serves the server's own figures in Prometheus's text format. It is for whoever may read.
func (g *Guard) Metrics() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_ = g.meter.Write(w) // the client is gone
	})
}

// meters are the figures that are read when somebody asks for them.
func (g opening) meters() {
	began := float64(time.Now().UnixMilli()) / 1000
	g.meter.Gauge("perflab_event_streams", "Event streams that are open.", g.streams.total)
	g.meter.Gauge("perflab_sessions", "Sessions of browsers that are logged in.", g.sessions.total)
	g.meter.Gauge("perflab_audit_failures", "Events that could not be written to the audit log.", func() float64 { return float64(g.unaudited.Load()) })
	g.meter.Gauge("perflab_start_time_seconds", "When the server started, in seconds since 1970.", func() float64 { return began })
}

// Meter takes further figures of the server, such as the length of its queue.
func (g *Guard) Meter(name, help string, read func() float64) { g.meter.Gauge(name, help, read) }
