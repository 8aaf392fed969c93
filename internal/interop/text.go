package interop

import (
	"bytes"
	"unicode/utf8"
)

// readText reads the blocks of a text and the document around them.
func readText(name string, data []byte) File {
	s := scan(name, data)
	if line := notUTF8(data); line > 0 {
		s.faults = append(s.faults, Fault{Place: Place{File: name, Line: line}, Text: "the text is not UTF-8 from here on: what is not a character is shown as \uFFFD"})
	}
	f := attribute(s)
	return File{Name: name, Runs: f.runs, Doc: s.doc, Faults: f.sorted()}
}

// notUTF8 returns the first line that has what is no character; 0 for none.
func notUTF8(data []byte) int {
	if utf8.Valid(data) {
		return 0
	}
	n := 1
	for line := range bytes.Lines(data) {
		if !utf8.Valid(line) {
			return n
		}
		n++
	}
	return 0
}
