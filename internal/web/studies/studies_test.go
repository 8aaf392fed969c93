package studies_test

import (
	"bufio"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
	"perflab/internal/web/launch"
)

// hostile is what a name may hold.
const hostile = ` </script><script>alert(1)</script><img src=x onerror="alert(2)">"'`

func get(t *testing.T, address string, header ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
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

// post sends a form as a page of the server does.
func post(t *testing.T, address string, form url.Values) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
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

// has holds a page against what must be in it, and what must not.
func has(t *testing.T, what, body string, want, not []string) {
	t.Helper()
	read := html.UnescapeString(body)
	for _, s := range want {
		if !strings.Contains(body, s) && !strings.Contains(read, s) {
			t.Errorf("%s: nothing of %q in a page of %d bytes", what, s, len(body))
		}
	}
	for _, s := range not {
		if strings.Contains(body, s) {
			t.Errorf("%s: it has %q: %.300s", what, s, body[strings.Index(body, s):])
		}
	}
}

var inline = regexp.MustCompile(`<script>|<style|\sstyle=|\son[a-z]+=`)

// id is that of the one study.
func id(t *testing.T, lab *webtest.Lab, dir string) string {
	t.Helper()
	e, err := lab.Store().Get(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

func TestEmpty(t *testing.T) {
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	status, body := get(t, lab.URL+"/studies")
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	has(t, "empty", body, []string{"No study yet", "perflab tune examples/quickstart.yaml", "Run the quickstart"}, []string{"<table"})
	only := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}, ReadOnly: true})
	_, body = get(t, only.URL+"/studies")
	has(t, "empty, read only", body, []string{"No study yet"}, []string{"Run the quickstart", "New study"})
}

func TestList(t *testing.T) {
	root := t.TempDir()
	race(t, root, "")
	storetest.Study(t, root, "done", 12, 2)
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	_, body := get(t, lab.URL+"/studies")
	has(t, "list", body, []string{
		"h100", "SIMULATED", "running", "vLLM FP8", "+18.0 % [+11.0, +26.0]", "not confirmed", "4 of at most 24", "Qwen/Qwen3-8B",
		"done", "confirmed", "TP2", "+12.0 % [+11.0, +13.0]", "1 to 2 of 2", "New study",
	}, nil)
	_, body = get(t, lab.URL+"/studies?q="+url.QueryEscape("gain>=10%"))
	has(t, "filtered", body, []string{"done", "1 to 1 of 1"}, []string{">h100<"})
	_, body = get(t, lab.URL+"/studies?state=running")
	has(t, "running ones", body, []string{"h100", "1 to 1 of 1"}, []string{"+12.0 %"})
	_, body = get(t, lab.URL+"/studies?q=nonsense%3E%3D3")
	has(t, "a wrong filter", body, []string{`aria-invalid="true"`, "nonsense", "h100", "done"}, nil)
	_, body = get(t, lab.URL+"/studies?sort=gain")
	has(t, "sorted", body, []string{`aria-sort="ascending"`, "sort=-gain"}, nil)
	_, body = get(t, lab.URL+"/studies?q=engine%3Dnone")
	has(t, "nothing found", body, []string{"No study is like that"}, nil)
}

