package runs_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/store"
	"perflab/internal/store/mark"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

// answer is what a server answered.
type answer struct {
	status int
	body   string
	header http.Header
}

// ask sends a request, and follows no redirect.
func ask(t testing.TB, method, address, token string, form url.Values) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
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
	return answer{resp.StatusCode, string(b), resp.Header}
}

func get(t testing.TB, address string) answer {
	t.Helper()
	return ask(t, http.MethodGet, address, "", nil)
}

// some is a laboratory with runs a to d, and a study.
func some(t testing.TB) *webtest.Lab {
	t.Helper()
	root := t.TempDir()
	serve := "vllm serve Qwen/Qwen3-8B -tp "
	storetest.Run{N: 0, Command: serve + "1", Simulated: true}.Write(t, root, "a")
	storetest.Run{N: 1, Command: serve + "2", Model: "meta-llama/Llama-3-70B"}.Write(t, root, "b")
	storetest.Run{N: 40, Command: serve + "1", Status: result.Voided}.Write(t, root, "c")
	storetest.Run{N: 80, Command: serve + "1"}.Write(t, root, "d")
	storetest.Study(t, root, "tp", 1, 2)
	return webtest.Open(t, web.Options{Roots: []string{root}})
}

// entry is the entry of a name.
func entry(t testing.TB, lab *webtest.Lab, name string) store.Entry {
	t.Helper()
	for _, e := range storetest.List(t, lab.Store(), store.Query{Limit: 1000, Figures: []string{"*"}}).Entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("there is no %s", name)
	return store.Entry{}
}

var rowNames = regexp.MustCompile(`<th scope="row" data-value="([^"]*)"`)

// rows are the names of a list's rows.
func rows(body string) string {
	var out []string
	for _, m := range rowNames.FindAllStringSubmatch(body, -1) {
		out = append(out, m[1])
	}
	return strings.Join(out, " ")
}

