package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"perflab/internal/stat"
)

// The filter of `vllm bench serve` on ShareGPT conversations, in tokens.
const (
	minTurnTokens   = 4
	maxPromptTokens = 1024
	maxTotalTokens  = 2048
)

// readShareGPT samples conversations of a JSON array: turn 0 is the prompt,
// the length of turn 1 the output. Filter, order and repetition are those of
// `vllm bench serve` (Python), from the same seed: conversations of two turns
// or more are shuffled, and the first ones of a fitting length taken; missing
// ones are drawn from those. The filter of guidellm, as GPUStack's
// benchmark-runner feeds it, takes the first ones in the file's order.
//
// The published file has 640 MB, so one pass finds where each conversation
// lies, and only those that the order comes to are decoded until there are
// enough.
func readShareGPT(f io.ReaderAt, s Spec, k promptBuilder) (source, error) {
	spans, err := arraySpans(io.NewSectionReader(f, 0, 1<<62))
	if err != nil {
		return source{}, err
	}
	src := source{drops: drops{}}
	var prompts []string
	for _, at := range readingOrder(s, spans, &src) {
		if len(src.rows) == s.NumPrompts {
			break
		}
		b := make([]byte, spans[at].length)
		if _, err := f.ReadAt(b, spans[at].offset); err != nil {
			return source{}, fmt.Errorf("row %d: %w", at+1, err)
		}
		src.read++
		prompt, r, reason, err := decodeShareGPT(b, s, k)
		if err != nil {
			return source{}, fmt.Errorf("row %d: %w", at+1, err)
		}
		if reason != "" {
			src.drops[reason]++
			continue
		}
		src.rows = append(src.rows, r)
		prompts = append(prompts, prompt)
	}
	if n := len(src.rows); n > 0 && !s.NoOversample {
		rng := stat.NewPython(s.Seed)
		for range s.NumPrompts - n {
			again := rng.Below(n)
			src.rows = append(src.rows, src.rows[again])
			prompts = append(prompts, prompts[again])
		}
	}
	src.prompt = func(i int) string { return prompts[i] }
	return src, nil
}

const tooFewTurns = "with fewer than two turns"

