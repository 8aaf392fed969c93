package interop

import (
	"strings"
	"testing"
)

// TestPrefixedBlock reads a block whose every line a log, a diff or a comment
// has put something before.
func TestPrefixedBlock(t *testing.T) {
	block := []string{"============ Serving Benchmark Result ============", "Successful requests:      100", "Benchmark duration (s):   50.00",
		"---------------Time to First Token----------------", "Mean TTFT (ms):           974.57", "=================================================="}
	plain := Read("plain.txt", []byte(strings.Join(block, "\n")))
	for _, prefix := range []string{"+", "+ ", "# ", "(APIServer pid=12) INFO 09-02 13:08:1# [serve.py:12] ", "[2025-09-02 13:08:1#] ", "bench-0 | ", "\x1b[32m", "> ", "    "} {
		var lines []string
		for i, l := range block {
			lines = append(lines, strings.ReplaceAll(prefix, "1#", "1"+string(rune('0'+i)))+l)
		}
		f := Read("doc.txt", []byte(strings.Join(append(lines, "afterwards"), "\n")))
		if len(f.Runs) != 1 || len(f.Runs[0].Figures) != len(plain.Runs[0].Figures) || len(f.Faults) > 0 {
			t.Errorf("%q: %d runs, faults %v", prefix, len(f.Runs), f.Faults)
		}
	}
}
