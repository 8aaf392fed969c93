// Package jsonarray finds the elements of a JSON array of hundreds of megabytes without decoding
// them, so that only those that are wanted are decoded.
//
//	spans, err := jsonarray.Spans(file)
//	file.ReadAt(b, spans[0].Offset)
package jsonarray

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Span is where one element of a JSON array lies in a file.
type Span struct {
	Offset, Length int64
	Turns          int // of the array "conversations"; 2 where that is something else, so that decoding reports it
}

// Spans finds the objects of a JSON array without decoding them.
func Spans(r io.Reader) ([]Span, error) {
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
	spans []Span
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
			s.spans = append(s.spans, Span{s.start, s.at + 1 - s.start, s.turns.n})
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

// Is tells the two kinds of file apart by their first byte.
func Is(r io.Reader) (bool, error) {
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
