package document

import (
	"fmt"
	"strings"
	"testing"

	"perflab/internal/audit"
	"perflab/internal/interop"
)

// wide is a made-up study of n experiments, no two alike: a section, a command,
// a block, a table and a sentence each.
func wide(n int) []byte {
	var b strings.Builder
	b.WriteString("# Qwen/Qwen3-32B on 8 x H100\n\n## Hardware\n\n8 x NVIDIA H100 SXM\n\n")
	for i := range n {
		rate := 1000 + 7*i
		fmt.Fprintf(&b, "## Experiment %d: option-%d\n\n```bash\nvllm serve Qwen/Qwen3-32B -tp 4 --max-num-seqs %d --option-%d %d\n```\n\n", i, i, 64+i, i, i)
		b.WriteString(blockText(200, 50, 100000, 20000, 70) + "\n")
		fmt.Fprintf(&b, "| Option | Gain |\n|---|---|\n| option-%d | Total TPS: %d.00 (+%d.%d%%) |\n\n", i, rate, i%40, i%10)
		fmt.Fprintf(&b, "- option-%d gives %d.00 tok/s vs %d.00 tok/s, 1.%02dx faster.\n\n", i, rate+1, rate, i%100)
	}
	return []byte(b.String())
}

func BenchmarkFiles(b *testing.B) {
	for _, n := range []int{20, 1000} {
		f := interop.Read("wide.md", wide(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				Audit([]interop.File{f}, audit.Options{})
			}
		})
	}
}
