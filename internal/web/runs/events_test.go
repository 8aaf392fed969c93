package runs_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/durable"
	"perflab/internal/store/mark"
	"perflab/internal/test/calltest"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
)

// events opens a stream, and returns what gives the name of the next event.
func events(t *testing.T, address string) (next func() string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	return func() string {
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				return name
			}
		}
		return "" // the stream has ended
	}
}

// TestListEvents: a list that is open is told of a change.
func TestListEvents(t *testing.T) {
	lab := some(t)
	next := events(t, lab.URL+"/runs/events")
	if err := lab.Store().Mark(t.Context(), "ada", entry(t, lab, "a").ID, mark.Record{Do: mark.Pin}); err != nil {
		t.Fatal(err)
	}
	got := next()
	for got == "alive" { // on a machine that is busy
		got = next()
	}
	if got != "reload" {
		t.Errorf("got %q", got)
	}
}

// TestSeriesEvents: the page of a series is told of each run, and of the end.
func TestSeriesEvents(t *testing.T) {
	root := t.TempDir()
	storetest.Run{N: 0}.Write(t, root, "sweep/rate-1")
	sweep := filepath.Join(root, "sweep")
	facts := func(stop string) {
		storetest.WriteFile(t, filepath.Join(sweep, "sweep.json"), []byte(`{"kind":"sweep","points":[{"dir":"rate-1"}],"stop":{"code":"`+stop+`","text":""}}`))
	}
	facts("")
	held, err := os.Open(sweep)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if ok, err := durable.Hold(held); !ok {
		t.Fatal(err)
	}
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	e := entry(t, lab, "sweep")
	has(t, get(t, lab.URL+"/run/"+e.ID).body, "Its runs are shown below as they end.", `data-events="/run/`+e.ID+`/events"`)
	next := events(t, lab.URL+"/run/"+e.ID+"/events")
	if got := next(); got != "alive" {
		t.Errorf("at first: %q", got)
	}
	storetest.Run{N: 1}.Write(t, root, "sweep/rate-2")
	storetest.Sync(t, lab.Store())
	got := next()
	for got == "alive" {
		got = next()
	}
	if got != "reload" {
		t.Errorf("after a run: %q", got)
	}
	facts("done")
	held.Close()
	storetest.Sync(t, lab.Store())
	for got = next(); got != "end"; got = next() {
		if got != "reload" && got != "alive" {
			t.Fatalf("at the end: %q", got)
		}
	}
}

// TestStopped: a run whose process is gone is shown with what it has measured.
func TestStopped(t *testing.T) {
	root := t.TempDir()
	w := underway(t, root)
	calls := calltest.Steady(4, 1000)
	for i := range calls {
		w.Add(&calls[i])
	}
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	e := entry(t, lab, "now")
	next := events(t, lab.URL+"/run/"+e.ID+"/events")
	if got := next(); got != "set" {
		t.Errorf("under way: %q", got)
	}
	w.Abandon()
	storetest.Sync(t, lab.Store())
	got := next()
	for got == "set" || got == "figure" || got == "alive" {
		got = next()
	}
	if got != "reload" || next() != "end" {
		t.Errorf("at its end: %q", got)
	}
	page := get(t, lab.URL+"/run/"+entry(t, lab, "now").ID)
	has(t, page.body, `<span class="tag noted">stopped</span>`, `<article class="report">`, "/files/calls.jsonl")
}
