package interop

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
)

const small = `{"model_id":"m","duration":2.0,"completed":3,"request_throughput":1.5}`

// What cannot be read is a fault with its line, and the rest is read.
func TestReadJSONFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		data   string
		runs   int
		faults []string // what each contains
	}{
		"good":                      {small, 1, nil},
		"byte order mark":           {"\xef\xbb\xbf" + small, 1, nil},
		"two on one line":           {small + small, 2, nil},
		"array":                     {"[\n" + small + ",\n" + small + "]", 2, nil},
		"bad line in the middle":    {small + "\n{\"model_id\": \"cut\n" + small, 2, []string{"f:2: this is not JSON (line 2: invalid character '\\n' in string literal): reading goes on at line 3"}},
		"line cut in a list":        {`{"ttfts": [1.0, ` + "\n" + small + "\n" + small, 2, []string{"f:1: this is not JSON (line 3: invalid character '{' after array element): reading goes on at line 2"}},
		"bad end":                   {small + "\n{\"a\":", 1, []string{"f:2: this is not JSON (line 2: unexpected EOF): what follows is not read"}},
		"words between":             {small + "\nsaved to x\n\n" + small, 2, []string{"f:2: this is not JSON"}},
		"words after":               {small + " ok\n" + small, 2, []string{"f:1: this is not JSON"}},
		"pretty and broken":         {"{\n \"a\": 1,\n \"b\": {,\n \"c\": 2\n}\n" + small, 1, []string{"f:1: this is not JSON (line 3: "}},
		"too deep":                  {small + "\n" + strings.Repeat("[", 100000) + "\n" + small, 2, []string{"f:2: this is not JSON (line 2: invalid character '[' exceeded max depth)"}},
		"NaN":                       {`{"model_id":"NaN","duration":NaN,"completed":3,"request_throughput":-Infinity}`, 1, []string{"f:1: 2 values here and below are NaN or infinite"}},
		"infinite rate":             {`{"model_id":"m","duration":2,"completed":3,"request_rate":Infinity}`, 1, nil},
		"twice":                     {`{"model_id":"m","duration":2,` + "\n" + `"completed":3,"duration":4}`, 1, []string{`f:2: key "duration" is there twice: the last one counts`}},
		"text for a number":         {`{"model_id":"m","duration":"2.0","completed":[3],"failed":null}`, 1, []string{"f:1: duration is text where a number should be", "f:1: completed is a list where"}},
		"too large":                 {`{"model_id":"m","duration":1e999,"completed":3}`, 1, []string{"f:1: duration is a number too large"}},
		"too large when scaled":     {`{"load_summary":{},"failures":{},"successes":{"latency":{"request_latency":{"mean":1e307}}}}`, 1, []string{"f:1: successes.latency.request_latency.mean is a number too large"}},
		"all zero":                  {"== Serving Benchmark Result ==\nMean TTFT (ms): 0.00\n====\n", 0, []string{"f:1: the block has latencies of zero and nothing else"}},
		"count that is none":        {`{"model_id":"m","duration":1,"completed":3,"num_prompts":-1,"max_concurrency":2.5}`, 1, []string{"num_prompts is -1", "max_concurrency is 2.5"}},
		"bad date":                  {`{"model_id":"m","duration":1,"completed":3,"date":"yesterday"}`, 1, []string{`date "yesterday" is no date`}},
		"unknown object":            {`{"a":1}`, 0, []string{"f:1: this object is no result of a load generator"}},
		"many unknown":              {strings.Repeat("{\"a\":1}\n", 1000), 0, []string{"f:1: ", "f:2: ", "f:3: ", "f:4: ", "f:5: this object is no result of a load generator that is known here (and so in 995 more places below)"}},
		"many of many kinds":        {"[" + strings.Repeat(small+",", 300) + `{"a":1}]`, 300, []string{"no result of a load"}},
		"more faults than is told":  {many(500), 500, slices.Concat(slices.Repeat([]string{"f:1: "}, 100), []string{"f:101: ", "400 more faults from here on are not told"})[1:]},
		"numbers":                   {"[[1],2]", 0, []string{"f:1: a result is a JSON object", "f:1: a result is a JSON object"}},
		"empty array":               {"[]", 0, []string{"f: the file has no result"}},
		"lists of unequal length":   {detailed(`"ttfts":[0.1,0.2,0.3]`), 1, []string{"f:2: ttfts has 3 entries where start_times has 2: the requests are not read"}},
		"no list":                   {detailed(`"ttfts":0.1`), 1, []string{"f:2: ttfts is a number where a list should be"}},
		"wrong values":              {detailed(`"ttfts":[0.1,"x"],"itls":[[0.1,true],7]`), 1, []string{"ttfts[1] is text where a number should be: it is read as missing, as 1 in all", "itls[1] is a number where a list should be", "itls[0][1] is a truth value", "request 0 of the lists is not read: gap 1 is missing"}},
		"negative":                  {detailed(`"ttfts":[-0.1,0.2]`), 1, []string{"request 0 of the lists is not read: its time to first token is -0.1 s"}},
		"negative gap":              {detailed(`"ttfts":[0.1,0.2],"itls":[[],[-1]]`), 1, []string{"request 1 of the lists is not read: gap 0 is -1 s"}},
		"no start":                  {detailed(`"ttfts":[0.1,0.2],"start_times":[null,1]`), 1, []string{"start_times", "request 0 of the lists is not read: it has no start time"}},
		"aiperf over several runs":  {`{"schema_version":"1.0","aiperf_version":"0.13","input_config":{},"request_throughput":{"cv":1}}`, 0, []string{"this is a summary over several runs"}},
		"aiperf without avg":        {`{"schema_version":"1.0","input_config":{},"request_count":{"unit":"requests"},"request_latency":{"unit":"h","avg":1}}`, 1, []string{"request_count has no avg", `the unit of request_latency is "h"`}},
		"aiperf request, bad start": {`{"metadata":{"request_start_ns":"x"},"metrics":{}}`, 1, []string{`request_start_ns is "x" where nanoseconds should be`}},
		"inference-perf, bad start": {`[{"start_time":null,"end_time":1,"info":{}}]`, 1, []string{"it has no start_time that is a number"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Read("f", []byte(tt.data))
			if len(f.Runs) != tt.runs || len(f.Faults) != len(tt.faults) {
				t.Fatalf("%d runs, want %d; faults %q, want %q", len(f.Runs), tt.runs, f.Faults, tt.faults)
			}
			text := fmt.Sprint(f.Faults)
			for _, want := range tt.faults {
				if !strings.Contains(text, want) {
					t.Errorf("no fault has %q: %q", want, f.Faults)
				}
			}
		})
	}
}

