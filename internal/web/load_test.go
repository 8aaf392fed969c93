package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

// patience is for what comes at once on a machine that has nothing else to do.
const patience = time.Minute

// stream is an open stream of events.
type stream struct {
	path   string
	events chan string // their names; closed at the end of the stream
	close  context.CancelFunc
}

// openStream opens a stream of events, whose names the test reads.
func openStream(t testing.TB, lab *webtest.Lab, path string) *stream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := request(t, http.MethodGet, lab.URL+path, guard.Nobody, nil).WithContext(ctx)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%s: %d %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	s := &stream{path: path, events: make(chan string, 1000), close: cancel} // more than any test waits for
	go func() {
		defer resp.Body.Close()
		defer close(s.events)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				s.events <- name
			}
		}
	}()
	t.Cleanup(cancel)
	return s
}

// want waits until an event of a name comes.
func (s *stream) want(t testing.TB, name string) {
	t.Helper()
	give := time.NewTimer(patience)
	defer give.Stop()
	for {
		select {
		case got, ok := <-s.events:
			if !ok {
				t.Fatalf("%s was cut", s.path)
			}
			if got == name {
				return
			}
		case <-give.C:
			t.Fatalf("%s never got the event %s", s.path, name)
		}
	}
}

// until asks again and again whether something holds, and fails where it never does.
func until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !holds(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// TestStreams: every open stream hears of a change and of the next, none is cut, and what the
// server had for them is given back when they are closed.
func TestStreams(t *testing.T) {
	root := t.TempDir()
	storetest.Many(t, root, 30, 2)
	lab := webtest.Open(t, web.Options{Roots: []string{root}, Guard: guard.Options{Limits: fast}})
	for range 3 { // connections, caches and what the runtime keeps
		openStream(t, lab, "/runs/events").close()
		send(t, request(t, http.MethodGet, lab.URL+"/runs", guard.Nobody, nil))
	}
	client.CloseIdleConnections()
	before := heap()
	goroutines := runtime.NumGoroutine()
	var all []*stream
	for range 20 {
		for path, event := range map[string]string{"/runs/events": "reload", "/studies/events": "", "/launch/events": "", "/api/v1/events": "entries"} {
			s := openStream(t, lab, path)
			if event != "" {
				s.path += " " + event
			}
			all = append(all, s)
		}
	}
	for n := range 2 {
		storetest.Run{N: 1000 + n}.Write(t, root, fmt.Sprintf("new-%d", n))
		storetest.Sync(t, lab.Store())
		for _, s := range all {
			if _, event, ok := strings.Cut(s.path, " "); ok {
				s.want(t, event)
			}
		}
	}
	for _, s := range all {
		select {
		case _, ok := <-s.events:
			if !ok {
				t.Errorf("%s was cut", s.path)
			}
		default:
		}
		s.close()
	}
	until(t, "goroutines of streams end", func() bool {
		client.CloseIdleConnections()
		return runtime.NumGoroutine() <= goroutines
	})
	if after := heap(); after > before+8<<20 {
		t.Errorf("%d MiB of memory were %d before the streams", after>>20, before>>20)
	}
}

// heap is what is in use of memory.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// lists are lists that a team asks for.
var lists = []string{
	"/runs", "/runs?q=engine%3Dvllm", "/runs?q=p99_ttft_ms%3C200+kind%3Drun&sort=p99_ttft_ms", "/runs?q=llama", "/runs?page=50", "/runs?group=config",
	"/studies", "/api/v1/entries?q=model%3D~qwen&limit=50",
}

// BenchmarkLists is of a laboratory with 10,000 runs: each list by itself on its second visit, and
// then all of them under load.
func BenchmarkLists(b *testing.B) {
	root := b.TempDir()
	storetest.Many(b, root, 10_000, 100)
	lab := webtest.Open(b, web.Options{Roots: []string{root}, Guard: guard.Options{Limits: fast}})
	storetest.Sync(b, lab.Store()) // what was written just now is read once more
	for _, path := range lists {
		b.Run(path, func(b *testing.B) {
			timed(b, lab, path)
			for b.Loop() {
				timed(b, lab, path)
			}
		})
	}
	b.Run("load", func(b *testing.B) { underLoad(b, lab, root) })
}

// underLoad asks for 50 lists in a second while 200 streams are open and a run is added every two
// seconds, client and server on one core. It reports how long lists took from when they were due.
func underLoad(b *testing.B, lab *webtest.Lab, root string) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var open []*stream
	for range 200 {
		open = append(open, openStream(b, lab, "/runs/events"))
	}
	const rate, seconds = 50, 10
	var took []time.Duration
	var mu sync.Mutex
	began, runs := time.Now(), 20_000
	for b.Loop() {
		var wait sync.WaitGroup
		start := time.Now()
		for n := range rate * seconds {
			due := start.Add(time.Duration(n) * time.Second / rate)
			<-time.After(time.Until(due))
			wait.Go(func() { // open loop: a list that is late delays none behind it
				timed(b, lab, lists[n%len(lists)])
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(due))
			})
			if n%(2*rate) == 0 {
				runs++
				name := fmt.Sprintf("new/run-%d", runs)
				wait.Go(func() {
					storetest.Run{N: runs}.Write(b, root, name)
					storetest.Sync(b, lab.Store())
				})
			}
		}
		wait.Wait()
	}
	asked := float64(len(took)) / time.Since(began).Seconds()
	left := 0
	for _, s := range open {
		s.want(b, "reload")
		left++
	}
	slices.Sort(took)
	b.ReportMetric(asked, "lists/s")
	b.ReportMetric(ms(took[len(took)/2]), "p50-ms")
	b.ReportMetric(ms(took[len(took)*99/100]), "p99-ms")
	b.ReportMetric(float64(left), "streams")
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// timed is how long a page takes until all of it is there.
func timed(b testing.TB, lab *webtest.Lab, path string) time.Duration {
	began := time.Now()
	resp, err := client.Get(lab.URL + path)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n == 0 || resp.StatusCode != http.StatusOK {
		b.Errorf("%s: %d, %d bytes, %v", path, resp.StatusCode, n, err)
	}
	return time.Since(began)
}
