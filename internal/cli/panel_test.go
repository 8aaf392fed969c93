package cli

import (
	"perflab/internal/redact"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/load"

	"github.com/google/go-cmp/cmp"
)

// ran is the progress of a run in which some things happened.
func ran() *load.Progress {
	p := new(load.Progress)
	p.Planned.Store(100)
	p.Running.Store(true)
	p.Sent.Store(60)
	p.Done.Store(50)
	p.InFlight.Store(10)
	for range 50 {
		p.Seen(1, 60*time.Millisecond, true)
		p.Seen(2, 20*time.Millisecond, false)
	}
	return p
}

func TestPanel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ran()
		v := panel{p: p}
		v.lines(time.Now())
		for range 3 {
			time.Sleep(time.Second)
			p.Sent.Add(2)
			p.Done.Add(1)
			p.Tokens.Add(300)
			v.lines(time.Now())
		}
		time.Sleep(200 * time.Millisecond)
		want := []string{
			"[============            ] 53/100  ~2.8 s left",
			"sent 2.0 req/s  done 1.0 req/s  300 tok/s  10 in flight",
			"TTFT p50 60.3  p90 60.3  p99 60.3 ms   ITL per read p50 20.2  p90 20.2  p99 20.2 ms",
			"tok/s  ███  peak 300",
		}
		if d := cmp.Diff(want, v.lines(time.Now())); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	})
}

func TestPanelBeforeAndWithoutPlan(t *testing.T) {
	p := new(load.Progress)
	v := panel{p: p}
	if got := v.shown(time.Now()); got != nil {
		t.Errorf("before the load begins: %q", got)
	}
	p.Running.Store(true)
	if got := v.shown(time.Now()); !strings.HasPrefix(got[0], "0 done after") || got[2] != "TTFT -   ITL per read -" {
		t.Errorf("%q", got)
	}
}

func TestSparkline(t *testing.T) {
	if got := sparkline([]float64{0, 1, 4, 8}); got != "▁▂▅█" {
		t.Errorf("%s", got)
	}
	if got := sparkline([]float64{0, 0}); got != "▁▁" {
		t.Errorf("%s", got)
	}
}

func TestMetrics(t *testing.T) {
	p := ran()
	var b strings.Builder
	if err := p.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# TYPE perflab_requests_sent_total counter\nperflab_requests_sent_total 60\n",
		"perflab_output_tokens_total 150\n",
		"perflab_ttft_seconds_bucket{le=\"0.05\"} 0\n",
		"perflab_ttft_seconds_bucket{le=\"0.1\"} 50\n",
		"perflab_ttft_seconds_sum 3\nperflab_ttft_seconds_count 50\n",
		"perflab_itl_seconds_bucket{le=\"+Inf\"} 50\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "class=") {
		t.Error("a failure where there was none")
	}
}

// TestPaint: a picture replaces the one before it, whatever their heights.
func TestPaint(t *testing.T) {
	var b strings.Builder
	tall := []string{"a", "b", "c"}
	l := &live{screen: screen{&b, redact.Shown}, terminal: true, width: func() int { return 80 }, text: func() string { return "line" }, panel: func(time.Time) []string { return tall }}
	l.paint()
	tall = nil
	l.paint()
	l.say("kept")
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
	l := &live{screen: screen{&b, redact.Shown}, terminal: true, width: func() int { return width }, text: func() string { return strings.Repeat("x", 50) }}
	l.paint()
	width = 16
	l.paint()
	const up = "\x1b[A\x1b[K"
	want := "\r\x1b[K" + strings.Repeat("x", 39) + "…" + "\r\x1b[K" + up + up + strings.Repeat("x", 14) + "…"
	if b.String() != want {
		t.Errorf("got %q\nwant %q", b.String(), want)
	}
}
