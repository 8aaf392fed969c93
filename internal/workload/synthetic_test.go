package workload

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/token"

	"github.com/google/go-cmp/cmp"
)

const burstText = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
	"5,ChatGPT,472,18,490,Conversation log\n" +
	"45.5,ChatGPT,1087,230,1317,Conversation log\n" +
	"118,GPT-4,417,30,447,Conversation log\n" +
	"118.25,GPT-4,99,0,99,API log\n" +
	"60,GPT-4,417,12,429,API log\n"

func TestBurstGPT(t *testing.T) {
	path := file(t, burstText)
	w := mustOpen(t, Spec{Dataset: "burstgpt", Path: path, Speed: 2})
	reqs := slices.Collect(w.All())
	checkLengths(t, reqs)
	for i := range reqs {
		reqs[i].Prompt = ""
	}
	want := []Request{
		{Index: 0, Due: 0, Input: 472, Output: 18},
		{Index: 1, Due: 20250 * time.Millisecond, Input: 1087, Output: 230},
		{Index: 2, Due: 27500 * time.Millisecond, Input: 417, Output: 12},
		{Index: 3, Due: 56500 * time.Millisecond, Input: 417, Output: 30},
	}
	if d := cmp.Diff(want, reqs); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	// vLLM keeps GPT-4's rows that were answered.
	w = mustOpen(t, Spec{Dataset: "burstgpt", Path: path, BurstGPTModel: "GPT-4", Rate: 2, Arrival: "constant"})
	if got := w.Totals(); got != (Totals{2, 834, 42, 500 * time.Millisecond}) {
		t.Errorf("GPT-4: %+v", got)
	}
	drops, read := w.Dropped()
	if d := cmp.Diff([]Drop{{"of another model than GPT-4", 2}, {"with no output tokens", 1}}, drops); d != "" || read != 5 {
		t.Errorf("%d read, dropped (-want +got):\n%s", read, d)
	}
	head := "Timestamp,Model,Request tokens,Response tokens\n"
	for text, want := range map[string]string{
		"Timestamp,Model\n":           "its first line must name the columns Timestamp, Model, Request tokens, Response tokens",
		head + "now,GPT-4,1,1\n":      `line 2: the Timestamp "now" is not a number of seconds`,
		head + "NaN,GPT-4,1,1\n":      `line 2: the Timestamp "NaN" is not a number of seconds`,
		head + "0,x,1,1\n1e9,x,1,1\n": "line 3: the Timestamp is years away",
		head + "1,GPT-4,1.5,1\n":      `line 2: the Request tokens "1.5" are not a whole number`,
		head + "1,GPT-4,1,x\n":        `line 2: the Response tokens "x" are not a whole number`,
		head + "1,GPT-4,-1,1\n":       "line 2: negative length",
		head + "1,ChatGPT,1,1\n":      "has no usable row: 1 read, 1 of another model than GPT-4",
	} {
		_, err := Open(Spec{Dataset: "burstgpt", Path: file(t, text), BurstGPTModel: "GPT-4"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := Open(Spec{Dataset: "burstgpt"}); err == nil || !strings.Contains(err.Error(), "needs dataset_path: a CSV file with the columns Timestamp, Model") {
		t.Errorf("without a file: %v", err)
	}
}

func TestGuideLLMFilter(t *testing.T) {
	turn := func(from, value string) string { return fmt.Sprintf(`{"from": %q, "value": %q}`, from, value) }
	row := func(turns ...string) string { return `{"conversations": [` + strings.Join(turns, ",") + `]}` }
	text := "[" + strings.Join([]string{
		row(turn("human", "one"), turn("gpt", "two words")),
		row(turn("gpt", "a b c d"), turn("human", "e f g h")),
		row(turn("human", ""), turn("gpt", "a")),
		row(turn("human", "a")),
		row(turn("user", strings.Repeat("long ", 3000)), turn("assistant", "so")),
		row(turn("human", "last one"), turn("gpt", "yes"), turn("human", "more")),
	}, ",") + "]"
	path := file(t, text)
	w := mustOpen(t, Spec{Dataset: "sharegpt", Path: path, ShareGPTFilter: "guidellm", NoOversample: true, Seed: 9})
	var got [][2]int
	for r := range w.All() {
		got = append(got, [2]int{r.Input, r.Output})
	}
	if d := cmp.Diff([][2]int{{1, 2}, {3001, 1}, {2, 1}}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	drops, read := w.Dropped()
	want := []Drop{{"that do not begin with a question and its answer", 1}, {"with an empty question or answer", 1}, {"with fewer than two turns", 1}}
	if d := cmp.Diff(want, drops); d != "" || read != 6 {
		t.Errorf("%d read, dropped (-want +got):\n%s", read, d)
	}
	if !strings.HasPrefix(w.Describe(), "ShareGPT dataset (data, as guidellm takes it): ") {
		t.Error(w.Describe())
	}
	// The question is measured with what the model puts around it, the answer alone.
	tok := splitter{count: func(text string, special bool) int {
		if special {
			return 100
		}
		return 7
	}}
	for r := range openWith(t, Spec{Dataset: "sharegpt", Path: path, ShareGPTFilter: "guidellm", NumPrompts: 2}, tok).All() {
		if r.Input != 100 || r.Output != 7 {
			t.Errorf("request %d: %d and %d tokens", r.Index, r.Input, r.Output)
		}
	}
}

// shares returns how many leading tokens each pair of prompts has in common.
func shares(reqs []Request, a, b int) int {
	x, y := token.Append(nil, reqs[a].Prompt), token.Append(nil, reqs[b].Prompt)
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	return n
}

// groupsOf counts the requests of each group of prompts that share a prefix.
func groupsOf(t *testing.T, reqs []Request, prefix int) []int {
	t.Helper()
	groups := map[string]int{}
	whole := map[string]bool{}
	for _, r := range reqs {
		ids := token.Append(nil, r.Prompt)
		groups[fmt.Sprint(ids[:prefix])]++
		if whole[r.Prompt] {
			t.Fatalf("request %d repeats an earlier one", r.Index)
		}
		whole[r.Prompt] = true
	}
	return slices.Sorted(maps.Values(groups))
}

func TestPrefixRepetition(t *testing.T) {
	s := Spec{Dataset: "prefix_repetition", NumPrompts: 30, PrefixRepetitionNumPrefixes: 5, PrefixRepetitionPrefixLen: 40, PrefixRepetitionSuffixLen: 10, PrefixRepetitionOutputLen: 3}
	reqs := slices.Collect(mustOpen(t, s).All())
	checkLengths(t, reqs)
	if got := groupsOf(t, reqs, 40); !slices.Equal(got, []int{6, 6, 6, 6, 6}) {
		t.Errorf("prompts by prefix: %v", got)
	}
	if r := reqs[0]; r.Input != 50 || r.Output != 3 || r.EOS {
		t.Errorf("request %+v", r)
	}
	s.DisableShuffle = true
	reqs = slices.Collect(mustOpen(t, s).All())
	for i := range reqs[1:] {
		if same := shares(reqs, i, i+1) >= 40; same != ((i+1)%6 != 0) {
			t.Errorf("in order, requests %d and %d share a prefix: %v", i, i+1, same)
		}
	}
}

func TestSharedPrefix(t *testing.T) {
	s := Spec{Dataset: "shared-prefix", GSPNumGroups: 8, GSPPromptsPerGroup: 100, GSPSystemPromptLen: 12, GSPQuestionLen: 5, GSPOutputLen: 2}
	reqs := slices.Collect(mustOpen(t, s).All())
	checkLengths(t, reqs)
	if got := groupsOf(t, reqs, 12); !slices.Equal(got, slices.Repeat([]int{100}, 8)) {
		t.Errorf("prompts by group: %v", got)
	}
	if r := reqs[0]; r.Input != 17 || r.Output != 2 || r.EOS {
		t.Errorf("request %+v", r)
	}
	// With an exponent of 1 group g of 8 has 1/g of the 800 in 2.7179 parts.
	s.GSPZipfAlpha = 1
	zipf := slices.Collect(mustOpen(t, s).All())
	checkLengths(t, zipf)
	got := groupsOf(t, zipf, 12)
	slices.Reverse(got)
	for i, n := range got {
		p := 1 / float64(i+1) / 2.717857
		if want, sd := 800*p, math.Sqrt(800*p*(1-p)); math.Abs(float64(n)-want) > 4*sd {
			t.Errorf("group %d has %d prompts, want %.0f ± %.0f", i+1, n, want, sd)
		}
	}
}

func TestSonnet(t *testing.T) {
	w := mustOpen(t, Spec{Dataset: "sonnet", NumPrompts: 40})
	reqs := slices.Collect(w.All())
	checkLengths(t, reqs)
	for _, r := range reqs {
		if r.Input > 550 || r.Input < 550-20 || r.Output != 150 || !r.EOS {
			t.Errorf("request %d: %d input and %d output tokens", r.Index, r.Input, r.Output)
		}
	}
	if n := shares(reqs, 0, 1); n > 205 || n < 200-20 {
		t.Errorf("two prompts share %d tokens, want nearly 200", n)
	}
	own := mustOpen(t, Spec{Dataset: "sonnet", Path: file(t, "the first line\n\n  the second one\n"), NumPrompts: 3, SonnetInputLen: 40, SonnetPrefixLen: 5})
	for r := range own.All() {
		if !strings.Contains(r.Prompt, "line") && !strings.Contains(r.Prompt, "\nthe second one\n") {
			t.Errorf("prompt %q", r.Prompt)
		}
	}
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Dataset: "sonnet", SonnetInputLen: 12, SonnetPrefixLen: 3}, "sonnet_input_len: 12 has no room for a line behind the question and the shared lines: give at least"},
		{Spec{Dataset: "sonnet", Path: file(t, "\n \n")}, "has no line of text"},
		{Spec{Dataset: "sonnet", Path: "absent.txt"}, "dataset_path: absent.txt does not exist"},
	} {
		if _, err := Open(tt.spec); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v\nwant %s", err, tt.want)
		}
	}
}

