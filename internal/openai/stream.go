package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"perflab/internal/result"
)

// excerpt is how much of a body an error quotes.
const excerpt = 300

// maxBody bounds an answer that does not stream.
const maxBody = 64 << 20

// maxMessages bounds a stream: a server that never stops would else fill the
// memory. No call may claim more tokens.
const maxMessages = result.MaxCallTokens

// stream turns the body of a 200 answer into the facts of a call. Server-sent
// events and a single JSON object are told apart by the first byte, since
// servers and gateways are careless with Content-Type.
type stream struct {
	call     *result.Call
	api      *dialect
	kind     byte // first byte that is not space: '{' is JSON, '<' HTML
	begun    bool // kind is known
	lead     int  // bytes of a byte order mark that came; all of it also when there is none
	split    splitter
	scan     scanner
	head     []byte // the body's first bytes, until an event came
	body     []byte // of an answer that does not stream
	sawEvent bool   // an event came
	done     bool   // [DONE], or a whole JSON answer
	usage    result.Usage
	used     bool // usage is there
	guesses  result.Speculation
	guessed  bool // guesses are there

	counted   int           // sum of Tokens so far
	lastUsage bool          // the last token chunk brought usage
	answered  bool          // Call.Answer is set
	whole     bool          // what was asked for came, of an API that generates nothing
	read      int32         // which read is being looked at
	unsized   bool          // a token chunk came without text that can be measured
	span      time.Duration // how much earlier than its stamp its first bytes may have come
	fields    []newField
}

// newStream observes an answer of the API into call; text is kept if keep.
func newStream(call *result.Call, api *dialect, keep bool) *stream {
	return &stream{call: call, api: api, scan: scanner{grammar: api.grammar, keep: keep}}
}

// newField is a string field of a delta that is not known here.
type newField struct {
	name  string
	first result.Stamp // of its first event
	grown bool         // it came again
}

// feed takes what one read brought at the instant at. It reports whether the
// call can go on.
func (s *stream) feed(p []byte, at time.Duration, read int32) bool {
	s.read = read
	if !s.sawEvent {
		s.begin(p)
	}
	if s.isJSON() {
		s.body = append(s.body, p...)
		if len(s.body) > maxBody {
			return s.fail(result.BadBody, "the answer is longer than %d MiB: %s", maxBody>>20, clean(s.head))
		}
		return true
	}
	for {
		data, rest, ok := s.split.next(p)
		if s.split.long {
			return s.fail(result.BadBody, "an event of the stream is longer than %d MiB: %s", maxEvent>>20, clean(s.head))
		}
		if !ok {
			return true
		}
		if p = rest; !s.event(data, at) {
			return false
		}
	}
}

// begin looks at the first bytes of the body that are neither a byte order mark
// nor space, and keeps some of them.
func (s *stream) begin(p []byte) {
	for len(p) > 0 && !s.begun {
		switch c := p[0]; {
		case s.lead < len(bom) && c == bom[s.lead]:
			s.lead++
		case 0 < s.lead && s.lead < len(bom): // no mark after all
			s.kind, s.begun, s.head = bom[0], true, append(s.head, bom[:s.lead]...)
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			s.lead = len(bom)
		default:
			s.kind, s.begun = c, true
			continue
		}
		p = p[1:]
	}
	s.head = append(s.head, p[:min(len(p), excerpt-len(s.head))]...)
}

// isJSON reports whether the body is one JSON value and not a stream.
func (s *stream) isJSON() bool {
	return s.kind == '{' || s.kind == '[' && s.api.pooled
}

// parse reads an event, or an answer that does not stream.
func (s *stream) parse(b, kind []byte) (c *chunk, ok bool) {
	if s.api.pooled {
		whole, ok := readPooled(b)
		return &whole, ok
	}
	ok = s.scan.parse(b, kind)
	return &s.scan.c, ok
}

