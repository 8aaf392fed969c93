package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
)

func TestProbe(t *testing.T) {
	models := `{"object":"list","data":[{"id":"a"},{"id":"b"}]}`
	answers := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/v1/models":
				w.WriteHeader(code)
				io.WriteString(w, body)
			case "/version":
				io.WriteString(w, `{"version":"0.11.0"}`)
			default:
				http.NotFound(w, r)
			}
		}
	}
	sim := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(simHeader, "1")
		answers(200, models)(w, r)
	}
	for name, tt := range map[string]struct {
		model string
		h     http.HandlerFunc
		want  Info
		err   string
		hint  string
	}{
		"served":    {"b", answers(200, models), Info{Models: []string{"a", "b"}, Version: "0.11.0"}, "", ""},
		"any":       {"", answers(200, models), Info{Models: []string{"a", "b"}, Version: "0.11.0"}, "", ""},
		"owned":     {"", answers(200, `{"data":[{"id":"a","owned_by":"vllm"}]}`), Info{Models: []string{"a"}, Owner: "vllm", Version: "0.11.0"}, "", ""},
		"simulated": {"a", sim, Info{Models: []string{"a", "b"}, Version: "0.11.0", Simulated: true}, "", ""},
		"no list":   {"a", answers(404, "x"), Info{Note: "http://engine.test/v1/models answers 404: the model name could not be checked"}, "", ""},
		"wrong model": {"c", answers(200, models), Info{Models: []string{"a", "b"}, Version: "0.11.0"},
			`http://engine.test does not serve model "c"; it serves "a", "b"`, "use the model name a"},
		"no model": {"c", answers(200, `{"data":[]}`), Info{Version: "0.11.0"}, "http://engine.test serves no model", "look into the server's log"},
		"no key":   {"a", answers(401, "bad key sk-secret"), Info{}, "http://engine.test refuses access (401): bad key [API key]", "give the server's key in OPENAI_API_KEY, or another credential in a header"},
		"not it":   {"a", answers(200, "<html>hi"), Info{}, "http://engine.test/v1/models is not an OpenAI-compatible list of models: <html>hi", "check the base URL: another service may listen there"},
		"stuck": {"a", func(http.ResponseWriter, *http.Request) { time.Sleep(time.Hour) }, Info{},
			"no server answers at http://engine.test: no answer within 10s", "start the server, or check the base URL (host, port, http or https)"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, Config{Model: tt.model, APIKey: "sk-secret"}, tt.h, func(t *testing.T, c *Client) {
				info, err := c.Probe(t.Context())
				if d := cmp.Diff(tt.want, info); d != "" {
					t.Errorf("-want +got:\n%s", d)
				}
				if tt.err == "" && err == nil {
					return
				}
				e, ok := errors.AsType[*EndpointError](err)
				if !ok || e.Error() != tt.err || e.Hint() != tt.hint {
					t.Errorf("error %v (%T)", err, err)
				}
			})
		})
	}
}

func TestProbeUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipes()
		ln.Close()
		c, err := New(Config{BaseURL: "http://engine.test:8000/v1", Dial: ln.dial})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Probe(t.Context())
		if want := "no server answers at http://engine.test:8000: connection refused"; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	})
}

func TestReady(t *testing.T) {
	for name, tt := range map[string]struct {
		health int           // status once up
		models int           // status once up
		up     time.Duration // 503 before
		wait   time.Duration // when Ready returns
		err    string
	}{
		"at once":          {200, 500, 0, 0, ""},
		"no health":        {404, 200, 0, 0, ""},
		"later":            {200, 500, 2 * time.Second, 2550 * ms, ""}, // polls at 0, 50, 150, 350, 750, 1550, 2550 ms
		"never":            {200, 500, time.Hour, 30 * time.Second, "http://engine.test was not ready within 30s: /health answers 503"},
		"neither answered": {404, 404, 0, 30 * time.Second, "http://engine.test was not ready within 30s: /v1/models answers 404"},
	} {
		t.Run(name, func(t *testing.T) {
			var begin time.Time
			h := func(w http.ResponseWriter, r *http.Request) {
				switch {
				case time.Since(begin) < tt.up:
					w.WriteHeader(503)
				case r.URL.Path == "/health":
					w.WriteHeader(tt.health)
				default:
					w.WriteHeader(tt.models)
				}
			}
			bubble(t, Config{}, h, func(t *testing.T, c *Client) {
				begin = time.Now()
				err := c.Ready(t.Context(), 30*time.Second)
				if got := time.Since(begin); got != tt.wait {
					t.Errorf("returned after %v, want %v", got, tt.wait)
				}
				if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
					t.Errorf("error %v, want %q", err, tt.err)
				}
			})
		})
	}
}

func TestReadyCancelled(t *testing.T) {
	bubble(t, Config{}, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }, func(t *testing.T, c *Client) {
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		begin := time.Now()
		if err := c.Ready(ctx, time.Hour); err != why || time.Since(begin) != time.Second {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
	})
}

func TestHeaders(t *testing.T) {
	var got http.Header
	h := func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		say(w, word("a"), done)
	}
	bubble(t, Config{APIKey: "k", Headers: map[string]string{"x-team": "perf", "user-agent": "mine"}}, h, func(t *testing.T, c *Client) {
		c.Send(t.Context(), time.Now(), request("p"))
		for k, want := range map[string]string{"Authorization": "Bearer k", "X-Team": "perf", "User-Agent": "mine", "Content-Type": "application/json", "Accept-Encoding": ""} {
			if v := strings.Join(got[k], ","); v != want {
				t.Errorf("%s: %q, want %q", k, v, want)
			}
		}
		if _, sent := got["Idempotency-Key"]; sent {
			t.Error("the idempotency key was sent")
		}
	})
}

// TestHostHeader: a gateway tells its models apart by the host that requests
// name, whichever way they go and whatever they ask.
func TestHostHeader(t *testing.T) {
	got := make(chan string, 8)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Host
		say(w, word("a"), done)
	}))
	defer srv.Close()
	secure := httptest.NewTLSServer(srv.Config.Handler) // over net/http
	defer secure.Close()
	for _, url := range []string{srv.URL, secure.URL} {
		c, err := New(Config{BaseURL: url, Insecure: true, Headers: map[string]string{"host": "model.example.com"}})
		if err != nil {
			t.Fatal(err)
		}
		if call := c.Send(t.Context(), time.Now(), request("p")); call.Class != result.OK {
			t.Errorf("%s: %s", url, call.Error)
		}
		if _, err := c.get(t.Context(), "/health"); err != nil {
			t.Error(err)
		}
		for range 2 {
			if host := <-got; host != "model.example.com" {
				t.Errorf("%s was asked for host %s", url, host)
			}
		}
		c.Close()
	}
}
