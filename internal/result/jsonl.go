package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"time"
)

// AppendJSON appends the call as one JSON object without a newline. Stamps and
// reads are delta-coded, first absolute: "chunk_ns":[first,delta,...].
// "chunk_tokens" is there only when a chunk has other than one token. Where
// reads were counted, "chunk_read" is the first chunk's when each had a read of
// its own, one after the other; else "chunk_reads" has them all.
// "late":[[read,ns],...] is there only when a read was late.
func (c *Call) AppendJSON(dst []byte) []byte {
	e := encoder{append(dst, '{')}
	e.num("index", int64(c.Index), true)
	e.num("target", int64(c.Target), false)
	e.num("session", int64(c.Session), false)
	e.num("turn", int64(c.Turn), false)
	e.str("model", c.Model)
	e.num("due_ns", int64(c.Due), true)
	e.num("ready_ns", int64(c.Ready), true)
	e.num("sent_ns", int64(c.Sent), true)
	e.num("wrote_ns", int64(c.Wrote), false)
	e.num("first_ns", int64(c.First), false)
	e.num("headers_ns", int64(c.Headers), false)
	e.num("usage_ns", int64(c.UsageAt), false)
	e.num("done_ns", int64(c.Done), false)
	e.num("end_ns", int64(c.End), true)
	e.yes("conn_new", c.New)
	e.num("dns_ns", int64(c.DNS), false)
	e.num("dial_ns", int64(c.Dial), false)
	e.num("tls_ns", int64(c.TLS), false)
	e.num("conn_replaced", int64(c.Replaced), false)
	e.chunks(c.Chunks, c.Reads > 0)
	e.empty(c.Empty)
	e.late(c.Late)
	e.num("reads", int64(c.Reads), false)
	e.num("coarse", int64(c.Coarse), false)
	e.num("answer_ns", int64(c.Answer), false)
	e.str("text", c.Text)
	e.str("finish", c.Finish)
	if u := c.Usage; u != nil {
		e.key("usage")
		e.b = append(e.b, '{')
		e.num("prompt_tokens", int64(u.Prompt), true)
		e.num("completion_tokens", int64(u.Completion), true)
		e.num("cached_tokens", int64(u.Cached), false)
		e.num("reasoning_tokens", int64(u.Reasoning), false)
		e.b = append(e.b, '}')
	}
	e.num("status", int64(c.Status), false)
	e.yes("simulated", c.Sim)
	e.str("new_field", c.Field)
	e.num("want_input", int64(c.WantIn), false)
	e.num("want_output", int64(c.Want), false)
	e.num("text_tokens", int64(c.Recount), false)
	e.num("first_text_bytes", int64(c.FirstText), false)
	e.num("text_bytes", int64(c.StreamText), false)
	e.str("class", string(c.Class))
	e.str("error", c.Error)
	return append(e.b, '}')
}

// encoder writes the fields of a call without reflection: a run of 10^5 calls
// is encoded while it is measured.
type encoder struct{ b []byte }

func (e *encoder) key(name string) {
	if e.b[len(e.b)-1] != '{' {
		e.b = append(e.b, ',')
	}
	e.b = append(e.b, '"')
	e.b = append(e.b, name...)
	e.b = append(e.b, '"', ':')
}

func (e *encoder) num(name string, v int64, always bool) {
	if v == 0 && !always {
		return
	}
	e.key(name)
	e.b = strconv.AppendInt(e.b, v, 10)
}

func (e *encoder) str(name, v string) {
	if v == "" {
		return
	}
	e.key(name)
	e.b = appendString(e.b, v)
}

func (e *encoder) yes(name string, v bool) {
	if v {
		e.key(name)
		e.b = append(e.b, "true"...)
	}
}

// chunks writes stamps and tokens and, where reads were counted, those.
func (e *encoder) chunks(chunks []Chunk, reads bool) {
	if len(chunks) == 0 {
		return
	}
	plain, apart := true, true // one token each; each of a read of its own, one after the other
	prev := time.Duration(0)
	for i, k := range chunks {
		e.item("chunk_ns", i, int64(k.At-prev))
		prev, plain, apart = k.At, plain && k.Tokens == 1, apart && k.Read == chunks[0].Read+int32(i)
	}
	e.b = append(e.b, ']')
	if !plain {
		for i, k := range chunks {
			e.item("chunk_tokens", i, int64(k.Tokens))
		}
		e.b = append(e.b, ']')
	}
	if !reads {
		return
	}
	if apart {
		e.num("chunk_read", int64(chunks[0].Read), true)
		return
	}
	last := int32(0)
	for i, k := range chunks {
		e.item("chunk_reads", i, int64(k.Read-last))
		last = k.Read
	}
	e.b = append(e.b, ']')
}

