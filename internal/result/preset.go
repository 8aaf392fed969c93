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

func presetOf(name string) (preset, error) {
	for _, p := range presets() {
		if strings.EqualFold(p.name, strings.TrimSpace(name)) {
			return p, nil
		}
	}
	return preset{}, fmt.Errorf("no preset is named %q: use %s", name, strings.Join(Presets(), ", "))
}

// bounds returns the preset's bounds on a statistic ("p99_"), or on each call
// ("").
func (p preset) bounds(stat string) []SLO {
	var slos []SLO
	for _, b := range []struct {
		family string
		limit  float64
	}{{"ttft", p.ttft}, {"tpot", p.tpot}, {"e2el", p.e2el}} {
		if b.limit > 0 {
			slos = append(slos, SLO{Metric: stat + b.family + "_ms", Op: "<=", Limit: b.limit})
		}
	}
	return slos
}

// list writes bounds as one reads them out.
func list(slos []SLO) string {
	var texts []string
	for _, o := range slos {
		texts = append(texts, o.String())
	}
	return strings.Join(texts, " and ")
}

// ParseSLOs parses one bound as ParseSLO does, or a preset, which stands for
// its bounds at the 99th percentile: mlperf:llama2-70b-interactive is
// p99_ttft_ms <= 450 and p99_tpot_ms <= 40.
func ParseSLOs(s string) ([]SLO, error) {
	name, ok := strings.CutPrefix(strings.TrimSpace(s), presetPrefix+":")
	if !ok {
		slo, err := ParseSLO(s)
		if err != nil {
			return nil, err
		}
		return []SLO{slo}, nil
	}
	p, err := presetOf(name)
	if err != nil {
		return nil, fmt.Errorf("SLO %q: %w", s, err)
	}
	return p.bounds("p99_"), nil
}
