package runs_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/store/mark"
	"perflab/internal/test/browser"
	"perflab/internal/test/calltest"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
)

// bad is in every name that a file or a person may give.
const bad = `"><script>alert(1)</script><img src=x onerror=alert(1)>`

// hostile is a laboratory in which every name is a script.
func hostile(t testing.TB) (lab *webtest.Lab, run, imported string) {
	t.Helper()
	root := t.TempDir()
	storetest.Run{N: 1, Command: "vllm serve m"}.Write(t, root, "plain")
	dir := storetest.Run{N: 2, Model: bad, Command: "vllm serve '" + bad + "'", Build: bad, Status: result.Voided}.Write(t, root, `<img src=x onerror=alert(1)>`)
	h := storetest.Run{N: 2, Model: bad, Command: "vllm serve '" + bad + "'", Build: bad}.Header()
	h.Workload, h.Invoked, h.Fingerprint = bad, "perflab bench --model '"+bad+"'", bad
	storetest.WriteJSON(t, filepath.Join(dir, "header.json"), h)
	h.Imported = &result.Imported{Client: bad, File: bad, Labels: result.Labels{result.LabelEngine: bad, result.LabelCase: bad, result.LabelHardware: bad}}
	r := storetest.Run{N: 3}
	err := rundir.WriteImports([]rundir.Import{{Schema: "perflab.import/1", File: bad, Dir: filepath.Join(root, "import"), Runs: []rundir.ImportedRun{
		{Dir: "001-x", Client: bad, Model: bad, Case: bad, Header: h, Summary: r.Summary()}}, Faults: []rundir.ImportFault{{File: bad, Text: bad}}}})
	if err != nil {
		t.Fatal(err)
	}
	lab = webtest.Open(t, web.Options{Roots: []string{root}, Lab: bad})
	e := entry(t, lab, `<img src=x onerror=alert(1)>`)
	err = lab.Store().Mark(t.Context(), bad, e.ID, mark.Record{Do: mark.Name, Value: bad}, mark.Record{Do: mark.Note, Text: bad}, mark.Record{Do: mark.Tag, Value: "keep"},
		mark.Record{Do: mark.Issue, Value: bad, Text: bad, Link: "https://example.com/\"onclick=alert(1)"})
	if err != nil {
		t.Fatal(err)
	}
	return lab, e.ID, entry(t, lab, "import").ID
}

// TestPages looks at the screens in a browser, where every name is a script and where there is
// nothing.
func TestPages(t *testing.T) {
	b := browser.Start(t)
	lab, run, imported := hostile(t)
	b.Visit(t, "runs", lab.URL+"/runs?parts=1&group=model")
	b.Visit(t, "run", lab.URL+"/run/"+run)
	empty := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	b.Visit(t, "runs-first", empty.URL+"/runs")
	for name, address := range map[string]string{
		"runs-wrong": lab.URL + "/runs?q=modle%3D" + strings.Repeat("x", 200), "runs-nothing": lab.URL + "/runs?q=nothing-has-this", "runs-trash": empty.URL + "/runs/trash",
		"runs-marks": lab.URL + "/runs/marks?run=" + run + "&run=" + imported, "run-import": lab.URL + "/run/" + imported,
	} {
		p := b.Open(t, address, browser.View{Width: 390})
		p.Wait(`"ready" in document.documentElement.dataset`)
		p.Picture(name)
		p.Accessible()
	}
}

