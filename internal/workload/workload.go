// Package workload turns a dataset, an arrival schedule and a seed into a
// deterministic sequence of requests.
//
//	w, err := workload.Open(workload.Spec{Dataset: "random", NumPrompts: 100})
//	for r := range w.All() { ... }
//
// Invariants: the sequence is a pure function of the Spec (and of the bytes of
// the dataset file); Due never decreases; shard i of n is exactly the requests
// whose Index % n == i; a made-up prompt is built when it is yielded and is
// exactly Request.Input tokens by package token.
//
// Deliberately absent: tokenizer files (lengths are by package token; the
// server's usage is the truth a run reports), conversations of several turns,
// and byte-for-byte the samples of other tools, whose random numbers differ
// from version to version. Fingerprint tells whether two runs sent the same.
package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"
)

// Request is what to send and when it is due.
type Request struct {
	Index  int
	Due    time.Duration // offset from the start of the run
	Prompt string        // the last user message, or the text to complete, embed or rank against
	Input  int           // prompt tokens by the workload's own count, history and system text included
	Output int           // max_tokens; 0: the server's default
	EOS    bool          // the server may stop early; false sends ignore_eos

	IDs       []int32         // token ids to send in place of Prompt, where the API takes them
	System    string          // system message before everything else
	History   []Message       // turns of the conversation before Prompt, oldest first
	Images    []string        // of the last user message: data: or http URLs
	Documents []string        // to rank against Prompt, or further texts to embed
	Model     string          // in place of the run's model: a LoRA adapter's name
	Fields    json.RawMessage // JSON object merged into the body: tools, response_format and the like

	Session int // conversation, from 1; 0: the request stands alone
	Turn    int // of the conversation, from 0
}

// Message is one turn of a conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Tokenizer turns text into a model's tokens and back. It is safe for
// concurrent use.
type Tokenizer interface {
	// Encode returns the ids of a text; special adds what the model's own
	// template puts around one, such as a beginning-of-text token.
	Encode(text string, special bool) ([]int32, error)
	// Decode returns the text of ids, special tokens left out.
	Decode(ids []int32) (string, error)
	// Ordinary returns the ids below the vocabulary's size that are not
	// special, ascending; nil where that is not known.
	Ordinary() []int32
	// Name says which it is, for the record: a file and its hash, or a server.
	Name() string
}

// Workload is an opened Spec: all lengths and due times, and the prompts on
// demand. It is immutable and safe for concurrent use.
type Workload struct {
	spec Spec
	src  source
	due  []time.Duration // by index, ascending
}

// Totals are the sums over a workload's requests.
type Totals struct {
	Requests int
	Input    int           // prompt tokens by package token
	Output   int           // tokens asked for
	Span     time.Duration // due time of the last request
}

// Open validates the spec, reads its dataset and lays out the schedule.
func Open(s Spec) (*Workload, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	s = s.Defaults()
	src, err := open(s)
	if err != nil {
		return nil, err
	}
	due, err := schedule(s, src.rows)
	if err != nil {
		return nil, err
	}
	return &Workload{spec: s, src: src, due: due}, nil
}

// Spec returns the spec with its defaults filled in: what was opened.
func (w *Workload) Spec() Spec { return w.spec }

// Len returns the number of requests.
func (w *Workload) Len() int { return len(w.due) }

// All yields every request in order of Due.
func (w *Workload) All() iter.Seq[Request] { return w.Shard(0, 1) }

// Shard yields the requests whose Index % n == i: n machines that each send
// one shard send exactly what one machine would.
func (w *Workload) Shard(i, n int) iter.Seq[Request] {
	if n < 1 || i < 0 || i >= n {
		panic(fmt.Sprintf("workload: no shard %d of %d", i, n))
	}
	return func(yield func(Request) bool) {
		for k := i; k < len(w.due); k += n {
			if !yield(w.request(k)) {
				return
			}
		}
	}
}

func (w *Workload) request(k int) Request {
	r := w.src.rows[k]
	return Request{
		Index:  k,
		Due:    w.due[k],
		Prompt: w.src.prompt(k),
		Input:  r.input,
		Output: r.output,
		EOS:    !w.spec.IgnoreEOS,
	}
}

// Burst is how many requests are due at the first instant.
func (w *Workload) Burst() int {
	n := 0
	for n < len(w.due) && w.due[n] == w.due[0] {
		n++
	}
	return n
}

// Totals sums lengths without building a prompt.
func (w *Workload) Totals() Totals {
	t := Totals{Requests: len(w.due), Span: w.due[len(w.due)-1]}
	for _, r := range w.src.rows {
		t.Input += r.input
		t.Output += r.output
	}
	return t
}

// Fingerprint is equal for two workloads exactly when they send the same
// prompts and output lengths at the same times. It builds every prompt once
// (about 10 ns a token).
func (w *Workload) Fingerprint() string {
	h := sha256.New()
	var b [33]byte
	for r := range w.All() {
		binary.LittleEndian.PutUint64(b[0:], uint64(r.Index))
		binary.LittleEndian.PutUint64(b[8:], uint64(r.Due))
		binary.LittleEndian.PutUint64(b[16:], uint64(r.Output))
		binary.LittleEndian.PutUint64(b[24:], uint64(len(r.Prompt)))
		b[32] = 0
		if r.EOS {
			b[32] = 1
		}
		h.Write(b[:]) // never fails
		io.WriteString(h, r.Prompt)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Drop is one kind of dataset row that was left out.
type Drop struct {
	Reason string // reads after "rows": "with no output tokens"
	Rows   int
}

// Dropped returns which rows of the dataset file were left out, most first,
// and how many were read in all.
func (w *Workload) Dropped() (drops []Drop, read int) {
	return w.src.drops.list(), w.src.read
}
