package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// tape takes what a page's checks fail by.
type tape struct {
	testing.TB
	said []string
}

func (r *tape) Helper()                        {}
func (r *tape) Errorf(format string, a ...any) { r.said = append(r.said, fmt.Sprintf(format, a...)) }

const goodPage = `<!doctype html><html lang="en"><title>Good</title><link rel="icon" href="data:,"><main><h1>Good</h1><button>Press</button><p id="out"></p></main>
<script src="/good.js"></script></html>`

const badPage = `<!doctype html><html lang="en"><title>Bad</title><link rel="icon" href="data:,"><main><h1>Bad</h1>
<div style="width:2000px">too wide</div><p style="color:#aaa;background:#fff">too faint</p><p id="twice"></p><p id="twice"></p><img src="http://192.0.2.1/x.png"></main>
<script>console.error("written"); alert("asked"); setTimeout(() => { throw new Error("thrown") })</script></html>`

func serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	page := func(text, kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, text)
		}
	}
	mux.HandleFunc("/good", page(goodPage, "text/html"))
	mux.HandleFunc("/good.js", page(`document.querySelector("button").onclick = () => { out.textContent = "pressed" };
addEventListener("keydown", (e) => { if (e.key === "k" && e.ctrlKey) out.textContent = "Control and k" })`, "text/javascript"))
	mux.HandleFunc("/bad", page(badPage, "text/html"))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestStepsOfAReader(t *testing.T) {
	b, address := Start(t), serve(t)
	p := b.Open(t, address+"/good", View{Width: 390, Dark: true, Still: true})
	p.Click("text=Press")
	p.Wait(`out.textContent === "pressed"`)
	p.Press("Control+k")
	if got := p.Text("#out"); got != "Control and k" {
		t.Errorf("the page says %q", got)
	}
	if !Eval[bool](p, `innerWidth === 390 && matchMedia("(prefers-color-scheme: dark)").matches && matchMedia("(prefers-reduced-motion: reduce)").matches`) {
		t.Error("the view is not what was asked for")
	}
	p.Accessible()
}

// TestWhatIsWrongIsFound: a kit that finds nothing looks like pages without faults.
func TestWhatIsWrongIsFound(t *testing.T) {
	b, address := Start(t), serve(t)
	r := &tape{TB: t}
	p := b.Open(t, address+"/bad", View{Width: 390})
	p.Wait(`document.readyState === "complete"`)
	p.Frame()
	p.t = r
	p.Sound()
	p.Accessible()
	for _, want := range []string{"scrolls sideways", "id twice", "written", "dialog: asked", "thrown", "asks for http://192.0.2.1/x.png", "axe color-contrast", "axe image-alt"} {
		if !slices.ContainsFunc(r.said, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("nothing was said of %q in:\n%s", want, strings.Join(r.said, "\n"))
		}
	}
	scriptless := b.Open(t, address+"/bad", View{Scriptless: true})
	scriptless.t = &tape{TB: t}
	if all := scriptless.wrong(); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "written") }) {
		t.Errorf("scripts ran where they are off: %q", all)
	}
}
