package nested

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// awkward are texts that YAML may take for something else.
var awkward = []string{"", " ", "a", "true", "Yes", "off", "y", "null", "~", "1", "0x1f", "1e3", "-", "- a", "a: b", "a #b", "#", "é", "\u0085", "\ufeff", "\t", "a\nb", "EOF",
	"'", `"`, `\`, "[", "{a", "&x", "*x", "!t", "%d", "@", "`", "org/model-1.0", "2026-01-01", "12:30", ".inf", "a\x7f", "=", "<<", "?", "fp8", "\u2028", "𝄞"}

func randomTree(r *rand.Rand, depth int) map[string]any {
	out := map[string]any{}
	for range r.IntN(4) {
		out[awkward[r.IntN(len(awkward))]] = randomValue(r, depth)
	}
	return out
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return r.IntN(2000) - 1000
	case n == 3:
		v, _ := Normal((r.Float64() - 0.5) * []float64{1, 1e-7, 1e20}[r.IntN(3)])
		return v
	case n < 6 || depth == 0:
		return awkward[r.IntN(len(awkward))]
	case n == 6:
		list := make([]any, r.IntN(3))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	return randomTree(r, depth-1)
}

// TestYAML: what is written reads as the same tree, in blocks and on one line.
func TestYAML(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		want := randomTree(r, 3)
		for _, text := range []string{Write(want), Flow(want)} {
			got, err := Read(text)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Fatalf("%v\n%s\n%s", err, text, d)
			}
		}
		if strings.Contains(Flow(want), "\n") {
			t.Fatalf("not on one line:\n%s", Flow(want))
		}
	}
}

func TestReadYAMLRefuses(t *testing.T) {
	for _, text := range []string{"a", "a: [1", "- a\n", "a: 1\na: 2\n", "a:  1\n b: 2\n", `"a`, `"a" b: 1`, "a: .nan\n", "a: 2026-01-01T00:00:00Z\n"} {
		if got, err := Read(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// FuzzReadYAML: what is read is written as text that reads the same.
func FuzzReadYAML(f *testing.F) {
	f.Add("a:\n  b: [1, \"x\"]\nc: null\n")
	f.Add("4: 2\n\"x y\": {\"z\": 0.25}\n")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Read(text)
		if err != nil {
			return
		}
		again, err := Read(Write(first))
		if d := cmp.Diff(prunedText(first), prunedText(again)); err != nil || d != "" {
			t.Errorf("%q: %v\n%s", text, err, d)
		}
	})
}

// prunedText is a tree as text, for NaN-free comparison.
func prunedText(tree map[string]any) string { return strings.TrimSpace(fmt.Sprint(tree)) }
