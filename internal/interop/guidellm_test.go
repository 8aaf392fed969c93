package interop

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
)

// guideFixture reads a report that guidellm itself wrote of a simulated engine.
func guideFixture(t testing.TB, name string) File {
	t.Helper()
	data, err := os.ReadFile("testdata/guidellm/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return Read(name, data)
}

func TestGuideLLM(t *testing.T) {
	for _, test := range []struct {
		file    string
		run     int
		version string
		limit   int
		rate    float64
		calls   int
		line    int // of median_ttft_ms
		figures map[string]string
		defs    map[string]result.Definition
	}{
		{"v0.5.3-concurrent.json", 1, "0.5.3", 2, 0, 5, 1, map[string]string{
			"completed": "5", "failed": "0", "total_output_tokens": "116.0", "mean_e2el_ms": "0.33192329406738286", "max_ttft_ms": "56.87832832336426",
		}, map[string]result.Definition{
			"ttft": result.FirstIteration, "tpot": result.E2EPerTokenWeighted, "itl": result.DecodePerTokenWeighted, "e2el": result.StreamEnd,
			"output_throughput": result.RateWeighted, "max_output_tokens_per_s": result.InverseGapPeak, "total_output_tokens": result.Ours,
		}},
		{"v0.8.1-constant.json", 0, "0.8.1", 0, 20, 8, 454, map[string]string{
			"completed": "8", "failed": "0", "max_output_tokens_per_s": "6523.0233281493", "output_throughput": "274.5996265735709",
		}, map[string]result.Definition{"ttft": result.FirstText, "steady_ttft": result.FirstText, "ttfa": result.Ours}},
	} {
		f := guideFixture(t, test.file)
		if len(f.Faults) > 0 || len(f.Runs) <= test.run {
			t.Fatalf("%s: %d runs, faults %v", test.file, len(f.Runs), f.Faults)
		}
		r := &f.Runs[test.run]
		h := r.Header
		if h.Imported.Client != "guidellm" || h.Imported.Version != test.version || h.Model != "Qwen/Qwen3-8B" || h.Backend != "openai-chat" || h.Limit != test.limit || h.Rate != test.rate {
			t.Errorf("%s: header %+v of %+v", test.file, h, *h.Imported)
		}
		if len(r.Calls) != test.calls || !r.Sim {
			t.Errorf("%s: %d calls, simulated %v", test.file, len(r.Calls), r.Sim)
		}
		for name, want := range test.figures {
			if got, ok := r.Figure(name); !ok || got.Text != want {
				t.Errorf("%s: %s is %+v, want %s", test.file, name, got, want)
			}
		}
		if got, _ := r.Figure("median_ttft_ms"); got.Line != test.line {
			t.Errorf("%s: median TTFT stands in line %d, want %d", test.file, got.Line, test.line)
		}
		for name, want := range test.defs {
			if got := r.Defs[name]; got != want {
				t.Errorf("%s: %s is by %q, want %q", test.file, name, got, want)
			}
		}
	}
}

// What guidellm says of each run must follow from the calls that were read.
func TestGuideCallsFit(t *testing.T) {
	for _, name := range []string{"v0.5.3-concurrent.json", "v0.8.1-constant.json"} {
		for _, r := range guideFixture(t, name).Runs {
			own, err := result.Summarize(r.Header, &result.Client{}, result.Options{}, slices.Values(r.Calls))
			if err != nil {
				t.Fatal(err)
			}
			for _, figure := range []string{"completed", "failed", "total_input_tokens", "total_output_tokens", "mean_ttft_ms", "min_ttft_ms", "max_ttft_ms", "std_ttft_ms", "max_concurrent_requests"} {
				want, _ := r.Figure(figure)
				if got := own.Figures[figure]; math.Abs(got-want.Value) > 1e-3 {
					t.Errorf("%s: %s of the calls is %v, the file says %v", r.Place, figure, got, want.Value)
				}
			}
			if got, want := own.Figures["mean_stream_ms"], guideValue(r.Figure("mean_e2el_ms")); math.Abs(got-want) > 1e-3 {
				t.Errorf("%s: mean of End - Sent is %v, the file says %v", r.Place, got, want)
			}
			s, err := r.Summary()
			if err != nil {
				t.Fatal(err)
			}
			for _, lacking := range []string{"mean_itl_token_ms", "merged_chunks", "tokens_per_chunk"} {
				if v, ok := s.Figures[lacking]; ok {
					t.Errorf("%s: %s is %v of two stamps a call", r.Place, lacking, v)
				}
			}
			if _, ok := s.Samples["itl_token"]; ok || !s.Simulated {
				t.Errorf("%s: summary %+v", r.Place, s.Samples)
			}
		}
	}
}

func guideValue(f Figure, _ bool) float64 { return f.Value }

// guideSmall is a report of one benchmark of these requests.
func guideSmall(totals, requests string) []byte {
	return []byte(`{"metadata":{"version":1,"guidellm_version":"0.5.3"},"args":{"model":"m"},"benchmarks":[{"config":{"id_":"a","run_id":"r","strategy":{"type_":"constant","rate":2}},
"scheduler_metrics":{"start_time":100.0,"measure_start_time":101.0,"measure_end_time":104.0},
"metrics":{"request_totals":` + totals + `},"requests":` + requests + `}]}`)
}

// guideOne is a request of these times.
func guideOne(start, first, last, end string, events, n string) string {
	return `{"info":{"timings":{"targeted_start":` + start + `,"request_start":` + start + `,"first_token_iteration":` + first + `,"last_token_iteration":` + last +
		`,"token_iterations":` + events + `,"request_end":` + end + `}},"input_metrics":{"total_tokens":9},"output_metrics":{"total_tokens":` + n + `}}`
}

func TestGuideUnstreamed(t *testing.T) {
	f := Read("r.json", guideSmall(`{"successful":2,"incomplete":0,"errored":0}`,
		`{"successful":[`+guideOne("101", "101.5", "101.5", "103", "1", "11")+`,`+guideOne("102", "102.5", "103.5", "104", "11", "11")+`],"incomplete":[],"errored":[]}`))
	if len(f.Runs) != 1 || len(f.Faults) != 1 || !strings.Contains(f.Faults[0].Text, "of 2 successful requests 1 have") {
		t.Fatalf("%d runs, faults %v", len(f.Runs), f.Faults)
	}
	r := f.Runs[0]
	if got := r.Header.Label(labelUnstreamed); got != "1 of 2" {
		t.Errorf("label %q", got)
	}
	if _, ok := r.Calls[0].TPOT(); ok {
		t.Error("there is a TPOT of a call whose tokens nobody saw come")
	}
	if d, _ := r.Calls[0].E2E(); d != 2*time.Second {
		t.Errorf("E2E of it is %v, not to the end of its stream", d)
	}
	if ns, ok := r.Calls[1].TPOT(); !ok || ns != 1e8 {
		t.Errorf("TPOT of the other is %v", ns)
	}
}

func TestGuideClasses(t *testing.T) {
	bad := func(text string) string {
		return `{"info":{"error":"` + text + `","timings":{"resolve_start":102,"resolve_end":103.25}},"input_metrics":{},"output_metrics":{}}`
	}
	f := Read("r.json", guideSmall(`{"successful":0,"incomplete":1,"errored":4}`,
		`{"successful":[],"incomplete":[`+bad("")+`],"errored":[`+bad("ConnectError: refused")+`,`+bad("Client error '429'")+`,`+bad("ReadTimeout")+`,`+bad("strange")+`]}`))
	if len(f.Faults) > 0 {
		t.Fatal(f.Faults)
	}
	var got []result.Class
	for _, c := range f.Runs[0].Calls {
		got = append(got, c.Class)
		if c.End-c.Sent != 1250*time.Millisecond {
			t.Errorf("a failed call took %v", c.End-c.Sent)
		}
	}
	if want := []result.Class{result.Cancelled, result.Connect, result.HTTPStatus, result.TimeoutTotal, result.BadBody}; !slices.Equal(got, want) {
		t.Errorf("classes %v, want %v", got, want)
	}
}

func TestGuideFaults(t *testing.T) {
	one := guideOne("101", "101.5", "102", "103", "3", "3")
	none := `{"successful":1,"incomplete":0,"errored":0}`
	var labels strings.Builder
	for i := range 100 {
		fmt.Fprintf(&labels, `,"k%d":""`, i)
	}
	for _, test := range []struct {
		name, want string
		data       []byte
		runs       int
		calls      int
	}{
		{"sample", "keeps 1 requests of the 9", guideSmall(`{"successful":9,"incomplete":0,"errored":0}`, `{"successful":[`+one+`]}`), 1, 0},
		{"warm-up", "", guideSmall(none, `{"successful":[`+guideOne("100", "100.1", "100.2", "100.5", "3", "3")+`,`+one+`]}`), 1, 1},
		{"time", "is no time", guideSmall(none, `{"successful":[`+strings.Replace(one, "101.5", "-5", 1)+`]}`), 1, 0},
		{"tokens", "cannot be", guideSmall(none, `{"successful":[`+strings.Replace(one, `"total_tokens":3`, `"total_tokens":3000000000`, 1)+`]}`), 1, 0},
		{"old", "before 0.4", []byte(`{"args":{},"benchmarks":[{"run_stats":{},"metrics":{}}]}`), 0, 0},
		{"oldest", "before 0.4", []byte(`{"benchmarks":[{"args":{},"run_stats":{},"metrics":{}}]}`), 0, 0},
		{"labels", "has 101 labels", []byte(`{"config":{"metadata":{"labels":{"k":""` + labels.String() + `}}},"benchmarks":[{"metrics":{}}]}`), 1, 0},
		{"no list", "is no list", []byte(`{"args":{},"benchmarks":7}`), 0, 0},
		{"nothing", "has no benchmark", []byte(`{"args":{},"benchmarks":[]}`), 0, 0},
		{"figure", "no number", []byte(`{"args":{},"benchmarks":[{"metrics":{"tokens_per_second":{"successful":{"mean":"x"}}}}]}`), 1, 0},
		{"too large", "no number", []byte(`{"args":{},"benchmarks":[{"metrics":{"request_latency":{"successful":{"mean":1e307}}}}]}`), 1, 0},
		{"csv", "give the JSON", []byte("Run Info,Run Info,Run Info\n"), 0, 0},
		{"yaml", "give the JSON", []byte("args:\n  model: m\n"), 0, 0},
	} {
		f := Read("r.json", test.data)
		if len(f.Runs) != test.runs || test.runs > 0 && len(f.Runs[0].Calls) != test.calls {
			t.Errorf("%s: %d runs", test.name, len(f.Runs))
		}
		said := slices.ContainsFunc(f.Faults, func(x Fault) bool { return strings.Contains(x.Text, test.want) })
		if test.want == "" && len(f.Faults) > 0 || test.want != "" && !said {
			t.Errorf("%s: faults %v, want %q", test.name, f.Faults, test.want)
		}
	}
}

func TestMerge(t *testing.T) {
	full := guideFixture(t, "v0.5.3-concurrent.json")
	data, err := os.ReadFile("testdata/guidellm/v0.5.3-concurrent.json")
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(data, &report); err != nil {
		t.Fatal(err)
	}
	for _, b := range report["benchmarks"].([]any) {
		delete(b.(map[string]any), "requests")
	}
	data, err = json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	short := Read("benchmarks.json", data)
	if len(short.Faults) > 0 || len(short.Runs) != 2 || len(short.Runs[0].Calls) > 0 {
		t.Fatalf("without requests: %d runs, faults %v", len(short.Runs), short.Faults)
	}
	other := guideFixture(t, "v0.8.1-constant.json")
	for _, order := range [][]File{{short, full, other}, {full, other, short}} {
		got := map[string]File{}
		for _, f := range Merge(order) {
			got[f.Name] = f
		}
		s := got["benchmarks.json"]
		if len(s.Runs) != 0 || len(s.Faults) != 2 || !strings.Contains(s.Faults[0].Text, "with its requests: this one is left out") {
			t.Errorf("the poorer file: %d runs, faults %v", len(s.Runs), s.Faults)
		}
		if len(got[full.Name].Runs) != 2 || len(got[other.Name].Runs) != 1 || len(got[full.Name].Faults) != 0 {
			t.Error("the other files have changed")
		}
	}
	if len(short.Runs) != 2 || len(short.Faults) != 0 {
		t.Error("Merge changed what it was given")
	}
}

// madeRun is a run of our own with all kinds of calls.
func madeRun() (result.Header, []result.Call) {
	h := result.Header{Schema: "perflab.run/1", Version: "1.2.3", Simulated: true, Started: time.Unix(1_790_000_000, 123_456_789).UTC(), Model: "m, \"8b\"",
		Backend: "openai-chat", Targets: []string{"http://localhost:8000"}, Workload: "random", Requests: 14, Rate: 10, Limit: 9}
	var calls []result.Call
	for i := range 14 {
		due := time.Duration(i) * 100 * time.Millisecond
		c := result.Call{Index: i, Due: due, Ready: due + 7, Sent: due + 1_234_567, Wrote: due + 1_300_000, Reads: 5, Status: 200, WantIn: 30, Want: 9, Finish: "stop", Sim: true}
		at := c.Sent + 80*time.Millisecond + time.Duration(i*i)*time.Microsecond
		for k := range 5 {
			c.Chunks = append(c.Chunks, result.Chunk{At: at, Tokens: int32(1 + k%2), Read: int32(k)})
			at += 13*time.Millisecond + time.Duration(17*k+i)*time.Microsecond
		}
		c.Answer, c.End, c.Usage = c.Chunks[2].At, at, &result.Usage{Prompt: 30 + i, Completion: 9, Cached: i % 2 * 16}
		calls = append(calls, c)
	}
	calls[3].Class, calls[3].Error, calls[3].Chunks, calls[3].Usage, calls[3].Answer = result.HTTPStatus, "status 503:\n\"busy, later\"", nil, nil, 0
	calls[5].Chunks, calls[5].Usage = calls[5].Chunks[:1], nil
	calls[5].Answer = 0
	calls[6].Session, calls[6].Turn, calls[6].Model, calls[6].Text = 2, 1, "lora", "a\r\nb"
	calls[7].Empty = []result.Stamp{{At: calls[7].Chunks[0].At - 5, Read: 0}}
	calls[8].Chunks = []result.Chunk{{At: calls[8].Chunks[0].At, Tokens: 9}}
	return h, calls
}

// What is written is what is read, and guidellm's facts give our figures.
func TestGuideLLMRoundTrip(t *testing.T) {
	h, calls := madeRun()
	data, err := GuideLLM(h, calls)
	if err != nil {
		t.Fatal(err)
	}
	f := Read("own.json", data)
	if len(f.Faults) > 0 || len(f.Runs) != 1 {
		t.Fatalf("%d runs, faults %v", len(f.Runs), f.Faults)
	}
	r := f.Runs[0]
	if im := r.Header.Imported; im.Client != clientPerflab || im.Version != "1.2.3" || !r.Sim || !r.Header.Started.Equal(h.Started) || r.Header.Limit != 9 || r.Header.Rate != 10 {
		t.Errorf("header %+v of %+v", r.Header, *im)
	}
	own, err := result.Summarize(h, &result.Client{}, result.Options{}, slices.Values(calls))
	if err != nil {
		t.Fatal(err)
	}
	of, err := result.Summarize(r.Header, &result.Client{}, result.Options{}, slices.Values(r.Calls))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range result.Metrics() {
		switch m.Family {
		case "", "ttft", "e2el", "ttfa", "stream", "ttft_due", "e2el_due", "queue":
		default:
			continue
		}
		if slices.Contains(append(r.Lacks, "new_connections"), m.Name) {
			continue
		}
		if a, b := own.Figures[m.Name], of.Figures[m.Name]; a != b {
			t.Errorf("%s of the calls was %v and is %v", m.Name, a, b)
		}
	}
	for _, name := range []string{"completed", "failed", "total_input_tokens", "total_output_tokens", "duration", "mean_ttft_ms", "max_ttft_ms", "request_rate", "max_concurrency", "max_concurrent_requests"} {
		if got, _ := r.Figure(name); math.Abs(got.Value-own.Figures[name]) > 1e-9*max(1, got.Value) {
			t.Errorf("%s is %v in the report, ours %v", name, got.Value, own.Figures[name])
		}
	}
	if got, want := guideValue(r.Figure("mean_e2el_ms")), own.Figures["mean_stream_ms"]; math.Abs(got-want) > 1e-6 {
		t.Errorf("mean E2E to the end of the stream is %v, ours %v", got, want)
	}
	if c := r.Calls[3]; c.Class != result.HTTPStatus {
		t.Errorf("a failure came back as %q", c.Class)
	}
}

// The distributions are those of guidellm's own code, 0.8.1, for these samples.
func TestGuideDistributions(t *testing.T) {
	d := ofValues([]weighed{{3, 2}, {1, 1}, {3, 1}, {2, 0}}, -1)
	if d.Mean != 2.5 || d.Median != 3 || d.Mode != 3 || d.Min != 1 || d.Count != 4 || d.Sum != 10 || d.Percentiles.P25 != 1 || d.Variance != 0.75 {
		t.Errorf("of values: %+v", d)
	}
	// events at 1 (2, merged), 2 and 4 in 0..5: over 0.5, 1, 1.5, 1.5 and 0.5 s
	d = ofRates([]weighed{{1, 1}, {1.00005, 1}, {2, 3}, {4, 6}, {9, 9}}, 0, 5)
	if d.Count != 11 || d.Max != 4 || d.Min != 0 || math.Abs(d.Mean-11.0/5) > 1e-12 || d.Median != 2 {
		t.Errorf("of rates: %+v", d)
	}
	d = ofOverlap([]weighed{{1, 3}, {2, 4}, {4, 5}}, 0, 6)
	if d.Count != 3 || d.Max != 2 || d.Min != 0 || math.Abs(d.Mean-5.0/6) > 1e-12 {
		t.Errorf("of overlaps: %+v", d)
	}
	if d := ofRates(nil, 0, 0); d.Count != 1 || d.Mean != 0 {
		t.Errorf("of nothing: %+v", d)
	}
}

func FuzzReadGuideLLM(f *testing.F) {
	f.Add(guideSmall(`{"successful":1,"incomplete":0,"errored":0}`, `{"successful":[`+guideOne("101", "101.5", "102", "103", "3", "3")+`]}`))
	f.Add([]byte(`{"args":{},"benchmarks":[{"metrics":{"tokens_per_second":{"successful":{"mean":"x"}}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := Read("f.json", data)
		if len(file.Runs) == 0 && len(file.Faults) == 0 && file.Doc == nil {
			t.Error("neither a run nor a fault")
		}
		for _, r := range Merge([]File{file, file})[0].Runs {
			if _, err := r.Summary(); err != nil {
				t.Error(err)
			}
			if _, err := GuideLLM(r.Header, r.Calls); err != nil {
				t.Error(err)
			}
		}
	})
}
