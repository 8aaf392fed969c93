package study

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// TestSweep: a workload with several loads is as many workloads, each with requests of its own, and a race is
// judged by all of them together.
func TestSweep(t *testing.T) {
	text := strings.NewReplacer("strategy: staged\n", "", "num_prompts: 10}", "title: Chat, num_prompts: 300, sweep: \"concurrency=1,8,32\"}\n  - {name: b, dataset_name: random, num_prompts: 40, sweep: \"rate=2..8x2\"}").Replace(small)
	s, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	seeds := map[uint64]bool{}
	for _, w := range s.Workloads {
		spec := s.WorkloadSpec(w.Name, 0)
		seeds[spec.Seed] = true
		of, _ := w.Swept()
		got = append(got, fmt.Sprintf("%s of %s (%s): %d at %v, %d requests", w.Name, of.Of, w.Title, spec.MaxConcurrency, spec.Rate, spec.NumPrompts))
	}
	want := []string{
		"a-concurrency-1 of a (Chat, 1 in flight): 1 at inf, 300 requests", "a-concurrency-8 of a (Chat, 8 in flight): 8 at inf, 300 requests", "a-concurrency-32 of a (Chat, 32 in flight): 32 at inf, 300 requests",
		"b-rate-2 of b (b, 2 requests/s): 0 at 2, 40 requests", "b-rate-4 of b (b, 4 requests/s): 0 at 4, 40 requests", "b-rate-8 of b (b, 8 requests/s): 0 at 8, 40 requests",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(seeds) != len(want) {
		t.Errorf("%d seeds\n%s", len(seeds), strings.Join(got, "\n"))
	}
	one := map[string]float64{"a-concurrency-1": 1, "a-concurrency-8": 1, "a-concurrency-32": 1}
	if !maps.Equal(s.Goal.Weights, one) {
		t.Errorf("the loads of the first workload weigh %v", s.Goal.Weights)
	}
	weighed := strings.Replace(text, "metric: total_token_throughput", "metric: total_token_throughput, weights: {a: 3, b: 6}", 1)
	if s, err = Parse("t.yaml", []byte(weighed)); err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(one)
	for _, name := range []string{"b-rate-2", "b-rate-4", "b-rate-8"} {
		all[name] = 2
	}
	if !maps.Equal(s.Goal.Weights, all) {
		t.Errorf("weights %v", s.Goal.Weights)
	}
	plain, err := Parse("t.yaml", []byte(strings.Replace(small, "strategy: staged\n", "", 1)))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := plain.Fingerprint()
	b, _ := s.Fingerprint()
	if a == b || len(plain.Goal.Weights) > 0 {
		t.Errorf("fingerprints %s and %s, weights %v", a, b, plain.Goal.Weights)
	}
}

// TestSweepOfOthers: strategies that judge by the first workload judge by the first load, and those that measure
// one workload measure that load.
func TestSweepOfOthers(t *testing.T) {
	text := strings.Replace(small, "num_prompts: 10}", `num_prompts: 300, sweep: "concurrency=4,8"}`, 1)
	s, err := Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.WorkloadNames(), " "); got != "a-concurrency-4 a-concurrency-8" || len(s.Goal.Weights) > 0 {
		t.Errorf("staged: %s, weights %v", got, s.Goal.Weights)
	}
	if s, err = ParseAs("t.yaml", []byte(text+"budget: {trials: 20}\n"), TPE); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.WorkloadNames(), " "); got != "a" || s.WorkloadSpec("a", 0).MaxConcurrency != 4 {
		t.Errorf("tpe: %s, %+v", got, s.WorkloadSpec("a", 0))
	}
}

func TestSweepErrors(t *testing.T) {
	good := strings.Replace(small, "num_prompts: 10}", `num_prompts: 300, sweep: "concurrency=4,8"}`, 1)
	if _, err := Parse("t.yaml", []byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ old, new, want string }{
		{"concurrency=4,8", "concurrency=8,4", `sweep of workload a: the values of a sweep ascend: 4 comes after 8`},
		{"concurrency=4,8", "load=4,8", `"load" cannot be swept`},
		{"concurrency=4,8", "rate=auto", "the loads of rate=auto depend on how fast a configuration is"},
		{"concurrency=4,8", "rate=1..21+1", "has 21 loads: each launch runs all of them, so give 20 at most"},
		{"concurrency=4,8", "concurrency=4,8,512", "the 300 requests of workload a never reach 512 in flight: raise num_prompts"},
		{"num_prompts: 300", "num_prompts: 300, max_concurrency: 3", "t.yaml:6:72: max_concurrency of workload a does not apply with sweep concurrency, which sets the load"},
		{`"concurrency=4,8"`, `"rate=4,8", request_rate: 3`, "request_rate of workload a does not apply with sweep rate"},
		{`"concurrency=4,8"`, `"rate=4,8", find_max: {axis: rate}`, "sweep of workload a does not apply with find_max"},
		{"strategy: staged", "strategy: tpe", "sweep needs strategy race, staged or survey: tpe measures one load"},
		{`sweep: "concurrency=4,8"}`, `sweep: "concurrency=4,8"}` + "\n  - {name: a-concurrency-8, dataset_name: random, num_prompts: 10}", `workload name "a-concurrency-8" is used twice`},
		{"num_prompts: 300", "num_prompts: 300, random_range_ratio: 4", "random_range_ratio 4 must be at least 0 and below 1"},
	} {
		text := strings.Replace(good, tt.old, tt.new, 1)
		if text == good {
			t.Fatalf("the edit %q changes nothing", tt.old)
		}
		_, err := Parse("t.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.new, err, tt.want)
		} else if strings.Count(err.Error(), tt.want) > 1 {
			t.Errorf("%s: said for each load:\n%v", tt.new, err)
		}
	}
}
