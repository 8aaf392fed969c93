package engine

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"perflab/internal/engine/shellwords"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
		err  string
	}{
		{"vllm serve m -tp 8", []string{"vllm", "serve", "m", "-tp", "8"}, ""},
		{"  a\tb  ", []string{"a", "b"}, ""},
		{"vllm serve m \\\n  -tp 8\n", []string{"vllm", "serve", "m", "-tp", "8"}, ""},
		{"a \\\r\n b", []string{"a", "b"}, ""},
		{`--c='{"method":"mtp","n":1}'`, []string{`--c={"method":"mtp","n":1}`}, ""},
		{`--c "{\"a\": 1}"`, []string{"--c", `{"a": 1}`}, ""},
		{`a '' b`, []string{"a", "", "b"}, ""},
		{`a\ b 'it'\''s' "\n"`, []string{"a b", "it's", `\n`}, ""},
		{"", nil, ""},
		{"a 'b", nil, "not closed"},
		{"a | b", nil, "needs a shell"},
		{"vllm serve $MODEL", nil, "needs a shell"},
		{"a\nb", nil, "needs a shell"},
	} {
		got, err := shellwords.Split(c.line)
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("Split(%q) error %v, want %q", c.line, err, c.err)
		case c.err == "" && (err != nil || !slices.Equal(got, c.want)):
			t.Errorf("Split(%q) = %q, %v, want %q", c.line, got, err, c.want)
		}
	}
}

// What Quote writes, Split reads.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"a", "it's", "", `{"a":[1]}`, "a b\nc", `\`, "ü"} {
		f.Add(s, "b")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.Contains(a+b, "\r\n") || !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		got, err := shellwords.Split(Quote(a) + " " + Quote(b))
		if err != nil || !slices.Equal(got, []string{a, b}) {
			t.Errorf("Split of %s %s = %q, %v", Quote(a), Quote(b), got, err)
		}
	})
}

// TestLines: a file of commands, one a line.
func TestLines(t *testing.T) {
	got := shellwords.Lines("# two of them\nvllm serve a \\\n  -tp 2\n\n  trtllm-serve b\n")
	if want := []string{"vllm serve a    -tp 2", "trtllm-serve b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
