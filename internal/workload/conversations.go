package workload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"perflab/internal/field"
	"perflab/internal/stat"
	"perflab/internal/workload/jsonarray"
)

// conversations are made up of random words, or those of a file.
func conversations() dataset {
	return dataset{
		name: "conversations", group: groupConversations, sessions: true,
		params: []param{
			{key: "turns", help: "turns of each, 4 or 2-6 (default 4; of a file: conversations with fewer are left out, longer ones are cut)"},
			{key: "turn_input_len", help: "... that are made up: tokens of a question, 128 or 64-256 (default 128)"},
			{key: "turn_output_len", help: "tokens of an answer, 128 or 64-256 (default 128; of a file: its answers' own length)"},
			{key: "system_len", help: "... that are made up: tokens of a system prompt that all share"},
			{key: "think_time", help: "mean time from an answer to the next question, exponential, such as 2s; constant:2s is always that"},
			{key: "history", help: "what stands for earlier answers, generated (the server's own) or answers (the dataset's; default of a file)"},
			{key: "no_session_affinity", help: affinityHelp},
			{key: "session_header", help: sessionHeaderHelp},
			{key: "disable_shuffle"}, noRepeats, madeUpImages,
		},
		fill: fillConversations, check: checkConversations, open: synthesizeConversations,
		read:     func(f *os.File, s Spec, p promptBuilder) (source, error) { return readConversations(f, s, p) },
		hint:     `: a ShareGPT JSON file, or one with a {"messages": [...]} per line; without a path conversations are made up`,
		isMadeUp: withoutFile, shares: always,
		title: func(s Spec) string {
			if s.Path == "" {
				return "Made-up conversations"
			}
			return ofFile("Conversations", s)
		},
	}
}

const sessionHeaderHelp = "name of a header that tells a router which requests belong together, such as X-Session-ID (default: none is sent)"

const affinityHelp = "choose an endpoint anew for each turn; replicas then miss the prefixes that another one has cached"

// What stands for earlier answers in a later prompt.
const (
	historyAnswers   = "answers"   // those of the dataset
	historyGenerated = "generated" // what the server texts
)

// fillConversations writes the defaults of conversations.
func fillConversations(s *Spec) {
	if s.Path != "" {
		s.History = cmp.Or(s.History, historyAnswers)
		return
	}
	s.NumPrompts = cmp.Or(s.NumPrompts, 1000)
	s.Turns = cmp.Or(s.Turns, "4")
	s.TurnInputLen = cmp.Or(s.TurnInputLen, "128")
	s.TurnOutputLen = cmp.Or(s.TurnOutputLen, "128")
	s.History = cmp.Or(s.History, historyGenerated)
	s.IgnoreEOS = true
}

// maxTurns bounds a conversation, whose history grows with each turn.
const maxTurns = 10_000

// checkConversations says what is wrong about conversations.
func checkConversations(s, _ Spec, f *faults) {
	for _, x := range []struct {
		path string
		set  bool
		file bool // applies to conversations of a file, else to those that are made up
	}{
		{"turn_input_len", s.TurnInputLen != "", false},
		{"system_len", s.SystemLen != 0, false},
		{"disable_shuffle", s.DisableShuffle, true},
		{"no_oversample", s.NoOversample, true},
	} {
		switch {
		case !x.set:
		case s.Path != "" && !x.file:
			f.add(x.path, "applies to conversations that are made up, not to those of a [dataset_path]")
		case s.Path == "" && x.file:
			f.add(x.path, "applies to conversations of a [dataset_path], not to those that are made up")
		}
	}
	for _, x := range []struct {
		path  string
		value Range
	}{{"turns", s.Turns}, {"turn_input_len", s.TurnInputLen}, {"turn_output_len", s.TurnOutputLen}} {
		if _, _, err := x.value.bounds(); err != nil {
			f.add(x.path, "%v", err)
		}
	}
	if _, high, _ := s.Turns.bounds(); high > maxTurns {
		f.add("turns", "%s is over the limit of %d", s.Turns, maxTurns)
	}
	if _, _, err := parseThink(s.ThinkTime); err != nil {
		f.add("think_time", "%q: write a mean such as 2s, or constant:2s", s.ThinkTime)
	}
	if s.History != "" {
		f.oneOf("history", s.History, historyAnswers, historyGenerated)
	}
}

// synthesizeConversations makes conversations of random words behind one system
// prompt.
func synthesizeConversations(s Spec, p promptBuilder) (source, error) {
	turns := s.Turns.drawer(stat.Stream(s.Seed, "conversation turns"))
	in := s.TurnInputLen.drawer(stat.Stream(s.Seed, "conversation input length"))
	out := s.TurnOutputLen.drawer(stat.Stream(s.Seed, "conversation output length"))
	system := p.text(stat.Stream(s.Seed, "conversation system prompt"), s.SystemLen)

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
			return p.text(stat.Stream(s.Seed, fmt.Sprintf("conversation %d turn %d %s", i, j, part)), n)
		}
		src.conversations[i], src.rows[i] = t, plannedRow(t, s)
	}
	src.prompt = func(i int) string { return src.conversations[i].text(0, false) }
	return src, nil
}

// plannedRow is the row of a conversation: the sums over its turns.
func plannedRow(t conversation, s Spec) (r row) {
	r.input, r.output = t.planned(s.History == historyGenerated)
	return r
}

// conversationRow is a conversation of a file: in ShareGPT's form or in that of
// the chat API.
type conversationRow struct {
	ID            json.RawMessage `json:"id"`
	Conversations []struct {
		From  string `json:"from"`
		Value string `json:"value"`
	} `json:"conversations"`
	System   string        `json:"system"`
	Messages []chatMessage `json:"messages"`
}

