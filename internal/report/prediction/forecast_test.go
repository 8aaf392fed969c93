package prediction

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/forecast"
	"perflab/internal/report/doc"
)

// about is an estimate with a range of a tenth.
func about(v float64) forecast.Estimate {
	return forecast.Estimate{Value: v, Low: new(v * 9 / 10), High: new(v * 11 / 10)}
}

// forecast is three configurations, one refused, under two loads.
func predictions() forecast.Table {
	row := func(n int, load string, rate, total, ttft, tpot float64) forecast.Row {
		return forecast.Row{
			Configuration: n, Load: load, Rate: rate, SLO: "met",
			Figures: map[string]forecast.Estimate{
				"total_token_throughput": about(total), "mean_ttft_ms": about(ttft), "mean_tpot_ms": about(tpot), "p99_itl_ms": {Value: 3 * tpot},
			},
			PerGPU:     map[string]forecast.Estimate{"total_token_throughput": about(total / 4)},
			Bottleneck: &calib.Bottleneck{Name: "weights", Share: 0.6, Text: "Reading dense weights takes 60 % of the steps. A larger batch shares each read: send more requests at once."},
			KV:         &calib.KVUse{Tokens: 123456, Peak: 0.97, Concurrency: 43.21, Preemptions: 3, Found: 0.125},
			Times:      map[string]float64{"weights": 6, "arithmetic": 3, "host": 1},
			Outside:    []string{"Weights in fp8 were not seen here, only in bf16: ranges are 1.5 times as wide."},
		}
	}
	f := forecast.Table{
		Schema: "perflab.prediction/1", Version: "test", Simulated: true,
		Workload: "random, 100 requests", Spec: json.RawMessage("{}"),
		Calibration: forecast.Source{Name: "shipped", Source: "published studies", Runs: 52, Draws: 12},
		Metrics:     []string{"total_token_throughput", "mean_ttft_ms", "mean_tpot_ms", "p99_itl_ms"}, Latency: "mean_tpot_ms",
		SLOs: []string{"mean_ttft_ms <= 500"},
		Configurations: []forecast.Configuration{
			{Label: "tp=2", Command: "vllm serve <M> -tp 2", Engine: "vllm", Model: "<M>", GPU: "h", GPUTitle: "H & Co", GPUs: 4, Each: 2, Replicas: 2,
				Memory: &engine.Memory{Device: 80 << 30, Weights: 30 << 30, Activation: 2 << 30, Library: 1 << 30, Graphs: 1 << 30, KV: 40 << 30}, Notes: []string{"Not simulated, figures are as without: --async-scheduling"}},
			{Label: "tp=3", Command: "vllm serve <M> -tp 3", Engine: "vllm", Model: "<M>", GPU: "h", GPUTitle: "H & Co", GPUs: 4, Each: 3, Replicas: 1},
			{Label: "tp=8", Command: "vllm serve <M> -tp 8", Engine: "vllm", Model: "<M>", GPU: "h", GPUTitle: "H & Co", GPUs: 4, Refused: "the configuration takes 8 GPUs, and there are 4"},
		},
		Rows: []forecast.Row{
			row(1, "1/s", 1, 1000, 120.4, 20), row(1, "all at once", 0, 8123.4, 12345, 90),
			row(2, "1/s", 1, 990, 95, 15), row(2, "all at once", 0, 6000, 20345, 99), {Configuration: 3},
		},
	}
	f.Rows[0].Front, f.Rows[1].Front, f.Rows[2].Front = true, true, true
	f.Rows[1].SLO, f.Rows[1].Missed = "missed, unsure", []string{"mean_ttft_ms <= 500: missed, 12345 ms"}
	f.Rows[3].Outside = append(f.Rows[3].Outside, "7 preemptions of 10 requests: the KV cache is short.")
	f.Rows[3].Failed = "2 of 100 requests: too long"
	return f
}

func TestGoldenForecast(t *testing.T) {
	f := predictions()
	golden(t, "forecast.txt", func(w io.Writer) error { return doc.Text(w, Forecast(f)) })
	golden(t, "forecast.html", func(w io.Writer) error { return doc.HTML(w, Forecast(f)) })
	one := f
	one.Configurations, one.Rows = one.Configurations[:1], one.Rows[:1]
	golden(t, "forecast-one.txt", func(w io.Writer) error { return doc.Text(w, Forecast(one)) })
}

// TestForecastJSON: every form says SIMULATED, and JSON gives the facts back.
func TestForecastJSON(t *testing.T) {
	var b strings.Builder
	if err := ForecastJSON(&b, predictions()); err != nil {
		t.Fatal(err)
	}
	var back forecast.Table
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil {
		t.Fatal(err)
	}
	if !back.Simulated || *back.Rows[0].Figures["mean_tpot_ms"].High != 22 || back.Rows[0].Figures["p99_itl_ms"].Low != nil {
		t.Errorf("%+v", back.Rows[0])
	}
	for _, p := range ForecastPlots(predictions()) {
		if !strings.Contains(p.SVG, "SIMULATED") || strings.Contains(p.SVG, "NaN") {
			t.Errorf("%s: %s", p.Name, p.SVG)
		}
	}
}

// TestForecastPlotsNeedData: one point is no front, and steps without times no
// bars.
func TestForecastPlotsNeedData(t *testing.T) {
	f := predictions()
	f.Rows = f.Rows[4:]
	if p := ForecastPlots(f); len(p) > 0 {
		t.Errorf("%d plots of a refusal", len(p))
	}
	var b strings.Builder
	if err := doc.Text(&b, Forecast(f)); err != nil || !strings.Contains(b.String(), "Refused: the configuration takes 8 GPUs") {
		t.Errorf("%v: %s", err, b.String())
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-golden +got; -update rewrites it):\n%s", name, d)
	}
}
