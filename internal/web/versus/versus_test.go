package versus_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/compare"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/store"
	"perflab/internal/test/browser"
	"perflab/internal/test/calltest"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/verdict"
	"perflab/internal/web"
)

const hostile = `</script><script>alert(1)</script>"'&<img src=x onerror=alert(2)>`

// write makes a run of calls, a gap apart.
func write(t testing.TB, root, name, command string, n int, gap time.Duration) {
	t.Helper()
	h := storetest.Run{N: n, Command: command, Simulated: true}.Header()
	h.Rate, h.Spec = float64(time.Second)/float64(gap), json.RawMessage(`{"gpus": 1}`)
	calls := calltest.Steady(300, gap)
	h.Requests, h.Fingerprint = len(calls), "same"
	w, err := rundir.Create(filepath.Join(root, name), h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		w.Add(&calls[i])
	}
	s, err := verdict.Summarize(h, &result.Client{}, result.Options{}, func(yield func(result.Call) bool) {
		for _, c := range calls {
			if !yield(c) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(&result.Client{}, &s, nil); err != nil {
		t.Fatal(err)
	}
}

// lab has runs before and after of two configurations, once more of the first, a void one with
// a hostile name, and a study.
func lab(t testing.TB) (*webtest.Lab, map[string]string) {
	t.Helper()
	root := t.TempDir()
	write(t, root, "before", "vllm serve Qwen/Qwen3-8B --max-num-seqs 64", 0, 20*time.Millisecond)
	write(t, root, "again", "vllm serve Qwen/Qwen3-8B --max-num-seqs 64", 8, 20*time.Millisecond)
	write(t, root, "after", "vllm serve Qwen/Qwen3-8B --max-num-seqs 256 --enable-chunked-prefill", 16, 10*time.Millisecond)
	storetest.Run{N: 3, Command: "vllm serve " + hostile, Model: hostile, Status: result.Voided}.Write(t, root, "void")
	storetest.Study(t, root, "study", 1, 3)
	l := webtest.Open(t, web.Options{Roots: []string{root}})
	ids := map[string]string{}
	for _, e := range storetest.List(t, l.Store(), store.Query{Limit: 100}).Entries {
		ids[e.Name] = e.ID
	}
	return l, ids
}

func get(t testing.TB, address string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, r)
}

func do(t testing.TB, r *http.Request) (int, string) {
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

// has checks what a page must and must not have.
func has(t *testing.T, body string, want, not []string) {
	t.Helper()
	for _, text := range want {
		if !strings.Contains(body, text) {
			t.Errorf("the page lacks %q", text)
		}
	}
	for _, text := range not {
		if strings.Contains(body, text) {
			t.Errorf("the page has %q", text)
		}
	}
	if t.Failed() {
		t.Log(body)
	}
}

func TestCompare(t *testing.T) {
	l, ids := lab(t)
	for _, test := range []struct {
		name, query string
		want, not   []string
	}{
		{"nothing", "", []string{"Nothing is ticked yet", "before"}, []string{"What differs"}},
		{"one", "run=" + ids["before"], []string{"One more is needed", "Where it comes from"}, nil},
		{"two", "run=" + ids["before"] + "&run=" + ids["after"], []string{
			"<code>--max-num-seqs</code>", "<strong>64</strong>", "<strong>256</strong>", "--enable-chunked-prefill", "SIMULATED", "baseline",
			`"name":"front"`, `"name":"cdf-ttft"`, "Output token throughput", "after against before", "Make it the baseline",
		}, []string{"cannot be compared", ">--port<"}},
		{"grouped", "run=" + ids["before"] + "&run=" + ids["again"] + "&run=" + ids["after"], []string{"and 1 more"}, nil},
		{"alone", "run=" + ids["before"] + "&run=" + ids["again"] + "&run=" + ids["after"] + "&alone=1", []string{"again", "One side a configuration"}, []string{"and 1 more"}},
		{"base", "run=" + ids["before"] + "&run=" + ids["after"] + "&base=" + ids["after"], []string{"before against after"}, nil},
		{"same", "run=" + ids["before"] + "&run=" + ids["after"] + "&same=1", []string{"Show what differs alone", "Qwen/Qwen3-8B"}, nil},
		{"slo", "run=" + ids["before"] + "&run=" + ids["after"] + "&slo=" + url.QueryEscape("p99_ttft_ms<=50"), []string{`"slos":[{"at":50`}, nil},
		{"unknown", "run=" + ids["before"] + "&run=0123456789", []string{"One more is needed", "0123456789"}, nil},
		{"study", "run=" + ids["before"] + "&run=" + ids["after"] + "&run=" + ids["study"], []string{"is a study with runs of different loads"}, nil},
		{"void", "run=" + ids["before"] + "&run=" + ids["void"], []string{"&lt;/script&gt;", `class="tag void"`}, []string{"<script>alert", "<img src=x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			status, body := get(t, l.URL+"/compare?"+test.query)
			if status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			has(t, body, test.want, test.not)
		})
	}
}

func TestWrong(t *testing.T) {
	l, ids := lab(t)
	for query, want := range map[string]string{
		"metrics=p99_tfft_ms&run=" + ids["before"]:        "p99_tfft_ms",
		"slo=fast&run=" + ids["before"]:                   "the SLO cannot be read",
		"run=" + strings.Repeat("a,b1,", 3) + manyIDs(70): "more than a page can compare",
	} {
		if status, body := get(t, l.URL+"/compare?"+query); status != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d, want 400 with %q", query, status, want)
		}
	}
	if status, body := get(t, l.URL+"/compare.json?run="+ids["before"]); status != http.StatusBadRequest || !strings.Contains(body, "two sides at least") {
		t.Errorf("one side as JSON: %d %s", status, body)
	}
}

func manyIDs(n int) string {
	var out []string
	for i := range n {
		out = append(out, strings.Repeat("c", i+1))
	}
	return strings.Join(out, ",")
}

func TestExports(t *testing.T) {
	l, ids := lab(t)
	query := "run=" + ids["before"] + "&run=" + ids["after"] + "&metrics=output_throughput"
	status, body := get(t, l.URL+"/compare.json?"+query)
	var c compare.Comparison
	if err := json.Unmarshal([]byte(body), &c); err != nil || status != http.StatusOK || len(c.Sides) != 2 || len(c.Rows) != 1 || !c.Simulated {
		t.Errorf("%d %v: %s", status, err, body)
	}
	if status, body := get(t, l.URL+"/compare.md?"+query); status != http.StatusOK || !strings.HasPrefix(body, "**after against before, figures: ") {
		t.Errorf("%d: %s", status, body)
	}
}

// TestShare: a link shows what it names and nothing else.
func TestShare(t *testing.T) {
	l, ids := lab(t)
	form := url.Values{"run": {ids["before"], ids["after"]}, "hours": {"24"}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, l.URL+"/compare/share", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body := do(t, r)
	_, rest, ok := strings.Cut(body, `sees what is compared here, and nothing else: <a href="`)
	link, _, _ := strings.Cut(rest, `"`)
	if status != http.StatusOK || !ok {
		t.Fatalf("%d: %s", status, body)
	}
	link = strings.ReplaceAll(link, "&amp;", "&")
	status, body = get(t, l.URL+link)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", link, status, body)
	}
	has(t, body, []string{"after against before", "shared until"}, []string{`href="/runs"`, "Remove", "Make a link"})
	other := strings.Replace(link, ids["after"], ids["void"], 1)
	if _, body := get(t, l.URL+other); !strings.Contains(body, "This link does not open") || strings.Contains(body, "against before") {
		t.Errorf("a link opened what it does not name: %s", body)
	}
}

func TestPages(t *testing.T) {
	b := browser.Start(t)
	l, ids := lab(t)
	b.Visit(t, "compare", l.URL+"/compare?run="+ids["before"]+"&run="+ids["after"]+"&slo="+url.QueryEscape("p99_ttft_ms<=50"))
	b.Visit(t, "compare-nothing", l.URL+"/compare")
	b.Visit(t, "compare-hostile", l.URL+"/compare?run="+ids["before"]+"&run="+ids["void"]+"&same=1")
	p := b.Open(t, l.URL+"/compare?run="+ids["before"], browser.View{})
	p.Click("input[type=checkbox][value='" + ids["after"] + "']")
	p.Click("main button.primary")
	p.Wait(`location.search.includes("` + ids["after"] + `") && document.querySelector("#differs")`)
	p.Sound()
}

func BenchmarkCompare(b *testing.B) {
	l, ids := lab(b)
	address := l.URL + "/compare?run=" + ids["before"] + "&run=" + ids["after"]
	get(b, address)
	for b.Loop() {
		if status, _ := get(b, address); status != http.StatusOK {
			b.Fatal(status)
		}
	}
}
