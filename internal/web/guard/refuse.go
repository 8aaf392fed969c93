package guard

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"perflab/internal/web/guard/trail"
)

// refusal is why a request is not served.
type refusal struct {
	status int
	reason string // one of a few words, for the metrics
	why    string // a sentence for the client: nothing of what it sent
}

// audited are the reasons that stand in the audit log: those behind which somebody may be who tries doors.
// Who has no token yet, is too fast or too long is counted alone.
var audited = map[string]bool{"role": true, "wrong token": true, "host": true, "site": true, "link": true, "proxy": true}

// wantsJSON says that a program asks.
func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") || strings.Contains(r.Header.Get("Accept"), "application/json")
}

// Refuse answers that a request is not served, in the form that its client reads, and counts it
// under a reason: one of few words that the code has.
func (g *Guard) Refuse(w http.ResponseWriter, r *http.Request, status int, reason, why string) {
	g.refuse(w, r, refusal{status, reason, why})
}

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, f refusal) {
	g.meter.Refusal(f.reason)
	if audited[f.reason] {
		g.auditRefusal(r, f)
	}
	w.Header().Set("Cache-Control", "no-store")
	if g.o.Refused != nil {
		g.o.Refused(w, r, f.status, f.why)
		return
	}
	if !wantsJSON(r) {
		http.Error(w, f.why, f.status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": f.why, "request": From(r.Context()).Request}) // the client is gone
}

// auditRefusal writes a refusal down, a few of each address in a minute: nobody shall push what
// others did out of the log by being refused.
func (g *Guard) auditRefusal(r *http.Request, f refusal) {
	who := From(r.Context())
	if ok, _ := g.noted.take(who.Address); !ok {
		return
	}
	e := trail.Event{Action: r.Method, Object: shownPath(r.URL.Path), Outcome: trail.Refused, Reason: f.reason + ": " + f.why}
	if f.reason == "host" {
		e.Detail = map[string]string{"host": r.Host}
	}
	if err := g.Audit(r.Context(), e); err != nil {
		g.log.Error("a refusal is not in the audit log", "error", err)
	}
}

// shownPath is a path without the link in it.
func shownPath(path string) string {
	if strings.HasPrefix(path, sharePath) {
		return sharePath + "***"
	}
	return path
}

// tooFast answers a client that has to wait.
func (g *Guard) tooFast(w http.ResponseWriter, r *http.Request, reason, why string, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	g.refuse(w, r, refusal{http.StatusTooManyRequests, reason, why})
}
