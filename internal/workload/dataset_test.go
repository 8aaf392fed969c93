package workload

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/token"

	"github.com/google/go-cmp/cmp"
)

// file writes text to a file of its own and returns the path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustOpen(t *testing.T, s Spec) *Workload {
	t.Helper()
	w, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// checkLengths fails where a prompt has other than Input tokens.
func checkLengths(t *testing.T, reqs []Request) {
	t.Helper()
	for _, r := range reqs {
		if n := token.Count(r.Prompt); n != r.Input {
			t.Fatalf("request %d has %d prompt tokens, Input says %d", r.Index, n, r.Input)
		}
	}
}

const azureText = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
	"2023-11-16 18:17:03.9799600,480,10\r\n" +
	"2023-11-16 18:17:04.0319600,318,8\r\n" +
	"2023-11-16 18:17:04.0781490,110,0\r\n" +
	"2023-11-16 18:17:05.4799600,34,12\r\n"

const mooncakeText = `{"timestamp": 0, "input_length": 1300, "output_length": 500, "hash_ids": [0, 1, 2]}
{"timestamp": 1500, "input_length": 1100, "output_length": 49, "hash_ids": [0, 1, 3]}
{"timestamp": 3000, "input_length": 600, "output_length": 7, "hash_ids": [4, 5]}
{"timestamp": 3000, "input_length": 1100, "output_length": 7, "hash_ids": [0, 1, 3]}
`

func TestRandom(t *testing.T) {
	s := Spec{NumPrompts: 300, RandomInputLen: 50, RandomOutputLen: 10, RandomRangeRatio: 0.25, RandomPrefixLen: 20, Seed: 3}
	reqs := slices.Collect(mustOpen(t, s).All())
	checkLengths(t, reqs)
	prefix := token.Append(nil, reqs[0].Prompt)[:20]
	in, out, block := map[int]bool{}, map[int]bool{}, map[string]int{}
	for _, r := range reqs {
		ids := token.Append(nil, r.Prompt)
		if !slices.Equal(ids[:20], prefix) {
			t.Fatalf("request %d does not begin with the shared prefix", r.Index)
		}
		if r.EOS {
			t.Fatal("random prompts must ignore EOS")
		}
		in[r.Input-20], out[r.Output] = true, true
		for b := 20; b+16 <= len(ids); b += 16 {
			block[fmt.Sprint(ids[b:b+16])]++
		}
	}
	// [floor(50·0.75), ceil(50·1.25)] = [37, 63], [7, 13]
	for _, x := range []struct {
		name   string
		got    map[int]bool
		lo, hi int
	}{{"input", in, 37, 63}, {"output", out, 7, 13}} {
		for n := x.lo; n <= x.hi; n++ {
			if !x.got[n] {
				t.Errorf("no %s length %d in 300 requests", x.name, n)
			}
		}
		if len(x.got) != x.hi-x.lo+1 {
			t.Errorf("%s lengths outside [%d, %d]: %v", x.name, x.lo, x.hi, x.got)
		}
	}
	for b, n := range block {
		if n > 1 {
			t.Errorf("block %s stands in %d places", b, n)
		}
	}
}

// shareGPTFile returns a dataset whose rows have prompts and answers of the given
// numbers of one-token words.
func shareGPTFile(lengths ...[2]int) string {
	words := func(n int, first string) string {
		if n == 0 {
			return ""
		}
		return first + strings.Repeat(" word", n-1)
	}
	var rows []string
	for i, l := range lengths {
		rows = append(rows, fmt.Sprintf(`{"id": "x\"]}%d", "conversations": [{"from": "human", "value": %q}, {"from": "gpt", "value": %q}]}`,
			i, words(l[0], string(rune('a'+i))), words(l[1], "so")))
	}
	return "[\n" + strings.Join(rows, ",\n") + "\n]\n"
}

