package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readAfter is what an object says that follows another one in a stream.
func readAfter(before, in string) (said, bool) {
	s := scanner{grammar: chat().grammar, keep: true}
	s.parse([]byte(before), nil)
	s.text = nil
	ok := s.parse([]byte(in), nil)
	return saidBy(&s), ok
}

// TestPattern: what is like the object before it is read the same as if none
// had been before.
func TestPattern(t *testing.T) {
	object := strings.TrimSuffix(strings.TrimPrefix(chunkOfVLLM, "data: "), "\n\n")
	with := func(old, new string) string { return strings.Replace(object, old, new, 1) }
	for name, tt := range map[string]struct {
		in      string
		pattern bool // it is read by the pattern
	}{
		"the same":          {object, true},
		"another text":      {with(" token", "x"), true},
		"not UTF-8":         {with(" token", "\xff"), true},
		"no text":           {with(" token", ""), false},
		"an escape":         {with(" token", `a\n\u00e9`), true},
		"a broken escape":   {with(" token", `a\x`), false},
		"a control":         {with(" token", "a\n"), false},
		"a field behind it": {with(" token", `a","refusal":"b`), false},
		"another field":     {with(`"content"`, `"reasoning"`), false},
		"a finish":          {with(`"finish_reason":null`, `"finish_reason":"stop"`), false},
		"more":              {object + "}", false},
		"less":              {object[:len(object)-1], false},
		"another id":        {with("6d3a", "6d3b"), false},
	} {
		s := scanner{grammar: chat().grammar}
		s.parse([]byte(object), nil)
		if _, matches := s.matches([]byte(tt.in)); matches != tt.pattern {
			t.Errorf("%s: by the pattern: %v", name, matches)
		}
		want, valid := readAfter("", tt.in)
		if got, ok := readAfter(object, tt.in); ok != valid || ok && cmp.Diff(want, got) != "" {
			t.Errorf("%s: accepted %v, want %v: %s", name, ok, valid, cmp.Diff(want, got))
		}
	}
}

// FuzzPattern: what was read before changes nothing of what an object says.
func FuzzPattern(f *testing.F) {
	object := `{"choices":[{"delta":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":5}}`
	for _, in := range []string{object, strings.Replace(object, `"a"`, `"bc"`, 1), strings.Replace(object, `"a"`, `"","refusal":"a"`, 1)} {
		f.Add(object, in)
	}
	f.Fuzz(func(t *testing.T, before, in string) {
		for _, before := range []string{before, in} { // itself too
			want, valid := readAfter("", in)
			if got, ok := readAfter(before, in); ok != valid || ok && cmp.Diff(want, got) != "" {
				t.Fatalf("after %q: accepted %v, want %v: %s", before, ok, valid, cmp.Diff(want, got))
			}
		}
	})
}
