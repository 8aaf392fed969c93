package engine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perflab/internal/redact"
)

// seeds are the recorded texts of a folder.
func seeds(f *testing.F, pattern string) (texts []string) {
	f.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		f.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return texts
}

// FuzzParseHelp: what is read out of a help is in it, sorted and once.
func FuzzParseHelp(f *testing.F) {
	for _, text := range seeds(f, "testdata/*.help.txt") {
		f.Add(text[:min(len(text), 3000)])
	}
	f.Add("  --port PORT, -p PORT\n  -a / --no-a\n  --x,   --y=Z [a, -b]  text --z\n\x1b[1m--port\x1b[0m")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range All() {
			h, err := ParseHelp(e, text)
			if err != nil {
				continue
			}
			if !slices.IsSorted(h.Flags) || len(slices.Compact(slices.Clone(h.Flags))) != len(h.Flags) {
				t.Errorf("%q", h.Flags)
			}
			bare := redact.Plain(text)
			for _, name := range h.Flags {
				if !strings.HasPrefix(name, "-") || !strings.Contains(bare, name) {
					t.Errorf("%q is no flag of %q", name, text)
				}
			}
		}
	})
}

// FuzzParseText: what is printed of a command that is written as one line is read again as the
// same command, also where its values are JSON of a speculative or a transfer
// configuration.
func FuzzParseText(f *testing.F) {
	for _, s := range []string{
		`vllm serve m --speculative-config '{"method":"eagle3","num_speculative_tokens":3,"model":"d"}'`, `vllm serve m --kv-transfer-config '{"kv_connector":1e400}'`,
		`A=1 python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE`, `trtllm-serve m --config "a b"`, `docker run x vllm serve m | tee log`, "vllm serve m \\\n --tp 8 # c",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseText(text)
		if err != nil {
			return
		}
		printed := c.String()
		again, err := ParseText(printed)
		if err != nil {
			t.Fatalf("%q is printed as %q: %v", text, printed, err)
		}
		if twice := again.String(); twice != printed {
			t.Fatalf("%q is printed as %q, then as %q", text, printed, twice)
		}
	})
}
