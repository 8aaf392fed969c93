// Package jsonl writes and reads lines of JSON.
//
//	for v, err := range jsonl.Read(file, "a call", decode) { ... }
//
// Read takes a file apart into lines. Writer and Parser write and read one line whose fields the
// caller knows, without reflection: a run of a million calls is written while it is measured, and
// read some ten times as fast as package json reads it. Parser leaves what it finds written in
// another way than Writer writes it: the caller then gives the line to package json, so that both read
// the same.
//
// Deliberately absent: files, and what the fields mean.
package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// Read yields the values of a stream of lines, one a line; decode reads a line, and what says in errors
// what a line should be. Errors name the line and end the sequence. A last line that has no newline and
// does not parse is what a killed writer leaves behind: it is dropped.
func Read[T any](r io.Reader, what string, decode func([]byte, *T) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		br := bufio.NewReaderSize(r, 1<<16)
		var long []byte
		for n := 1; ; n++ {
			line, err := br.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = br.ReadSlice('\n') {
					long = append(long, line...)
				}
				long = append(long, line...)
				line = long
			}
			if err != nil && !errors.Is(err, io.EOF) {
				yield(none, fmt.Errorf("line %d: %w", n, err))
				return
			}
			whole := err == nil
			if len(bytes.TrimSpace(line)) > 0 {
				var v T
				if err := decode(line, &v); err == nil {
					if !yield(v, nil) {
						return
					}
				} else if whole {
					yield(none, fmt.Errorf("line %d is not %s: %w", n, what, err))
					return
				}
			}
			if !whole {
				return
			}
		}
	}
}