func TestShareGPT(t *testing.T) {
	one := `{"conversations": [{"value": "a single turn has no answer"}]}`
	text := shareGPTFile([2]int{4, 4}, [2]int{3, 50}, [2]int{1024, 1024}, [2]int{1025, 10}, [2]int{50, 3}, [2]int{1000, 1049}, [2]int{7, 9})
	text = strings.TrimSuffix(text, "\n]\n") + "," + one + "]"
	path := file(t, text)

	w := mustOpen(t, Spec{Dataset: "sharegpt", Path: path, NoOversample: true, DisableShuffle: true})
	reqs := slices.Collect(w.All())
	checkLengths(t, reqs)
	var got [][2]int
	for _, r := range reqs {
		got = append(got, [2]int{r.Input, r.Output})
		if !r.EOS {
			t.Error("a natural prompt must not ignore EOS unasked")
		}
	}
	if want := [][2]int{{4, 4}, {1024, 1024}, {7, 9}}; !cmp.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	drops, read := w.Dropped()
	want := []Drop{{"with a prompt over 1024 tokens", 1}, {"with a prompt under 4 tokens", 1}, {"with an answer under 4 tokens", 1},
		{"with fewer than two turns", 1}, {"with prompt and answer over 2048 tokens", 1}}
	if d := cmp.Diff(want, drops); d != "" || read != 8 {
		t.Errorf("%d read, dropped (-want +got):\n%s", read, d)
	}

	// A fixed output length skips the answer's minimum.
	w = mustOpen(t, Spec{Dataset: "sharegpt", Path: path, NoOversample: true, ShareGPTOutputLen: 30, IgnoreEOS: true})
	n := 0
	for r := range w.All() {
		n++
		if r.Output != 30 || r.EOS {
			t.Errorf("request %+v: want 30 output tokens, EOS ignored", r)
		}
	}
	if n != 5 {
		t.Errorf("%d requests with a fixed output length, want 5", n)
	}

	// Too few rows are drawn again, and the shuffle is the seed's.
	first := func(seed uint64) (inputs []int) {
		for r := range mustOpen(t, Spec{Dataset: "sharegpt", Path: path, NumPrompts: 40, Seed: seed}).All() {
			inputs = append(inputs, r.Input)
		}
		return inputs
	}
	a := first(1)
	if len(a) != 40 || !slices.Equal(a, first(1)) || slices.Equal(a, first(2)) {
		t.Errorf("oversampled inputs %v: want 40, the same for one seed, others for another", a)
	}
	head := slices.Sorted(slices.Values(a[:3]))
	if !slices.Equal(head, []int{4, 7, 1024}) {
		t.Errorf("the first three are %v: want each row once before any twice", head)
	}
}

