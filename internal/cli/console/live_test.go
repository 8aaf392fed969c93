package console

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/redact"
)

// TestPaint: a picture replaces the one before it, whatever their heights.
func TestPaint(t *testing.T) {
	var b strings.Builder
	tall := []string{"a", "b", "c"}
	l := &Live{screen: screen{&b, redact.Shown}, terminal: true, width: func() int { return 80 }, text: func() string { return "line" }, panel: func(time.Time) []string { return tall }}
	l.paint()
	tall = nil
	l.paint()
	l.Say("kept")
	const up = "\x1b[A\x1b[K"
	want := "\r\x1b[Ka\r\nb\r\nc" + "\r\x1b[K" + up + up + "line" + "\r\x1b[Kkept\n"
	if b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}

// TestPaintNarrower: a terminal that became narrower has broken the lines that
// stood on it; all of their parts are erased, and the next picture fits.
func TestPaintNarrower(t *testing.T) {
	var b strings.Builder
	width := 41
	l := &Live{screen: screen{&b, redact.Shown}, terminal: true, width: func() int { return width }, text: func() string { return strings.Repeat("x", 50) }}
	l.paint()
	width = 16
	l.paint()
	const up = "\x1b[A\x1b[K"
	want := "\r\x1b[K" + strings.Repeat("x", 39) + "…" + "\r\x1b[K" + up + up + strings.Repeat("x", 14) + "…"
	if b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}

// TestWrap: a line that is too long loses its bar, then goes on below, and is cut only when its
// rows are used up.
func TestWrap(t *testing.T) {
	const line = "  chat  measuring  [=====     ] 212/500  ~54 s left  5.3 req/s  2250 tok/s"
	for width, want := range map[int][]string{
		100: {line},
		64:  {"  chat  measuring  212/500  ~54 s left  5.3 req/s  2250 tok/s"},
		40:  {"  chat  measuring  212/500  ~54 s left", "    5.3 req/s  2250 tok/s"},
		20:  {"  chat  measuring", "    212/500  ~54 s", "    left  5.3 req/s…"},
	} {
		if d := cmp.Diff(want, Wrap(line, width)); d != "" {
			t.Errorf("at %d columns, -want +got:\n%s", width, d)
		}
	}
	if d := cmp.Diff([]string{"aaaaaaaaaa", "    aaaaaa", "    aa"}, Wrap(strings.Repeat("a", 18), 10)); d != "" {
		t.Errorf("one long word: %s", d)
	}
}
