package start_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"perflab/examples"
	"perflab/internal/store"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/allow"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
	"perflab/internal/web/start"
)

// TestMain: this program is what a queue starts as perflab.
func TestMain(m *testing.M) {
	launch.Main()
	if len(os.Args) > 1 && (os.Args[1] == "tune" || os.Args[1] == "bench") {
		os.Stderr.WriteString("stand-in for perflab " + os.Args[1] + " \x1b[31m<script>alert(1)</script>\n")
		os.Exit(4)
	}
	os.Exit(m.Run())
}

// serve serves an empty laboratory, in which one launch at a time runs.
func serve(t *testing.T, change func(*web.Options)) *webtest.Lab {
	t.Helper()
	o := web.Options{Roots: []string{t.TempDir()}}
	if change != nil {
		change(&o)
	}
	return webtest.Open(t, o)
}

type answer struct {
	status int
	body   string
	where  string // that it leads to
}

func ask(t *testing.T, method, address, kind, body string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, string(b), resp.Header.Get("Location")}
}

func get(t *testing.T, address string) answer { return ask(t, "GET", address, "", "") }

func post(t *testing.T, address string, form url.Values) answer {
	return ask(t, "POST", address, "application/x-www-form-urlencoded", form.Encode())
}

// want fails where an answer has not a status, or lacks a text; with ! before, where it has it.
func (a answer) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %.2000s", a.status, status, a.body)
	}
	for _, text := range texts {
		not, unwanted := strings.CutPrefix(text, "!")
		if strings.Contains(a.body, strings.TrimPrefix(text, "!")) == unwanted {
			t.Errorf("it has not %q (or has %q): %.6000s", text, not, a.body)
		}
	}
}

