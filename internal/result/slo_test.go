package result

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSLO(t *testing.T) {
	for _, test := range []struct {
		text string
		want SLO
		bad  string // part of the error
	}{
		{"p99_ttft_ms <= 500", SLO{"p99_ttft_ms", "<=", 500}, ""},
		{"p99_ttft<500ms", SLO{"p99_ttft_ms", "<=", 500}, ""},
		{"p99_ttft < 0.5 s", SLO{"p99_ttft_ms", "<=", 500}, ""},
		{"duration<=1500ms", SLO{"duration", "<=", 1.5}, ""},
		{"success_rate >= 0.99", SLO{"success_rate", ">=", 0.99}, ""},
		{"success_rate > 50 %", SLO{"success_rate", ">=", 0.5}, ""},
		{"total_throughput>=2000", SLO{"total_token_throughput", ">=", 2000}, ""},
		{"mean_latency <= 3s", SLO{"mean_e2el_ms", "<=", 3000}, ""},
		{"total_throughput >= 2000 tok/s", SLO{"total_token_throughput", ">=", 2000}, ""},
		{"request_throughput >= 1.5req/s", SLO{"request_throughput", ">=", 1.5}, ""},
		{"completed >= 100 requests", SLO{"completed", ">=", 100}, ""},
		{"duration <= 90s", SLO{"duration", "<=", 90}, ""},
		{"output_throughput >= 5 req/s", SLO{}, "the metric is in tok/s"},
		{"p99_ttft_ms = 500", SLO{}, "has no bound"},
		{"p99_tftt_ms <= 500", SLO{}, "did you mean p99_ttft_ms?"},
		{"ttft_ms <= 500", SLO{}, "needs a statistic"},
		{"p99_ttft_ms <= fast", SLO{}, "not a number"},
		{"p99_ttft_ms <= ", SLO{}, "not a number"},
		{"p99_ttft_ms <= NaN", SLO{}, "not finite"},
		{"p99_ttft_ms <= inf", SLO{}, "not finite"},
		{"p99_ttft_ms <= 5%", SLO{}, "the metric is in ms"},
		{"output_throughput >= 5s", SLO{}, "the metric is in tok/s"},
		{"success_rate => 1", SLO{}, "unknown metric"},
	} {
		got, err := ParseSLO(test.text)
		if test.bad != "" {
			if err == nil || !strings.Contains(err.Error(), test.bad) {
				t.Errorf("ParseSLO(%q): %v, want it to say %q", test.text, err, test.bad)
			}
			continue
		}
		if err != nil || got != test.want {
			t.Errorf("ParseSLO(%q) = %v, %v; want %v", test.text, got, err, test.want)
		}
	}
}

func FuzzParseSLO(f *testing.F) {
	for _, s := range []string{"p99_ttft_ms <= 500", "p99.9_itl<0.5s", "success_rate>=99%", "duration <= 1e300s", "a<>=b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		slo, err := ParseSLO(s)
		if err != nil {
			return
		}
		again, err := ParseSLO(slo.String())
		if err != nil || again != slo {
			t.Fatalf("%q is %v, which reads back as %v, %v", s, slo, again, err)
		}
	})
}

func TestParseGoodput(t *testing.T) {
	got, err := ParseGoodput("ttft:500 tpot:50,e2el:3s")
	if err != nil {
		t.Fatal(err)
	}
	want := []SLO{{"ttft_ms", "<=", 500}, {"tpot_ms", "<=", 50}, {"e2el_ms", "<=", 3000}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for text, bad := range map[string]string{
		"ttft=500": "write it as", "itl:5": "a call has ttft", "ttft:-1": "above 0", "ttft:x": "not a number", "": "has no bound",
	} {
		if _, err := ParseGoodput(text); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("ParseGoodput(%q): %v, want it to say %q", text, err, bad)
		}
	}
}

func TestJudge(t *testing.T) {
	s := Summary{Figures: map[string]float64{"p97_ttft_ms": 400, "p98_ttft_ms": 410, "p99_ttft_ms": 500, "p99.9_ttft_ms": 600, "p99_itl_ms": 20, "success_rate": 0.98}}
	for _, test := range []struct {
		slo  string
		met  bool
		text string
	}{
		{"p99_ttft_ms <= 500", false, "p99_ttft_ms <= 500: missed, 500 ms of the calls that succeeded, but 2 % of all calls failed and a call that fails never ends"},
		{"p98_ttft_ms <= 409", false, "p98_ttft_ms <= 409: missed, at least 600 ms over all calls (2 % of all calls failed)"},
		{"success_rate >= 99%", false, "success_rate >= 0.99: missed, 0.98"},
		{"success_rate >= 98%", true, "success_rate >= 0.98: met, 0.98"},
		{"p99_tpot_ms <= 1000", false, "p99_tpot_ms <= 1000: missed, the run has no such figure"},
		{"p97_ttft_ms <= 500", true, "p97_ttft_ms <= 500: met, between 410 ms and 500 ms over all calls (2 % of all calls failed; 400 ms of the calls that succeeded)"},
		{"p98_ttft_ms <= 500", false, "p98_ttft_ms <= 500: missed, at least 600 ms over all calls (2 % of all calls failed)"},
		{"p99.9_ttft_ms <= 5000", false, "p99.9_ttft_ms <= 5000: missed, 600 ms of the calls that succeeded, but 2 % of all calls failed and a call that fails never ends"},
		{"p99_itl_ms <= 50", true, "p99_itl_ms <= 50: met, 20 ms"}, // a gap is no call
		{"mean_ttft_ms >= 0", false, "mean_ttft_ms >= 0: missed, the run has no such figure"},
	} {
		slo, err := ParseSLO(test.slo)
		if err != nil {
			t.Fatal(err)
		}
		if met, text := slo.Judge(s); met != test.met || text != test.text {
			t.Errorf("%s: %v %q, want %v %q", test.slo, met, text, test.met, test.text)
		}
	}
	if met, _ := (SLO{Metric: "nonsense", Op: "<="}).Judge(s); met {
		t.Error("a bound on an unknown metric is met")
	}
}

func TestSLOText(t *testing.T) {
	want := []SLO{{"p99.9_ttft_ms", "<=", 0.1}, {"success_rate", ">=", 0.99}}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != `["p99.9_ttft_ms \u003c= 0.1","success_rate \u003e= 0.99"]` {
		t.Errorf("written as %s", b)
	}
	var got []SLO
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-written +read\n%s", diff)
	}
}
