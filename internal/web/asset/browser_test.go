package asset

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"perflab/internal/test/browser"
)

// TestPagesInABrowser looks at every page of the gallery in every view.
func TestPagesInABrowser(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	for name, path := range map[string]string{"gallery": "/", "editor": "/editor"} {
		b.Visit(t, name, g.URL+path)
	}
}

// TestFiguresInABrowser looks at plots of every kind. The page asks for one that is not there, which the browser notes.
func TestFiguresInABrowser(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/figures", browser.View{})
	p.Wait(`document.documentElement.dataset.ready === ""`)
	p.Expect("figure-missing.json")
	p.Expect("404")
	for _, v := range append(browser.Views(), browser.View{Forced: true}, browser.View{Print: true}) {
		p.Look(v)
		p.Frame()
		p.Frame()
		p.Sound()
		p.Picture("figures")
	}
	browser.Eval[bool](p, `document.querySelectorAll("details, .chart-tools [aria-controls]").forEach((d) => (d.tagName === "DETAILS" ? d.open = true : d.click())), true`)
	for _, v := range []browser.View{{Width: 390}, {Dark: true}} {
		p.Look(v)
		p.Frame()
		p.Accessible()
	}
	p.Picture("figures-open")
	if got := p.Text(`figure[data-chart="/figure-missing.json"] .note`); !strings.Contains(got, "404") {
		t.Errorf("a plot that is not there says %q", got)
	}
	plain := b.Open(t, g.URL+"/figures", browser.View{Width: 390, Scriptless: true})
	if got := plain.Text("main"); !strings.Contains(got, "What it shows, in words: P99 TTFT of the nightly build") {
		t.Errorf("without JavaScript a figure says %q", got)
	}
}

// ready waits until the scripts of a page have started.
const ready = `document.documentElement.dataset.ready === ""`

// TestPlotsByKeyboard reads plots without seeing them: points and series are said, the table has the data.
func TestPlotsByKeyboard(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/figures", browser.View{})
	p.Wait(ready)
	p.Expect("404")
	heard := func(name string) string {
		return browser.Eval[string](p, `document.querySelector('[data-name="`+name+`"] [aria-live=polite]').textContent`)
	}
	focus := func(name string) {
		browser.Eval[bool](p, `document.querySelector('[data-name="`+name+`"] .chart-plot').focus(), true`)
	}
	steps := []struct {
		plot string
		keys []string
		says string
	}{
		{"ttft", []string{"ArrowRight", "End"}, "baseline: 100 % of the calls at most 1,279 ms (512 of 512)"},
		{"ttft", []string{"ArrowDown", "ArrowDown", "ArrowDown", "Home"}, "three calls: 33 % of the calls at most 20 ms (1 of 3)"},
		{"rate", []string{"Home"}, "output: 0 tok/s at 0 s (1 of 600)"},
		{"history", []string{"End"}, "build 39, 2026-03-12 03:00 UTC, 118 ms [115, 122], 3 launches, sound (40 of 40)"},
		{"history", []string{"Home", "PageDown", "PageDown", "PageDown", "PageDown", "ArrowRight"}, "build 9, 2026-02-10 03:00 UTC, –, 3 launches"},
		{"front", []string{"Home"}, "H100 vLLM: 256 in flight, 26.58 tok/s [25.78, 27.11], 4,947 tok/s [4,700, 5,145], on the front (1 of 9)"},
		{"front", []string{"ArrowDown"}, "H100 SGLang: 256 in flight, 22.58 tok/s [21.9, 23.03], 5,689 tok/s [5,405, 5,917], void (1 of 9)"},
	}
	for _, s := range steps {
		focus(s.plot)
		if s.plot != "front" || s.keys[0] == "Home" {
			p.Press("Escape")
		}
		p.Press(s.keys...)
		if got := heard(s.plot); !strings.Contains(got, s.says) {
			t.Errorf("%s, keys %q: %q, want %q", s.plot, s.keys, got, s.says)
		}
	}
	if got := browser.Eval[string](p, `document.querySelector('[data-name="ttft"] .chart-plot').getAttribute("aria-label")`); !strings.HasPrefix(got, "Simulated. Plot: TTFT. TTFT (ms) across") {
		t.Errorf("the plot is named %q", got)
	}
	browser.Eval[bool](p, `document.querySelector('[data-name="ttft"] [aria-controls]').click(), true`)
	p.Wait(`document.querySelector("#chart-ttft-rows .pager").textContent.includes("1 to 25 of 103")`)
	p.Click("#chart-ttft-rows .pager button:last-child")
	if got := p.Text("#chart-ttft-rows tbody tr"); got != "25\t23.15\t20.02\t20" {
		t.Errorf("the 26th row of the table is %q", got)
	}
}

