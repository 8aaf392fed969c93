package guard

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// shared serves what links open.
func shared(g *Guard) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "list %v %s", From(r.Context()).IDs, From(r.Context()).Base)
	})
	mux.HandleFunc("GET /runs/{id}", func(w http.ResponseWriter, r *http.Request) {
		if !From(r.Context()).Sees(r.PathValue("id")) {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "run ", r.PathValue("id"), r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	})
	mux.Handle("GET /api/v1/admin", g.Need(Read, http.NotFoundHandler()))
	g.HandleShared(mux)
}

func TestShare(t *testing.T) {
	tokens := tokensFile(t)
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Tokens: tokens})
		path, until, err := g.Share([]string{"run-1", "run/2"}, time.Hour)
		if err != nil || !until.Equal(time.Now().Add(time.Hour).Truncate(time.Second)) {
			t.Fatalf("%v, %v", until, err)
		}
		if w := ask(g, "GET", path); w.Code != 404 {
			t.Errorf("a server without shared pages: %d", w.Code)
		}
		shared(g)
		for sub, want := range map[string]string{
			"": "list [run-1 run/2] " + strings.TrimSuffix(path, "/"), "runs/run-1": "run run-1", "runs/run%2F2": "404", "runs/run-3": "404", "api/v1/admin": "403", "api/v1/runs/run-1": "404",
			"../../api/v1/runs/run-1": "404", "..%2f..%2fapi/v1/runs/1": "404",
		} {
			w := ask(g, "GET", path+sub)
			if got := w.Body.String(); w.Code == 200 && got != want || w.Code != 200 && !strings.HasPrefix(fmt.Sprint(w.Code), want[:1]) {
				t.Errorf("%q: %d %q, want %q", sub, w.Code, got, want)
			}
			if w.Header().Get("Referrer-Policy") != "no-referrer" || len(w.Result().Cookies()) != 0 {
				t.Errorf("%q: %v", sub, w.Header())
			}
		}
		if w := ask(g, "POST", path); w.Code != 403 {
			t.Errorf("POST: %d", w.Code)
		}
		if w := ask(g, "GET", path+"runs/run-1", "Token", testTokens[Administer], "Cookie", "a=b"); w.Body.String() != "run run-1" {
			t.Errorf("a token beside a link: %q", w.Body)
		}
		if w := ask(g, "GET", path, "Host", "evil.example"); w.Code != 403 {
			t.Errorf("another host: %d", w.Code)
		}
		time.Sleep(time.Hour) // of the bubble
		if w := ask(g, "GET", path); w.Code != http.StatusGone {
			t.Errorf("after its end: %d", w.Code)
		}
	})
}

func TestForgedLinks(t *testing.T) {
	g := open(t, Options{Tokens: tokensFile(t)})
	shared(g)
	path, _, err := g.Share([]string{"run-1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := open(t, Options{Tokens: tokensFile(t)}).Share([]string{"run-1"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	said, mac, _ := strings.Cut(strings.Trim(strings.TrimPrefix(path, sharePath), "/"), ".")
	enc := base64.RawURLEncoding
	more := enc.EncodeToString([]byte(`{"ids":["run-1","run-2"],"until":99999999999}`))
	for name, forged := range map[string]string{
		"another server's": other, "more ids": sharePath + more + "." + mac + "/", "no signature": sharePath + said + "/", "empty signature": sharePath + said + "./",
		"empty": sharePath, "only a dot": sharePath + "./", "signature of nothing": sharePath + "." + enc.EncodeToString(sign(nil, nil)) + "/",
		"key of nothing": sharePath + more + "." + enc.EncodeToString(sign(nil, []byte(`{"ids":["run-1","run-2"],"until":99999999999}`))) + "/",
		"padded":         sharePath + said + "." + mac + "=/", "short signature": sharePath + said + "." + mac[:20] + "/",
	} {
		if w := ask(g, "GET", "http://localhost:8080"+forged); w.Code != 404 && w.Code != 403 {
			t.Errorf("%s: %d %q", name, w.Code, w.Body)
		}
	}
	page, err := g.History("", 50, nil)
	if err != nil || len(page.Events) == 0 {
		t.Fatalf("%v", err)
	}
	if text := fmt.Sprint(page); strings.Contains(text, said) || strings.Contains(text, mac) {
		t.Error("a link is in the audit log")
	}
	for i, ids := range [][]string{nil, make([]string, 201), {""}, {strings.Repeat("x", 201)}} {
		if _, _, err := g.Share(ids, time.Hour); err == nil {
			t.Errorf("list %d is shared", i)
		}
	}
	for _, life := range []time.Duration{0, -1, longestShare + 1} {
		if _, _, err := g.Share([]string{"x"}, life); err == nil {
			t.Errorf("for %v", life)
		}
	}
}

// The longest link that can be made is read again, and fits into the header of a request.
func TestLongestLink(t *testing.T) {
	g := open(t, Options{Token: testTokens[Administer]})
	ids := make([]string, mostShared)
	for i := range ids {
		ids[i] = fmt.Sprintf("%0*d", longestID, i)
	}
	path, _, err := g.Share(ids, time.Hour)
	if err != nil || len(path) > largestHeader*3/4 {
		t.Fatalf("%d bytes, %v", len(path), err)
	}
	shared(g)
	r := httptest.NewRequest("GET", path+"runs/"+ids[mostShared-1], nil)
	r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
	w := httptest.NewRecorder()
	if g.Handler(routes(g)).ServeHTTP(w, r); w.Code != 200 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

// Only what was signed by the key is a link.
func FuzzReadLink(f *testing.F) {
	key := []byte("0123456789abcdef0123456789abcdef")
	good := signLink(key, link{[]string{"a"}, 1000})
	f.Add(good)
	f.Add(good + "x")
	f.Add(".")
	f.Add(strings.Replace(good, ".", "..", 1))
	now := time.Unix(999, 0)
	f.Fuzz(func(t *testing.T, s string) {
		l, err := readLink(key, s, now)
		if err == nil && (s != good || len(l.IDs) != 1) {
			t.Errorf("%q opens %v", s, l)
		}
		if _, err := readLink(key, s, time.Unix(1000, 0)); err == nil {
			t.Errorf("%q is good after its end", s)
		}
	})
}
