package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
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

// null reports whether a value is missing.
func null(raw []byte) bool { return len(raw) == 0 || string(raw) == "null" }

// kind names what a JSON value is.
func kind(raw []byte) string {
	switch {
	case null(raw):
		return "null"
	case raw[0] == '"':
		return "text"
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case raw[0] == 't' || raw[0] == 'f':
		return "a truth value"
	}
	return "a number"
}

var errTooLarge = errors.New("is a number too large to hold")

// jsonNumber returns the number that a value is.
func jsonNumber(raw []byte) (v float64, err error) {
	if kind(raw) != "a number" {
		return 0, fmt.Errorf("is %s where a number should be", kind(raw))
	}
	if v, err = strconv.ParseFloat(string(raw), 64); err != nil {
		return 0, errTooLarge
	}
	return v, nil
}

// at finds a value by its path in nested objects.
func at(m member, keys ...string) (member, bool) {
	for _, key := range keys {
		found := false
		for inner := range items(m.raw, m.line) {
			if inner.key == key {
				m, found = inner, true
			}
		}
		if !found {
			return member{}, false
		}
	}
	return m, true
}

// longText is how much of one text is kept around the figures.
const longText = 2000

// plain returns a string's text, and anything else as it is written.
func plain(raw []byte) string {
	if kind(raw) == "text" {
		return short(unquoted(raw))
	}
	return short(string(raw))
}

// compact returns a value on one line.
func compact(raw []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return short(string(raw))
	}
	return short(b.String())
}

// short cuts a text that is too long to be shown.
func short(s string) string {
	if len(s) <= longText {
		return s
	}
	return strings.ToValidUTF8(s[:longText], "") + "…"
}

// textOf returns a value as text, "" for null.
func textOf(m member) string {
	if null(m.raw) {
		return ""
	}
	return plain(m.raw)
}

// length returns the number of elements of a list.
func length(m member) int {
	n := 0
	for range items(m.raw, m.line) {
		n++
	}
	return n
}

// atIndex is at, where a number among the keys is an index of a list.
func atIndex(m member, keys []string) (member, bool) {
	for _, key := range keys {
		next, found, i := member{}, false, 0
		for inner := range items(m.raw, m.line) {
			if inner.key == key || inner.key == "" && fmt.Sprint(i) == key {
				next, found = inner, true
			}
			i++
		}
		if !found {
			return member{}, false
		}
		m = next
	}
	return m, true
}

// keyed returns the members of an object by their keys.
func keyed(m member) map[string]member {
	all := map[string]member{}
	for inner := range items(m.raw, m.line) {
		all[inner.key] = inner
	}
	return all
}

// take reads a number at a key of an object; one that is not there leaves the
// target as it is.
func take(m member, key string, target *float64) error {
	inner, ok := at(m, key)
	if !ok || null(inner.raw) {
		return nil
	}
	v, err := jsonNumber(inner.raw)
	if err != nil {
		return fmt.Errorf("%s %w", key, err)
	}
	*target = v
	return nil
}