// many are as many results with a fault of its own each.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"model_id\":\"m\",\"duration\":2,\"completed\":3,\"date\":\"day %d\"}\n", i)
	}
	return b.String()
}

// detailed is a result of two requests with a line for more keys.
func detailed(keys string) string {
	return `{"model_id":"m","duration":2.5,"completed":2,"output_lens":[2,2],"start_times":[5.0,6.0],` + "\n" + keys + "}"
}

func TestReadJSONInfiniteRate(t *testing.T) {
	r := Read("f", []byte(`{"model_id":"m","duration":2,"completed":3,"request_rate":Infinity}`)).Runs[0]
	if got := r.Header.Label(result.LabelRate); got != "inf" || r.Header.Rate != 0 {
		t.Errorf("label %q, rate %v", got, r.Header.Rate)
	}
	if _, ok := r.Figure("request_rate"); ok {
		t.Error("an infinite rate has a figure")
	}
}

// A file that rounds keeps its rounding, one that does not has none.
func TestHalf(t *testing.T) {
	for data, want := range map[string]float64{
		`{"model_id":"m","duration":2.5,"completed":3,"mean_ttft_ms":12.25}`:                         0.05,
		`{"model_id":"m","duration":2.5e1,"completed":3}`:                                            0.5,
		`{"model_id":"m","duration":25,"completed":3}`:                                               0.5,
		`{"model_id":"m","duration":2.5,"completed":3,"mean_ttft_ms":12.2512345678}`:                 2.5e-12,
		`{"verdict":{},"failures_by_class":{},"duration":25,"completed":3,"request_throughput":0.1}`: 25e-12,
	} {
		f, ok := Read("f", []byte(data)).Runs[0].Figure("duration")
		if !ok || math.Abs(f.Half-want) > 1e-9*want {
			t.Errorf("half of the duration in %s = %v (there: %v), want %v", data, f.Half, ok, want)
		}
	}
}

// A name is there once; what comes again, or is metadata, is kept beside it.
func TestVLLMKeys(t *testing.T) {
	r := Read("f", []byte(`{"model_id":"m","duration":2,"completed":3,"request_goodput":1.5,"request_goodput:":1.4,"goodput":"ttft:100","engine":"sglang","x":7}`)).Runs[0]
	if f, _ := r.Figure("request_goodput"); f.Value != 1.5 {
		t.Errorf("goodput %v, want the first", f.Value)
	}
	if len(r.Other) != 2 || r.Other[0] != (Pair{"request_goodput:", "1.4", 1}) || r.Other[1] != (Pair{"x", "7", 1}) {
		t.Errorf("other %v", r.Other)
	}
	if r.Header.Label("goodput") != "ttft:100" || r.Header.Label(result.LabelEngine) != "sglang" {
		t.Errorf("labels %v", r.Header.Imported.Labels)
	}
}

