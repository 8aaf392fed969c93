package arch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Listing is what is known, as a text within 100 columns: devices by maker, the fastest memory
// first, and models by publisher and name.
func Listing() string {
	var w strings.Builder
	devices := Accelerators()
	slices.SortStableFunc(devices, func(a, b Accelerator) int {
		return cmp.Or(cmp.Compare(rank(maker(a)), rank(maker(b))), cmp.Compare(b.BandwidthGBs, a.BandwidthGBs))
	})
	group := ""
	for _, a := range devices {
		if m := maker(a); m != group {
			group = m
			fmt.Fprintf(&w, "%-22s %12s %7s %6s\n", m+" accelerators", "bf16 TFLOP/s", "GiB", "GB/s")
		}
		fmt.Fprintf(&w, "  %-20s %12.1f %7.1f %6.0f  %s\n", a.Name, a.BF16TFLOPS, a.MemoryGiB, a.BandwidthGBs, strings.TrimPrefix(a.Title, group+" "))
	}
	models := Models()
	slices.SortStableFunc(models, func(a, b Model) int {
		return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name))
	})
	fmt.Fprintf(&w, "%-47s %12s %7s %9s  %s\n", "models", "parameters/B", "active", "tokens", "format")
	for _, m := range models {
		fmt.Fprintf(&w, "  %-45s %12.1f %7.1f %9d  %s\n", m.Name, float64(m.Params())/1e9, float64(m.Active())/1e9, m.MaxLen, m.Format)
	}
	return w.String()
}

func maker(a Accelerator) string { m, _, _ := strings.Cut(a.Title, " "); return m }

// rank puts the maker of the most devices first and the others in order of the alphabet.
func rank(maker string) string {
	if maker == "NVIDIA" {
		return ""
	}
	return maker
}
