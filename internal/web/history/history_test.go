package history_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/test/browser"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/trend"
	"perflab/internal/web"
)

const serve = "vllm serve Qwen/Qwen3-8B -tp 2"

// nightly writes a configuration that was measured for 40 builds, one of them void, and lost a
// tenth of its throughput at the 25th; the same simulated, and one that was measured once.
func nightly(t *testing.T, root string) {
	t.Helper()
	for i := range 40 {
		v := 1000 + 6*math.Sin(float64(i)*1.7)
		if i >= 24 {
			v *= 0.9
		}
		r := storetest.Run{N: 80 * i, Command: serve, Build: fmt.Sprintf("build-%02d", i), Figures: map[string]float64{"output_throughput": v, "p99_ttft_ms": 130 + 3*math.Sin(float64(i)*2.3)}}
		if i == 9 {
			r.Status = result.Voided
		}
		r.Write(t, root, fmt.Sprintf("nightly/n-%02d", i))
	}
	for i := range 3 {
		storetest.Run{N: 80 * i, Command: serve, Simulated: true}.Write(t, root, fmt.Sprintf("simulated-%d", i))
	}
	storetest.Run{N: 160, Model: "openai/gpt-oss-120b", Command: "vllm serve openai/gpt-oss-120b"}.Write(t, root, "once")
}