func TestScenario(t *testing.T) {
	lengths := func(text string) (in, out []int) {
		for r := range mustOpen(t, Spec{Scenario: text, NumPrompts: 2000}).All() {
			in, out = append(in, r.Input), append(out, r.Output)
		}
		return in, out
	}
	if in, out := lengths("D(7,9)"); slices.Max(in) != 7 || slices.Min(in) != 7 || slices.Max(out) != 9 || slices.Min(out) != 9 {
		t.Error("D(7,9) must be 7 and 9 always")
	}
	in, out := lengths("U(3,8)/(20,30)")
	for _, x := range []struct {
		got    []int
		lo, hi int
	}{{in, 3, 8}, {out, 20, 30}} {
		if all := slices.Compact(slices.Sorted(slices.Values(x.got))); len(all) != x.hi-x.lo+1 || all[0] != x.lo {
			t.Errorf("uniform lengths %v, want each from %d to %d", all, x.lo, x.hi)
		}
	}
	if in, out := lengths("U(4,2)"); slices.Min(in) != 1 || slices.Max(in) != 4 || slices.Min(out) != 1 || slices.Max(out) != 2 {
		t.Error("U(4,2) must go from 1")
	}
	// Mean 60 ± 10 and nothing cut; mean 2 ± 5 is cut at 1.
	in, out = lengths("N(60,10)/(2,5)")
	mean, square := 0.0, 0.0
	for _, n := range in {
		mean += float64(n) / 2000
		square += float64(n*n) / 2000
	}
	if sd := math.Sqrt(square - mean*mean); math.Abs(mean-60) > 1 || math.Abs(sd-10) > 0.7 {
		t.Errorf("normal lengths have mean %.2f and deviation %.2f, want 60 and 10", mean, sd)
	}
	if slices.Min(out) != 1 || slices.Max(out) < 12 {
		t.Errorf("cut lengths from %d to %d", slices.Min(out), slices.Max(out))
	}

	for text, want := range map[string]Request{
		"E(5)":   {Input: 15, EOS: true},
		"R(6,2)": {Input: 20, EOS: true},
	} {
		for r := range mustOpen(t, Spec{Scenario: text, NumPrompts: 2, RandomBatchSize: 3}).All() {
			n := []int{token.Count(r.Prompt)}
			for _, d := range r.Documents {
				n = append(n, token.Count(d))
			}
			lengths := map[string][]int{"E(5)": {5, 5, 5}, "R(6,2)": {2, 6, 6, 6}}[text]
			if !slices.Equal(n, lengths) || r.Documents[0] == r.Documents[1] {
				t.Errorf("%s: texts of %v tokens, want %v, all different", text, n, lengths)
			}
			r.Prompt, r.Documents, r.Index = "", nil, 0
			if d := cmp.Diff(want, r); d != "" {
				t.Errorf("%s (-want +got):\n%s", text, d)
			}
		}
	}
	if r := mustOpen(t, Spec{Scenario: "E(5)", NumPrompts: 1}).request(0); r.Documents != nil || token.Count(r.Prompt) != 5 {
		t.Errorf("one text to embed: %+v", r)
	}
}

