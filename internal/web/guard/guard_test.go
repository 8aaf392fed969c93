package guard

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/web/guard/trail"
)

// The tokens of the tests, by role.
var testTokens = map[Role]string{Read: "reader-reader-reader-1", Launch: "launcher-launcher-1234", Administer: "administer-administer"}

// tokensFile writes a tokens file with one token of each role.
func tokensFile(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, role := range slices.Sorted(maps.Keys(testTokens)) {
		b.WriteString(TokenLine("name-"+role.String(), role, testTokens[role]) + "\n")
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// routes answer with who asked, and by the roles that they need.
func routes(g *Guard) http.Handler {
	say := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := From(r.Context())
		fmt.Fprintf(w, "%s %s %s", who.Name, who.Role, who.Address)
	})
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", say)
	mux.Handle("GET /api/v1/runs/{id}", say)
	mux.Handle("POST /api/v1/launches", g.Need(Launch, say))
	mux.Handle("DELETE /api/v1/runs/{id}", g.Need(Administer, say))
	mux.Handle("GET /static/app.css", say)
	mux.Handle("PUT /api/v1/upload", g.Body(64<<10, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	})))
	mux.Handle("POST /api/v1/small", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n, err)
	}))
	mux.Handle("GET /api/v1/panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") }))
	return mux
}

func open(t *testing.T, o Options) *Guard {
	t.Helper()
	if o.State == "" {
		o.State = filepath.Join(t.TempDir(), "state")
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	g, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// withTokens is a guard with the tokens of the tests.
func withTokens(t *testing.T) *Guard {
	return open(t, Options{Tokens: tokensFile(t), Public: []string{"/static/"}})
}

// ask sends a request: header is names and values in turn, of which Host, From and Token mean something.
func ask(g *Guard, method, target string, header ...string) *httptest.ResponseRecorder {
	return askWith(g, method, target, nil, header...)
}

func askWith(g *Guard, method, target string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, body)
	r.Host, r.RemoteAddr = "localhost:8080", "127.0.0.1:50000"
	for i := 0; i < len(header); i += 2 {
		switch name, value := header[i], header[i+1]; name {
		case "Host":
			r.Host = value
		case "From":
			r.RemoteAddr = value
		case "Token":
			r.Header.Set("Authorization", "Bearer "+value)
		default:
			r.Header.Add(name, value)
		}
	}
	w := httptest.NewRecorder()
	g.Handler(routes(g)).ServeHTTP(w, r)
	return w
}

func TestRoles(t *testing.T) {
	g := withTokens(t)
	for _, c := range []struct{ method, path string }{
		{"GET", "/"}, {"GET", "/api/v1/runs/1"}, {"POST", "/api/v1/launches"}, {"DELETE", "/api/v1/runs/1"},
	} {
		needs := map[string]Role{"GET": Read, "POST": Launch, "DELETE": Administer}[c.method]
		if w := ask(g, c.method, c.path); w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s without a token: %d %q", c.method, c.path, w.Code, w.Body)
		}
		for role, token := range testTokens {
			want := http.StatusOK
			if role < needs {
				want = http.StatusForbidden
			}
			w := ask(g, c.method, c.path, "Token", token)
			if w.Code != want {
				t.Errorf("%s %s with role %s: %d, want %d", c.method, c.path, role, w.Code, want)
			}
			if said := fmt.Sprintf("name-%s %s 127.0.0.1", role, role); want == http.StatusOK && w.Body.String() != said {
				t.Errorf("%s %s: %q, want %q", c.method, c.path, w.Body, said)
			}
		}
	}
	if w := ask(g, "GET", "/static/app.css"); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "nobody nobody") {
		t.Errorf("what is public, without a token: %d %q", w.Code, w.Body)
	}
	for _, path := range []string{"/static", "/staticx/app.css", "/Static/app.css", "//static/app.css", "/static/../api/v1/runs/1", "/static/%2e%2e/api/v1/runs/1", "/static/..%2fapi", "/static//app.css", "/static/."} {
		if w := ask(g, "GET", "http://localhost:8080"+path); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", path, w.Code)
		}
	}
}

