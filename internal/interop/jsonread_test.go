package interop

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
)

var update = flag.Bool("update", false, "write the golden files")

// loadFiles are result files in testdata/load: of AIPerf and inference-perf as
// they wrote them of a simulated engine, the others by make.py there.
var loadFiles = []string{
	"vllm-detailed.json", "vllm-appended.json", "vllm-rust.json", "sglang.jsonl", "profile_export_aiperf.json", "profile_export.jsonl",
	"summary_lifecycle_metrics.json", "stage_0_lifecycle_metrics.json", "per_request_lifecycle_metrics.json",
}

func readLoad(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "load", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// describe writes all that a file was read as.
func describe(f File) string {
	var b strings.Builder
	for _, r := range f.Runs {
		h, i := r.Header, r.Header.Imported
		fmt.Fprintf(&b, "run %s to %d\n", r.Place, r.Place.End)
		fmt.Fprintf(&b, "  %s %s, format %s, file %s, lines %d to %d\n", i.Client, i.Version, i.Format, i.File, i.Line, i.End)
		fmt.Fprintf(&b, "  model %q backend %q tokenizer %q workload %q requests %d rate %v limit %d started %s sim %v\n",
			h.Model, h.Backend, h.Tokenizer, h.Workload, h.Requests, h.Rate, h.Limit, h.Started.Format(time.RFC3339), r.Sim)
		for _, k := range slices.Sorted(maps.Keys(i.Labels)) {
			fmt.Fprintf(&b, "  label %s: %s\n", k, i.Labels[k])
		}
		for _, k := range slices.Sorted(maps.Keys(r.Defs)) {
			fmt.Fprintf(&b, "  definition of %s: %s\n", k, r.Defs[k])
		}
		for _, g := range r.Figures {
			fmt.Fprintf(&b, "  %d: %s = %v ± %.3g (%s: %s)\n", g.Line, g.Name, g.Value, g.Half, g.Label, g.Text)
		}
		for _, o := range r.Other {
			fmt.Fprintf(&b, "  %d: other %s: %s\n", o.Line, o.Label, o.Text)
		}
		for _, c := range r.Calls {
			fmt.Fprintf(&b, "  call %d session %d due %v sent %v end %v in %d recount %d usage %+v class %q error %q chunks %v\n",
				c.Index, c.Session, c.Due, c.Sent, c.End, c.WantIn, c.Recount, c.Usage, c.Class, c.Error, c.Chunks)
		}
	}
	for _, x := range f.Faults {
		fmt.Fprintf(&b, "fault %s\n", x)
	}
	return b.String()
}

func TestReadLoadGolden(t *testing.T) {
	for _, name := range loadFiles {
		got := describe(Read("results/"+name, readLoad(t, name)))
		path := filepath.Join("testdata", "load", name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func summarizeCalls(t *testing.T, r Run, compat string) result.Summary {
	t.Helper()
	s, err := result.Summarize(r.Header, &result.Client{}, result.Options{Compat: compat, Percentiles: []float64{50, 99, 99.9}}, slices.Values(r.Calls))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The calls of a detailed file give the figures that its client printed.
func TestVLLMCallsGiveItsFigures(t *testing.T) {
	r := Read("x.json", readLoad(t, "vllm-detailed.json")).Runs[0]
	if len(r.Calls) != 6 {
		t.Fatalf("%d calls, want 6", len(r.Calls))
	}
	s := summarizeCalls(t, r, result.VLLM)
	compared := 0
	for _, f := range r.Figures {
		if slices.Contains([]string{"duration", "request_throughput", "output_throughput", "total_token_throughput"}, f.Name) {
			continue // over the client's wall clock, whose ends are not in the file
		}
		got, ok := s.Figures[f.Name]
		if !ok || math.Abs(got-f.Value) > 1e-6*math.Abs(f.Value) {
			t.Errorf("%s of the calls = %v (there: %v), the file has %v", f.Name, got, ok, f.Value)
		}
		compared++
	}
	if compared < 30 {
		t.Errorf("only %d figures compared", compared)
	}
}

// What other clients' requests give by our definitions where those are theirs.
func TestRequestsGiveTheSummary(t *testing.T) {
	for _, tt := range []struct {
		summary, requests string
		names             []string
	}{
		{"profile_export_aiperf.json", "profile_export.jsonl", []string{"completed", "mean_ttft_ms", "p99_ttft_ms", "mean_e2el_ms", "max_e2el_ms", "total_output_tokens"}},
		{"summary_lifecycle_metrics.json", "per_request_lifecycle_metrics.json", []string{"completed", "mean_ttft_ms", "max_ttft_ms", "total_input_tokens"}},
	} {
		want := Read(tt.summary, readLoad(t, tt.summary)).Runs[0]
		s := summarizeCalls(t, Read(tt.requests, readLoad(t, tt.requests)).Runs[0], "")
		for _, name := range tt.names {
			f, ok := want.Figure(name)
			if got := s.Figures[name]; !ok || math.Abs(got-f.Value) > 1e-6*f.Value {
				t.Errorf("%s of %s = %v, %s has %v (there: %v)", name, tt.requests, got, tt.summary, f.Value, ok)
			}
		}
	}
}

// madeCalls are calls of one token a read, with a failed one and one of a single token.
func madeCalls() []result.Call {
	ms := func(n int) time.Duration { return time.Duration(n)*time.Millisecond + 137 }
	var calls []result.Call
	for i := range 7 {
		sent := ms(130 * i)
		c := result.Call{Index: i, Due: sent, Ready: sent, Sent: sent, End: sent + ms(60+25*i), Reads: i + 1, WantIn: 10 + i}
		for k := range i + 1 {
			c.Chunks = append(c.Chunks, result.Chunk{At: sent + ms(50+i) + time.Duration(k)*ms(17+i), Tokens: 1, Read: int32(k)})
		}
		c.End = c.Chunks[i].At
		c.Usage = &result.Usage{Prompt: 10 + i, Completion: i + 1}
		calls = append(calls, c)
	}
	calls[3].Class, calls[3].Error, calls[3].Chunks, calls[3].Usage = result.TimeoutIdle, "a gap of 2m0s", nil, nil
	return calls
}

func TestPerflabRoundTrip(t *testing.T) {
	calls := madeCalls()
	h := result.Header{Model: "org/m", Backend: "vllm", Requests: 7, Rate: 8, Limit: 4, Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	families := []string{"ttft", "tpot", "itl", "e2el", "stream"}
	for _, compat := range []string{"", result.VLLM} {
		s, err := result.Summarize(h, &result.Client{}, result.Options{Compat: compat}, slices.Values(calls))
		if err != nil {
			t.Fatal(err)
		}
		data, err := VLLM(h, s, calls, VLLMOptions{Detailed: true, Sections: families, Percentiles: []float64{50, 95}, Metadata: map[string]string{"gpu": "h100"}})
		if err != nil {
			t.Fatal(err)
		}
		f := Read("dir/run.json", data)
		if len(f.Runs) != 1 || len(f.Faults) != 0 {
			t.Fatalf("compat %q: %d runs, faults %v", compat, len(f.Runs), f.Faults)
		}
		r := f.Runs[0]
		if i := r.Header.Imported; i.Client != "perflab bench" || i.Labels["gpu"] != "h100" || r.Header.Model != h.Model || r.Header.Rate != 8 || r.Header.Limit != 4 || !r.Header.Started.Equal(h.Started) {
			t.Errorf("compat %q: header %+v of %+v", compat, r.Header, i)
		}
		if diff := cmp.Diff(s.Definitions, r.Defs); compat != "" && diff != "" || compat == "" && len(r.Defs) != 0 {
			t.Errorf("compat %q: definitions %v", compat, r.Defs)
		}
		for _, g := range r.Figures {
			if v, ok := s.Figures[g.Name]; !ok || v != g.Value {
				t.Errorf("compat %q: %s = %v, written was %v (%v)", compat, g.Name, g.Value, v, ok)
			}
		}
		if len(r.Figures) < 30 {
			t.Errorf("compat %q: only %d figures", compat, len(r.Figures))
		}
		again := summarizeCalls(t, r, compat)
		for name, v := range s.Figures {
			m, _ := result.Lookup(name)
			if !slices.Contains(families, m.Family) || m.Stat == "p90" || m.Stat == "p95" {
				continue
			}
			if got := again.Figures[name]; math.Abs(got-v) > 1e-9*v {
				t.Errorf("compat %q: %s of the calls read = %v, want %v", compat, name, got, v)
			}
		}
		if c := r.Calls[3]; c.Class != result.TimeoutIdle || c.Error != "a gap of 2m0s" {
			t.Errorf("compat %q: the failed call is read as %q, %q", compat, c.Class, c.Error)
		}
	}
}