func TestMadeFaults(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Scenario: "D(100)"}, `scenario: "D(100)" must be of the form D(100,100) (input and output tokens of each request)`},
		{Spec{Scenario: "N(480,240)"}, `scenario: "N(480,240)" must be of the form N(480,240)/(300,150) (mean and standard deviation of input and output tokens)`},
		{Spec{Scenario: "U(1,2)/(3)"}, `scenario: "U(1,2)/(3)" must be of the form U(50,100)/(200,250) (least and most input and output tokens) or U(100,200) (most input and output tokens, from 1)`},
		{Spec{Scenario: "I(512,512)"}, `scenario: "I(512,512)" must be of the form D(100,100), N(480,240)/(300,150), U(50,100)/(200,250), U(100,200), E(1024) or R(1024,100)`},
		{Spec{Scenario: "D(-1,2)"}, `scenario: "D(-1,2)" must be of the form D(100,100) (input and output tokens of each request)`},
		{Spec{Scenario: "D(0,2)"}, "scenario: D(0,2): number 1 of pair 1 must be at least 1"},
		{Spec{Scenario: "D(1,99999999)"}, "scenario: D(1,99999999): 99999999 is over the limit of 16777216 tokens"},
		{Spec{Scenario: "U(9,8)/(1,2)"}, "scenario: U(9,8)/(1,2): the first number of a pair must not be above the second, as in U(50,100)/(200,250)"},
		{Spec{Scenario: "D(1,2)", RandomInputLen: 5, RandomOutputLen: 5, RandomRangeRatio: 0.5},
			"random_input_len: does not apply with scenario, which says the lengths\nrandom_output_len: does not apply with scenario, which says the lengths\nrandom_range_ratio: does not apply with scenario, which says the lengths"},
		{Spec{Scenario: "D(1,2)", RandomBatchSize: 2}, "random_batch_size: applies to scenario E(...) and R(...), not D(1,2)"},
		{Spec{Scenario: "E(8)", RandomPrefixLen: 2}, "random_prefix_len: does not apply with scenario E(8), whose texts share nothing"},
		{Spec{Scenario: "E(8)", IgnoreEOS: true}, "ignore_eos: does not apply with scenario E(8), whose requests get no answer"},
		{Spec{Scenario: "E(8)", RandomIDs: true, Tokenizer: "x"}, "random_ids: does not apply with scenario E(8), whose requests are texts"},
		{Spec{Dataset: "sonnet", Scenario: "D(1,1)"}, "scenario: applies to dataset_name random, not sonnet"},
		{Spec{RandomBatchSize: 2}, "random_batch_size: applies to scenario E(...) and R(...), whose requests have several texts"},
		{Spec{RandomRNG: "numpy"}, `random_rng: "numpy" is unknown: use vllm`},
		{Spec{RandomRNG: "vllm"}, "random_rng: vllm needs tokenizer: vLLM's prompts are made of the ids of its model's tokenizer.json"},
		{Spec{RandomIDs: true}, "random_ids: needs tokenizer: the ids are of the model's tokenizer.json"},
		{Spec{RandomIDs: true, Tokenizer: "server"}, "tokenizer: server does not say which ids there are: random_rng vllm and random_ids need the model's tokenizer.json"},
		{Spec{RandomRNG: "vllm", Tokenizer: "x", Scenario: "D(1,1)"}, "random_rng: does not apply with scenario, which says the lengths"},
		{Spec{Dataset: "sharegpt", Path: "x", ShareGPTFilter: "guidelm"}, `sharegpt_filter: "guidelm" is unknown: did you mean guidellm? (known: vllm, guidellm)`},
		{Spec{Dataset: "sharegpt", Path: "x", ShareGPTFilter: "guidellm", DisableShuffle: true}, "disable_shuffle: applies to sharegpt_filter vllm: guidellm keeps the file's order anyway"},
		{Spec{ShareGPTFilter: "vllm"}, "sharegpt_filter: applies to dataset_name sharegpt, not random"},
		{Spec{SonnetInputLen: 9}, "sonnet_input_len: applies to dataset_name sonnet, not random"},
		{Spec{Dataset: "sonnet", SonnetPrefixLen: 550}, "sonnet_prefix_len: 550 must be below sonnet_input_len 550, of which it is a part"},
		{Spec{Dataset: "sonnet", SonnetOutputLen: -2}, "sonnet_output_len: -2 must not be negative"},
		{Spec{Dataset: "prefix_repetition", NumPrompts: 25}, "num_prompts: 25 must be a multiple of prefix_repetition_num_prefixes 10, each of which has as many prompts: give 20"},
		{Spec{Dataset: "prefix_repetition", NumPrompts: 5}, "num_prompts: 5 must be a multiple of prefix_repetition_num_prefixes 10, each of which has as many prompts: give 10"},
		{Spec{Dataset: "prefix_repetition", PrefixRepetitionSuffixLen: 1 << 24}, "prefix_repetition_suffix_len: 16777216 is over the limit of 8388608"},
		{Spec{Dataset: "shared-prefix", NumPrompts: 25}, "num_prompts: 25 is not the 1024 of 64 groups with 16 prompts each: change gsp_num_groups or gsp_prompts_per_group instead"},
		{Spec{Dataset: "shared-prefix", GSPNumGroups: 1e6}, "gsp_num_groups: 1000000 times gsp_prompts_per_group 16 is over the limit of 10000000 requests"},
		{Spec{Dataset: "shared-prefix", GSPZipfAlpha: -1}, "gsp_zipf_alpha: -1 must be a finite number above 0"},
		{Spec{GSPZipfAlpha: 1}, "gsp_zipf_alpha: applies to dataset_name shared-prefix, not random"},
		{Spec{BurstGPTModel: "GPT-4"}, "burstgpt_model: applies to dataset_name burstgpt, not random"},
		{Spec{Dataset: "shared-prefix", Path: "x"}, "dataset_path: applies to dataset_name sharegpt, azure, mooncake, burstgpt, jsonl, custom, gsm8k, hf, sonnet, conversations or agents, not shared-prefix"},
	} {
		if err := tt.spec.Validate(); err == nil || err.Error() != tt.want {
			t.Errorf("%+v\n got %v\nwant %s", tt.spec, err, tt.want)
		}
	}
}