func TestWrongTokens(t *testing.T) {
	g := withTokens(t)
	good := testTokens[Read]
	for _, value := range []string{"", "Bearer", "Bearer ", "Bearer " + good[1:], "Bearer " + good + "x", "Bearer " + strings.ToUpper(good), "Basic " + good, good,
		"Bearer " + hashOf(good), "Bearer x " + good} {
		w := ask(g, "GET", "/api/v1/runs/1", "Authorization", value, "From", "127.0.0.2:1")
		if w.Code != http.StatusUnauthorized && w.Code != http.StatusTooManyRequests {
			t.Errorf("%q: %d", value, w.Code)
		}
	}
	if w := ask(g, "GET", "/api/v1/runs/1", "Token", good, "Authorization", "Bearer other"); w.Code != http.StatusUnauthorized {
		t.Errorf("two tokens in one request: %d", w.Code)
	}
	if w := ask(g, "GET", "/api/v1/runs/1?token="+good); w.Code != http.StatusUnauthorized {
		t.Errorf("a token in the URL: %d", w.Code)
	}
	if w := ask(g, "GET", "/api/v1/runs/1", "Authorization", "bearer  "+good); w.Code != http.StatusOK {
		t.Errorf("a scheme in small letters: %d", w.Code)
	}
}

// Guessing is slow, also for who guesses right in the end, and others are not kept waiting.
func TestGuessing(t *testing.T) {
	tokens := tokensFile(t)
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Tokens: tokens, Limits: Limits{WrongTokens: 3}})
		for i := range 3 {
			if w := ask(g, "GET", "/", "Token", fmt.Sprint("guess", i)); w.Code != http.StatusUnauthorized {
				t.Fatalf("guess %d: %d", i, w.Code)
			}
		}
		w := ask(g, "GET", "/", "Token", testTokens[Read])
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("the right token after three wrong ones: %d", w.Code)
		}
		if w := postLogin(g, testTokens[Read], "/"); w.Code != http.StatusTooManyRequests {
			t.Errorf("the right token in the form after three wrong ones: %d", w.Code)
		}
		if w := ask(g, "GET", "/", "Token", testTokens[Read], "From", "127.0.0.9:1"); w.Code != http.StatusOK {
			t.Errorf("from another address: %d", w.Code)
		}
		time.Sleep(20 * time.Second) // of the bubble
		if w := ask(g, "GET", "/", "Token", testTokens[Read]); w.Code != http.StatusOK {
			t.Errorf("after a while: %d", w.Code)
		}
	})
}

func TestOpen(t *testing.T) {
	g := open(t, Options{})
	if w := ask(g, "DELETE", "/api/v1/runs/1"); w.Code != http.StatusOK || w.Body.String() != "local administer 127.0.0.1" {
		t.Errorf("without tokens on loopback: %d %q", w.Code, w.Body)
	}
	for name, header := range map[string][]string{
		"another machine": {"From", "192.0.2.1:99"},
		"a proxy":         {"X-Forwarded-For", "192.0.2.1"},
		"another proxy":   {"Via", "1.1 proxy"},
	} {
		if w := ask(g, "GET", "/", header...); w.Code != http.StatusForbidden {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

func TestHost(t *testing.T) {
	g := open(t, Options{Token: testTokens[Administer], Hosts: []string{"lab.example", "gpu:8443"}})
	for host, want := range map[string]int{
		"localhost": 200, "localhost:8080": 200, "LOCALHOST:9": 200, "127.0.0.1:1": 200, "127.8.8.8": 200, "[::1]:80": 200, "lab.example": 200, "Lab.Example:443": 200, "gpu:8443": 200,
		"gpu": 403, "gpu:80": 403, "evil.example": 403, "localhost.evil.example": 403, "lab.example.evil": 403, "192.0.2.1": 403, "": 403, "localhost:80:80": 403,
		"localhost\r\nX: y": 403, "127.0.0.1.evil.example": 403, "lab.example@evil.example": 403, "0.0.0.0:8080": 403,
	} {
		if w := ask(g, "GET", "/", "Host", host, "Token", testTokens[Administer]); w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
	}
	// A bare address is good where the connection came to it.
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "192.0.2.7:8443"
	local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8443}
	if r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, local)); !g.knows(r) {
		t.Error("the address that was connected to is not known")
	}
	if r.Host = "192.0.2.8:8443"; g.knows(r) {
		t.Error("another address is known")
	}
}

