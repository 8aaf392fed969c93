package workload

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/token"
)

// lexicon is a tokenizer whose tokens are the words that prompts are made of,
// each with its space or without, and single bytes for all else; a special
// token may stand in front of a text.
type lexicon struct{ ids map[string]int32 }

func newLexicon() *lexicon {
	l := &lexicon{ids: map[string]int32{}}
	for i := range 256 {
		l.ids[string([]byte{byte(i)})] = int32(i)
	}
	for i := range token.Words() {
		for _, word := range []string{token.Word(i), token.Word(i)[1:]} {
			if _, ok := l.ids[word]; !ok {
				l.ids[word] = int32(len(l.ids))
			}
		}
	}
	return l
}

func (l *lexicon) Name() string   { return "lexicon" }
func (l *lexicon) VocabSize() int { return len(l.ids) }

func (l *lexicon) Ordinary() []int32 {
	out := make([]int32, len(l.ids))
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

func (l *lexicon) Encode(text string, special bool) (ids []int32, err error) {
	if special {
		ids = append(ids, int32(len(l.ids)))
	}
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
	for text != "" {
		n := 0
		if text[0] == ' ' {
			n = 1
		}
		for n < len(text) && letter(text[n]) {
			n++
		}
		id, ok := l.ids[text[:n]]
		if !ok {
			id, n = l.ids[text[:1]], 1
		}
		ids, text = append(ids, id), text[n:]
	}
	return ids, nil
}

func (l *lexicon) Decode(ids []int32) (string, error) {
	pieces := make([]string, len(l.ids))
	for piece, id := range l.ids {
		pieces[id] = piece
	}
	var b strings.Builder
	for _, id := range ids {
		if int(id) < len(pieces) {
			b.WriteString(pieces[id])
		}
	}
	return b.String(), nil
}

// dice draws specs from the grammar of the flags.
type dice struct {
	*rand.Rand
	dir string
}

func (d dice) sometimes(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// write makes a small dataset of the kind and returns its path.
func (d dice) write(kind string) string {
	var b strings.Builder
	n := 1 + d.IntN(12)
	words := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString(token.Word(d.IntN(token.Words())))
		}
		return trimSpace(&b)
	}
	switch kind {
	case "azure":
		b.WriteString("TIMESTAMP,ContextTokens,GeneratedTokens\n")
		for range n {
			fmt.Fprintf(&b, "2023-11-16 18:17:%02d.5,%d,%d\n", d.IntN(60), 1+d.IntN(30), d.IntN(9))
		}
		b.WriteString("2023-11-16 18:18:00,5,5\n")
	case "burstgpt":
		b.WriteString("Timestamp,Model,Request tokens,Response tokens\n")
		for range n {
			fmt.Fprintf(&b, "%d.25,GPT-4,%d,%d\n", d.IntN(60), 1+d.IntN(30), 1+d.IntN(9))
		}
	case "mooncake":
		for i := range n {
			fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d,"output_length":3,"hash_ids":[1,%d]}`+"\n", 100*d.IntN(100), 513+d.IntN(500), i)
		}
	case "agents":
		for range n {
			fmt.Fprintf(&b, `{"block_size":4,"scope":%q,"turns":[{"input_tokens":9,"output_tokens":2,"blocks":[1,2,3]},{"agent":"a","input_tokens":%d,"output_tokens":1,"blocks":[1],"after":[0],"idle_s":0.5},`+
				`{"input_tokens":11,"output_tokens":2,"blocks":[1,2,4],"after":[0,1]}]}`+"\n", pick(d, "local", "global"), 1+d.IntN(9))
		}
	case "jsonl":
		for range n {
			row := map[string]any{"prompt": words(1 + d.IntN(20)), "output_tokens": 1 + d.IntN(9)}
			if d.sometimes(3) {
				row["documents"] = []string{words(5), words(3)}
			} else if d.sometimes(3) {
				row["system"] = words(4)
			}
			line, _ := json.Marshal(row)
			b.Write(append(line, '\n'))
		}
	case "custom":
		for range n {
			fmt.Fprintf(&b, `{"prompt": %q, "output_tokens": %d}`+"\n", words(1+d.IntN(20)), 1+d.IntN(9))
		}
	case "gsm8k", "hf":
		for range n {
			fmt.Fprintf(&b, `{"question": %q, "answer": %q}`+"\n", words(1+d.IntN(20)), words(1+d.IntN(9)))
		}
	case "sonnet":
		for range n {
			b.WriteString(words(8) + "\n")
		}
	default:
		rows := []any{}
		for range n {
			var talk []map[string]string
			for k := range 2 + d.IntN(5) {
				talk = append(talk, map[string]string{"from": []string{"human", "gpt"}[k%2], "value": words(4 + d.IntN(9))})
			}
			rows = append(rows, map[string]any{"id": "x", "conversations": talk})
		}
		text, _ := json.Marshal(rows)
		b.Write(text)
	}
	path := filepath.Join(d.dir, fmt.Sprintf("%s-%d", kind, d.Uint64()))
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		panic(err)
	}
	return path
}

func (d dice) spec() Spec {
	s := Spec{Dataset: pick(d, Datasets()...), Seed: uint64(d.IntN(3))}
	if !slices.Contains([]string{"random", "prefix_repetition", "shared-prefix"}, s.Dataset) &&
		!(s.Dataset == "sonnet" || s.Dataset == "conversations") || (s.Dataset == "sonnet" || s.Dataset == "conversations") && d.sometimes(2) {
		s.Path = d.write(s.Dataset)
	}
	d.content(&s)
	d.load(&s)
	if d.sometimes(3) {
		s.Nonce = pick(d, "a", "b")
	}
	if d.sometimes(4) {
		s.LoraModules, s.LoraAssignment = []string{"x", "y"}, pick(d, "", "random", "round-robin")
	}
	if d.sometimes(2) {
		s.Tokenizer = "lexicon"
	}
	return s
}

func (d dice) content(s *Spec) {
	trace := s.row().trace
	if !d.sometimes(8) && s.Dataset != "shared-prefix" && !trace {
		s.NumPrompts = 10 * (1 + d.IntN(3))
	}
	file := s.Path != "" && !trace && s.Dataset != "sonnet"
	s.DisableShuffle = d.sometimes(5) && (file || s.Dataset == "prefix_repetition" || s.Dataset == "shared-prefix")
	s.NoOversample = d.sometimes(5) && file
	switch s.Dataset {
	case "random":
		s.RandomPrefixLen = pick(d, 0, 0, 5)
		switch {
		case d.sometimes(3):
			s.Scenario = pick(d, "D(9,3)", "N(9,3)/(5,2)", "U(3,9)/(1,5)", "E(12)", "R(12,5)")
			s.RandomBatchSize = pick(d, 0, 1, 3)
		default:
			s.RandomInputLen, s.RandomOutputLen, s.RandomRangeRatio = 1+d.IntN(40), 1+d.IntN(9), pick(d, 0, 0.3)
			s.RandomRNG = pick(d, "", "", "vllm")
		}
		s.RandomIDs = d.sometimes(4)
	case "prefix_repetition":
		s.PrefixRepetitionPrefixLen, s.PrefixRepetitionSuffixLen = 9, 4
		s.PrefixRepetitionNumPrefixes = pick(d, 0, 5)
	case "shared-prefix":
		s.GSPSystemPromptLen, s.GSPQuestionLen = 9, 4
		s.GSPNumGroups, s.GSPPromptsPerGroup = 1+d.IntN(6), 1+d.IntN(6)
		s.GSPZipfAlpha = pick(d, 0, 1.1)
	case "sharegpt":
		s.ShareGPTFilter = pick(d, "", "guidellm")
		s.ShareGPTOutputLen = pick(d, 0, 7)
	case "jsonl", "gsm8k":
		s.OutputLen = pick(d, 0, 7)
	case "hf":
		s.HFName, s.HFOutputLen = "openai/gsm8k", pick(d, 0, 7)
	case "custom":
		s.CustomOutputLen = pick(d, 0, 7, -1)
	case "agents":
		s.MaxIdle, s.MaxContext = pick(d, "", Span("100ms")), pick(d, 0, 11)
		if s.MaxContext > 0 {
			s.OverContext = pick(d, "", "drop", "truncate")
		}
	case "conversations":
		s.Turns = pick(d, "", "2", Range("1-3"))
		s.ThinkTime = pick(d, "", "2s", "constant:1s")
		s.History = pick(d, "", "answers", "generated")
		if s.Path == "" {
			s.TurnInputLen, s.SystemLen = pick(d, "", Range("3-9")), pick(d, 0, 6)
		}
	}
}

func (d dice) load(s *Spec) {
	if s.row().trace && d.sometimes(2) {
		s.Speed, s.Duration = pick(d, 0, 2.0), pick(d, "", Span("20s"))
		return
	}
	switch d.IntN(7) {
	case 0:
		s.Rate, s.Arrival = 20, pick(d, "", "constant", "poisson", "gamma")
	case 1:
		s.Steps, s.Arrival = "2:3s,0:1s,8:2s", pick(d, "", "constant")
	case 2:
		s.Rate, s.Duration = 5, "3s"
	case 3:
		s.Duration, s.MaxConcurrency, s.Arrival = "3s", 4, "inf"
		s.NumPrompts *= d.IntN(2)
	case 4:
		s.RampStrategy, s.RampStart, s.RampEnd = pick(d, "linear", "exponential"), 1, 9
		s.Duration = pick(d, "", Span("4s"))
	case 5:
		s.MaxConcurrency = 3
	}
	if s.Arrival == "gamma" {
		s.Burstiness = 0.5
	}
}

// TestEverySpec opens specs as the flags can make them, and holds each that
// opens against what the package promises.
func TestEverySpec(t *testing.T) {
	const specs, least = 300, 8
	d := dice{rand.New(rand.NewPCG(7, 7)), t.TempDir()}
	lexicon := newLexicon()
	opened := map[string]int{}
	for range specs {
		s := d.spec()
		var tok Tokenizer
		if s.Tokenizer != "" {
			tok = lexicon
		}
		p := promise{s, tok}
		if p.opens(t) {
			opened[s.Dataset]++
		}
		if t.Failed() {
			text, _ := json.Marshal(s)
			t.Fatalf("spec %s", text)
		}
	}
	for _, name := range Datasets() {
		if opened[name] < least {
			t.Errorf("only %d specs of %s opened", opened[name], name)
		}
	}
}

// promise is a spec to hold against the package's invariants.
type promise struct {
	s   Spec
	tok Tokenizer
}

func (p promise) opens(t *testing.T) bool {
	w, err := OpenWith(p.s, p.tok)
	if err != nil {
		if text := err.Error(); strings.Contains(text, "%!") || text == "" {
			t.Errorf("error %q", text)
		}
		return false
	}
	p.describes(t, w)
	p.sequence(t, w)
	p.shards(t, w)
	p.repeats(t, w)
	p.grows(t, w)
	return true
}

// some is how much of an endless workload is looked at.
const some = 100

func (p promise) take(w *Workload, i, n int) (out []Request) {
	for r := range w.Shard(i, n) {
		if w.supply != nil && (r.Session == 0 && r.Index >= some || r.Session > some) {
			break
		}
		out = append(out, r)
	}
	return out
}

func (p promise) describes(t *testing.T, w *Workload) {
	text := w.Describe()
	if strings.Contains(text, "%!") || strings.Contains(text, "NaN") || text == "" {
		t.Errorf("described as %q", text)
	}
	if n := w.Burst(); w.supply == nil && (n < 1 || n > len(w.due)) {
		t.Errorf("%d at the first instant", n)
	}
	w.Known()
}

// sequence checks each request, later turns among them, and the totals.
func (p promise) sequence(t *testing.T, w *Workload) {
	var last time.Duration
	var sum Totals
	for k, first := range p.take(w, 0, 1) {
		if first.Due < last || first.Session == 0 && first.Index != k || first.Session != 0 && first.Session != k+1 {
			t.Errorf("request %d: %+v", k, first)
		}
		if first.Session > 0 && first.Index != sum.Requests {
			t.Errorf("conversation %d begins with index %d after %d", k, first.Index, sum.Requests)
		}
		last = first.Due
		answer := "one two three"
		for r, more := first, true; more; r, _, more = w.Next(r, answer) {
			p.request(t, w, r)
			sum.Requests++
			sum.Input += r.Input
			sum.Output += r.Output
		}
	}
	totals := w.Totals()
	if w.Until() > 0 {
		return
	}
	if totals.Requests != sum.Requests || totals.Span != last || totals.Output != sum.Output || !w.Generates() && totals.Input != sum.Input {
		t.Errorf("totals %+v, and the requests have %+v", totals, sum)
	}
}

func (p promise) request(t *testing.T, w *Workload, r Request) {
	if len(r.IDs) > 0 {
		if len(r.IDs) != r.Input {
			t.Errorf("%d ids, input %d", len(r.IDs), r.Input)
		}
		return
	}
	n := 0
	texts := append([]string{r.System, r.Prompt}, r.Documents...)
	for _, m := range r.History {
		texts = append(texts, m.Content)
	}
	for _, text := range texts {
		tokens, err := w.builder.count(text, false)
		if err != nil {
			t.Fatal(err)
		}
		n += tokens
	}
	if p.tok != nil && slices.Contains([]string{"sharegpt", "custom", "gsm8k", "hf"}, p.s.Dataset) {
		n++ // the special one
	}
	if n != r.Input {
		t.Errorf("%d tokens, input %d: %+v", n, r.Input, r)
	}
	if len(p.s.LoraModules) > 0 && r.Model == "" {
		t.Errorf("no adapter: %+v", r)
	}
}

// shards checks that machines which share the workload send what one would, all turns of a
// conversation by one of them, each request once.
func (p promise) shards(t *testing.T, w *Workload) {
	turns := func(i, n int) (out []Request) {
		for _, first := range p.take(w, i, n) {
			for r, more := first, true; more; r, _, more = w.Next(r, "one two three") {
				out = append(out, r)
			}
		}
		return out
	}
	all := turns(0, 1)
	for n := 1; n <= 7; n++ {
		var union []Request
		limits, session := 0, map[int]int{}
		for i := range n {
			part := turns(i, n)
			if want := w.ShardLen(i, n); w.Until() == 0 && len(part) != want {
				t.Errorf("shard %d of %d has %d requests, and is said to have %d", i, n, len(part), want)
			}
			for _, r := range part {
				if at, ok := session[r.Session]; ok && at != i && r.Session > 0 {
					t.Errorf("conversation %d is in shards %d and %d of %d", r.Session, at, i, n)
				}
				session[r.Session] = i
			}
			union = append(union, part...)
			limit := w.ShardLimit(i, n)
			if n <= w.MostShards() && p.s.MaxConcurrency > 0 && (limit < 1 || limit < w.ShardLimit(n-1, n) || limit > w.ShardLimit(n-1, n)+1) {
				t.Errorf("shard %d of %d has %d of %d places", i, n, limit, p.s.MaxConcurrency)
			}
			limits += limit
			if n <= w.MostShards() && len(part) == 0 {
				t.Errorf("shard %d of %d is empty: %d are said to be possible", i, n, w.MostShards())
			}
		}
		slices.SortFunc(union, func(a, b Request) int { return a.Index - b.Index })
		if limits != p.s.MaxConcurrency || !slices.EqualFunc(all, union, func(a, b Request) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%d shards with %d places are not the whole of %d requests with %d: %s", n, limits, len(all), p.s.MaxConcurrency, cmp.Diff(all, union))
			return
		}
	}
}

// repeats checks that the spec alone decides, written out or not.
func (p promise) repeats(t *testing.T, w *Workload) {
	open := func(s Spec) *Workload {
		w, err := OpenWith(s, p.tok)
		if err != nil {
			t.Fatalf("open again %+v: %v", s, err)
		}
		return w
	}
	var again Spec
	text, err := json.Marshal(w.Spec())
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil {
		t.Fatal(err)
	}
	if a, b := w.Fingerprint(), open(again).Fingerprint(); a != b || a != w.Fingerprint() {
		t.Errorf("fingerprints %s and %s of %s", a, b, text)
	}
	other := p.s
	other.Seed += 17
	made := p.s.Path == "" || w.Spec().row().trace
	if made && p.s.Dataset != "sonnet" {
		// With another seed chance may send fewer requests than are asked for.
		if v, err := OpenWith(other, p.tok); err == nil && v.Fingerprint() == w.Fingerprint() {
			t.Errorf("another seed sends the same")
		}
	}
	other = p.s
	other.Nonce += "c"
	if open(other).Fingerprint() == w.Fingerprint() {
		t.Errorf("another nonce sends the same")
	}
}

// grows checks that an endless workload that was drawn again has the requests
// that it had.
func (p promise) grows(t *testing.T, w *Workload) {
	if w.supply == nil {
		return
	}
	before := p.take(w, 0, 1)
	w.row(len(w.src.rows)) // draws again
	for k, r := range p.take(w, 0, 1) {
		if r.Prompt != before[k].Prompt || !slices.Equal(r.IDs, before[k].IDs) || r.Output != before[k].Output || r.Index != before[k].Index {
			t.Errorf("request %d was %+v and is %+v", k, before[k], r)
			return
		}
	}
}

// TestGroupsInTime counts the prefixes where time decides how many requests
// there are: as many as were asked for, and each of them in use.
func TestGroupsInTime(t *testing.T) {
	for name, s := range map[string]Spec{
		"prefix_repetition, few": {Dataset: "prefix_repetition", Rate: 4, Duration: "1s", Arrival: "constant", PrefixRepetitionPrefixLen: 4, PrefixRepetitionSuffixLen: 1},
		"prefix_repetition":      {Dataset: "prefix_repetition", Rate: 99, Duration: "9s", PrefixRepetitionPrefixLen: 4, PrefixRepetitionSuffixLen: 1},
		"in turn":                {Dataset: "prefix_repetition", Rate: 99, Duration: "9s", DisableShuffle: true, PrefixRepetitionPrefixLen: 4, PrefixRepetitionSuffixLen: 1},
		"shared-prefix":          {Dataset: "shared-prefix", Rate: 99, Duration: "9s", GSPNumGroups: 10, GSPPromptsPerGroup: 3, GSPSystemPromptLen: 4, GSPQuestionLen: 1},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{}
			n := 0
			for r := range mustOpen(t, s).All() {
				seen[strings.Join(strings.Fields(r.Prompt)[:4], " ")]++
				n++
			}
			if want := min(10, n); len(seen) > 10 || n > 100 && len(seen) != want {
				t.Errorf("%d prefixes in %d requests", len(seen), n)
			}
			for prefix, k := range seen {
				if n > 100 && (k < n/20 || k > n/5) {
					t.Errorf("%d of %d requests begin with %q", k, n, prefix)
				}
			}
		})
	}
}
