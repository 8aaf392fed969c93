package jsonl

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Writer appends an object to Bytes, field by field:
//
//	w := jsonl.Writer{Bytes: line}
//	w.Begin("")
//	w.Num("index", 3, true)
//	w.End()
type Writer struct{ Bytes []byte }

// Begin begins an object: the line's own, whose name is empty, or that of a field.
func (w *Writer) Begin(name string) {
	if name != "" {
		w.key(name)
	}
	w.Bytes = append(w.Bytes, '{')
}

// End ends the object that Begin began.
func (w *Writer) End() { w.Bytes = append(w.Bytes, '}') }

func (w *Writer) key(name string) {
	if w.Bytes[len(w.Bytes)-1] != '{' {
		w.Bytes = append(w.Bytes, ',')
	}
	w.Bytes = append(w.Bytes, '"')
	w.Bytes = append(w.Bytes, name...)
	w.Bytes = append(w.Bytes, '"', ':')
}

// Num writes a number; 0 only where it is always written.
func (w *Writer) Num(name string, v int64, always bool) {
	if v == 0 && !always {
		return
	}
	w.key(name)
	w.Bytes = strconv.AppendInt(w.Bytes, v, 10)
}

// Text writes a text that is not empty.
func (w *Writer) Text(name, v string) {
	if v == "" {
		return
	}
	w.key(name)
	w.Bytes = AppendText(w.Bytes, v)
}

// Yes writes what is true.
func (w *Writer) Yes(name string, v bool) {
	if v {
		w.key(name)
		w.Bytes = append(w.Bytes, "true"...)
	}
}

// Item writes the i-th number of the list called name; EndList ends it.
func (w *Writer) Item(name string, i int, v int64) {
	if i == 0 {
		w.beginList(name)
	} else {
		w.Bytes = append(w.Bytes, ',')
	}
	w.Bytes = strconv.AppendInt(w.Bytes, v, 10)
}

// Pair writes the i-th element of the list called name, a list of two numbers.
func (w *Writer) Pair(name string, i int, a, b int64) {
	if i == 0 {
		w.beginList(name)
	} else {
		w.Bytes = append(w.Bytes, ',')
	}
	w.Bytes = strconv.AppendInt(append(w.Bytes, '['), a, 10)
	w.Bytes = strconv.AppendInt(append(w.Bytes, ','), b, 10)
	w.Bytes = append(w.Bytes, ']')
}

func (w *Writer) beginList(name string) {
	w.key(name)
	w.Bytes = append(w.Bytes, '[')
}

// EndList ends a list of at least one element.
func (w *Writer) EndList() { w.Bytes = append(w.Bytes, ']') }

// AppendText appends s as a JSON string; bytes that are not UTF-8 become
// U+FFFD, as JSON has no way to write them, and the text that is read of it is written as
// the same bytes again.
func AppendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b >= 0x7f || b == '"' || b == '\\' {
			if !utf8.ValidString(s) {
				s = string([]rune(s)) // json writes an escape for it, and the character itself of what was read
			}
			quoted, err := json.Marshal(s)
			if err != nil {
				panic(err) // a string always encodes
			}
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