// TestWhatIsChosenIsInTheAddress: a link shows what its sender saw.
func TestWhatIsChosenIsInTheAddress(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/figures", browser.View{})
	p.Wait(ready)
	p.Expect("404")
	in := func(name string) string { return `document.querySelector('[data-name="` + name + `"] ` }
	do := func(script string) { browser.Eval[bool](p, script+", true") }
	query := func() string {
		return browser.Eval[string](p, `decodeURIComponent(location.search.replaceAll("+", " "))`)
	}
	if got := query(); got != "" {
		t.Errorf("before anything is chosen the address has %q", got)
	}
	do(in("rate") + `.chart-plot').focus()`)
	p.Press("Home", "+")
	do(in("ttft") + `[aria-pressed]').click()`)
	do(in("ttft") + `input[type=checkbox]').click()`)
	do(`(s => { s.value = "ttft"; s.dispatchEvent(new Event("change")) })(` + in("front") + `select'))`)
	do(`document.querySelectorAll('[data-name="front"] [aria-pressed]')[1].click()`)
	got := query()
	for _, want := range []string{"clock-run-1.zoom=0,149.75", "ttft.hide=baseline", "ttft.log=0", "front.x=ttft", "front.show=H100~H200"} {
		if !strings.Contains(got, want) {
			t.Errorf("the address has %q, without %q", got, want)
		}
	}
	zoomed := `[...document.querySelectorAll('[data-name="rate"], [data-name="queue"]')].every((f) => !f.querySelector(".end > button").hidden)`
	if !browser.Eval[bool](p, zoomed) {
		t.Error("the plots of one clock are not zoomed together")
	}

	again := b.Open(t, g.URL+"/figures"+browser.Eval[string](p, "location.search"), browser.View{})
	again.Wait(ready)
	again.Expect("404")
	state := browser.Eval[string](again, `JSON.stringify([
		`+in("ttft")+`[aria-pressed]').ariaPressed, `+in("ttft")+`input').checked, `+in("front")+`select').value,
		[...document.querySelectorAll('[data-name="front"] [aria-pressed]')].map((b) => b.ariaPressed), `+zoomed+`])`)
	if state != `["false",false,"ttft",["true","true"],true]` {
		t.Errorf("the address shows %s", state)
	}
	if n := browser.Eval[int](again, `document.querySelectorAll('[data-name="front"] path.front').length`); n != 3 {
		t.Errorf("there are %d fronts", n)
	}
}

// TestPlotsTogether: plots of one clock have one pointer, and one from a URL is drawn anew as it was looked at.
func TestPlotsTogether(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/figures", browser.View{})
	p.Wait(ready)
	p.Expect("404")
	browser.Eval[bool](p, `document.querySelector('[data-name="rate"] .chart-plot').focus(), true`)
	p.Press("End", "PageUp")
	p.Wait(`document.querySelector('[data-name="queue"] .chart-say').textContent.startsWith("569 s: output ")`)
	browser.Eval[bool](p, `document.querySelectorAll('[data-name="from-url"] [aria-pressed]')[2].click(), document.querySelector('[data-name="from-url"] [aria-controls]').click(), document.querySelector('[data-name="from-url"]').dispatchEvent(new CustomEvent("chart-reload")), true`)
	p.Wait(`document.querySelector('[data-name="from-url"] .chart-plot').getAttribute("aria-label").includes("drawn 2 times")`)
	if got := browser.Eval[string](p, `[...document.querySelectorAll('[data-name="from-url"] [aria-pressed]')].map((b) => b.ariaPressed) + " " + document.querySelectorAll("#chart-from-url-rows th").length`); got != "true,true,false 3" {
		t.Errorf("drawn anew it shows %q", got)
	}
	p.Sound()
}

