package result

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"time"

	"perflab/internal/jsonl"
)

// AppendJSON appends the call as one JSON object without a newline. Stamps and
// reads are delta-coded, first absolute: "chunk_ns":[first,delta,...].
// "chunk_tokens" is there only when a chunk has other than one token. Where
// reads were counted, "chunk_read" is the first chunk's when each had a read of
// its own, one after the other; else "chunk_reads" has them all.
// "late":[[read,ns],...] is there only when a read was late.
func (c *Call) AppendJSON(dst []byte) []byte {
	e := encoder{jsonl.Writer{Bytes: dst}}
	e.Begin("")
	e.Num("index", int64(c.Index), true)
	e.Num("target", int64(c.Target), false)
	e.Num("agent", int64(c.Agent), false)
	e.Num("session", int64(c.Session), false)
	e.Num("turn", int64(c.Turn), false)
	e.Num("turns", int64(c.Turns), false)
	e.Text("model", c.Model)
	e.Num("due_ns", int64(c.Due), true)
	e.Num("ready_ns", int64(c.Ready), true)
	e.Num("sent_ns", int64(c.Sent), true)
	e.Num("wrote_ns", int64(c.Wrote), false)
	e.Num("first_ns", int64(c.First), false)
	e.Num("headers_ns", int64(c.Headers), false)
	e.Num("usage_ns", int64(c.UsageAt), false)
	e.Num("done_ns", int64(c.Done), false)
	e.Num("end_ns", int64(c.End), true)
	e.Yes("conn_new", c.New)
	e.Num("dns_ns", int64(c.DNS), false)
	e.Num("dial_ns", int64(c.Dial), false)
	e.Num("tls_ns", int64(c.TLS), false)
	e.Num("conn_replaced", int64(c.Replaced), false)
	e.chunks(c.Chunks, c.Reads > 0)
	e.empty(c.Empty)
	e.late(c.Late)
	e.Num("reads", int64(c.Reads), false)
	e.Num("coarse", int64(c.Coarse), false)
	e.Num("answer_ns", int64(c.Answer), false)
	e.Text("text", c.Text)
	e.Text("finish", c.Finish)
	if u := c.Usage; u != nil {
		e.Begin("usage")
		e.Num("prompt_tokens", int64(u.Prompt), true)
		e.Num("completion_tokens", int64(u.Completion), true)
		e.Num("cached_tokens", int64(u.Cached), false)
		e.Num("reasoning_tokens", int64(u.Reasoning), false)
		e.End()
	}
	e.speculation(c.Speculation)
	e.Num("status", int64(c.Status), false)
	e.Yes("simulated", c.Sim)
	e.Text("new_field", c.Field)
	e.Num("want_input", int64(c.WantIn), false)
	e.Num("want_output", int64(c.Want), false)
	e.Num("text_tokens", int64(c.Recount), false)
	e.Num("first_text_bytes", int64(c.FirstText), false)
	e.Num("text_bytes", int64(c.StreamText), false)
	e.Text("trace_id", c.TraceID)
	e.Text("span_id", c.SpanID)
	e.Text("class", string(c.Class))
	e.Text("error", c.Error)
	e.End()
	return e.Bytes
}

// encoder writes the lists of a call.
type encoder struct{ jsonl.Writer }

// chunks writes stamps and tokens and, where reads were counted, those.
func (e *encoder) chunks(chunks []Chunk, reads bool) {
	if len(chunks) == 0 {
		return
	}
	plain, apart := true, true // one token each; each of a read of its own, one after the other
	prev := time.Duration(0)
	for i, k := range chunks {
		e.Item("chunk_ns", i, int64(k.At-prev))
		prev, plain, apart = k.At, plain && k.Tokens == 1, apart && k.Read == chunks[0].Read+int32(i)
	}
	e.EndList()
	if !plain {
		for i, k := range chunks {
			e.Item("chunk_tokens", i, int64(k.Tokens))
		}
		e.EndList()
	}
	if !reads {
		return
	}
	if apart {
		e.Num("chunk_read", int64(chunks[0].Read), true)
		return
	}
	last := int32(0)
	for i, k := range chunks {
		e.Item("chunk_reads", i, int64(k.Read-last))
		last = k.Read
	}
	e.EndList()
}

func (e *encoder) empty(stamps []Stamp) {
	if len(stamps) == 0 {
		return
	}
	prev := time.Duration(0)
	for i, s := range stamps {
		e.Item("empty_ns", i, int64(s.At-prev))
		prev = s.At
	}
	e.EndList()
	last := int32(0)
	for i, s := range stamps {
		e.Item("empty_reads", i, int64(s.Read-last))
		last = s.Read
	}
	e.EndList()
}

// speculation writes what the server says of its guesses.
func (e *encoder) speculation(g *Speculation) {
	if g == nil {
		return
	}
	e.Begin("speculation")
	e.Num("steps", int64(g.Steps), false)
	e.Num("drafted", int64(g.Drafted), false)
	e.Num("accepted", int64(g.Accepted), true)
	for j, n := range g.ByStep {
		e.Item("by_step", j, int64(n))
	}
	if len(g.ByStep) > 0 {
		e.EndList()
	}
	e.End()
}

// late writes pairs of a read and how late it may have been.
func (e *encoder) late(reads []LateRead) {
	if len(reads) == 0 {
		return
	}
	for i, l := range reads {
		e.Pair("late", i, int64(l.Read), int64(l.By))
	}
	e.EndList()
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
	return jsonl.Read(r, "a call", new(callDecoder).decode)
}
