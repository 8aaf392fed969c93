package workload

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/field"
	"perflab/internal/stat"
	"perflab/internal/token"
)

// Range is a number or the numbers from one to another: "4", "2-6".
type Range string

// bounds returns the range; "" is 0 to 0.
func (r Range) bounds() (low, high int, err error) {
	if r == "" {
		return 0, 0, nil
	}
	left, right, both := strings.Cut(string(r), "-")
	low, err = strconv.Atoi(left)
	if high = low; both && err == nil {
		high, err = strconv.Atoi(right)
	}
	if err != nil || low < 1 || high < low || high > maxTokens {
		return 0, 0, fmt.Errorf("%q is no range: write 4 or 2-6, from 1 to %d", string(r), maxTokens)
	}
	return low, high, nil
}

// drawer draws numbers of a valid range; 0 of none.
func (r Range) drawer(rng *rand.Rand) func() int {
	low, high, _ := r.bounds() // Validate has seen the error
	return func() int { return low + rng.IntN(high-low+1) }
}

// conversation is one conversation: questions and answers in turn.
type conversation struct {
	system string
	head   int // tokens of system
	turns  []turn
	text   func(turn int, answer bool) string // pure
}

// turn has the tokens of a question, of the dataset's own answer, and of the
// answer that is asked for.
type turn struct{ question, answer, output int }

// row sums the prompts and answers of all turns, the prompts with the history
// as it is planned.
func (t conversation) row(generated bool) row {
	var sum row
	history := t.head
	for _, u := range t.turns {
		history += u.question
		sum.input += history
		sum.output += u.output
		if generated {
			history += u.output
		} else {
			history += u.answer
		}
	}
	return sum
}

// open makes r the first turn of conversation k.
func (t conversation) open(r *Request, k, index int) {
	r.Index, r.Session, r.System = index, k+1, t.system
	r.Input, r.Output = t.head+t.turns[0].question, t.turns[0].output
}

// synthesizeConversations makes conversations up, of random words, behind one system prompt.
func synthesizeConversations(s Spec, k promptBuilder) source {
	turns := s.Turns.drawer(stat.Stream(s.Seed, "conversation turns"))
	in := s.TurnInputLen.drawer(stat.Stream(s.Seed, "conversation input length"))
	out := s.TurnOutputLen.drawer(stat.Stream(s.Seed, "conversation output length"))
	var b strings.Builder
	k.writeWords(&b, stat.Stream(s.Seed, "conversation system prompt"), s.SystemLen)
	system := trimSpace(&b)

	src := source{rows: make([]row, s.NumPrompts), conversations: make([]conversation, s.NumPrompts)}
	for i := range src.conversations {
		t := conversation{system: system, head: s.SystemLen, turns: make([]turn, turns())}
		for j := range t.turns {
			question, answer := in(), out()
			t.turns[j] = turn{question, answer, answer}
		}
		t.text = func(j int, answer bool) string {
			n, part := t.turns[j].question, "question"
			if answer {
				n, part = t.turns[j].answer, "answer"
			}
			var b strings.Builder
			b.Grow(bytesFor(n))
			k.writeWords(&b, stat.Stream(s.Seed, fmt.Sprintf("conversation %d turn %d %s", i, j, part)), n)
			return trimSpace(&b)
		}
		src.conversations[i], src.rows[i] = t, t.row(s.History == "generated")
	}
	src.prompt = func(i int) string { return src.conversations[i].text(0, false) }
	return src
}

// number gives each turn of each conversation its index.
func (src *source) number() {
	if src.conversations == nil {
		return
	}
	src.first = make([]int, len(src.rows)+1)
	for i := range src.rows {
		src.first[i+1] = src.first[i] + len(src.conversations[i].turns)
	}
}

// turns is how many turns all conversations have.
func (src *source) turns() int {
	if src.conversations == nil {
		return 0
	}
	return src.first[len(src.rows)]
}

// reorder makes what rows have beside their prompts that of the rows that
// order names.
func (src *source) reorder(order []int) {
	if fill := src.fill; fill != nil {
		src.fill = func(i int, r *Request) { fill(order[i], r) }
	}
	if talks := src.conversations; talks != nil {
		src.conversations = make([]conversation, len(order))
		for i, k := range order {
			src.conversations[i] = talks[k]
		}
	}
}

// Next returns the turn that follows r in its conversation, and how long after
// the end of r's call it is due. answer is what the server said to r; it is
// part of the next prompt unless the history is the dataset's. ok is false
// after the last turn, and for a request that stands alone.
//
// Images go with the turn that they were made for: a later turn's history does
// not repeat them.
func (w *Workload) Next(r Request, answer string) (next Request, think time.Duration, ok bool) {
	if r.Session == 0 {
		return Request{}, 0, false
	}
	k, turn := r.Session-1, r.Turn+1
	src, i, _ := w.row(k)
	t := src.conversations[i]
	if turn >= len(t.turns) {
		return Request{}, 0, false
	}
	tokens := t.turns[r.Turn].answer
	if w.spec.History == "answers" {
		answer = t.text(r.Turn, true)
	} else {
		tokens = w.answered(answer)
	}
	next = r
	next.Index, next.Turn, next.Due = r.Index+1, turn, 0
	next.History = append(slices.Clip(r.History), Message{"user", r.Prompt}, Message{"assistant", answer})
	next.Prompt = t.text(turn, false)
	next.Input = r.Input + tokens + t.turns[turn].question
	next.Output = t.turns[turn].output
	w.addModelAndImages(&next, k)
	return next, w.think(k, turn), true
}

