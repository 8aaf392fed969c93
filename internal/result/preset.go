package result

import (
	"fmt"
	"strings"
)

// presetPrefix is what the name of a preset begins with, before a colon.
const presetPrefix = "mlperf"

// preset is the latency bounds of an MLPerf Inference server scenario, which
// MLPerf judges at the 99th percentile; 0 where there is none.
type preset struct {
	name       string
	ttft, tpot float64 // ms
	e2el       float64 // ms
}

// presets are the server scenarios' targets in MLPerf's mlperf.conf.
func presets() []preset {
	return []preset{
		{name: "llama2-70b", ttft: 2000, tpot: 200},
		{name: "llama2-70b-interactive", ttft: 450, tpot: 40},
		{name: "mixtral-8x7b", ttft: 2000, tpot: 200},
		{name: "llama3.1-405b", ttft: 6000, tpot: 175},
		{name: "llama3.1-405b-interactive", ttft: 4500, tpot: 80},
		{name: "llama3.1-8b", ttft: 2000, tpot: 100},
		{name: "llama3.1-8b-interactive", ttft: 500, tpot: 30},
		{name: "deepseek-r1", ttft: 2000, tpot: 80},
		{name: "deepseek-r1-interactive", ttft: 1500, tpot: 15},
		{name: "gpt-oss-120b", ttft: 3000, tpot: 80},
		{name: "gpt-oss-120b-interactive", ttft: 2000, tpot: 15},
		{name: "qwen3-vl", e2el: 12000},
	}
}

// Presets returns the names that ParseGoodput and ParseSLOs take for sets of
// bounds: "mlperf:llama2-70b" and the like.
func Presets() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, presetPrefix+":"+p.name)
	}
	return names
}

func findPreset(name string) (preset, error) {
	for _, p := range presets() {
		if strings.EqualFold(p.name, strings.TrimSpace(name)) {
			return p, nil
		}
	}
	return preset{}, fmt.Errorf("no preset is named %q: use %s", name, strings.Join(Presets(), ", "))
}
