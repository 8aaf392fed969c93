package browser

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var (
	// axe-core 4.14.1, MPL-2.0: testdata/axe.LICENSE.
	//go:embed testdata/axe.min.js
	axe string
	//go:embed look.js
	look string
)

// Visit looks at a page in every view, sees that it is sound in each, keeps pictures, reads it by
// axe-core on a phone and on a wide screen, with all details open, and looks once more without JavaScript.
func (b *Browser) Visit(t testing.TB, name, address string) {
	t.Helper()
	p := b.Open(t, address, Views()[0])
	for _, v := range Views() {
		p.Look(v)
		p.Frame()
		p.Sound()
		p.Picture(name)
	}
	Eval[bool](p, `document.querySelectorAll("details").forEach((d) => (d.open = true)), true`)
	for _, v := range []View{{Width: 390}, {Width: 1280, Dark: true}} {
		p.Look(v)
		p.Frame()
		p.Accessible()
	}
	plain := b.Open(t, address, View{Width: 390, Scriptless: true})
	for _, v := range Views() {
		if !v.Dark {
			plain.Look(v)
			plain.Sound()
		}
	}
}

// Frame waits until the page has drawn what followed from the last step.
func (p *Page) Frame() {
	p.t.Helper()
	Eval[bool](p, `new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(true))))`)
}

// Sound fails the test by what can be seen to be wrong, and by what was heard since the last time:
// errors, dialogs, requests to elsewhere.
func (p *Page) Sound() {
	p.t.Helper()
	for _, wrong := range Eval[[]string](p, fmt.Sprintf("(%s)(%t)", look, !p.view.Scriptless)) {
		p.t.Errorf("%s: %s", p.at(), wrong)
	}
	for _, wrong := range p.wrong() {
		p.t.Errorf("%s: %s", p.at(), wrong)
	}
}

// Accessible fails the test by what axe-core finds. It sets styles, which the policy of a page may
// forbid: from here on the tab's complaints of that are not the page's, and are not heard.
func (p *Page) Accessible() {
	p.t.Helper()
	p.mutex.Lock()
	p.axed = true
	p.mutex.Unlock()
	if !Eval[bool](p, "!!window.axe") {
		Eval[bool](p, axe+"\n;true")
	}
	found := Eval[[]string](p, `window.axe.run(document).then((all) => all.violations.map((v) =>
		v.id + ": " + v.nodes.length + " times, as " + v.nodes[0].html.slice(0, 160) + " " + (v.nodes[0].any[0] ?? v.nodes[0].all[0] ?? v.nodes[0].none[0] ?? {message: ""}).message))`)
	for _, wrong := range found {
		p.t.Errorf("%s: axe %s", p.at(), wrong)
	}
}

// Picture keeps a picture of the whole page in the directory that PICTURES names.
func (p *Page) Picture(name string) {
	p.t.Helper()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		p.t.Fatalf("%s: take a picture: %v", p.at(), err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+"-"+p.view.String()+".png"), picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
