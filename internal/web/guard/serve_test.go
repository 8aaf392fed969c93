package guard

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener of connections inside one bubble of synctest, where time is exact.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// local is an end of a pipe that has the address of this machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2} }
func (local) LocalAddr() net.Addr  { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// serve serves inside a bubble; dial connects to it.
func serve(t *testing.T, g *Guard, h http.Handler) (dial func() net.Conn) {
	return serveOver(t, g, h, func(l net.Listener) net.Listener { return l })
}

func serveTLS(t *testing.T, g *Guard, h http.Handler) (dial func() net.Conn) {
	return serveOver(t, g, h, g.secured)
}

func serveOver(t *testing.T, g *Guard, h http.Handler, over func(net.Listener) net.Listener) (dial func() net.Conn) {
	t.Helper()
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, over(p), g.Handler(h)) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return func() net.Conn {
		client, server := net.Pipe()
		p.conns <- local{server}
		t.Cleanup(func() { client.Close() })
		return client
	}
}

// untilClosed says how long a connection stays open, and what came of it.
func untilClosed(c net.Conn) (time.Duration, string) {
	began := time.Now()
	b, _ := io.ReadAll(c)
	return time.Since(began), string(b)
}

// A client that does not send its header, or its body, or does not read the answer, is given up.
func TestSlowClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Limits: Limits{Header: 5 * time.Second, Stalled: 20 * time.Second}})
		mux := http.NewServeMux()
		var read int64
		var problem error
		mux.HandleFunc("POST /read", func(w http.ResponseWriter, r *http.Request) { read, problem = io.Copy(io.Discard, r.Body) })
		mux.HandleFunc("POST /ignore", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "done") })
		mux.HandleFunc("GET /small", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "done") })
		gaveUp := make(chan time.Duration, 1)
		mux.HandleFunc("GET /large", func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					gaveUp <- time.Since(began)
					return
				}
			}
		})
		dial := serve(t, g, mux)

		c := dial()
		go fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
		if d, _ := untilClosed(c); d < 5*time.Second || d > 6*time.Second {
			t.Errorf("a header that does not end: %v", d)
		}

		c = dial()
		go fmt.Fprint(c, "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nfour")
		if d, _ := untilClosed(c); d < 20*time.Second || d > 21*time.Second || read != 4 || problem == nil {
			t.Errorf("a body that stalls: %v, %d bytes read, %v", d, read, problem)
		}

		c = dial()
		go func(c net.Conn) { // never stalled, and much too slow
			fmt.Fprint(c, "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
			for range 100 {
				if _, err := fmt.Fprint(c, "x"); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}(c)
		if d, _ := untilClosed(c); d < 20*time.Second || d > 22*time.Second || problem == nil {
			t.Errorf("a byte each second: %v, %d bytes read, %v", d, read, problem)
		}

		c = dial()
		go fmt.Fprint(c, "POST /ignore HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nfour")
		if d, said := untilClosed(c); d > 21*time.Second || !strings.Contains(said, "done") {
			t.Errorf("a body that nobody wants: %v, %q", d, said)
		}

		c = dial()
		fmt.Fprint(c, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if d := <-gaveUp; d < 20*time.Second || d > 21*time.Second {
			t.Errorf("an answer that nobody takes: %v", d)
		}

		c = dial()
		fmt.Fprint(c, "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\n")
		time.Sleep(41 * time.Second) // of the bubble
		if d, said := untilClosed(c); d != 0 || said != "" {
			t.Errorf("a small answer that nobody takes: after its time the connection is open for %v and has %q", d, said)
		}
	})
}

// A body that comes slowly but surely, and events with long silence between them, are not cut.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Limits: Limits{Header: 5 * time.Second, Stalled: 20 * time.Second, Stream: time.Hour}})
		mux := http.NewServeMux()
		mux.HandleFunc("POST /read", func(w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			fmt.Fprint(w, n, " ", err)
		})
		mux.Handle("GET /events", g.Stream(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for i := range 5 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Errorf("event %d: %v", i, err)
				}
				select {
				case <-time.After(5 * time.Minute):
				case <-r.Context().Done():
					t.Errorf("the stream ended at event %d: %v", i, context.Cause(r.Context()))
					return
				}
			}
		})))
		mux.HandleFunc("GET /slow", func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(10 * time.Minute):
			case <-r.Context().Done():
			}
			fmt.Fprint(w, "computed ", r.Context().Err())
		})
		dial := serve(t, g, mux)

		c := dial()
		go func(c net.Conn) {
			fmt.Fprint(c, "POST /read HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\nConnection: close\r\n\r\n")
			for range 100 {
				fmt.Fprint(c, strings.Repeat("x", 2000))
				time.Sleep(time.Second)
			}
		}(c)
		if _, said := untilClosed(c); !strings.HasSuffix(said, "200000 <nil>") {
			t.Errorf("a slow body: %q", said)
		}
		for path, want := range map[string]string{"/events": "data: 4", "/slow": "computed <nil>"} {
			c = dial()
			go fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
			if _, said := untilClosed(c); !strings.Contains(said, want) {
				t.Errorf("%s: %q", path, said)
			}
		}
	})
}

