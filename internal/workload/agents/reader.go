package agents

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Reader reads the files of a path of recorded sessions, whatever their form. The
// zero value is ready.
type Reader struct{ rounds rounds }

// Read reads one JSON object after the other, whatever is a line, compressed by gzip
// or not, and gives each session to keep. Those of TraceLab, which has an object for
// each request, come with Rest: the rows of a session and of the agents that it
// started may stand anywhere.
func (r *Reader) Read(file io.Reader, keep func(Read)) error {
	plain, err := plainText(file)
	if err != nil {
		return err
	}
	dec := json.NewDecoder(plain)
	sessions, rows := 0, 0
	for {
		var object json.RawMessage
		switch err := dec.Decode(&object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && rows > 0:
			return fmt.Errorf("row %d: %s", rows+1, inWords(err))
		case err != nil:
			return fmt.Errorf("session %d: %s", sessions+1, inWords(err))
		}
		if isRound(object) {
			rows++
			if err := r.rounds.add(object); err != nil {
				return fmt.Errorf("row %d: %w", rows, err)
			}
			continue
		}
		sessions++
		s, err := Parse(object)
		if err != nil {
			return fmt.Errorf("session %d: %w", sessions, err)
		}
		keep(s)
	}
}

// Rest gives the sessions of which the files had rows, in the order of their first ones.
func (r *Reader) Rest(keep func(Read)) error { return r.rounds.sessions(keep) }

// plainText is what a file has, decompressed where it begins as gzip does.
func plainText(file io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(file, 1<<16)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return in, nil // what else is wrong with the file is found where it is read
	}
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("the file begins as gzip does, and cannot be decompressed: %s", inWords(err))
	}
	return z, nil
}

// inWords is what JSON or gzip say of a fault, for people.
func inWords(err error) string {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends inside the JSON object: is the file complete?"
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader):
		return "what is compressed is damaged: is the file complete?"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
