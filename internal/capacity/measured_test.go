package capacity_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"perflab/internal/capacity"
	"perflab/internal/store"
	"perflab/internal/store/scan"
)

// index is a list of runs.
type index []store.Entry

func (x index) List(_ context.Context, q store.Query) (store.Page, error) {
	all := x[min(q.Offset, len(x)):]
	return store.Page{Entries: all[:min(len(all), q.Limit)], Total: len(x)}, nil
}

// run is a run of Qwen3-8B on one H100.
func run(id string, throughput, ttft float64) store.Entry {
	e := store.Entry{Facts: scan.Facts{ID: id, Kind: scan.Run, Name: id, State: scan.Finished, Verdict: "sound", Model: "Qwen/Qwen3-8B", Engine: "vllm", Hardware: "1 x NVIDIA H100 SXM on one node",
		GPUs: 1, Command: "vllm serve Qwen/Qwen3-8B", Limit: 64, Requests: 256}, Figures: map[string]scan.Figure{}}
	for name, v := range map[string]float64{capacity.Throughput: throughput, capacity.P99TTFT: ttft, capacity.MeanTTFT: ttft / 2, capacity.MeanTPOT: 10, "completed": 256, "total_input_tokens": 256 * 512, "total_output_tokens": 256 * 128} {
		e.Figures[name] = scan.Figure{Metric: name, Value: v}
	}
	return e
}

func TestMeasured(t *testing.T) {
	void, simulated, predicted, foreign, other, running := run("void", 9000, 1), run("simulated", 8000, 100), run("predicted", 9500, 100), run("foreign", 3000, 100), run("other", 5000, 100), run("running", 9999, 1)
	void.Verdict, simulated.Simulated, foreign.Imported, other.Hardware, running.State = "void", true, "vllm bench serve", "NVIDIA H100", scan.Running
	predicted.Simulated, predicted.Predicted = true, true
	none := run("none", 0, 0)
	none.Model, none.Figures = "nothing/answered", nil
	s := index{run("fast", 4000, 900), run("slow", 2000, 200), void, predicted, simulated, foreign, other, running, none}
	cases, err := capacity.Measured(t.Context(), s, "", "p99_ttft_ms <= 500")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, c := range cases {
		order = append(order, c.Best.ID)
	}
	if got := strings.Join(order, " "); got != "other fast foreign simulated predicted" {
		t.Fatalf("the order is %s", got)
	}
	c := cases[1]
	if c.Runs != 3 || c.Voided != 1 || c.GPU != "h100-sxm" || c.AtSLO == nil || c.AtSLO.ID != "slow" || !c.Measured() || cases[3].Measured() {
		t.Errorf("%d runs, %d void, on %s, at the SLO %v", c.Runs, c.Voided, c.GPU, c.AtSLO)
	}
	if cases[0].GPU != "" {
		t.Errorf("words that leave open which H100 it was are %s", cases[0].GPU)
	}
}

func TestHold(t *testing.T) {
	e := run("fast", 4000, 900)
	c, err := capacity.Hold(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	p := c.Row.Figures[capacity.Throughput]
	if off := c.Off[capacity.Throughput]; p.Low == nil || math.Abs(off-(p.Value/4000-1)) > 1e-12 || c.Row.Concurrency != 64 {
		t.Errorf("predicted %v, off by %v, %d in flight", p, off, c.Row.Concurrency)
	}
	if _, ok := c.Off["request_throughput"]; ok {
		t.Error("a figure that the run does not have has a distance")
	}
	for says, change := range map[string]func(*store.Entry){
		"serving command": func(e *store.Entry) { e.Command = "" },
		"hardware":        func(e *store.Entry) { e.Hardware = "NVIDIA H100" },
		"not named":       func(e *store.Entry) { e.Hardware = "" },
		"unknown model":   func(e *store.Entry) { e.Command = "vllm serve nobody/knows" },
		"how long":        func(e *store.Entry) { e.Figures = nil },
	} {
		x := run("x", 1, 1)
		change(&x)
		if _, err := capacity.Hold(t.Context(), x); !errors.Is(err, capacity.ErrUnknown) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	big := run("big", 10, 10)
	big.Command = "vllm serve meta-llama/Llama-3.1-70B-Instruct"
	if c, err := capacity.Hold(t.Context(), big); err != nil || c.Refused == "" {
		t.Errorf("what does not fit: %+v, %v", c, err)
	}
}
