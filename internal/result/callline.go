package result

import (
	"bytes"
	"encoding/json"
	"time"
)

// callDecoder reads lines as AppendJSON writes them, some ten times as fast as package
// json does: a report of a long run reads millions. What it does not know, or finds
// written in another way, it leaves to json, so that both read the same.
type callDecoder struct {
	b     []byte
	lists callLists
	names map[string]string // texts that many calls share
}

// callLists are the lists of a call's line.
type callLists struct {
	NS         []int64   `json:"chunk_ns"`
	Tokens     []int32   `json:"chunk_tokens"`
	Read       *int32    `json:"chunk_read"`
	Reads      []int32   `json:"chunk_reads"`
	EmptyNS    []int64   `json:"empty_ns"`
	EmptyReads []int32   `json:"empty_reads"`
	Late       [][]int64 `json:"late"`
}

// decode reads one line.
func (d *callDecoder) decode(line []byte, c *Call) error {
	line = bytes.TrimSuffix(line, []byte{'\n'})
	if d.known(line, c) {
		return nil
	}
	return json.Unmarshal(line, c)
}

// known reads a line that holds nothing unknown; false: json is to read it.
func (d *callDecoder) known(line []byte, c *Call) bool {
	*c = Call{}
	l := &d.lists
	*l = callLists{NS: l.NS[:0], Tokens: l.Tokens[:0], Reads: l.Reads[:0], EmptyNS: l.EmptyNS[:0], EmptyReads: l.EmptyReads[:0]}
	d.b = line
	return d.object(func(key []byte) bool { return d.field(key, c) }) && len(d.b) == 0 && l.fill(c) == nil
}

// object reads an object, the value of each key by read.
func (d *callDecoder) object(read func(key []byte) bool) bool {
	if !d.char('{') {
		return false
	}
	for first := true; !d.char('}'); first = false {
		if !first && !d.char(',') {
			return false
		}
		key, ok := d.text()
		if !ok || !d.char(':') || !read(key) {
			return false
		}
	}
	return true
}

// field reads the value of a field.
func (d *callDecoder) field(key []byte, c *Call) bool {
	l := &d.lists
	switch string(key) {
	case "chunk_ns":
		return numbers(d, &l.NS)
	case "chunk_tokens":
		return numbers(d, &l.Tokens)
	case "chunk_reads":
		return numbers(d, &l.Reads)
	case "empty_ns":
		return numbers(d, &l.EmptyNS)
	case "empty_reads":
		return numbers(d, &l.EmptyReads)
	case "chunk_read":
		v, ok := d.number()
		l.Read = new(int32(v))
		return ok && int64(*l.Read) == v
	case "late":
		return d.pairs(&l.Late)
	case "usage":
		if c.Usage == nil {
			c.Usage = &Usage{}
		}
		return d.usage(c.Usage)
	case "conn_new":
		return d.yes(&c.New)
	case "simulated":
		return d.yes(&c.Sim)
	}
	if at := c.instant(key); at != nil {
		return whole(d, at)
	}
	if n := c.count(key); n != nil {
		return whole(d, n)
	}
	return d.name(key, c)
}

// instant is the field of a time.
func (c *Call) instant(key []byte) *time.Duration {
	switch string(key) {
	case "due_ns":
		return &c.Due
	case "ready_ns":
		return &c.Ready
	case "sent_ns":
		return &c.Sent
	case "wrote_ns":
		return &c.Wrote
	case "first_ns":
		return &c.First
	case "headers_ns":
		return &c.Headers
	case "usage_ns":
		return &c.UsageAt
	case "done_ns":
		return &c.Done
	case "end_ns":
		return &c.End
	case "answer_ns":
		return &c.Answer
	case "dns_ns":
		return &c.DNS
	case "dial_ns":
		return &c.Dial
	case "tls_ns":
		return &c.TLS
	}
	return nil
}