// end takes the end of the body at the instant at: what no blank line ended,
// and a JSON answer as one chunk.
func (s *stream) end(at time.Duration) {
	if s.isJSON() {
		c, ok := s.parse(bytes.TrimPrefix(s.body, bom), nil)
		if !ok {
			s.fail(result.BadBody, "the answer is not the API's JSON: %s", clean(s.head))
			return
		}
		s.done = s.chunk(c, at)
		if s.api.pooled && !s.whole {
			s.fail(result.BadBody, "the answer holds no vector and no score: %s", clean(s.head))
		}
		return
	}
	if data, ok := s.split.end(); ok {
		_, ok := s.parse(data, s.split.kind)
		if ok || isDone(data) {
			s.event(data, at) // else it was cut in the middle: the stream ended early
		}
	}
	if !s.sawEvent && s.call.Class == result.OK && len(bytes.TrimSpace(s.head)) > 0 && !isStream(s.head) {
		s.fail(result.BadBody, "the answer is not the API's: %s", clean(s.head))
	}
}

// isStream reports whether a body that had no event is a stream that was cut.
func isStream(head []byte) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, bom), "\r\n")
	name, _, field := bytes.Cut(head, []byte{':'})
	switch string(name) {
	case "", "data", "event", "id", "retry":
		return field
	}
	return false
}

func isDone(data []byte) bool { return string(bytes.TrimSpace(data)) == "[DONE]" }

func (s *stream) event(data []byte, at time.Duration) bool {
	if s.done || len(data) == 0 {
		return true
	}
	if s.span >= lateSpan {
		s.late()
	}
	s.sawEvent, s.head = true, nil
	if isDone(data) {
		s.finish(at)
		return true
	}
	if string(s.split.kind) == "error" {
		return s.fail(result.StreamError, "%s", failure(data))
	}
	c, ok := s.parse(data, s.split.kind)
	if !ok {
		return s.fail(result.BadBody, "an event of the stream is not a JSON object: %s", clean(data))
	}
	return s.chunk(c, at)
}

// lateSpan is the least by which a read may have been late that a call tells.
// The event loop looks at its sockets every half millisecond: several messages
// in one read that came together, as a server sends them that writes many
// tokens at a time, are known to have come within two looks. Beyond that the
// client, or what kept it from its processor, joined them. Less than that is a
// tenth of the interval between tokens at 50 a second.
const lateSpan = 2 * time.Millisecond

// late notes that a read brought a message behind a token, whose own stamp is
// the one of that later message.
func (s *stream) late() {
	c, n := s.call, len(s.call.Chunks)
	if n == 0 || c.Chunks[n-1].Read != s.read {
		return
	}
	if k := len(c.Late); k > 0 && c.Late[k-1].Read == s.read {
		return
	}
	c.Late = append(c.Late, result.LateRead{Read: s.read, By: s.span})
}

// finish takes the server's word that nothing follows.
func (s *stream) finish(at time.Duration) {
	s.done, s.call.Done, s.call.End = true, at, at
}

func (s *stream) chunk(c *chunk, at time.Duration) bool {
	if c.failure != nil {
		return s.fail(result.StreamError, "%s", failure(c.failure))
	}
	if c.counted {
		s.usage, s.used = c.usage, true
		s.call.UsageAt = at
	}
	if c.guessed {
		byStep := append(s.guesses.ByStep[:0], s.scan.guesses.ByStep...)
		s.guesses, s.guessed = s.scan.guesses, true
		s.guesses.ByStep = byStep
	}
	if len(c.finish) > 0 {
		s.call.Finish = unescaped(c.finish)
	}
	s.whole = s.whole || c.whole
	if len(s.call.Chunks)+len(s.call.Empty) >= maxMessages {
		return s.fail(result.BadBody, "the stream has more than %d events and no end", maxMessages)
	}
	switch {
	case c.token || len(c.unknown) > 0 && s.grows(c.unknown, at):
		s.token(c, at)
	case c.choices:
		s.call.Empty = append(s.call.Empty, result.Stamp{At: at, Read: s.read})
	}
	if c.end {
		s.finish(at)
	}
	return true
}

