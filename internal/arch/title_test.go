package arch

import (
	"slices"
	"testing"
)

func TestAcceleratorsIn(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"8 Ã— NVIDIA A100 SXM 80GB GPUs on a single node.", []string{"a100-sxm-80"}},
		{"8 x NVIDIA A100 SXM 80 GB on one node", []string{"a100-sxm-80"}},
		{"1 x NVIDIA A100 SXM 40GB", []string{"a100-sxm-40"}},
		{"NVIDIA H200", []string{"h200"}},
		{"NVIDIA H100 GPUs", []string{"h100-sxm", "h100-pcie", "h100-nvl"}},
		{"NVIDIA H100 PCIe", []string{"h100-pcie"}},
		{"2 x NVIDIA H100 SXM on one node", []string{"h100-sxm"}},
		{"4 DGX Spark nodes", []string{"gb10"}},
		{"NVIDIA GB10", []string{"gb10"}},
		{"RTX 4090", []string{"rtx-4090"}},
		{"a100-sxm-40", []string{"a100-sxm-40"}},
		{"H200 and A100 SXM 80GB", []string{"a100-sxm-80", "h200"}},
		{"an abacus", nil},
		{"", nil},
	} {
		var got []string
		for _, a := range AcceleratorsIn(c.text) {
			got = append(got, a.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q means %q, want %q", c.text, got, c.want)
		}
	}
	for _, a := range Accelerators() {
		if got := AcceleratorsIn("4 x " + a.Title + " on one node"); len(got) != 1 || got[0].Name != a.Name {
			t.Errorf("%s is read as %v", a.Title, got)
		}
	}
}
