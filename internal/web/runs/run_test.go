package runs_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/store/mark"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
)

// has fails the test by what a page has not.
func has(t *testing.T, body string, all ...string) {
	t.Helper()
	for _, want := range all {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func TestRun(t *testing.T) {
	lab := some(t)
	a, c, d := entry(t, lab, "a"), entry(t, lab, "c"), entry(t, lab, "d")
	if err := lab.Store().Mark(t.Context(), "ada", c.ID, mark.Record{Do: mark.Pin}, mark.Record{Do: mark.Note, Text: "the one"}, mark.Record{Do: mark.Tag, Value: "keep"}); err != nil {
		t.Fatal(err)
	}
	page := get(t, lab.URL+"/run/"+d.ID)
	if page.status != 200 {
		t.Fatalf("%d %s", page.status, page.body)
	}
	has(t, page.body, "<svg", `<article class="report">`, "vllm serve Qwen/Qwen3-8B", `href="/run/`+c.ID+`" rel="prev"`, "2 more of this configuration",
		`/compare?ids=`+c.ID+`,`+d.ID, "pinned</small>", `href="/history/`+d.ID, `href="/run/`+d.ID+`/files/calls.jsonl"`, filepath.Base(d.Dir()), "Contents of the report")
	has(t, get(t, lab.URL+"/run/"+c.ID).body, "the one", "ada, ", `href="/runs?q=tag%3Dkeep"`, `rel="next"`, "Unpin")
	has(t, get(t, lab.URL+"/run/"+a.ID).body, `<div class="sim" role="alert">SIMULATED`)
	for _, what := range []string{d.ID[:8], "d", d.Early} {
		got := get(t, lab.URL+"/run/"+what+"?x=1")
		if got.status != 303 || got.header.Get("Location") != "/run/"+d.ID+"?x=1" {
			t.Errorf("%s: %d %s", what, got.status, got.header.Get("Location"))
		}
	}
	study := entry(t, lab, "tp")
	if got := get(t, lab.URL+"/run/"+study.ID); got.status != 303 || got.header.Get("Location") != "/study/"+study.ID {
		t.Errorf("a study: %d %s", got.status, got.header.Get("Location"))
	}
	if got := get(t, lab.URL+"/run/0123456789"); got.status != 404 || !strings.Contains(got.body, "moved or deleted") {
		t.Errorf("none: %d", got.status)
	}
}

// TestPart: the run of a study leads to it.
func TestPart(t *testing.T) {
	lab := some(t)
	study := entry(t, lab, "tp")
	parts, err := lab.Store().Parts(t.Context(), study.ID)
	if err != nil || len(parts) != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	has(t, get(t, lab.URL+"/run/"+parts[0].ID).body, `<a href="/study/`+study.ID+`">tp</a>`)
}

// TestFiles: a file is text or is saved, and no path leads out of the directory.
func TestFiles(t *testing.T) {
	lab := some(t)
	a := entry(t, lab, "a")
	dir := a.Dir()
	storetest.WriteFile(t, filepath.Join(dir, "page.html"), []byte("<script>alert(1)</script>"))
	storetest.WriteFile(t, filepath.Join(filepath.Dir(dir), "secret"), []byte("secret"))
	if err := os.Symlink("../secret", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	at := lab.URL + "/run/" + a.ID + "/files/"
	calls := get(t, at+"calls.jsonl")
	want, err := os.ReadFile(filepath.Join(dir, "calls.jsonl"))
	if err != nil || calls.status != 200 || calls.body != string(want) || !strings.HasPrefix(calls.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s", calls.status, calls.header.Get("Content-Type"))
	}
	if h := get(t, at+"page.html").header; strings.Contains(h.Get("Content-Type"), "html") && h.Get("Content-Disposition") == "" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("a page of a run: %v", h)
	}
	for _, path := range []string{"link", "..%2fsecret", "%2e%2e/secret", "nothing", "", ".", "%2fetc%2fpasswd"} {
		if got := get(t, at+path); got.status < 300 || strings.Contains(got.body, "secret") && got.status == 200 {
			t.Errorf("%q: %d %s", path, got.status, got.body)
		}
	}
	has(t, get(t, lab.URL+"/run/"+a.ID).body, "/files/page.html")
	if strings.Contains(get(t, lab.URL+"/run/"+a.ID).body, "/files/link") {
		t.Error("a link is listed as a file")
	}
}

// TestTrouble: of a run that cannot be read, or is gone, the page says so and shows what the index knows.
func TestTrouble(t *testing.T) {
	lab := some(t)
	a, b, c := entry(t, lab, "a"), entry(t, lab, "b"), entry(t, lab, "c")
	if err := os.RemoveAll(a.Dir()); err != nil {
		t.Fatal(err)
	}
	storetest.WriteFile(t, filepath.Join(b.Dir(), "header.json"), []byte("{"))
	page := get(t, lab.URL+"/run/"+a.ID)
	if page.status != 200 {
		t.Errorf("%d", page.status)
	}
	has(t, page.body, "was deleted or moved a moment ago", "Figures of the index", "P99 TTFT (ms)", "50.00")
	page = get(t, lab.URL+"/run/"+b.ID)
	has(t, page.body, "Its report cannot be made", "Figures of the index", "67.00")
	storetest.WriteFile(t, filepath.Join(c.Dir(), "calls.jsonl"), []byte("{\"index\":0}\nnot a call\n{\"index\":1}\n"))
	page = get(t, lab.URL+"/run/"+c.ID)
	if page.status != 200 || !strings.Contains(page.body, "line 2") {
		t.Errorf("damaged calls: %d %s", page.status, page.body[:min(len(page.body), 3000)])
	}
	storetest.Sync(t, lab.Store())
	if got := get(t, lab.URL+"/run/"+a.ID); got.status != 404 {
		t.Errorf("after the index has seen that it is gone: %d", got.status)
	}
}

// TestCopies: a run that lies in two places says both.
func TestCopies(t *testing.T) {
	root := t.TempDir()
	storetest.Run{N: 1}.Write(t, root, "one")
	storetest.Run{N: 1}.Write(t, root, "two")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	list := get(t, lab.URL+"/runs").body
	has(t, list, `<span class="tag">1 copy</span>`)
	e := entry(t, lab, "one")
	has(t, get(t, lab.URL+"/run/"+e.ID).body, filepath.Join(root, "one"), filepath.Join(root, "two"), `<span class="tag">copy</span>`)
}

// TestImport: an import's page has its runs and what the audit finds.
func TestImport(t *testing.T) {
	lab, _, imported := hostile(t)
	page := get(t, lab.URL+"/run/"+imported)
	if page.status != 200 {
		t.Fatal(page.status)
	}
	has(t, page.body, "What the audit found", "Runs in it", "001-x")
	if strings.Contains(page.body, "<script>alert") || strings.Contains(page.body, "<img") {
		t.Error("a name is no text")
	}
}

// TestShare: a link shows what it names and nothing else, and offers nothing.
func TestShare(t *testing.T) {
	lab := some(t)
	a, b := entry(t, lab, "a"), entry(t, lab, "b")
	path, _, err := lab.Guard().Share([]string{a.ID, "gone"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	home := get(t, lab.URL+path)
	if home.status != 303 || home.header.Get("Location") != strings.TrimSuffix(path, "/")+"/runs" {
		t.Fatalf("%d %s", home.status, home.header.Get("Location"))
	}
	base := strings.TrimSuffix(path, "/")
	list := get(t, lab.URL+base+"/runs?q=kind%3Drun&parts=1")
	if list.status != 200 || rows(list.body) != "a" {
		t.Errorf("%d, rows %q", list.status, rows(list.body))
	}
	has(t, list.body, `href="`+base+`/run/`+a.ID+`"`)
	page := get(t, lab.URL+base+"/run/"+a.ID)
	if page.status != 200 {
		t.Fatal(page.status)
	}
	has(t, page.body, `<article class="report">`, "SIMULATED")
	for _, body := range []string{list.body, page.body} {
		for _, not := range []string{`href="/run`, `action="/runs`, "/files/", a.Dir(), "Trash", b.ID, "/history", "<input"} {
			if strings.Contains(body, not) {
				t.Errorf("a shared page has %s", not)
			}
		}
	}
	for _, other := range []string{"/run/" + b.ID, "/run/" + a.ID + "/files/calls.jsonl", "/run/" + a.ID + "/events", "/runs/export?format=csv", "/runs/trash", "/runs/marks?run=" + a.ID} {
		if got := get(t, lab.URL+base+other); got.status < 400 || strings.Contains(got.body, "http://127.0.0.1:8000") {
			t.Errorf("%s: %d", other, got.status)
		}
	}
}

// TestUnderway: without JavaScript too a page says how far a run has come, and its plots can be had.
func TestUnderway(t *testing.T) {
	root := t.TempDir()
	w := underway(t, root)
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	e := entry(t, lab, "now")
	page := get(t, lab.URL+"/run/"+e.ID)
	has(t, page.body, "Under way", "0 of 10", `data-events="/run/`+e.ID+`/events"`, "SIMULATED")
	plot := get(t, lab.URL+"/run/"+e.ID+"/live/live-ttft")
	if plot.status != 200 || !strings.Contains(plot.body, `"simulated":true`) {
		t.Errorf("%d %s", plot.status, plot.body)
	}
	if got := get(t, lab.URL+"/run/"+e.ID+"/live/nothing"); got.status != 404 {
		t.Errorf("a plot that there is not: %d", got.status)
	}
	if err := lab.Store().Mark(t.Context(), "ada", e.ID, mark.Record{Do: mark.Note, Text: "watch this"}); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, http.MethodPost, lab.URL+"/runs/delete", "", map[string][]string{"run": {e.ID}}); got.status != 409 || !strings.Contains(got.body, "stop it first") {
		t.Errorf("what goes on is deleted: %d", got.status)
	}
	if err := w.Finish(&result.Client{Wall: time.Second}, new(storetest.Run{}.Summary()), nil); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/live/live-ttft", ""} { // before the index has seen the end
		if got := get(t, lab.URL+"/run/"+e.ID+path); got.status >= 400 {
			t.Errorf("%q of a run that has just ended: %d %s", path, got.status, got.body)
		}
	}
	storetest.Sync(t, lab.Store())
	if got := get(t, lab.URL+"/run/"+e.ID+"/live/live-ttft"); got.status != http.StatusNoContent {
		t.Errorf("a plot of a run that has ended: %d %s", got.status, got.body)
	}
	if m := entry(t, lab, "now").Marks; m.Note != "watch this" {
		t.Errorf("the note is gone with the name: %+v", m)
	}
}

// TestSeries: the page of a series has its runs.
func TestSeries(t *testing.T) {
	root := t.TempDir()
	for i, name := range []string{"rate-1", "rate-2"} {
		storetest.Run{N: i}.Write(t, root, "sweep/"+name)
	}
	storetest.WriteFile(t, filepath.Join(root, "sweep/sweep.json"), []byte(`{"schema":"perflab.series/1","kind":"sweep","points":[{"dir":"rate-1"},{"dir":"rate-2"}],"stop":{"code":"done","text":"all 2 runs were made"}}`))
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	e := entry(t, lab, "sweep")
	page := get(t, lab.URL+"/run/"+e.ID)
	if page.status != 200 {
		t.Fatalf("%d %s", page.status, page.body)
	}
	has(t, page.body, "Runs in it", "rate-1", "rate-2", "series")
	if !rundir.IsSeries(e.Dir()) {
		t.Error("it is no series")
	}
	if got := get(t, lab.URL+"/run/"+e.ID+"/live/live-ttft"); got.status != 404 {
		t.Errorf("a plot of a series so far: %d %s", got.status, got.body)
	}
}