func TestNonce(t *testing.T) {
	for name, s := range specs(t) {
		s.Nonce = ""
		plain := mustOpen(t, s)
		s.Nonce = "first"
		first := mustOpen(t, s)
		s.Nonce = "second"
		second := mustOpen(t, s)
		for i, r := range slices.Collect(plain.All()) {
			a, b := first.request(i), second.request(i)
			texts := append([]string{r.Prompt}, r.Documents...)
			for j, text := range append([]string{a.Prompt}, a.Documents...) {
				line, rest, _ := strings.Cut(text, "\n")
				if rest != texts[j] || len(strings.Fields(line)) != nonceWords {
					t.Fatalf("%s: prompt %q of %q", name, text, texts[j])
				}
			}
			if want := r.Input + 5*len(texts); a.Input != want || strings.Split(a.Prompt, " ")[0] == strings.Split(b.Prompt, " ")[0] {
				t.Fatalf("%s: Input %d, want %d; prompts begin %.20q and %.20q", name, a.Input, want, a.Prompt, b.Prompt)
			}
		}
		if got, want := first.Totals(), plain.Totals(); got.Output != want.Output || got.Requests != want.Requests || got.Input <= want.Input {
			t.Errorf("%s: totals %+v and %+v", name, got, want)
		}
	}
	// A conversation begins with its system text or its first message.
	n, err := newNonce("x", false, promptBuilder{words: []string{" one"}})
	if err != nil {
		t.Fatal(err)
	}
	const line = "one one one one\n"
	history := []Message{{"user", "hello"}, {"assistant", "hi"}}
	r := Request{Prompt: "p", History: history}
	n.mark(&r)
	if r.Prompt != "p" || r.History[0].Content != line+"hello" || r.History[1].Content != "hi" || history[0].Content != "hello" {
		t.Errorf("history becomes %+v, from %+v", r, history)
	}
	r = Request{Prompt: "p", History: history, System: "s"}
	n.mark(&r)
	if r.System != line+"s" || r.Prompt != "p" || r.History[0].Content != "hello" {
		t.Errorf("system text becomes %+v", r)
	}
}