// events opens a stream of a handler that sends nothing until it ends, and tells why it ended.
func events(g *Guard, ended chan<- error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /events", g.Stream(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	})))
	return mux
}

// A stream ends with its session, with a logout, with the server, and after an hour.
func TestStreamEnds(t *testing.T) {
	tokens := tokensFile(t)
	for name, c := range map[string]struct {
		session, stream time.Duration
		logout          bool
		want            time.Duration
	}{
		"session": {time.Minute, time.Hour, false, time.Minute},
		"logout":  {time.Hour, time.Hour, true, 10 * time.Second},
		"limit":   {4 * time.Hour, time.Hour, false, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := open(t, Options{Tokens: tokens, Limits: Limits{Session: c.session, Stream: c.stream}})
			ended := make(chan error, 1)
			dial := serve(t, g, events(g, ended))
			cookie := sessionOf(t, g, Read)
			conn := dial()
			began := time.Now()
			go fmt.Fprintf(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\nCookie: %s\r\n\r\n", carry(cookie))
			go io.Copy(io.Discard, conn)
			if c.logout {
				time.Sleep(10 * time.Second)
				ask(g, "POST", "/logout", "Cookie", carry(cookie))
			}
			if err := <-ended; err != errEnded || time.Since(began) != c.want {
				t.Errorf("%s: it ended after %v by %v", name, time.Since(began), err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{})
		ended := make(chan error, 1)
		dial := serve(t, g, events(g, ended))
		conn := dial()
		go fmt.Fprint(conn, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
		go io.Copy(io.Discard, conn)
		synctest.Wait()
		if n := g.streams.total(); n != 1 {
			t.Errorf("%v streams are open", n)
		}
		g.stop()
		if err := <-ended; err != http.ErrServerClosed {
			t.Errorf("the server ends: %v", err)
		}
		synctest.Wait()
		if n := g.streams.total(); n != 0 {
			t.Errorf("%v streams stay open", n)
		}
	})
}

func TestMostStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{Limits: Limits{Streams: 2, AllStreams: 3}})
		dial := serve(t, g, events(g, make(chan error, 10)))
		status := func() string {
			c := dial()
			go fmt.Fprint(c, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
			line, err := bufio.NewReader(c).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			go io.Copy(io.Discard, c)
			return strings.Fields(line)[1]
		}
		if a, b, c := status(), status(), status(); a != "200" || b != "200" || c != "429" {
			t.Errorf("three streams of one client: %s %s %s", a, b, c)
		}
		if !g.streams.enter("another") || g.streams.enter("a third") {
			t.Error("the bound of all streams does not hold")
		}
		g.streams.leave("another")
	})
}

// Requests that are two to one reader and one to another are not served.
func TestSmuggling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{})
		reached := 0
		dial := serve(t, g, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
		for name, request := range map[string]string{
			"two lengths":         "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nhello",
			"two hosts":           "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
			"no host":             "GET / HTTP/1.1\r\n\r\n",
			"blank in a name":     "GET / HTTP/1.1\r\nHost: localhost\r\nX-A : b\r\n\r\n",
			"NUL in a value":      "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: b\x00c\r\n\r\n",
			"header of 200 KiB":   "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: " + strings.Repeat("x", 200<<10) + "\r\n\r\n",
			"host of another way": "GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
			"no HTTP":             "SSH-2.0-OpenSSH_9.9\r\n\r\n",
		} {
			c := dial()
			go func() {
				_, _ = io.WriteString(c, request) // a server that has enough closes
			}()
			line, _ := bufio.NewReader(c).ReadString('\n')
			if f := strings.Fields(line); len(f) < 2 || f[1][0] != '4' || reached > 0 {
				t.Errorf("%s: %q, and the handler was reached %d times", name, line, reached)
			}
			c.Close()
		}
	})
}

func TestListen(t *testing.T) {
	g := open(t, Options{Listen: "localhost:0"})
	l, err := g.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if at := l.Addr().(*net.TCPAddr); !at.IP.IsLoopback() {
		t.Errorf("%v", at)
	}
	if g.Fingerprint() != "" {
		t.Error("there is a fingerprint without TLS")
	}
}

// get asks for a path over TLS and trusts the certificate that the state directory keeps.
func get(t *testing.T, state, target string, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*http.Response, string) {
	t.Helper()
	pem, err := os.ReadFile(filepath.Join(state, "tls.pem"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), "GET", target, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+testTokens[Administer])
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || answer.ProtoMajor != 2 {
		t.Errorf("HTTP/%d, %v", answer.ProtoMajor, err)
	}
	return answer, string(b)
}

