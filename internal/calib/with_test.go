package calib

import (
	"math"
	"strings"
	"testing"

	"perflab/internal/sim"
)

// TestWith: a site whose devices and hosts are slower than others' shows in one run, and
// what is predicted of its other loads and configurations then is near what runs there.
func TestWith(t *testing.T) {
	cal, k := shipped(t)
	slow, err := k.With(sim.Set{Values: map[string]float64{"site_device": 0.75, "site_host": 1.4}})
	if err != nil {
		t.Fatal(err)
	}
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	run := func(line string, l Load) Observation {
		b := Observation{ID: line, Study: "mine", Config: resolved(t, line, "a100-sxm-80", 1), Load: l}
		if b.Figures, err = replay(b.Config, 1, l, slow, 0); err != nil {
			t.Fatal(err)
		}
		return b
	}
	base := run("vllm serve Qwen/Qwen3-14B", Load{Requests: 300, Input: Lengths{Mean: 400}, Output: Lengths{Mean: 150}})
	with, err := cal.With([]Observation{base}, FitOptions{Each: onTwo})
	if err != nil {
		t.Fatal(err)
	}
	after, err := with.Constants()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []Observation{
		run("vllm serve Qwen/Qwen3-14B --max-num-seqs 64", Load{Requests: 200, Input: Lengths{Mean: 400}, Output: Lengths{Mean: 150}}),
		run("vllm serve Qwen/Qwen3-14B", Load{Requests: 100, Input: Lengths{Mean: 3000}, Output: Lengths{Mean: 100}}),
		run("vllm serve Qwen/Qwen3-14B", Load{Requests: 100, Concurrency: 8, Input: Lengths{Mean: 200}, Output: Lengths{Mean: 100}}),
	} {
		off := func(k *sim.Constants) float64 {
			f, err := replay(b.Config, 1, b.Load, k, 0)
			if err != nil {
				t.Fatal(err)
			}
			return math.Abs(math.Log(f[Throughput] / b.Figures[Throughput]))
		}
		if was, is := off(k), off(after); was < 0.1 || is > 0.5*was {
			t.Errorf("%s, %+v: off by %.3f before and %.3f after a run of the site", b.ID, b.Load, was, is)
		}
	}
	if !strings.Contains(with.Source, "corrected by vllm serve") || strings.Contains(cal.Source, "corrected") {
		t.Errorf("sources are %q and %q", cal.Source, with.Source)
	}
	if n := with.novelty(Question{Config: cfg}); n != AfterRun {
		t.Errorf("new after a run: %s", n)
	}
	if n := with.novelty(Question{Config: cfg, Load: base.Load}); n != AfterLike {
		t.Errorf("new under the run's load: %s", n)
	}
	if n := with.novelty(Question{Config: resolved(t, "trtllm-serve Qwen/Qwen3-14B", "a100-sxm-80", 1)}); n == AfterRun {
		t.Error("a run of one engine speaks for another")
	}
	if _, err := cal.With(nil, FitOptions{}); err == nil {
		t.Error("no run corrects")
	}
}

