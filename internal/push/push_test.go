package push_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/push"
	"perflab/internal/store"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

func serve(t *testing.T, root string) *webtest.Lab {
	t.Helper()
	return webtest.Open(t, web.Options{Roots: []string{root}, Reserve: 1})
}

// large makes the directory of a run with a log of some size.
func large(t *testing.T, root, name string, n, size int) string {
	t.Helper()
	dir := storetest.Run{N: n}.Write(t, root, name)
	storetest.Mkdir(t, filepath.Join(dir, "logs"))
	b := make([]byte, size)
	random := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = random.Read(b) // never fails
	storetest.WriteFile(t, filepath.Join(dir, "logs", "engine.log"), b)
	storetest.WriteFile(t, filepath.Join(dir, "logs", "empty.log"), nil)
	return dir
}

// same holds two directories against each other.
func same(t *testing.T, a, b string) {
	t.Helper()
	if x, y := contents(t, a), contents(t, b); x != y {
		t.Errorf("%s and %s differ", a, b)
	}
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var out strings.Builder
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		out.WriteString(name + "\n" + string(b) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPushPull: what is pushed can be pulled as it was; what is there is not sent, whatever it is called.
func TestPushPull(t *testing.T) {
	src, root, out := t.TempDir(), t.TempDir(), t.TempDir()
	storetest.Run{N: 1}.Write(t, src, "a/run")
	storetest.Run{N: 2}.Write(t, src, "b/run")
	storetest.Study(t, src, "study", 3, 2)
	there := storetest.Run{N: 4}.Write(t, src, "other")
	storetest.Run{N: 4}.Write(t, root, "already")
	lab := serve(t, root)
	o := push.Options{URL: lab.URL}
	var told []push.Progress
	done, err := push.Push(t.Context(), o, []string{src}, func(p push.Progress) { told = append(told, p) })
	if err != nil || len(done) != 4 {
		t.Fatalf("%+v: %v", done, err)
	}
	for _, d := range done {
		if d.There != (d.Dir == there) || d.There && d.Bytes != 0 {
			t.Errorf("%+v", d)
		}
		if !d.There {
			same(t, d.Dir, filepath.Join(root, d.Place))
		}
	}
	if last := told[len(told)-1]; last.Bytes != last.Size {
		t.Errorf("at the end it is at %+v", last)
	}
	again, err := push.Push(t.Context(), o, []string{src}, nil)
	if err != nil || slices.ContainsFunc(again, func(p push.Pushed) bool { return !p.There || p.Bytes > 0 }) {
		t.Errorf("pushed again: %+v: %v", again, err)
	}
	got, err := push.Pull(t.Context(), o, "kind=run|study", out, nil)
	if err != nil || len(got) != 4 { // the runs of the study come with it
		t.Fatalf("%+v: %v", got, err)
	}
	same(t, filepath.Join(src, "study"), filepath.Join(out, "study"))
	got, err = push.Pull(t.Context(), o, done[0].Entry, out, nil)
	if err != nil || len(got) != 1 || !got[0].There {
		t.Errorf("pulled again: %+v: %v", got, err)
	}
	if _, err := push.Pull(t.Context(), o, "model=none", out, nil); err == nil || !strings.Contains(err.Error(), "has nothing for") {
		t.Errorf("nothing: %v", err)
	}
	if left := hidden(t, out); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func hidden(t *testing.T, dir string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRefused: what has not ended, and what is nothing of ours, is said in a sentence, and keeps nothing else.
func TestRefused(t *testing.T) {
	src, root := t.TempDir(), t.TempDir()
	good := storetest.Run{N: 1}.Write(t, src, "good")
	cut := storetest.Run{N: 2}.Write(t, src, "cut.tmp")
	empty := filepath.Join(src, "empty")
	storetest.Mkdir(t, empty)
	lab := serve(t, root)
	done, err := push.Push(t.Context(), push.Options{URL: lab.URL}, []string{cut, empty, filepath.Join(src, "none"), good}, nil)
	if len(done) != 1 || done[0].Dir != good || err == nil {
		t.Fatalf("%+v: %v", done, err)
	}
	for _, want := range []string{"cut off before its end", "has no run, series, study or import", "none"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

// cutter passes on so many bytes of each connection to a server, or of its answers, and then cuts it.
func cutter(t *testing.T, to string, up, down int64) string {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", u.Host)
			if err != nil {
				c.Close()
				continue
			}
			cut := func() { c.Close(); s.Close() }
			wait.Go(func() { defer cut(); _, _ = io.Copy(s, io.LimitReader(c, up)) })
			wait.Go(func() { defer cut(); _, _ = io.Copy(c, io.LimitReader(s, down)) })
		}
	})
	t.Cleanup(func() { l.Close(); wait.Wait() })
	return "http://" + l.Addr().String()
}

// TestCutUp: a connection that breaks again and again, wherever, delays a push and spoils nothing.
func TestCutUp(t *testing.T) {
	dir := large(t, t.TempDir(), "run", 1, 40_000)
	for _, budget := range []int64{2_500, 6_007, 20_011} {
		root := t.TempDir()
		lab := serve(t, root)
		done, err := push.Push(t.Context(), push.Options{URL: cutter(t, lab.URL, budget, 1<<40)}, []string{dir}, nil)
		if err != nil || len(done) != 1 {
			t.Fatalf("%d bytes a connection: %v", budget, err)
		}
		same(t, dir, filepath.Join(root, "run"))
	}
}

// TestCutDown: the same of answers, and of a pull.
func TestCutDown(t *testing.T) {
	src, root, out := t.TempDir(), t.TempDir(), t.TempDir()
	large(t, root, "run", 1, 40_000)
	dir := large(t, src, "pushed", 2, 10_000)
	lab := serve(t, root)
	o := push.Options{URL: cutter(t, lab.URL, 1<<40, 6_007)}
	if _, err := push.Push(t.Context(), o, []string{dir}, nil); err != nil {
		t.Fatal(err)
	}
	same(t, dir, filepath.Join(root, "pushed"))
	if _, err := push.Pull(t.Context(), o, "run", out, nil); err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join(root, "run"), filepath.Join(out, "run"))
}

// between is a server before the laboratory that may do something with requests and answers.
func between(t *testing.T, to string, change func(r *http.Request) func(*http.Response) error) string {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after := change(r)
		if after == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p := &httputil.ReverseProxy{ModifyResponse: after, Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(u) }}
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func asItIs(*http.Response) error { return nil }

// TestStops: a push that is given up after any number of requests is gone on with by the next process,
// which does not begin anew: what was on its way when it was given up may come once more.
func TestStops(t *testing.T) {
	dir := large(t, t.TempDir(), "run", 1, 30_000)
	root := t.TempDir()
	lab := serve(t, root)
	size := int64(len(contents(t, dir)))
	sent, tries := int64(0), 0
	for ; ; tries++ {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		left := 2 + tries/4 // so that it comes to an end
		url := between(t, lab.URL, func(r *http.Request) func(*http.Response) error {
			mu.Lock()
			defer mu.Unlock()
			if left--; left < 0 {
				cancel() // what is on its way then may arrive or not, and comes again
			}
			return func(resp *http.Response) error {
				if r.Method == http.MethodPut && resp.StatusCode < http.StatusMultipleChoices && ctx.Err() == nil {
					mu.Lock()
					sent += r.ContentLength
					mu.Unlock()
				}
				return nil
			}
		})
		_, err := push.Push(ctx, push.Options{URL: url}, []string{dir}, nil)
		cancel()
		if err == nil {
			break
		}
		if tries > 100 {
			t.Fatal(err)
		}
	}
	if tries < 3 {
		t.Errorf("it was stopped only %d times", tries)
	}
	if most := 3 * size; sent > most { // anew in each try would be ten times as much
		t.Errorf("%d bytes were sent of %d in %d tries", sent, size, tries)
	}
	if p := storetest.List(t, lab.Store(), store.Query{}); p.Total != 1 || len(p.Entries[0].Places) != 1 {
		t.Errorf("%+v", p.Entries)
	}
	same(t, dir, filepath.Join(root, "run"))
}

// TestGarbled: a byte that was changed on the way is found, and its file comes once more.
func TestGarbled(t *testing.T) {
	src, root, out := t.TempDir(), t.TempDir(), t.TempDir()
	dir := large(t, src, "run", 1, 5_000)
	lab := serve(t, root)
	spoiled := false
	spoil := func(b []byte) []byte { b = bytes.Clone(b); b[len(b)-1] ^= 1; return b }
	url := between(t, lab.URL, func(r *http.Request) func(*http.Response) error {
		if r.Method == http.MethodPut && r.ContentLength > 100 && !spoiled {
			spoiled = true
			b, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(spoil(b)))
		}
		return asItIs
	})
	if _, err := push.Push(t.Context(), push.Options{URL: url}, []string{dir}, nil); err != nil || !spoiled {
		t.Fatal(spoiled, err)
	}
	same(t, dir, filepath.Join(root, "run"))
	always := false
	url = between(t, lab.URL, func(r *http.Request) func(*http.Response) error {
		return func(resp *http.Response) error {
			if strings.HasSuffix(r.URL.Path, "engine.log") && (always || spoiled) {
				spoiled = false
				b, err := io.ReadAll(resp.Body)
				resp.Body = io.NopCloser(bytes.NewReader(spoil(b)))
				return err
			}
			return nil
		}
	})
	if _, err := push.Pull(t.Context(), push.Options{URL: url}, "run", out, nil); err != nil || spoiled {
		t.Fatal(spoiled, err)
	}
	same(t, dir, filepath.Join(out, "run"))
	always = true
	if _, err := push.Pull(t.Context(), push.Options{URL: url}, "run", t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "is not what the server said") {
		t.Errorf("a server that is always wrong: %v", err)
	}
}

// TestBusy: a server that has too much to do is asked again, and one that is gone is given up in a sentence.
func TestBusy(t *testing.T) {
	dir := storetest.Run{N: 1}.Write(t, t.TempDir(), "run")
	root := t.TempDir()
	lab := serve(t, root)
	n := 0
	url := between(t, lab.URL, func(*http.Request) func(*http.Response) error {
		if n++; n%2 == 1 {
			return nil
		}
		return asItIs
	})
	waited := false
	if _, err := push.Push(t.Context(), push.Options{URL: url}, []string{dir}, func(p push.Progress) { waited = waited || p.Waiting != "" }); err != nil || !waited {
		t.Errorf("%v (told of waiting: %v)", err, waited)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody listens there now
	_, err = push.Push(t.Context(), push.Options{URL: "http://" + l.Addr().String(), Patience: time.Millisecond}, []string{dir}, nil)
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("nobody there: %v", err)
	}
}

func TestTokens(t *testing.T) {
	dir := storetest.Run{N: 1}.Write(t, t.TempDir(), "run")
	token := guard.MakeToken()
	tokens := filepath.Join(t.TempDir(), "tokens")
	storetest.WriteFile(t, tokens, []byte(guard.TokenLine("reader", guard.Read, token)+"\n"))
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}, Guard: guard.Options{Tokens: tokens}})
	for token, want := range map[string]string{"": "token", "wrong": "not known", token: "launch"} {
		_, err := push.Push(t.Context(), push.Options{URL: lab.URL, Token: token}, []string{dir}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || token != "" && strings.Contains(err.Error(), token) && token != "wrong" {
			t.Errorf("with %q: %v", token, err)
		}
	}
	for o, want := range map[push.Options]string{
		{URL: "lab:8790"}:                                  "https://host:port",
		{URL: "ftp://lab"}:                                 "https://host:port",
		{URL: "https://u:p@lab"}:                           "takes a token",
		{URL: "https://lab?x=1"}:                           "more than an address",
		{URL: "http://lab:8790", Token: "x"}:               "would be read on the way",
		{URL: "http://127.0.0.1:1", Fingerprint: "x"}:      "no certificate",
		{URL: "https://127.0.0.1:1", Fingerprint: "ab:cd"}: "64 hexadecimal digits",
	} {
		if _, err := push.Push(t.Context(), o, []string{dir}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	t.Setenv(push.TokenVariable, " abc \n")
	if got, err := push.ReadToken(""); err != nil || got != "abc" {
		t.Errorf("%q: %v", got, err)
	}
	if got, err := push.ReadToken(tokens); err == nil {
		t.Errorf("a file of several words: %q", got)
	}
}

// TestFingerprint: a certificate that nobody vouches for is trusted by its fingerprint alone.
func TestFingerprint(t *testing.T) {
	dir := storetest.Run{N: 1}.Write(t, t.TempDir(), "run")
	root := t.TempDir()
	s, err := web.Open(t.Context(), web.Options{Roots: []string{root}, State: t.TempDir(), Reserve: 1, Guard: guard.Options{Listen: "127.0.0.1:0", MakeCertificate: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(a string) { at <- a }) }()
	url := <-at
	wrong := strings.Repeat("ab", 32)
	for fingerprint, want := range map[string]string{"": "certificate", wrong: "another fingerprint"} {
		if _, err := push.Push(t.Context(), push.Options{URL: url, Fingerprint: fingerprint}, []string{dir}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v", fingerprint, err)
		}
	}
	if _, err := push.Push(t.Context(), push.Options{URL: url, Fingerprint: s.Guard().Fingerprint()}, []string{dir}, nil); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	same(t, dir, filepath.Join(root, "run"))
}

// TestTwo: two clients that push the same at once make one entry.
func TestTwo(t *testing.T) {
	dir := large(t, t.TempDir(), "run", 1, 200_000)
	root := t.TempDir()
	lab := serve(t, root)
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			if done, err := push.Push(t.Context(), push.Options{URL: lab.URL}, []string{dir}, nil); err != nil || len(done) != 1 || done[0].Entry == "" {
				t.Errorf("%+v: %v", done, err)
			}
		})
	}
	wait.Wait()
	p := storetest.List(t, lab.Store(), store.Query{})
	if p.Total != 1 || len(p.Entries[0].Places) != 1 {
		t.Errorf("%+v", p.Entries)
	}
}
