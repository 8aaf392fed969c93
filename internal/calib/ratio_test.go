package calib

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"perflab/internal/engine"
)

// TestRatio: what both sides share does not count, what is not known has no interval, and the
// ratio of a side to itself is 1 whatever the load draws.
func TestRatio(t *testing.T) {
	cal := own()
	load := Load{Requests: 60, Input: Lengths{Mean: 400}, Output: Lengths{Mean: 60}}
	tp1 := Question{Config: resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1), Load: load, Draws: 4}
	tp2 := Question{Config: resolved(t, "vllm serve Qwen/Qwen3-14B -tp 2", "a100-sxm-80", 2), Load: load, Draws: 4}
	same, _, ok, err := cal.Ratio(tp1, tp1, Throughput)
	if err != nil || !ok || same.Value != 1 || math.Abs(math.Log(same.Low*same.High)) > 1e-9 || !(same.Low < 1) {
		t.Errorf("to itself: %+v, %v, %v", same, ok, err)
	}
	r, outside, ok, err := cal.Ratio(tp2, tp1, Throughput)
	if err != nil || !ok || !(r.Value > 1.1) || !(r.Low < r.Value && r.Value < r.High) {
		t.Errorf("twice the devices: %+v (%q), %v, %v", r, outside, ok, err)
	}
	back, _, _, _ := cal.Ratio(tp1, tp2, Throughput)
	if math.Abs(back.Value*r.Value-1) > 1e-9 || math.Abs(back.Low*r.High-1) > 0.05 {
		t.Errorf("the other way round: %+v and %+v", r, back)
	}
	one, err := cal.Predict(tp1)
	if f := one.Figures[Throughput]; err != nil || math.Log(r.High/r.Low) > 2.2*math.Log(f.High/f.Low) {
		t.Errorf("the ratio %+v is less sure than two sides as %+v", r, f)
	}
	if _, _, ok, err := cal.Ratio(tp1, tp2, "p99_itl_ms"); ok || err != nil {
		t.Errorf("an error of a percentile is known: %v, %v", ok, err)
	}
	if _, _, ok, _ := (&Calibration{}).Ratio(tp1, tp2, Throughput); ok {
		t.Error("an error is known of no calibration")
	}
}

// TestRatioCoversPublished: of the published blocks under one load, as docs/accuracy.md has their
// held-out errors, nine in ten ratios lie within what the calibration says of them. The blocks'
// own errors are among those that it knows.
func TestRatioCoversPublished(t *testing.T) {
	cal, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/accuracy.md")
	if err != nil {
		t.Fatal(err)
	}
	type side struct{ err, off, bias float64 }
	groups := map[string][]side{}
	for line := range strings.Lines(string(text)) {
		x := strings.Split(line, "|")
		id := strings.TrimSpace(x[min(1, len(x)-1)])
		study, block := id, strings.Contains(id, "-")
		if i := strings.LastIndex(id, "-"); i > 0 {
			study = id[:i]
		}
		if len(x) < 16 || !block || !strings.Contains(x[4], "×") {
			continue
		}
		metric, printed := Throughput, x[7]
		if strings.TrimSpace(printed) == "" {
			metric, printed = MeanE2E, x[12]
		}
		off, err := strconv.ParseFloat(strings.Trim(printed, " !"), 64)
		if err != nil {
			continue // scored in no summary
		}
		a := answered{predictor: &predictor{cal: &cal, novelty: Novelty(strings.TrimSpace(x[15])), Question: Question{Config: engine.Config{Engine: strings.TrimSpace(x[2])}}}}
		s := side{err: math.Log1p(off / 100)}
		var ok bool
		if s.off, s.bias, ok = a.off(metric); !ok {
			t.Fatalf("no error is known of %s", line)
		}
		groups[study+x[5]] = append(groups[study+x[5]], s)
	}
	in, all := 0, 0
	for _, g := range groups {
		for i, a := range g {
			for _, b := range g[:i] {
				all++
				if math.Abs(a.err-b.err-(a.bias-b.bias)) <= cal.apart(a.off, b.off) {
					in++
				}
			}
		}
	}
	t.Logf("%d of %d ratios", in, all)
	if share := float64(in) / float64(all); all < 150 || share < 0.85 || share > 0.985 {
		t.Errorf("%d of %d ratios (%.0f %%) lie within nine in ten", in, all, 100*share)
	}
}
