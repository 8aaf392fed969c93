package workload

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/datafile"
)

// hfDir makes a dataset's directory, as the cache has one or not.
func hfDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// numberedFrom is numbered with a first number.
func numberedFrom(first, n int, pattern string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(pattern, "%d", fmt.Sprint(first+i)) + "\n")
	}
	return b.String()
}

// TestHFSample: the order is that of load_dataset(...).shuffle(seed) of the datasets library
// (5.2, and NumPy) with both shards, and missing ones are drawn by Python's random.choice, as
// vllm bench serve --no-stream does.
func TestHFSample(t *testing.T) {
	const pattern = `{"problem": "problem %d", "solution": "so it is %d"}`
	dir := hfDir(t, map[string]string{
		"data/train-00000-of-00002.jsonl": numberedFrom(0, 3, pattern), "data/train-00001-of-00002.jsonl": numberedFrom(3, 4, pattern),
		"data/test-00000-of-00001.jsonl": numberedFrom(100, 2, pattern),
	})
	for _, tt := range []struct {
		spec Spec
		want []int
	}{
		{Spec{NumPrompts: 10}, []int{2, 4, 3, 6, 5, 0, 1, 1, 6, 1}},
		{Spec{NumPrompts: 10, Seed: 3}, []int{5, 6, 2, 1, 4, 3, 0, 6, 4, 4}},
		{Spec{NumPrompts: 2, Seed: 3}, []int{5, 6}},
		{Spec{NumPrompts: 5, DisableShuffle: true}, []int{0, 1, 2, 3, 4}},
		{Spec{HFSplit: "test", DisableShuffle: true, NoOversample: true}, []int{100, 101}},
	} {
		tt.spec.Dataset, tt.spec.Path, tt.spec.HFName, tt.spec.HFOutputLen = "hf", dir, "AI-MO/NuminaMath-CoT", 9
		var want, got []string
		for _, i := range tt.want {
			want = append(want, fmt.Sprintf("problem %d", i))
		}
		for r := range mustOpen(t, tt.spec).All() {
			if got = append(got, r.Prompt); r.Output != 9 {
				t.Errorf("%d tokens", r.Output)
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.spec, d)
		}
	}
}

// TestHFLarge: rows are read some at a time, in an order of all of them.
func TestHFLarge(t *testing.T) {
	path := hfDir(t, map[string]string{"x.json": "[" + strings.TrimSuffix(numberedFrom(0, 2500, `{"question": "%d"},`), ",\n") + "]"})
	s := Spec{Dataset: "hf", Path: filepath.Join(path, "x.json"), HFName: "openai/gsm8k", Seed: 42, NumPrompts: 2400}
	var got []string
	for r := range mustOpen(t, s).All() {
		got = append(got, r.Prompt)
	}
	if want := []string{"557", "1681", "257", "1388", "1557", "1688", "713", "2139"}; !slices.Equal(got[:8], want) {
		t.Errorf("%v, want %v", got[:8], want)
	}
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != 2400 {
		t.Errorf("%d different prompts of 2400", n)
	}
}

// TestHFKinds: what is sent of the rows of each dataset.
func TestHFKinds(t *testing.T) {
	for _, tt := range []struct {
		name, rows string
		want       []Request
		drops      []Drop
	}{
		{"openai/gsm8k", `{"question": "Why so?", "answer": "Because."}`, []Request{{Prompt: "Why so?", Input: 3, Output: 256, EOS: true}}, nil},
		{"openai/openai_humaneval", `{"task_id": "x/0", "prompt": "def f():", "canonical_solution": "pass"}`, []Request{{Prompt: "def f():", Input: 4, Output: 256, EOS: true}}, nil},
		{"philschmid/mt-bench", `{"turns": ["Say one.", "Say two."]}`, []Request{{Prompt: "Say one.", Input: 3, Output: 256, EOS: true}}, nil},
		{"likaixin/InstructCoder", `{"input": "x = 1", "instruction": "Double it.", "output": "x = 2"}`, []Request{
			{Prompt: "x = 1\n\nDouble it. Just output the code, do not include any explanation.", Input: 20, Output: 200, EOS: true}}, nil},
		{"AI-MO/aimo-validation-aime", `{"problem": "What is one and one?", "solution": "It is two of course."}` + "\n" + `{"problem": "Short", "solution": "It is two of course."}`,
			[]Request{{Prompt: "What is one and one?", Input: 6, Output: 6, EOS: true}}, []Drop{{"with a prompt under 4 tokens", 1}}},
		{"Aeala/ShareGPT_Vicuna_unfiltered", `{"conversations": [{"from": "human", "value": "How are you today?"}, {"from": "gpt", "value": "I am well today."}, {"from": "human", "value": "x"}]}` + "\n" + `{"conversations": [{"from": "human", "value": "Anybody there?"}]}`,
			[]Request{{Prompt: "How are you today?", Input: 5, Output: 5, EOS: true}}, []Drop{{tooFewTurns, 1}}},
		{"mgoin/mlperf-inference-llama2-data", `{"system_prompt": "Be nice.", "question": "How are you today?", "output": "I am well today.", "tok_input": [1]}`,
			[]Request{{System: "Be nice.", Prompt: "How are you today?", Input: 8, Output: 5, EOS: true}}, nil},
	} {
		path := file(t, tt.rows)
		w := mustOpen(t, Spec{Dataset: "hf", Path: path, HFName: tt.name, NoOversample: true, DisableShuffle: true})
		if d := cmp.Diff(tt.want, slices.Collect(w.All())); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if drops, _ := w.Dropped(); !cmp.Equal(drops, tt.drops) {
			t.Errorf("%s leaves out %v", tt.name, drops)
		}
		if text := w.Describe(); !strings.HasPrefix(text, "Dataset "+tt.name+" (") {
			t.Errorf("%s: %s", tt.name, text)
		}
		w = mustOpen(t, Spec{Dataset: "hf", Path: path, HFName: tt.name, NumPrompts: 1, HFOutputLen: 77})
		if r := slices.Collect(w.All())[0]; r.Output != 77 {
			t.Errorf("%s: %d tokens asked for of 77", tt.name, r.Output)
		}
	}
}

