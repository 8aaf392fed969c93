package study

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"perflab/internal/field"
	"perflab/internal/tune/answers"
)

// guarded is a study file with n questions.
func guarded(t *testing.T, n int) *File {
	t.Helper()
	s, err := Parse("t.yaml", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "q.jsonl")
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"question\": \"What is %d+1?\", \"answer\": \"%d\"}\n", i, i+1)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Accuracy = &Accuracy{Questions: path, Declared: &Declarations{Base: 0.82, Effects: []Effect{{When: Values{"kv_cache_dtype": "fp8"}, Change: "-6pt", Flips: "2pt", Agreement: 0.6}}}}
	return s.File
}

func said(faults []*field.Error) string {
	var out []string
	for _, e := range faults {
		out = append(out, e.Reason)
	}
	return strings.Join(out, "\n")
}

// TestAccuracyChecks: what a study file may say of accuracy.
func TestAccuracyChecks(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit func(*File)
		want string // "": nothing is wrong
	}{
		{"good", func(*File) {}, ""},
		{"no bound", func(s *File) { s.Objective.SLOs = nil }, "nothing is held against these questions"},
		{"no questions", func(s *File) { s.Accuracy = nil }, "a bound on accuracy needs questions"},
		{"neither", func(s *File) { s.Accuracy, s.Objective.SLOs = nil, nil }, ""},
		{"limit", func(s *File) { s.Accuracy.Limit = -1 }, "limit is -1"},
		{"prompt", func(s *File) { s.Accuracy.Prompt = "Answer!" }, "prompt has no {question}"},
		{"agreement", func(s *File) { s.Accuracy.Agreement = 3 }, "3 is no share"},
		{"no file", func(s *File) { s.Accuracy.Questions = "" }, "questions is missing"},
		{"lost file", func(s *File) { s.Accuracy.Questions = "nope.jsonl" }, "questions nope.jsonl: no such file or directory (looked for at /"},
		{"backend", func(s *File) { s.Bench.Backend = "rerank" }, "backend rerank gives no answers"},
		{"nothing declared", func(s *File) { s.Accuracy.Declared = nil }, "declared is missing"},
		{"declared of a real engine", func(s *File) { s.Runtime.Kind = Process }, "declared does not apply to runtime kind process"},
		{"no base", func(s *File) { s.Accuracy.Declared.Base = 0 }, "base is missing"},
		{"base", func(s *File) { s.Accuracy.Declared.Base = 82 }, "82 is no share"},
		{"no when", func(s *File) { s.Accuracy.Declared.Effects[0].When = nil }, "when is missing"},
		{"when", func(s *File) { s.Accuracy.Declared.Effects[0].When = Values{"kv": "fp8"} }, "unknown parameter"},
		{"change", func(s *File) { s.Accuracy.Declared.Effects[0].Change = "-6" }, `"-6" is no number of points`},
		{"flips", func(s *File) { s.Accuracy.Declared.Effects[0].Flips = "-2pt" }, "flips cannot be negative"},
	} {
		s := guarded(t, 3)
		s.Objective.SLOs = []string{"accuracy >= baseline - 2pt"}
		tt.edit(s)
		c := &checker{s: s}
		c.accuracy()
		got := said(c.faults)
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestGuardOf: what a search is told of the block.
func TestGuardOf(t *testing.T) {
	s := guarded(t, 30)
	s.Accuracy.Agreement = 0.3
	if g := s.Accuracy.Guard(0.02); *g != (answers.Guard{Margin: 0.02, Agreement: 0.3, Questions: 30}) {
		t.Errorf("%+v", g)
	}
	if g := (*Accuracy)(nil).Guard(0.02); *g != (answers.Guard{Margin: 0.02}) {
		t.Errorf("%+v", g)
	}
}