func TestList(t *testing.T) {
	lab := some(t)
	for query, want := range map[string]string{
		"":                                     "d tp c b a",
		"?q=kind%3Drun":                        "d c b a",
		"?q=engine%3Dvllm+kind%3Drun":          "d c b a",
		"?q=model%3D~llama":                    "b",
		"?q=p99_ttft_ms%3C70+kind%3Drun":       "b a",
		"?q=kind%3Drun&sort=p99_ttft_ms":       "a b c d",
		"?q=kind%3Drun&sort=-p99_ttft_ms":      "d c b a",
		"?q=kind%3Drun&group=config":           "", // checked below
		"?q=nothing-has-this":                  "",
		"?q=kind%3Drun&page=2":                 "",
		"?q=kind%3Drun&parts=1&sort=name":      "a b c chat chat d",
		"?q=simulated%3Dtrue&columns=id,model": "a",
	} {
		a := get(t, lab.URL+"/runs"+query)
		if a.status != http.StatusOK {
			t.Fatalf("%s: %d %s", query, a.status, a.body)
		}
		if got := rows(a.body); want != "" && got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestListSays: a row says what is simulated, void, and between which figures its own lies.
func TestListSays(t *testing.T) {
	lab := some(t)
	body := get(t, lab.URL+"/runs").body
	for _, want := range []string{
		`<span class="tag simulated">SIMULATED</span>`, `<span class="tag void" title="failures: 1 of 10 calls failed">void</span>`,
		"95 % interval: 45.00 to 59.00", "+1.0 % [+0.0 %, +2.0 %] by TP2", "Show 2 more that lie in studies", `href="/study/`,
	} {
		if !strings.Contains(strings.ReplaceAll(body, "&#43;", "+"), want) {
			t.Errorf("the list has no %q", want)
		}
	}
	if strings.Contains(body, `class="sim"`) {
		t.Error("the list says that all is simulated")
	}
	if body := get(t, lab.URL+"/runs?q=simulated%3Dtrue").body; !strings.Contains(body, `class="sim"`) {
		t.Error("the list of what is simulated does not say it above")
	}
	grouped := get(t, lab.URL+"/runs?q=kind%3Drun&group=config").body
	if n := strings.Count(grouped, `scope="rowgroup"`); n != 2 || !strings.Contains(grouped, "<small>3</small></th>") {
		t.Errorf("%d groups of configurations", n)
	}
}

// TestWrong: an expression with an error says where it is, and the list stays.
func TestWrong(t *testing.T) {
	lab := some(t)
	a := get(t, lab.URL+"/runs?q=engine%3Dvllm+modle%3Dx")
	for _, want := range []string{`<code>engine=vllm <mark>modle=x</mark></code>`, "did you mean model?", `aria-invalid="true"`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if got := rows(a.body); got != "d tp c b a" {
		t.Errorf("rows %q", got)
	}
	if a := get(t, lab.URL+"/runs?sort=tag"); a.status != 200 || !strings.Contains(a.body, "shown without this order") || rows(a.body) == "" {
		t.Errorf("sort by tags: %d", a.status)
	}
	if a := get(t, lab.URL+"/runs?columns=name,p98x"); a.status != 200 || !strings.Contains(a.body, "There is no column p98x") {
		t.Errorf("an unknown column: %d", a.status)
	}
	if a := get(t, lab.URL+"/runs?add=nothing"); a.status != 400 || !strings.Contains(a.body, "there is no column") {
		t.Errorf("a column that there is not: %d", a.status)
	}
	if a := get(t, lab.URL+"/runs?add=p90_itl&q=kind%3Drun"); a.status != 303 || !strings.HasSuffix(a.header.Get("Location"), ",p90_itl_ms&q=kind%3Drun") {
		t.Errorf("a column: %d %s", a.status, a.header.Get("Location"))
	}
	if a := get(t, lab.URL+"/runs?group=host"); a.status != 400 {
		t.Errorf("grouped by host: %d", a.status)
	}
}

// TestFacets: a click adds a value to the expression, and one more takes it away.
func TestFacets(t *testing.T) {
	lab := some(t)
	body := get(t, lab.URL+"/runs?q=kind%3Drun+verdict%3Dvoid").body
	for _, want := range []string{
		`href="/runs?q=kind%3Drun&#43;verdict%3Dvoid%7Csound">sound <small>3</small>`,
		`href="/runs?q=kind%3Drun" aria-current="true">✓ void <small>1</small>`,
		`aria-label="Take away kind=run"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
}

func TestFirstVisit(t *testing.T) {
	lab := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	if a := get(t, lab.URL+"/"); a.status != 303 || a.header.Get("Location") != "/runs" {
		t.Errorf("/: %d %s", a.status, a.header.Get("Location"))
	}
	a := get(t, lab.URL+"/runs")
	if a.status != 200 || !strings.Contains(a.body, "No run yet") || !strings.Contains(a.body, `action="/launch/quickstart"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := get(t, lab.URL+"/runs?q=engine%3Dvllm"); !strings.Contains(a.body, "No entry meets the filter") {
		t.Error("a filter of nothing shows the first visit")
	}
	only := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}, ReadOnly: true})
	if a := get(t, only.URL+"/runs"); strings.Contains(a.body, "/launch/quickstart") {
		t.Error("a server that launches nothing offers the quickstart")
	}
}

func TestCompare(t *testing.T) {
	lab := some(t)
	a := get(t, lab.URL+"/runs/compare?run=a&run=b&run=a&back=x")
	if a.status != 303 || a.header.Get("Location") != "/compare?ids=a,b" {
		t.Errorf("%d %s", a.status, a.header.Get("Location"))
	}
	if a := get(t, lab.URL+"/runs/compare"); a.status != 400 || !strings.Contains(a.body, "nothing is ticked") {
		t.Errorf("nothing ticked: %d", a.status)
	}
}

// TestMarks: what is said in a form is kept, and shown.
func TestMarks(t *testing.T) {
	lab := some(t)
	a, b := entry(t, lab, "a"), entry(t, lab, "b")
	post := func(v url.Values) answer {
		v.Set("back", "/runs?q=kind%3Drun")
		return ask(t, http.MethodPost, lab.URL+"/runs/marks", "", v)
	}
	for _, v := range []url.Values{
		{"run": {a.ID, b.ID}, "do": {"tag"}, "value": {"keep, nightly"}},
		{"run": {b.ID}, "do": {"untag"}, "value": {"nightly"}},
		{"pin": {a.ID}},
		{"run": {a.ID}, "do": {"note"}, "text": {"<b>the good one"}},
		{"run": {a.ID}, "do": {"name"}, "value": {"baseline"}},
		{"run": {b.ID}, "do": {"issue"}, "value": {"vllm-1"}, "text": {"cache off"}, "link": {"https://example.com/1"}},
	} {
		if got := post(v); got.status != 303 || got.header.Get("Location") != "/runs?q=kind%3Drun" {
			t.Fatalf("%v: %d %s %s", v, got.status, got.header.Get("Location"), got.body)
		}
	}
	a, b = entry(t, lab, "a"), entry(t, lab, "b")
	if m := a.Marks; m.Name != "baseline" || m.Note != "<b>the good one" || m.By != "local" || !m.Pinned || strings.Join(m.Tags, " ") != "keep nightly" {
		t.Errorf("a: %+v", m)
	}
	if m := b.Marks; strings.Join(m.Tags, " ") != "keep" || len(m.Issues) != 1 || m.Issues[0].Link != "https://example.com/1" {
		t.Errorf("b: %+v", m)
	}
	body := get(t, lab.URL+"/runs?q=kind%3Drun").body
	if got := rows(body); !strings.HasPrefix(got, "baseline ") || strings.Contains(body, "<b>the") {
		t.Errorf("rows %q", got)
	}
	form := get(t, lab.URL+"/runs/marks?run="+a.ID+"&run="+b.ID).body
	for _, want := range []string{`value="nightly"`, `value="vllm-1"`, "Move to the trash", "Mark 2 entries"} {
		if !strings.Contains(form, want) {
			t.Errorf("the form has no %s", want)
		}
	}
	log := get(t, lab.URL+"/runs/marks?one="+a.ID).body
	if !strings.Contains(log, "name baseline") || !strings.Contains(log, "tag keep") {
		t.Error("the form does not show what was said")
	}
	for _, v := range []url.Values{
		{"do": {"pin"}}, {"run": {a.ID}}, {"run": {a.ID}, "do": {"tag"}}, {"run": {a.ID}, "do": {"tag"}, "value": {"a=b"}},
		{"run": {a.ID, b.ID}, "do": {"name"}, "value": {"x"}}, {"run": {a.ID}, "do": {"issue"}, "value": {"1"}, "link": {"javascript:alert(1)"}},
	} {
		if got := post(v); got.status != 400 {
			t.Errorf("%v: %d", v, got.status)
		}
	}
	if got := post(url.Values{"run": {"nowhere"}, "do": {"pin"}}); got.status != 404 {
		t.Errorf("a run that there is not: %d", got.status)
	}
}

// TestBack: a form leads back to the list or to a page of a run, and nowhere else.
func TestBack(t *testing.T) {
	lab := some(t)
	a := entry(t, lab, "a")
	for from, to := range map[string]string{
		"/runs?q=x": "/runs?q=x", "/run/" + a.ID: "/run/" + a.ID, "https://example.com/runs": "/runs", "//example.com/runs": "/runs",
		`/\example.com`: "/runs", "/logout": "/runs", "": "/runs", "/runs/../logout": "/runs", "javascript:alert(1)": "/runs",
	} {
		got := ask(t, http.MethodPost, lab.URL+"/runs/marks", "", url.Values{"pin": {a.ID}, "back": {from}})
		if got.status != 303 || got.header.Get("Location") != to {
			t.Errorf("%q: %d %q", from, got.status, got.header.Get("Location"))
		}
	}
}

// TestDelete: what is deleted lies in the trash, and one click moves it back.
func TestDelete(t *testing.T) {
	lab := some(t)
	a := entry(t, lab, "a")
	dir := a.Dir()
	got := ask(t, http.MethodPost, lab.URL+"/runs/delete", "", url.Values{"run": {a.ID}, "back": {"/run/" + a.ID}})
	if got.status != 303 || !strings.HasPrefix(got.header.Get("Location"), "/runs?undo=") {
		t.Fatalf("%d %s %s", got.status, got.header.Get("Location"), got.body)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is still there")
	}
	body := get(t, lab.URL+got.header.Get("Location")).body
	if strings.Contains(rows(body), "a") || !strings.Contains(body, "a was moved to the trash.") {
		t.Errorf("rows %q", rows(body))
	}
	if page := get(t, lab.URL+"/run/"+a.ID); page.status != 404 {
		t.Errorf("the page of what was deleted: %d", page.status)
	}
	trash, err := lab.Store().Trash(t.Context())
	if err != nil || len(trash) != 1 || !strings.Contains(get(t, lab.URL+"/runs/trash").body, trash[0].Trash) {
		t.Fatalf("%v, %v", trash, err)
	}
	undo := url.Values{"trash": {trash[0].Trash}, "root": {trash[0].Root}}
	if got := ask(t, http.MethodPost, lab.URL+"/runs/restore", "", undo); got.status != 303 {
		t.Errorf("restore: %d %s", got.status, got.body)
	}
	if rows := rows(get(t, lab.URL+"/runs").body); rows != "d tp c b a" {
		t.Errorf("rows %q", rows)
	}
	if got := ask(t, http.MethodPost, lab.URL+"/runs/restore", "", undo); got.status != 404 {
		t.Errorf("restore again: %d", got.status)
	}
	page, err := lab.Guard().History("", 10, nil)
	if err != nil || len(page.Events) != 2 || page.Events[0].Action != "restore" || page.Events[1].Object != a.ID {
		t.Errorf("the audit log has %+v, %v", page, err)
	}
}

// TestRoles: who reads marks nothing, who launches deletes nothing.
func TestRoles(t *testing.T) {
	const reader, launcher = "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr", "llllllllllllllllllllllllllllllll"
	root := t.TempDir()
	storetest.Run{}.Write(t, root, "a")
	tokens := filepath.Join(t.TempDir(), "tokens")
	storetest.WriteFile(t, tokens, []byte(guard.TokenLine("ada", guard.Read, reader)+"\n"+guard.TokenLine("bob", guard.Launch, launcher)+"\n"))
	lab := webtest.Open(t, web.Options{Roots: []string{root}, Guard: guard.Options{Tokens: tokens}})
	a := entry(t, lab, "a")
	pin, del := url.Values{"pin": {a.ID}}, url.Values{"run": {a.ID}}
	for _, test := range []struct {
		token, path string
		form        url.Values
		want        int
	}{
		{"", "/runs/marks", pin, 401}, {reader, "/runs/marks", pin, 403}, {launcher, "/runs/marks", pin, 303},
		{reader, "/runs/delete", del, 403}, {launcher, "/runs/delete", del, 403}, {launcher, "/runs/restore", del, 403},
	} {
		if got := ask(t, http.MethodPost, lab.URL+test.path, test.token, test.form); got.status != test.want {
			t.Errorf("%s by %.1s: %d, want %d", test.path, test.token, got.status, test.want)
		}
	}
	for _, path := range []string{"/runs", "/run/" + a.ID} {
		read := ask(t, http.MethodGet, lab.URL+path, reader, nil)
		if read.status != 200 || strings.Contains(read.body, "/runs/marks") {
			t.Errorf("%s: %d, and a reader is offered marks", path, read.status)
		}
		if got := ask(t, http.MethodGet, lab.URL+path, launcher, nil); !strings.Contains(got.body, "/runs/marks") || strings.Contains(got.body, "delete") {
			t.Errorf("%s: what a launcher is offered", path)
		}
	}
}

func TestExport(t *testing.T) {
	lab := some(t)
	a := entry(t, lab, "a")
	if err := lab.Store().Mark(t.Context(), "ada", a.ID, mark.Record{Do: mark.Name, Value: "=1+1|<b>"}); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]string{
		"csv":  fmt.Sprintf("id,simulated,name,p99_ttft_ms,tags\n%s,SIMULATED,'=1+1|<b>,50,\n", a.ID),
		"json": fmt.Sprintf("[\n  {\n    \"id\": \"%s\",\n    \"name\": \"=1+1|\\u003cb\\u003e\",\n    \"p99_ttft_ms\": 50,\n    \"simulated\": \"SIMULATED\",\n    \"tags\": null\n  }\n]\n", a.ID),
	} {
		got := get(t, lab.URL+"/runs/export?columns=name,p99_ttft_ms,tags&q=simulated%3Dtrue+kind%3Drun&format="+format)
		if got.status != 200 || got.body != want || !strings.Contains(got.header.Get("Content-Disposition"), "runs."+format) {
			t.Errorf("%s: %d\n%s\nwant\n%s", format, got.status, got.body, want)
		}
	}
	md := get(t, lab.URL+"/runs/export?columns=name,p99_ttft_ms&q=kind%3Drun&format=md").body
	if !strings.Contains(md, "SIMULATED") || strings.Contains(md, "<b>") || strings.Count(md, "\n| ") < 5 {
		t.Errorf("Markdown: %s", md)
	}
	for _, query := range []string{"format=xls", "format=csv&q=modle%3Dx", "format=csv&sort=tag", "format=csv&columns=nothing"} {
		if got := get(t, lab.URL+"/runs/export?"+query); got.status != 400 {
			t.Errorf("%s: %d", query, got.status)
		}
	}
}