// TestHFInCache: a dataset is found by its name, and its name by the path of its files.
func TestHFInCache(t *testing.T) {
	cache := hfDir(t, map[string]string{
		"datasets--openai--gsm8k/refs/main":                                        "0123456789abcdef",
		"datasets--openai--gsm8k/snapshots/0123456789abcdef/main/test-0.jsonl":     `{"question": "main"}`,
		"datasets--openai--gsm8k/snapshots/0123456789abcdef/main/train-0.jsonl":    `{"question": "train"}`,
		"datasets--openai--gsm8k/snapshots/0123456789abcdef/socratic/test-0.jsonl": `{"question": "socratic"}`,
	})
	t.Setenv("HF_HUB_CACHE", cache)
	snapshot := filepath.Join(cache, "datasets--openai--gsm8k", "snapshots", "0123456789abcdef")
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Path: "openai/gsm8k"}, "main"},
		{Spec{Path: "openai/gsm8k", HFSplit: "train"}, "train"},
		{Spec{Path: "openai/gsm8k", HFSubset: "socratic"}, "socratic"},
		{Spec{Path: snapshot}, "main"},
		{Spec{Path: filepath.Join(snapshot, "socratic", "test-0.jsonl")}, "socratic"},
	} {
		tt.spec.Dataset, tt.spec.NumPrompts = "hf", 1
		w := mustOpen(t, tt.spec)
		if r := slices.Collect(w.All())[0]; r.Prompt != tt.want {
			t.Errorf("%+v sends %q", tt.spec, r.Prompt)
		}
	}
}

func TestHFFaults(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("HF_HUB_CACHE", cache)
	dir := hfDir(t, map[string]string{"main/test.jsonl": `{"prompt": "x"}`, "socratic/test.jsonl": `{"question": ""}`})
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{}, "dataset_name: hf needs dataset_path: the dataset's name, such as openai/gsm8k"},
		{Spec{Path: "openai/gsm8k"}, `dataset_path: openai/gsm8k is not in the Hugging Face cache (` + cache + `): get it by "hf download --repo-type dataset openai/gsm8k", or give the path of its files`},
		{Spec{Path: "openai/gsm9k"}, `dataset_path: "openai/gsm9k" is no dataset whose columns are known (known: AI-MO/NuminaMath-1.5,`},
		{Spec{Path: "x", HFName: "a/b"}, `hf_name: "a/b" is no dataset whose columns are known`},
		{Spec{Path: "lmarena-ai/VisionArena-Chat"}, "dataset_path: lmarena-ai/VisionArena-Chat has images, which are not read of datasets: for other prompts write a file for dataset_name custom or jsonl"},
		{Spec{Path: "./" + "data"}, "hf_name: is needed for the files of a dataset_path outside of the cache, to know their columns: AI-MO/NuminaMath-1.5,"},
		{Spec{Path: "/no/where", HFName: "openai/gsm8k"}, "dataset_path: cannot be opened: stat /no/where: no such file or directory"},
		{Spec{Path: dir, HFName: "philschmid/mt-bench"}, "hf_subset: " + dir + " has several subsets: choose one of main, socratic"},
		{Spec{Path: dir, HFName: "openai/gsm8k", HFSplit: "train"}, "hf_split: " + dir + " has no split train: it has test"},
		{Spec{Path: dir, HFName: "openai/gsm8k"}, `a row has no text in the column "question": is this a file of openai/gsm8k?`},
		{Spec{Path: dir, HFName: "openai/gsm8k", HFSubset: "socratic"}, "has no usable row: 1 read, 1 with an empty question or answer"},
		{Spec{Path: file(t, `{"conversations": 7}`), HFName: "Aeala/ShareGPT_Vicuna_unfiltered"}, `a row has no list in the column "conversations"`},
		{Spec{Path: file(t, `{"conversations": [1, 2]}`), HFName: "Aeala/ShareGPT_Vicuna_unfiltered"}, `a turn of "conversations" has no "value"`},
		{Spec{Path: file(t, `{"turns": []}`), HFName: "philschmid/mt-bench"}, `a row has no list in the column "turns"`},
		{Spec{Path: file(t, `{"turns": [7]}`), HFName: "philschmid/mt-bench"}, `the first of "turns" is no text`},
		{Spec{Path: file(t, `a,b`), HFName: "philschmid/mt-bench"}, "it is neither Parquet nor JSON"},
	} {
		tt.spec.Dataset = "hf"
		if _, err := Open(tt.spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v\n got %v\nwant %s", tt.spec, err, tt.want)
		}
	}
}

// FuzzHFRow: of any row of any dataset texts are taken, or an error says what it lacks.
func FuzzHFRow(f *testing.F) {
	f.Add(`{"question": "a b", "turns": ["c"], "conversations": [{"value": "d e f g"}, {"value": "h i j k"}]}`)
	f.Add(`{"problem": null, "solution": 7, "turns": [], "conversations": [[]]}`)
	p, err := newPromptBuilder(nil, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r datafile.Row
		if json.Unmarshal([]byte(text), &r) != nil {
			return
		}
		for name, k := range hfKinds() {
			got, err := k.take(r, Spec{}, p)
			if err == nil && got.reason == "" && (got.row.input < 1 || got.row.output < 1) {
				t.Errorf("%s: %+v of %s", name, got, text)
			}
		}
	})
}