// TestInstallation: an engine that is slow at a site, as one of another version, shows in one
// run. It says less of another engine there; and a TTFT of a few requests at once, which what
// happens between two steps decides, hardly moves the throughput.
func TestInstallation(t *testing.T) {
	cal, k := shipped(t)
	slow, err := k.With(sim.Set{Engine: "vllm", Values: map[string]float64{"site_engine": 1.4}})
	if err != nil {
		t.Fatal(err)
	}
	burst := Load{Requests: 300, Input: Lengths{Mean: 400}, Output: Lengths{Mean: 150}}
	few := Load{Requests: 40, Concurrency: 4, Input: Lengths{Mean: 200}, Output: Lengths{Mean: 100}}
	throughput := func(line string, l Load, k *sim.Constants) float64 {
		f, err := replay(resolved(t, line, "a100-sxm-80", 1), 1, l, k, 0)
		if err != nil {
			t.Fatal(err)
		}
		return f[Throughput]
	}
	after := func(k *sim.Constants, l Load, change func(map[string]float64)) *sim.Constants {
		b := Observation{ID: "run", Config: resolved(t, vllm14, "a100-sxm-80", 1), Load: l}
		if b.Figures, err = replay(b.Config, 1, l, k, 0); err != nil {
			t.Fatal(err)
		}
		change(b.Figures)
		with, err := cal.With([]Observation{b}, FitOptions{Each: onTwo})
		if err != nil {
			t.Fatal(err)
		}
		out, err := with.Constants()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	seen := after(slow, burst, func(map[string]float64) {})
	for _, l := range []Load{burst, few, {Requests: 100, Input: Lengths{Mean: 3000}, Output: Lengths{Mean: 100}}} {
		is, want := throughput(vllm14, l, seen), throughput(vllm14, l, slow)
		if was := throughput(vllm14, l, k); math.Abs(math.Log(is/want)) > 0.3*math.Log(was/want) {
			t.Errorf("%+v: %.0f tok/s after a run, %.0f before, %.0f runs there", l, is, was, want)
		}
	}
	const sglang = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-14B"
	other, own := math.Log(throughput(sglang, burst, k)/throughput(sglang, burst, seen)), math.Log(throughput(vllm14, burst, k)/throughput(vllm14, burst, seen))
	if other <= 0 || other > 0.6*own {
		t.Errorf("a run of vLLM slows it by %.3f and SGLang by %.3f", own, other)
	}
	late := after(k, few, func(f map[string]float64) { f[MeanTTFT] *= 2 })
	if was, is := throughput(vllm14, burst, k), throughput(vllm14, burst, late); math.Abs(is/was-1) > 0.06 {
		t.Errorf("the TTFT of four at once moves a burst from %.0f to %.0f tok/s", was, is)
	}
}

const vllm14 = "vllm serve Qwen/Qwen3-14B"

// TestNovelty: each thing that no run has covered counts.
func TestNovelty(t *testing.T) {
	seen := own().Seen
	for _, c := range []struct {
		line, gpu string
		load      Load
		want      Novelty
	}{
		{"vllm serve Qwen/Qwen3-14B", "a100-sxm-80", small, NothingNew},
		{"vllm serve Qwen/Qwen3-32B --max-model-len 8192", "a100-sxm-80", small, NothingNew}, // of a family that was seen
		{"vllm serve Qwen/Qwen3-14B-FP8", "a100-sxm-80", small, OneThingNew},
		{"vllm serve openai/gpt-oss-20b", "a100-sxm-80", small, SeveralNew}, // family and format
		{"trtllm-serve Qwen/Qwen3-14B", "a100-sxm-80", small, SeveralNew},   // no load of this engine either
		{"vllm serve Qwen/Qwen3-14B", "a100-sxm-80", Load{Requests: 60, Rate: 1, Input: Lengths{Mean: 400}, Output: Lengths{Mean: 40}}, OneThingNew},
		{"vllm serve Qwen/Qwen3-14B", "l40s", small, NewDevice},
	} {
		if got := noveltyOf(seen, resolved(t, c.line, c.gpu, 1), 1, c.load); got != c.want {
			t.Errorf("%s on %s: %s is new, want %s", c.line, c.gpu, got, c.want)
		}
	}
	// Another generation of an engine is as another engine: no load of it was seen either.
	next := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	next.Generation = "0.22"
	if got := noveltyOf(seen, next, 1, small); got != SeveralNew {
		t.Errorf("of another generation: %s is new, want %s", got, SeveralNew)
	}
	if got := noveltyOf(nil, resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1), 1, small); got != nothingFound {
		t.Errorf("of no runs: %s", got)
	}
}

// TestCommonShare: errors that a study's configurations share are told from their own.
func TestCommonShare(t *testing.T) {
	var obs []Observation
	var held []Residual
	for i, off := range []float64{0.2, 0.21, 0.19, -0.3, -0.31, -0.29} {
		b := observed(string(rune('a'+i)), "x", "vllm", "", Load{})
		b.Study, b.Workload = []string{"one", "other"}[i/3], "w"
		obs = append(obs, b)
		held = append(held, Residual{ID: b.ID, Metric: Throughput, Measured: 100, Value: 100 * math.Exp(off)})
	}
	if got := commonShare(obs, held); got != 0.95 {
		t.Errorf("common errors: %v", got)
	}
	for i := range held {
		held[i].Value = 100 * math.Exp([]float64{0.2, -0.2}[i%2])
	}
	if got := commonShare(obs, held); got != 0 {
		t.Errorf("own errors: %v", got)
	}
	if got := commonShare(nil, nil); got != 0 {
		t.Errorf("none: %v", got)
	}
}
