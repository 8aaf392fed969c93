package intake_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/test/browser"
	"perflab/internal/web"
)

// TestPagesImport: a block is pasted, looked at and kept, and hostile files are shown as text.
func TestPagesImport(t *testing.T) {
	b := browser.Start(t)
	lab, root, _ := serve(t, nil)
	b.Visit(t, "import", lab.URL+"/import")
	hostile := send(t, lab.URL+"/import", block, map[string]string{`"><script>alert(1)</script><b onclick=alert(2)>.md`: strings.ReplaceAll(block, "Qwen/Qwen3-8B", `<script>alert("model")</script>/`+strings.Repeat("wide", 40)), "empty.json": ""})
	b.Visit(t, "import-look", lab.URL+hostile.where)

	p := b.Open(t, lab.URL+"/import", browser.View{})
	p.Wait(`"ready" in document.documentElement.dataset`)
	browser.Eval[bool](p, `(() => { const t = document.querySelector("textarea[name=text]"); t.focus(); t.value = decodeURIComponent("`+url.PathEscape(block)+`"); return true })()`)
	p.Press("Tab", "Enter")
	p.Wait(`location.pathname.startsWith("/import/") && "ready" in document.documentElement.dataset`)
	p.Click("text=Keep 1 run")
	p.Wait(`location.pathname.startsWith("/run/")`)
	if _, err := os.Stat(filepath.Join(root, "imported", "pasted", "import.json")); err != nil {
		t.Error(err)
	}
	dropped(t, b, lab.URL)
}

// dropped: a file that is dropped on the page is sent at once.
func dropped(t *testing.T, b *browser.Browser, address string) {
	t.Helper()
	p := b.Open(t, address+"/import", browser.View{})
	p.Wait(`"ready" in document.documentElement.dataset`)
	browser.Eval[bool](p, `(() => { const d = new DataTransfer(); d.items.add(new File([decodeURIComponent("`+url.PathEscape(block)+`")], "dropped.md"));
		const say = (kind) => document.querySelector("h1").dispatchEvent(new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: d}));
		say("dragover");
		const over = document.querySelector(".drop").classList.contains("over");
		say("drop");
		return over })()`)
	p.Wait(`location.pathname.startsWith("/import/") && document.querySelector("main").textContent.includes("dropped.md")`)
	p.Click("text=Discard")
	p.Wait(`location.pathname === "/import"`)
}

// TestPagesSites: what is ticked is published, looked at inside of the server, and searched; what
// somebody else put into its pages runs not.
func TestPagesSites(t *testing.T) {
	b := browser.Start(t)
	lab, root, _ := serve(t, nil)
	t.Run("empty", func(t *testing.T) { b.Visit(t, "sites-empty", lab.URL+"/sites") })
	closed, _, _ := serve(t, func(o *web.Options) { o.ReadOnly = true })
	t.Run("closed", func(t *testing.T) { b.Visit(t, "sites-closed", closed.URL+"/sites") })
	run(t, lab, root, "one")
	run(t, lab, root, `two "><script>alert(1)<`+"`"+`script>`)
	post(t, lab.URL+"/sites", url.Values{"id": {run(t, lab, root, "three")}, "name": {"First"}}).want(t, 303)
	t.Run("full", func(t *testing.T) { b.Visit(t, "sites", lab.URL+"/sites") })

	p := b.Open(t, lab.URL+"/sites", browser.View{})
	p.Type("input[name=name]", "Second")
	p.Type("input[name=title]", "Second site")
	p.Click("input[type=checkbox]")
	p.Click("text=Publish")
	p.Wait(`location.hash.startsWith("#site-") && document.querySelector("main").textContent.includes("second")`)
	p.Click("text=second")
	p.Wait(`location.pathname.startsWith("/sites/view/") && !document.querySelector("form[role=search]").hidden`)
	p.Type("#q", "qwen")
	p.Wait(`document.querySelectorAll("#hits a").length > 0`)
	p.Picture("site-viewed")
	p.Sound()

	page := filepath.Join(root, "sites", "second", "index.html")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "</main>", `<p id="mark">here</p><script>document.getElementById("mark").textContent = "owned"</script><img src="x" onerror="document.getElementById('mark').textContent = 'owned'"></main>`, 1))
	if err := os.WriteFile(page, text, 0o644); err != nil {
		t.Fatal(err)
	}
	q := b.Open(t, browser.Eval[string](p, `location.href`), browser.View{})
	q.Wait(`!document.querySelector("form[role=search]").hidden`)
	if got := q.Text("#mark"); got != "here" {
		t.Errorf("a script of somebody else ran: %s", got)
	}
	q.Expect("Content Security Policy")
}
