package measure

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/load"
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