// The certificate that was made is the one that clients get, and the fingerprint is its own.
func TestTLS(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	g := open(t, Options{State: state, Token: testTokens[Administer], MakeCertificate: true})
	l, err := g.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Serve(ctx, l, g.Handler(routes(g))) }()
	answer, said := get(t, state, "https://"+l.Addr().String()+"/", nil)
	if said != "token administer 127.0.0.1" {
		t.Errorf("%d %q", answer.StatusCode, said)
	}
	sum := sha256.Sum256(answer.TLS.PeerCertificates[0].Raw)
	if want := strings.ToUpper(fmt.Sprintf("%x", sum)); strings.ReplaceAll(g.Fingerprint(), ":", "") != want {
		t.Errorf("the fingerprint is %s, want %s", g.Fingerprint(), want)
	}
	if info, err := os.Stat(filepath.Join(state, "tls-key.pem")); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("others may read the key: %v, %v", info.Mode(), err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// Over HTTP/2, where the bound of a write ends a stream even if nothing is written, events may be far apart too.
func TestEventsOverHTTP2(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		g := open(t, Options{State: state, Token: testTokens[Administer], MakeCertificate: true})
		wait := func(w http.ResponseWriter, r *http.Request) {
			for i := range 4 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(10 * time.Minute):
				case <-r.Context().Done():
					t.Errorf("cut at event %d: %v", i, context.Cause(r.Context()))
				}
			}
			fmt.Fprint(w, "end")
		}
		mux := http.NewServeMux()
		mux.Handle("GET /events", g.Stream(http.HandlerFunc(wait)))
		dial := serveTLS(t, g, mux)
		began := time.Now()
		_, said := get(t, state, "https://localhost/events", func(context.Context, string, string) (net.Conn, error) { return dial(), nil })
		if !strings.HasSuffix(said, "data: 3\n\nend") || time.Since(began) != 40*time.Minute {
			t.Errorf("%q after %v", said, time.Since(began))
		}
	})
}

// A certificate is made once, again before it ends, and again where the server has another name.
func TestCertificate(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	synctest.Test(t, func(t *testing.T) {
		fingerprint := func(hosts ...string) string {
			g := open(t, Options{State: state, Token: testTokens[Administer], MakeCertificate: true, Hosts: hosts})
			defer g.Close()
			return g.Fingerprint()
		}
		first := fingerprint()
		if second := fingerprint(); second != first {
			t.Error("a second start makes another certificate")
		}
		named := fingerprint("lab.example:8443")
		if named == first || fingerprint("lab.example") != named {
			t.Error("a new name is not in the certificate, or makes it anew each time")
		}
		o := Options{State: state, Token: testTokens[Administer], MakeCertificate: true, Hosts: []string{"lab.example"}}
		g := open(t, o)
		time.Sleep(madeFor - renewBefore - time.Hour) // of the bubble
		if g.Fingerprint() != named {
			t.Error("it was made again too soon")
		}
		time.Sleep(2 * time.Hour)
		later := g.Fingerprint()
		g.Close()
		if later == named || fingerprint("lab.example") != later {
			t.Error("it was not made again before its end, or not kept")
		}
	})
	// A key that does not belong to it, as a kill leaves behind, is made anew; a user's own is an error.
	if err := os.Remove(filepath.Join(state, "tls.pem")); err != nil {
		t.Fatal(err)
	}
	g := open(t, Options{State: state, Token: testTokens[Administer], MakeCertificate: true})
	g.Close()
	_, err := New(Options{Listen: "127.0.0.1:0", State: state, Certificate: filepath.Join(state, "tls.pem"), Key: filepath.Join(state, "none.pem")})
	if g.Fingerprint() == "" || err == nil || !strings.Contains(err.Error(), "certificate: ") {
		t.Errorf("%q, %v", g.Fingerprint(), err)
	}
}

// Files that somebody renews are read again; while they cannot be read the certificate of before goes on.
func TestCertificateFiles(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	synctest.Test(t, func(t *testing.T) {
		renew := func() {
			if _, err := makeCertificate(certificate, key, []string{"lab.example"}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		renew()
		g := open(t, Options{Token: testTokens[Administer], Certificate: certificate, Key: key})
		first := g.Fingerprint()
		renew()
		if g.Fingerprint() != first {
			t.Error("the files are looked at each time")
		}
		time.Sleep(lookAtFiles) // of the bubble
		second := g.Fingerprint()
		if second == first {
			t.Error("the new certificate is not taken")
		}
		if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lookAtFiles)
		if g.Fingerprint() != second {
			t.Error("with files that do not fit the certificate of before does not go on")
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
			t.Errorf("%v: something else was written beside the files, %v", entries, err)
		}
	})
}
