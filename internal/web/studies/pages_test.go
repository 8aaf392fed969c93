package studies_test

import (
	"path/filepath"
	"testing"

	"perflab/internal/test/browser"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
)

// TestPages looks at every page as a reader would: empty, with studies, with names that are hostile.
func TestPages(t *testing.T) {
	b := browser.Start(t)
	empty := webtest.Open(t, web.Options{Roots: []string{t.TempDir()}})
	b.Visit(t, "studies-empty", empty.URL+"/studies")
	for _, x := range []struct{ name, mark string }{{"plain", ""}, {"hostile", hostile}} {
		root := t.TempDir()
		study := race(t, root, x.mark)
		storetest.Study(t, root, "done", 12, 2)
		lab := webtest.Open(t, web.Options{Roots: []string{root}})
		address := lab.URL + "/study/" + id(t, lab, study.dir)
		b.Visit(t, "studies-"+x.name, lab.URL+"/studies")
		b.Visit(t, "study-"+x.name, address)
		b.Visit(t, "trial-"+x.name, address+"/trial/3")
	}
}

// TestPagesFinished looks at a study after its end, and at one that was stopped.
func TestPagesFinished(t *testing.T) {
	b := browser.Start(t)
	root := t.TempDir()
	x := race(t, root, "")
	x.finish(t)
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	b.Visit(t, "study-finished", lab.URL+"/study/"+id(t, lab, x.dir))
	other := t.TempDir()
	y := race(t, other, "")
	y.stop(t)
	lab = webtest.Open(t, web.Options{Roots: []string{other}})
	b.Visit(t, "study-stopped", lab.URL+"/study/"+id(t, lab, y.dir))
}

// TestPagesLive follows a study from the list to its end by the keyboard, without loading a page again.
func TestPagesLive(t *testing.T) {
	b := browser.Start(t)
	root := t.TempDir()
	x := race(t, root, "")
	lab := webtest.Open(t, web.Options{Roots: []string{root}})
	p := b.Open(t, lab.URL+"/studies", browser.View{Width: 1280})
	p.Wait(`document.documentElement.hasAttribute("data-ready")`)
	p.Press("j", "Enter")
	p.Wait(`location.pathname.startsWith("/study/") && document.documentElement.hasAttribute("data-ready")`)
	p.Wait(`document.querySelector("[data-live-state]").dataset.state === "open"`)
	x.progress(t, "", 333)
	p.Wait(`document.querySelector("[data-live=load-5]").textContent.startsWith("333 of 500")`)
	add(t, filepath.Join(x.dir, "trials", "005", "logs", "replica-0.log"), "INFO a new line\n")
	p.Wait(`document.querySelector("[data-live-log]").textContent.endsWith("INFO a new line\n")`)
	p.Wait(`document.querySelector("figure[data-name=engine] canvas")`)
	p.Click("text=Pause")
	p.Wait(`document.querySelector("[data-live-state]").dataset.state === "paused"`)
	p.Click("text=Go on")
	x.finish(t)
	p.Wait(`document.querySelector("#report").textContent.includes("17 % better than the baseline")`)
	p.Wait(`document.querySelector("#report").textContent.includes("vllm serve Qwen/Qwen3-8B-FP8")`)
	p.Wait(`document.querySelector("[data-live-state]").dataset.state === "ended"`)
}
