package guard

import (
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"perflab/internal/web/guard/trail"
)

// The paths that the guard serves itself where there are tokens. Both take a form by POST.
const (
	loginPath  = "/login"
	logoutPath = "/logout"
)

// largestLogin is the most that a form of them has.
const largestLogin = 8 << 10

// door is where a browser comes in and goes out: the login page and its cookie.
type door struct{ *Guard }

// cookieName is a name that no other server on the same host has: a browser sends cookies to every port.
func (g door) cookieName() string {
	if g.Secure() {
		return "__Host-perflab-" + g.keys.id // which no page of another host or without TLS can set
	}
	return "perflab-" + g.keys.id
}

// cookie is the cookie of a session; one whose age is below zero takes it away.
func (g door) cookie(value string, age time.Duration) *http.Cookie {
	c := &http.Cookie{Name: g.cookieName(), Value: value, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true, Secure: g.Secure(), SameSite: http.SameSiteStrictMode}
	if age < 0 {
		c.MaxAge = -1
	}
	return c
}

const loginStyle = `body{font:16px/1.5 system-ui,sans-serif;max-width:26rem;margin:15vh auto;padding:0 1rem;color-scheme:light dark}label,input,button{display:block;width:100%;box-sizing:border-box;font:inherit}input,button{padding:.5rem;margin:.3rem 0 1rem}.bad{color:#cf222e}@media(prefers-color-scheme:dark){.bad{color:#ff7b72}}`

var loginPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Log in · perflab</title>
{{.Style}}
</head>
<body>
<main>
<h1>perflab</h1>
{{with .Problem}}<p class="bad" role="alert">{{.}}</p>{{end}}
<form method="post" action="/login">
<input type="hidden" name="next" value="{{.Next}}">
<label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus maxlength="512">
<button>Log in</button>
</form>
<p>Whoever runs this server gives tokens out. A browser stays logged in for {{.Life}}.</p>
</main>
</body>
</html>
`))

// againPage leads a browser from another site's link to the login page. It is a page and no
// redirection: only what a page of ours asks for comes with the cookie, so who is logged in goes on
// from there to where the link leads.
var againPage = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={{.}}">
<title>perflab</title>
<p><a href="{{.}}">Go on to perflab</a></p>
`))

// toLogin leads a browser to the login page, and from there back.
func (g door) toLogin(w http.ResponseWriter, r *http.Request) {
	g.meter.Refusal("token")
	to := loginPath + "?" + url.Values{"next": {localPath(r.URL.RequestURI())}}.Encode()
	w.Header().Set("Cache-Control", "no-store")
	if r.Header.Get("Sec-Fetch-Site") != "cross-site" {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_ = againPage.Execute(w, to) // the client is gone
}

// localPath is a path of this server, or "/" for what leads elsewhere.
func localPath(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || !strings.HasPrefix(s, "/") ||
		strings.Contains(s, `\`) || strings.HasPrefix(u.Path, "//") || strings.ContainsFunc(s, unprintable) {
		return "/"
	}
	return u.RequestURI()
}

func unprintable(r rune) bool {
	return r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029'
}

// login shows the form, and takes the token of one.
func (g door) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		next := localPath(r.URL.Query().Get("next"))
		if _, ok := identity(g).bySession(From(r.Context()), r); ok {
			http.Redirect(w, r, next, http.StatusSeeOther)
			return
		}
		g.showLogin(w, http.StatusOK, next, "")
	case http.MethodPost:
		g.takeLogin(w, r)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		g.refuse(w, r, refusal{http.StatusMethodNotAllowed, "method", "the login page takes GET and POST"})
	}
}

func (g door) showLogin(w http.ResponseWriter, status int, next, problem string) {
	AllowInline(w.Header(), Inline{Styles: []string{loginStyle}})
	policy := w.Header().Get("Content-Security-Policy")
	policy = strings.Replace(policy, "form-action 'none'", "form-action 'self'", 1)
	w.Header().Set("Content-Security-Policy", strings.Replace(policy, "frame-ancestors 'self'", "frame-ancestors 'none'", 1))
	w.Header().Set("X-Frame-Options", "DENY")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, map[string]any{ // the client is gone
		"Style": template.HTML("<style>" + loginStyle + "</style>"), "Next": next, "Problem": problem, "Life": lifeText(g.o.Limits.Session),
	})
}

// lifeText is a time as people say it.
func lifeText(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return fmt.Sprintf("%.3g hours", d.Hours())
}

// takeLogin makes a session for a right token.
func (g door) takeLogin(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, largestLogin)
	if err := r.ParseForm(); err != nil {
		g.refuse(w, r, refusal{http.StatusBadRequest, "size", "this is no form with a token"})
		return
	}
	next, token := localPath(r.PostForm.Get("next")), strings.TrimSpace(r.PostForm.Get("token"))
	who, f := identity(g).byToken(From(r.Context()), token)
	if f.status != 0 {
		g.meter.Refusal(f.reason)
		if f.status == http.StatusUnauthorized {
			g.auditRefusal(r, f)
		}
		g.showLogin(w, f.status, next, f.why)
		return
	}
	value, ends, err := g.sessions.begin(hashOf(token))
	if err != nil {
		g.log.Error("nobody can log in", "error", err)
		g.refuse(w, r, refusal{http.StatusInternalServerError, "state", "the server cannot keep a session: its log says why"})
		return
	}
	for _, c := range g.cookies(r) {
		g.forget(c.Value)
	}
	r = r.WithContext(With(r.Context(), who))
	g.note(r, trail.Event{Action: "log in", Detail: map[string]string{"until": ends.Format(time.RFC3339)}})
	http.SetCookie(w, g.cookie(value, time.Until(ends)))
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// logout ends the session of the browser that asks.
func (g door) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		g.refuse(w, r, refusal{http.StatusMethodNotAllowed, "method", "logging out takes POST"})
		return
	}
	who, ok := identity(g).bySession(From(r.Context()), r)
	for _, c := range g.cookies(r) {
		g.forget(c.Value)
	}
	if ok {
		g.note(r.WithContext(With(r.Context(), who)), trail.Event{Action: "log out"})
	}
	http.SetCookie(w, g.cookie("", -1))
	w.Header().Set("Clear-Site-Data", `"cache"`)
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// forget ends the session of a cookie, if there is one.
func (g door) forget(value string) {
	if err := g.sessions.drop(hashOf(value)); err != nil {
		g.log.Error("a session that was ended comes back when the server starts anew", "error", err)
	}
}

// note writes down what needs no leave.
func (g *Guard) note(r *http.Request, e trail.Event) {
	if err := g.Audit(r.Context(), e); err != nil {
		g.log.Error("something is not in the audit log", "action", e.Action, "error", err)
	}
}