func TestOtherSites(t *testing.T) {
	g := open(t, Options{})
	for _, c := range []struct {
		name, method string
		header       []string
		want         int
	}{
		{"own page", "POST", []string{"Origin", "http://localhost:8080", "Sec-Fetch-Site", "same-origin"}, 200},
		{"program", "POST", nil, 200},
		{"other origin", "POST", []string{"Origin", "http://evil.example"}, 403},
		{"other port", "POST", []string{"Origin", "http://localhost:3000"}, 403},
		{"sandboxed page", "POST", []string{"Origin", "null"}, 403},
		{"cross-site post", "POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"same-site post", "POST", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"cross-site form", "POST", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"link from another site", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{"picture in another site", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		{"frame in another site", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"events for another port", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"typed address", "GET", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
	} {
		path := map[string]string{"GET": "/api/v1/runs/1", "POST": "/api/v1/launches"}[c.method]
		if w := ask(g, c.method, path, c.header...); w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		} else if w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: another site may read the answer", c.name)
		}
	}
}

func TestProxies(t *testing.T) {
	g := open(t, Options{Listen: "0.0.0.0:0", Token: testTokens[Administer], Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/30")}})
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		want       int
		address    string
	}{
		{"by the proxy", "192.0.2.1:9", []string{"198.51.100.7"}, 200, "198.51.100.7"},
		{"by two proxies", "192.0.2.1:9", []string{"198.51.100.7, 192.0.2.2"}, 200, "198.51.100.7"},
		{"client that makes itself another", "192.0.2.1:9", []string{"203.0.113.5, 198.51.100.7"}, 200, "198.51.100.7"},
		{"in headers of their own", "192.0.2.1:9", []string{"203.0.113.5", "198.51.100.7"}, 200, "198.51.100.7"},
		{"nonsense", "192.0.2.1:9", []string{"x\ny"}, 200, "192.0.2.1"},
		{"without", "192.0.2.1:9", nil, 200, "192.0.2.1"},
		{"around the proxy", "198.51.100.7:9", []string{"192.0.2.1"}, 403, ""},
	} {
		header := []string{"From", c.peer, "Token", testTokens[Administer]}
		for _, f := range c.forwarded {
			header = append(header, "X-Forwarded-For", f)
		}
		w := ask(g, "GET", "/", header...)
		if w.Code != c.want || c.want == 200 && w.Body.String() != "token administer "+c.address {
			t.Errorf("%s: %d %q", c.name, w.Code, w.Body)
		}
	}
	if w := ask(g, "GET", "/", "From", "192.0.2.1:9", "X-Forwarded-Proto", "http", "Token", testTokens[Administer]); w.Code != 403 {
		t.Errorf("without TLS before the proxy: %d", w.Code)
	}
	if c := (door{g}).cookie("x", time.Hour); !c.Secure {
		t.Error("a cookie behind a proxy with TLS is not Secure")
	}
	direct := withTokens(t)
	if w := ask(direct, "GET", "/", "Token", testTokens[Read], "X-Forwarded-For", "203.0.113.5", "X-Real-Ip", "203.0.113.5"); !strings.HasSuffix(w.Body.String(), " 127.0.0.1") {
		t.Errorf("a client without a proxy gives itself an address: %q", w.Body)
	}
}

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", 20)
	for _, c := range []struct {
		name string
		o    Options
		want string // "": they are good
	}{
		{"loopback", Options{Listen: "127.0.0.1:8080"}, ""},
		{"loopback by name", Options{Listen: "localhost:0"}, ""},
		{"loopback of version 6", Options{Listen: "[::1]:0"}, ""},
		{"everywhere", Options{Listen: ":8080"}, "needs tokens"},
		{"everywhere without TLS", Options{Listen: "0.0.0.0:8080", Token: long}, "needs TLS"},
		{"everywhere without a token", Options{Listen: "0.0.0.0:8080", MakeCertificate: true}, "needs tokens"},
		{"everywhere", Options{Listen: "0.0.0.0:8080", MakeCertificate: true, NewToken: true}, ""},
		{"a name", Options{Listen: "lab.example:8080"}, "needs TLS"},
		{"no port", Options{Listen: "127.0.0.1"}, "host and a port"},
		{"short token", Options{Listen: "127.0.0.1:0", Token: "secret"}, "can be guessed"},
		{"certificate alone", Options{Listen: "127.0.0.1:0", Certificate: "x"}, "give both"},
		{"named and open", Options{Listen: "127.0.0.1:0", Hosts: []string{"lab"}}, "comes from elsewhere"},
		{"proxy and open", Options{Listen: "127.0.0.1:0", Proxies: []netip.Prefix{{}}}, "behind a proxy"},
		{"bad host", Options{Listen: "127.0.0.1:0", Token: long, Hosts: []string{"http://lab"}}, "no host name"},
	} {
		c.o.State = "state"
		switch err := c.o.Validate(); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestHeaders(t *testing.T) {
	g := withTokens(t)
	for name, w := range map[string]*httptest.ResponseRecorder{
		"page": ask(g, "GET", "/", "Token", testTokens[Read]), "refused": ask(g, "GET", "/"), "not found": ask(g, "GET", "/none", "Token", testTokens[Read]), "login": ask(g, "GET", "/login"),
		"wrong host": ask(g, "GET", "/", "Host", "evil.example"),
	} {
		policy := w.Header().Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy has no %s: %s", name, want, policy)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("%s: %s", name, policy)
		}
		for _, h := range []string{"X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy", "Permissions-Policy", "Cache-Control", "X-Request-Id"} {
			if w.Header().Get(h) == "" {
				t.Errorf("%s has no %s", name, h)
			}
		}
	}
}

func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Limits: Limits{Rate: 10, Burst: 5}})
		codes := map[int]int{}
		for range 8 {
			codes[ask(g, "GET", "/").Code]++
		}
		if codes[200] != 5 || codes[429] != 3 {
			t.Errorf("of 8 at once: %v", codes)
		}
		if w := ask(g, "GET", "/", "From", "127.0.0.2:1"); w.Code != 200 {
			t.Errorf("another client: %d", w.Code)
		}
		time.Sleep(100 * time.Millisecond) // of the bubble: one more
		if a, b := ask(g, "GET", "/").Code, ask(g, "GET", "/").Code; a != 200 || b != 429 {
			t.Errorf("after a tenth of a second: %d and %d", a, b)
		}
	})
}