// TestFrontsAreSteps: a front never lies above a point that was measured; an interpolated one would.
func TestFrontsAreSteps(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/figures", browser.View{})
	p.Wait(ready)
	p.Expect("404")
	path := browser.Eval[string](p, `document.querySelector('[data-name="front"] path.front').getAttribute("d")`)
	points := strings.FieldsFunc(path, func(r rune) bool { return r == 'M' || r == 'L' })
	if len(points) != 15 { // eight launches on the front, a corner between each two
		t.Fatalf("the front has %d corners: %s", len(points), path)
	}
	for i := 1; i < len(points); i++ {
		x0, y0, _ := strings.Cut(points[i-1], " ")
		x1, y1, _ := strings.Cut(points[i], " ")
		if x0 != x1 && y0 != y1 {
			t.Errorf("the front goes aslant from %s to %s", points[i-1], points[i])
		}
	}
	for kind, want := range map[string]string{
		`"higher", "higher"`: "[[1,9],[5,5],[9,1]]",
		`"lower", "higher"`:  "[[1,9]]",
		`"lower", "lower"`:   "[[1,9],[4,4],[9,1]]",
		`"higher", "lower"`:  "[[9,1]]",
	} {
		got := browser.Eval[string](p, `import("`+Path("pareto.js")+`").then((m) => JSON.stringify(m.front([[1,9],[5,5],[4,4],[9,1],[1,9]].map(([x, y]) => ({x: {value: x}, y: {value: y}})), `+kind+`).map((p) => [p.x.value, p.y.value])))`)
		if got != want {
			t.Errorf("better %s: the front is %s, want %s", kind, got, want)
		}
	}
}

// TestKeptFiles: what is kept of a plot is what is seen, and says what is simulated.
func TestKeptFiles(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/figures", browser.View{})
	p.Wait(ready)
	p.Expect("404")
	browser.Eval[bool](p, `window.kept = [], URL.createObjectURL = ((make) => (blob) => { window.kept.push(blob); return make.call(URL, blob); })(URL.createObjectURL), HTMLAnchorElement.prototype.click = function () { this.dataset.clicked = this.download; }, true`)
	keep := func(plot, kind string) {
		browser.Eval[bool](p, `window.kept.length = 0, [...document.querySelectorAll('[data-name="`+plot+`"] .menu button')].find((b) => b.textContent === "`+kind+`").click(), true`)
		p.Wait(`window.kept.some((b) => b.type !== "image/svg+xml" || "` + kind + `" === "SVG")`)
	}
	text := func() string { return browser.Eval[string](p, `window.kept.at(-1).text()`) }
	keep("ttft", "CSV")
	if got := text(); !strings.HasPrefix(got, "Percentile,baseline (ms),\"FP8 </script>") || strings.Count(got, "\n") != 104 {
		t.Errorf("the CSV is %.200q", got)
	}
	keep("history", "CSV")
	if got := text(); !strings.Contains(got, "2026-02-10 03:00,,,,3,sound,build 9\n") {
		t.Errorf("a missing figure is not empty in %q", got)
	}
	keep("front", "SVG")
	if got := text(); !strings.HasPrefix(got, `<svg xmlns="http://www.w3.org/2000/svg"`) || !strings.Contains(got, "<title>Throughput per GPU") || strings.Contains(got, "var(--") {
		t.Errorf("the SVG is %.300q", got)
	}
	for _, plot := range []string{"ttft", "front", "history"} {
		keep(plot, "PNG")
		if size := browser.Eval[string](p, `createImageBitmap(window.kept.at(-1)).then((i) => i.width > 500 && i.height > 300 ? "" : i.width + " x " + i.height)`); size != "" {
			t.Errorf("the PNG of %s is %s", plot, size)
		}
	}
}

