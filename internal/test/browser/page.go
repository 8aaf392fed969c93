package browser

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// View is how a page is looked at.
type View struct {
	Width      int  // in pixels; 0: 1280
	Dark       bool // the reader's colour scheme
	Scriptless bool // JavaScript is off
	Still      bool // the reader wants no motion
	Forced     bool // the system forces its colours
	Print      bool // as on paper
}

// Views are the three widths in both schemes.
func Views() []View {
	var all []View
	for _, width := range []int{390, 768, 1280} {
		all = append(all, View{Width: width}, View{Width: width, Dark: true})
	}
	return all
}

// String names the view in errors and files.
func (v View) String() string {
	s := fmt.Sprintf("%d-%s", v.width(), pick(v.Dark, "dark", "light"))
	return s + pick(v.Scriptless, "-no-scripts", "") + pick(v.Still, "-still", "") + pick(v.Forced, "-forced", "") + pick(v.Print, "-print", "")
}

func (v View) width() int {
	if v.Width == 0 {
		return 1280
	}
	return v.Width
}

// Page is a tab. Its methods fail the test when the browser cannot do what they ask.
type Page struct {
	t   testing.TB
	ctx context.Context // of the tab, which chromedp keeps in it
	url string

	dialogs sync.WaitGroup // being dismissed

	mutex sync.Mutex
	view  View
	axed  bool     // axe-core was here
	heard []string // what is wrong by itself: errors, dialogs, requests to elsewhere
}

// Open opens a page and waits until it is loaded. The tab is closed when the test ends, which
// fails by what the page did wrong until then.
func (b *Browser) Open(t testing.TB, address string, v View) *Page {
	t.Helper()
	ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	p := &Page{t: t, ctx: ctx, url: address}
	t.Cleanup(func() {
		p.Sound()
		stop()
		p.dialogs.Wait()
	})
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatalf("open %s: %v", address, err)
	}
	ask(p, network.Enable, network.EnableParams{})
	ask(p, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: v.Scriptless})
	p.Look(v)
	p.Do(chromedp.Navigate(address))
	return p
}

// ask runs a command of the browser for which there is no action.
func ask[P, R any](p *Page, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	answer, err := chromedp.Call(ctx, command, params)
	if err != nil {
		p.t.Fatalf("%s: %s: %v", p.at(), command.Method, err)
	}
	return answer
}

// Look changes how the page is looked at: all of a View but whether scripts run.
func (p *Page) Look(v View) {
	p.t.Helper()
	p.mutex.Lock()
	v.Scriptless = v.Scriptless || p.view.Scriptless
	p.view = v
	p.mutex.Unlock()
	ask(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(v.width()), Height: 900, DeviceScaleFactor: 1})
	set := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: pick(v.Dark, "dark", "light")},
		{Name: "prefers-reduced-motion", Value: pick(v.Still, "reduce", "no-preference")},
		{Name: "forced-colors", Value: pick(v.Forced, "active", "none")},
	}}
	if v.Print {
		set.Media = "print"
	}
	ask(p, emulation.SetEmulatedMedia, set)
}

func pick(on bool, yes, no string) string {
	if on {
		return yes
	}
	return no
}

// at says in errors which page is looked at and how.
func (p *Page) at() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.url + " (" + p.view.String() + ")"
}

// Do takes steps of chromedp, such as chromedp.SendKeys.
func (p *Page) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.t.Fatalf("%s: %v\n%s", p.at(), err, strings.Join(p.wrong(), "\n"))
	}
}

// Eval is the value of an expression, or of the promise that it is.
func Eval[T any](p *Page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %s: %v", p.at(), expression, err)
	}
	return v
}

// Wait waits until an expression is true, such as `document.querySelector(".toast")`, on this page or on the one that it goes to.
// It is not true where an element that it asks is not there, as on a page of which the beginning alone has come.
func (p *Page) Wait(expression string) {
	p.t.Helper()
	asked := "(() => { try { return !!(" + expression + ") } catch (e) { if (e instanceof TypeError) return false; throw e } })()"
	p.until(expression+" never was true", chromedp.Poll[bool](asked, chromedp.WithPollingTimeout(patience)))
}

// until takes a step that waits for something, on this page or on the one that it goes to.
func (p *Page) until(never string, step chromedp.Action[bool]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, step)
		switch {
		case err == nil:
			return
		case ctx.Err() == nil && left(err): // the question is asked again on the page that has come
		default:
			p.t.Fatalf("%s: %s: %v\n%s", p.at(), never, err, strings.Join(p.wrong(), "\n"))
		}
	}
}

// left reports whether a step failed because its page was left for another.
func left(err error) bool {
	return strings.Contains(err.Error(), "Cannot find context") || strings.Contains(err.Error(), "context was destroyed") || strings.Contains(err.Error(), "navigated or closed")
}

// Click clicks on the first element of a CSS selector, or on the link, button, summary or label whose text is T: "text=T".
// It waits until the element stands still where a reader would click it: a click while the page still scrolls to it
// presses the button and releases beside it.
func (p *Page) Click(selector string) {
	p.t.Helper()
	click := chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible)
	found := fmt.Sprintf("document.querySelector(%q)", selector)
	if text, ok := strings.CutPrefix(selector, "text="); ok {
		path := fmt.Sprintf("//*[self::a or self::button or self::summary or self::label][normalize-space()=%q]", text)
		click = chromedp.Click(chromedp.Search(path), chromedp.NodeVisible)
		found = fmt.Sprintf("document.evaluate(%q, document, null, XPathResult.FIRST_ORDERED_NODE_TYPE).singleNodeValue", path)
	}
	if !p.scriptless() {
		p.until(selector+" never stood still to be clicked", chromedp.Evaluate[bool](still+"(() => "+found+")", chromedp.EvalAwaitPromise))
	}
	p.Do(click)
}

