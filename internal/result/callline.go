package result

import (
	"bytes"
	"encoding/json"
	"time"

	"perflab/internal/jsonl"
)

// callDecoder reads lines as AppendJSON writes them, some ten times as fast as package
// json does: a report of a long run reads millions. What it does not know, or finds
// written in another way, it leaves to json, so that both read the same.
type callDecoder struct {
	p     jsonl.Parser
	lists callLists
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
	return d.p.Line(line, func(key []byte) bool { return d.field(key, c) }) && l.fill(c) == nil
}

// field reads the value of a field.
func (d *callDecoder) field(key []byte, c *Call) bool {
	l := &d.lists
	switch string(key) {
	case "chunk_ns":
		return jsonl.Numbers(&d.p, &l.NS)
	case "chunk_tokens":
		return jsonl.Numbers(&d.p, &l.Tokens)
	case "chunk_reads":
		return jsonl.Numbers(&d.p, &l.Reads)
	case "empty_ns":
		return jsonl.Numbers(&d.p, &l.EmptyNS)
	case "empty_reads":
		return jsonl.Numbers(&d.p, &l.EmptyReads)
	case "chunk_read":
		l.Read = new(int32)
		return jsonl.Number(&d.p, l.Read)
	case "late":
		return d.p.Pairs(&l.Late)
	case "usage":
		if c.Usage == nil {
			c.Usage = &Usage{}
		}
		return d.usage(c.Usage)
	case "speculation":
		if c.Speculation == nil {
			c.Speculation = &Speculation{}
		}
		return d.speculation(c.Speculation)
	case "conn_new":
		return d.p.Yes(&c.New)
	case "simulated":
		return d.p.Yes(&c.Sim)
	}
	if at := c.instant(key); at != nil {
		return jsonl.Number(&d.p, at)
	}
	if n := c.count(key); n != nil {
		return jsonl.Number(&d.p, n)
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
	case "agent":
		return &c.Agent
	case "session":
		return &c.Session
	case "turn":
		return &c.Turn
	case "turns":
		return &c.Turns
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
	case "trace_id":
		return d.p.Own(&c.TraceID)
	case "span_id":
		return d.p.Own(&c.SpanID)
	default:
		return false
	}
	return d.p.Text(to)
}

func (d *callDecoder) usage(u *Usage) bool {
	return d.p.Object(func(key []byte) bool {
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
		return jsonl.Number(&d.p, to)
	})
}

func (d *callDecoder) speculation(g *Speculation) bool {
	return d.p.Object(func(key []byte) bool {
		switch string(key) {
		case "steps":
			return jsonl.Number(&d.p, &g.Steps)
		case "drafted":
			return jsonl.Number(&d.p, &g.Drafted)
		case "accepted":
			return jsonl.Number(&d.p, &g.Accepted)
		case "by_step":
			return jsonl.Numbers(&d.p, &g.ByStep) && len(g.ByStep) > 0
		}
		return false
	})
}
