package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// In passes over a file each row comes once, however long the file is, and starts anew in each pass.
func TestPass(t *testing.T) {
	const rows = 1<<14 + 3
	var b strings.Builder
	for i := range rows {
		fmt.Fprintf(&b, "{\"prompt\":\"row %d\"}\n", i)
	}
	path := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(Spec{Dataset: "jsonl", Path: path, Duration: "10m", MaxConcurrency: 2, OutputLen: 4, DisableShuffle: true, Nonce: "n", Pass: rows})
	if err != nil {
		t.Fatal(err)
	}
	starts := map[int]string{}
	for r := range w.All() {
		start, row, ok := strings.Cut(r.Prompt, "\n")
		if want := fmt.Sprint("row ", r.Index%rows); !ok || row != want {
			t.Fatalf("request %d is %q, want %s", r.Index, r.Prompt, want)
		}
		pass := r.Index / rows
		if known, ok := starts[pass]; ok && known != start {
			t.Fatalf("request %d starts with %q, and its pass with %q", r.Index, start, known)
		}
		starts[pass] = start
		if r.Index == 3*rows-1 {
			break
		}
	}
	if len(starts) != 3 || starts[0] == starts[1] || starts[1] == starts[2] || starts[0] == starts[2] {
		t.Errorf("passes start with %v", starts)
	}
}