// What a client has no sample of it writes as zeros, which are no figures.
func TestUnmeasured(t *testing.T) {
	for data, want := range map[string]string{
		`{"model_id":"m","duration":2.0,"completed":0,"failed":8,"output_throughput":0.0,"mean_ttft_ms":0.0,"median_ttft_ms":0,"std_ttft_ms":0.0,"p99_tpot_ms":0.0}`: "duration completed failed output_throughput ",
		`{"model_id":"m","duration":2.0,"completed":3,"mean_ttft_ms":5.5,"std_ttft_ms":0.0,"mean_itl_ms":0.0,"p99_itl_ms":0.0}`:                                      "duration completed mean_ttft_ms std_ttft_ms ",
		`{"model_id":"m","duration":2.0,"completed":3,"mean_itl_ms":0.5,"median_itl_ms":0.0,"mean_client_queue_time_ms":0.0}`:                                        "duration completed mean_itl_ms median_itl_ms mean_queue_ms ",
		"== Serving Benchmark Result ==\nSuccessful requests: 0\nMean TTFT (ms): 0.00\nP99 TTFT (ms): 0.00\n====\n":                                                  "completed ",
	} {
		r := Read("f", []byte(data)).Runs[0]
		var got strings.Builder
		for _, f := range r.Figures {
			got.WriteString(f.Name + " ")
		}
		if got.String() != want {
			t.Errorf("figures %q, want %q; other %v", got.String(), want, r.Other)
		}
	}
}

// Failed requests have a class, and no chunk unless one came.
func TestVLLMFailed(t *testing.T) {
	r := Read("f", []byte(`{"model_id":"m","duration":2,"completed":1,"start_times":[0.0,70.5,71.0],"ttfts":[0.0,0.25,0.5],"itls":[[],[0.5],[0.125]],
		"latencies":[0.0,0.75,1.0],"output_lens":[0,2,0],"input_lens":[4,5,6],"errors":["HTTP 503 Service Unavailable","","operation timed out"]}`)).Runs[0]
	want := []struct {
		class     result.Class
		sent, end time.Duration
		chunks    int
	}{
		{result.HTTPStatus, 0, 0, 0},
		{"", 0, 750 * time.Millisecond, 2},
		{result.TimeoutTotal, 500 * time.Millisecond, 1500 * time.Millisecond, 2},
	}
	for i, w := range want {
		c := r.Calls[i]
		if c.Class != w.class || c.Sent != w.sent || c.End != w.end || len(c.Chunks) != w.chunks {
			t.Errorf("call %d: %+v, want %+v", i, c, w)
		}
	}
}

func TestAIPerfRequests(t *testing.T) {
	data := `{"metadata":{"request_start_ns":900,"benchmark_phase":"warmup"},"metrics":{}}
{"metadata":{"request_start_ns":1795304476236593789,"request_end_ns":1795304476336593789,"credit_issued_ns":1795304476236593780,"turn_index":0,"x_correlation_id":"a"},"metrics":{"time_to_first_token":{"value":60,"unit":"ms"},"request_latency":{"value":60,"unit":"ms"},"output_sequence_length":{"value":1,"unit":"tokens"}},"error":null}
{"metadata":{"request_start_ns":1795304477236593789,"request_end_ns":1795304477336593789,"turn_index":1,"x_correlation_id":"a"},"metrics":{"error_isl":{"value":9}},"error":{"code":503,"type":"ServiceUnavailable","message":"busy"}}
{"metadata":{"request_start_ns":1795304478236593789,"request_end_ns":1795304478336593789,"x_correlation_id":"b","was_cancelled":true},"metrics":{}}
{"metadata":{"request_start_ns":1795304479236593789,"request_end_ns":1795304479336593789,"x_correlation_id":"c"},"metrics":{"time_to_first_token":{"value":60},"request_latency":{"value":80},"output_sequence_length":{"value":5}}}
`
	f := Read("f", []byte(data))
	if len(f.Runs) != 1 || len(f.Faults) != 0 || len(f.Runs[0].Calls) != 4 {
		t.Fatalf("runs %v, faults %v", len(f.Runs), f.Faults)
	}
	r, c := f.Runs[0], f.Runs[0].Calls
	if r.Place.Line != 1 || r.Place.End != 5 || r.Header.Label("warmup_requests") != "1" || r.Header.Requests != 4 {
		t.Errorf("place %+v, header %+v", r.Place, r.Header)
	}
	if c[0].Sent != 9 || c[0].Due != 0 || len(c[0].Chunks) != 1 || c[0].Chunks[0].At != 60*time.Millisecond+9 || c[0].Session != 1 {
		t.Errorf("call 0: %+v", c[0])
	}
	if c[1].Class != result.HTTPStatus || c[1].Status != 503 || c[1].Error != "ServiceUnavailable: busy" || c[1].WantIn != 9 || c[1].Session != 1 || c[1].Turn != 1 {
		t.Errorf("call 1: %+v", c[1])
	}
	if c[2].Class != result.Cancelled || c[2].Session != 2 {
		t.Errorf("call 2: %+v", c[2])
	}
	if len(c[3].Chunks) != 0 || c[3].End-c[3].Sent != 100*time.Millisecond {
		t.Errorf("call 3, of whose gaps nothing is known: %+v", c[3])
	}
}

