package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sessionOf is the cookie that a login gave.
func sessionOf(t *testing.T, g *Guard, role Role, header ...string) *http.Cookie {
	t.Helper()
	w := postLogin(g, testTokens[role], "/", header...)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || len(cookies) != 1 {
		t.Fatalf("login: %d %q, %d cookies", w.Code, w.Body, len(cookies))
	}
	return cookies[0]
}

func carry(c *http.Cookie) string { return c.Name + "=" + c.Value }

func TestLogin(t *testing.T) {
	g := withTokens(t)
	c := sessionOf(t, g, Launch)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.Path != "/" || c.Domain != "" || c.MaxAge <= 0 || c.MaxAge > 7*24*3600 {
		t.Errorf("the cookie is %s", c.Raw)
	}
	if strings.Contains(c.Value, "launcher") || len(c.Value) < 40 {
		t.Errorf("the cookie's value is %q", c.Value)
	}
	if w := ask(g, "POST", "/api/v1/launches", "Cookie", carry(c)); w.Code != 200 || !strings.HasPrefix(w.Body.String(), "name-launch launch") {
		t.Errorf("with the session: %d %q", w.Code, w.Body)
	}
	if w := ask(g, "DELETE", "/api/v1/runs/1", "Cookie", carry(c)); w.Code != 403 {
		t.Errorf("more than the role: %d", w.Code)
	}
	if w := ask(g, "GET", "/login?next=/runs", "Cookie", carry(c)); w.Code != 303 || w.Header().Get("Location") != "/runs" {
		t.Errorf("the login page of who is logged in: %d to %q", w.Code, w.Header().Get("Location"))
	}
	if w := ask(g, "GET", "/api/v1/runs/1", "Cookie", c.Name+"="+c.Value[1:]); w.Code != 401 {
		t.Errorf("another cookie: %d", w.Code)
	} else if gone := w.Result().Cookies(); len(gone) != 1 || gone[0].MaxAge >= 0 {
		t.Errorf("a cookie that means nothing is not taken away: %v", gone)
	}
	if w := ask(g, "GET", "/api/v1/runs/1", "Cookie", c.Name+"="+hashOf(c.Value)); w.Code != 401 {
		t.Errorf("what is kept of the session opens something: %d", w.Code)
	}
}

func TestLoginRefused(t *testing.T) {
	g := withTokens(t)
	w := postLogin(g, "wrong-wrong-wrong-wrong", "/runs")
	if w.Code != 401 || len(w.Result().Cookies()) != 0 || !strings.Contains(w.Body.String(), "is not known here") || strings.Contains(w.Body.String(), "wrong-wrong") {
		t.Errorf("a wrong token: %d %q", w.Code, w.Body)
	}
	for name, header := range map[string][]string{"another site": {"Sec-Fetch-Site", "cross-site"}, "another port": {"Origin", "http://localhost:3000"}} {
		if w := postLogin(g, testTokens[Read], "/", header...); w.Code != 403 || len(w.Result().Cookies()) != 0 {
			t.Errorf("a form of %s: %d", name, w.Code)
		}
	}
	if w := ask(g, "GET", "/login?token="+testTokens[Read]); w.Code != 200 || len(w.Result().Cookies()) != 0 {
		t.Errorf("a token in the URL of the login page: %d", w.Code)
	}
	long := askWith(g, "POST", "/login", strings.NewReader("token="+strings.Repeat("x", 2*largestLogin)), "Content-Type", "application/x-www-form-urlencoded")
	if long.Code != 400 {
		t.Errorf("a form that is too long: %d", long.Code)
	}
	if w := ask(g, "PUT", "/login"); w.Code != 405 {
		t.Errorf("PUT: %d", w.Code)
	}
	if w := ask(g, "GET", "/logout"); w.Code != 405 {
		t.Errorf("a link that logs out: %d", w.Code)
	}
	if w := ask(open(t, Options{}), "GET", "/login"); w.Code != 404 {
		t.Errorf("a login page without tokens: %d", w.Code)
	}
}