// TestListByKeyboard goes through a list without a mouse, ticks, compares, and finds.
func TestListByKeyboard(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/", browser.View{})
	p.Wait(ready)
	p.Press("j", "j", "j", "j", "x", "k", "x")
	if got := browser.Eval[string](p, `[...document.querySelectorAll("tr.ticked")].map((r) => r.querySelector("input").value).join() + " " + document.activeElement.querySelector("input").value`); got != "2,3 2" {
		t.Errorf("ticked and at hand are %q", got)
	}
	if got := p.Text(".bar-compare"); !strings.HasPrefix(got, "Compare 2") {
		t.Errorf("the bar says %q", got)
	}
	p.Do(chromedp.Reload())
	p.Wait(ready + ` && document.querySelectorAll("tr.ticked").length === 2`)
	p.Press("?")
	if got := p.Text("dialog[open]"); !strings.Contains(got, "Compare what is ticked") || !strings.Contains(got, "Next and previous row") || !strings.Contains(got, "New study") {
		t.Errorf("the keys are %q", got)
	}
	p.Accessible()
	p.Picture("keys")
	p.Press("Escape", "c")
	p.Wait(`location.pathname === "/compare" && document.readyState === "complete"`)
	if got := browser.Eval[string](p, "location.search"); got != "?run=3&run=2" {
		t.Errorf("compared are %q", got)
	}
	p.Wait(ready)
	p.Expect("404")
	p.Press("g", "r")
	p.Wait(`location.pathname === "/" && ` + ready)
	p.Press("Control+k")
	p.Type(".palette input", "qwen")
	p.Wait(`document.querySelectorAll(".palette [role=option]").length === 2`)
	if got := p.Text(".palette"); !strings.Contains(got, "run of qwen "+hostile) {
		t.Errorf("the palette has %q", got)
	}
	p.Accessible()
	p.Picture("palette")
	p.Press("ArrowDown", "Enter") // of another server: nowhere
	p.Press("ArrowUp", "Enter")
	p.Wait(`location.pathname === "/runs/7" && ` + ready)
	p.Expect("404")
}

// TestColumnsAndExport: columns that are left out are in the address and not in what is exported.
func TestColumnsAndExport(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/", browser.View{})
	p.Wait(ready)
	p.Click("text=Columns")
	p.Picture("columns")
	p.Click("text=Verdict")
	p.Press("Escape")
	p.Wait(`location.search === "?columns=name%2Cp99_ttft_ms%2Coutput%2Cage" && !document.querySelector("td:nth-child(3)").checkVisibility()`)
	browser.Eval[bool](p, `window.kept = [], URL.createObjectURL = ((make) => (blob) => { window.kept.push(blob); return make.call(URL, blob); })(URL.createObjectURL), HTMLAnchorElement.prototype.click = () => {}, true`)
	text := func(kind string) string {
		browser.Eval[bool](p, `[...document.querySelectorAll(".table-tools button")].find((b) => b.textContent === "`+kind+`").click(), true`)
		return browser.Eval[string](p, `window.kept.at(-1).text()`)
	}
	if got := text("CSV"); !strings.HasPrefix(got, "Tick,Run,P99 TTFT (ms),Output (tok/s),Age\n") || !strings.Contains(got, `"'=HYPERLINK(1) </script>`) {
		t.Errorf("the CSV is %.400q", got)
	}
	var rows []map[string]any
	if err := json.Unmarshal([]byte(text("JSON")), &rows); err != nil || len(rows) != 40 || rows[1]["P99 TTFT (ms)"] != 110.7 || rows[1]["Verdict"] != nil {
		t.Errorf("the JSON is %v of %d rows, %v", rows[1], len(rows), err)
	}
	if got := text("Markdown"); !strings.Contains(got, "&lt;/script>&lt;script>") || !strings.Contains(got, "| --- |") {
		t.Errorf("the Markdown is %.400q", got)
	}
	p.Do(chromedp.Navigate(g.URL + "/")) // remembered
	p.Wait(ready + ` && !document.querySelector("td:nth-child(3)").checkVisibility()`)
}