// TestKeys: a list is filtered, walked through, ticked and left for a run by keys alone.
func TestKeys(t *testing.T) {
	b := browser.Start(t)
	lab := some(t)
	p := b.Open(t, lab.URL+"/runs", browser.View{})
	p.Wait(`"ready" in document.documentElement.dataset`)
	p.Type("input[data-filter]", "kind=run\r")
	p.Wait(`location.search === "?q=kind%3Drun" && "ready" in document.documentElement.dataset`)
	p.Press("j", "x", "j", "x")
	p.Wait(`document.querySelector(".bar-compare a")?.textContent === "Compare 2"`)
	if got := browser.Eval[string](p, `document.querySelector(".bar-compare a").getAttribute("href")`); !strings.HasPrefix(got, "/runs/compare?run=") || strings.Count(got, "run=") != 2 {
		t.Errorf("compare leads to %s", got)
	}
	p.Press("c")
	p.Wait(`location.pathname === "/compare" && location.search.startsWith("?ids=") && "ready" in document.documentElement.dataset`)
	p = b.Open(t, lab.URL+"/runs?q=kind%3Drun", browser.View{})
	p.Wait(`"ready" in document.documentElement.dataset`)
	p.Press("j", "j", "Enter")
	p.Wait(`location.pathname.startsWith("/run/") && "ready" in document.documentElement.dataset`)
	if got := p.Text("h1"); got != "c" {
		t.Errorf("the second row leads to %q", got)
	}
	p.Press("[")
	p.Wait(`document.querySelector("h1").innerText === "a" && "ready" in document.documentElement.dataset`)
	p.Press("p") // pins
	p.Wait(`document.querySelector(".tag.pinned") && "ready" in document.documentElement.dataset`)
	if !entry(t, lab, "a").Marks.Pinned {
		t.Error("a is not pinned")
	}
}

// underway begins a run, with some calls.
func underway(t testing.TB, root string) *rundir.Writer {
	t.Helper()
	h := storetest.Run{N: 5, Simulated: true}.Header()
	h.Started, h.Requests = time.Now(), 10
	w, err := rundir.Create(filepath.Join(root, "now"), h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Abandon)
	keep := w.KeepReadings()
	keep(gauge.Reading{At: time.Second, Source: gauge.SourceEngine, Values: map[string]float64{"running": 3, "waiting": 1, "kv_usage": 0.5}})
	return w
}

// TestLive: the page of a run under way follows it, and becomes its report at the end by itself.
func TestLive(t *testing.T) {
	b := browser.Start(t)
	root := t.TempDir()
	w := underway(t, root)
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	e := entry(t, lab, "now")
	p := b.Open(t, lab.URL+"/run/"+e.ID, browser.View{})
	list := b.Open(t, lab.URL+"/runs", browser.View{})
	p.Wait(`document.querySelector("[data-live=queue]").innerText === "3 running, 1 waiting"`)
	list.Wait(`document.querySelector("tbody .tag.running")`)
	calls := calltest.Steady(10, 100*time.Millisecond)
	for i := range calls[:4] {
		w.Add(&calls[i])
	}
	p.Wait(`document.querySelector("[data-live=done]").innerText === "4 of 10"`)
	p.Wait(`document.querySelectorAll("figure[data-chart] .chart-plot").length === 3`)
	if got := p.Text("[data-live=ttft]"); !strings.Contains(got, "ms") {
		t.Errorf("TTFT %q", got)
	}
	p.Picture("run-live")
	p.Accessible()
	for i := range calls[4:] {
		w.Add(&calls[4+i])
	}
	client, err := result.Summarize(storetest.Run{}.Header(), nil, result.Options{}, func(yield func(result.Call) bool) {
		for _, c := range calls {
			if !yield(c) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(&result.Client{Wall: time.Second}, &client, nil); err != nil {
		t.Fatal(err)
	}
	storetest.Sync(t, lab.Store())
	p.Wait(`document.querySelector("article.report svg")`)
	p.Wait(`!document.querySelector("[data-live=done]")`)
	list.Wait(`!document.querySelector("tbody .tag.running")`)
	if got := browser.Eval[string](p, "location.pathname"); got != "/run/"+e.ID {
		t.Errorf("the page went to %s", got)
	}
	if a := get(t, lab.URL+"/run/"+e.ID); a.status != 303 || a.header.Get("Location") != "/run/"+entry(t, lab, "now").ID {
		t.Errorf("the address of the run under way leads to %d %s", a.status, a.header.Get("Location"))
	}
}
