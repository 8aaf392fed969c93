package result

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/profile/preset"
)

func TestPresets(t *testing.T) {
	good, err := ParseGoodput("mlperf:llama3.1-8b,e2el:9000")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]SLO{{"ttft_ms", "<=", 2000}, {"tpot_ms", "<=", 100}, {"e2el_ms", "<=", 9000}}, good); diff != "" {
		t.Errorf("goodput: -want +got\n%s", diff)
	}
	slos, err := ParseSLOs(" mlperf:llama2-70b-interactive ")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]SLO{{"p99_ttft_ms", "<=", 450}, {"p99_tpot_ms", "<=", 40}}, slos); diff != "" {
		t.Errorf("SLOs: -want +got\n%s", diff)
	}
	if slos, err := ParseSLOs("p90_ttft < 1s"); err != nil || len(slos) != 1 || slos[0].Limit != 1000 {
		t.Errorf("one bound: %v, %v", slos, err)
	}
	for _, name := range preset.Names() {
		slos, err := ParseSLOs(name)
		if err != nil || len(slos) == 0 {
			t.Errorf("%s: %v, %v", name, slos, err)
		}
		for _, o := range slos {
			if again, err := ParseSLO(o.String()); err != nil || again != o {
				t.Errorf("%s: %s reads as %v, %v", name, o, again, err)
			}
		}
		if _, err := ParseGoodput(name); err != nil {
			t.Errorf("goodput %s: %v", name, err)
		}
	}
	if slos, _ := ParseSLOs("mlperf:qwen3-vl"); len(slos) != 1 || slos[0].Metric != "p99_e2el_ms" {
		t.Errorf("qwen3-vl is judged by %v", slos)
	}
}

func TestPresetErrors(t *testing.T) {
	_, slos := ParseSLOs("mlperf:gpt2")
	_, goodput := ParseGoodput("mlperf:gpt2")
	_, one := ParseSLO("mlperf:llama2-70b")
	for want, err := range map[string]error{
		`no preset is named "gpt2": use mlperf:llama2-70b, `: slos,
		`goodput bound "mlperf:gpt2": no preset is named`:    goodput,
		"write p99_ttft_ms <= 2000 and p99_tpot_ms <= 200":   one,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it to say %s", err, want)
		}
	}
}
