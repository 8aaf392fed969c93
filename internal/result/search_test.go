package result

import (
	"strings"
	"testing"

	"perflab/internal/gauge"
)

func TestSearch(t *testing.T) {
	for name, tt := range map[string]struct {
		s      Search
		gpus   int
		want   map[string]float64
		note   string
		beyond float64 // 0: not known
	}{
		"edge":        {Search{Axis: "rate", Load: 8, Missed: 8.5, Met: 2}, 4, map[string]float64{"goodput_rate": 8, "goodput_rate_per_gpu": 2}, "", 0.0625},
		"on a CPU":    {Search{Axis: "rate", Load: 8, Missed: 9, Met: 2}, 0, map[string]float64{"goodput_rate": 8}, "", 0.125},
		"concurrency": {Search{Axis: "concurrency", Load: 8, Missed: 10, Met: 2}, 4, map[string]float64{"goodput_concurrency": 8}, "", 0.25},
		"sessions":    {Search{Axis: "concurrency", Sessions: true, Load: 8, Missed: 10, Met: 2}, 4, map[string]float64{"agents_served": 8, "agents_served_per_gpu": 2, "goodput_concurrency": 8}, "", 0.25},
		"none":        {Search{Axis: "rate", Missed: 1, Text: "the lowest load misses already"}, 4, nil, "Workload w has no goodput_rate: the lowest load misses already.", 0},
		"at least":    {Search{Axis: "rate", Load: 64, Met: 2, AtLeast: true, Text: "upper limit reached"}, 1, map[string]float64{"goodput_rate": 64, "goodput_rate_per_gpu": 64}, "Workload w: goodput_rate is at least 64: upper limit reached.", 0},
		"once":        {Search{Axis: "rate", Load: 4, Missed: 5, Met: 1}, 1, map[string]float64{"goodput_rate": 4, "goodput_rate_per_gpu": 4}, "Workload w: the edge of goodput_rate was tested once.", 0.25},
	} {
		got := map[string]float64{}
		tt.s.AddFigures(got, tt.gpus)
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v", name, got)
		}
		for k, v := range tt.want {
			if got[k] != v {
				t.Errorf("%s: %s is %g, want %g", name, k, got[k], v)
			}
		}
		if note := tt.s.Note("w"); note != tt.note {
			t.Errorf("%s: %q", name, note)
		}
		if share, ok := tt.s.Uncertainty(); share != tt.beyond || ok != (tt.beyond > 0) {
			t.Errorf("%s: the edge may lie %g above, %v", name, share, ok)
		}
	}
}

// TestServed: agents are given per GPU and per kW where these are known.
func TestServed(t *testing.T) {
	figures := map[string]float64{"mean_gpu_power_w": 400, "gpus": 8}
	Search{Axis: "concurrency", Sessions: true, Load: 16}.AddFigures(figures, 8)
	if figures["agents_served_per_kw"] != 5 || Served(figures) != "2 per GPU, 5 per kW of the GPUs" {
		t.Errorf("%v: %s", figures, Served(figures))
	}
	if text := Served(map[string]float64{"agents_served": 3}); text != "" {
		t.Error(text)
	}
}

func TestNeeds(t *testing.T) {
	for name, want := range map[string]string{
		"total_token_throughput": "", "p99_ttft_ms": "", "cost_per_million_tokens": NeedPrice, "energy_per_token_j": gauge.SourceGPU,
		"output_tokens_per_s_per_w": gauge.SourceGPU, "mean_gpu_power_w": gauge.SourceGPU, "gpus": gauge.SourceGPU, "throttled_ratio": gauge.SourceGPU,
		"mean_host_cpu": gauge.SourceHost, "max_kv_usage": gauge.SourceEngine, "preemptions": gauge.SourceEngine, "goodput_ratio": "",
		"output_throughput_per_gpu": NeedGPUs, "goodput_rate": NeedSearch, "goodput_concurrency": NeedSearch, "goodput_rate_per_gpu": NeedGPUs + " " + NeedSearch,
		"agents_served": NeedSearch, "agents_served_per_gpu": NeedGPUs + " " + NeedSearch, "agents_served_per_kw": NeedSearch + " " + gauge.SourceGPU,
	} {
		m, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(m.Needs(), " "); got != want {
			t.Errorf("%s needs %q, want %q", name, got, want)
		}
	}
}

// A run of a known number of GPUs has each throughput per GPU, one of an unknown none.
func TestPerGPU(t *testing.T) {
	for _, gpus := range []int{0, 4} {
		s := summarize(t, Header{Rate: 100}, Options{GPUs: gpus}, steady(50, 10*msec))
		for _, m := range gpuScalars() {
			of := strings.TrimSuffix(m.Name, perGPU)
			v, ok := s.Figures[m.Name]
			if want := gpus > 0 && of != goodputRate && of != AgentsServed; ok != want || ok && v != s.Figures[of]/4 {
				t.Errorf("of %d GPUs: %s is %g, %v", gpus, m.Name, v, ok)
			}
		}
	}
}
