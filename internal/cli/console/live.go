package console

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Live shows progress on standard error: lines rewritten in place on a
// terminal, a plain log line now and then elsewhere.
type Live struct {
	w        io.Writer // for lines that stay, where there is no terminal
	screen   screen    // where there is one
	terminal bool
	width    func() int                   // of that terminal now
	text     func() string                // the line as of now
	panel    func(now time.Time) []string // what a terminal shows in its place; nil: the line

	mu         sync.Mutex // guards the terminal: the ticker and say write to it
	last       string
	drawnLines []string // lines that stand on the terminal
	stop       chan struct{}
	wg         sync.WaitGroup
}

// refresh is how often the live line is redrawn, and logEvery how often a log
// line appears without a terminal.
const (
	refresh  = 200 * time.Millisecond
	logEvery = 15 * time.Second
)

// StartLive begins to show the line that text gives, or on a terminal what panel gives, until
// End.
func StartLive(env Env, text func() string, panel func(time.Time) []string) *Live {
	l := &Live{w: env.Stderr, screen: env.screen(), terminal: env.Terminal, width: env.columns, text: text, panel: panel, stop: make(chan struct{})}
	l.wg.Go(l.loop)
	return l
}

func (l *Live) loop() {
	every := logEvery
	if l.terminal {
		every = refresh
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-t.C:
			l.draw()
		}
	}
}

func (l *Live) draw() {
	if l.terminal {
		l.paint()
		return
	}
	s := l.text()
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == "" || s == l.last {
		return
	}
	l.last = s
	fmt.Fprintln(l.w, s)
}

// paint draws what a terminal shows over what stands there.
func (l *Live) paint() {
	lines := l.shown(l.width() - 1)
	if len(lines) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	b.WriteString(l.erased())
	for i, s := range lines {
		if i > 0 {
			b.WriteString(string(nextLine))
		}
		b.WriteString(s)
	}
	l.drawnLines = lines
	io.WriteString(l.screen.to, b.String()) // a terminal that is gone shows nothing
}

// shown is what a terminal of a width shows: the panel with its long lines broken, or where there
// is none the line, cut.
func (l *Live) shown(width int) []string {
	var lines []string
	if l.panel != nil {
		for _, s := range l.panel(time.Now()) {
			lines = append(lines, Wrap(l.screen.clean(s), width)...)
		}
	}
	if len(lines) > 0 {
		return lines
	}
	text := l.text()
	if text == "" {
		return nil
	}
	return []string{Fit(l.screen.clean(text), width)}
}

// erased clears the lines that stand on the terminal, which has broken those
// that no longer fit when it became narrower.
func (l *Live) erased() string {
	tall, width := 0, max(1, l.width())
	for _, s := range l.drawnLines {
		tall += 1 + max(0, utf8.RuneCountInString(s)-1)/width
	}
	l.drawnLines = nil
	return string(clearLine) + strings.Repeat(string(lineAbove), max(0, tall-1))
}

// Say prints a line that stays, above the live one.
func (l *Live) Say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf(format+"\n", args...)
	if l.terminal {
		io.WriteString(l.screen.to, l.erased()+l.screen.clean(text))
		return
	}
	io.WriteString(l.w, text)
}

// End removes the live lines.
func (l *Live) End() {
	close(l.stop)
	l.wg.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.terminal {
		io.WriteString(l.screen.to, l.erased())
	}
}

// barPattern is a progress bar within a line.
var barPattern = regexp.MustCompile(`\[=* *\] `)

// Fit gives up the bar, which repeats what the numbers say, before any number.
func Fit(s string, width int) string { return clip(withoutBar(s, width), width) }

func withoutBar(s string, width int) string {
	if width >= 10 && utf8.RuneCountInString(s) > width {
		return barPattern.ReplaceAllString(s, "")
	}
	return s
}

// Wrap breaks a line between words, after it has given up the bar, into as many as its width
// asks for, but mostRows; those after the first are set in.
func Wrap(s string, width int) (out []string) {
	const mostRows, indent = 3, "    "
	s = withoutBar(s, width)
	for width >= 2*len(indent) && utf8.RuneCountInString(s) > width && len(out) < mostRows-1 {
		r := []rune(s)
		cut := width
		for cut > len(indent) && r[cut] != ' ' {
			cut--
		}
		if cut == len(indent) { // one long word
			cut = width
		}
		out = append(out, strings.TrimRight(string(r[:cut]), " "))
		s = indent + strings.TrimLeft(string(r[cut:]), " ")
	}
	return append(out, clip(s, width))
}

func clip(s string, width int) string {
	r := []rune(s)
	if width < 10 || len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}
