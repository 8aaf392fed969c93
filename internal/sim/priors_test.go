package sim

import (
	"slices"
	"strings"
	"testing"

	"perflab/internal/arch"
)

// TestPriors: what is known of single engines, devices, formats and families beforehand is of
// constants and devices that there are, says how sure it is and where it is from.
func TestPriors(t *testing.T) {
	for _, s := range Priors().sets {
		if s.Source == "" || len(s.Values) == 0 {
			t.Errorf("a set without source or values: %+v", s)
		}
		if !slices.ContainsFunc(arch.Accelerators(), func(a arch.Accelerator) bool { return strings.HasPrefix(a.Name, s.Accelerator) }) {
			t.Errorf("no accelerator is called %s...", s.Accelerator)
		}
		for name, v := range s.Values {
			if _, ok := Priors().About(name); !ok || !(v > 0) || !(s.Spread[name] > 0) {
				t.Errorf("%s of %+v is %v, spread %v", name, s, v, s.Spread[name])
			}
		}
	}
	const own = 0.65 // of what nothing is known of
	for _, tt := range []struct {
		engine, accelerator string
		format              arch.Format
		want                float64
	}{
		{"vllm", "h100-sxm", arch.BF16, own}, {"vllm", "h100-pcie", arch.BF16, 0.54}, {"trtllm", "a100-sxm-80", arch.BF16, 0.7},
		{"vllm", "h200", arch.FP8, 0.49}, {"vllm", "h100-sxm", arch.FP8Block, 0.36}, {"sglang", "h100-sxm", arch.FP8Block, 0.45},
		{"trtllm", "h100-pcie", arch.FP8Block, 0.3}, {"sglang", "h100-pcie", arch.FP8Block, 0.38}, {"sglang", "h100-nvl", arch.FP8, 0.35},
		{"vllm", "a100-pcie-80", arch.FP8Block, 0.44}, {"vllm", "a100-pcie-80", arch.BF16, own}, {"vllm", "h20", arch.FP8, own},
	} {
		if v := Priors().Value(Subject{Engine: tt.engine, Accelerator: tt.accelerator, Format: tt.format}, "gemm_compute"); v != tt.want {
			t.Errorf("%+v: %v", tt, v)
		}
	}
}