func (e *encoder) empty(stamps []Stamp) {
	if len(stamps) == 0 {
		return
	}
	prev := time.Duration(0)
	for i, s := range stamps {
		e.item("empty_ns", i, int64(s.At-prev))
		prev = s.At
	}
	e.b = append(e.b, ']')
	last := int32(0)
	for i, s := range stamps {
		e.item("empty_reads", i, int64(s.Read-last))
		last = s.Read
	}
	e.b = append(e.b, ']')
}

// late writes pairs of a read and how late it may have been.
func (e *encoder) late(reads []LateRead) {
	if len(reads) == 0 {
		return
	}
	e.key("late")
	e.b = append(e.b, '[')
	for i, l := range reads {
		if i > 0 {
			e.b = append(e.b, ',')
		}
		e.b = strconv.AppendInt(append(e.b, '['), int64(l.Read), 10)
		e.b = strconv.AppendInt(append(e.b, ','), int64(l.By), 10)
		e.b = append(e.b, ']')
	}
	e.b = append(e.b, ']')
}

// item writes the i-th number of the list called name, without its end.
func (e *encoder) item(name string, i int, v int64) {
	if i == 0 {
		e.key(name)
		e.b = append(e.b, '[')
	} else {
		e.b = append(e.b, ',')
	}
	e.b = strconv.AppendInt(e.b, v, 10)
}

// appendString appends s as a JSON string; bytes that are not UTF-8 become
// U+FFFD, as JSON has no way to write them.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b >= 0x7f || b == '"' || b == '\\' {
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

// MarshalJSON encodes the call as AppendJSON does.
func (c Call) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }

// UnmarshalJSON decodes what AppendJSON writes.
func (c *Call) UnmarshalJSON(data []byte) error {
	type plain Call // without methods
	w := struct {
		*plain
		callLists
	}{plain: (*plain)(c)}
	*c = Call{}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	return w.fill(c)
}

// fill gives a call its lists.
func (w *callLists) fill(c *Call) error {
	for _, l := range []struct {
		name     string
		got, max int
		all      string
	}{
		{"chunk_tokens", len(w.Tokens), len(w.NS), "chunk_ns"},
		{"chunk_reads", len(w.Reads), len(w.NS), "chunk_ns"},
		{"empty_reads", len(w.EmptyReads), len(w.EmptyNS), "empty_ns"},
	} {
		if l.got != 0 && l.got != l.max {
			return fmt.Errorf("%s has %d entries for %d in %s", l.name, l.got, l.max, l.all)
		}
	}
	if len(w.NS) > 0 {
		c.Chunks = make([]Chunk, len(w.NS))
	}
	at, read := time.Duration(0), int32(0)
	for i, d := range w.NS {
		at += time.Duration(d)
		c.Chunks[i] = Chunk{At: at, Tokens: 1}
		if w.Read != nil {
			c.Chunks[i].Read = *w.Read + int32(i)
		}
		if len(w.Tokens) != 0 {
			c.Chunks[i].Tokens = w.Tokens[i]
		}
		if len(w.Reads) != 0 {
			read += w.Reads[i]
			c.Chunks[i].Read = read
		}
	}
	if len(w.EmptyNS) > 0 {
		c.Empty = make([]Stamp, len(w.EmptyNS))
	}
	at, read = 0, 0
	for i, d := range w.EmptyNS {
		at += time.Duration(d)
		c.Empty[i].At = at
		if len(w.EmptyReads) != 0 {
			read += w.EmptyReads[i]
			c.Empty[i].Read = read
		}
	}
	for _, l := range w.Late {
		if len(l) != 2 || l[0] < 0 || l[0] > math.MaxInt32 {
			return fmt.Errorf("late has %d, which is no pair of a read and nanoseconds", l)
		}
		c.Late = append(c.Late, LateRead{Read: int32(l[0]), By: time.Duration(l[1])})
	}
	return nil
}

// ReadCalls yields the calls of a JSONL stream, one object a line. Errors name
// the line and end the sequence. A last line that has no newline
// and does not parse is what a killed run leaves behind: it is dropped, and
// the run shows as partial because calls are missing.
func ReadCalls(r io.Reader) iter.Seq2[Call, error] {
	return readLines(r, "a call", new(callDecoder).decode)
}

// readLines yields the values of a JSONL stream; what says in errors what a line
// should be.
func readLines[T any](r io.Reader, what string, decode func([]byte, *T) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		br := bufio.NewReaderSize(r, 1<<16)
		var long []byte
		for n := 1; ; n++ {
			line, err := br.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				for long = long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = br.ReadSlice('\n') {
					long = append(long, line...)
				}
				long = append(long, line...)
				line = long
			}
			if err != nil && !errors.Is(err, io.EOF) {
				yield(none, fmt.Errorf("line %d: %w", n, err))
				return
			}
			whole := err == nil
			if len(bytes.TrimSpace(line)) > 0 {
				var v T
				if err := decode(line, &v); err == nil {
					if !yield(v, nil) {
						return
					}
				} else if whole {
					yield(none, fmt.Errorf("line %d is not %s: %w", n, what, err))
					return
				}
			}
			if !whole {
				return
			}
		}
	}
}
