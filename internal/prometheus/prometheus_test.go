package prometheus

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const page = `# HELP vllm:num_requests_running Number of requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \"b\" } c"} 3.0
vllm:num_requests_running{engine="1",model_name="a \"b\" } c"} 4.0
vllm:num_preemptions_total{engine="0"} 2 1700000000000
vllm:time_to_first_token_seconds_bucket{le="0.1"} 5
vllm:kv_cache_usage_perc{engine="0"} NaN
vllm:broken{engine="0} 1
vllm:nothing
vllm:tab	6
vllm:tab_behind_labels{engine = "0" , }	7	1700000000000
vllm:blanks  	 {engine="0"}  	8
vllm:lines{text="a\nb\\n"} +Inf
process_open_fds{} 12` + "\r\n"

func TestParse(t *testing.T) {
	zero := map[string]string{"engine": "0"}
	want := []Sample{
		{"vllm:num_requests_running", map[string]string{"engine": "0", "model_name": `a "b" } c`}, 3},
		{"vllm:num_requests_running", map[string]string{"engine": "1", "model_name": `a "b" } c`}, 4},
		{"vllm:num_preemptions_total", zero, 2},
		{"vllm:kv_cache_usage_perc", zero, math.NaN()},
		{"vllm:tab", nil, 6},
		{"vllm:tab_behind_labels", zero, 7},
		{"vllm:blanks", zero, 8},
		{"vllm:lines", map[string]string{"text": "a\nb\\n"}, math.Inf(1)},
		{"process_open_fds", nil, 12},
	}
	got := Parse(page, func(name string) bool { return !strings.HasSuffix(name, "_bucket") })
	if d := cmp.Diff(want, got, cmpopts.EquateNaNs()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

func TestParseIsBounded(t *testing.T) {
	if got := Parse(strings.Repeat("a 1\n", maxSamples+5), nil); len(got) != maxSamples {
		t.Errorf("%d samples", len(got))
	}
}

// FuzzParse: what is read has a name, and is read again from how it is written.
func FuzzParse(f *testing.F) {
	for line := range strings.Lines(page) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range Parse(text, nil) {
			if s.Name == "" || strings.ContainsAny(s.Name, " \t\n{") || s.Name[0] == '#' {
				t.Errorf("%q gives %+v", text, s)
			}
			again := Parse(s.Name+"\t1", nil)
			if d := cmp.Diff([]Sample{{Name: s.Name, Value: 1}}, again); d != "" {
				t.Errorf("%q: %s", s.Name, d)
			}
		}
	})
}
