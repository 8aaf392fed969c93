package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"
)

// AppendJSON appends the call as one JSON object without a newline. Chunk
// stamps are delta-coded, first absolute: "chunk_ns":[first,delta,...];
// "chunk_tokens" is there only when a chunk has other than one token.
func (c *Call) AppendJSON(dst []byte) []byte {
	e := encoder{append(dst, '{')}
	e.num("index", int64(c.Index), true)
	e.num("target", int64(c.Target), false)
	e.num("due_ns", int64(c.Due), true)
	e.num("ready_ns", int64(c.Ready), true)
	e.num("sent_ns", int64(c.Sent), true)
	e.num("headers_ns", int64(c.Headers), false)
	e.num("end_ns", int64(c.End), true)
	e.chunks(c.Chunks)
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
	if c.Sim {
		e.key("simulated")
		e.b = append(e.b, "true"...)
	}
	e.str("new_field", c.Field)
	e.num("want_input", int64(c.WantIn), false)
	e.num("want_output", int64(c.Want), false)
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

func (e *encoder) chunks(chunks []Chunk) {
	if len(chunks) == 0 {
		return
	}
	e.key("chunk_ns")
	sep, prev, plain := byte('['), time.Duration(0), true
	for _, k := range chunks {
		e.b = append(e.b, sep)
		e.b = strconv.AppendInt(e.b, int64(k.At-prev), 10)
		sep, prev, plain = ',', k.At, plain && k.Tokens == 1
	}
	e.b = append(e.b, ']')
	if plain {
		return
	}
	e.key("chunk_tokens")
	sep = '['
	for _, k := range chunks {
		e.b = append(e.b, sep)
		e.b = strconv.AppendInt(e.b, int64(k.Tokens), 10)
		sep = ','
	}
	e.b = append(e.b, ']')
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
		NS     []int64 `json:"chunk_ns"`
		Tokens []int   `json:"chunk_tokens"`
	}{plain: (*plain)(c)}
	*c = Call{}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if len(w.Tokens) != 0 && len(w.Tokens) != len(w.NS) {
		return fmt.Errorf("chunk_tokens has %d entries for %d in chunk_ns", len(w.Tokens), len(w.NS))
	}
	if len(w.NS) == 0 {
		return nil
	}
	c.Chunks = make([]Chunk, len(w.NS))
	at := time.Duration(0)
	for i, d := range w.NS {
		at += time.Duration(d)
		c.Chunks[i] = Chunk{At: at, Tokens: 1}
		if len(w.Tokens) != 0 {
			c.Chunks[i].Tokens = w.Tokens[i]
		}
	}
	return nil
}

// ReadCalls yields the calls of a JSONL stream, one object a line. Errors name
// the line and end the sequence. A last line that has no newline
// and does not parse is what a killed run leaves behind: it is dropped, and
// the run shows as partial because calls are missing.
func ReadCalls(r io.Reader) iter.Seq2[Call, error] {
	return func(yield func(Call, error) bool) {
		br := bufio.NewReaderSize(r, 1<<16)
		for n := 1; ; n++ {
			line, err := br.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(Call{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			whole := err == nil
			if len(bytes.TrimSpace(line)) > 0 {
				var c Call
				if jerr := json.Unmarshal(line, &c); jerr == nil {
					if !yield(c, nil) {
						return
					}
				} else if whole {
					yield(Call{}, fmt.Errorf("line %d is not a call: %w", n, jerr))
					return
				}
			}
			if !whole {
				return
			}
		}
	}
}
