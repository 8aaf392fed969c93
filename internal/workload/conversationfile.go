package workload

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// conversationRow is a conversation of a file: ShareGPT's form or that of the chat API.
type conversationRow struct {
	ID            json.RawMessage `json:"id"`
	Conversations []struct {
		From  string `json:"from"`
		Value string `json:"value"`
	} `json:"conversations"`
	System   string        `json:"system"`
	Messages []chatMessage `json:"messages"`
}

// fileConversations is how many conversations of a file are taken unless told.
const fileConversations = 1000

// readConversations reads conversations: a JSON array of them as ShareGPT has it, of
// which only those are decoded that the shuffle comes to, or one a line.
func readConversations(f io.ReaderAt, s Spec, k promptBuilder) (source, error) {
	whole := func() io.Reader { return io.NewSectionReader(f, 0, 1<<62) }
	src := source{drops: drops{}}
	keep := conversationReader(s, k, &src)
	array, err := isArray(whole())
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
	spans, err := arraySpans(whole())
	if err != nil {
		return source{}, err
	}
	for _, n := range shuffled(s, len(spans)) {
		if len(src.rows) == cmp.Or(s.NumPrompts, fileConversations) {
			break
		}
		b := make([]byte, spans[n].length)
		if _, err := f.ReadAt(b, spans[n].offset); err != nil {
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

// isArray tells the two kinds of file apart by their first byte.
func isArray(r io.Reader) (bool, error) {
	in := bufio.NewReader(r)
	for {
		switch c, err := in.ReadByte(); {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			return c == '[', nil
		}
	}
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
func conversationReader(s Spec, k promptBuilder, src *source) func(conversationRow) error {
	least, most, _ := s.Turns.bounds() // Validate has seen the errors
	length := s.TurnOutputLen.drawer(stat.Stream(s.Seed, "conversation output length"))
	return func(row conversationRow) error {
		src.read++
		messages, err := row.list()
		if err != nil {
			return err
		}
		t, said, err := k.questionsAndAnswers(row.System, messages)
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
			return said[turn]
		}
		src.conversations = append(src.conversations, t)
		src.rows = append(src.rows, t.row(s.History == "generated"))
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
func (k promptBuilder) questionsAndAnswers(system string, list []chatMessage) (t conversation, said []string, err error) {
	t.system = system
	if len(list) > 0 && list[0].Role == "system" && system == "" {
		t.system, list = list[0].Content.text, list[1:]
	}
	if t.head, err = k.count(t.system, false); err != nil {
		return conversation{}, nil, err
	}
	for len(list) > 0 && list[0].Role == "assistant" {
		list = list[1:]
	}
	for i, m := range list {
		n, err := k.count(m.Content.text, false)
		if err != nil {
			return conversation{}, nil, err
		}
		if want := []string{"user", "assistant"}[i%2]; m.Role != want || n == 0 || n > maxTokens {
			break
		}
		said = append(said, m.Content.text)
		if i%2 == 0 {
			t.turns = append(t.turns, turn{question: n})
		} else {
			t.turns[i/2].answer = n
		}
	}
	return t, said, nil
}