// count is the field of a number.
func (c *Call) count(key []byte) *int {
	switch string(key) {
	case "index":
		return &c.Index
	case "target":
		return &c.Target
	case "session":
		return &c.Session
	case "turn":
		return &c.Turn
	case "reads":
		return &c.Reads
	case "coarse":
		return &c.Coarse
	case "status":
		return &c.Status
	case "want_input":
		return &c.WantIn
	case "want_output":
		return &c.Want
	case "text_tokens":
		return &c.Recount
	case "first_text_bytes":
		return &c.FirstText
	case "text_bytes":
		return &c.StreamText
	case "conn_replaced":
		return &c.Replaced
	}
	return nil
}

// name reads a field that is text.
func (d *callDecoder) name(key []byte, c *Call) bool {
	var to *string
	switch string(key) {
	case "model":
		to = &c.Model
	case "finish":
		to = &c.Finish
	case "new_field":
		to = &c.Field
	case "class":
		to = (*string)(&c.Class)
	case "error":
		to = &c.Error
	case "text":
		to = &c.Text
	default:
		return false
	}
	b, ok := d.text()
	*to = d.shared(b)
	return ok
}

// shared is the text, once for all calls that have it as far as these are few.
func (d *callDecoder) shared(b []byte) string {
	const most, long = 1000, 64
	if s, ok := d.names[string(b)]; ok {
		return s
	}
	s := string(b)
	if d.names == nil {
		d.names = map[string]string{}
	}
	if len(s) <= long && len(d.names) < most {
		d.names[s] = s
	}
	return s
}

func (d *callDecoder) usage(u *Usage) bool {
	return d.object(func(key []byte) bool {
		var to *int
		switch string(key) {
		case "prompt_tokens":
			to = &u.Prompt
		case "completion_tokens":
			to = &u.Completion
		case "cached_tokens":
			to = &u.Cached
		case "reasoning_tokens":
			to = &u.Reasoning
		default:
			return false
		}
		return whole(d, to)
	})
}

func (d *callDecoder) char(c byte) bool {
	if len(d.b) == 0 || d.b[0] != c {
		return false
	}
	d.b = d.b[1:]
	return true
}

// text reads a string of plain ASCII.
func (d *callDecoder) text() ([]byte, bool) {
	if !d.char('"') {
		return nil, false
	}
	for i, c := range d.b {
		switch {
		case c == '"':
			s := d.b[:i]
			d.b = d.b[i+1:]
			return s, true
		case c == '\\' || c < ' ' || c >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

func (d *callDecoder) yes(to *bool) bool {
	if !bytes.HasPrefix(d.b, []byte("true")) {
		return false
	}
	d.b, *to = d.b[4:], true
	return true
}

// number reads an integer of so many digits that it cannot overflow.
func (d *callDecoder) number() (v int64, ok bool) {
	i, minus := 0, len(d.b) > 0 && d.b[0] == '-'
	if minus {
		i = 1
	}
	from := i
	for ; i < len(d.b) && d.b[i]-'0' <= 9; i++ {
		v = 10*v + int64(d.b[i]-'0')
	}
	n := i - from
	if n == 0 || n > 18 || n > 1 && d.b[from] == '0' || minus && v == 0 {
		return 0, false
	}
	d.b = d.b[i:]
	if minus {
		v = -v
	}
	return v, true
}

// pairs reads a list of lists of integers.
func (d *callDecoder) pairs(to *[][]int64) bool {
	if !d.char('[') {
		return false
	}
	*to = nil
	for !d.char(']') {
		var pair []int64
		if len(*to) > 0 && !d.char(',') || !numbers(d, &pair) {
			return false
		}
		*to = append(*to, pair)
	}
	return true
}

// whole reads an integer; what is not one shows as no comma or bracket after it.
func whole[T ~int | ~int64](d *callDecoder, to *T) bool {
	v, ok := d.number()
	*to = T(v)
	return ok
}

// numbers reads a list of integers.
func numbers[T int32 | int64](d *callDecoder, to *[]T) bool {
	if !d.char('[') {
		return false
	}
	*to = (*to)[:0]
	if d.char(']') {
		return true
	}
	for {
		v, ok := d.number()
		if !ok || int64(T(v)) != v {
			return false
		}
		*to = append(*to, T(v))
		if d.char(']') {
			return true
		}
		if !d.char(',') {
			return false
		}
	}
}
