package workload

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// custom is the dataset of that name of `vllm bench serve`: prompts of a JSONL file,
// all with one output length. What else may go with a request is jsonl's.
func custom() dataset {
	return dataset{
		name: "custom", group: groupFile,
		params: []param{
			keepOrder, noRepeats,
			{key: "custom_output_len", help: "output tokens of each request, whatever the file says; -1: each line's output_tokens", standard: 256, minusOne: true},
		},
		fill:  func(s *Spec) { s.NumPrompts = cmp.Or(s.NumPrompts, 1000) },
		read:  func(f *os.File, s Spec, p promptBuilder) (source, error) { return readCustom(f, s, p) },
		hint:  `: a file with one {"prompt": "..."} per line; for messages, images or tools choose [dataset_name] jsonl`,
		title: func(s Spec) string { return ofFile("Custom dataset", s) },
	}
}

// ownLength is the custom_output_len that takes each line's own.
const ownLength = -1

// customRow is a line of a custom dataset. Other keys are ignored, as vLLM does.
type customRow struct {
	Prompt *string         `json:"prompt"`
	Output json.RawMessage `json:"output_tokens"`
}

// readCustom samples the lines as `vllm bench serve` does from the same seed: all
// lines are shuffled, the first ones taken, and missing ones drawn from those.
func readCustom(f io.Reader, s Spec, p promptBuilder) (source, error) {
	return sampleLines[customRow](f, s, p)
}

func (r customRow) check(Spec) error {
	if r.Prompt == nil {
		return errors.New(`has no "prompt", which each line needs`)
	}
	return nil
}

// take is what the row is sent as.
func (r customRow) take(s Spec, p promptBuilder) (t taken, err error) {
	t = taken{prompt: *r.Prompt, row: row{output: s.CustomOutputLen}}
	if s.CustomOutputLen == ownLength {
		if t.row.output, err = wholeTokens(r.Output); err != nil {
			return t, err
		}
	}
	if t.row.input, err = p.count(t.prompt, true); t.row.input == 0 || strings.TrimSpace(t.prompt) == "" {
		t.reason = "with an empty prompt"
	}
	return t, err
}

// wholeTokens reads output_tokens, which a file may also have as text.
func wholeTokens(raw json.RawMessage) (int, error) {
	text := strings.Trim(string(raw), `"`)
	if text == "" || text == "null" {
		return 0, errors.New("has no output_tokens, which the output length -1 takes of each line")
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != float64(int(n)) || n < 1 || n > maxTokens {
		return 0, fmt.Errorf("output_tokens %.40s must be a whole number from 1 to %d", raw, maxTokens)
	}
	return int(n), nil
}
