package parquet

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"perflab/internal/result"
)

// Read reads what Write has written: the run's header and its calls, in the
// order of the file. A file that is damaged or not ours gives an error.
func Read(r io.ReaderAt, size int64) (h result.Header, calls []result.Call, err error) {
	defer func() { // the library checks little of what a damaged file says of itself
		if p := recover(); p != nil {
			h, calls, err = result.Header{}, nil, fmt.Errorf("read the calls' Parquet file: it is damaged (%v)", p)
		}
	}()
	if err := footed(r, size); err != nil {
		return h, nil, err
	}
	f, err := pq.OpenFile(r, size)
	if err != nil {
		return h, nil, fmt.Errorf("read the calls' Parquet file: %w", err)
	}
	if schema, _ := f.Lookup(keySchema); schema != Schema {
		return h, nil, fmt.Errorf("the Parquet file has no calls of perflab: its %s is %.40q and not %q", keySchema, schema, Schema)
	}
	text, _ := f.Lookup(keyHeader)
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return result.Header{}, nil, fmt.Errorf("read the run's header in the Parquet file: %w", err)
	}
	rows := pq.NewGenericReader[row](f)
	defer rows.Close() //nolint:errcheck // nothing was written
	buf := make([]row, batch)
	for {
		n, err := rows.Read(buf)
		for i := range buf[:n] {
			c, bad := buf[i].call(h.Model)
			if bad != nil {
				return result.Header{}, nil, fmt.Errorf("read row %d of the calls' Parquet file: %w", len(calls)+1, bad)
			}
			calls = append(calls, c)
		}
		if errors.Is(err, io.EOF) {
			return h, calls, nil
		}
		if err != nil {
			return result.Header{}, nil, fmt.Errorf("read row %d of the calls' Parquet file: %w", len(calls)+1, err)
		}
		if n == 0 {
			return result.Header{}, nil, fmt.Errorf("read row %d of the calls' Parquet file: %w", len(calls)+1, io.ErrUnexpectedEOF)
		}
		clear(buf)
	}
}

// footed checks that the footer, which the library takes at its word, has room
// in the file: its length stands before the last four bytes.
func footed(r io.ReaderAt, size int64) error {
	var end [8]byte
	if size < 12 {
		return fmt.Errorf("read the calls' Parquet file: it has %d bytes, which is too short for one", size)
	}
	if _, err := r.ReadAt(end[:], size-8); err != nil {
		return fmt.Errorf("read the calls' Parquet file: %w", err)
	}
	if n := int64(binary.LittleEndian.Uint32(end[:])); n > size-12 {
		return fmt.Errorf("read the calls' Parquet file: it is damaged: a footer of %d bytes in a file of %d", n, size)
	}
	return nil
}

// or is what an optional column holds, zero for null.
func or[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func at(p *int64) time.Duration { return time.Duration(or(p)) }

// call is the row as a call again, of a run with this model.
func (r *row) call(model string) (result.Call, error) {
	c := result.Call{
		Index: int(r.Index), Target: int(r.Target), Agent: int(or(r.Agent)), Session: int(or(r.Session)), Turn: int(or(r.Turn)), Turns: int(or(r.Turns)),
		Due: time.Duration(r.Due), Ready: time.Duration(r.Ready), Sent: time.Duration(r.Sent), Wrote: at(r.Wrote), First: at(r.First),
		Headers: at(r.Headers), Answer: at(r.Answer), UsageAt: at(r.UsageAt), Done: at(r.Done), End: time.Duration(r.End),
		Conn:   result.Conn{New: or(r.ConnNew), DNS: at(r.DNS), Dial: at(r.Dial), TLS: at(r.TLS), Replaced: int(or(r.Replaced))},
		WantIn: int(or(r.WantIn)), Want: int(or(r.Want)), Recount: int(or(r.Recount)), FirstText: int(or(r.FirstText)), StreamText: int(or(r.StreamText)), Finish: or(r.Finish), Status: int(or(r.Status)),
		Sim: or(r.Answered), Field: or(r.Field), Class: result.Class(or(r.Class)), Error: or(r.Error), Text: or(r.Text), TraceID: or(r.TraceID), SpanID: or(r.SpanID),
		Reads: int(or(r.Reads)), Coarse: int(or(r.Coarse)),
	}
	if m := or(r.Model); m != model {
		c.Model = m
	}
	if r.UsagePrompt != nil || r.UsageCompletion != nil {
		c.Usage = &result.Usage{Prompt: int(or(r.UsagePrompt)), Completion: int(or(r.UsageCompletion)), Cached: int(or(r.Cached)), Reasoning: int(or(r.Reasoning))}
	}
	if r.SpecAccepted != nil {
		c.Speculation = &result.Speculation{Steps: int(or(r.SpecSteps)), Drafted: int(or(r.SpecDrafted)), Accepted: int(*r.SpecAccepted)}
		c.Speculation.ByStep = append(c.Speculation.ByStep, r.SpecByStep...)
	}
	if n := len(r.ChunkNS); len(r.ChunkTokens) != n || len(r.ChunkRead) != n && len(r.ChunkRead) != 0 {
		return c, fmt.Errorf("chunk_tokens has %d numbers and chunk_read %d for %d in chunk_ns", len(r.ChunkTokens), len(r.ChunkRead), n)
	}
	if n := len(r.EmptyNS); len(r.EmptyRead) != n && len(r.EmptyRead) != 0 {
		return c, fmt.Errorf("empty_read has %d numbers for %d in empty_ns", len(r.EmptyRead), n)
	}
	if len(r.LateRead) != len(r.LateNS) {
		return c, fmt.Errorf("late_read has %d numbers for %d in late_ns", len(r.LateRead), len(r.LateNS))
	}
	for i, by := range r.LateNS {
		c.Late = append(c.Late, result.LateRead{Read: r.LateRead[i], By: time.Duration(by)})
	}
	for i, at := range r.ChunkNS {
		k := result.Chunk{At: time.Duration(at), Tokens: r.ChunkTokens[i]}
		if len(r.ChunkRead) > 0 {
			k.Read = r.ChunkRead[i]
		}
		c.Chunks = append(c.Chunks, k)
	}
	for i, at := range r.EmptyNS {
		s := result.Stamp{At: time.Duration(at)}
		if len(r.EmptyRead) > 0 {
			s.Read = r.EmptyRead[i]
		}
		c.Empty = append(c.Empty, s)
	}
	return c, nil
}
