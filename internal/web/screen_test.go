package web_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"perflab/internal/store"
	"perflab/internal/test/browser"
	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

// ready says that the scripts of a page have begun.
const ready = `"ready" in document.documentElement.dataset`

// absent are screens that the navigation has and that need not be there yet.
var absent = map[string]bool{}

// screensOf are the addresses of the screens that a laboratory has; a screen of the navigation without a
// page fails.
func screensOf(t *testing.T, lab *webtest.Lab) []page.Screen {
	t.Helper()
	return slices.DeleteFunc(page.Screens(), func(s page.Screen) bool {
		a := send(t, request(t, http.MethodGet, lab.URL+s.Path, guard.Nobody, nil))
		if a.status == http.StatusNotFound && absent[s.Name] {
			t.Logf("%s is not there yet", s.Path)
			return true
		}
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", s.Path, a.status)
		}
		return false
	})
}

// TestEveryScreen looks at each screen of the navigation in a browser, and at the pages of a run and a
// study: empty, with some results, with texts that somebody chose to break something with. It fails by
// errors of the console, by dialogs, and by what can be seen to be wrong.
func TestEveryScreen(t *testing.T) {
	b := browser.Start(t)
	for name, fill := range map[string]func(root string){
		"empty":   func(string) {},
		"data":    func(root string) { storetest.Many(t, root, 70, 3) },
		"hostile": func(root string) { webtest.Hostile(t, root) },
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			fill(root)
			lab := webtest.Open(t, web.Options{Roots: []string{root}, Guard: guard.Options{Limits: fast}})
			if name == "hostile" {
				lab.HostileMarks(t)
			}
			paths := map[string]string{}
			for _, s := range screensOf(t, lab) {
				paths[s.Name] = s.Path
			}
			for _, e := range storetest.List(t, lab.Store(), store.Query{Limit: store.MostPage}).Entries {
				switch string(e.Kind) {
				case "run":
					paths["run"] = "/run/" + e.ID
				case "study":
					paths["study"] = "/study/" + e.ID
				}
			}
			for screen, path := range paths {
				p := b.Open(t, lab.URL+path, browser.View{Width: 1024, Dark: name == "hostile"})
				p.Wait(ready)
				p.Frame()
				p.Sound()
				p.Picture("every-" + screen + "-" + name)
				walked(t, p, screen+" "+name)
				second(t, lab, path)
			}
		})
	}
}

// walked presses Tab until the focus is where it began, and fails by controls that it does not reach.
func walked(t *testing.T, p *browser.Page, at string) {
	t.Helper()
	const controls = `[...document.querySelectorAll("a[href],button,input,select,textarea,summary,[tabindex='0']")].filter((e) => !e.disabled && e.tabIndex >= 0 && e.checkVisibility({visibilityProperty: true}) && !(e.type === "radio" && !e.checked))`
	total := browser.Eval[int](p, `(() => {
		document.activeElement?.blur();
		window.toReach = new Set(`+controls+`);
		document.addEventListener("focusin", (e) => window.toReach.delete(e.target));
		return window.toReach.size })()`)
	if total == 0 {
		t.Errorf("%s has no control", at)
	}
	presses := min(total+20, 120) // a page of many rows has the same in each
	for range presses {
		p.Press("Tab")
	}
	left := browser.Eval[[]string](p, `[...window.toReach].filter((e) => e.isConnected && e.checkVisibility({visibilityProperty: true})).map((e) => e.outerHTML.slice(0, 120))`)
	if presses < 120 && len(left) > 0 {
		t.Errorf("%s: Tab does not reach %d of %d controls: %q", at, len(left), total, left[:min(3, len(left))])
	}
}

// second asks for a page for the second time, as the server sees it: it fails where that is far from the
// 100 ms that a page may take on a machine with nothing else to do.
func second(t *testing.T, lab *webtest.Lab, path string) {
	t.Helper()
	var best time.Duration
	for n := range 4 {
		began := time.Now()
		a := send(t, request(t, http.MethodGet, lab.URL+path, guard.Nobody, nil))
		if took := time.Since(began); n > 0 && (n == 1 || took < best) {
			best = took
		}
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	t.Logf("%-40s %v", path, best.Round(100*time.Microsecond))
	if best > 5*time.Second {
		t.Errorf("%s takes %v", path, best)
	}
}

// TestKeyboard goes through the laboratory by keys alone: to screens, to the search and the keys, along
// rows, into one.
func TestKeyboard(t *testing.T) {
	b := browser.Start(t)
	root := t.TempDir()
	storetest.Many(t, root, 6, 2)
	lab := webtest.Open(t, web.Options{Roots: []string{root}, Guard: guard.Options{Limits: fast}})
	p := b.Open(t, lab.URL+"/runs", browser.View{})
	p.Wait(ready)
	for _, s := range screensOf(t, lab) {
		p.Press("g", s.Key)
		p.Wait(fmt.Sprintf(`location.pathname === %q && %s`, s.Path, ready))
	}
	p.Press("g", "s")
	p.Wait(`location.pathname === "/studies" && ` + ready)
	p.Press("?")
	p.Wait(`document.querySelector("dialog[open]")`)
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog[open]")`)
	p.Press("/")
	p.Wait(`document.activeElement?.matches("input") && document.activeElement.checkVisibility()`)
	p.Press("Escape")
	p.Wait(`!document.querySelector("dialog[open]")`)
	browser.Eval[bool](p, `(document.activeElement?.blur(), true)`)
	p.Press("g", "r")
	p.Wait(`location.pathname === "/runs" && ` + ready)
	p.Press("j", "x", "j", "x", "k")
	p.Wait(`document.querySelectorAll("tbody input[type=checkbox]:checked").length === 2`)
	p.Press("Enter")
	p.Wait(`location.pathname !== "/runs" && ` + ready)
}
