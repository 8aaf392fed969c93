// Package parquet writes the calls of a run as a Parquet file, one row a call,
// for pandas, DuckDB and their like.
//
//	err := parquet.Write(w, header, slices.Values(calls))
//
//	select quantile_cont((first_token_ns - sent_ns) / 1e6, 0.99) from 'calls.parquet' where class is null
//
// Invariants: the columns are the facts of a call in base units (times are
// nanoseconds since the run's start), under the names that calls.jsonl gives
// them; what is missing is null, never zero; class is null where the call
// succeeded. The file's metadata hold the run's header as JSON under
// perflab.header, which has no secrets.
//
// Deliberately absent: figures, which follow from the facts by docs/metrics.md,
// and reading: the run directory is the truth and this is a copy of it. It is
// a package of its own because no other needs the library.
package parquet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"

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

// row is a call as the file has it. An optional column of a plain type is null
// where the value is zero, which is how a Call says that a fact is missing; a
// pointer stands where zero is a fact too.
type row struct {
	Index   int64  `parquet:"index,delta"`
	Target  int32  `parquet:"target"`
	Session int64  `parquet:"session,optional,delta"`
	Turn    *int32 `parquet:"turn,optional"`
	Model   string `parquet:"model,optional,dict"`

	Due        int64 `parquet:"due_ns,delta"`
	Ready      int64 `parquet:"ready_ns,delta"`
	Sent       int64 `parquet:"sent_ns,delta"`
	Wrote      int64 `parquet:"wrote_ns,optional,delta"`
	First      int64 `parquet:"first_ns,optional,delta"`
	Headers    int64 `parquet:"headers_ns,optional,delta"`
	FirstToken int64 `parquet:"first_token_ns,optional,delta"`
	Answer     int64 `parquet:"answer_ns,optional,delta"`
	LastToken  int64 `parquet:"last_token_ns,optional,delta"`
	UsageAt    int64 `parquet:"usage_ns,optional,delta"`
	Done       int64 `parquet:"done_ns,optional,delta"`
	End        int64 `parquet:"end_ns,delta"`

	ConnNew  *bool `parquet:"conn_new,optional"` // null: not known
	DNS      int64 `parquet:"dns_ns,optional,delta"`
	Dial     int64 `parquet:"dial_ns,optional,delta"`
	TLS      int64 `parquet:"tls_ns,optional,delta"`
	Replaced int32 `parquet:"conn_replaced,optional"`

	Prompt          int64  `parquet:"prompt_tokens,optional,delta"`
	PromptFrom      string `parquet:"prompt_tokens_from,optional,dict"`
	Output          int64  `parquet:"output_tokens,optional,delta"`
	OutputFrom      string `parquet:"output_tokens_from,optional,dict"`
	UsagePrompt     int64  `parquet:"usage_prompt_tokens,optional,delta"`
	UsageCompletion int64  `parquet:"usage_completion_tokens,optional,delta"`
	Cached          int64  `parquet:"cached_tokens,optional,delta"`
	Reasoning       int64  `parquet:"reasoning_tokens,optional,delta"`
	WantIn          int64  `parquet:"want_input,optional,delta"`
	Want            int64  `parquet:"want_output,optional,delta"`
	Recount         int64  `parquet:"text_tokens,optional,delta"`

	Finish    string `parquet:"finish,optional,dict"`
	Status    int32  `parquet:"status,optional,dict"`
	Simulated bool   `parquet:"simulated"`
	Field     string `parquet:"new_field,optional,dict"`
	Class     string `parquet:"class,optional,dict"`
	Error     string `parquet:"error,optional"`
	Text      string `parquet:"text,optional"`

	Reads       int32   `parquet:"reads,optional"`
	Coarse      int32   `parquet:"coarse,optional"`
	ChunkNS     []int64 `parquet:"chunk_ns,list" parquet-element:",delta"`
	ChunkTokens []int32 `parquet:"chunk_tokens,list" parquet-element:",delta"`
	ChunkRead   []int32 `parquet:"chunk_read,list" parquet-element:",delta"`
	EmptyNS     []int64 `parquet:"empty_ns,list" parquet-element:",delta"`
	EmptyRead   []int32 `parquet:"empty_read,list" parquet-element:",delta"`
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
		pq.Compression(&zstd.Codec{}), pq.MaxRowsPerRowGroup(group), pq.CreatedBy("perflab", cmp.Or(h.Version, "devel"), ""),
		pq.KeyValueMetadata(keySchema, Schema), pq.KeyValueMetadata(keyVersion, h.Version), pq.KeyValueMetadata(keyHeader, string(header)),
	)
	rows := make([]row, 0, batch)
	flush := func() error {
		_, err := out.Write(rows)
		rows = rows[:0]
		return err
	}
	for c := range calls {
		rows = rows[:len(rows)+1]
		rows[len(rows)-1].set(h, &c)
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

// set fills the row from a call. It takes over the memory of the lists of the
// call before.
func (r *row) set(h result.Header, c *result.Call) {
	first, _ := c.FirstToken()
	last, _ := c.LastToken()
	*r = row{
		Index: int64(c.Index), Target: int32(c.Target), Session: int64(c.Session), Model: cmp.Or(c.Model, h.Model),
		Due: int64(c.Due), Ready: int64(c.Ready), Sent: int64(c.Sent), Wrote: int64(c.Wrote), First: int64(c.First), Headers: int64(c.Headers),
		FirstToken: int64(first), Answer: int64(c.Answer), LastToken: int64(last), UsageAt: int64(c.UsageAt), Done: int64(c.Done), End: int64(c.End),
		DNS: int64(c.DNS), Dial: int64(c.Dial), TLS: int64(c.TLS), Replaced: int32(c.Replaced),
		WantIn: int64(c.WantIn), Want: int64(c.Want), Recount: int64(c.Recount),
		Finish: c.Finish, Status: int32(c.Status), Simulated: c.Sim || h.Simulated || h.Predicted, Field: c.Field,
		Class: string(c.Class), Error: c.Error, Text: c.Text, Reads: int32(c.Reads), Coarse: int32(c.Coarse),
		ChunkNS: r.ChunkNS[:0], ChunkTokens: r.ChunkTokens[:0], ChunkRead: r.ChunkRead[:0], EmptyNS: r.EmptyNS[:0], EmptyRead: r.EmptyRead[:0],
	}
	if c.Session > 0 {
		r.Turn = new(int32(c.Turn))
	}
	if c.New || c.Wrote > 0 { // a call that wrote its request had a connection
		r.ConnNew = &c.New
	}
	if n, from := c.Input(); n > 0 {
		r.Prompt, r.PromptFrom = int64(n), string(from)
	}
	if n, from := c.Output(); n > 0 {
		r.Output, r.OutputFrom = int64(n), string(from)
	}
	if u := c.Usage; u != nil {
		r.UsagePrompt, r.UsageCompletion = int64(u.Prompt), int64(u.Completion)
		r.Cached, r.Reasoning = int64(u.Cached), int64(u.Reasoning)
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
}