// Older lifecycle files lack the run's time and the tokens' totals.
func TestInferencePerfOld(t *testing.T) {
	r := Read("dir/stage_12_lifecycle_metrics.json", []byte(`{"load_summary":{"count":60,"requested_rate":1.0},
		"successes":{"count":60,"latency":{"request_latency":{"mean":0.71345,"p99.9":0.80859},"time_to_first_token":null},
		"throughput":{"requests_per_sec":1.0037},"prompt_len":{"mean":201.5}},"failures":{"count":0,"request_latency":null}}`)).Runs[0]
	for name, want := range map[string]Figure{
		"completed":          {Value: 60, Half: 0},
		"mean_e2el_ms":       {Value: 713.45, Half: 0.005},
		"p99.9_e2el_ms":      {Value: 808.59, Half: 0.005},
		"request_throughput": {Value: 1.0037, Half: 0.00005},
	} {
		if f, ok := r.Figure(name); !ok || math.Abs(f.Value-want.Value) > 1e-9 || math.Abs(f.Half-want.Half) > 1e-9 {
			t.Errorf("%s = %+v (there: %v), want %v ± %v", name, f, ok, want.Value, want.Half)
		}
	}
	if _, ok := r.Figure("duration"); ok || r.Header.Label(result.LabelCase) != "stage 12" || r.Header.Rate != 1 {
		t.Errorf("header %+v, duration there: %v", r.Header, ok)
	}
}

// FuzzReadJSON: whatever the bytes, reading ends, and what it gives is sound.
func FuzzReadJSON(f *testing.F) {
	for _, name := range loadFiles {
		f.Add(readLoad(f, name))
	}
	for _, s := range []string{
		small, detailed(`"ttfts":[0.1,0.2],"itls":[[0.01],[]],"errors":["","x"]`), "{}\n[", `[{"metadata":{"request_start_ns":1},"error":{}}]`,
		`{"verdict":{},"failures_by_class":{"http":1},"duration":1,"completed":1,"compat":"vllm","definitions":{"ttft":"x"}}`, "{\"a\":NaN}\n{\"\\ud800\":1}", "1.\r, \"completed\": 1otal",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, begin := range []string{"{", "["} {
			whole := append([]byte(begin), data...)
			checkFile(t, Read("f", whole), whole)
		}
	})
}

func checkFile(t *testing.T, f File, data []byte) {
	lines := strings.Count(string(Decode(data)), "\n") + 1
	within := func(p Place) {
		if p.Line < 0 || p.Line > lines || p.End > lines || p.End != 0 && p.End < p.Line {
			t.Errorf("place %+v of a file with %d lines", p, lines)
		}
	}
	if len(f.Runs) == 0 && len(f.Faults) == 0 && f.Doc == nil {
		t.Error("neither a run nor a fault")
	}
	for _, x := range f.Faults {
		within(x.Place)
	}
	for _, r := range f.Runs {
		within(r.Place)
		if r.Header.Imported == nil {
			t.Fatal("a run without its origin")
		}
		names := map[string]bool{}
		for _, g := range r.Figures {
			if names[g.Name] || math.IsNaN(g.Value) || math.IsInf(g.Value, 0) || !(g.Half >= 0) || math.IsInf(g.Half, 0) {
				t.Errorf("figure %+v, twice: %v", g, names[g.Name])
			}
			names[g.Name] = true
			within(Place{Line: g.Line})
		}
		for _, c := range r.Calls {
			last := c.Sent
			for _, k := range c.Chunks {
				if k.At < last {
					t.Errorf("a chunk at %v after one at %v", k.At, last)
				}
				last = k.At
			}
			if c.Due > c.Sent || c.End < last {
				t.Errorf("call due %v, sent %v, last chunk %v, end %v", c.Due, c.Sent, last, c.End)
			}
		}
		if _, err := r.Summary(); err != nil {
			t.Errorf("summary: %v", err)
		}
	}
}

