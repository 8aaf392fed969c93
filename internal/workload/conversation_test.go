package workload

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// walk returns every turn of every conversation of a sequence, each answer
// being what answer makes of the request, and the think time before each turn.
func walk(w *Workload, from []Request, answer func(Request) string) (turns []Request, thinks []time.Duration) {
	for _, r := range from {
		think := time.Duration(0)
		for more := true; more; {
			turns, thinks = append(turns, r), append(thinks, think)
			r, think, more = w.Next(r, answer(r))
		}
	}
	return turns, thinks
}

func said(r Request) string { return "to " + r.Prompt }

func TestMadeUpConversations(t *testing.T) {
	s := Spec{Dataset: "conversations", NumPrompts: 50, Turns: "2-6", TurnInputLen: "3-9", TurnOutputLen: "5", SystemLen: 11, Rate: 4, Seed: 3}
	w := mustOpen(t, s)
	first := slices.Collect(w.All())
	turns, _ := walk(w, first, said)
	lengths := map[int]bool{}
	for i, r := range turns {
		if r.Index != i || r.tokens() != r.Input || r.Output != 5 || r.EOS {
			t.Fatalf("turn %d: %+v", i, r)
		}
		if len(r.History) != 2*r.Turn || r.System == "" || r.System != turns[0].System {
			t.Fatalf("turn %d of conversation %d has %d messages of history", r.Turn, r.Session, len(r.History))
		}
		if r.Turn > 0 {
			last := turns[i-1]
			want := append(slices.Clone(last.History), Message{"user", last.Prompt}, Message{"assistant", said(last)})
			if d := cmp.Diff(want, r.History); d != "" || r.Session != last.Session {
				t.Fatalf("turn %d: history (-want +got):\n%s", i, d)
			}
		} else if i > 0 {
			lengths[turns[i-1].Turn+1] = true
		}
	}
	for n := 2; n <= 6; n++ {
		if !lengths[n] {
			t.Errorf("no conversation has %d turns", n)
		}
	}
	needsChat, _ := w.NeedsChat()
	if w.Len() != len(turns) || len(first) != 50 || !w.Generates() || !w.Conversations() || needsChat != "dataset_name" {
		t.Errorf("%d turns of %d, %d conversations", len(turns), w.Len(), len(first))
	}
	// Sharded, each conversation is whole in one shard.
	var union []Request
	for i := range 3 {
		for r := range w.Shard(i, 3) {
			if (r.Session-1)%3 != i {
				t.Errorf("conversation %d is in shard %d", r.Session, i)
			}
			union = append(union, r)
		}
	}
	slices.SortFunc(union, func(a, b Request) int { return a.Index - b.Index })
	if d := cmp.Diff(first, union); d != "" {
		t.Errorf("shards are not the whole:\n%s", d)
	}
	// The dataset's own answers are as long as those that were asked for, and
	// what the server says is then no part of the prompts.
	s.History = "answers"
	own := mustOpen(t, s)
	a, _ := walk(own, slices.Collect(own.All()), said)
	b, _ := walk(own, slices.Collect(own.All()), func(Request) string { return "" })
	if d := cmp.Diff(a, b); d != "" || own.Generates() {
		t.Errorf("the server's answers matter:\n%s", d)
	}
	sum := Totals{Requests: len(a), Span: w.Totals().Span}
	for _, r := range a {
		if r.tokens() != r.Input {
			t.Errorf("turn %+v", r)
		}
		sum.Input += r.Input
		sum.Output += r.Output
	}
	if own.Totals() != sum || w.Totals() != sum {
		t.Errorf("totals %+v and %+v, the turns sum to %+v", own.Totals(), w.Totals(), sum)
	}
}

