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
// Of a conversation the sequence has the first turn. Next gives each later one
// when the answer before it is there, because it may be part of the prompt.
//
// Deliberately absent: tokenizer files (lengths are by package token; the
// server's usage is the truth a run reports) and byte-for-byte the samples of other tools, whose random numbers differ
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
	"sync"
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
// demand. It never changes for its callers and is safe for concurrent use.
type Workload struct {
	spec Spec
	src  source
	due  []time.Duration // by index, ascending; of conversations, their first turns
	more *endless        // nil: there are as many rows as due times
	made sync.Map        // images by index that Prepare made
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
	src, due, err := lay(s)
	if err != nil {
		return nil, err
	}
	w := &Workload{spec: s, src: src, due: due}
	if s.endless() {
		w.more = &endless{spec: s, src: src}
	}
	return w, nil
}

// Spec returns the spec with its defaults filled in: what was opened.
func (w *Workload) Spec() Spec { return w.spec }

// Len returns the number of requests, all turns of conversations among them; 0
// where it is not known in advance because time decides.
func (w *Workload) Len() int {
	switch {
	case w.spec.timeDecides():
		return 0
	case w.src.talks != nil:
		return w.src.turns()
	}
	return len(w.due)
}

// All yields every request in order of Due; of a conversation its first turn,
// after which Next has the others.
func (w *Workload) All() iter.Seq[Request] { return w.Shard(0, 1) }

// Shard yields the requests whose Index % n == i, of conversations those whose
// (Session-1) % n == i: n machines that each send one shard send exactly what
// one machine would.
func (w *Workload) Shard(i, n int) iter.Seq[Request] {
	if n < 1 || i < 0 || i >= n {
		panic(fmt.Sprintf("workload: no shard %d of %d", i, n))
	}
	return func(yield func(Request) bool) {
		for k := i; w.more != nil || k < len(w.due); k += n {
			if !yield(w.request(k)) {
				return
			}
		}
	}
}

func (w *Workload) request(k int) Request {
	src, i, before := w.row(k)
	r := Request{
		Index:  k,
		Prompt: src.prompt(i),
		Input:  src.rows[i].input,
		Output: src.rows[i].output,
		EOS:    !w.spec.IgnoreEOS,
	}
	if w.more == nil {
		r.Due = w.due[k]
	}
	if src.fill != nil {
		src.fill(i, &r)
	}
	if src.talks != nil {
		src.talks[i].open(&r, k, before+src.first[i])
	}
	w.mix(&r, k)
	return r
}

// Burst is how many requests are due at the first instant.
func (w *Workload) Burst() int {
	n := 0
	for n < len(w.due) && w.due[n] == w.due[0] {
		n++
	}
	return n
}

// Totals sums lengths without building a prompt. Where time decides how many
// requests there are, Requests is 0 and the sums are of the rows drawn so far.
// The input of a conversation's later turns is planned: with the answers that
// the dataset has, or as many tokens as were asked for.
func (w *Workload) Totals() Totals {
	t := Totals{Requests: w.Len(), Span: w.due[len(w.due)-1]}
	for _, r := range w.src.rows {
		t.Input += r.input
		t.Output += r.output
	}
	return t
}

// Fingerprint is equal for two workloads exactly when they send the same
// prompts and output lengths at the same times. It builds every prompt once
// (about 10 ns a token); of an endless workload the first thousand. Answers
// that a server has yet to generate are no part of it.
func (w *Workload) Fingerprint() string {
	h := sha256.New()
	var b [33]byte
	for r := range w.fingerprinted() {
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
		hashRest(h, r)
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