// token counts a chunk. Where usage comes with every token chunk, the chunk's
// count is the increase of completion_tokens; it is at least 1, and what was
// overcounted is taken off the next.
func (s *stream) token(c *chunk, at time.Duration) {
	n := 1
	if c.counted && (len(s.call.Chunks) == 0 || s.lastUsage) {
		n = max(1, c.usage.Completion-s.counted)
	}
	s.lastUsage = c.counted
	s.counted += n
	s.call.Chunks = append(s.call.Chunks, result.Chunk{At: at, Tokens: int32(n), Read: s.read})
	if s.call.StreamText += c.size; len(s.call.Chunks) == 1 {
		s.call.FirstText = c.size
	}
	s.unsized = s.unsized || c.size == 0
	if c.answer && !s.answered {
		s.call.Answer, s.answered = at, true
	}
}

// grows notes an unknown field of an event without a known token and reports
// whether that event is a token: it is from the field's second event on, and
// then the first counts as well, in its place.
func (s *stream) grows(name []byte, at time.Duration) bool {
	i := slices.IndexFunc(s.fields, func(f newField) bool { return f.name == string(name) })
	if i < 0 {
		s.fields = append(s.fields, newField{name: string(name), first: result.Stamp{At: at, Read: s.read}})
		return false
	}
	f := &s.fields[i]
	if f.grown {
		return true
	}
	f.grown = true
	if s.call.Field == "" {
		s.call.Field = clean(name)
	}
	place, _ := slices.BinarySearchFunc(s.call.Chunks, f.first.At, func(c result.Chunk, t time.Duration) int {
		return cmp.Compare(c.At, t)
	})
	s.call.Chunks = slices.Insert(s.call.Chunks, place, result.Chunk{At: f.first.At, Tokens: 1, Read: f.first.Read})
	if i := slices.Index(s.call.Empty, f.first); i >= 0 {
		s.call.Empty = slices.Delete(s.call.Empty, i, i+1)
	}
	s.counted++
	s.unsized = true
	return true
}

// complete reports whether the server ended the answer by its own word.
func (s *stream) complete() bool { return s.done || s.call.Finish != "" }

// settle moves what was gathered into the call and judges an answer that no
// error ended.
func (s *stream) settle() {
	call := s.call
	if s.used {
		usage := s.usage // a copy: a pointer into the stream would keep all of it with the call
		call.Usage = &usage
	}
	call.Speculation = s.speculation()
	call.Text = string(s.scan.text)
	if s.unsized {
		call.FirstText, call.StreamText = 0, 0
	}
	if len(call.Empty) == 0 {
		call.Empty = nil
	}
	switch {
	case call.Class != result.OK || s.whole:
	case !s.complete():
		s.fail(result.EarlyClose, "the stream ended after %d tokens without [DONE] or a finish reason", s.counted)
	case len(call.Chunks) == 0 && s.used:
		s.fail(result.ZeroTokens, "the answer is complete but carries no token (usage says %d)", s.usage.Completion)
	case len(call.Chunks) == 0:
		s.fail(result.ZeroTokens, "the answer is complete but carries no token")
	}
}

// fail gives the call a class, unless it has one, and returns false.
func (s *stream) fail(class result.Class, format string, args ...any) bool {
	if s.call.Class == result.OK {
		s.call.Class, s.call.Error = class, fmt.Sprintf(format, args...)
	}
	return false
}

// failure is the sentence within an error value: its message where it has one.
func failure(value []byte) string {
	var v struct {
		Message string
		Type    string
		Error   json.RawMessage
	}
	var text string
	switch {
	case json.Unmarshal(value, &text) == nil:
		return clean([]byte(text))
	case json.Unmarshal(value, &v) == nil && v.Message != "" && v.Type != "" && v.Type != "error":
		return clean([]byte(v.Type + ": " + v.Message))
	case v.Message != "":
		return clean([]byte(v.Message))
	case len(v.Error) > 0:
		return failure(v.Error)
	}
	return clean(value)
}

// clean makes the first bytes of a foreign text fit for one line.
func clean(b []byte) string {
	if len(b) > excerpt {
		b = b[:excerpt]
		for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
		if len(b) > 0 && b[len(b)-1] >= utf8.RuneSelf {
			b = b[:len(b)-1]
		}
	}
	s := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(string(b), ""))
	return strings.Join(strings.Fields(s), " ")
}
