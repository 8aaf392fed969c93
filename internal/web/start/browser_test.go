package start_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"perflab/internal/test/browser"
	"perflab/internal/web"
	"perflab/internal/web/allow"
)

// TestPages looks at the screens: empty, with launches, with hostile names, in every view, and uses
// them as a reader does.
func TestPages(t *testing.T) {
	b := browser.Start(t)
	t.Run("empty", func(t *testing.T) { b.Visit(t, "launch-empty", serve(t, nil).URL+"/launch") })
	t.Run("closed", func(t *testing.T) {
		b.Visit(t, "launch-closed", serve(t, func(o *web.Options) { o.ReadOnly = true }).URL+"/launch/study?template=quickstart")
	})
	t.Run("queue", func(t *testing.T) {
		lab := serve(t, func(o *web.Options) { o.Allow = allow.List{URLs: []string{"*"}} })
		first := post(t, lab.URL+"/launch/quickstart", nil)
		ended(t, lab.URL, first.where)
		hostile := post(t, lab.URL+"/launch/bench", url.Values{"do": {"start"}, "name": {`"><script>alert(1)</script><b onclick=alert(2)>` + strings.Repeat("wide", 30)}})
		hostile.want(t, 303)
		ended(t, lab.URL, hostile.where)
		b.Visit(t, "launch-queue", lab.URL+"/launch")
		b.Visit(t, "launch-one", lab.URL+hostile.where)
		p := b.Open(t, lab.URL+"/launch", browser.View{})
		p.Wait(`"ready" in document.documentElement.dataset`)
		p.Press("n", "b")
		p.Wait(`location.pathname === "/launch/bench"`)
	})
}

// TestPagesStudy: an editor that shows errors at their lines, completes, ranks, gives a ranking up,
// and launches, by the keyboard alone.
func TestPagesStudy(t *testing.T) {
	b := browser.Start(t)
	lab := serve(t, nil)
	b.Visit(t, "launch-study", lab.URL+"/launch/study?template=quickstart")
	p := b.Open(t, lab.URL+"/launch/study?template=quickstart", browser.View{})
	p.Wait(`document.querySelector("[role=status]").textContent === "The file is right."`)
	put := func(text string) {
		browser.Eval[bool](p, `(() => { const t = document.querySelector("textarea[data-editor]"); t.focus(); t.value = `+quoted(text)+`; t.setSelectionRange(t.value.length, t.value.length); t.dispatchEvent(new InputEvent("input", {bubbles: true})); return true })()`)
	}
	put("name: x\nbudgets: 3\n")
	p.Wait(`[...document.querySelectorAll(".editor-wrong li")].some((e) => e.textContent.includes("Line 2") && e.textContent.includes("budgets"))`)
	p.Picture("launch-study-wrong")
	put(predicted + "bench:\n  ")
	p.Press("b", "a", "c", "k")
	p.Wait(`document.querySelector(".complete:not([hidden]) [role=option]")?.textContent.startsWith("backend: ")`)
	p.Picture("launch-study-complete")
	p.Press("Enter")
	p.Wait(`document.querySelector("textarea[data-editor]").value.endsWith("bench:\n  backend: ")`)
	p.Type("textarea[data-editor]", "openai-chat")
	p.Press("Escape")
	p.Wait(`document.querySelector(".editor-box ~ [role=status]").textContent === "The file is right."`)
	p.Click("text=Check and rank")
	p.Wait(`document.querySelector("[data-study-checked] table")`)
	p.Frame()
	p.Sound()
	p.Accessible()
	p.Picture("launch-study-ranked")
	if got := p.Text("[data-study-checked]"); !strings.Contains(got, "SIMULATED") || !strings.Contains(got, "the baseline") {
		t.Errorf("the ranking says %q", got)
	}
	p.Type("textarea[data-editor]", " ")
	p.Wait(`!document.querySelector("[data-study-checked]").children.length && document.querySelector("[data-study-state]").textContent === ""`)
	p.Do(chromedp.Focus(chromedp.CSS("button[value=start]"), chromedp.NodeVisible))
	p.Press("Enter")
	p.Wait(`location.pathname.startsWith("/launch/2") && document.querySelector("h1").textContent === "small"`)
	p.Wait(`document.querySelector("#stand").textContent.includes("exit status 4")`)
	p.Wait(`document.querySelector("[data-live-log=stderr]").textContent.includes("stand-in for perflab tune")`)
	p.Sound()
}

// quoted is a text as JavaScript has it.
func quoted(text string) string {
	return `decodeURIComponent("` + url.PathEscape(text) + `")`
}

// TestPagesBench: a form whose command grows as it is filled in, with what is wrong at its input.
func TestPagesBench(t *testing.T) {
	b := browser.Start(t)
	lab := serve(t, nil)
	b.Visit(t, "launch-bench", lab.URL+"/launch/bench")
	p := b.Open(t, lab.URL+"/launch/bench", browser.View{})
	p.Wait(`"ready" in document.documentElement.dataset`)
	p.Type("#in-num-prompts", "20x")
	p.Wait(`document.querySelector("[data-bench-command]").textContent.includes("--num-prompts 20x")`)
	p.Wait(`document.querySelector("[data-wrong=num-prompts]").textContent.includes("whole number") && !document.querySelector("[data-wrong=num-prompts]").hidden`)
	p.Frame()
	p.Accessible()
	p.Picture("launch-bench-wrong")
	p.Type("#in-num-prompts", "\b")
	p.Wait(`document.querySelector("[data-bench-rest]").textContent.includes("right and allowed") && document.querySelector("[data-wrong=num-prompts]").hidden`)
	p.Click("text=Start")
	p.Wait(`location.pathname.startsWith("/launch/2")`)
	p.Wait(`document.querySelector("[data-live-log=stderr]").textContent.includes("stand-in for perflab bench")`)
}
