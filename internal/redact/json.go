package redact

import (
	"bytes"
	"encoding/json"
)

// JSON returns JSON text with the secrets in its strings replaced, by the names
// that they stand under, by form and by value. What has no secret keeps every
// byte: order, numbers, spaces.
func (v Values) JSON(text []byte) []byte {
	var out []byte
	kept := 0             // text up to here is in out
	names := []string{""} // the last key of each object and list that is open
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			names = append(names, names[len(names)-1])
		case '}', ']':
			names = names[:max(1, len(names)-1)]
		case '"':
			end := stringEnd(text, i)
			var s string
			if json.Unmarshal(text[i:end], &s) == nil {
				masked := v.Mask(s)
				if isKey(text[end:]) {
					names[len(names)-1], masked = s, Forms(masked)
				} else {
					masked = fieldOf(names[len(names)-1], masked, none)
				}
				if masked != s {
					out = append(append(out, text[kept:i]...), encode(masked)...)
					kept = end
				}
			}
			i = end - 1
		}
	}
	if kept == 0 {
		return text
	}
	return append(out, text[kept:]...)
}

// stringEnd is the place behind the string that begins at i.
func stringEnd(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// isKey tells by what follows a string whether it is a key.
func isKey(rest []byte) bool { return bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(":")) }

func encode(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string always can be
	return bytes.TrimSpace(b.Bytes())
}