// Under TLS a cookie is Secure, and its name one that only this host can set under TLS.
func TestSecureCookie(t *testing.T) {
	g := open(t, Options{Tokens: tokensFile(t), MakeCertificate: true})
	if c := sessionOf(t, g, Read); !c.Secure || !strings.HasPrefix(c.Name, "__Host-") || c.Path != "/" || c.Domain != "" {
		t.Errorf("%s", c.Raw)
	}
	if (door{g}).cookieName() == (door{open(t, Options{Tokens: tokensFile(t), MakeCertificate: true})}).cookieName() {
		t.Error("two servers on one host have the same cookie")
	}
}

func TestNext(t *testing.T) {
	g := withTokens(t)
	for next, want := range map[string]string{
		"/runs?a=1": "/runs?a=1", "": "/", "https://evil.example/": "/", "//evil.example": "/", `/\evil.example`: "/", "javascript:alert(1)": "/", "/%2f/evil.example": "/", "/a\r\nX: y": "/",
		"///evil.example": "/", "/\t/evil.example": "/", "evil": "/", "/runs#part": "/runs", "http:/x": "/", " //evil.example": "/",
	} {
		if w := postLogin(g, testTokens[Read], next); w.Header().Get("Location") != want {
			t.Errorf("next %q leads to %q, want %q", next, w.Header().Get("Location"), want)
		}
	}
	// A script in it stays text.
	w := ask(g, "GET", `/login?next=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E`)
	if strings.Contains(w.Body.String(), "<script") {
		t.Errorf("%s", w.Body)
	}
}

