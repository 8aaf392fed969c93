package openai

import (
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/workload"
)

func request(prompt string) workload.Request { return workload.Request{Prompt: prompt} }

// chunkOfVLLM is what vLLM writes for one token of a chat.
const chunkOfVLLM = `data: {"id":"chatcmpl-6d3a0f8c3b6f4a0f9d1e2c3b4a5f6e7d","object":"chat.completion.chunk","created":1764000000,` +
	`"model":"Qwen/Qwen3-32B","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null,"token_ids":null}]}` + "\n\n"

// BenchmarkChunk is the client's own cost of one event, from the bytes of a
// read to the chunk in the call.
func BenchmarkChunk(b *testing.B) {
	for name, in := range map[string]string{
		"content":   chunkOfVLLM,
		"reasoning": strings.Replace(chunkOfVLLM, `"content"`, `"reasoning"`, 1),
		"escapes":   strings.Replace(chunkOfVLLM, " token", `\n\"\u00e9`, 1),
		"renamed":   strings.Replace(chunkOfVLLM, `"content"`, `"thinking"`, 1),
		"usage":     strings.Replace(chunkOfVLLM, `]}`, `],"usage":{"prompt_tokens":100,"total_tokens":120,"completion_tokens":20}}`, 1),
	} {
		b.Run(name, func(b *testing.B) {
			p := []byte(in)
			s := newStream(&result.Call{Chunks: make([]result.Chunk, 0, 1<<10)}, chat(), false)
			s.feed(p, 0, 0)
			s.feed(p, 0, 0)
			b.SetBytes(int64(len(p)))
			b.ReportAllocs()
			for b.Loop() {
				s.call.Chunks = s.call.Chunks[:0]
				if !s.feed(p, 1, 0) || len(s.call.Chunks) != 1 {
					b.Fatal(s.call.Error)
				}
			}
		})
	}
}

// TestChunkAllocates: a chunk costs no allocation, whole or cut over two reads.
func TestChunkAllocates(t *testing.T) {
	p := []byte(chunkOfVLLM)
	s := newStream(&result.Call{Chunks: make([]result.Chunk, 0, 1<<12)}, chat(), false)
	feed := func() {
		s.feed(p, 1, 0)
		s.feed(p[:100], 2, 0)
		s.feed(p[100:], 3, 0)
	}
	feed()
	if n := testing.AllocsPerRun(500, feed); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if s.call.Class != result.OK || len(s.call.Chunks) < 1000 {
		t.Errorf("class %q after %d chunks", s.call.Class, len(s.call.Chunks))
	}
}

func BenchmarkBody(b *testing.B) {
	t, err := newTemplate(Config{Model: "m"}, chat())
	if err != nil {
		b.Fatal(err)
	}
	r := workload.Request{Prompt: strings.Repeat("some words of a prompt, ", 1000), Output: 200}
	b.SetBytes(int64(len(r.Prompt)))
	b.ReportAllocs()
	for b.Loop() {
		t.build(r)
	}
}
