package interop

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"unicode/utf16"

	"perflab/internal/redact"
)

// Decode returns what a file holds as its reader would see it: UTF-16 with its
// mark as UTF-8, and of a text what a terminal shows, without the codes that
// colour it and what a progress bar wrote over. Lines stay lines.
func Decode(data []byte) []byte {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		data = fromUTF16(data[2:], binary.LittleEndian)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		data = fromUTF16(data[2:], binary.BigEndian)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if isJSON(data) {
		return data
	}
	if bytes.IndexByte(data, '\x1b') >= 0 {
		data = []byte(redact.Plain(string(data)))
	}
	if bytes.IndexByte(data, '\r') >= 0 {
		data = withoutReturns(data)
	}
	return data
}

func fromUTF16(data []byte, order binary.ByteOrder) []byte {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

// withoutReturns keeps of each line what was written last. A file with no other
// ends of lines has them as those.
func withoutReturns(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 {
		return bytes.ReplaceAll(data, []byte{'\r'}, []byte{'\n'})
	}
	out := make([]byte, 0, len(data))
	for line := range bytes.Lines(data) {
		body := bytes.TrimRight(line, "\r\n")
		out = append(out, body[bytes.LastIndexByte(body, '\r')+1:]...)
		if line[len(line)-1] == '\n' {
			out = append(out, '\n')
		}
	}
	return out
}

// isJSON reports whether a file begins as an object or an array of them, or is
// JSON as a whole: a text may begin with a link.
func isJSON(data []byte) bool {
	head := bytes.TrimSpace(data)
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	next := bytes.TrimSpace(head[1:])
	return len(next) == 0 || head[0] == '{' && bytes.ContainsAny(next[:1], "\"}") || head[0] == '[' && bytes.ContainsAny(next[:1], "{[]") || json.Valid(head)
}
