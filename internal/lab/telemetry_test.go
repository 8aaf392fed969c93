package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/deploy"
	"perflab/internal/result"
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
	spec.Telemetry, spec.Price = 100*time.Millisecond, result.Price{PerHour: 7.2, Currency: "EUR"}
	dir := filepath.Join(t.TempDir(), "run")
	gpu := func(ctx context.Context, emit telemetry.Emit) {
		for i := 0; ; i++ {
			emit(time.Now(), result.Reading{Source: result.SourceGPU, Values: map[string]float64{result.GPUPower: 300, result.GPUUtilization: 0.5}})
			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	out, err := Bench{Spec: spec, Dir: dir, APIKey: "key-of-the-server", Sources: []telemetry.Source{gpu}}.Run(t.Context())
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
	again, err := OpenRun(dir)
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
	if text, err := os.ReadFile(filepath.Join(dir, telemetryFile)); err != nil || strings.Contains(string(text), "key-of-the-server") {
		t.Errorf("%v, readings %s", err, text)
	}
}

// TestTelemetryOff: nothing is asked, and no file says otherwise.
func TestTelemetryOff(t *testing.T) {
	spec, scraped := withMetrics(t)
	dir := filepath.Join(t.TempDir(), "run")
	out, err := Bench{Spec: spec, Dir: dir, APIKey: "key-of-the-server"}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = os.Stat(filepath.Join(dir, telemetryFile))
	if n := scraped.Load(); n != asideScrapes || len(out.Readings) > 0 || !os.IsNotExist(err) {
		t.Errorf("%d scrapes, %d readings, %v", n, len(out.Readings), err)
	}
}

// TestSimulatedUsesNoGPU: this machine's GPUs have no part in a simulated engine.
func TestSimulatedUsesNoGPU(t *testing.T) {
	all := func() []result.Reading {
		return []result.Reading{{Source: result.SourceGPU}, {Source: result.SourceEngine}, {Source: result.SourceHost}}
	}
	if got := believable(all(), true); len(got) != 2 || got[0].Source != result.SourceEngine {
		t.Errorf("simulated: %+v", got)
	}
	if got := believable(all(), false); len(got) != 3 {
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

func TestStudyTelemetry(t *testing.T) {
	text := strings.NewReplacer("gpus: 2}", "gpus: 2, price_per_hour: 98.32 USD}", "runtime:", "bench: {telemetry_interval_s: 0.5}\nruntime:").Replace(good)
	s, err := ParseStudy("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := (result.Price{PerHour: 98.32, Currency: "USD"}); s.Hardware.Price != want || s.Bench.telemetry() != 500*time.Millisecond {
		t.Errorf("price %v, interval %v", s.Hardware.Price, s.Bench.telemetry())
	}
	s, err = ParseStudy("t.yaml", []byte(strings.Replace(good, "gpus: 2}", "gpus: 2, price_per_hour: 7}", 1)))
	if err != nil || s.Hardware.Price.PerHour != 7 || s.Bench.telemetry() != DefaultTelemetry {
		t.Errorf("%v, price %v, interval %v", err, s.Hardware.Price, s.Bench.telemetry())
	}
}

// twoNodes is a runtime of two machines, and its deployment.
type twoNodes struct {
	deploy.Runtime
	deploy.Deployment
	asked chan string
}

func (twoNodes) Targets() []string { return []string{"http://127.0.0.1:1"} }
func (twoNodes) Nodes() []string   { return []string{"a", "b", "idle"} }

func (n twoNodes) Command(_ context.Context, node string, argv []string, stdout io.Writer) error {
	n.asked <- node + " " + argv[0]
	return errors.New("not here")
}

var _ deploy.Commander = twoNodes{}

// TestSourcesOfADeployment: machines that have a part in it are asked by the runtime's own commands.
func TestSourcesOfADeployment(t *testing.T) {
	d := twoNodes{asked: make(chan string, 8)} // more than are asked for
	l := &study{Study: &Study{Runtime: Runtime{Kind: SSH}, Hardware: Hardware{GPU: "h100-sxm"}}}
	l.live = live{rt: d, spec: deploy.Spec{Replicas: []deploy.Replica{{
		Member: deploy.Member{Node: "a", Devices: []int{0, 1}},
		Peers:  []deploy.Peer{{Member: deploy.Member{Node: "b", Devices: []int{3}}}},
	}}}}
	rec := telemetry.Start(t.Context(), l.sources(d, time.Second)...)
	rec.Stop()
	close(d.asked)
	var asked []string
	for a := range d.asked {
		asked = append(asked, a)
	}
	slices.Sort(asked)
	if want := []string{"a nvidia-smi", "a sh", "b nvidia-smi", "b sh"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if got := l.sources(d, 0); got != nil {
		t.Errorf("%d sources of a study without telemetry", len(got))
	}
	l.Runtime.Kind = Simulated
	if got := l.sources(d, time.Second); len(got) != 1 {
		t.Errorf("%d sources of a simulated study, want this host", len(got))
	}
}