// TestEditor shows what is wrong where it is wrong, completes, and leaves a plain form to those without JavaScript.
func TestEditor(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/editor", browser.View{})
	p.Wait(ready + ` && document.querySelector(".editor-wrong li")`)
	if got := p.Text(".editor-wrong"); !strings.Contains(got, "Line 2 there is no strategy hope") || !strings.Contains(got, hostile) {
		t.Errorf("what is wrong is %q", got)
	}
	if got := p.Text(".numbers .wrong"); got != "2" {
		t.Errorf("marked is line %q", got)
	}
	p.Picture("editor-wrong")
	p.Click("text=Line 2")
	if got := browser.Eval[int](p, `document.activeElement.selectionStart`); got != len("name: first\nstrategy: ") {
		t.Errorf("the cursor is at %d", got)
	}
	browser.Eval[bool](p, `document.activeElement.setSelectionRange(22, 26), true`)
	p.Press("r")
	p.Wait(`document.querySelectorAll(".complete:not([hidden]) [role=option]").length === 2`)
	p.Accessible()
	p.Picture("complete")
	p.Press("Enter")
	p.Wait(`document.querySelector("[data-editor]").value.startsWith("name: first\nstrategy: race\nworkloads")`)
	p.Wait(`document.querySelector(".editor-box + p").textContent === "The file is right." && !document.querySelector(".numbers .wrong")`)
	browser.Eval[bool](p, `document.activeElement.setSelectionRange(1000, 1000), true`)
	p.Press("Backspace", "Enter") // a new line begins where the last one did
	p.Wait(`document.querySelector("[data-editor]").value.endsWith("random}\n  ")`)
	plain := b.Open(t, g.URL+"/editor", browser.View{Scriptless: true})
	if got := browser.Eval[bool](plain, `!!document.querySelector("form > label > textarea[name=study]") && !document.querySelector(".editor")`); !got {
		t.Error("without JavaScript there is no plain form")
	}
}

// state is what the live mark says of itself.
const state = `document.querySelector("[data-live-state]").dataset.state`

