package report

import (
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/block"
	"perflab/internal/gauge"
	"perflab/internal/price"
	"perflab/internal/report/doc"
	"perflab/internal/report/runplot"
	"perflab/internal/result"
	"perflab/internal/verdict"
)

// hotReadings are readings of one replica, two GPUs, of which the second is idle and the
// first too hot for a while, and a host, with none of the engine for two seconds.
func hotReadings() []gauge.Reading {
	var out []gauge.Reading
	for i := -1; i < 26; i++ {
		at := time.Duration(i) * 500 * time.Millisecond
		load := math.Sin(float64(max(i, 0)) / 8)
		load *= load
		if i < 10 || i >= 14 {
			out = append(out, gauge.Reading{At: at, Source: gauge.SourceEngine, Values: map[string]float64{
				"running": math.Round(40 * load), "waiting": math.Round(max(0, 40*load-30)), "kv_usage": 0.8 * load, "preemptions": float64(max(i, 0) / 10)}})
		}
		hot := 0.0
		if i > 12 && i < 17 {
			hot = 1
		}
		for gpu := range 2 {
			v := map[string]float64{gauge.GPUUtilization: load * float64(1-gpu), gauge.GPUPower: 70 + 500*load*float64(1-gpu), gauge.MemoryUsed: 71e9,
				gauge.ThrottleThermal: hot * float64(1-gpu), gauge.ThrottlePower: 0, gauge.ThrottleHW: 0}
			out = append(out, gauge.Reading{At: at, Source: gauge.SourceGPU, Index: gpu, Values: v})
		}
		out = append(out, gauge.Reading{At: at, Source: gauge.SourceHost, Values: map[string]float64{gauge.CPUUtilization: 0.2 + 0.2*load, gauge.MemoryUsed: 5e9, gauge.MemoryTotal: 9e9}})
	}
	return out
}

func TestGoldenTelemetry(t *testing.T) {
	h, calls := burst(120)
	h.Simulated = false
	o := result.Options{Readings: hotReadings(), Price: price.Hourly{PerHour: 3.5, Currency: "USD"}}
	s, err := verdict.Summarize(h, &result.Client{}, o, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "telemetry.md", func(w io.Writer) error { return doc.Markdown(w, must(Run(h, s, block.Style{}, nil, nil))) })
	golden(t, "telemetry.txt", func(w io.Writer) error { return doc.Text(w, must(Run(h, s, block.Style{}, nil, nil))) })
	page := golden(t, "telemetry.html", func(w io.Writer) error { return doc.HTML(w, must(Run(h, s, block.Style{}, calls, hotReadings()))) })
	for _, want := range []string{"Requests in the engine", "KV cache in use", "Power, sum of 2 GPUs", "held back by heat", "Host CPU", "USD"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

// TestGapsAreNotDrawn: where readings stop the line does too.
func TestGapsAreNotDrawn(t *testing.T) {
	h, calls := burst(120)
	telemetry := func(readings []gauge.Reading) string {
		for _, p := range runplot.Plots(h, calls, 1, readings, "") {
			if p.Name == "telemetry" {
				return p.SVG
			}
		}
		return ""
	}
	lines := regexp.MustCompile(`<path class="l\d" d="([^"]*)"`).FindAllStringSubmatch(telemetry(hotReadings()), -1)
	for i, l := range lines {
		want := 1
		if i < 3 { // the engine's
			want = 2
		}
		if got := strings.Count(l[1], "M"); got != want {
			t.Errorf("line %d is of %d pieces, want %d", i, got, want)
		}
	}
	if len(lines) < 4 {
		t.Errorf("%d lines", len(lines))
	}
	if telemetry(nil) != "" {
		t.Error("there is a plot of no readings")
	}
}
