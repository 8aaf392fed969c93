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
		{"1 x NVIDIA H100 80GB HBM3 on one node", []string{"h100-sxm"}},
		{"2 x NVIDIA H100 80GB HBM2e on 2 nodes", []string{"h100-pcie"}},
		{"NVIDIA A100-SXM4-80GB", []string{"a100-sxm-80"}},
		{"8 x NVIDIA A100-SXM4-40GB on one node", []string{"a100-sxm-40"}},
		{"NVIDIA A100-SXM4-80GB and NVIDIA H100 80GB HBM3", []string{"a100-sxm-80", "h100-sxm"}},
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

// Drivers' names of devices, by which parts of one model are told apart.
func TestNamed(t *testing.T) {
	for name, want := range map[string][]string{
		"NVIDIA H100 80GB HBM3":   {"h100-sxm"},
		"NVIDIA H100 PCIe":        {"h100-pcie"},
		"NVIDIA H100 80GB HBM2e":  {"h100-pcie"},
		"NVIDIA H100 NVL":         {"h100-nvl"},
		"NVIDIA H200":             {"h200"},
		"NVIDIA H200 NVL":         nil,
		"NVIDIA GH200 480GB":      {"gh200"},
		"NVIDIA GH200 144G HBM3e": {"gh200"}, // whose memory is another
		"NVIDIA A100-SXM4-80GB":   {"a100-sxm-80", "a100-sxm-40"},
		"NVIDIA A100 80GB PCIe":   {"a100-pcie-80"},
		"NVIDIA A100-PCIE-40GB":   {"a100-pcie-80"},
		"NVIDIA A800-SXM4-80GB":   {"a800-sxm-80"},
		"NVIDIA H800":             {"h800-sxm"},
		"NVIDIA H800 PCIe":        nil,
		"NVIDIA H20":              {"h20"},
		"NVIDIA B200":             {"b200"},
		"NVIDIA GB200":            nil,
		"NVIDIA GB10":             {"gb10"},
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": {"rtx-pro-6000"},
		"NVIDIA L40S":             {"l40s"},
		"NVIDIA L40":              {"l40"},
		"NVIDIA A10G":             nil,
		"NVIDIA GeForce RTX 4090": {"rtx-4090"},
		"AMD Instinct MI300X OAM": {"mi300x"},
		"Ascend 910B3":            {"ascend-910b"},
		"Ascend910B2C":            {"ascend-910b"},
		"Ascend910":               nil,
		"910A":                    nil,
		"Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz": {"xeon-8380"},
		"AMD EPYC 9654 96-Core Processor":              nil,
		"":                                             nil,
	} {
		var got []string
		for _, a := range Accelerators() {
			if a.Named(name) {
				got = append(got, a.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}
