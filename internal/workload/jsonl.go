package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"perflab/internal/token"
)

// jsonlRow is one request of a custom dataset: a prompt, or what amounts to
// one, a single user message.
type jsonlRow struct {
	Prompt   *string `json:"prompt"`
	Messages []struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	} `json:"messages"`
	Output *int `json:"output_tokens"`
}

// readJSONL reads a custom dataset. It keeps the prompts in memory.
func readJSONL(f io.Reader, s Spec) (source, error) {
	src := source{drops: drops{}}
	var prompts []string
	err := eachLine(f, func(line []byte) error {
		src.read++
		var j jsonlRow
		if err := strict(line, &j, "prompt or messages, output_tokens"); err != nil {
			return err
		}
		prompt, err := j.prompt()
		if err != nil {
			return err
		}
		r := row{input: token.Count(prompt), output: s.OutputLen}
		if j.Output != nil {
			r.output = *j.Output
			if r.output < 1 || r.output > maxTokens {
				return fmt.Errorf("output_tokens %d must be from 1 to %d", r.output, maxTokens)
			}
		}
		if r.input == 0 {
			src.drops["with an empty prompt"]++
			return nil
		}
		src.rows = append(src.rows, r)
		prompts = append(prompts, prompt)
		return nil
	})
	if err != nil {
		return source{}, err
	}
	return sample(s, src, prompts, shuffled(s, len(src.rows))), nil
}

func (j jsonlRow) prompt() (string, error) {
	switch {
	case j.Prompt != nil && j.Messages != nil:
		return "", errors.New("a row has a prompt or messages, not both")
	case j.Prompt != nil:
		return *j.Prompt, nil
	case j.Messages == nil:
		return "", errors.New(`a row needs a prompt (a string) or messages (one with the role "user")`)
	case len(j.Messages) != 1 || j.Messages[0].Role != "user":
		return "", errors.New(`messages must be a single one with the role "user"`)
	}
	return j.Messages[0].Content, nil
}

// eachLine calls fn with each line that is not blank; an error names the line.
func eachLine(f io.Reader, fn func(line []byte) error) error {
	in := bufio.NewReaderSize(f, 1<<20)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			if err := fn(trimmed); err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if err != nil {
			return nil
		}
	}
}

// strict decodes one JSON object and says which keys there are if it has
// another.
func strict(line []byte, v any, keys string) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err := dec.Decode(v)
	if err == nil && dec.InputOffset() != int64(len(line)) {
		err = errors.New("more follows the JSON object")
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the line ends inside the JSON object: is the file complete?")
	}
	if err != nil {
		return fmt.Errorf("%s (accepted keys: %s)", strings.TrimPrefix(err.Error(), "json: "), keys)
	}
	return nil
}
