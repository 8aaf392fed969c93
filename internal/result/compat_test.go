package result

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// compatCalls are the calls of testdata/compat.py.
func compatCalls() []Call {
	at := func(ms int) time.Duration { return time.Duration(ms) * msec }
	token := func(ms, read int) Chunk { return Chunk{At: at(ms), Tokens: 1, Read: int32(read)} }
	call := func(i, sent, prompt, n int, end int) Call {
		c := Call{Index: i, Due: at(sent), Ready: at(sent), Sent: at(sent), End: at(end), WantIn: prompt, Reads: 9}
		if n > 0 {
			c.Usage = &Usage{Prompt: prompt, Completion: n}
		}
		return c
	}
	a := call(0, 0, 10, 4, 80)
	a.Empty = []Stamp{{at(30), 0}, {at(75), 3}}
	a.Chunks = []Chunk{token(50, 1), token(60, 2), token(60, 2)}
	b := call(1, 160, 20, 6, 1060)
	b.New, b.Dial = true, 10*msec // vLLM's clock starts at 150 ms, before the connection
	b.Chunks = []Chunk{token(1010, 0), token(1030, 1), token(1050, 2)}
	c := call(2, 990, 30, 1, 2510)
	c.Empty = []Stamp{{at(1990), 0}, {at(2500), 1}}
	c.Chunks = []Chunk{token(1990, 0)}
	d := call(3, 100, 40, 0, 1310)
	d.Chunks = []Chunk{token(400, 0), token(700, 1), token(1000, 2), token(1300, 3)}
	e := fail(call(4, 200, 50, 0, 2750), TimeoutIdle) // lasts longest
	return []Call{a, b, c, d, e}
}

func TestCompatVLLM(t *testing.T) {
	raw, err := os.ReadFile("testdata/compat.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]float64
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	bounds, err := ParseGoodput("ttft:600 tpot:12")
	if err != nil {
		t.Fatal(err)
	}
	calls := compatCalls()
	h := Header{Backend: "openai-chat"}
	ours := summarize(t, h, Options{Goodput: bounds}, calls)
	s := summarize(t, h, Options{Goodput: bounds, Compat: VLLM}, calls)
	for name, v := range want {
		if got, ok := s.Figures[name]; !ok || math.Abs(got-v) > 1e-9*math.Abs(v) {
			t.Errorf("%s = %v (there: %v), want %v", name, got, ok, v)
		}
	}
	if s.Figures["mean_ttft_ms"] == ours.Figures["mean_ttft_ms"] || s.Figures["min_itl_ms"] != 0 || s.Samples["itl"] != 11 {
		t.Errorf("not vLLM's: mean TTFT %v, min ITL %v of %d", s.Figures["mean_ttft_ms"], s.Figures["min_itl_ms"], s.Samples["itl"])
	}
	// What vLLM has no figure for stays.
	for _, name := range []string{"mean_ttft_due_ms", "mean_stream_ms", "mean_connect_ms", "mean_itl_token_ms", "merged_chunks", "failed"} {
		if s.Figures[name] != ours.Figures[name] {
			t.Errorf("%s becomes %v from %v", name, s.Figures[name], ours.Figures[name])
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(ours.Figures)), slices.Sorted(maps.Keys(s.Figures))); diff != "" {
		t.Errorf("other figures are there: -ours +compat\n%s", diff)
	}
}

func TestCompatOfNothing(t *testing.T) {
	s := summarize(t, Header{}, Options{Compat: VLLM}, []Call{fail(stream(0, 0, 50*msec), Connect)})
	for _, name := range []string{"mean_ttft_ms", "max_output_tokens_per_s", "request_throughput"} {
		if v, ok := s.Figures[name]; ok {
			t.Errorf("%s = %v, want it absent", name, v)
		}
	}
}
