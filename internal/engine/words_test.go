package engine

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                          nil,
		" vllm  serve\tM ":          {"vllm", "serve", "M"},
		`a 'b c' "d \"e\" $f" g\ h`: {"a", "b c", `d "e" $f`, "g h"},
		"a \\\n b ''":               {"a", "b", ""},
		`x='{"k": 1}'`:              {`x={"k": 1}`},
	} {
		got, err := Words(line)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", line, got, err, want)
		}
	}
	for _, line := range []string{"a 'b", `a "b\"`} {
		if _, err := Words(line); err == nil {
			t.Errorf("%q: no error", line)
		}
	}
}

// FuzzWords: what Quote quotes is read back.
func FuzzWords(f *testing.F) {
	f.Add("a b", `it's "quoted" \`, "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		want := []string{a, b, c}
		got, err := Words(strings.Join([]string{Quote(a), Quote(b), Quote(c)}, " "))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q became %q: %v", want, got, err)
		}
	})
}
