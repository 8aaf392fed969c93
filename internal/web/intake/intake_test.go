package intake_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

// serve serves an empty laboratory, with its root and its state.
func serve(t *testing.T, change func(*web.Options)) (lab *webtest.Lab, root, state string) {
	t.Helper()
	o := web.Options{Roots: []string{t.TempDir()}, State: t.TempDir()}
	if change != nil {
		change(&o)
	}
	return webtest.Open(t, o), o.Roots[0], o.State
}

type answer struct {
	status      int
	body, where string
	header      http.Header
}

func ask(t *testing.T, method, address, kind string, body io.Reader) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, body)
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
	return answer{resp.StatusCode, string(b), resp.Header.Get("Location"), resp.Header}
}

func get(t *testing.T, address string) answer { return ask(t, "GET", address, "", nil) }

func post(t *testing.T, address string, form url.Values) answer {
	return ask(t, "POST", address, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

// send sends files by name and a pasted text, as the form does.
func send(t *testing.T, address, text string, files map[string]string) answer {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, name := range slices.Sorted(keys(files)) {
		f, err := w.CreateFormFile("files", name)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(f, files[name])
	}
	if err := w.WriteField("text", text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return ask(t, "POST", address, w.FormDataContentType(), &b)
}

func keys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// want fails where an answer has not a status, or lacks a text; with ! before, where it has it.
func (a answer) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("status %d, want %d: %.2000s", a.status, status, a.body)
	}
	for _, text := range texts {
		if not, unwanted := strings.CutPrefix(text, "!"); strings.Contains(a.body, not) == unwanted {
			t.Errorf("it has not %q (or has what it must not): %.6000s", text, a.body)
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

// tree are the files below a directory.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rest, _ := filepath.Rel(dir, path)
			all = append(all, filepath.ToSlash(rest))
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return all
}

// block is what vllm bench serve prints, with a figure that cannot be.
const block = `# Results of <script>alert("title")</script>

vllm serve Qwen/Qwen3-8B --api-key sk-abcdefghijklmnopqrstuvwxyz012345

============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  10.00
Total input tokens:                      102400
Total generated tokens:                  12800
Request throughput (req/s):              10.00
Output token throughput (tok/s):         1280.00
Total Token throughput (tok/s):          99999.00
---------------Time to First Token----------------
Mean TTFT (ms):                          100.00
Median TTFT (ms):                        90.00
P99 TTFT (ms):                           50.00
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          10.00
Median TPOT (ms):                        10.00
P99 TPOT (ms):                           12.00
---------------Inter-token Latency----------------
Mean ITL (ms):                           10.00
Median ITL (ms):                         10.00
P99 ITL (ms):                            12.00
==================================================
`

func TestImport(t *testing.T) {
	lab, root, state := serve(t, nil)
	get(t, lab.URL+"/import").want(t, 200, `enctype="multipart/form-data"`, "Nothing is kept before you say so")
	send(t, lab.URL+"/import", "", nil).want(t, 400, "nothing was sent")
	a := send(t, lab.URL+"/import", "", map[string]string{`<img src=x onerror=alert(1)>.md`: block, "../../etc/passwd": "no result"})
	a.want(t, 303)
	look := get(t, lab.URL+a.where)
	look.want(t, 200, "2 files", "1 run", "10.00", "error", "99999", "Total Token throughput", "passwd", "No run was read of this file",
		"&lt;img src=x onerror=alert(1)&gt;.md", "!<img src=x", "!<script>alert", "!sk-abcdefghijklmnopqrstuvwxyz", "/keep", "/discard")
	if got := tree(t, filepath.Join(root, "imported")); len(got) > 0 {
		t.Errorf("before a click there is %q", got)
	}
	staged := tree(t, filepath.Join(state, "imports"))
	for _, name := range staged {
		if !regexp.MustCompile(`^[0-9a-f]{32}/(\d+|stage\.json)$`).MatchString(name) {
			t.Errorf("what was sent lies under %q", name)
		}
	}
	if len(staged) != 3 {
		t.Errorf("staged are %q", staged)
	}
	post(t, lab.URL+a.where+"/keep", url.Values{"root": {"/etc"}}).want(t, 400, "no directory of that name")
	kept := post(t, lab.URL+a.where+"/keep", nil)
	kept.want(t, 303)
	if !strings.HasPrefix(kept.where, "/run/") {
		t.Errorf("it leads to %s", kept.where)
	}
	if got := tree(t, filepath.Join(state, "imports")); len(got) > 0 {
		t.Errorf("after it was kept there is %q", got)
	}
	names := tree(t, filepath.Join(root, "imported"))
	if !slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(s, "/import.json") }) || !slices.ContainsFunc(names, func(s string) bool { return strings.HasSuffix(s, "/header.json") }) {
		t.Errorf("kept are %q", names)
	}
	get(t, lab.URL+a.where).want(t, 404, "waits to be kept")
	post(t, lab.URL+a.where+"/keep", nil).want(t, 404)

	again := send(t, lab.URL+"/import", block, nil)
	again.want(t, 303)
	get(t, lab.URL+again.where).want(t, 200, "pasted.txt", "1 run")
	post(t, lab.URL+again.where+"/discard", nil).want(t, 303)
	if got := tree(t, filepath.Join(state, "imports")); len(got) > 0 {
		t.Errorf("after it was discarded there is %q", got)
	}
	for range 2 { // the same name twice
		x := send(t, lab.URL+"/import", block, nil)
		post(t, lab.URL+x.where+"/keep", nil).want(t, 303)
	}
	for _, dir := range []string{"pasted", "pasted-2"} {
		if _, err := os.Stat(filepath.Join(root, "imported", dir, "import.json")); err != nil {
			t.Error(err)
		}
	}
	if got := audited(t, lab.Guard()); got != "import done, import done, discard import done, import done" {
		t.Errorf("the audit log has %s", got)
	}
}

// TestImportRefused: what is no result, too large, or more than the disk may take leaves nothing.
func TestImportRefused(t *testing.T) {
	lab, root, state := serve(t, nil)
	a := send(t, lab.URL+"/import", "hello", nil)
	get(t, lab.URL+a.where).want(t, 200, "No run was read", "0 runs", "!/keep\"")
	post(t, lab.URL+a.where+"/keep", nil).want(t, 409, "nothing to keep")
	post(t, lab.URL+a.where+"/discard", nil).want(t, 303)
	get(t, lab.URL+"/import/../../etc").want(t, 307)
	get(t, lab.URL+"/import/"+strings.Repeat("0", 32)).want(t, 404)
	ask(t, "POST", lab.URL+"/import", "text/plain", strings.NewReader("x")).want(t, 400, "by the form")
	many := map[string]string{}
	for i := range 101 {
		many[strings.Repeat("x", i+1)] = "y"
	}
	send(t, lab.URL+"/import", "", many).want(t, 400, "more than 100 files")
	full, _, fullState := serve(t, func(o *web.Options) { o.Reserve = 1 << 60 })
	send(t, full.URL+"/import", block, nil).want(t, 507, "would not fit")
	for _, dir := range []string{filepath.Join(root, "imported"), filepath.Join(state, "imports"), filepath.Join(fullState, "imports")} {
		if got := tree(t, dir); len(got) > 0 {
			t.Errorf("%s has %q", dir, got)
		}
	}
	closed, _, _ := serve(t, func(o *web.Options) { o.ReadOnly = true })
	get(t, closed.URL+"/import").want(t, 200, "only shows", "disabled")
	send(t, closed.URL+"/import", block, nil).want(t, 409, "only shows")
}

// TestRoles: who may only read imports and publishes nothing.
func TestRoles(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(guard.TokenLine("reader", guard.Read, token)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lab, _, _ := serve(t, func(o *web.Options) { o.Guard.Tokens = path })
	for address, status := range map[string]int{"GET /sites": 200, "GET /import": 403, "POST /import": 403, "POST /sites": 403, "POST /import/x/keep": 403} {
		method, rest, _ := strings.Cut(address, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, lab.URL+rest, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != status || strings.Contains(string(b), `action="/sites"`) {
			t.Errorf("%s: %d, want %d", address, resp.StatusCode, status)
		}
	}
}

// run makes a run below a root, and gives its ID.
func run(t *testing.T, lab *webtest.Lab, root, name string) string {
	t.Helper()
	dir := storetest.Run{N: len(name)}.Write(t, root, name)
	if _, err := lab.Store().Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := lab.Store().Get(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return e.ID
}

var viewed = regexp.MustCompile(`/sites/view/[0-9a-f]{16}/`)

func TestSites(t *testing.T) {
	lab, root, _ := serve(t, nil)
	get(t, lab.URL+"/sites").want(t, 200, "Nothing is published yet", "nothing to publish yet")
	id := run(t, lab, root, "one")
	get(t, lab.URL+"/sites?ids="+id).want(t, 200, `value="`+id+`" checked`, "one")
	get(t, lab.URL+"/sites?id=none").want(t, 404, "no entry none")
	post(t, lab.URL+"/sites", url.Values{"title": {"Mine"}}).want(t, 422, "tick what is to be published")
	post(t, lab.URL+"/sites", url.Values{"id": {id}, "name": {"../.."}}).want(t, 422, "give the site a name")
	post(t, lab.URL+"/sites", url.Values{"id": {id}, "name": {"x"}, "url": {"javascript:alert(1)"}}).want(t, 422, "no address")
	form := url.Values{"id": {id}, "title": {"<script>alert(1)</script>"}, "name": {"First site"}}
	post(t, lab.URL+"/sites", form).want(t, 303)
	dir := filepath.Join(root, "sites", "first-site")
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
		t.Fatal(err)
	}
	list := get(t, lab.URL+"/sites")
	list.want(t, 200, "first-site", "!Nothing is published yet", "!<script>alert")
	at := viewed.FindString(list.body)
	index := get(t, lab.URL+at)
	index.want(t, 200, "&lt;script&gt;", "!<script>alert")
	if csp := index.header.Get("Content-Security-Policy"); !strings.Contains(csp, "sandbox") || !strings.Contains(csp, "form-action 'none'") || strings.Contains(csp, "script-src 'unsafe-inline'") {
		t.Errorf("its policy is %s", csp)
	}
	get(t, lab.URL+at+"search.js").want(t, 200, "window.perflabIndex=[[")
	get(t, lab.URL+at+"none.html").want(t, 404, "no page none.html")
	get(t, lab.URL+"/sites/view/0000000000000000/").want(t, 404, "no such site")
	hostile(t, lab, dir, at)
	downloads(t, lab, at)
	post(t, lab.URL+"/sites", form).want(t, 303) // written anew
	busy := filepath.Join(root, "sites", "busy")
	if err := os.MkdirAll(busy, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(busy, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	post(t, lab.URL+"/sites", url.Values{"id": {id}, "name": {"busy"}}).want(t, 409, "is not empty")
	if got := audited(t, lab.Guard()); got != "publish site failed, publish site done, publish site done" {
		t.Errorf("the audit log has %s", got)
	}
}

// hostile: a site that somebody changed runs nothing of theirs, and shows nothing from elsewhere.
func hostile(t *testing.T, lab *webtest.Lab, dir, at string) {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "search.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"alert(1)", "window.perflabIndex=[];alert(1);\n", "window.perflabIndex=[[\"a\",\"b\",\"c\"]],alert(1);\n", "window.perflabIndex=[[\"a\",\"b\",alert(1)]];\n"} {
		if err := os.WriteFile(filepath.Join(dir, "search.js"), []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		get(t, lab.URL+at+"search.js").want(t, 404, "!alert")
	}
	if err := os.Remove(filepath.Join(dir, "search.js")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "search.js")); err == nil {
		if a := get(t, lab.URL+at+"search.js"); strings.Contains(a.body, "root:") {
			t.Errorf("a link out of the site is followed: %s", a.body)
		}
		os.Remove(filepath.Join(dir, "search.js"))
	}
	if err := os.WriteFile(filepath.Join(dir, "search.js"), index, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more.html"), []byte("more"), 0o644); err != nil {
		t.Fatal(err)
	}
	get(t, lab.URL+at+"more.html").want(t, 404)
	get(t, lab.URL+at+"..%2f..%2fone%2fheader.json").want(t, 404)
}

// downloads: both forms hold the files of the manifest, and no more.
func downloads(t *testing.T, lab *webtest.Lab, at string) {
	t.Helper()
	from := lab.URL + strings.TrimSuffix(strings.Replace(at, "/view/", "/download/", 1), "/")
	get(t, from+"?as=rar").want(t, 400, "zip or as tar.gz")
	z := get(t, from+"?as=zip")
	r, err := zip.NewReader(strings.NewReader(z.body), int64(len(z.body)))
	if err != nil {
		t.Fatal(err)
	}
	var zipped, tarred []string
	for _, f := range r.File {
		zipped = append(zipped, f.Name)
	}
	g, err := gzip.NewReader(strings.NewReader(get(t, from+"?as=tar.gz").body))
	if err != nil {
		t.Fatal(err)
	}
	for x := tar.NewReader(g); ; {
		h, err := x.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		tarred = append(tarred, h.Name)
	}
	if !slices.Equal(zipped, tarred) || !slices.Contains(zipped, "first-site/index.html") || !slices.Contains(zipped, "first-site/site.json") || slices.Contains(zipped, "first-site/more.html") {
		t.Errorf("zip has %q, tar.gz %q", zipped, tarred)
	}
	if d := z.header.Get("Content-Disposition"); d != `attachment; filename=first-site.zip` {
		t.Errorf("it is saved as %s", d)
	}
}
