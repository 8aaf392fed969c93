package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/engine/meters"
	"perflab/internal/gauge"
)

// TestMetersAreGauges: what engines publish under common names is in the document's
// table of gauges, with the same kind.
func TestMetersAreGauges(t *testing.T) {
	want := map[string]bool{}
	for _, m := range meters.All() {
		want[m.Name] = m.Kind == meters.Counter
	}
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| engine \\| \\w+ \\| (yes)? ?\\|").FindAllStringSubmatch(string(doc), -1) {
		got[row[1]] = row[2] == "yes"
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-meters of engine +gauges of docs/metrics.md\n%s", d)
	}
}

// TestEngineOnTheRunsClock: readings begin before the load, come every second and
// end after it; the instants are exact.
func TestEngineOnTheRunsClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rec := Start(t.Context(), Engine(gauge.SourceEngine, 1, time.Second, func(context.Context) (string, error) {
			n++
			return fmt.Sprintf("vllm:num_requests_running{engine=\"0\"} %d\n", n), nil
		}))
		time.Sleep(300 * time.Millisecond)
		start := time.Now()
		time.Sleep(2 * time.Second)
		rec.Stop()
		rec.Stop()
		var want []gauge.Reading
		for i, at := range []time.Duration{-300, 700, 1700, 2000} {
			want = append(want, gauge.Reading{At: at * time.Millisecond, Source: gauge.SourceEngine, Index: 1, Values: map[string]float64{"running": float64(i + 1)}})
		}
		if d := cmp.Diff(want, rec.Readings(start)); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	})
}

// TestEngineWithoutMetrics: it is said once, and the server is not asked for ever.
func TestEngineWithoutMetrics(t *testing.T) {
	for name, scrape := range map[string]func(context.Context) (string, error){
		"http://x/metrics answers 404": func(context.Context) (string, error) { return "", errors.New("http://x/metrics answers 404") },
		errUnknown.Error():             func(context.Context) (string, error) { return "go_goroutines 5\n", nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked atomic.Int32
			rec := Start(t.Context(), Engine(gauge.SourceEngine, 0, time.Second, func(ctx context.Context) (string, error) {
				asked.Add(1)
				return scrape(ctx)
			}))
			time.Sleep(time.Minute)
			rec.Stop()
			got := rec.Readings(time.Now())
			if len(got) != 1 || got[0].Error != name || got[0].Values != nil || asked.Load() != maxFailures {
				t.Errorf("%d asked, readings %+v", asked.Load(), got)
			}
		})
	}
}

// TestEngineRecovers: a page that fails in between costs its reading and no more.
func TestEngineRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rec := Start(t.Context(), Engine(gauge.SourceEngine, 0, time.Second, func(context.Context) (string, error) {
			if n++; n > 1 && n < 8 {
				return "", errors.New("busy")
			}
			return "vllm:num_requests_running 1\n", nil
		}))
		time.Sleep(9500 * time.Millisecond)
		rec.Stop()
		values, failures := 0, 0
		for _, r := range rec.Readings(time.Now()) {
			if r.Error != "" {
				failures++
			} else {
				values++
			}
		}
		if values != 5 || failures != 1 { // 1, 8, 9, 10 and the last
			t.Errorf("%d readings and %d failures, want 5 and 1", values, failures)
		}
	})
}

func TestIterationList(t *testing.T) {
	lists := []string{`[{"numActiveRequests": 7, "numQueuedRequests": 2}]`, `[]`}
	synctest.Test(t, func(t *testing.T) {
		n := 0
		rec := Start(t.Context(), Engine(gauge.SourceEngine, 0, time.Second, func(context.Context) (string, error) {
			n++
			return lists[(n-1)%2], nil
		}))
		time.Sleep(500 * time.Millisecond)
		rec.Stop() // the second list is empty, and no failure
		want := []gauge.Reading{{At: -500 * time.Millisecond, Source: gauge.SourceEngine, Values: map[string]float64{"running": 7, "waiting": 2}}}
		if d := cmp.Diff(want, rec.Readings(time.Now())); d != "" {
			t.Errorf("-want +got\n%s", d)
		}
	})
}

// TestStartWaitsAtMost: a source that is silent holds the run up for two seconds.
func TestStartWaitsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		rec := Start(t.Context(), func(ctx context.Context, _ Emit) { <-ctx.Done() })
		if took := time.Since(begun); took != firstWait {
			t.Errorf("waited %v", took)
		}
		rec.Stop()
		begun = time.Now()
		Start(t.Context(), func(context.Context, Emit) {}).Stop()
		if took := time.Since(begun); took != 0 {
			t.Errorf("waited %v for a source that had ended", took)
		}
	})
}

// hostFiles is what the two files hold, some lines of them.
func hostFiles(user, idle int) string {
	return fmt.Sprintf("cpu  %d 0 0 %d 0 0 0 0 7 0\nMemTotal:       1000 kB\nMemFree:          10 kB\nMemAvailable:    400 kB\nBuffers: 5 kB\n", user, idle)
}

// TestHostWithoutTimes: times that cannot be read are no times, and not zero.
func TestHostWithoutTimes(t *testing.T) {
	var shares []float64
	s := hostStream{emit: func(_ time.Time, r gauge.Reading) {
		share, ok := r.Values[gauge.CPUUtilization]
		if !ok {
			share = -1
		}
		shares = append(shares, share)
	}}
	bad := "cpu nan nan\nMemTotal: 10 kB\nMemAvailable: 4 kB\n"
	for _, text := range []string{bad, hostFiles(100, 100), hostFiles(130, 110), bad, "MemAvailable: 4 kB\n", hostFiles(140, 140), hostFiles(140, 140)} {
		_, _ = s.Write([]byte(text)) // never fails
	}
	if want := []float64{-1, -1, 0.75, -1, -1, 0.25, -1}; !slices.Equal(shares, want) {
		t.Errorf("shares %v, want %v (-1: none)", shares, want)
	}
}

// TestRemoteHost: the loop's output is cut anywhere, and a loop that ends is said.
func TestRemoteHost(t *testing.T) {
	var asked []string
	source := RemoteHost("b", 2*time.Second, func(_ context.Context, argv []string, w io.Writer) error {
		asked = argv
		for _, c := range hostFiles(100, 100) + hostFiles(130, 110) {
			if _, err := w.Write([]byte(string(c))); err != nil {
				t.Error(err)
			}
		}
		return errors.New("connection lost")
	})
	var got []gauge.Reading
	source(t.Context(), func(_ time.Time, r gauge.Reading) { got = append(got, r) })
	memory := map[string]float64{gauge.MemoryTotal: 1000 * 1024, gauge.MemoryUsed: 600 * 1024}
	second := map[string]float64{gauge.CPUUtilization: 0.75, gauge.MemoryTotal: 1000 * 1024, gauge.MemoryUsed: 600 * 1024}
	want := []gauge.Reading{
		{Source: gauge.SourceHost, Node: "b", Values: memory},
		{Source: gauge.SourceHost, Node: "b", Values: second},
		{Source: gauge.SourceHost, Node: "b", Error: "the loop that reads /proc/stat ended: connection lost"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	if len(asked) != 3 || !strings.Contains(asked[2], "sleep 2;") {
		t.Errorf("asked %q", asked)
	}
}
