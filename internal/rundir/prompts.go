package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"perflab/internal/durable"
	"perflab/internal/input"
	"perflab/internal/jsonl"
	"perflab/internal/reuse"
)

// PromptsFile says of each prompt which earlier one it begins alike with.
const PromptsFile = "prompts.jsonl"

// KeepPrompts has Finish write what the prompts of the run share; none are no file.
func (w *Writer) KeepPrompts(prompts []reuse.Prompt) *Writer {
	w.prompts = prompts
	return w
}

// writePrompts writes the file of prompts.
func writePrompts(disk durable.Disk, path string, prompts []reuse.Prompt) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := range prompts {
		if err := enc.Encode(&prompts[i]); err != nil {
			return fmt.Errorf("encode %s: %w", PromptsFile, err)
		}
	}
	return writeFile(disk, path, b.Bytes())
}

// openPrompts reads the file of prompts, where there is one.
func openPrompts(dir string) ([]reuse.Prompt, error) {
	f, err := os.Open(filepath.Join(dir, PromptsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read what prompts share: %w", err)
	}
	defer f.Close()
	out, err := readPrompts(input.Lines(f, "the file", mostLine))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", PromptsFile, err)
	}
	return out, nil
}

// readPrompts reads lines of prompts. A line may name those before it alone.
func readPrompts(r io.Reader) (out []reuse.Prompt, err error) {
	for p, err := range jsonl.Read(r, "a prompt", func(line []byte, x *reuse.Prompt) error { return json.Unmarshal(line, x) }) {
		if err == nil {
			err = p.Check(len(out))
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