// fileConversations is how many conversations of a file are taken by default.
const fileConversations = 1000

// readConversations reads a JSON array of conversations as ShareGPT has it, of
// which only those are decoded that the shuffle comes to, or one a line.
func readConversations(f io.ReaderAt, s Spec, p promptBuilder) (source, error) {
	whole := func() io.Reader { return io.NewSectionReader(f, 0, 1<<62) }
	src := source{drops: dropCounts{}}
	keep := conversationReader(s, p, &src)
	array, err := jsonarray.Is(whole())
	if err != nil {
		return source{}, err
	}
	if !array {
		err := eachLine(whole(), func(line []byte) error {
			var row conversationRow
			if err := strict(line, &row, "id, system, messages or conversations"); err != nil {
				return err
			}
			return keep(row)
		})
		if err != nil {
			return source{}, err
		}
		return sampleConversations(s, src, shuffled(s, len(src.rows))), nil
	}
	spans, err := jsonarray.Spans(whole())
	if err != nil {
		return source{}, err
	}
	for _, n := range shuffled(s, len(spans)) {
		if len(src.rows) == cmp.Or(s.NumPrompts, fileConversations) {
			break
		}
		b := make([]byte, spans[n].Length)
		if _, err := f.ReadAt(b, spans[n].Offset); err != nil {
			return source{}, fmt.Errorf("row %d: %w", n+1, err)
		}
		var row conversationRow
		err := json.Unmarshal(b, &row)
		if err == nil {
			err = keep(row)
		}
		if err != nil {
			return source{}, fmt.Errorf("row %d: %w", n+1, err)
		}
	}
	s.DisableShuffle = true // the rows are in drawn order already
	return sampleConversations(s, src, shuffled(s, len(src.rows))), nil
}

// sampleConversations makes the conversations as many as were asked for.
func sampleConversations(s Spec, src source, order []int) source {
	s.NumPrompts = cmp.Or(s.NumPrompts, min(fileConversations, len(order)))
	firsts := make([]string, len(src.conversations))
	for i, t := range src.conversations {
		firsts[i] = t.text(0, false)
	}
	return sample(s, src, firsts, order)
}

// conversationReader returns what adds a conversation to src, or counts why not.
func conversationReader(s Spec, p promptBuilder, src *source) func(conversationRow) error {
	least, most, _ := s.Turns.bounds() // Validate has seen the errors
	length := s.TurnOutputLen.drawer(stat.Stream(s.Seed, "conversation output length"))
	return func(row conversationRow) error {
		src.read++
		messages, err := row.list()
		if err != nil {
			return err
		}
		t, texts, err := p.questionsAndAnswers(row.System, messages)
		if err != nil {
			return err
		}
		for i := range t.turns {
			t.turns[i].output = cmp.Or(length(), t.turns[i].answer)
		}
		if n := len(t.turns); n > 0 && t.turns[n-1].output == 0 {
			t.turns = t.turns[:n-1] // a question that nothing says how long to answer
		}
		switch {
		case len(t.turns) == 0:
			src.drops["with no question that has an answer"]++
			return nil
		case len(t.turns) < least:
			src.drops[fmt.Sprintf("with fewer than %d turns", least)]++
			return nil
		case most > 0:
			t.turns = t.turns[:min(most, len(t.turns))]
		}
		t.turns = t.turns[:min(maxTurns, len(t.turns))]
		t.text = func(turn int, answer bool) string {
			if answer {
				turn, answer = 2*turn+1, false
			} else {
				turn *= 2
			}
			return texts[turn]
		}
		src.conversations = append(src.conversations, t)
		src.rows = append(src.rows, plannedRow(t, s))
		return nil
	}
}

// list is the conversation in the form of the chat API.
func (row conversationRow) list() ([]chatMessage, error) {
	if row.Conversations != nil && row.Messages != nil {
		return nil, errors.New("a row has messages or conversations, not both")
	}
	for i, m := range row.Messages {
		if len(m.Content.images) > 0 {
			return nil, field.Errorf("", "messages[%d]: images are for [dataset_name] jsonl, or [random_images]", i)
		}
	}
	out := row.Messages
	for _, m := range row.Conversations {
		role := m.From
		switch role {
		case "human":
			role = "user"
		case "gpt", "chatgpt", "bing", "bard", "model":
			role = "assistant"
		}
		out = append(out, chatMessage{role, chatContent{text: m.Value}})
	}
	return out, nil
}

// questionsAndAnswers is the part of a conversation that goes question, answer, question:
// from the first question on until a message that does not fit or is empty.
func (p promptBuilder) questionsAndAnswers(system string, list []chatMessage) (t conversation, texts []string, err error) {
	t.system = system
	if len(list) > 0 && list[0].Role == "system" && system == "" {
		t.system, list = list[0].Content.text, list[1:]
	}
	if t.head, err = p.count(t.system, false); err != nil {
		return conversation{}, nil, err
	}
	for len(list) > 0 && list[0].Role == "assistant" {
		list = list[1:]
	}
	for i, m := range list {
		n, err := p.count(m.Content.text, false)
		if err != nil {
			return conversation{}, nil, err
		}
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || n == 0 || n > maxTokens {
			break
		}
		texts = append(texts, m.Content.text)
		if i%2 == 0 {
			t.turns = append(t.turns, turn{question: n})
		} else {
			t.turns[i/2].answer = n
		}
	}
	return t, texts, nil
}
