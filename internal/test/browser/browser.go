// Package browser looks at pages in a real browser, Chromium without a window, as a reader would:
// three widths, light and dark, with JavaScript and without, by keyboard, and with axe-core, which finds what assistive
// technology could not use.
//
//	func TestRuns(t *testing.T) {
//		b := browser.Start(t)                   // skips where there is no Chromium
//		b.Visit(t, "runs", server.URL+"/runs")  // every view: sound, and a picture
//
//		p := b.Open(t, server.URL+"/runs", browser.View{Width: 1280})
//		p.Press("j", "j", "x")
//		p.Wait(`document.querySelectorAll("[aria-selected=true]").length === 1`)
//		p.Click("text=Compare")
//		p.Picture("runs-one-ticked")
//	}
//
// The browser is what PERFLAB_BROWSER names ("none": no browser), else the chromium-headless-shell, chromium or google-chrome of PATH.
// The first is Chromium without its user interface, which draws itself even where nobody sees it: it takes half the time.
// PICTURES=DIR keeps a picture of each view, as NAME-WIDTH-SCHEME.png.
//
// Invariants: a page that writes an error to its console (an icon that is not there is one), throws, opens a dialog or asks for anything
// of elsewhere fails its test, whatever else the test looks at. Nothing outside of this machine is ever reached.
// No step waits by the clock: it waits for what it needs, and a step that never comes ends after a minute, with what the page had.
package browser

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// patience is for a step on a machine that is busy.
const patience = time.Minute

// Browser is one Chromium, with a profile of its own. Its pages are tabs.
type Browser struct{ ctx context.Context }

// Start starts a browser, which ends with the test. It skips the test, with the reason, where there is none.
func Start(t testing.TB) *Browser {
	t.Helper()
	if raced {
		t.Skip("under the race detector no page is looked at: it finds nothing in a browser, and every page is as sound without it")
	}
	path, why := find()
	if path == "" {
		t.Skip(why)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:len(chromedp.DefaultExecAllocatorOptions):len(chromedp.DefaultExecAllocatorOptions)],
		chromedp.ExecPath(path),
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-device-scale-factor", "1"),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"),
	)
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to start otherwise
	}
	outer, end := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, stop := chromedp.NewContext(outer)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("end the browser: %v", err)
		}
		stop()
		end()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	return &Browser{ctx}
}

// find is the path of the browser, or why there is none.
func find() (path, why string) {
	name := os.Getenv("PERFLAB_BROWSER")
	if name == "none" {
		return "", "PERFLAB_BROWSER is none: no page is looked at"
	}
	names := []string{name}
	if name == "" {
		names = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}
	}
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path, ""
		}
	}
	return "", "there is no browser (" + strings.Join(names, ", ") + "): install Chromium, or name one by PERFLAB_BROWSER"
}
