package hardware

import (
	"slices"
	"strings"
	"testing"
)

// What a tool does not tell is missing, and a device divided by MIG stands for its parts.
func TestFound(t *testing.T) {
	found, err := ParseNVIDIA("0, GPU-a0, NVIDIA GB10, [N/A], 580.95.05, 3003, [N/A], [N/A], [N/A]\n" +
		"1, GPU-a1, NVIDIA A100-SXM4-80GB, 81920, 580.95.05, 1410, 300.00, 400.00, Enabled\n")
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, want := range []string{"driver 580.95.05, SM clock up to 3003 MHz", "80.0 GiB, driver 580.95.05, SM clock up to 1410 MHz, power cap 300 W, where 400 W is usual, divided by MIG"} {
		if got := found[i].Details(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	picked, missing := Pick(found, []string{"1", "GPU-a0", "MIG-77", "2", "GPU-b"})
	var names []int
	for _, f := range picked {
		names = append(names, f.Index)
	}
	if !slices.Equal(names, []int{1, 0, 1}) || !slices.Equal(missing, []string{"2", "GPU-b"}) {
		t.Errorf("picked %v, missing %q", names, missing)
	}
	for _, text := range []string{"Failed to initialize NVML: Driver/library version mismatch\n", "0, GPU-a0\n", "x, GPU-a0, N, 1, 1, 1, 1, 1, 1\n"} {
		if found, err := ParseNVIDIA(text); err == nil {
			t.Errorf("%q is %+v", text, found)
		}
	}
	holders, err := ParseNVIDIAHolders("GPU-a0, 41, python3, 70000\nGPU-a0, 42, [Not Found], [N/A]\nGPU-a0, [N/A], [N/A], 5\n")
	if err != nil || len(holders) != 2 || holders[1].Text() != "process 42 holds memory of device GPU-a0" {
		t.Errorf("%+v, %v", holders, err)
	}
	if holders, err := ParseNVIDIAHolders(""); err != nil || holders != nil {
		t.Errorf("of nobody %+v, %v", holders, err)
	}
	if _, _, err := ParseAMD("rocm-smi: driver not initialized"); err == nil {
		t.Error("no JSON is read")
	}
}

// No text makes a reader panic, or gives figures that no device has.
func FuzzFound(f *testing.F) {
	f.Add("0, GPU-a0, NVIDIA GB10, [N/A], 580.95.05, 3003, [N/A], [N/A], [N/A]\n")
	f.Add("GPU-a0, 41, python3, 70000\n")
	f.Add(`{"card0": {"Card Series": "AMD", "VRAM Total Memory (B)": "206141652992"}, "system": {"PID77": "python3, 1, 2147483648, 0, 0"}}`)
	f.Add("processor\t: 0\nmodel name\t: AMD EPYC 9654\nMemTotal:       16777216 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		nvidia, _ := ParseNVIDIA(text)
		amd, holders, _ := ParseAMD(text)
		more, _ := ParseNVIDIAHolders(text)
		for _, d := range append(nvidia, amd...) {
			if !(d.MemoryMiB >= 0 && d.ClockMHz >= 0 && d.PowerW >= 0) || strings.Contains(d.Details(), "NaN") {
				t.Errorf("%+v", d)
			}
		}
		for _, h := range append(holders, more...) {
			if !(h.MiB >= 0) {
				t.Errorf("%+v", h)
			}
		}
		if name, whole := ParseHost(text); !strings.HasPrefix(whole, name) {
			t.Errorf("%q is no part of %q", name, whole)
		}
	})
}
