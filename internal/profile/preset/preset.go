// Package preset has the latency bounds that benchmarks published, by name: those of MLPerf Inference's
// server scenarios.
//
//	p, err := preset.Find("llama2-70b")
//
// Absent: what a bound is applied to (package result), and the rules of whole benchmarks (package profile).
package preset

import (
	"fmt"
	"strings"
)

// Prefix is what the name of a preset begins with, before a colon.
const Prefix = "mlperf"

// Preset is the latency bounds of an MLPerf Inference server scenario, which
// MLPerf judges at the 99th percentile, in milliseconds; 0 where there is none.
type Preset struct {
	Name             string
	TTFT, TPOT, E2EL float64
}

// All are the server scenarios' targets in MLPerf's mlperf.conf.
func All() []Preset {
	return []Preset{
		{Name: "llama2-70b", TTFT: 2000, TPOT: 200},
		{Name: "llama2-70b-interactive", TTFT: 450, TPOT: 40},
		{Name: "mixtral-8x7b", TTFT: 2000, TPOT: 200},
		{Name: "llama3.1-405b", TTFT: 6000, TPOT: 175},
		{Name: "llama3.1-405b-interactive", TTFT: 4500, TPOT: 80},
		{Name: "llama3.1-8b", TTFT: 2000, TPOT: 100},
		{Name: "llama3.1-8b-interactive", TTFT: 500, TPOT: 30},
		{Name: "deepseek-r1", TTFT: 2000, TPOT: 80},
		{Name: "deepseek-r1-interactive", TTFT: 1500, TPOT: 15},
		{Name: "gpt-oss-120b", TTFT: 3000, TPOT: 80},
		{Name: "gpt-oss-120b-interactive", TTFT: 2000, TPOT: 15},
		{Name: "qwen3-vl", E2EL: 12000},
	}
}

// Names returns the names that --goodput and --slo take for sets of bounds:
// "mlperf:llama2-70b" and the like.
func Names() []string {
	var names []string
	for _, p := range All() {
		names = append(names, Prefix+":"+p.Name)
	}
	return names
}

// Find returns the preset of a name without its prefix.
func Find(name string) (Preset, error) {
	for _, p := range All() {
		if strings.EqualFold(p.Name, strings.TrimSpace(name)) {
			return p, nil
		}
	}
	return Preset{}, fmt.Errorf("no preset is named %q: use %s", name, strings.Join(Names(), ", "))
}