// answered is the length of an answer, by package token where the tokenizer is
// the server, which is under load now, or fails, which has no place to go here.
func (w *Workload) answered(text string) int {
	if w.spec.Tokenizer != ServerTokenizer {
		if n, err := w.builder.count(text, false); err == nil {
			return n
		}
	}
	return token.Count(text)
}

// think is the time between the end of a turn and the next one.
func (w *Workload) think(k, turn int) time.Duration {
	mean, constant, _ := parseThink(w.spec.ThinkTime) // Validate has seen the error
	if mean == 0 || constant {
		return mean
	}
	rng := stat.Stream(w.spec.Seed, fmt.Sprintf("think %d %d", k, turn))
	return time.Duration(min(rng.ExpFloat64()*float64(mean), float64(maxSpan)))
}

// parseThink reads a mean, or constant:TIME.
func parseThink(text string) (d time.Duration, constant bool, err error) {
	rest, constant := strings.CutPrefix(text, "constant:")
	if d, err = Span(rest).Duration(); err == nil && constant && rest == "" {
		err = fmt.Errorf("%q has no time", text)
	}
	return d, constant, err
}

// Generates reports whether a later turn's prompt holds what the server
// answered before, so that a sender must keep the answers' text.
func (w *Workload) Generates() bool {
	return w.spec.Dataset == "conversations" && w.spec.History == "generated"
}

// Conversations reports whether there are later turns to ask Next for.
func (w *Workload) Conversations() bool { return w.src.conversations != nil }

// talkDefaults fills in what conversations take.
func (s Spec) talkDefaults() Spec {
	if s.Path != "" {
		s.History = cmp.Or(s.History, "answers")
		return s
	}
	s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
	s.Turns = cmp.Or(s.Turns, "4")
	s.TurnInputLen = cmp.Or(s.TurnInputLen, "128")
	s.TurnOutputLen = cmp.Or(s.TurnOutputLen, "128")
	s.History = cmp.Or(s.History, "generated")
	s.IgnoreEOS = true
	return s
}

// talkFaults names what is wrong about conversations.
func (s Spec) talkFaults(d Spec) (faults []error) {
	fault := func(path, format string, a ...any) { faults = append(faults, field.Errorf(path, format, a...)) }
	talks := d.Dataset == "conversations"
	for _, f := range []struct {
		path   string
		set    bool
		madeUp bool // applies to conversations without a file
		file   bool // applies to those of one
	}{
		{"turns", s.Turns != "", true, true},
		{"turn_input_len", s.TurnInputLen != "", true, false},
		{"turn_output_len", s.TurnOutputLen != "", true, true},
		{"system_len", s.SystemLen != 0, true, false},
		{"think_time", s.ThinkTime != "", true, true},
		{"history", s.History != "", true, true},
		{"no_session_affinity", s.NoSessionAffinity, true, true},
		{"disable_shuffle", talks && s.DisableShuffle, false, true},
		{"no_oversample", talks && s.NoOversample, false, true},
	} {
		switch {
		case !f.set:
		case !talks:
			fault(f.path, "applies to [dataset_name] conversations, not %s", d.Dataset)
		case s.Path != "" && !f.file:
			fault(f.path, "applies to conversations that are made up, not to those of a [dataset_path]")
		case s.Path == "" && !f.madeUp:
			fault(f.path, "applies to conversations of a [dataset_path], not to those that are made up")
		}
	}
	for _, f := range []struct {
		path  string
		value Range
	}{{"turns", s.Turns}, {"turn_input_len", s.TurnInputLen}, {"turn_output_len", s.TurnOutputLen}} {
		if _, _, err := f.value.bounds(); err != nil {
			fault(f.path, "%v", err)
		}
	}
	if _, high, _ := s.Turns.bounds(); high > maxTurns {
		fault("turns", "%s is over the limit of %d", s.Turns, maxTurns)
	}
	if _, _, err := parseThink(s.ThinkTime); err != nil {
		fault("think_time", "%q: write a mean such as 2s, or constant:2s", s.ThinkTime)
	}
	if h := s.History; talks && h != "" && h != "answers" && h != "generated" {
		faults = append(faults, unknown("history", h, []string{"answers", "generated"}))
	}
	return faults
}

// maxTurns bounds a conversation, whose history grows with each turn.
const maxTurns = 10_000
