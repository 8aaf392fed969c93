package openai

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
)

// TestCallRetainsNothingElse: a call that is kept keeps its chunks and its usage, and
// neither the buffers of its stream nor the exchange that brought it.
func TestCallRetainsNothingElse(t *testing.T) {
	const n, tokens = 2000, 32
	event := `data: {"choices":[{"index":0,"delta":{"content":"word"}}]}` + "\n\n"
	body := []byte(strings.Repeat(event, tokens) + `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":32}}` + "\n\ndata: [DONE]\n\n")
	kept := make([]result.Call, 0, n)
	before := liveBytes()
	for range n {
		rec := &callRecorder{}
		rec.stream = newStream(&rec.call, chat(), true)
		rec.call.Chunks = make([]result.Chunk, 0, tokens)
		rec.stream.feed(body, time.Millisecond, 1)
		rec.stream.end(time.Second)
		rec.stream.settle()
		if rec.call.Class != result.OK {
			t.Fatal(rec.call.Error)
		}
		call := rec.call
		call.Text = ""
		kept = append(kept, call)
	}
	const most = 16*tokens + 100 // the chunks, and the usage
	if each := (liveBytes() - before) / n; each > most {
		t.Errorf("a call keeps %d bytes besides itself, want %d at most", each, most)
	}
	runtime.KeepAlive(kept)
}

func liveBytes() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