// readingOrder returns the order in which to look at the elements of the
// file; those left out for good are counted in src.
func readingOrder(s Spec, spans []span, src *source) []int {
	var order []int
	for i, at := range spans {
		if at.turns < 2 && s.ShareGPTFilter == "vllm" {
			src.read++
			src.drops[tooFewTurns]++
			continue
		}
		order = append(order, i)
	}
	if s.ShareGPTFilter == "vllm" && !s.DisableShuffle {
		stat.NewPython(s.Seed).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	return order
}

// shareGPTTurn is one of a ShareGPT conversation.
type shareGPTTurn struct {
	From  string `json:"from"`
	Value string `json:"value"`
}

// decodeShareGPT decodes one ShareGPT row and says why it is left out, if it is.
func decodeShareGPT(b []byte, s Spec, k promptBuilder) (prompt string, r row, reason string, err error) {
	var c struct {
		Conversations []shareGPTTurn `json:"conversations"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return "", row{}, "", err
	}
	if len(c.Conversations) < 2 {
		return "", row{}, tooFewTurns, nil
	}
	ask, answer := c.Conversations[0], c.Conversations[1]
	guide := s.ShareGPTFilter == "guidellm"
	if guide {
		if reason = guideFault(ask, answer); reason != "" {
			return "", row{}, reason, nil
		}
	}
	if r.input, err = k.count(ask.Value, true); err != nil {
		return "", row{}, "", err
	}
	if r.output = s.ShareGPTOutputLen; r.output == 0 {
		if r.output, err = k.count(answer.Value, !guide); err != nil {
			return "", row{}, "", err
		}
	}
	if guide {
		if r.input == 0 || r.output == 0 {
			reason = "with an empty question or answer"
		}
		return ask.Value, r, reason, nil
	}
	return ask.Value, r, lengthFault(r, s.ShareGPTOutputLen > 0), nil
}

// guideFault is the filter of benchmark-runner: a question of a human and the
// answer to it, neither empty.
func guideFault(ask, answer shareGPTTurn) string {
	switch {
	case ask.From != "human" && ask.From != "user", answer.From != "gpt" && answer.From != "assistant":
		return "that do not begin with a question and its answer"
	case ask.Value == "" || answer.Value == "":
		return "with an empty question or answer"
	}
	return ""
}

// lengthFault is vLLM's filter; an output of fixed length is not held against
// the answer's minimum.
func lengthFault(r row, fixed bool) string {
	switch {
	case r.input < minTurnTokens:
		return fmt.Sprintf("with a prompt under %d tokens", minTurnTokens)
	case r.input > maxPromptTokens:
		return fmt.Sprintf("with a prompt over %d tokens", maxPromptTokens)
	case !fixed && r.output < minTurnTokens:
		return fmt.Sprintf("with an answer under %d tokens", minTurnTokens)
	case r.input+r.output > maxTotalTokens:
		return fmt.Sprintf("with prompt and answer over %d tokens", maxTotalTokens)
	}
	return ""
}

// span is where one element of a JSON array lies in a file.
type span struct {
	offset, length int64
	turns          int // of the array "conversations"; 2 where that is something else, so that decoding reports it
}

// arraySpans finds the objects of a JSON array without decoding them.
func arraySpans(r io.Reader) ([]span, error) {
	var s arrayScanner
	buf := make([]byte, 1<<20)
	for {
		n, err := r.Read(buf)
		if bad := s.scan(buf[:n]); bad != nil {
			return nil, bad
		}
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil && !s.ended:
			return nil, fmt.Errorf("the file ends inside row %d: is it complete, and a JSON array?", len(s.spans)+1)
		case err != nil:
			return s.spans, nil
		}
	}
}

// arrayScanner takes the bytes of a JSON array in pieces.
type arrayScanner struct {
	spans []span
	at    int64 // bytes before the next one
	depth int   // of brackets; 1 is between the elements
	str   bool
	skip  bool // the byte after a backslash
	ended bool
	start int64
	turns turnCounter
}

func (s *arrayScanner) scan(b []byte) error {
	for len(b) > 0 {
		if s.str && !s.skip && s.depth > 2 { // a text: nothing of it matters but its end
			n := 0
			for n < len(b) && b[n] != '"' && b[n] != '\\' {
				n++
			}
			s.at += int64(n)
			if b = b[n:]; len(b) == 0 {
				return nil
			}
		}
		if err := s.next(b[0]); err != nil {
			return err
		}
		s.at++
		b = b[1:]
	}
	return nil
}

func (s *arrayScanner) next(c byte) error {
	if s.depth >= 2 {
		s.turns.see(c, s.depth, s.str)
	}
	switch {
	case s.skip:
		s.skip = false
	case s.str:
		s.skip, s.str = c == '\\', c != '"'
	case c == ' ' || c == '\n' || c == '\r' || c == '\t':
	case s.ended, s.depth == 0 && c != '[', s.depth == 1 && c != '{' && c != ',' && c != ']':
		return fmt.Errorf("byte %d is %q: the file must be a JSON array of objects", s.at, c)
	case c == '"':
		s.str = true
	case c == '[' || c == '{':
		if s.depth++; s.depth == 2 {
			s.start, s.turns = s.at, turnCounter{}
		}
	case c == ']' || c == '}':
		if s.depth--; s.depth == 1 {
			s.spans = append(s.spans, span{s.start, s.at + 1 - s.start, s.turns.n})
		}
		s.ended = s.depth == 0
	}
	return nil
}

// turnCounter counts the elements of the array under the key "conversations"
// of the object that its bytes are of.
type turnCounter struct {
	n     int
	key   []byte // the last string of the object itself, without its quotes
	value bool   // the key's colon has passed
	in    bool   // inside the array
	empty bool   // nothing of an element yet
}

const turnsKey = "conversations"

// see takes a byte with the depth of brackets and whether a string is open, as
// both are before it.
func (t *turnCounter) see(c byte, depth int, str bool) {
	blank := !str && (c == ' ' || c == '\n' || c == '\r' || c == '\t')
	switch {
	case blank:
	case t.in:
		t.element(c, depth, str)
	case depth == 2 && str && !t.value:
		if c != '"' && len(t.key) <= len(turnsKey) {
			t.key = append(t.key, c)
		}
	case depth == 2 && !str && !t.value && c == '"':
		t.key = t.key[:0]
	case depth == 2 && !str && c == ':':
		t.value = true
		if string(t.key) == turnsKey {
			t.n = 2
		}
	case depth == 2 && !str && t.value && c == '[' && string(t.key) == turnsKey:
		t.in, t.empty, t.n = true, true, 0
	case depth == 2 && !str && c == ',':
		t.value = false
	}
}

// element counts at the first byte of the array that is its end or an
// element, and at each comma.
func (t *turnCounter) element(c byte, depth int, str bool) {
	switch {
	case depth == 3 && !str && c == ']':
		t.in = false
	case t.empty:
		t.empty, t.n = false, 1
	case depth == 3 && !str && c == ',':
		t.n++
	}
}
