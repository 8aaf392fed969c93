package capacity_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"perflab/internal/capacity"
	"perflab/internal/field"
)

func ask() capacity.Ask {
	return capacity.Ask{Model: "Qwen/Qwen3-8B", GPU: "h100-sxm", GPUs: 2, Engine: "vllm", Input: 512, Output: 64, SLO: "p99_ttft_ms <= 500"}
}

func TestPredict(t *testing.T) {
	a, err := capacity.Predict(t.Context(), ask())
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Options) != 2 {
		t.Fatalf("%d options of 2 GPUs, want tp 1 and 2", len(a.Options))
	}
	for _, o := range a.Options {
		if o.Saturated == nil || o.Alone == nil || o.AtSLO == nil || o.Memory == nil || len(o.Rows) != 6 {
			t.Fatalf("%s: %d rows, saturated %t, alone %t, at the SLO %t", o.Label, len(o.Rows), o.Saturated != nil, o.Alone != nil, o.AtSLO != nil)
		}
		full, slo := o.Saturated.Figures[capacity.Throughput], o.AtSLO.Figures[capacity.Throughput]
		if full.Low == nil || *full.Low > full.Value || full.Value > *full.High || slo.Value > full.Value*1.05 {
			t.Errorf("%s: saturated %v [%v, %v], at the SLO %v", o.Label, full.Value, full.Low, full.High, slo.Value)
		}
		if o.Alone.Figures[capacity.MeanTPOT].Value >= o.Saturated.Figures[capacity.MeanTPOT].Value || o.AtSLO.Figures[capacity.P99TTFT].Value > 500 {
			t.Errorf("%s: TPOT alone %v, saturated %v, P99 TTFT at the SLO %v", o.Label, o.Alone.Figures[capacity.MeanTPOT].Value, o.Saturated.Figures[capacity.MeanTPOT].Value, o.AtSLO.Figures[capacity.P99TTFT].Value)
		}
	}
	if a.Options[0].Saturated.Figures[capacity.Throughput].Value < a.Options[1].Saturated.Figures[capacity.Throughput].Value {
		t.Error("the better option is not the first")
	}
}

// TestRefused: what does not fit is an answer with the reason.
func TestRefused(t *testing.T) {
	a := ask()
	a.Model, a.GPUs, a.SLO = "meta-llama/Llama-3.1-70B-Instruct", 1, ""
	out, err := capacity.Predict(t.Context(), a)
	if err != nil || len(out.Options) != 1 || out.Options[0].Refused == "" || out.Options[0].Saturated != nil {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestCheck(t *testing.T) {
	for path, change := range map[string]func(*capacity.Ask){
		"model":  func(a *capacity.Ask) { a.Model = "nobody/knows-this" },
		"gpu":    func(a *capacity.Ask) { a.GPU = "h100-sxn" },
		"gpus":   func(a *capacity.Ask) { a.GPUs = 0 },
		"tp":     func(a *capacity.Ask) { a.TP = 3 },
		"engine": func(a *capacity.Ask) { a.Engine = "vlm" },
		"input":  func(a *capacity.Ask) { a.Input = -1 },
		"output": func(a *capacity.Ask) { a.Output = 1 << 20 },
		"slo":    func(a *capacity.Ask) { a.SLO = "p99_tfft <= 3" },
		"config": func(a *capacity.Ask) { a.Config = "{" },
	} {
		a := ask()
		change(&a)
		e, ok := errors.AsType[*field.Error](a.Check())
		if !ok || !strings.HasPrefix(e.Error(), path) {
			t.Errorf("%s: %v", path, a.Check())
		}
	}
	if err := ask().Check(); err != nil {
		t.Error(err)
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := capacity.Predict(ctx, ask()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
