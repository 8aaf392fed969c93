package console

import (
	"strings"
	"testing"
	"time"

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
