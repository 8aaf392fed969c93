package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// numbered is lines of a pattern, whose %d counts from 0.
func numbered(n int, pattern string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, pattern+"\n", i)
	}
	return b.String()
}

// The order of lines is the one of CPython: random.seed(seed), random.shuffle, and
// random.choice after the same seed again, as CustomDataset of vLLM 0.33 has it.
func TestCustomSample(t *testing.T) {
	path := file(t, numbered(7, `{"prompt": "p%d and more", "output_tokens": 5, "other": [1]}`))
	for _, tt := range []struct {
		spec Spec
		want []int
	}{
		{Spec{NumPrompts: 4, Seed: 3}, []int{0, 2, 3, 6}},
		{Spec{NumPrompts: 10}, []int{4, 2, 1, 0, 5, 3, 6, 6, 0, 6}},
		{Spec{NumPrompts: 10, Seed: 3, DisableShuffle: true}, []int{0, 1, 2, 3, 4, 5, 6, 1, 4, 4}},
		{Spec{NumPrompts: 10, NoOversample: true}, []int{4, 2, 1, 0, 5, 3, 6}},
	} {
		tt.spec.Dataset, tt.spec.Path = "custom", path
		var want, got []string
		for _, i := range tt.want {
			want = append(want, fmt.Sprintf("p%d and more", i))
		}
		for r := range mustOpen(t, tt.spec).All() {
			got = append(got, r.Prompt)
			if r.Output != 256 || !r.EOS {
				t.Errorf("%+v asks for %d tokens, EOS %v", tt.spec, r.Output, r.EOS)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("seed %d (-want +got):\n%s", tt.spec.Seed, d)
		}
	}
}

func TestCustomLengths(t *testing.T) {
	path := file(t, `{"prompt": "a b", "output_tokens": 5}
{"prompt": "c", "output_tokens": 6.0}

{"prompt": " "}
{"prompt": "d e f", "output_tokens": "7"}
`)
	for output, want := range map[int][]int{0: {256, 256, 256}, 9: {9, 9, 9}} {
		w := mustOpen(t, Spec{Dataset: "custom", Path: path, DisableShuffle: true, CustomOutputLen: output, NoOversample: true})
		var got []int
		for r := range w.All() {
			got = append(got, r.Output)
		}
		if !slices.Equal(got, want) {
			t.Errorf("--custom-output-len %d asks for %v", output, got)
		}
		if drops, read := w.Dropped(); read != 4 || !cmp.Equal(drops, []Drop{{"with an empty prompt", 1}}) {
			t.Errorf("read %d, dropped %v", read, drops)
		}
		if in := w.Totals().Input; in != 6 || w.KnowsInput() {
			t.Errorf("%d input tokens, known %v", in, w.KnowsInput())
		}
	}
	whole := file(t, `{"prompt": "a b", "output_tokens": 5}
{"prompt": "c", "output_tokens": 6.0}
{"prompt": "d", "output_tokens": "7"}
{"prompt": "never looked at"}
`)
	w := mustOpen(t, Spec{Dataset: "custom", Path: whole, DisableShuffle: true, CustomOutputLen: -1, NumPrompts: 3})
	if out := w.Totals().Output; out != 18 {
		t.Errorf("%d output tokens of the file's own, want 18", out)
	}
}

// TestQuestions: the answer gives the length and is nowhere in the request.
func TestQuestions(t *testing.T) {
	path := file(t, `{"question": "one two three", "answer": "four <<1+1=2>> five\n#### 6", "id": 9}
{"question": "alpha", "answer": ""}
{"question": "", "answer": "x"}
{"question": "seven", "answer": "eight"}
`)
	s := Spec{Dataset: "gsm8k", Path: path, DisableShuffle: true}
	want := []Request{
		{Index: 0, Prompt: "one two three", Input: 3, Output: 13, EOS: true},
		{Index: 1, Prompt: "seven", Input: 1, Output: 1, EOS: true},
	}
	w := mustOpen(t, s)
	if d := cmp.Diff(want, slices.Collect(w.All())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if drops, read := w.Dropped(); read != 4 || !cmp.Equal(drops, []Drop{{"with an empty question or answer", 2}}) {
		t.Errorf("read %d, dropped %v", read, drops)
	}
	s.OutputLen, s.NumPrompts = 50, 5
	if got := mustOpen(t, s).Totals(); got.Requests != 5 || got.Output != 250 {
		t.Errorf("of a given length: %+v", got)
	}
	shuffled := Spec{Dataset: "gsm8k", Path: file(t, numbered(7, `{"question": "q%d", "answer": "a"}`)), Seed: 3}
	var got []string
	for r := range mustOpen(t, shuffled).All() {
		got = append(got, r.Prompt)
	}
	if len(got) != 7 || !slices.Equal(got[:4], []string{"q0", "q2", "q3", "q6"}) {
		t.Errorf("shuffled: %v", got)
	}
}

func FuzzCustom(f *testing.F) {
	f.Add([]byte(`{"prompt": "a b", "output_tokens": 3, "x": {"y": []}}` + "\n\n" + `{"prompt": "c"}`))
	f.Add([]byte(`{"prompt": " "}`))
	fuzzDataset(f, "custom")
}

func FuzzGSM8K(f *testing.F) {
	f.Add([]byte(`{"question": "a b", "answer": "c d"}` + "\r\n" + `{"question": "", "answer": "c d"}`))
	f.Add([]byte(`null`))
	fuzzDataset(f, "gsm8k")
}
