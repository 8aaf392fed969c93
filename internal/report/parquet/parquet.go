// Package parquet writes the calls of a run as a Parquet file, one row a call,
// for pandas, DuckDB and their like, and reads such a file again.
//
//	err := parquet.Write(w, header, slices.Values(calls))
//	header, calls, err := parquet.Read(file, size)
//
//	select quantile_cont((first_token_ns - sent_ns) / 1e6, 0.99) from 'calls.parquet' where class is null
//
// Invariants: the columns are the facts of a call in base units (times are
// nanoseconds since the run's start), under the names that calls.jsonl gives
// them; what is missing is null, never zero; class is null where the call
// succeeded. The file's metadata hold the run's header as JSON under
// perflab.header, which has no secrets; what Read gives has the same figures.
//
// Deliberately absent: figures, which follow from the facts by docs/metrics.md.
// It is a package of its own because no other needs the library.
package parquet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"perflab/internal/result"
)

// Schema names the columns and what they hold; it changes when one of them
// does.
const Schema = "perflab.calls/1"

// Keys of the file's metadata.
const (
	keySchema  = "perflab.schema"
	keyVersion = "perflab.version"
	keyHeader  = "perflab.header"
)

// row is a call as the file has it. Every optional column is a pointer: of
// optional columns of plain types, which shall be null where they are zero, the
// library (v0.32.0) writes some nulls as zeros.
type row struct {
	Index   int64   `parquet:"index,delta"`
	Target  int32   `parquet:"target"`
	Agent   *int32  `parquet:"agent,optional,dict"` // of a fleet; null: the machine that made the run
	Session *int64  `parquet:"session,optional"`
	Turn    *int32  `parquet:"turn,optional"`
	Turns   *int64  `parquet:"turns,optional"`
	Model   *string `parquet:"model,optional,dict"`

	Due        int64  `parquet:"due_ns,delta"`
	Ready      int64  `parquet:"ready_ns,delta"`
	Sent       int64  `parquet:"sent_ns,delta"`
	Wrote      *int64 `parquet:"wrote_ns,optional"`
	First      *int64 `parquet:"first_ns,optional"`
	Headers    *int64 `parquet:"headers_ns,optional"`
	FirstToken *int64 `parquet:"first_token_ns,optional"`
	Answer     *int64 `parquet:"answer_ns,optional"`
	LastToken  *int64 `parquet:"last_token_ns,optional"`
	UsageAt    *int64 `parquet:"usage_ns,optional"`
	Done       *int64 `parquet:"done_ns,optional"`
	End        int64  `parquet:"end_ns,delta"`

	ConnNew  *bool  `parquet:"conn_new,optional"` // null: not known
	DNS      *int64 `parquet:"dns_ns,optional"`
	Dial     *int64 `parquet:"dial_ns,optional"`
	TLS      *int64 `parquet:"tls_ns,optional"`
	Replaced *int32 `parquet:"conn_replaced,optional"`

	Prompt          *int64  `parquet:"prompt_tokens,optional"`
	PromptFrom      *string `parquet:"prompt_tokens_from,optional,dict"`
	Output          *int64  `parquet:"output_tokens,optional"`
	OutputFrom      *string `parquet:"output_tokens_from,optional,dict"`
	UsagePrompt     *int64  `parquet:"usage_prompt_tokens,optional"`
	UsageCompletion *int64  `parquet:"usage_completion_tokens,optional"`
	Cached          *int64  `parquet:"cached_tokens,optional"`
	Reasoning       *int64  `parquet:"reasoning_tokens,optional"`
	WantIn          *int64  `parquet:"want_input,optional"`
	Want            *int64  `parquet:"want_output,optional"`
	Recount         *int64  `parquet:"text_tokens,optional"`
	FirstText       *int64  `parquet:"first_text_bytes,optional"`
	StreamText      *int64  `parquet:"text_bytes,optional"`

	SpecSteps    *int64  `parquet:"spec_steps,optional"`
	SpecDrafted  *int64  `parquet:"spec_drafted,optional"`
	SpecAccepted *int64  `parquet:"spec_accepted,optional"` // null: the server tells nothing of speculation
	SpecByStep   []int32 `parquet:"spec_by_step,list" parquet-element:",delta"`

	Finish    *string `parquet:"finish,optional,dict"`
	Status    *int32  `parquet:"status,optional,dict"`
	Simulated bool    `parquet:"simulated"`
	Answered  *bool   `parquet:"answer_simulated,optional"` // the server of this call said so; null: it did not
	Field     *string `parquet:"new_field,optional,dict"`
	Class     *string `parquet:"class,optional,dict"`
	Error     *string `parquet:"error,optional"`
	Text      *string `parquet:"text,optional"`
	TraceID   *string `parquet:"trace_id,optional"`
	SpanID    *string `parquet:"span_id,optional"`

	Reads       *int32  `parquet:"reads,optional"`
	Coarse      *int32  `parquet:"coarse,optional"`
	ChunkNS     []int64 `parquet:"chunk_ns,list" parquet-element:",delta"`
	ChunkTokens []int32 `parquet:"chunk_tokens,list" parquet-element:",delta"`
	ChunkRead   []int32 `parquet:"chunk_read,list" parquet-element:",delta"`
	EmptyNS     []int64 `parquet:"empty_ns,list" parquet-element:",delta"`
	EmptyRead   []int32 `parquet:"empty_read,list" parquet-element:",delta"`
	LateRead    []int32 `parquet:"late_read,list" parquet-element:",delta"`
	LateNS      []int64 `parquet:"late_ns,list" parquet-element:",delta"`
}

