package truth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxRequest bounds a request, its headers and its body.
const maxRequest = 64 << 20

// request is what matters of one.
type request struct {
	method, path, query string
	body                []byte // valid until the next read
	id                  int    // -1: none
	size                int    // bytes of all of it
}

var errHeaders = errors.New("this is not a request that the truth server can read: it takes HTTP/1.1 with a Content-Length")

var endOfHeaders = []byte("\r\n\r\n")

// parseRequest reads the request at the head of b; size is 0 while it is not
// whole.
func parseRequest(b []byte) (request, error) {
	r := request{id: -1}
	end := bytes.Index(b, endOfHeaders)
	if end < 0 {
		if len(b) > maxRequest {
			return r, errHeaders
		}
		return r, nil
	}
	line, rest, _ := strings.Cut(string(b[:end]), "\r\n")
	words := strings.Fields(line)
	if len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") {
		return r, errHeaders
	}
	r.method = words[0]
	r.path, r.query, _ = strings.Cut(words[1], "?")
	length := 0
	for header := range strings.SplitSeq(rest, "\r\n") {
		name, value, _ := strings.Cut(header, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > maxRequest {
				return r, errHeaders
			}
			length = n
		case "transfer-encoding":
			return r, errHeaders
		case "x-request-id":
			if n, err := strconv.Atoi(value); err == nil && n >= 0 {
				r.id = n
			}
		}
	}
	from := end + len(endOfHeaders)
	if len(b)-from < length {
		return r, nil
	}
	r.body, r.size = b[from:from+length], from+length
	if n, ok := idIn(r.body); ok {
		r.id = n
	}
	return r, nil
}

// idIn finds the number after the mark of Prompt.
func idIn(body []byte) (id int, ok bool) {
	_, after, ok := bytes.Cut(body, []byte(promptMark))
	if !ok {
		return 0, false
	}
	digits := 0
	for digits < len(after) && after[digits] >= '0' && after[digits] <= '9' {
		digits++
	}
	id, err := strconv.Atoi(string(after[:digits]))
	return id, err == nil
}

// streams reports whether the request opens a stream, and of a chat.
func (r request) streams() (chat, ok bool) {
	if r.method != "POST" {
		return false, false
	}
	chat = strings.HasSuffix(r.path, "/chat/completions")
	return chat, chat || strings.HasSuffix(r.path, "/completions")
}

// answer is the whole answer to a request that opens no stream.
func (b *book) answer(r request) []byte {
	switch {
	case r.path == "/health" && r.method == "GET":
		return whole("200 OK", nil)
	case r.path == "/v1/models" && r.method == "GET":
		return whole("200 OK", []byte(`{"object":"list","data":[{"id":"`+Model+`","object":"model"}]}`))
	case r.path == "/truth" && r.method == "GET":
		text, err := json.Marshal(b.truth(r.query == "sends=1"))
		if err != nil {
			return failure("500 Internal Server Error", err)
		}
		return whole("200 OK", text)
	case r.path == "/truth" && r.method == "POST":
		var p Params
		dec := json.NewDecoder(bytes.NewReader(r.body))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&p); err != nil {
			return failure("400 Bad Request", fmt.Errorf("read the parameters: %w", err))
		}
		if err := b.set(p); err != nil {
			return failure("400 Bad Request", err)
		}
		return whole("200 OK", nil)
	}
	return failure("404 Not Found", fmt.Errorf("the truth server has no %s %s", r.method, r.path))
}

func failure(status string, err error) []byte {
	text, _ := json.Marshal(map[string]any{"error": map[string]string{"message": err.Error()}}) // of strings: cannot fail
	return whole(status, text)
}

func whole(status string, body []byte) []byte {
	head := "HTTP/1.1 " + status + "\r\ncontent-type: application/json\r\ncontent-length: " + strconv.Itoa(len(body)) + "\r\n\r\n"
	return append([]byte(head), body...)
}

// send renders the next send of the stream into buf[:0]: up to merge events,
// all with one stamp, taken at the end of the work.
func (r *record) send(buf []byte) (out []byte, tokens int, at int64) {
	g := r.page
	tokens = min(g.merge, r.total-r.tokens)
	out = buf[:0]
	for k := range tokens {
		if r.tokens+k == 0 {
			out = append(out, g.first...)
			continue
		}
		out = append(out, g.event...)
	}
	at = time.Now().UnixNano()
	for k := range tokens {
		putStamp(out[k*len(g.event)+g.stamp:], at)
	}
	return out, tokens, at
}