func TestStudyUnderWay(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	address := lab.URL + "/study/" + id(t, lab, x.dir)
	status, body := get(t, address)
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	has(t, "the page", body, []string{
		"Leads so far: vLLM FP8, +18.0 % [+11.0, +26.0] over the baseline by 1 launch of the search, not confirmed.",
		"4 of at most 24", "~35 min 50 s", "<code>p99_ttft_ms &lt;= 500</code>", "baseline: met, 410 ms; leads so far: missed by 12 ms, 512 ms",
		"a change of what leads, expected to gain most", "212 of 500 requests, 1 failed, 5.3 req/s, 2250 output tok/s", "64 in flight",
		"INFO loading", "loading 100 %", "45 running", "GPUs 90 % busy", "shown to be worse than vLLM FP8", "1.180x", "[1.110, 1.260]", "<svg",
		"CUDA out of memory", "Give it more GPUs", "1 of 10 calls failed", "SIMULATED", "press Ctrl-C in its terminal", "study.yaml", "not launched so far",
	}, []string{"recommended", "loading 10 %", "/stop", "/resume"})
	if m := inline.FindString(body); m != "" {
		t.Errorf("the page has %q", m)
	}
	if status, body := get(t, address+"/study.yaml"); status != http.StatusOK || body != "name: h100\n" {
		t.Errorf("study.yaml: %d %s", status, body)
	}
	var chart struct {
		Simulated bool
		Time      struct {
			Series []struct {
				Name   string
				Values []float64
			}
		}
	}
	_, body = get(t, address+"/chart/engine")
	if err := json.Unmarshal([]byte(body), &chart); err != nil || !chart.Simulated || len(chart.Time.Series) != 3 || len(chart.Time.Series[0].Values) != 30 {
		t.Errorf("the chart: %v\n%s", err, body)
	}
	if status, _ := get(t, address+"/chart/none"); status != http.StatusNotFound {
		t.Errorf("a chart that is none: %d", status)
	}
}

// TestStudyStopped: what was under way is said to be past, and how it goes on.
func TestStudyStopped(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	x.stop(t)
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	_, body := get(t, lab.URL+"/study/"+id(t, lab, x.dir))
	has(t, "the page", body, []string{"stopped", "It was at", "perflab tune h100.yaml --out h100 --resume", "How to go on", "a larger one is another study", "earlier: [" + x.dir + "]"}, []string{"Time left", "<h2>Now"})
}

func TestStudyFinished(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	x.finish(t)
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	address := lab.URL + "/study/" + id(t, lab, x.dir)
	status, body := get(t, address)
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	has(t, "the page", body, []string{"vLLM FP8 is 17 % better than the baseline.", "confirmed", "What it cost", "vllm serve Qwen/Qwen3-8B-FP8", "Contents of the report", "recommended", "/compare?ids=", "/run/", "/sites?ids="}, []string{"data-events", "not confirmed", "leads so far", "<h2>Now"})
	if m := inline.FindString(body); m != "" {
		t.Errorf("the page has %q", m)
	}
}

func TestTrial(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	address := lab.URL + "/study/" + id(t, lab, x.dir) + "/trial/"
	_, body := get(t, address+"2")
	has(t, "a trial", body, []string{"Trial 2: vLLM FP8", "vllm serve Qwen/Qwen3-8B", "/compare?ids=", "/run/", "Trial 1", "Trial 3", "leads so far", "SIMULATED"}, nil)
	_, body = get(t, address+"3")
	has(t, "a refused one", body, []string{"CUDA out of memory", "Give it more GPUs", "torch.OutOfMemoryError"}, []string{"Compare with"})
	_, body = get(t, address+"5")
	has(t, "one under way", body, []string{"under way", "a change of what leads", "INFO loading"}, nil)
	for _, wrong := range []string{"0", "6", "x", "-1", "5/log/none.log", "5/log/..%2f..%2fstudy.yaml"} {
		if status, body := get(t, address+wrong); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
	if status, body := get(t, address+"3/log/replica-0.log"); status != http.StatusOK || !strings.Contains(body, "torch.OutOfMemoryError") {
		t.Errorf("the log: %d %s", status, body)
	}
}

// TestHostile: whatever names and logs hold is text.
func TestHostile(t *testing.T) {
	for _, end := range []bool{false, true} {
		root := t.TempDir()
		x := race(t, root, hostile)
		if end {
			s := raceSoFar(t, x.dir, hostile)
			s.Partial = false
			storetest.WriteJSON(t, filepath.Join(x.dir, "study.json"), s)
			if err := os.Remove(filepath.Join(x.dir, "progress.json")); err != nil {
				t.Fatal(err)
			}
			x.stop(t)
		}
		lab := webtest.Open(t, web.Options{Roots: []string{root}})
		address := "/study/" + id(t, lab, x.dir)
		for _, path := range []string{"/studies", address, address + "/trial/2", address + "/trial/3"} {
			status, body := get(t, lab.URL+path)
			if status != http.StatusOK {
				t.Fatal(path, status, body)
			}
			has(t, path, body, nil, []string{"<script>alert", "<img src=x", `onerror="`})
		}
	}
}

// events reads a stream of events: name and data of each.
func events(t *testing.T, address, lastID string) (next func(name string) (data, id string)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<20)
	return func(want string) (data, id string) {
		t.Helper()
		event := ""
		for in.Scan() {
			switch name, value, _ := strings.Cut(in.Text(), ": "); name {
			case "event":
				event, id = value, ""
			case "id":
				id = value
			case "data":
				data = value
			case "":
				if event == want {
					return data, id
				}
			}
		}
		t.Fatalf("no event %s came: %v", want, in.Err())
		return "", ""
	}
}