// Sizes that bound the memory of writing: rows handed to the library at once,
// and rows it keeps until it writes them out.
const (
	batch = 512
	group = 16384
)

// Write writes the calls of a run as one Parquet file, in the order they come.
func Write(w io.Writer, h result.Header, calls iter.Seq[result.Call]) error {
	header, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode the header of the calls' Parquet file: %w", err)
	}
	out := pq.NewGenericWriter[row](w,
		pq.Compression(&zstd.Codec{}), pq.DefaultEncodingFor(pq.Int64, &pq.DeltaBinaryPacked), pq.MaxRowsPerRowGroup(group), pq.CreatedBy("perflab", cmp.Or(h.Version, "devel"), ""),
		pq.KeyValueMetadata(keySchema, Schema), pq.KeyValueMetadata(keyVersion, h.Version), pq.KeyValueMetadata(keyHeader, string(header)),
	)
	rows, facts := make([]row, 0, batch), &facts{}
	flush := func() error {
		_, err := out.Write(rows)
		rows = rows[:0]
		facts.reset()
		return err
	}
	for c := range calls {
		rows = rows[:len(rows)+1]
		rows[len(rows)-1].set(h, &c, facts)
		if len(rows) < batch {
			continue
		}
		if err := flush(); err != nil {
			return fmt.Errorf("write the calls as Parquet: %w", err)
		}
	}
	if err := flush(); err != nil {
		return fmt.Errorf("write the calls as Parquet: %w", err)
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("finish the calls' Parquet file: %w", err)
	}
	return nil
}

// facts is the memory that the optional columns of a batch point to. What is
// zero in a Call is missing: it gets no place and no pointer.
type facts struct {
	long  []int64
	short []int32
	text  []string
}

func (f *facts) reset() { f.long, f.short, f.text = f.long[:0], f.short[:0], f.text[:0] }

func (f *facts) at(d time.Duration) *int64 { return place(&f.long, int64(d)) }
func (f *facts) n(n int) *int64            { return place(&f.long, int64(n)) }
func (f *facts) few(n int) *int32          { return place(&f.short, int32(n)) }
func (f *facts) s(s string) *string        { return place(&f.text, s) }

// place appends a value and returns where it is; memory that append leaves
// behind stays as it was.
func place[T comparable](list *[]T, v T) *T {
	var missing T
	if v == missing {
		return nil
	}
	*list = append(*list, v)
	return &(*list)[len(*list)-1]
}

