package interop

import (
	"bytes"
	"encoding/json"
	"iter"
)

// rawValue takes no more of a JSON value than how long its text is, so that a
// file of any size costs its own bytes.
type rawValue struct{ length int }

// UnmarshalJSON implements json.Unmarshaler.
func (v *rawValue) UnmarshalJSON(text []byte) error {
	v.length = len(text)
	return nil
}

// member is one key of an object, or one element of an array, and its value.
type member struct {
	key  string // decoded; "" of an element
	raw  json.RawMessage
	line int // where the value begins
}

// items yields the members of an object or the elements of an array, which
// begins on the given line. Of other values, and after what is no JSON, it
// yields nothing.
func items(raw []byte, line int) iter.Seq[member] {
	return func(yield func(member) bool) {
		if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		if _, err := dec.Token(); err != nil {
			return
		}
		for seen := 0; dec.More(); {
			m := member{}
			if raw[0] == '{' {
				key, err := dec.Token()
				if err != nil {
					return
				}
				m.key = key.(string)
			}
			var v rawValue
			if dec.Decode(&v) != nil {
				return
			}
			end := int(dec.InputOffset())
			from := end - v.length
			line += bytes.Count(raw[seen:from], []byte("\n"))
			seen = from
			m.raw, m.line = raw[from:end], line
			if !yield(m) {
				return
			}
		}
	}
}

// unquoted returns the text of a JSON string, all of it.
func unquoted(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}

// finite returns JSON text with null in the place of NaN and infinities, which
// Python writes, on the same lines, and where in it each stands. An infinite
// request_rate is written as text: it is how Python's clients say that all
// requests are due at once.
func finite(data []byte) (clean []byte, missing []int) {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data, nil
	}
	clean = make([]byte, 0, len(data)+64)
	text, key := -1, "" // where the string that is open begins in clean; the last one
	for i := 0; i < len(data); i++ {
		c := data[i]
		rest := data[i:]
		switch {
		case text >= 0 && c == '\\' && i+1 < len(data):
			clean = append(clean, c)
			i++
			c = data[i]
		case text >= 0 && (c == '"' || c == '\n'): // a string that is not closed ends with its line
			key, text = string(clean[text:]), -1
		case text >= 0:
		case c == '"':
			text = len(clean) + 1
		case c == '-' && bytes.HasPrefix(rest, []byte("-Infinity")), bytes.HasPrefix(rest, []byte("Infinity")), bytes.HasPrefix(rest, []byte("NaN")):
			word := "null"
			if key == "request_rate" && c != 'N' {
				word = `"inf"`
			} else {
				missing = append(missing, len(clean))
			}
			clean = append(clean, word...)
			i += map[byte]int{'-': len("-Infinity"), 'I': len("Infinity"), 'N': len("NaN")}[c] - 1
			continue
		}
		clean = append(clean, c)
	}
	return clean, missing
}