func TestThinkTime(t *testing.T) {
	s := Spec{Dataset: "conversations", NumPrompts: 2000, Turns: "4", TurnInputLen: "1", ThinkTime: "2s"}
	thinks := func(s Spec) (out []time.Duration) {
		w := mustOpen(t, s)
		turns, d := walk(w, slices.Collect(w.All()), said)
		for i, r := range turns {
			if r.Turn > 0 {
				out = append(out, d[i])
			}
		}
		return out
	}
	a := thinks(s)
	if ks := ksExponential(seconds(a), 0.5); ks > 1.36 {
		t.Errorf("think times are not exponential with mean 2 s: KS %.2f", ks)
	}
	if !slices.Equal(a, thinks(s)) {
		t.Error("think times are not the seed's")
	}
	for text, want := range map[string]time.Duration{"constant:1500ms": 1500 * time.Millisecond, "constant:3": 3 * time.Second, "": 0} {
		s.ThinkTime = text
		if got := slices.Compact(thinks(s)); !slices.Equal(got, []time.Duration{want}) {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func seconds(list []time.Duration) []float64 {
	out := make([]float64, len(list))
	for i, d := range list {
		out[i] = d.Seconds()
	}
	return out
}

// chat is the shape of a turn that a test of files compares.
type chat struct {
	Session, Turn int
	System        string
	History       []string
	Prompt        string
	Output        int
}

func chats(w *Workload, answer func(Request) string) []chat {
	turns, _ := walk(w, slices.Collect(w.All()), answer)
	var out []chat
	for _, r := range turns {
		c := chat{r.Session, r.Turn, r.System, nil, r.Prompt, r.Output}
		for _, m := range r.History {
			c.History = append(c.History, m.Role+": "+m.Content)
		}
		out = append(out, c)
	}
	return out
}

func TestConversationFiles(t *testing.T) {
	array := `[
{"id": "a", "conversations": [{"from": "system", "value": "be brief"}, {"from": "human", "value": "one two"}, {"from": "gpt", "value": "three"},
  {"from": "human", "value": "four"}, {"from": "gpt", "value": "five six seven"}, {"from": "human", "value": "unanswered"}]},
{"id": "b", "conversations": [{"from": "gpt", "value": "go on"}, {"from": "human", "value": "x"}, {"from": "gpt", "value": "y z"}, {"from": "gpt", "value": "again"}]},
{"id": "c", "conversations": [{"from": "human", "value": "nobody answers"}]}
]`
	lines := `{"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "one two"}, {"role": "assistant", "content": "three"}, {"role": "user", "content": [{"type": "text", "text": "four"}]}, {"role": "assistant", "content": "five six seven"}]}
{"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y z"}, {"role": "tool", "content": "t"}]}

{"id": 7, "system": "s", "conversations": [{"from": "human", "value": "nobody answers"}]}
`
	want := []chat{
		{1, 0, "be brief", nil, "one two", 1},
		{1, 1, "be brief", []string{"user: one two", "assistant: three"}, "four", 3},
		{2, 0, "", nil, "x", 2},
	}
	for name, text := range map[string]string{"array": array, "lines": lines} {
		s := Spec{Dataset: "conversations", Path: file(t, text), DisableShuffle: true}
		w := mustOpen(t, s)
		if d := cmp.Diff(want, chats(w, said)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		drops, read := w.Dropped()
		if d := cmp.Diff([]Drop{{"with no question that has an answer", 1}}, drops); d != "" || read != 3 || w.Len() != 3 || w.Generates() {
			t.Errorf("%s: read %d, Len %d, dropped:\n%s", name, read, w.Len(), d)
		}
		s.History = "generated"
		if got := chats(mustOpen(t, s), said)[1].History; !slices.Equal(got, []string{"user: one two", "assistant: to one two"}) {
			t.Errorf("%s: generated history %v", name, got)
		}
		s.Turns = "2-3"
		if got := mustOpen(t, s); got.Len() != 2 {
			t.Errorf("%s: %d turns of conversations with two at least", name, got.Len())
		}
		s.Turns, s.TurnOutputLen = "1", "9"
		if d := cmp.Diff([]chat{{1, 0, "be brief", nil, "one two", 9}, {2, 0, "", nil, "x", 9}, {3, 0, map[string]string{"lines": "s"}[name], nil, "nobody answers", 9}},
			chats(mustOpen(t, s), said)); d != "" {
			t.Errorf("%s, first turns of fixed output (-want +got):\n%s", name, d)
		}
		s = Spec{Dataset: "conversations", Path: s.Path, NumPrompts: 10, Seed: 4}
		over := mustOpen(t, s)
		turns, _ := walk(over, slices.Collect(over.All()), said)
		if len(turns) != over.Len() || turns[len(turns)-1].Session != 10 || turns[len(turns)-1].Index != len(turns)-1 {
			t.Errorf("%s: oversampled to %d turns", name, len(turns))
		}
	}
}

// TestEndlessConversations: sessions and indices go on beyond the rows that
// were drawn first.
func TestEndlessConversations(t *testing.T) {
	path := file(t, `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]}
{"messages": [{"role": "user", "content": "e"}, {"role": "assistant", "content": "f"}]}`)
	for name, s := range map[string]Spec{
		"made up": {Dataset: "conversations", Turns: "1-3", TurnInputLen: "2", Duration: "1m", MaxConcurrency: 2},
		"file":    {Dataset: "conversations", Path: path, Duration: "1m", MaxConcurrency: 2},
	} {
		w := mustOpen(t, s)
		n := firstDraw(s, s.row()) + 20
		last := take(w, n)[n-40:] // on both sides of where the first draw ends
		turns, _ := walk(w, last, said)
		for i, r := range turns {
			if r.Index != last[0].Index+i || r.tokens() != r.Input {
				t.Fatalf("%s: turn %d: %+v", name, i, r)
			}
		}
		if last := turns[len(turns)-1]; last.Session != n || w.Len() != 0 {
			t.Errorf("%s: %d conversations of %d, Len %d", name, last.Session, n, w.Len())
		}
	}
}

// TestOfferedConversations: the rate is of conversations, also where their
// number of turns is not known.
func TestOfferedConversations(t *testing.T) {
	s := Spec{Dataset: "conversations", NumPrompts: 101, Turns: "3", RampStrategy: "linear", RampStart: 9, RampEnd: 11, Arrival: "constant"}
	for _, span := range []Span{"", "10s"} {
		s.Duration = span
		if rate := mustOpen(t, s).Offered(); rate < 9.7 || rate > 10.3 {
			t.Errorf("%s: %g conversations/s", span, rate)
		}
	}
}

func TestTalkFaults(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string
	}{
		{Spec{Turns: "4"}, "turns: applies to dataset_name conversations, not random"},
		{Spec{NoSessionAffinity: true}, "no_session_affinity: applies to dataset_name conversations or agents, not random"},
		{Spec{Dataset: "conversations", Path: "x", SystemLen: 5}, "system_len: applies to conversations that are made up, not to those of a dataset_path"},
		{Spec{Dataset: "conversations", NoOversample: true}, "no_oversample: applies to conversations of a dataset_path, not to those that are made up"},
		{Spec{Dataset: "conversations", Turns: "6-2"}, `turns: "6-2" is no range: write 4 or 2-6, from 1 to 16777216`},
		{Spec{Dataset: "conversations", Turns: "many"}, `turns: "many" is no range: write 4 or 2-6, from 1 to 16777216`},
		{Spec{Dataset: "conversations", Turns: "20000"}, `turns: 20000 is over the limit of 10000`},
		{Spec{Dataset: "conversations", TurnInputLen: "0"}, `turn_input_len: "0" is no range: write 4 or 2-6, from 1 to 16777216`},
		{Spec{Dataset: "conversations", ThinkTime: "constant:"}, `think_time: "constant:": write a mean such as 2s, or constant:2s`},
		{Spec{Dataset: "conversations", ThinkTime: "gamma:2s"}, `think_time: "gamma:2s": write a mean such as 2s, or constant:2s`},
		{Spec{Dataset: "conversations", History: "generate"}, `history: "generate" is unknown: did you mean generated? (known: answers, generated)`},
		{Spec{LoraAssignment: "random"}, "lora_assignment: applies with lora_modules only"},
		{Spec{LoraModules: []string{"a"}, LoraAssignment: "rand"}, `lora_assignment: "rand" is unknown: did you mean random? (known: random, round-robin)`},
		{Spec{LoraModules: []string{"a", ""}}, "lora_modules: a, has an empty name"},
		{Spec{RandomImageSize: "5x5"}, "random_image_size: applies with random_images only"},
		{Spec{RandomImages: 1, RandomImageSize: "5"}, `random_image_size: "5": write 512x512 or 256x256-1024x1024, up to 8192`},
		{Spec{RandomImages: 1, RandomImageSize: "5x5,6x6"}, `random_image_size: "5x5,6x6": several sizes have shares, as 256x256:0.5,1280x720:0.5, and one has none`},
		{Spec{RandomImages: 1, RandomImageSize: "5x5:0.5"}, `random_image_size: "5x5:0.5": several sizes have shares, as 256x256:0.5,1280x720:0.5, and one has none`},
		{Spec{RandomImages: 1, RandomImageSize: "5x5:0.5,6x6:0"}, `random_image_size: "5x5:0.5,6x6:0": the share "0" is no number above 0`},
		{Spec{RandomImages: 1, RandomImageSize: "9x5-5x9"}, `random_image_size: "9x5-5x9": the first size is larger than the second`},
		{Spec{Dataset: "jsonl", Path: "x", RandomImages: 1}, "random_images: applies to dataset_name random or conversations, not jsonl"},
	} {
		if err := tt.spec.Validate(); err == nil || err.Error() != tt.want {
			t.Errorf("%+v\n got %v\nwant %s", tt.spec, err, tt.want)
		}
	}
	made := Spec{Dataset: "conversations"}.Defaults()
	want := Spec{Dataset: "conversations", NumPrompts: 1000, Turns: "4", TurnInputLen: "128", TurnOutputLen: "128", History: "generated", IgnoreEOS: true, Arrival: "inf", Rate: Rate(math.Inf(1))}
	if d := cmp.Diff(want, made); d != "" || cmp.Diff(made, made.Defaults()) != "" || made.Validate() != nil {
		t.Errorf("defaults (-want +got):\n%s", d)
	}
	if d := (Spec{Dataset: "conversations", Path: "x"}).Defaults(); d.History != "answers" || d.NumPrompts != 0 || d.IgnoreEOS || d.Validate() != nil {
		t.Errorf("defaults of a file: %+v", d)
	}
}