// Many addresses cost no more memory than the bound, and one network of IPv6 is one client.
func TestBuckets(t *testing.T) {
	b := newBuckets(1, 2)
	for i := range 3 * mostBuckets {
		b.take(fmt.Sprint(i))
	}
	if len(b.of) > mostBuckets+1 {
		t.Errorf("%d buckets", len(b.of))
	}
	if ok, _ := b.take("new"); ok {
		t.Error("who comes after too many does not share what is left")
	}
	one, two := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::ffff:2")
	if network(one) != network(two) || network(one) == network(netip.MustParseAddr("2001:db8:0:1::1")) {
		t.Error("networks of IPv6 are not told apart as they should be")
	}
}

func TestBodies(t *testing.T) {
	g := open(t, Options{Limits: Limits{Body: 1000}})
	for _, c := range []struct {
		method, path string
		size         int
		length       bool
		want         string
	}{
		{"POST", "/api/v1/small", 1000, true, "1000 <nil>"},
		{"POST", "/api/v1/small", 1001, true, "1000 http: request body too large"},
		{"POST", "/api/v1/small", 1001, false, "1000 http: request body too large"},
		{"PUT", "/api/v1/upload", 64 << 10, true, "65536 <nil>"},
		{"PUT", "/api/v1/upload", 64<<10 + 1, false, "65536 http: request body too large"},
		{"PUT", "/api/v1/upload", 64<<10 + 1, true, `"error":"this is too large: at most 64 KiB are taken here"`},
	} {
		var body io.Reader = strings.NewReader(strings.Repeat("x", c.size))
		if !c.length {
			body = io.MultiReader(body)
		}
		if w := askWith(g, c.method, c.path, body); !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s of %d bytes: %d %q, want %q", c.path, c.size, w.Code, w.Body, c.want)
		}
	}
}