func (p *Page) scriptless() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.view.Scriptless
}

// still is a promise of true once an element has been in one place of the window for three frames.
const still = `(async (find) => {
  for (let last = "", same = 0; same < 3; ) {
    await new Promise(requestAnimationFrame);
    const e = find();
    if (!e?.checkVisibility()) { last = ""; same = 0; continue; }
    e.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
    const { left, top } = e.getBoundingClientRect(), at = left + " " + top;
    same = at === last ? same + 1 : 0;
    last = at;
  }
  return true;
})`

// Type types a text into the first element of a CSS selector.
func (p *Page) Type(selector, text string) {
	p.t.Helper()
	p.Do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// keys are the names of keys that are no letters.
var keys = map[string]string{
	"Enter": kb.Enter, "Escape": kb.Escape, "Tab": kb.Tab, "Backspace": kb.Backspace, "Space": " ", "Home": kb.Home, "End": kb.End,
	"ArrowLeft": kb.ArrowLeft, "ArrowRight": kb.ArrowRight, "ArrowUp": kb.ArrowUp, "ArrowDown": kb.ArrowDown, "PageDown": kb.PageDown, "PageUp": kb.PageUp,
}

// Press presses keys one after the other, wherever the focus is: "j", "Enter", "Control+k", "Shift+Tab".
func (p *Page) Press(names ...string) {
	p.t.Helper()
	for _, name := range names {
		var held []chromedp.Modifier
		for {
			if rest, ok := strings.CutPrefix(name, "Control+"); ok {
				name, held = rest, append(held, chromedp.ModifierCtrl)
			} else if rest, ok := strings.CutPrefix(name, "Shift+"); ok {
				name, held = rest, append(held, chromedp.ModifierShift)
			} else {
				break
			}
		}
		key, known := keys[name]
		if !known {
			key = name
		}
		p.press(key, held)
	}
}

// press presses one key as a keyboard does: the text comes with the key, so that a page that
// prevents the one prevents the other. (chromedp.KeyEvent sends both apart, and the text comes all the same.)
func (p *Page) press(key string, held []chromedp.Modifier) {
	p.t.Helper()
	for _, r := range key {
		events := kb.Encode(r)
		for _, e := range events {
			for _, m := range held {
				e.Modifiers |= int64(m)
			}
		}
		down, up := events[0], events[len(events)-1]
		if len(events) == 3 && down.Modifiers&^int64(chromedp.ModifierShift) == 0 {
			down.Type, down.Text, down.UnmodifiedText = kb.KeyDown, events[1].Text, events[1].UnmodifiedText
		}
		ask(p, input.DispatchKeyEvent, *down)
		ask(p, input.DispatchKeyEvent, *up)
	}
}

// Text is what an element says.
func (p *Page) Text(selector string) string {
	p.t.Helper()
	return Eval[string](p, fmt.Sprintf("(document.querySelector(%q) ?? {innerText: ''}).innerText", selector))
}

// hear takes what the page does by itself. It runs where the browser's messages are read: what a
// step caused is heard before the step ends.
func (p *Page) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			p.note("writes to the console: " + spoken(e.Args))
		}
	case *runtime.EventExceptionThrown:
		p.note("throws: " + e.ExceptionDetails.Text + " " + spoken([]*runtime.RemoteObject{e.ExceptionDetails.Exception}))
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			p.note("the browser says: " + e.Entry.Text + " " + e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		p.note("opens a dialog: " + e.Message)
		p.dialogs.Go(func() { // no step may be taken where messages are read
			// A tab that is closed meanwhile has no dialog any more.
			_, _ = chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		})
	case *network.EventRequestWillBeSent:
		if !p.own(e.Request.URL) {
			p.note("asks for " + e.Request.URL)
		}
	}
}

func (p *Page) note(wrong string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.axed && strings.Contains(wrong, "Applying inline style violates") {
		return
	}
	p.heard = append(p.heard, wrong)
}

// spoken are the arguments of a message as text.
func spoken(args []*runtime.RemoteObject) string {
	var words []string
	for _, a := range args {
		if a != nil {
			words = append(words, cmp.Or(a.Description, string(a.Value)))
		}
	}
	return strings.Join(words, " ")
}

// own reports whether an address is of the page's server. A page of a file may load a script beside it and nothing else.
func (p *Page) own(address string) bool {
	mine, err := url.Parse(p.url)
	if err != nil {
		return false
	}
	other, err := url.Parse(address)
	if err != nil {
		return false
	}
	switch other.Scheme {
	case "data", "blob", "about":
		return true
	case "file":
		return mine.Scheme == "file" && (other.Path == mine.Path || strings.HasSuffix(other.Path, ".js"))
	}
	return mine.Scheme == other.Scheme && mine.Host == other.Host
}

// wrong are the things that were heard, and forgets them.
func (p *Page) wrong() []string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	all := p.heard
	p.heard = nil
	return all
}

// Expect forgets what was heard that contains a text, which there must be: the test made it happen.
func (p *Page) Expect(text string) {
	p.t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	rest := slices.DeleteFunc(slices.Clone(p.heard), func(s string) bool { return strings.Contains(s, text) })
	if len(rest) == len(p.heard) {
		p.t.Errorf("%s: nothing was heard of %q, but %q", p.url, text, p.heard)
	}
	p.heard = rest
}