// set fills the row from a call. It takes over the memory of the lists of the
// call before.
func (r *row) set(h result.Header, c *result.Call, f *facts) {
	first, _ := c.FirstToken()
	last, _ := c.LastToken()
	*r = row{
		Index: int64(c.Index), Target: int32(c.Target), Agent: f.few(c.Agent), Session: f.n(c.Session), Turns: f.n(c.Turns), Model: f.s(cmp.Or(c.Model, h.Model)),
		Due: int64(c.Due), Ready: int64(c.Ready), Sent: int64(c.Sent), Wrote: f.at(c.Wrote), First: f.at(c.First), Headers: f.at(c.Headers),
		FirstToken: f.at(first), Answer: f.at(c.Answer), LastToken: f.at(last), UsageAt: f.at(c.UsageAt), Done: f.at(c.Done), End: int64(c.End),
		DNS: f.at(c.DNS), Dial: f.at(c.Dial), TLS: f.at(c.TLS), Replaced: f.few(c.Replaced),
		WantIn: f.n(c.WantIn), Want: f.n(c.Want), Recount: f.n(c.Recount), FirstText: f.n(c.FirstText), StreamText: f.n(c.StreamText),
		Finish: f.s(c.Finish), Status: f.few(c.Status), Simulated: c.Sim || h.Simulated || h.Predicted, Field: f.s(c.Field),
		Class: f.s(string(c.Class)), Error: f.s(c.Error), Text: f.s(c.Text), TraceID: f.s(c.TraceID), SpanID: f.s(c.SpanID), Reads: f.few(c.Reads), Coarse: f.few(c.Coarse),
		ChunkNS: r.ChunkNS[:0], ChunkTokens: r.ChunkTokens[:0], ChunkRead: r.ChunkRead[:0], EmptyNS: r.EmptyNS[:0], EmptyRead: r.EmptyRead[:0],
		LateRead: r.LateRead[:0], LateNS: r.LateNS[:0], SpecByStep: r.SpecByStep[:0],
	}
	if c.Session > 0 {
		r.Turn = new(int32(c.Turn)) // the first is 0
	}
	if c.New || c.Wrote > 0 { // a call that wrote its request had a connection
		r.ConnNew = new(c.New)
	}
	if c.Sim {
		r.Answered = new(true)
	}
	if n, from := c.Input(); n > 0 {
		r.Prompt, r.PromptFrom = f.n(n), f.s(string(from))
	}
	if n, from := c.Output(); n > 0 {
		r.Output, r.OutputFrom = f.n(n), f.s(string(from))
	}
	if u := c.Usage; u != nil {
		r.UsagePrompt, r.UsageCompletion = new(int64(u.Prompt)), new(int64(u.Completion)) // it may say 0
		r.Cached, r.Reasoning = f.n(u.Cached), f.n(u.Reasoning)
	}
	if g := c.Speculation; g != nil {
		r.SpecSteps, r.SpecDrafted, r.SpecAccepted = f.n(g.Steps), f.n(g.Drafted), new(int64(g.Accepted)) // it may say 0
		r.SpecByStep = append(r.SpecByStep, g.ByStep...)
	}
	for _, k := range c.Chunks {
		r.ChunkNS, r.ChunkTokens = append(r.ChunkNS, int64(k.At)), append(r.ChunkTokens, k.Tokens)
		if c.Reads > 0 { // else they were not counted
			r.ChunkRead = append(r.ChunkRead, k.Read)
		}
	}
	for _, e := range c.Empty {
		r.EmptyNS = append(r.EmptyNS, int64(e.At))
		if c.Reads > 0 {
			r.EmptyRead = append(r.EmptyRead, e.Read)
		}
	}
	for _, l := range c.Late {
		r.LateRead, r.LateNS = append(r.LateRead, l.Read), append(r.LateNS, int64(l.By))
	}
}
