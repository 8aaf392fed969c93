package bench

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/gauge"
	"perflab/internal/price"
	"perflab/internal/rundir"
	"perflab/internal/telemetry"
	"perflab/internal/workload"
)

// withMetrics is a listener's server that also publishes how many requests it had,
// to those who have its key.
func withMetrics(t *testing.T) (spec Spec, scraped *atomic.Int32) {
	t.Helper()
	l := listen(t)
	scraped = new(atomic.Int32)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key-of-the-server" {
			t.Error("metrics were asked for without the server's key")
		}
		n := scraped.Add(1)
		fmt.Fprintf(w, "vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_waiting{engine=\"0\"} 0\nvllm:num_preemptions_total{engine=\"0\"} %d\n", n)
	})
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(50 * time.Millisecond)
		resp, err := http.Post(l.url+r.URL.Path, "application/json", r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		buf := make([]byte, 1<<12)
		for {
			n, err := resp.Body.Read(buf)
			w.Write(buf[:n])
			if err != nil {
				return
			}
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	spec = l.spec(workload.Spec{NumPrompts: 20, RandomInputLen: 8, RandomOutputLen: 2, MaxConcurrency: 2})
	spec.Targets = []string{s.URL}
	return spec, scraped
}

// asideScrapes is how often a run looks for counters of the prefix cache before the
// load, which is no telemetry.
const asideScrapes = 1

// TestTelemetryOfARun: readings hold the run on its clock, are kept in its directory,
// and give the same figures when it is read again.
func TestTelemetryOfARun(t *testing.T) {
	spec, scraped := withMetrics(t)
	spec.Telemetry, spec.Price = 100*time.Millisecond, price.Hourly{PerHour: 7.2, Currency: "EUR"}
	dir := filepath.Join(t.TempDir(), "run")
	gpu := func(ctx context.Context, emit telemetry.Emit) {
		for i := 0; ; i++ {
			emit(time.Now(), gauge.Reading{Source: gauge.SourceGPU, Values: map[string]float64{gauge.GPUPower: 300, gauge.GPUUtilization: 0.5}})
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	out, err := Runner{Spec: spec, Dir: dir, APIKey: "key-of-the-server", Sources: []telemetry.Source{gpu}}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := scraped.Load(); n < 4 {
		t.Fatalf("metrics were read %d times in a run of half a second", n)
	}
	first, last := out.Readings[0], out.Readings[len(out.Readings)-1]
	end := time.Duration(0)
	for _, c := range out.Calls {
		end = max(end, c.End)
	}
	if first.At > 0 || last.At < end {
		t.Errorf("readings from %v to %v do not hold a run of %v", first.At, last.At, end)
	}
	f := out.Summary.Figures
	grown := float64(scraped.Load() - asideScrapes - 1) // the first reading is what growth counts from
	for name, want := range map[string]float64{"preemptions": grown, "mean_running_requests": 1, "mean_gpu_power_w": 300} {
		if math.Abs(f[name]-want) > 1e-9 {
			t.Errorf("%s = %v, want %v", name, f[name], want)
		}
	}
	if f["energy_j"] <= 0 || f["cost_per_million_tokens"] <= 0 || out.Summary.Currency != "EUR" {
		t.Errorf("energy %v J, cost %v %s", f["energy_j"], f["cost_per_million_tokens"], out.Summary.Currency)
	}
	again, err := rundir.OpenRun(dir)
	if err != nil || again.Damage != "" {
		t.Fatal(err, again.Damage)
	}
	s, err := again.Resummarise()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(out.Summary, s); d != "" {
		t.Errorf("-measured +read again\n%s", d)
	}
	if text, err := os.ReadFile(filepath.Join(dir, rundir.TelemetryFile)); err != nil || strings.Contains(string(text), "key-of-the-server") {
		t.Errorf("%v, readings %s", err, text)
	}
}

// TestTelemetryOff: nothing is asked, and no file says otherwise.
func TestTelemetryOff(t *testing.T) {
	spec, scraped := withMetrics(t)
	dir := filepath.Join(t.TempDir(), "run")
	out, err := Runner{Spec: spec, Dir: dir, APIKey: "key-of-the-server"}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(dir, rundir.TelemetryFile))
	if n := scraped.Load(); n != asideScrapes || len(out.Readings) > 0 || !os.IsNotExist(err) {
		t.Errorf("%d scrapes, %d readings, %v", n, len(out.Readings), err)
	}
}

// TestSimulatedUsesNoGPU: this machine's GPUs have no part in a simulated engine.
func TestSimulatedUsesNoGPU(t *testing.T) {
	all := func() []gauge.Reading {
		return []gauge.Reading{{Source: gauge.SourceGPU}, {Source: gauge.SourceEngine}, {Source: gauge.SourceHost}}
	}
	if got := usableReadings(all(), true); len(got) != 2 || got[0].Source != gauge.SourceEngine {
		t.Errorf("simulated: %+v", got)
	}
	if got := usableReadings(all(), false); len(got) != 3 {
		t.Errorf("measured: %+v", got)
	}
}

func TestOnThisMachine(t *testing.T) {
	for url, want := range map[string]bool{
		"http://127.0.0.1:8000": true, "http://localhost:8000/v1": true, "http://[::1]:8000": true, "https://a.localhost": true, "http://0.0.0.0:1": true,
		"http://192.0.2.7:8000": false, "https://api.example.com": false, "::": false,
	} {
		if got := OnThisMachine(url); got != want {
			t.Errorf("%s is on this machine: %v, want %v", url, got, want)
		}
	}
}
