package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"unicode/utf8"
)

// Stream is one of the two that a launch writes.
type Stream string

// Streams of a launch.
const (
	Stdout Stream = "stdout" // its result
	Stderr Stream = "stderr" // what it says as it goes
)

// mostTail is the most of a log that is read at once.
const mostTail = 64 << 10

// Chunk is a piece of a log.
type Chunk struct {
	Text   string `json:"text"`
	Offset int64  `json:"offset"` // where it begins, in bytes
	Next   int64  `json:"next"`   // where to go on
	Size   int64  `json:"size"`   // of all that there is now
}

// Tail reads a log of a launch from an offset on, up to 64 KiB at once; a negative offset
// counts from its end. A log that does not exist yet is empty. What is read is as the
// launch wrote it: whoever shows it escapes it.
func (q *Queue) Tail(id string, s Stream, offset int64) (Chunk, error) {
	names := map[Stream]string{Stdout: stdoutFile, Stderr: stderrFile}
	if _, err := q.Get(id); err != nil {
		return Chunk{}, err
	}
	if names[s] == "" {
		return Chunk{}, fmt.Errorf("a launch has no stream %q: ask for %s or %s", s, Stdout, Stderr)
	}
	root, err := os.OpenRoot(q.dir.path(id))
	if err != nil {
		return Chunk{}, fmt.Errorf("read the log of launch %s: %w", id, err)
	}
	defer root.Close()
	f, err := root.Open(names[s])
	if errors.Is(err, fs.ErrNotExist) {
		return Chunk{}, nil
	}
	if err != nil {
		return Chunk{}, fmt.Errorf("read the log of launch %s: %w", id, err)
	}
	defer f.Close()
	return tail(f, offset)
}

func tail(f *os.File, offset int64) (Chunk, error) {
	info, err := f.Stat()
	if err != nil {
		return Chunk{}, fmt.Errorf("read a log: %w", err)
	}
	size := info.Size()
	fromEnd := offset < 0
	if fromEnd {
		offset = max(0, size+offset)
	}
	offset = min(offset, size)
	b := make([]byte, min(size-offset, mostTail))
	n, err := f.ReadAt(b, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return Chunk{}, fmt.Errorf("read a log: %w", err)
	}
	b = b[:n]
	if fromEnd { // it may begin inside a character
		for i := 0; i < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); i++ {
			b, offset = b[1:], offset+1
		}
	}
	b = wholeCharacters(b)
	return Chunk{Text: string(b), Offset: offset, Next: offset + int64(len(b)), Size: size}, nil
}

// wholeCharacters leaves out a character at the end of which only a part is there. What is no
// UTF-8 at all stays.
func wholeCharacters(b []byte) []byte {
	for i := len(b) - 1; i > 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
