package interop

import (
	"bytes"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	block := "## Run\n\n```bash\nvllm serve Qwen/Qwen3-32B -tp 4\n```\n\n```\n============ Serving Benchmark Result ============\n" +
		"Successful requests:                     1000\nBenchmark duration (s):                  12.50\nTotal input tokens:                      1024000\nMean TTFT (ms):                          40.10\n" +
		"==================================================\n```\n\n| Option | Gain |\n|---|---|\n| A | +1% |\n\n"
	text := append([]byte("# Study\n\n"), bytes.Repeat([]byte(block), 200)...)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if f := Read("study.md", text); len(f.Runs) != 200 {
			b.Fatalf("%d runs", len(f.Runs))
		}
	}
}