func lab(t *testing.T, root string, o web.Options) (*webtest.Lab, string) {
	t.Helper()
	o.Roots = []string{root}
	l := webtest.Open(t, o)
	lines, err := trend.List(t.Context(), l.Store(), trend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range lines {
		if x.Runs == 40 {
			return l, x.Key
		}
	}
	if len(lines) > 0 {
		return l, lines[0].Key
	}
	return l, ""
}

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

func do(t *testing.T, r *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestList(t *testing.T) {
	root := t.TempDir()
	nightly(t, root)
	l, key := lab(t, root, web.Options{})
	for address, want := range map[string][]string{
		"/history":                             {"/history/" + key + `"`, `<span class="tag void">worse</span>`, "SIMULATED", "1 void", "1 more was measured once", "-10.", "Course"},
		"/history?single=1":                    {"openai/gpt-oss-120b", "1 of these was measured once"},
		"/history?is=steady":                   {"None is steady"},
		"/history?metric=p99_ttft_ms&by=build": {"/history/" + key + "?by=build&amp;metric=p99_ttft_ms"},
		"/history?q=simulated%3Dtrue":          {"SIMULATED: all of these histories"},
		"/history?q=engine%3Dsglang":           {"Nothing is found"},
		"/history?q=model%3D~gpt-oss":          {"Nothing was measured twice"},
	} {
		status, body := get(t, l.URL+address)
		for _, text := range want {
			if status != http.StatusOK || !strings.Contains(body, text) {
				t.Errorf("%s: %d, no %q", address, status, text)
			}
		}
	}
	if _, body := get(t, l.URL+"/history"); strings.Contains(body, "gpt-oss") {
		t.Error("what was measured once is in the list")
	}
}

// TestWrong: what cannot be is said in a sentence, with its status.
func TestWrong(t *testing.T) {
	root := t.TempDir()
	nightly(t, root)
	l, key := lab(t, root, web.Options{})
	for address, want := range map[string]string{
		"/history?q=engin%3Dvllm":                 "400 did you mean engine?",
		"/history?metric=p99_tfft_ms":             "400 p99_tfft_ms",
		"/history?least=many":                     "400 write a percentage such as 2",
		"/history?level=7":                        "400 give a chance",
		"/history?persist=0":                      "400 is no number of builds",
		"/history/" + key + "?from=nothing":       "400 no run names the build",
		"/history/" + key + "?from=2030-01-01":    "400 give the earlier one first",
		"/history/ffffffffffff":                   "404 there is no history",
		"/history/" + key + "/points.csv?least=x": "400 least",
	} {
		status, body := get(t, l.URL+address)
		code, text, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != code || !strings.Contains(body, text) {
			t.Errorf("%s: %d, want %s", address, status, want)
		}
	}
}

func TestOne(t *testing.T) {
	root := t.TempDir()
	nightly(t, root)
	l, key := lab(t, root, web.Options{})
	_, body := get(t, l.URL+"/history/"+key)
	for _, text := range []string{"Output token throughput is worse since build-24", "confirmed", "build-23</a> and <a", "alone=1&amp;run=", "E-divisive", "All points (40)", "data-chart", `<span class="tag void">void</span>`,
		"SIMULATED, random", "build-39", "Mean TPOT", "/history/rule"} {
		if !strings.Contains(body, text) {
			t.Errorf("no %q", text)
		}
	}
	var chart struct {
		History struct {
			Points  []struct{ Verdict string }
			Changes []struct{ Kind string }
			Noise   []any
		}
	}
	m := regexp.MustCompile(`(?s)<script type="application/json">(.*?)</script>`).FindStringSubmatch(body)
	if m == nil || json.Unmarshal([]byte(m[1]), &chart) != nil {
		t.Fatal("there is no chart")
	}
	if h := chart.History; len(h.Points) != 40 || len(h.Changes) != 1 || h.Changes[0].Kind != "loss" || len(h.Noise) != 2 || h.Points[9].Verdict != "void" {
		t.Errorf("the chart is %+v", h)
	}
	_, body = get(t, l.URL+"/history/"+key+"?x=build&from=build-30&to=build-39&persist=5")
	for _, text := range []string{"All points (10)", "5 builds", "one place for each point", "No change of Output token throughput is shown over 10 points."} {
		if !strings.Contains(body, text) {
			t.Errorf("a range: no %q", text)
		}
	}
	if _, body = get(t, l.URL+"/history/"+key+"?least=50"); !strings.Contains(body, "None of at least 50 % is shown") {
		t.Error("the least change is not obeyed")
	}
	if _, body = get(t, l.URL+"/history/"+key+"?metric=goodput"); !strings.Contains(body, "No run has") {
		t.Error("a metric that no run has")
	}
	if status, body := get(t, l.URL+"/history/rule"); status != 200 || !strings.Contains(body, "E-divisive (Matteson and James 2014") {
		t.Errorf("the rule: %d", status)
	}
}

// TestTidy: a form sends all of its fields, and the address has what is not usual alone.
func TestTidy(t *testing.T) {
	root := t.TempDir()
	nightly(t, root)
	l, key := lab(t, root, web.Options{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.URL+"/history/"+key+"?metric=output_throughput&by=&x=&from=&least=2&level=0.01&persist=4&history.zoom=1~2", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got, want := resp.Header.Get("Location"), "/history/"+key+"?history.zoom=1~2&persist=4"; resp.StatusCode != http.StatusSeeOther || got != want {
		t.Errorf("%d to %s, want %s", resp.StatusCode, got, want)
	}
}

func TestExport(t *testing.T) {
	root := t.TempDir()
	nightly(t, root)
	l, key := lab(t, root, web.Options{})
	_, body := get(t, l.URL+"/history/"+key+"/points.csv")
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 1+3*40 || rows[25][0] != "output_throughput" || rows[25][5] != "build-24" || rows[25][10] != "confirmed" || rows[10][6] != "true" {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	_, body = get(t, l.URL+"/history/"+key+"/points.json?metrics=p99_ttft_ms")
	var line trend.Line
	if err := json.Unmarshal([]byte(body), &line); err != nil || len(line.Histories) != 2 || len(line.Histories[0].Changes) != 1 {
		t.Errorf("%d histories, %v", len(line.Histories), err)
	}
}

// TestNotes: a note is written at a run of the history, shown at its date, and taken away.
func TestNotes(t *testing.T) {
	root := t.TempDir()
	nightly(t, root)
	l, key := lab(t, root, web.Options{})
	line, err := trend.Find(t.Context(), l.Store(), key, trend.Options{})
	if err != nil {
		t.Fatal(err)
	}
	post := func(run, text string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.URL+"/history/"+key+"/note", strings.NewReader(url.Values{"run": {run}, "text": {text}, "back": {"by=build"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", l.URL)
		return do(t, r)
	}
	if status, body := post(line.Entries[12].ID, "driver 580"); status != 200 || !strings.Contains(body, `"text":"driver 580"`) || !strings.Contains(body, `value="build" selected`) {
		t.Errorf("a note: %d", status)
	}
	if _, body := post(line.Entries[12].ID, ""); strings.Contains(body, "driver 580") || !strings.Contains(body, "Nobody wrote anything") {
		t.Error("a note that was taken away is shown")
	}
	if status, body := post("nothing", "x"); status != 400 || !strings.Contains(body, "a note needs a run of this history") {
		t.Errorf("a note of nothing: %d", status)
	}
	readonly, key := lab(t, root, web.Options{ReadOnly: true})
	if _, body := get(t, readonly.URL+"/history/"+key); strings.Contains(body, "Write a note") {
		t.Error("a laboratory that is read only lets notes be written")
	}
}

// hostile is a name that must stay text.
const hostile = `"><script>alert(1)</script><img src=x onerror=alert(2)>`

func TestPages(t *testing.T) {
	b := browser.Start(t)
	root := t.TempDir()
	nightly(t, root)
	l, key := lab(t, root, web.Options{})
	b.Visit(t, "history", l.URL+"/history")
	b.Visit(t, "history-one", l.URL+"/history/"+key)
	b.Visit(t, "history-builds", l.URL+"/history/"+key+"?by=build&x=build")

	p := b.Open(t, l.URL+"/history", browser.View{})
	p.Wait(`document.documentElement.dataset.ready != null`)
	p.Press("j", "Enter")
	p.Wait(`location.pathname === "/history/` + key + `" && document.documentElement.dataset.ready != null`)
	p.Wait(`document.querySelector(".chart-notes li")`)
	p.Click("text=Compare before and after")
	p.Wait(`location.pathname === "/compare"`)
}

func TestPagesEmpty(t *testing.T) {
	b := browser.Start(t)
	l, _ := lab(t, t.TempDir(), web.Options{})
	b.Visit(t, "history-empty", l.URL+"/history")
}

func TestPagesHostile(t *testing.T) {
	b := browser.Start(t)
	root := t.TempDir()
	for i := range 12 {
		r := storetest.Run{N: 80 * i, Model: hostile, Command: "vllm serve '" + hostile + "' -tp 2", Build: hostile + fmt.Sprint(i/2), Figures: map[string]float64{"output_throughput": 100 + float64(i%3)}}
		r.Write(t, root, fmt.Sprintf("h-%02d", i))
	}
	l, key := lab(t, root, web.Options{})
	b.Visit(t, "history-hostile", l.URL+"/history?q="+url.QueryEscape("model=~'"+"<script>"+"'"))
	b.Visit(t, "history-hostile-one", l.URL+"/history/"+key+"?x=build")
}