// TestLive follows a stream that is paused, breaks, is not looked at and ends.
func TestLive(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/live", browser.View{})
	p.Wait(ready + ` && ` + state + ` === "open"`)
	g.events <- "id: 1\nevent: set\ndata: {\"best\": \"2,345 tok/s <b>\", \"spent\": 0.4}"
	p.Wait(`document.querySelector("[data-live=best]").textContent === "2,345 tok/s <b>" && document.querySelector("progress").value === 0.4`)
	g.events <- `event: append` + "\n" + `data: {"log": "engine", "lines": ["1 <script>", "2", "3", "4", "5", "6", "7"]}`
	p.Wait(`document.querySelector("[data-live-log]").textContent === "3\n4\n5\n6\n7\n"`)
	p.Picture("live")

	p.Click("text=Pause")
	g.events <- "id: 2\nevent: set\ndata: {\"best\": \"later\"}"
	g.events <- "" // the stream breaks, after what is held
	p.Wait(state + ` === "retry"`)
	if got := p.Text("[data-live=best]"); got != "2,345 tok/s <b>" {
		t.Errorf("while it is paused the page says %q", got)
	}
	p.Wait(state + ` === "paused"`) // it has connected again
	if got := g.last.Load(); got != "2" {
		t.Errorf("it went on after the event %q", got)
	}
	p.Click("text=Go on")
	p.Wait(state + ` === "open" && document.querySelector("[data-live=best]").textContent === "later"`)

	browser.Eval[bool](p, `window.away = true, Object.defineProperty(document, "hidden", { get: () => window.away }), document.dispatchEvent(new Event("visibilitychange")), true`)
	p.Wait(state + ` === "ended"`)
	browser.Eval[bool](p, `window.away = false, document.dispatchEvent(new Event("visibilitychange")), true`)
	p.Wait(state + ` === "open"`)
	browser.Eval[bool](p, `window.bare = 0, new MutationObserver(() => { if (!document.querySelector("#part .copy")) window.bare++; }).observe(document.querySelector("#part"), { childList: true }), true`)
	g.events <- "event: reload\ndata: {}"
	p.Wait(`document.querySelector("#part p").textContent === "drawn 3 times"`)
	if got := browser.Eval[int](p, "window.bare"); got != 0 {
		t.Errorf("a part that was drawn anew was %d times without what the script adds", got)
	}
	g.events <- `event: end` + "\n" + `data: {"text": "the study has ended"}`
	p.Wait(`document.querySelector("[data-live-state]").textContent === "the study has ended"`)
	browser.Eval[bool](p, `document.dispatchEvent(new Event("visibilitychange")), true`)
	p.Frame()
	if got := g.asked.Load(); got != 3 {
		t.Errorf("the stream was asked for %d times", got)
	}
}

// TestStale says that what is shown may be old when nothing comes.
func TestStale(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/live?stale=0.05", browser.View{})
	p.Wait(ready + ` && ` + state + ` === "stale" && document.querySelector("main.is-stale")`)
	if got := p.Text("[data-live-state]"); !strings.Contains(got, "what is shown may be old") {
		t.Errorf("it says %q", got)
	}
	p.Accessible()
	p.Picture("live-stale")
}

// TestPlotsByPointer: a drag zooms, two clicks show all again, a click on a point opens it.
func TestPlotsByPointer(t *testing.T) {
	b, g := browser.Start(t), openGallery(t)
	p := b.Open(t, g.URL+"/figures", browser.View{})
	p.Wait(ready)
	p.Expect("404")
	// at is a place on a plot, by shares of its width and height, in the window.
	at := func(name string, x, y float64) (float64, float64) {
		place := browser.Eval[[]float64](p, fmt.Sprintf(`(() => { const e = document.querySelector('[data-name=%q] :is(.u-over, .chart-plot svg)'); e.scrollIntoView({block: "center", behavior: "instant"}); const r = e.getBoundingClientRect(); return [r.left + r.width * %g, r.top + r.height * %g]; })()`, name, x, y))
		return place[0], place[1]
	}
	for _, name := range []string{"rate", "front"} {
		x0, y0 := at(name, 0.4, 0.2)
		x1, y1 := at(name, 0.7, 0.8)
		p.Do(chromedp.DragAndDropXY(x0, y0, x1, y1))
		p.Wait(`location.search.includes("zoom=") && !document.querySelector('[data-name="` + name + `"] .end > button').hidden`)
		x, y := at(name, 0.5, 0.5)
		p.Do(chromedp.MouseClickXY(x, y, chromedp.ClickCount(2)))
		p.Wait(`!location.search.includes("zoom=")`)
	}
	at("front", 0, 0)
	place := browser.Eval[[]float64](p, `(() => { const r = document.querySelector('[data-name="front"] svg g path[transform]').getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]; })()`)
	x, y := place[0], place[1]
	p.Do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	p.Wait(`document.querySelector('[data-name="front"] .chart-say').textContent.startsWith("H100 vLLM: 256 in flight")`)
	p.Do(chromedp.MouseClickXY(x, y))
	p.Wait(`location.pathname === "/runs/8"`)
	p.Wait(ready)
	p.Expect("404")
}
