package redact

import (
	"io"
	"sync"
	"unicode/utf8"
)

// Writer is what text goes through on its way to people: nothing that it passes
// on steers a terminal ([Shown]), and no secret that is known by its value or
// its form ([Forms]) is in it. Names do not count here: help tells of --api-key
// KEY. A text should come whole, since what is cut between two writes is not
// known. It is safe for concurrent use as far as the writer below it is.
type Writer struct {
	to      io.Writer
	secrets Values

	mu   sync.Mutex
	rest []byte // the begin of a character of several bytes
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer, secrets Values) *Writer { return &Writer{to: w, secrets: secrets} }

// Clean is what Write writes of a text.
func (w *Writer) Clean(text string) string { return w.secrets.Clean(text) }

// Clean makes text safe to show: see [Writer].
func (v Values) Clean(text string) string { return Forms(v.Mask(Shown(text))) }

func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	cut := len(text)
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if at := len(text) - n; utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				cut = at
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[cut:]...)
	if _, err := io.WriteString(w.to, w.Clean(string(text[:cut]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
