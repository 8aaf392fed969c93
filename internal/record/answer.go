package record

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"strings"
)

// answer is what is kept of an answer's body as it goes by: its beginning and its end, where the counts of
// tokens are, and how many events it had. Taking bytes allocates nothing.
type answer struct {
	size   int64
	events int // with data, as server-sent events are

	first    byte // of this line; 0: none yet
	hasData  bool // a line of this event has some
	anything bool // the line has more than its end

	head [4 << 10]byte
	tail [8 << 10]byte // a ring
	zip  []byte        // all of it, where it is compressed
	zips bool
}

// maxZip is the most that is kept of a compressed answer, and maxUnzipped of what it was.
const (
	maxZip      = 1 << 20
	maxUnzipped = 8 << 20
)

// take looks at the next bytes.
func (a *answer) take(p []byte) {
	if len(p) == 0 {
		return
	}
	if a.zips {
		if len(a.zip)+len(p) <= maxZip {
			a.zip = append(a.zip, p...)
		}
		a.size += int64(len(p))
		return
	}
	if a.size < int64(len(a.head)) {
		copy(a.head[a.size:], p)
	}
	at := int(a.size % int64(len(a.tail)))
	a.size += int64(len(p))
	a.count(p)
	if over := len(p) - len(a.tail); over > 0 {
		p, at = p[over:], (at+over)%len(a.tail)
	}
	n := copy(a.tail[at:], p)
	copy(a.tail[:], p[n:])
}

// count counts the events that end here: by a line without anything.
func (a *answer) count(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		line := p
		if i >= 0 {
			line = p[:i]
		}
		if a.first == 0 && len(line) > 0 {
			a.first = line[0]
		}
		if len(line) > 1 || len(line) == 1 && line[0] != '\r' {
			a.anything = true
		}
		if i < 0 {
			return
		}
		switch {
		case a.anything:
			a.hasData = a.hasData || a.first == 'd'
		case a.hasData:
			a.events++
			a.hasData = false
		}
		a.first, a.anything = 0, false
		p = p[i+1:]
	}
}

// ends is the beginning and the end of the body, which are one where nothing lies between them.
func (a *answer) ends() (head, tail []byte) {
	head = a.head[:min(a.size, int64(len(a.head)))]
	n := min(a.size, int64(len(a.tail)))
	at := int(a.size % int64(len(a.tail)))
	if a.size > int64(len(a.tail)) {
		tail = append(append(tail, a.tail[at:]...), a.tail[:at]...)
	} else {
		tail = a.tail[:n]
	}
	if over := int64(len(head)) + n - a.size; over >= 0 {
		return append(slices.Clone(head), tail[over:]...), nil
	}
	return head, tail
}

// unzip takes what a compressed answer was; what cannot be read was not seen.
func (a *answer) unzip() {
	if !a.zips || int64(len(a.zip)) < a.size {
		return
	}
	r, err := gzip.NewReader(bytes.NewReader(a.zip))
	if err != nil {
		return
	}
	text, err := io.ReadAll(io.LimitReader(r, maxUnzipped))
	if err != nil {
		return
	}
	a.zips, a.size = false, 0
	a.take(text)
}

// tokens are what an engine says that it counted; 0: nothing.
type tokens struct{ prompt, answer int }

// usage is in the answers of all APIs, under the names of each.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	Created    int `json:"cache_creation_input_tokens"` // Anthropic's input_tokens are without these
	Read       int `json:"cache_read_input_tokens"`
}

// counted is what the engine says of its tokens: the last that it says of each.
func (a *answer) counted() (t tokens) {
	head, tail := a.ends()
	for _, part := range [][]byte{head, tail} {
		for _, key := range []string{`"usage":`, `"meta_info":`} {
			for rest := part; ; {
				i := bytes.Index(rest, []byte(key))
				if i < 0 {
					break
				}
				rest = rest[i+len(key):]
				t.add(rest)
			}
		}
	}
	return t
}

// add reads the object that a text begins with, if it is whole.
func (t *tokens) add(text []byte) {
	var u usage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&u) != nil {
		return
	}
	if n := cmp.Or(u.Prompt, u.Input+u.Created+u.Read); n > 0 {
		t.prompt = n
	}
	if n := cmp.Or(u.Completion, u.Output); n > 0 {
		t.answer = n
	}
}

// textEvents is how many events had text: all but those at either end that have none.
func (a *answer) textEvents() int {
	head, tail := a.ends()
	n := a.events
	for _, part := range [][]byte{head, tail} {
		for line := range bytes.Lines(part) {
			data, ok := bytes.CutPrefix(line, []byte("data:"))
			if !ok {
				continue
			}
			var v any
			if err := json.Unmarshal(data, &v); strings.TrimSpace(string(data)) == "[DONE]" || err == nil && !hasText(v, "") {
				n--
			}
		}
	}
	return max(0, n)
}

// textKeys are the names under which the APIs have the text of an event.
var textKeys = []string{"content", "text", "reasoning", "reasoning_content", "arguments", "delta", "thinking", "partial_json"}

// hasText says whether there is text in a value under one of its names.
func hasText(v any, key string) bool {
	switch v := v.(type) {
	case string:
		return v != "" && slices.Contains(textKeys, key)
	case []any:
		return slices.ContainsFunc(v, func(w any) bool { return hasText(w, key) })
	case map[string]any:
		for k, w := range v {
			if hasText(w, k) {
				return true
			}
		}
	}
	return false
}

// failed says whether an answer that began well tells of an error.
func (a *answer) failed() bool {
	head, tail := a.ends()
	for _, part := range [][]byte{head, tail} {
		for _, begin := range []string{"data: {\"error\"", "data:{\"error\"", "event: error"} {
			if bytes.Contains(part, []byte("\n"+begin)) || bytes.HasPrefix(part, []byte(begin)) {
				return true
			}
		}
	}
	return false
}
