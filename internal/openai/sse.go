package openai

import (
	"bytes"
	"slices"
)

// maxEvent bounds the memory that one event may take.
const maxEvent = 64 << 20

// splitter cuts a stream of server-sent events into the data of each event. It
// takes the stream in pieces cut anywhere. Lines end in LF, CR or CRLF;
// comments and fields other than data and event are dropped. An event that lies
// within one piece is not copied.
type splitter struct {
	line  []byte // of a line whose end has not come
	data  []byte // of the event so far: a part of the piece, or of held
	held  []byte // backs data when it had to be copied
	has   bool   // a data line was seen, if an empty one
	own   bool   // data lies in held
	begun bool   // a byte was seen: no byte order mark can follow
	cr    bool   // the last line ended in CR: an LF that follows belongs to it
	typed []byte // type of the event so far
	kind  []byte // type of the event last given; backed apart from the former
	long  bool   // maxEvent was passed
}

var bom = []byte("\ufeff")

// next takes lines from p up to the end of an event. It returns the event's
// data and what is left of p. Without a complete event ok is false and p is
// used up. data is valid until the next call.
func (s *splitter) next(p []byte) (data, rest []byte, ok bool) {
	for len(p) > 0 {
		if s.cr {
			s.cr = false
			if p[0] == '\n' {
				p = p[1:]
				continue
			}
		}
		i := lineEnd(p)
		if i < 0 {
			break
		}
		line := p[:i]
		s.cr = p[i] == '\r'
		p = p[i+1:]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
			s.line = s.line[:0] // its bytes are not overwritten before keep
		}
		s.take(line)
		if len(line) == 0 {
			if s.has {
				return s.give(), p, true
			}
			s.typed = s.typed[:0]
		}
	}
	s.keep()
	if len(s.line)+len(p) > maxEvent || len(s.data) > maxEvent {
		s.long = true
		return nil, nil, false
	}
	s.line = append(s.line, p...)
	return nil, nil, false
}

// end gives the event that the stream's end left without its blank line.
func (s *splitter) end() ([]byte, bool) {
	if len(s.line) > 0 {
		s.take(s.line)
	}
	if !s.has {
		return nil, false
	}
	return s.give(), true
}

func lineEnd(p []byte) int {
	if p[0] == '\n' { // every other line of a stream is blank
		return 0
	}
	i := bytes.IndexByte(p, '\n')
	head := p
	if i >= 0 {
		head = p[:i]
	}
	if j := bytes.IndexByte(head, '\r'); j >= 0 {
		return j
	}
	return i
}

// take reads one whole line. The colon stands behind the name of a field; the two
// names that matter have four and five letters.
func (s *splitter) take(line []byte) {
	if !s.begun {
		s.begun = true
		line = bytes.TrimPrefix(line, bom)
	}
	name, value := line, []byte(nil)
	switch {
	case len(line) > 4 && line[4] == ':':
		name, value = line[:4], line[5:]
	case len(line) > 5 && line[5] == ':':
		name, value = line[:5], line[6:]
	}
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		s.add(value)
	case "event":
		s.typed = append(s.typed[:0], value...)
	}
}

func (s *splitter) add(value []byte) {
	if !s.has {
		s.has, s.own, s.data = true, false, value
		return
	}
	s.keep()
	s.held = append(append(s.held, '\n'), value...)
	s.data = s.held
}

// keep copies the data of an unfinished event out of the caller's piece.
func (s *splitter) keep() {
	if !s.has || s.own {
		return
	}
	s.held = append(slices.Grow(s.held[:0], len(s.data)), s.data...)
	s.data, s.own = s.held, true
}

func (s *splitter) give() []byte {
	d := s.data
	s.data, s.has, s.own = nil, false, false
	s.kind, s.typed = s.typed, s.kind[:0]
	return d
}
