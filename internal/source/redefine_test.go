package source

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/compare"
	"perflab/internal/interop"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/test/calltest"
)

// streams are calls as a chat server answers: a message with the role beside the first token, one that
// finishes, usage and [DONE]; every tenth opens a connection.
func streams() []result.Call {
	calls := calltest.Steady(80, 100*time.Millisecond)
	for i := range calls {
		c := &calls[i]
		first, last := c.Chunks[0].At, c.Chunks[len(c.Chunks)-1].At
		c.Empty = []result.Stamp{{At: first}, {At: last + 2*time.Millisecond}}
		c.Done = last + 3*time.Millisecond
		c.End = last + 4*time.Millisecond
		if c.Wrote = c.Sent; i%10 == 0 {
			c.New, c.Dial = true, time.Millisecond
		}
	}
	return calls
}

// ownRun is a run directory of perflab of these calls.
func ownRun(t *testing.T, dir string, calls []result.Call) (result.Header, string) {
	t.Helper()
	h := result.Header{Model: "m", Backend: "openai-chat", Requests: len(calls), Rate: 10, Started: time.Unix(1e9, 0), Spec: json.RawMessage("{}")}
	place := filepath.Join(dir, "run")
	w, err := rundir.Create(place, h)
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		w.Add(&calls[i])
	}
	s, err := result.Summarize(h, &result.Client{}, result.Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(&result.Client{}, &s, nil); err != nil {
		t.Fatal(err)
	}
	return h, place
}

// theirs are figures of a client under its own keys.
type theirs map[string]any

// spread adds the statistics of samples in ms as numpy's users write them.
func (o theirs) spread(name string, ms []float64) {
	slices.Sort(ms)
	at := func(share float64) float64 {
		x := share * float64(len(ms)-1)
		i := int(x)
		return ms[i] + (ms[min(i+1, len(ms)-1)]-ms[i])*(x-float64(i))
	}
	sum := 0.0
	for _, v := range ms {
		sum += v
	}
	o["mean_"+name], o["median_"+name] = sum/float64(len(ms)), at(0.5)
	o["p90_"+name], o["p95_"+name], o["p99_"+name] = at(0.9), at(0.95), at(0.99)
}

func inMS(d time.Duration) float64 { return float64(d) / 1e6 }

