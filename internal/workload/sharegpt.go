package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"perflab/internal/token"
)

// The filter of `vllm bench serve` on ShareGPT conversations, in tokens.
const (
	minTurnTokens   = 4
	maxPromptTokens = 1024
	maxTotalTokens  = 2048
)

// readShareGPT samples conversations of a JSON array: turn 0 is the prompt,
// the length of turn 1 the output. The published file has 640 MB, so one pass
// finds where each conversation lies, and only those that the shuffle comes to
// are decoded until there are enough.
func readShareGPT(f io.ReaderAt, s Spec) (source, error) {
	spans, err := arraySpans(io.NewSectionReader(f, 0, 1<<62))
	if err != nil {
		return source{}, err
	}
	src := source{drops: drops{}}
	var prompts []string
	for _, k := range shuffled(s, len(spans)) {
		if len(src.rows) == s.NumPrompts {
			break
		}
		b := make([]byte, spans[k].length)
		if _, err := f.ReadAt(b, spans[k].offset); err != nil {
			return source{}, fmt.Errorf("row %d: %w", k+1, err)
		}
		src.read++
		prompt, r, reason, err := conversation(b, s.ShareGPTOutputLen)
		if err != nil {
			return source{}, fmt.Errorf("row %d: %w", k+1, err)
		}
		if reason != "" {
			src.drops[reason]++
			continue
		}
		src.rows = append(src.rows, r)
		prompts = append(prompts, prompt)
	}
	s.DisableShuffle = true // the rows are in drawn order already
	return sample(s, src, prompts, shuffled(s, len(src.rows))), nil
}

// conversation decodes one ShareGPT row and says why it is left out, if it is.
func conversation(b []byte, fixed int) (prompt string, r row, reason string, err error) {
	var c struct {
		Conversations []struct {
			Value string `json:"value"`
		} `json:"conversations"`
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return "", row{}, "", err
	}
	if len(c.Conversations) < 2 {
		return "", row{}, "with fewer than two turns", nil
	}
	prompt = c.Conversations[0].Value
	r.input = token.Count(prompt)
	r.output = fixed
	if fixed == 0 {
		r.output = token.Count(c.Conversations[1].Value)
	}
	switch {
	case r.input < minTurnTokens:
		reason = fmt.Sprintf("with a prompt under %d tokens", minTurnTokens)
	case r.input > maxPromptTokens:
		reason = fmt.Sprintf("with a prompt over %d tokens", maxPromptTokens)
	case fixed == 0 && r.output < minTurnTokens:
		reason = fmt.Sprintf("with an answer under %d tokens", minTurnTokens)
	case r.input+r.output > maxTotalTokens:
		reason = fmt.Sprintf("with prompt and answer over %d tokens", maxTotalTokens)
	}
	return prompt, r, reason, nil
}

// span is where one element of a JSON array lies in a file.
type span struct{ offset, length int64 }

// arraySpans finds the objects of a JSON array without decoding them.
func arraySpans(r io.Reader) ([]span, error) {
	var (
		spans []span
		depth int // of brackets; 1 is between the elements
		str   bool
		skip  bool // the byte after a backslash
		ended bool
		start int64
		in    = bufio.NewReaderSize(r, 1<<20)
	)
	for at := int64(0); ; at++ {
		c, err := in.ReadByte()
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if err != nil {
			if !ended {
				return nil, fmt.Errorf("the file ends inside row %d: is it complete, and a JSON array?", len(spans)+1)
			}
			return spans, nil
		}
		switch {
		case skip:
			skip = false
		case str:
			skip, str = c == '\\', c != '"'
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
		case ended, depth == 0 && c != '[', depth == 1 && c != '{' && c != ',' && c != ']':
			return nil, fmt.Errorf("byte %d is %q: the file must be a JSON array of objects", at, c)
		case c == '"':
			str = true
		case c == '[' || c == '{':
			if depth++; depth == 2 {
				start = at
			}
		case c == ']' || c == '}':
			if depth--; depth == 1 {
				spans = append(spans, span{start, at + 1 - start})
			}
			ended = depth == 0
		}
	}
}