func TestPanic(t *testing.T) {
	g := open(t, Options{})
	w := ask(g, "GET", "/api/v1/panic")
	if w.Code != 500 || !strings.Contains(w.Body.String(), w.Header().Get("X-Request-Id")) {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func TestMetrics(t *testing.T) {
	g := withTokens(t)
	ask(g, "GET", "/api/v1/runs/secret-id", "Token", testTokens[Read])
	ask(g, "GET", "/api/v1/none", "Token", testTokens[Read])
	ask(g, "GET", "/", "Token", "wrong-wrong-wrong-wrong")
	w := httptest.NewRecorder()
	g.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text := w.Body.String()
	for _, want := range []string{
		`perflab_http_requests_total{route="GET /api/v1/runs/{id}",status="200"} 1`, `perflab_http_requests_total{route="other",status="404"} 1`,
		`perflab_http_refusals_total{reason="wrong token"} 1`, `perflab_sessions 0`, "perflab_event_streams 0",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("there is no %s in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret-id") {
		t.Error("a path is a label")
	}
}

// What was refused is written down with who and where, in a line of its own, without what was sent
// as a secret.
func TestAudit(t *testing.T) {
	g := withTokens(t)
	ask(g, "DELETE", "/api/v1/runs/%0A%7B%22action%22:%22forged%22%7D", "Token", testTokens[Read])
	ask(g, "GET", "/", "Token", "wrong-wrong-wrong-wrong-wrong")
	ask(g, "GET", "/", "Host", "evil.example")
	err := g.Audit(With(t.Context(), Who{Name: "anna", Role: Launch, Address: "127.0.0.1", Request: "id"}),
		trail.Event{Action: "launch", Object: "study\nforged", Detail: map[string]string{"command": "serve --api-key sk-12345678901234567890"}})
	if err != nil {
		t.Fatal(err)
	}
	page, err := g.History("", 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Events) != 4 {
		t.Fatalf("%d events: %+v", len(page.Events), page.Events)
	}
	launch, host, wrong, role := page.Events[0], page.Events[1], page.Events[2], page.Events[3]
	if launch.Who != "anna" || launch.Role != "launch" || launch.Request != "id" || launch.Outcome != trail.Done || launch.Object != "study forged" || launch.Time.IsZero() {
		t.Errorf("%+v", launch)
	}
	if strings.Contains(fmt.Sprint(page), "sk-1234") || strings.Contains(fmt.Sprint(page), "wrong-wrong") {
		t.Errorf("a secret is in the log: %+v", page)
	}
	if host.Detail["host"] != "evil.example" || wrong.Outcome != trail.Refused || role.Who != "name-read" || !strings.HasPrefix(role.Reason, "role: ") {
		t.Errorf("%+v\n%+v\n%+v", host, wrong, role)
	}
}

// Refusals cannot push what others did out of the log.
func TestAuditFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{})
		for range 3 * refusalsPerMinute {
			ask(g, "GET", "/", "Host", "evil.example")
		}
		page, err := g.History("", 1000, nil)
		if err != nil || len(page.Events) != refusalsPerMinute {
			t.Errorf("%d events, %v", len(page.Events), err)
		}
	})
}

func postLogin(g *Guard, token, next string, header ...string) *httptest.ResponseRecorder {
	form := url.Values{"token": {token}, "next": {next}}.Encode()
	return askWith(g, "POST", "/login", strings.NewReader(form), append(header, "Content-Type", "application/x-www-form-urlencoded")...)
}

// What the guard costs a request of a browser that is logged in.
func BenchmarkHandler(b *testing.B) {
	g, err := New(Options{Listen: "127.0.0.1:0", State: filepath.Join(b.TempDir(), "state"), Token: testTokens[Read], Limits: Limits{Rate: 1e9, Burst: 1e9}})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()
	value, _, err := g.sessions.begin(hashOf(testTokens[Read]))
	if err != nil {
		b.Fatal(err)
	}
	h := g.Handler(routes(g))
	r := httptest.NewRequest("GET", "/api/v1/runs/1", nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	r.AddCookie((door{g}).cookie(value, time.Hour))
	for b.Loop() {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
