package interop

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// member is one value of a JSON object, or of an array, and where its text
// begins in the whole.
type member struct {
	key string // "" in an array
	raw json.RawMessage
	at  int
}

// members returns what an object or array at this place of the text has, in its
// order; nil of anything else.
func members(raw json.RawMessage, at int) []member {
	dec := json.NewDecoder(bytes.NewReader(raw))
	open, err := dec.Token()
	if err != nil || open != json.Delim('{') && open != json.Delim('[') {
		return nil
	}
	var list []member
	for dec.More() {
		var m member
		if open == json.Delim('{') {
			key, err := dec.Token()
			if err != nil {
				return list
			}
			m.key, _ = key.(string)
		}
		if dec.Decode(&m.raw) != nil {
			return list
		}
		m.at = at + int(dec.InputOffset()) - len(m.raw)
		list = append(list, m)
	}
	return list
}

// findMember returns the last member of a name, which is the one that counts.
func findMember(list []member, key string) (member, bool) {
	for _, m := range slices.Backward(list) {
		if m.key == key {
			return m, true
		}
	}
	return member{}, false
}

// lines tells the line of a place in an object's text.
type lines struct {
	first int
	ends  []int // offsets of newlines
}

func newLines(o object) *lines {
	l := &lines{first: o.line}
	at := 0
	for line := range strings.Lines(string(o.raw)) {
		at += len(line)
		if strings.HasSuffix(line, "\n") {
			l.ends = append(l.ends, at-1)
		}
	}
	return l
}

func (l *lines) of(at int) int {
	n, _ := slices.BinarySearch(l.ends, at)
	return l.first + n
}
