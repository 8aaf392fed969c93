package record_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/record"
	"perflab/internal/sim"
	"perflab/internal/test/simtest"
	"perflab/internal/workload"
	"perflab/internal/workload/blocktrace"
)

// known is a trace of known times, lengths and shared prefixes, in blocks of 16.
func known() []blocktrace.Row {
	var rows []blocktrace.Row
	for i := range 12 {
		r := blocktrace.Row{Timestamp: float64(40*i*(1+i%3)) + 0.125*float64(i), Input: 100 + 7*i, Output: 3 + i%4, Block: 16}
		for k := range blocktrace.Blocks(r.Input, r.Block) {
			id := int64(1000*i + k) // its own
			switch {
			case k < 3:
				id = int64(k) // of all
			case k < 5 && i%2 == 0:
				id = int64(100 + k) // of every second one
			}
			r.IDs = append(r.IDs, id)
		}
		rows = append(rows, r)
	}
	slices.SortStableFunc(rows, func(a, b blocktrace.Row) int { return int(a.Timestamp - b.Timestamp) })
	return rows
}

// structure is the rows with their blocks numbered in the order in which they come, so that two recordings compare.
func structure(rows []blocktrace.Row) (out []string) {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b blocktrace.Row) int { return int(1e3*a.Timestamp) - int(1e3*b.Timestamp) })
	number := map[int64]int{}
	for _, r := range rows {
		var blocks []int
		for _, id := range r.IDs {
			if _, ok := number[id]; !ok {
				number[id] = len(number)
			}
			blocks = append(blocks, number[id])
		}
		out = append(out, fmt.Sprint(r.Timestamp, r.Input, r.Output, blocks))
	}
	return out
}

func writeRows(t *testing.T, rows []blocktrace.Row) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(text(t, r) + "\n")
	}
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// replay sends the requests of a trace at their times through a proxy to a simulated engine, and returns what was recorded.
func replay(t *testing.T, path string, o record.Options) []blocktrace.Row {
	w, err := workload.Open(workload.Spec{Dataset: "mooncake", Path: path, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	e := simtest.Start(t, engineConfig(), simtest.Options{Core: sim.Options{KVTokens: 100_000}})
	l := simtest.Listen()
	to, _ := url.Parse("http://sim.test")
	d := serve(t, l, &record.Proxy{Target: to, Dial: func() (net.Conn, error) { return e.Listener.DialContext(t.Context(), "", "") }}, o)
	transport := &http.Transport{DialContext: l.DialContext, DisableCompression: true}
	defer transport.CloseIdleConnections()
	var wg sync.WaitGroup
	for r := range w.All() {
		wg.Go(func() {
			time.Sleep(r.Due)
			send(t, &http.Client{Transport: transport}, r)
		})
	}
	wg.Wait()
	transport.CloseIdleConnections()
	d.stop()
	rows, err := record.Read(d.path)
	if err != nil {
		t.Error(err)
	}
	return rows
}

func send(t *testing.T, c *http.Client, r workload.Request) {
	body, err := json.Marshal(map[string]any{"model": engineConfig().Model.Name, "max_tokens": r.Output, "ignore_eos": true, "stream": true,
		"stream_options": map[string]any{"include_usage": true}, "messages": []any{map[string]string{"role": "user", "content": r.Prompt}}})
	if err != nil {
		t.Error(err)
		return
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://proxy/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(got), "[DONE]") {
		t.Errorf("%d: %s, %v", resp.StatusCode, got, err)
	}
}

// TestRoundTrip: a load of known times, lengths and shared prefixes is recorded as it was, in whatever blocks, and its recording, replayed and
// recorded again, is the same.
func TestRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		original := known()
		first := replay(t, writeRows(t, original), record.Options{Block: 16})
		if a, b := structure(original), structure(first); !slices.Equal(a, b) {
			t.Errorf("recorded\n%s\nof\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
		}
		second := replay(t, writeRows(t, first), record.Options{Block: 16})
		if a, b := structure(first), structure(second); !slices.Equal(a, b) {
			t.Errorf("the second time\n%s\nof\n%s", strings.Join(b, "\n"), strings.Join(a, "\n"))
		}
		for i, r := range second {
			if !r.Simulated || r.InputBy+r.OutputBy != "" || r.TextTokens != r.Input {
				t.Errorf("line %d: %+v", i, r)
			}
		}
	})
}

func engineConfig() engine.Config {
	return engine.Config{
		Engine: "vllm", TP: 1, PP: 1, DP: 1, EP: 1, GPUs: 1,
		Model: arch.Model{
			Name: "test/dense", Layers: 32, Hidden: 4096, Heads: 32, KVHeads: 8, HeadDim: 128,
			FFN: 14336, Vocab: 128256, MaxLen: 32768, Format: arch.BF16,
		},
		GPU: arch.Accelerator{
			Name: "h100-sxm", BF16TFLOPS: 989, FP8TFLOPS: 1979, BandwidthGBs: 3350, MemoryGiB: 79.2, LinkGBs: 450, LinkLatency: 5, SM: 90,
		},
		Seqs: 256, Batched: 8192, MaxLen: 32768, MemoryShare: 0.9, KVBytes: 2, Block: 16,
		Prefix: true, Chunked: true, GraphMax: 512,
	}
}