// A browser is led to the login page and back; from another site's link over a page of ours, since
// a strict cookie comes only from there.
func TestToLogin(t *testing.T) {
	g := withTokens(t)
	w := ask(g, "GET", "/runs/../runs?x=%22", "Accept", "text/html,*/*")
	if w.Code != 303 || !strings.HasPrefix(w.Header().Get("Location"), "/login?next=") {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
	w = ask(g, "GET", "/runs/1", "Accept", "text/html", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	if w.Code != 401 || !strings.Contains(w.Body.String(), `content="0; url=/login?next=%2fruns%2f1"`) && !strings.Contains(w.Body.String(), `content="0; url=/login?next=%2Fruns%2F1"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(g, "POST", "/runs/1", "Accept", "text/html"); w.Code != 401 {
		t.Errorf("a form of who is not logged in: %d", w.Code)
	}
}

func TestLogout(t *testing.T) {
	g := withTokens(t)
	c := sessionOf(t, g, Read)
	w := ask(g, "POST", "/logout", "Cookie", carry(c))
	if w.Code != 303 || w.Result().Cookies()[0].MaxAge >= 0 {
		t.Errorf("%d %v", w.Code, w.Result().Cookies())
	}
	if w := ask(g, "GET", "/api/v1/runs/1", "Cookie", carry(c)); w.Code != 401 {
		t.Errorf("a session that was ended: %d", w.Code)
	}
	again := sessionOf(t, g, Read)
	if sessionOf(t, g, Read, "Cookie", carry(again)); ask(g, "GET", "/api/v1/runs/1", "Cookie", carry(again)).Code != 401 {
		t.Error("the session of before a login goes on")
	}
	page, err := g.History("", 10, nil)
	if err != nil || len(page.Events) != 4 || page.Events[2].Action != "log out" || page.Events[2].Who != "name-read" || page.Events[3].Action != "log in" {
		t.Errorf("%+v, %v", page.Events, err)
	}
}

func TestSessionEnds(t *testing.T) {
	tokens := tokensFile(t)
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Tokens: tokens, Limits: Limits{Session: time.Hour}})
		c := sessionOf(t, g, Read)
		time.Sleep(59 * time.Minute) // of the bubble
		if w := ask(g, "GET", "/", "Cookie", carry(c)); w.Code != 200 {
			t.Errorf("before its end: %d", w.Code)
		}
		time.Sleep(time.Minute)
		if w := ask(g, "GET", "/", "Cookie", carry(c)); w.Code != 401 {
			t.Errorf("after its end: %d", w.Code)
		}
		if n := g.sessions.total(); n != 0 {
			t.Errorf("%v sessions", n)
		}
	})
}

// A server that is started anew knows its sessions; what it keeps of them opens nothing and others
// cannot read it.
func TestSessionsKept(t *testing.T) {
	state, tokens := filepath.Join(t.TempDir(), "state"), tokensFile(t)
	g := open(t, Options{State: state, Tokens: tokens})
	c := sessionOf(t, g, Read)
	if w := ask(open(t, Options{State: state, Tokens: tokens}), "GET", "/", "Cookie", carry(c)); w.Code != 200 {
		t.Errorf("after a new start: %d", w.Code)
	}
	err := filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' && (d.Type().IsRegular() || path == state) {
			t.Errorf("others may read %s: %v", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, secret := range []string{c.Value, testTokens[Read]} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s has the secret itself", path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Two servers on one state directory are one: who logs in at one is known to the other, and who logs
// out at one is out at both.
func TestTwoServers(t *testing.T) {
	state, tokens := filepath.Join(t.TempDir(), "state"), tokensFile(t)
	var both [2]*Guard
	var wait sync.WaitGroup
	for i := range both {
		wait.Go(func() {
			var err error
			if both[i], err = New(Options{Listen: "127.0.0.1:0", State: state, Tokens: tokens, MakeCertificate: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
	one, two := both[0], both[1]
	t.Cleanup(func() { one.Close(); two.Close() })
	if (door{one}).cookieName() != (door{two}).cookieName() || one.Fingerprint() != two.Fingerprint() {
		t.Error("they have different keys or certificates")
	}
	a, b := sessionOf(t, one, Read), sessionOf(t, two, Launch)
	for _, c := range []*http.Cookie{a, b} {
		if x, y := ask(one, "GET", "/", "Cookie", carry(c)).Code, ask(two, "GET", "/", "Cookie", carry(c)).Code; x != 200 || y != 200 {
			t.Errorf("%d and %d", x, y)
		}
	}
	ask(one, "POST", "/logout", "Cookie", carry(b))
	if w := ask(two, "GET", "/", "Cookie", carry(b)); w.Code != 401 {
		t.Errorf("who logged out at the other: %d", w.Code)
	}
	if page, err := two.History("", 10, nil); err != nil || len(page.Events) != 3 {
		t.Errorf("%+v, %v", page, err)
	}
}

// What has ended is cleared away, also what a kill left behind, and there are not more than the bound.
func TestSessionsSwept(t *testing.T) {
	l, err := openSessions(t.TempDir(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l.most = 20
	old := time.Now().Add(-time.Hour)
	write := func(name string, s session, at time.Time) {
		b, err := json.Marshal(s)
		path := filepath.Join(l.dir, name)
		if err = errors.Join(err, os.WriteFile(path, b, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("ended", session{"x", old}, old)
	write("killed.123.new", session{}, old)
	write("underway.123.new", session{}, time.Now())
	for i := range l.most {
		write(hashOf(fmt.Sprint(i)), session{"x", time.Now().Add(time.Minute + time.Duration(i)*time.Second)}, old)
	}
	value, _, err := l.begin("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok := l.find(value); !ok {
		t.Error("the new session is not there")
	}
	_, _, first := l.find("0")
	_, _, second := l.find("1")
	if n := l.total(); n != float64(l.most) || first || !second {
		t.Errorf("%v sessions, the first to end %v, the second %v", n, first, second)
	}
	names, err := os.ReadDir(l.dir)
	if err != nil || len(names) != l.most+1 {
		t.Errorf("%d files, %v", len(names), err)
	}
}

func TestState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	g := open(t, Options{State: state})
	o := Options{State: state, Listen: "127.0.0.1:0"}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(state, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
			t.Errorf("a directory that others may write: %v", err)
		}
		if err := os.Chmod(state, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(state, "key")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{"short": "remove it", string(whole): ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		g, err := New(o)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("a key of %d bytes: %v", len(text), err)
		}
		if err == nil {
			g.Close()
		}
	}
}

// A token that is taken out of its file opens nothing from then on, nor do its sessions.
func TestTokenTakenOut(t *testing.T) {
	tokens := tokensFile(t)
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Tokens: tokens})
		c := sessionOf(t, g, Read)
		write := func(text string) {
			if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(lookAgain) // of the bubble
		}
		check := func(when string, want int) {
			t.Helper()
			a, b := ask(g, "GET", "/", "Cookie", carry(c)).Code, ask(g, "GET", "/", "Token", testTokens[Read]).Code
			if a != want || b != want {
				t.Errorf("%s: by session %d, by token %d, want %d", when, a, b, want)
			}
		}
		write(TokenLine("other", Administer, "another-another-another") + "\n")
		check("taken out", 401)
		if w := ask(g, "GET", "/", "Token", "another-another-another"); w.Code != 200 {
			t.Errorf("the new token: %d", w.Code)
		}
		write(TokenLine("anna", Read, testTokens[Read]) + "\n# and a comment\n")
		check("back", 200)
		write("nonsense\n")
		check("a file that cannot be read", 401)
		write(TokenLine("anna", Read, testTokens[Read]) + "\n")
		check("back again", 200)
		if err := os.Remove(tokens); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookAgain)
		check("without a file", 401)
	})
}

func TestNewToken(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	g := open(t, Options{State: state, NewToken: true})
	token := g.MadeToken()
	if len(token) < 50 {
		t.Fatalf("the token is %q", token)
	}
	if w := ask(g, "DELETE", "/api/v1/runs/1", "Token", token); w.Code != 200 {
		t.Errorf("%d", w.Code)
	}
	again := open(t, Options{State: state, NewToken: true})
	if again.MadeToken() != "" {
		t.Error("a second start makes another token")
	}
	if w := ask(again, "GET", "/", "Token", token); w.Code != 200 {
		t.Errorf("after a second start: %d", w.Code)
	}
}

func TestParseTokens(t *testing.T) {
	hash := hashOf("x")
	other := hashOf("y")
	for _, c := range []struct {
		text, want string // want: of the error; "": none
		n          int
	}{
		{"# a comment\n\nread anna sha256:" + hash + "\nadminister  ben\tsha256:" + other + "\n", "", 2},
		{`[{"name":"anna","role":"read","sha256":"` + hash + `"}]`, "", 1},
		{"launch anna my-plain-token", `line 1: the token of "anna" stands there itself: write sha256:` + hashOf("my-plain-token"), 0},
		{"root anna sha256:" + hash, `no role "root"`, 0},
		{"shared anna sha256:" + hash, `no role "shared"`, 0},
		{"read anna sha256:1234", "64 hexadecimal digits", 0},
		{"read anna", "line 1", 0},
		{"read a sha256:" + hash + "\nread a sha256:" + other, "two tokens", 0},
		{"read a sha256:" + hash + "\nlaunch b sha256:" + strings.ToUpper(hash), "of another name too", 0},
		{"", "no token in it", 0},
		{"[]", "no token in it", 0},
		{`[{"name":"anna","role":"read","token":"x"}]`, "unknown field", 0},
		{`[{"name":"an\u001bna","role":"read","sha256":"` + hash + `"}]`, "printable", 0},
		{`[] []`, "more behind", 0},
	} {
		all, err := ParseTokens([]byte(c.text))
		if c.want == "" && (err != nil || len(all) != c.n) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, %v", c.text, all, err)
		}
		if err != nil && strings.Contains(err.Error(), "my-plain-token") {
			t.Errorf("the error has the token: %v", err)
		}
	}
	if all, err := ParseTokens([]byte(TokenLine("anna", Launch, "secret"))); err != nil || all[0] != (Token{"anna", "launch", hashOf("secret")}) {
		t.Errorf("%v, %v", all, err)
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add("read anna sha256:" + hashOf("x"))
	f.Add(`[{"name":"anna","role":"read","sha256":"` + hashOf("x") + `"}]`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseTokens([]byte(text))
		if err != nil {
			return
		}
		for _, tok := range all {
			if role, err := ParseRole(tok.Role); err != nil || role < Read || len(tok.SHA256) != 64 || tok.Name == "" {
				t.Errorf("%q gives %+v", text, tok)
			}
		}
	})
}

// Whatever is asked for, a login leads to a page of this server.
func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/runs?a=1#b", "//evil.example", `/\evil.example`, "https://evil.example", "/%2f%2fevil", "/..//evil", "javascript:alert(1)", "/\tx", "///x", "/a?//b", "/%5cevil"} {
		f.Add(s)
	}
	base, err := url.Parse("http://lab.example/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := localPath(s)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.HasPrefix(got, `/\`) || strings.ContainsAny(got, "\r\n\t\x00\\") {
			t.Errorf("%q leads to %q", s, got)
		}
		if u, err := base.Parse(got); err != nil || u.Host != base.Host || u.Scheme != base.Scheme {
			t.Errorf("%q leads to %v, %v", s, u, err)
		}
		if again := localPath(got); again != got {
			t.Errorf("%q leads to %q, and that to %q", s, got, again)
		}
	})
}