// vllmFile is what vllm bench serve would write: its figures by --compat, without what perflab adds.
func vllmFile(t *testing.T, h result.Header, calls []result.Call) theirs {
	t.Helper()
	s, err := result.Summarize(h, &result.Client{}, result.Options{Compat: result.VLLM}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	b, err := interop.VLLM(h, s, nil, interop.VLLMOptions{Sections: []string{"ttft", "tpot", "itl", "e2el"}, Percentiles: []float64{90, 95, 99}})
	if err != nil {
		t.Fatal(err)
	}
	o := theirs{}
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{"verdict", "failures_by_class", "simulated", "compat", "definitions"} {
		delete(o, own)
	}
	o["queue_times"] = []float64{} // of the versions whose peak is exact
	return o
}

// sglangFile is what sglang.bench_serving would write of an OpenAI API, by its source.
func sglangFile(h result.Header, calls []result.Call) theirs {
	o := theirs{"backend": "sglang-oai-chat", "dataset_name": "random", "random_range_ratio": 1.0, "completed": len(calls)}
	var ttft, tpot, itl, e2e []float64
	in, out, tokens, busy := 0, 0, map[int]int{}, map[int]int{}
	begin, end := calls[0].Due, time.Duration(0)
	start := func(c result.Call) time.Duration { return c.Sent - c.Dial }
	zero := start(calls[0])
	for _, c := range calls {
		zero = min(zero, start(c))
	}
	for _, c := range calls {
		first := c.Chunks[0].At
		latency := c.Done - start(c)
		ttft, e2e = append(ttft, inMS(first-start(c))), append(e2e, inMS(latency))
		if n := c.Usage.Completion; n > 1 {
			tpot = append(tpot, inMS(latency-(first-start(c)))/float64(n-1))
		}
		for i, k := range c.Chunks {
			if i > 0 {
				itl = append(itl, inMS(k.At-c.Chunks[i-1].At))
			}
			tokens[int((k.At-zero)/time.Second)]++
		}
		for s := int((start(c) - zero) / time.Second); s <= int((c.Done-zero)/time.Second); s++ {
			busy[s]++
		}
		in, out, end = in+c.Usage.Prompt, out+c.Usage.Completion, max(end, c.End)
	}
	d := (end - begin).Seconds()
	o["duration"], o["total_input_tokens"], o["total_output_tokens"] = d, in, out
	o["request_throughput"], o["output_throughput"], o["total_throughput"] = float64(len(calls))/d, float64(out)/d, float64(in+out)/d
	o["max_output_tokens_per_s"], o["max_concurrent_requests"] = most(tokens), most(busy)
	o.spread("ttft_ms", ttft)
	o.spread("tpot_ms", tpot)
	o.spread("itl_ms", itl)
	o.spread("e2e_latency_ms", e2e)
	return o
}

func most(counts map[int]int) int {
	n := 0
	for _, v := range counts {
		n = max(n, v)
	}
	return n
}

// aiperfFile is what AIPerf would write as profile_export_aiperf.json, by its source.
func aiperfFile(calls []result.Call) theirs {
	o := theirs{"schema_version": "1.5", "aiperf_version": "0.13.0", "input_config": map[string]any{"endpoint": map[string]any{"type": "chat", "model_names": []string{"m"}}}}
	var ttft, itl []float64
	in, out, begin, end := 0, 0, calls[0].Due, time.Duration(0)
	for _, c := range calls {
		start, last := c.Sent-c.Dial, c.Chunks[len(c.Chunks)-1].At
		first := inMS(c.Chunks[0].At - start)
		ttft = append(ttft, first)
		if n := c.Usage.Completion; n > 1 {
			itl = append(itl, (inMS(last-start)-first)/float64(n-1))
		}
		in, out, end = in+c.Usage.Prompt, out+c.Usage.Completion, max(end, c.End)
	}
	d := (end - begin).Seconds()
	one := func(v float64, unit string) map[string]any { return map[string]any{"avg": v, "unit": unit} }
	o["request_count"], o["error_request_count"] = one(float64(len(calls)), "requests"), one(0, "requests")
	o["benchmark_duration"], o["request_throughput"] = one(d, "sec"), one(float64(len(calls))/d, "requests/sec")
	o["total_isl"], o["total_osl"] = one(float64(in), "tokens"), one(float64(out), "tokens")
	o["output_token_throughput"], o["total_token_throughput"] = one(float64(out)/d, "tokens/sec"), one(float64(in+out)/d, "tokens/sec")
	for name, x := range map[string][]float64{"time_to_first_token": ttft, "inter_token_latency": itl} {
		s := theirs{}
		s.spread("x", x)
		o[name] = map[string]any{"unit": "ms", "avg": s["mean_x"], "p50": s["median_x"], "p90": s["p90_x"], "p95": s["p95_x"], "p99": s["p99_x"]}
	}
	return o
}

// guideFile is the report of guidellm, without the requests and without what says that perflab wrote it.
func guideFile(t *testing.T, h result.Header, calls []result.Call) theirs {
	t.Helper()
	b, err := interop.GuideLLM(h, calls)
	if err != nil {
		t.Fatal(err)
	}
	o := theirs{}
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	delete(o["config"].(map[string]any), "metadata")
	delete(o["benchmarks"].([]any)[0].(map[string]any), "requests")
	return o
}

// compared counts the rows of a comparison of two sides in which both have a figure, and names the others.
func compared(t *testing.T, c compare.Comparison) (both int, alone []string) {
	t.Helper()
	for _, r := range c.Rows {
		a, b := r.Cells[0], r.Cells[1]
		if a.Value == nil || b.Value == nil {
			alone = append(alone, r.Name)
			continue
		}
		both++
		if math.Abs(*a.Value-*b.Value) > 1e-6*math.Abs(*b.Value) {
			t.Errorf("%s by %q: %v and %v of the same calls", r.Name, r.Definition, *a.Value, *b.Value)
		}
	}
	return both, alone
}

// TestSidesOfOtherClients: a run of perflab beside the file that another client would have written of the same
// calls. Every figure of the file has its equal, by the file's definition.
func TestSidesOfOtherClients(t *testing.T) {
	calls := streams()
	dir := t.TempDir()
	h, own := ownRun(t, dir, calls)
	for _, x := range []struct {
		client string
		file   theirs
		both   int
		alone  string // what one of the two does not have at all
	}{
		{"vllm bench serve", vllmFile(t, h, calls), 31, ""},
		{"sglang.bench_serving", sglangFile(h, calls), 29, "failed success_rate"},
		{"guidellm", guideFile(t, h, calls), 31, ""},
		{"aiperf", aiperfFile(calls), 19, "max_output_tokens_per_s max_concurrent_requests TPOT E2EL"},
	} {
		b, err := json.Marshal(x.file)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, strings.Fields(x.client)[0]+".json")
		if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		sides, damage, err := Sides([]string{own, path}, nil)
		if err != nil || len(damage) > 0 {
			t.Fatalf("%s: %v, %v", x.client, damage, err)
		}
		if got := sides[1].Runs[0].Header.Imported.Client; got != x.client {
			t.Fatalf("the file of %s is taken for one of %s", x.client, got)
		}
		c, err := compare.New(sides, compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		both, alone := compared(t, c)
		if families(alone) != x.alone || both != x.both {
			t.Errorf("%s: %d figures are compared, want %d; not: %s, want %s", x.client, both, x.both, families(alone), x.alone)
		}
	}
}

// families are names, those of a family as one.
func families(names []string) string {
	var out []string
	for _, name := range names {
		if m, err := result.Lookup(name); err == nil && m.Family != "" {
			name = strings.ToUpper(m.Family)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return strings.Join(out, " ")
}

// TestSidesSayWhyNot: where the calls leave a definition open, the row says what is not known.
func TestSidesSayWhyNot(t *testing.T) {
	calls := streams()
	dir := t.TempDir()
	_, own := ownRun(t, dir, calls)
	o := sglangFile(result.Header{}, calls)
	o["backend"] = "sglang" // the native API, whose gaps are divided among tokens
	calls[5].Usage.Completion++
	_, odd := ownRun(t, t.TempDir(), calls)
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "native.json")
	if err := os.WriteFile(path, append(b, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{own: "", odd: "which message brought how many tokens is not recorded"} {
		sides, _, err := Sides([]string{place, path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c, err := compare.New(sides, compare.Options{Metrics: []string{"mean_itl_ms"}, Also: []string{"max_output_tokens_per_s"}})
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		said.WriteString(fmt.Sprint(c.Rows))
		for _, r := range c.Rows {
			said.WriteString(r.Cells[0].Why + r.Cells[1].Why)
		}
		if want == "" && (len(c.Rows) != 2 || c.Rows[0].Cells[1].Ratio == nil) || !strings.Contains(said.String(), want) {
			t.Errorf("%d rows: %s", len(c.Rows), said.String())
		}
	}
}

// TestViewsOfManyCalls: a run of which some calls are kept has no figures by other definitions, and says so.
func TestViewsOfManyCalls(t *testing.T) {
	calls := streams()
	defs := map[string]result.Definition{"ttft": result.FirstText}
	sides := []compare.Side{
		{Name: "a", Runs: []compare.Run{{Calls: calls, Summary: result.Summary{OneIn: 4, Figures: map[string]float64{"mean_ttft_ms": 1}}}}},
		{Name: "b", Runs: []compare.Run{{Header: result.Header{Imported: &result.Imported{}}, Summary: result.Summary{Figures: map[string]float64{"mean_ttft_ms": 2}, Definitions: defs}}}},
	}
	if err := addViews(sides); err != nil {
		t.Fatal(err)
	}
	c, err := compare.New(sides, compare.Options{Metrics: []string{"mean_ttft_ms"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Rows) != 2 || !strings.HasSuffix(c.Rows[1].Cells[0].Why, "its calls do not give this one: of its calls one in 4 is kept") {
		t.Errorf("%+v", c.Rows)
	}
}
