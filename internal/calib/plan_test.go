package calib

import (
	"reflect"
	"testing"
)

// TestEach: a question has the same answer whoever does its work, and one whose work is left
// out ends without a word.
func TestEach(t *testing.T) {
	c, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	q := Question{
		Config: resolved(t, "vllm serve Qwen/Qwen3-14B", "l40s", 1), Draws: 4,
		Load: Load{Requests: 40, Input: Lengths{Mean: 400}, Output: Lengths{Mean: 20}},
	}
	type answers struct {
		Prediction
		hinges []Hinge
		plan   Plan
	}
	ask := func(e Each) (a answers) {
		t.Helper()
		q.Each = e
		errs := make([]error, 3)
		a.Prediction, errs[0] = c.Predict(q)
		a.hinges, errs[1] = c.Hinges(q, Throughput)
		a.plan, errs[2] = c.Plan(q.Config, 1, FitOptions{Each: e})
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	one, two := ask(nil), ask(onTwo)
	if len(one.hinges) == 0 || len(one.plan.Steps) == 0 || !reflect.DeepEqual(one, two) {
		t.Errorf("alone %+v, on two cores %+v", one, two)
	}
	ask(func(int, func(int)) {})
}

// TestHinges: a burst of long prompts hangs on the arithmetic, single short requests do
// not; no more than three constants are named, the one that moves most first.
func TestHinges(t *testing.T) {
	c, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B", "a100-sxm-80", 1)
	name := func(l Load) string {
		h, err := c.Hinges(Question{Config: cfg, Load: l}, Throughput)
		if err != nil || len(h) == 0 || len(h) > 3 {
			t.Fatalf("%+v, %v", h, err)
		}
		for i := range h[1:] {
			if h[i].Moves*h[i].Moves < h[i+1].Moves*h[i+1].Moves {
				t.Errorf("not in order: %+v", h)
			}
		}
		for _, x := range h {
			if x.Name == "gemm_compute" {
				return x.Name
			}
		}
		return h[0].Name
	}
	if got := name(Load{Requests: 40, Input: Lengths{Mean: 4000}, Output: Lengths{Mean: 4}}); got != "gemm_compute" {
		t.Errorf("long prompts hang on %s", got)
	}
	if got := name(Load{Requests: 4, Concurrency: 1, Input: Lengths{Mean: 20}, Output: Lengths{Mean: 200}}); got == "gemm_compute" {
		t.Errorf("single requests hang on %s", got)
	}
}

// TestPlan: three different runs, each of which leaves less in doubt than before, and none
// that the engine would refuse.
func TestPlan(t *testing.T) {
	c, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	cfg := resolved(t, "vllm serve Qwen/Qwen3-14B --max-model-len 8192", "l40s", 1)
	p, err := c.Plan(cfg, 1, FitOptions{Each: onTwo})
	if err != nil {
		t.Fatal(err)
	}
	left, seen := p.Before, map[string]bool{}
	for _, s := range p.Steps {
		if !(s.Left < left) || !(s.Seconds > 0) || seen[s.Title] || s.Load.Input.Mean > 8192 {
			t.Errorf("%+v after %v", s, left)
		}
		left, seen[s.Title] = s.Left, true
	}
	if len(p.Steps) != 3 || left > 0.6*p.Before {
		t.Errorf("%+v", p)
	}
}
