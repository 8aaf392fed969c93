package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"perflab/internal/input"
)

// mostLine is the size of a line that is read: of a request with some images of several MB.
const mostLine = 64 << 20

// eachLine calls fn with each line that is not blank; an error names the line.
func eachLine(f io.Reader, fn func(line []byte) error) error {
	in := bufio.NewReaderSize(input.Lines(f, "the file", mostLine), 1<<20)
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
		return errCut
	}
	if err != nil {
		return fmt.Errorf("%s (accepted keys: %s)", strings.TrimPrefix(err.Error(), "json: "), keys)
	}
	return nil
}

var errCut = errors.New("the line ends inside the JSON object: is the file complete?")

// lenient decodes one JSON object and leaves out the keys that v has not.
func lenient(line []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	switch err := dec.Decode(v); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errCut
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	case dec.InputOffset() != int64(len(line)):
		return errors.New("more follows the JSON object")
	case line[0] != '{':
		return errors.New("is no JSON object")
	}
	return nil
}

// lineRow is a line of a dataset of prompts.
type lineRow interface {
	check(Spec) error // what the line lacks
	take(Spec, promptBuilder) (taken, error)
}

// sampleLines reads the lines of a file, and samples them as `vllm bench serve` does.
func sampleLines[T lineRow](f io.Reader, s Spec, p promptBuilder) (source, error) {
	var rows []T
	err := eachLine(f, func(line []byte) error {
		var r T
		if err := lenient(line, &r); err != nil {
			return err
		}
		rows = append(rows, r)
		return r.check(s)
	})
	if err != nil {
		return source{}, err
	}
	return sampleAsVLLM(s, source{drops: dropCounts{}}, pythonOrder(s, len(rows)), func(i int) (taken, error) {
		t, err := rows[i].take(s, p)
		return t, atRow(i, err)
	})
}