// Requests that differ in one field only have different fingerprints.
func TestFingerprintSeesEachRequestField(t *testing.T) {
	w := mustOpen(t, Spec{NumPrompts: 1, RandomInputLen: 3})
	seen := map[string]int{}
	for i, r := range []Request{
		{Prompt: "p"},
		{IDs: []int32{1, 23}}, {IDs: []int32{12, 3}}, {IDs: []int32{1}},
		{System: "p"}, {Prompt: "p", System: "s"},
		{Prompt: "p", History: []Message{{"user", "a"}}}, {Prompt: "p", History: []Message{{"assistant", "a"}}},
		{Prompt: "p", Images: []string{"data:a"}}, {Prompt: "p", Images: []string{"data:", "a"}},
		{Prompt: "p", Documents: []string{"data:a"}}, {Prompt: "p", Documents: []string{"a", "b"}},
		{Prompt: "p", Model: "m"}, {Prompt: "p", Fields: json.RawMessage(`{"a": 1}`)}, {Prompt: "p", Fields: json.RawMessage(`{"a": 2}`)},
		{Prompt: "p", Session: 1}, {Prompt: "p", Session: 2}, {Prompt: "p", Turn: 1}, {Prompt: "p", Session: 1, Turn: 1},
	} {
		if got, want := r.rest() == nil, i == 0; got != want {
			t.Errorf("%+v has nothing beside a prompt: %v", r, got)
		}
		key := r.Prompt + "\x00" + string(r.rest())
		if other, ok := seen[key]; ok {
			t.Errorf("requests %d and %d are written alike", other, i)
		}
		seen[key] = i
	}
	// What rest writes is in the fingerprint.
	plain := w.Fingerprint()
	w.src.fill = func(_ int, r *Request) { r.Documents = []string{"d"} }
	if w.Fingerprint() == plain {
		t.Error("the fingerprint does not see documents")
	}
}
