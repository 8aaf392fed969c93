package start

import (
	"slices"
	"strings"
	"testing"

	"perflab/examples"
)

// TestComplete: | stands where the cursor is.
func TestComplete(t *testing.T) {
	for _, test := range []struct {
		text string
		with []string // all of these, the first one first where it begins with !
		none []string
	}{
		{"|", []string{"name: ", "hardware:", "workloads:", "model: "}, nil},
		{"name: x\nhard|", []string{"!hardware:"}, []string{"name: "}},
		{"name: x\n|\nmodel: y\n", []string{"runtime:"}, []string{"name: ", "model: "}},
		{"strategy: |", []string{"staged", "race"}, nil},
		{"strategy: st|", []string{"!staged"}, []string{"survey"}},
		{"hardware:\n  |", []string{"gpu: ", "gpus: "}, []string{"name: "}},
		{"hardware:\n  gpu: h100|", []string{"h100-sxm"}, []string{"a100-sxm-80gb"}},
		{"runtime:\n  kind: |", []string{"simulated", "docker"}, nil},
		{"runtime:\n  docker:\n    pu|", []string{"!pull: "}, []string{"kind: "}},
		{"engines:\n  |", []string{"vllm:", "sglang:"}, nil},
		{"engines:\n  vllm:\n    |", []string{"version: ", "flags:"}, nil},
		{"engines:\n  vllm:\n    set:\n      max_num|", []string{"max_num_seqs: "}, []string{"version: "}},
		{"workloads:\n  - name: a\n    |", []string{"dataset_name: ", "num_prompts: "}, []string{"name: "}},
		{"workloads:\n- name: a\n  dataset_name: |", []string{"random", "sharegpt"}, nil},
		{"workloads:\n  - |", []string{"name: "}, nil},
		{"workloads:\n  - name: a\n  - |", []string{"name: "}, nil},
		{"objective:\n  metric: p99_tt|", []string{"!p99_ttft_ms"}, nil},
		{"baseline: {label: x, eng|", []string{"engine: "}, []string{"label: "}},
		{"baseline: {label: x, engine: |", []string{"vllm"}, nil},
		{"baseline: {engine: vllm, set: {t|", []string{"!tp: "}, []string{"label: "}},
		{"space:\n  engine: [|", []string{"vllm"}, nil},
		{"stages:\n  - name: a\n    try:\n      - {label: b, |", []string{"engine: ", "set:"}, []string{"label: "}},
		{"model: |", []string{"Qwen/Qwen3-8B"}, nil},
		{"bench:\n  # back|", nil, []string{"backend: "}},
		{"nothing:\n  |", nil, []string{"name: "}},
		{"name: é|", nil, []string{"name: "}},
	} {
		before, _, _ := strings.Cut(test.text, "|")
		line := strings.Count(before, "\n") + 1
		column := len([]rune(before[strings.LastIndex(before, "\n")+1:])) + 1
		var got []string
		for _, c := range complete(strings.Replace(test.text, "|", "", 1), line, column) {
			got = append(got, c.Text)
		}
		for _, want := range test.with {
			want, first := strings.CutPrefix(want, "!")
			if i := slices.Index(got, want); i < 0 || first && i > 0 {
				t.Errorf("%q: %q is at %d of %q", test.text, want, i, got)
			}
		}
		for _, not := range test.none {
			if slices.Contains(got, not) {
				t.Errorf("%q: %q is offered", test.text, not)
			}
		}
	}
}

// TestCompleteExamples: at every place of a right file where a key or a value begins, what stands
// there is among what is offered, if anything is.
func TestCompleteExamples(t *testing.T) {
	text, found := examples.Quickstart, 0
	for n, line := range strings.Split(text, "\n") {
		m := keyLine.FindStringSubmatchIndex(line)
		if m == nil || strings.HasPrefix(line, "#") {
			continue
		}
		var got []string
		without := strings.Split(text, "\n")
		without[n] = ""
		for _, c := range complete(strings.Join(without, "\n"), n+1, 1) {
			got = append(got, strings.TrimRight(c.Text, ": "))
		}
		if key := line[m[2]:m[3]]; !slices.Contains(got, key) {
			t.Errorf("line %d: %s is not offered, but %q", n+1, key, got)
		}
		found++
	}
	if found < 8 {
		t.Errorf("only %d keys were looked at", found)
	}
}

func FuzzComplete(f *testing.F) {
	f.Add(examples.Quickstart, 20, 5)
	f.Add("a: {b: [", 1, 9)
	f.Add("- - - a", 1, 8)
	f.Add(strings.Repeat("- ", 900)+"a", 1, 1800)
	f.Add(strings.Repeat("- ", 1<<18), 1, 1<<19)
	f.Add("{"+strings.Repeat("a", 1<<20), 1, 1<<20)
	f.Fuzz(func(t *testing.T, text string, line, column int) {
		if line < 1 || column < 1 {
			t.Skip()
		}
		if got := complete(text, line, column); got == nil || len(got) > mostChoices {
			t.Errorf("%d choices", len(got))
		}
	})
}