// audited are the actions that the audit log has, the newest first.
func audited(t *testing.T, g *guard.Guard) string {
	t.Helper()
	p, err := g.History("", 50, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range p.Events {
		all = append(all, e.Action+" "+string(e.Outcome))
	}
	return strings.Join(all, ", ")
}

// predicted is a study that starts nothing.
const predicted = `name: small
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
engines: {vllm: {}}
objective: {metric: total_token_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 20, random_input_len: 128, random_output_len: 16}
baseline: {label: base, engine: vllm}
space: {max_num_seqs: [64, 128]}
budget: {trials: 8, time: 1h}
runtime: {kind: predicted}
`

func TestQueue(t *testing.T) {
	lab := serve(t, nil)
	get(t, lab.URL+"/launch").want(t, 200, "Nothing was launched yet", `action="/launch/quickstart"`, `aria-current="page">Launch`)
	a := post(t, lab.URL+"/launch/quickstart", nil)
	a.want(t, 303)
	id := strings.TrimPrefix(a.where, "/launch/")
	if !strings.Contains(id, "-") {
		t.Fatalf("it leads to %q", a.where)
	}
	ended(t, lab.URL, a.where)
	get(t, lab.URL+a.where).want(t, 200, "quickstart", "SIMULATED", "processors of this machine", "exit status 4", "cannot be believed",
		"stand-in for perflab tune", "&lt;script&gt;", "!<script>alert", "!\x1b", "perflab tune ", `action="/launch/`+id+`/retry"`, "Copy as a new study")
	get(t, lab.URL+"/launch").want(t, 200, "quickstart", "SIMULATED", "local", `/launch/`+id, "!Nothing was launched yet")
	get(t, lab.URL+a.where+"/log/stderr").want(t, 200, "stand-in for perflab tune", "!\x1b")
	get(t, lab.URL+a.where+"/log/other").want(t, 404, "no log other")
	get(t, lab.URL+"/launch/study?from="+id).want(t, 200, "Made of quickstart", "random_range_ratio: 0.5")
	post(t, lab.URL+a.where+"/stop", nil).want(t, 409, "does not run")
	post(t, lab.URL+a.where+"/burn", nil).want(t, 404)
	post(t, lab.URL+"/launch/20260101-000000-00000000/stop", nil).want(t, 404, "there is no launch")
	b := post(t, lab.URL+a.where+"/retry", nil)
	b.want(t, 303)
	ended(t, lab.URL, b.where)
	get(t, lab.URL+b.where).want(t, 200, "repeats <a")
	if got := audited(t, lab.Guard()); got != "retry launch done, stop launch refused, stop launch refused, launch done" {
		t.Errorf("the audit log has %s", got)
	}
}

// ended waits until a launch has ended: its page then has no stream.
func ended(t *testing.T, server, where string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", server+where+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body) // until nothing more comes
	if err != nil || !strings.Contains(string(b), "event: end") {
		t.Fatalf("%v: %s", err, b)
	}
}

func TestStudy(t *testing.T) {
	lab := serve(t, nil)
	get(t, lab.URL+"/launch/study").want(t, 200, "data-editor", "/launch/study?template=quickstart", "/launch/study?template=docker-vllm", "throughput", "Eight launches of simulated engines")
	get(t, lab.URL+"/launch/study?template=quickstart").want(t, 200, "random_range_ratio: 0.5", "Made of the template quickstart")
	get(t, lab.URL+"/launch/study?template=../start").want(t, 404, "no template")
	get(t, lab.URL+"/launch/study?from=nothing").want(t, 404, "no study nothing")
	do := func(what, text string) answer {
		return post(t, lab.URL+"/launch/study", url.Values{"do": {what}, "study": {strings.ReplaceAll(text, "\n", "\r\n")}})
	}
	do("check", predicted).want(t, 200, "A valid study of strategy race", "SIMULATED", "Predicted by the simulator", "the baseline", "no machine of its own", "It ends within 1 h 00 min")
	do("check", "name: x\nbudgets: 3\n").want(t, 200, "Line 2, column 1: unknown key", "!A valid study")
	do("start", "name: x\nbudgets: 3\n").want(t, 422, "Line 2, column 1")
	hostile := strings.Replace(predicted, "name: small", "name: <script>alert(1)</script>", 1)
	do("check", hostile).want(t, 200, "!<script>alert", "&lt;script&gt;")
	a := do("start", predicted)
	a.want(t, 303)
	ended(t, lab.URL, a.where)
	post(t, lab.URL+"/launch/study/ranking", url.Values{"study": {predicted}}).want(t, 200, "A valid study", "!<html")
}

// TestRefused: what an administrator has not allowed is an error at its line, with what allows it.
func TestRefused(t *testing.T) {
	lab := serve(t, func(o *web.Options) { o.Allow = allow.List{Engines: []string{"sglang"}} })
	a := ask(t, "POST", lab.URL+"/api/v1/studies/check", "application/yaml", predicted)
	var got []struct {
		Line, Column int
		Message      string
	}
	if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
	if len(got) != 2 || got[0].Line != 4 || got[1].Line != 8 || got[0].Message != `"vllm" is not allowed: an administrator adds engines: [vllm] to the allow list of perflab serve` {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"quickstart", "docker-vllm", "ssh-two-nodes"} {
		text, err := examples.Studies.ReadFile(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		ask(t, "POST", lab.URL+"/api/v1/studies/check", "application/yaml", string(text)).want(t, 200, "an administrator adds")
	}
	ask(t, "POST", lab.URL+"/api/v1/studies/complete?line=1&column=1", "application/yaml", "").want(t, 200, `"text":"name: "`)
	ask(t, "POST", lab.URL+"/api/v1/studies/complete", "application/yaml", "").want(t, 400, "line and column")
	post(t, lab.URL+"/launch/quickstart", nil).want(t, 400, "baseline.engine")
	if got := audited(t, lab.Guard()); got != "launch refused" {
		t.Errorf("the audit log has %s", got)
	}
}

func TestDraft(t *testing.T) {
	lab := serve(t, nil)
	answers := url.Values{"do": {"draft"}, "model": {"Qwen/Qwen3-8B"}, "engine": {"vllm"}, "gpu": {"h100-sxm"}, "gpus": {"2"}, "runtime": {"simulated"}, "objective": {"ttft"},
		"slo": {"mean_tpot_ms <= 30\r\n"}, "workload": {"chat, 2000/200"}, "name": {"mine"}}
	post(t, lab.URL+"/launch/study", answers).want(t, 200, "Made of your answers", "name: mine", "p99_ttft_ms", "mean_tpot_ms &lt;= 30", "2000", "kind: simulated")
	for name, wrong := range map[string][2]string{"gpus": {"none", "is not a number of devices"}, "slo": {"fast", "fast"}, "workload": {"much", "is not known"}, "objective": {"beauty", "is not known"}, "gpu": {"abacus", "abacus"}} {
		changed := url.Values{}
		maps.Copy(changed, answers)
		changed.Set(name, wrong[0])
		post(t, lab.URL+"/launch/study", changed).want(t, 422, `class="wrong"`, wrong[1], `aria-invalid="true"`, "!Made of your answers")
	}
}

func TestBench(t *testing.T) {
	lab := serve(t, nil)
	get(t, lab.URL+"/launch/bench?max-concurrency=8").want(t, 200, "perflab bench --max-concurrency 8", `value="http://127.0.0.1:8000"`)
	for _, test := range []struct {
		form    string
		at, say string // an input, and what is said there; "": it is right
		command string
	}{
		{"", "", "", "perflab bench"},
		{"base-url=http://127.0.0.1:9&model=m&request-rate=8&slo=p99_ttft_ms+<%3D+500%0Amean_tpot_ms+<%3D+30", "", "", "perflab bench --base-url http://127.0.0.1:9 --model m --request-rate 8"},
		{"num-prompts=many", "num-prompts", "whole number", ""},
		{"num-prompts=0", "num-prompts", "above 0", ""},
		{"request-rate=fast", "request-rate", "fast", ""},
		{"base-url=127.0.0.1", "base-url", "no URL", ""},
		{"base-url=http://example.org", "base-url", "not allowed", ""},
		{"dataset-name=sharegpt", "dataset-name", "needs --dataset-path", ""},
		{"dataset-name=sharegpt&dataset-path=/etc/passwd", "dataset-path", "not allowed", ""},
		{"slo=fast", "slo", "fast", ""},
		{"goodput=x", "goodput", "x", ""},
		{"duration=long", "duration", "", ""},
		{"cache=cold", "cache", "not known", ""},
		{"num-warmups=-1", "num-warmups", "negative", ""},
		{"repeat=3", "repeat", "choose that", ""},
		{"measure=repeat&repeat=1", "repeat", "2 runs", ""},
		{"measure=repeat&repeat=3", "", "", "perflab bench --repeat 3"},
		{"measure=sweep&sweep=rate", "sweep", "no sweep", ""},
		{"measure=sweep&sweep=rate=1,2", "", "", "perflab bench --sweep rate=1,2"},
		{"measure=sweep&sweep=rate=1,2&request-rate=3", "request-rate", "sets it", ""},
		{"measure=sweep&sweep=concurrency=8..64%2B8&num-prompts=10", "num-prompts", "never reach", ""},
		{"measure=find-max&find-max=rate", "slo", "is missing", ""},
		{"measure=find-max&slo=p99_ttft_ms+<%3D+500", "find-max", "rate or concurrency", ""},
		{"measure=find-max&find-max=rate&slo=p99_ttft_ms<%3D500&find-max-from=4&find-max-to=2", "find-max-to", "below", ""},
		{"measure=find-max&find-max=rate&slo=p99_ttft_ms<%3D500", "", "", "--find-max rate"},
	} {
		a := ask(t, "POST", lab.URL+"/launch/bench/check", "application/x-www-form-urlencoded", test.form)
		var got struct {
			Command string
			Wrong   map[string]string
			Rest    []string
		}
		if err := json.Unmarshal([]byte(a.body), &got); err != nil || a.status != 200 {
			t.Fatalf("%s: %d %s", test.form, a.status, a.body)
		}
		if test.at == "" && len(got.Wrong)+len(got.Rest) > 0 || test.at != "" && (got.Wrong[test.at] == "" || !strings.Contains(got.Wrong[test.at], test.say)) {
			t.Errorf("%s: %+v, want %q at %q", test.form, got, test.say, test.at)
		}
		if !strings.Contains(strings.ReplaceAll(got.Command, " \\\n ", ""), test.command) {
			t.Errorf("%s: %s, want %s", test.form, got.Command, test.command)
		}
	}
	post(t, lab.URL+"/launch/bench", url.Values{"do": {"start"}, "num-prompts": {"no"}}).want(t, 422, "whole number", `aria-invalid="true"`)
	post(t, lab.URL+"/launch/bench", url.Values{"do": {"check"}, "num-prompts": {"10"}}).want(t, 200, "right and allowed", "--num-prompts 10")
	a := post(t, lab.URL+"/launch/bench", url.Values{"do": {"start"}, "num-prompts": {"10"}, "name": {"<b>mine"}})
	a.want(t, 303)
	ended(t, lab.URL, a.where)
	get(t, lab.URL+a.where).want(t, 200, "&lt;b&gt;mine", "127.0.0.1:8000", "--num-prompts=10", "!Copy as a new study")
}

// TestOtherServer: where another server runs the queue, launches are shown, and nothing is done to them.
func TestOtherServer(t *testing.T) {
	dir, root := t.TempDir(), t.TempDir()
	owner, err := launch.Open(dir, launch.Options{Results: root})
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	l, err := owner.Submit(launch.Request{Who: "ada", Study: &launch.StudyRequest{Text: predicted}})
	if err != nil {
		t.Fatal(err)
	}
	second, err := launch.Open(dir, launch.Options{Results: root})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	index, err := store.Open(t.Context(), store.Options{Roots: []string{root}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	pages := page.New(page.Options{})
	mux := http.NewServeMux()
	for _, r := range start.Routes(start.Options{Pages: pages, Store: index, Queue: second, Audit: func(context.Context, trail.Event) error { return nil }}) {
		mux.Handle(r.Pattern, pages.Handler(r))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(guard.With(r.Context(), guard.Who{Name: "bob", Role: guard.Administer})))
	}))
	defer server.Close()
	get(t, server.URL+"/launch").want(t, 200, "small", "ada", "another perflab serve runs the launches", "!/stop", "!New study")
	get(t, server.URL+"/launch/"+l.ID).want(t, 200, "small", "another perflab serve", "!/stop", "!/cancel", "!/retry")
	post(t, server.URL+"/launch/"+l.ID+"/cancel", nil).want(t, 409, "another perflab serve")
	post(t, server.URL+"/launch/quickstart", nil).want(t, 409, "another perflab serve")
	ended(t, server.URL, "/launch/"+l.ID) // what the other server's process does is seen here too
}

// TestRankingGivenUp: who types on needs no ranking, and the next one is made.
func TestRankingGivenUp(t *testing.T) {
	lab := serve(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", lab.URL+"/launch/study/ranking", strings.NewReader(url.Values{"study": {examples.Quickstart}}.Encode()))
		if err == nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			var resp *http.Response
			if resp, err = http.DefaultClient.Do(r); err == nil {
				err = resp.Body.Close()
			}
		}
		sent <- err
	}()
	cancel()
	<-sent // an error, or an answer that came before
	post(t, lab.URL+"/launch/study/ranking", url.Values{"study": {predicted}}).want(t, 200, "A valid study")
}

// TestClosed: a server that launches nothing says so, everywhere.
func TestClosed(t *testing.T) {
	lab := serve(t, func(o *web.Options) { o.ReadOnly = true })
	get(t, lab.URL+"/launch").want(t, 200, "only shows", "!/launch/quickstart")
	get(t, lab.URL+"/launch/study?template=quickstart").want(t, 200, "only shows", "disabled")
	get(t, lab.URL+"/launch/bench").want(t, 200, "only shows", "disabled")
	post(t, lab.URL+"/launch/quickstart", nil).want(t, 409, "only shows")
	post(t, lab.URL+"/launch/study", url.Values{"do": {"start"}, "study": {predicted}}).want(t, 409)
	post(t, lab.URL+"/launch/bench", url.Values{"do": {"start"}}).want(t, 409)
	get(t, lab.URL+"/launch/x").want(t, 404)
	get(t, lab.URL+"/launch/x/events").want(t, 404)
	post(t, lab.URL+"/launch/x/stop", nil).want(t, 409)
}