// TestEvents: a page is told what changes, once, and what it missed while it was away.
func TestEvents(t *testing.T) {
	t.Setenv("HF_TOKEN", "hf_abcdefghijklmnopqrstuvwxyz012345")
	root := t.TempDir()
	x := race(t, root, "")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	address := lab.URL + "/study/" + id(t, lab, x.dir)
	_, body := get(t, address)
	at := regexp.MustCompile(`data-events="([^"]+)"`).FindStringSubmatch(body)
	last := regexp.MustCompile(`data-last-event="([^"]+)"`).FindStringSubmatch(body)
	if at == nil || last == nil {
		t.Fatalf("the page does not live:\n%s", body)
	}
	next := events(t, lab.URL+strings.ReplaceAll(at[1], "&amp;", "&"), last[1])
	if data, _ := next("set"); !strings.Contains(data, `"trials":"4 of at most 24"`) || !strings.Contains(data, `"ratio":"+18.0 % [+11.0, +26.0]"`) {
		t.Errorf("set: %s", data)
	}
	log := filepath.Join(x.dir, "trials", "005", "logs", "replica-0.log")
	add(t, log, "INFO ready, with hf_abcdefghijklmnopqrstuvwxyz012345\nhalf a li")
	data, end := next("append")
	if !strings.Contains(data, "INFO ready, with") || strings.Contains(data, "abcdefghij") || strings.Contains(data, "half") || strings.Contains(data, "INFO loading") {
		t.Errorf("append: %s", data)
	}
	x.progress(t, "", 300)
	if data, _ := next("set"); !strings.Contains(data, "300 of 500 requests") || strings.Contains(data, `"trials"`) {
		t.Errorf("set: %s", data)
	}
	x.telemetry(t, 40)
	if data, _ := next("figure"); !strings.Contains(data, `"engine"`) {
		t.Errorf("figure: %s", data)
	}
	add(t, log, "ne\n")
	if data, _ := events(t, address+"/events", end)("append"); data != `{"lines":["half a line"],"log":"engine"}` {
		t.Errorf("after a break: %s", data)
	}
	events(t, address+"/events?at=old", end)("reload") // the page was drawn of something else
	x.finish(t)
	next("reload")
	next("end")
}

func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestListEvents: the list is told of what runs, and that there is another study.
func TestListEvents(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	_, body := get(t, lab.URL+"/studies")
	at := regexp.MustCompile(`data-events="([^"]+)"`).FindStringSubmatch(body)
	if at == nil {
		t.Fatalf("the list does not live:\n%s", body)
	}
	next := events(t, lab.URL+strings.ReplaceAll(at[1], "&amp;", "&"), "")
	if data, _ := next("set"); !strings.Contains(data, "4 of at most 24") {
		t.Errorf("set: %s", data)
	}
	x.finish(t)
	if _, err := lab.Store().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	next("reload")
}