func TestAzure(t *testing.T) {
	path := file(t, azureText)
	w := mustOpen(t, Spec{Dataset: "azure", Path: path, Speed: 2})
	reqs := slices.Collect(w.All())
	checkLengths(t, reqs)
	var got []Request
	for _, r := range reqs {
		r.Prompt = ""
		got = append(got, r)
	}
	want := []Request{
		{Index: 0, Due: 0, Input: 480, Output: 10},
		{Index: 1, Due: 26 * time.Millisecond, Input: 318, Output: 8},
		{Index: 2, Due: 750 * time.Millisecond, Input: 34, Output: 12},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if drops, read := w.Dropped(); read != 4 || !cmp.Equal(drops, []Drop{{"with no output tokens", 1}}) {
		t.Errorf("read %d, dropped %v", read, drops)
	}
	if n := mustOpen(t, Spec{Dataset: "azure", Path: path, NumPrompts: 2, Rate: 4, Arrival: "constant"}).Totals(); n != (Totals{2, 798, 18, 250 * time.Millisecond}) {
		t.Errorf("first two rows at a rate: %+v", n)
	}
	// Rows out of order are put in order; a zone is understood.
	zoned := "GeneratedTokens,TIMESTAMP,ContextTokens\n5,2024-05-10 00:00:02.5+00:00,9\n6,2024-05-10 00:00:00+00:00,8\n"
	reqs = slices.Collect(mustOpen(t, Spec{Dataset: "azure", Path: file(t, zoned)}).All())
	if reqs[0].Input != 8 || reqs[1].Input != 9 || reqs[1].Due != 2500*time.Millisecond {
		t.Errorf("rows out of order: %+v", reqs)
	}
}

func TestMooncakeSharesPrefixes(t *testing.T) {
	path := file(t, mooncakeText)
	reqs := slices.Collect(mustOpen(t, Spec{Dataset: "mooncake", Path: path}).All())
	checkLengths(t, reqs)
	ids := make([][]uint32, len(reqs))
	for i, r := range reqs {
		ids[i] = token.Append(nil, r.Prompt)
	}
	shared := func(a, b int) int {
		n := 0
		for n < min(len(ids[a]), len(ids[b])) && ids[a][n] == ids[b][n] {
			n++
		}
		return n
	}
	for _, tt := range []struct{ a, b, want int }{{0, 1, 1024}, {0, 2, 0}, {1, 3, 1100}} {
		if got := shared(tt.a, tt.b); got != tt.want {
			t.Errorf("requests %d and %d share %d tokens, want %d", tt.a, tt.b, got, tt.want)
		}
	}
	if reqs[2].Due != 3*time.Second || reqs[1].Due != 1500*time.Millisecond {
		t.Errorf("due at %v and %v, want 1.5s and 3s", reqs[1].Due, reqs[2].Due)
	}
	other := slices.Collect(mustOpen(t, Spec{Dataset: "mooncake", Path: path, Seed: 1}).All())
	if other[0].Prompt == reqs[0].Prompt {
		t.Error("another seed sends the same blocks")
	}
}

// TestRecordedBlocks: blocks of another size, with what perflab's own recordings say besides.
func TestRecordedBlocks(t *testing.T) {
	path := file(t, `{"timestamp": 0, "input_length": 40, "output_length": 5, "hash_ids": [9007199254740991, 2, 3], "block_size": 16, "session": "a", "status": 200}
{"timestamp": 7.5, "input_length": 33, "output_length": 6, "hash_ids": [9007199254740991, 2, 4], "block_size": 16, "temperature": 0, "input_by": "estimate"}
{"timestamp": 8, "input_length": 0, "output_length": 0, "hash_ids": [], "block_size": 16, "status": 400, "error": "http"}
`)
	w := mustOpen(t, Spec{Dataset: "mooncake", Path: path})
	reqs := slices.Collect(w.All())
	checkLengths(t, reqs)
	a, b := token.Append(nil, reqs[0].Prompt), token.Append(nil, reqs[1].Prompt)
	if len(reqs) != 2 || !slices.Equal(a[:32], b[:32]) || a[32] == b[32] || reqs[1].Due != 7500*time.Microsecond {
		t.Errorf("%d requests, the second due at %v:\n%v\n%v", len(reqs), reqs[1].Due, a, b)
	}
}

func TestJSONL(t *testing.T) {
	path := file(t, `{"prompt": "one two three", "output_tokens": 5}

{"messages": [{"role": "user", "content": "four five"}]}
{"prompt": ""}
`)
	s := Spec{Dataset: "jsonl", Path: path, DisableShuffle: true, OutputLen: 9}
	want := []Request{
		{Index: 0, Prompt: "one two three", Input: 3, Output: 5, EOS: true},
		{Index: 1, Prompt: "four five", Input: 2, Output: 9, EOS: true},
	}
	w := mustOpen(t, s)
	if d := cmp.Diff(want, slices.Collect(w.All())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if drops, read := w.Dropped(); read != 3 || !cmp.Equal(drops, []Drop{{"with an empty prompt", 1}}) {
		t.Errorf("read %d, dropped %v", read, drops)
	}
	s.OutputLen, s.NumPrompts = 0, 5
	if got := mustOpen(t, s).Totals(); got.Requests != 5 {
		t.Errorf("oversampled to %d, want 5", got.Requests)
	}
	s.NoOversample = true
	if got := mustOpen(t, s).Totals(); got != (Totals{2, 5, 5, 0}) {
		t.Errorf("not oversampled: %+v", got)
	}
}

func TestBadFiles(t *testing.T) {
	for _, tt := range []struct {
		dataset, text, want string
	}{
		{"azure", "", "its first line must name the columns TIMESTAMP, ContextTokens, GeneratedTokens"},
		{"azure", "a,b\n1,2\n", "its first line must name the columns"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "has no usable row: it has no rows at all"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,2\n", "line 2: TIMESTAMP \"yesterday\" is not of the form"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1.5,2\n", "line 2: ContextTokens \"1.5\" is not a whole number"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,x\n", "line 2: GeneratedTokens \"x\" is not a whole number"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,-2\n", "line 2: negative length"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1\n", "line 2: wrong number of fields"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n0001-01-01 00:00:00,1,1\n2023-11-16 18:17:03,1,1\n", "line 3: TIMESTAMP is years away"},
		{"azure", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,0,2\n2023-11-16 18:17:03,3,0\n2023-11-16 18:17:03,4,0\n",
			"has no usable row: 3 read, 2 with no output tokens, 1 with no input tokens"},
		{"mooncake", `{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1]}`, "line 1: 1 hash_ids of 512 tokens each do not make an input_length of 600"},
		{"mooncake", `{"timestamp": 0, "prompt_length": 600}`, "line 1: unknown field \"prompt_length\" (accepted keys: timestamp, input_length, output_length, hash_ids, block_size and what perflab record adds)"},
		{"mooncake", `{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2], "block_size": 64}`, "line 1: 2 hash_ids of 64 tokens each do not make an input_length of 600"},
		{"mooncake", `{"timestamp": 0, "input_length": 600, "output_length": 1, "hash_ids": [1, 2], "block_size": -1}`, "line 1: a block_size of -1: a block has at least one token"},
		{"mooncake", `{"timestamp": 0, "input_length": 99999999, "output_length": 1, "hash_ids": [1]}`, "over the limit"},
		{"mooncake", `{"timestamp": 1e300, "input_length": 1, "output_length": 1, "hash_ids": [1]}`, "timestamp 1e+300 ms is out of range"},
		{"mooncake", "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [1]}\n{\"timest", "line 2: the line ends inside the JSON object"},
		{"jsonl", `{"question": "why?"}`, "line 1: unknown field \"question\" (accepted keys: prompt or messages, output_tokens, system, images, documents, model, tools, tool_choice, response_format, fields)"},
		{"jsonl", `{}`, "line 1: a row needs a prompt"},
		{"jsonl", `{"prompt": "a"} {"prompt": "b"}`, "line 1: more follows the JSON object"},
		{"jsonl", `{"prompt": "a", "messages": []}`, "line 1: a row has a prompt or messages, not both"},
		{"jsonl", `{"messages": [{"role": "system", "content": "a"}]}`, "line 1: messages must go user, assistant, user, and end with the role \"user\""},
		{"jsonl", `{"prompt": "a", "output_tokens": 0}`, "line 1: output_tokens 0 must be from 1"},
		{"jsonl", `{"prompt": ""}`, "has no usable row: 1 read, 1 with an empty prompt"},
		{"custom", `{"text": "a"}`, "line 1: has no \"prompt\""},
		{"custom", "{\"prompt\": \"a\"}\n{\"prompt\": 7}", "line 2: cannot unmarshal number"},
		{"custom", `{"prompt": "a"} {}`, "line 1: more follows the JSON object"},
		{"custom", `{"prompt": "a`, "line 1: the line ends inside the JSON object"},
		{"custom", "null", "line 1: is no JSON object"},
		{"gsm8k", `{"question": "why?"}`, "line 1: needs a \"question\" and"},
		{"gsm8k", `[{"question": "why?"}]`, "line 1: cannot unmarshal array"},
		{"gsm8k", `{"question": "why?", "answer": ""}`, "has no usable row: 1 read, 1 with an empty question or answer"},
		{"sharegpt", `{"a": []}`, "byte 0 is '{': the file must be a JSON array of objects"},
		{"sharegpt", `[1]`, "byte 1 is '1': the file must be a JSON array of objects"},
		{"sharegpt", `[] x`, "byte 3 is 'x'"},
		{"sharegpt", `[{"id": "a"}, {"conv`, "the file ends inside row 2: is it complete"},
		{"sharegpt", `[{"conversations": 7}]`, "row 1: json: cannot unmarshal"},
		{"sharegpt", `[]`, "has no usable row: it has no rows at all"},
		{"sharegpt", `[{}, {"conversations": []}]`, "has no usable row: 2 read, 2 with fewer than two turns"},
	} {
		path := file(t, tt.text)
		_, err := Open(Spec{Dataset: tt.dataset, Path: path})
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s %q\n got %v\nwant %s", tt.dataset, tt.text, err, tt.want)
		}
	}
	_, err := Open(Spec{Dataset: "azure", Path: file(t, azureText), NumPrompts: 4})
	if err == nil || !strings.Contains(err.Error(), "num_prompts: 4 is more than its 3 usable rows") {
		t.Errorf("a trace too short: %v", err)
	}
	_, err = Open(Spec{Dataset: "sharegpt", Path: "absent.json"})
	if err == nil || !strings.Contains(err.Error(), "absent.json does not exist: download ShareGPT_V3") {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Open(Spec{Dataset: "jsonl", Path: t.TempDir()}); err == nil {
		t.Error("a directory is read as a dataset")
	}
}