// The tokens of one instant are one chunk's; where the server counted others,
// a chunk is one.
func TestInferencePerfRequests(t *testing.T) {
	data := `[
 {"start_time":10.0,"end_time":10.5,"info":{"input_tokens":3,"output_tokens":4,"output_token_times":[10.25,10.25,10.375,10.5]},"error":null},
 {"start_time":10.125,"end_time":10.5,"info":{"request_metrics":{"text":{"input_tokens":5}},"response_metrics":{"output_tokens":3,"server_usage":{"prompt_tokens":6,"completion_tokens":2},"output_token_times":[10.25,10.25,10.5]}}},
 {"start_time":11,"end_time":12,"info":{},"error":{"error_type":"ConnectionError","error_msg":"Cannot connect to host"}},
 {"start_time":11,"end_time":12,"info":{"output_token_times":[9]}}
]`
	f := Read("f", []byte(data))
	if len(f.Runs) != 1 || len(f.Faults) != 1 || !strings.Contains(f.Faults[0].Text, "request 3 is not read: its token 0 came -1 s after the first was sent") {
		t.Fatalf("%d runs, faults %v", len(f.Runs), f.Faults)
	}
	r := f.Runs[0]
	if r.Place.Line != 2 || r.Place.End != 5 || len(r.Calls) != 3 {
		t.Fatalf("place %+v, %d calls", r.Place, len(r.Calls))
	}
	ms := time.Millisecond
	for i, want := range [][]result.Chunk{
		{{At: 250 * ms, Tokens: 2}, {At: 375 * ms, Tokens: 1, Read: 1}, {At: 500 * ms, Tokens: 1, Read: 2}},
		{{At: 250 * ms, Tokens: 1}, {At: 500 * ms, Tokens: 1, Read: 1}},
		nil,
	} {
		if !slices.Equal(r.Calls[i].Chunks, want) {
			t.Errorf("chunks of call %d: %v, want %v", i, r.Calls[i].Chunks, want)
		}
	}
	if c := r.Calls[1]; c.Sent != 125*ms || *c.Usage != (result.Usage{Prompt: 6, Completion: 2}) || c.WantIn != 5 || c.Recount != 3 {
		t.Errorf("call 1: %+v", c)
	}
	if c := r.Calls[2]; c.Class != result.Connect || c.Error != "ConnectionError: Cannot connect to host" {
		t.Errorf("call 2: %+v", c)
	}
}

// SGLang's inter-token latencies are of two kinds by the API that was asked.
func TestSGLangGaps(t *testing.T) {
	for keys, want := range map[string]result.Definition{
		`"backend":"sglang"`:                              result.TokenGapMean,
		`"backend":"sglang-oai"`:                          result.ChunkGap,
		`"backend":"sglang-oai-chat","accept_length":2.5`: result.TokenGapMean,
		`"backend":"vllm","accept_length":2.5`:            result.ChunkGap,
	} {
		r := Read("f", []byte(`{"duration":2,"completed":3,"total_throughput":5,"mean_itl_ms":4.5,`+keys+`}`)).Runs[0]
		if got := r.Definition("mean_itl_ms"); got != want || r.Header.Imported.Format != FormatSGLang {
			t.Errorf("%s: %s of %s, want %s", keys, got, r.Header.Imported.Format, want)
		}
	}
}

// Requests of two clients in one file are two runs, whatever stands between
// the lines of one.
func TestReadJSONMixed(t *testing.T) {
	aiperf, other := `{"metadata":{"request_start_ns":5},"metrics":{}}`, `{"start_time":1,"end_time":2,"info":{}}`
	f := Read("f", []byte(strings.Join([]string{aiperf, "{broken", aiperf, other, small, other}, "\n")))
	var got strings.Builder
	for _, r := range f.Runs {
		fmt.Fprintf(&got, "%s %d ", r.Header.Imported.Format, len(r.Calls))
	}
	if want := "aiperf 2 inference-perf 1 vllm 0 inference-perf 1 "; got.String() != want || len(f.Faults) != 1 {
		t.Errorf("%q, want %q; faults %v", got.String(), want, f.Faults)
	}
}