// TestActions: who may do what to a study that nobody launched here, and what is not there.
func TestActions(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	address := lab.URL + "/study/" + id(t, lab, x.dir)
	for _, act := range []string{"/stop", "/resume"} {
		if status, body := post(t, address+act, nil); status != http.StatusConflict || !strings.Contains(body, "was not launched here") {
			t.Errorf("%s: %d %s", act, status, body)
		}
	}
	if status, body := post(t, address+"/share", url.Values{"days": {"3"}}); status != http.StatusBadRequest {
		t.Errorf("a link of 3 days: %d %s", status, body)
	}
	run, err := lab.Store().Get(t.Context(), filepath.Join(x.dir, "trials", "001", "chat"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/study/ffffffffffff": "there is no entry", "/study/" + run.ID: "is no study, but a run", "/study/20260101-000000-0123abcd": "there is no launch"} {
		if status, body := get(t, lab.URL+path); status != http.StatusNotFound || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if err := os.RemoveAll(x.dir); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, address); status != http.StatusGone || !strings.Contains(body, "is gone") {
		t.Errorf("a directory that is gone: %d %s", status, body)
	}
}

// TestShared: a link shows the study, its trials and its events, and leads nowhere else.
func TestShared(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	storetest.Study(t, root, "other", 3, 1)
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	key := id(t, lab, x.dir)
	status, body := post(t, lab.URL+"/study/"+key+"/share", url.Values{"days": {"1"}})
	link := regexp.MustCompile(`<code>(http[^<]+)</code>`).FindStringSubmatch(body)
	if status != http.StatusOK || link == nil {
		t.Fatal(status, body)
	}
	status, body = get(t, link[1])
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	base := strings.TrimPrefix(strings.TrimSuffix(link[1], "/study/"+key), lab.URL)
	has(t, "the shared page", body, []string{"vLLM FP8", "shared until", base + "/study/" + key + "/trial/2", base + "/study/" + key + "/events"}, []string{`href="/studies"`, `href="/run/`, `href="/compare`, "Make a link", "Copy as a new study", x.dir})
	if status, _ := get(t, link[1]+"/trial/2"); status != http.StatusOK {
		t.Errorf("a trial: %d", status)
	}
	if status, _ := get(t, strings.Replace(link[1], key, id(t, lab, filepath.Join(root, "other")), 1)); status != http.StatusNotFound {
		t.Errorf("another study by the link: %d", status)
	}
	if status, _ := post(t, link[1]+"/stop", nil); status != http.StatusForbidden {
		t.Errorf("stop by the link: %d", status)
	}
}

// TestRoles: whoever may only read sees why nothing can be stopped, and stops nothing.
func TestRoles(t *testing.T) {
	root := t.TempDir()
	x := race(t, root, "")
	const token = "0123456789abcdef0123456789abcdef"
	lab := webtest.Open(t, web.Options{Roots: []string{root}, Guard: guard.Options{Token: token}})
	address := lab.URL + "/study/" + id(t, lab, x.dir)
	if status, body := get(t, address); status != http.StatusUnauthorized || strings.Contains(body, "FP8") {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body := get(t, address, "Authorization", "Bearer "+token); status != http.StatusOK {
		t.Errorf("with the token: %d %s", status, body)
	}
	if status, _ := post(t, address+"/stop", nil); status != http.StatusUnauthorized {
		t.Errorf("stop without a token: %d", status)
	}
}

// TestLaunchFailed: a launch that ended before there was a study says so, with its own words.
func TestLaunchFailed(t *testing.T) {
	self, err := exec.LookPath("false")
	if err != nil {
		t.Skip("there is no program that only fails: ", err)
	}
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}, Program: self})
	l, err := lab.Queue().Submit(launch.Request{Who: "ada", Study: &launch.StudyRequest{Text: predictedStudy}})
	if err != nil {
		t.Fatal(err)
	}
	for version := uint64(0); l.State != launch.Ended; {
		if version, err = lab.Queue().Wait(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		if l, err = lab.Queue().Get(l.ID); err != nil {
			t.Fatal(err)
		}
	}
	status, body := get(t, lab.URL+"/study/"+l.ID)
	if status != http.StatusOK {
		t.Fatal(status, body)
	}
	has(t, "the page", body, []string{"its process failed: its messages say why", "Go on", "ada", "Nothing has been measured yet"}, nil)
	_, body = get(t, lab.URL+"/studies")
	has(t, "the list", body, []string{"No study yet"}, nil)
}

const predictedStudy = `name: first
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8}
baseline: {label: vLLM, engine: vllm}
stages: [{name: layout, try: [{label: few, set: {max_num_seqs: 4}}]}]
runtime: {kind: predicted}
`
