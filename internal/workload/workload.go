// Package workload turns a dataset, an arrival schedule and a seed into a
// deterministic sequence of requests.
//
//	w, err := workload.Open(workload.Spec{Dataset: "random", NumPrompts: 100})
//	for r := range w.All() { ... }
//
// Invariants: the sequence is a pure function of the Spec (and of the bytes of
// the dataset file, and of the tokenizer where one is given); Due never
// decreases; shard i of n is exactly the requests whose Index % n == i; a
// made-up prompt is built when it is yielded and is exactly Request.Input
// tokens by package token, or by the tokenizer. The samples of `vllm bench
// serve` (random_rng vllm, and sharegpt) are measured by tokenizing them, so
// their texts are kept.
//
// Of a conversation the sequence has the first turn. Next gives each later one
// when the answer before it is there, because it may be part of the prompt.
//
// Deliberately absent: tokenizer files (OpenWith takes a Tokenizer; without one
// lengths are by package token, and the server's usage is the truth a run
// reports). Fingerprint tells whether two runs sent the same.
package workload

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"perflab/internal/field"
	"perflab/internal/stat"
)

// Workload is an opened Spec: all lengths and due times, and the prompts on
// demand. It never changes for its callers and is safe for concurrent use.
type Workload struct {
	spec           Spec
	src            source
	due            []time.Duration // by index, ascending; of conversations, their first turns
	supply         *supply         // nil: there are as many rows as due times
	long           *long           // nil: due has them; else they are drawn on the way
	preparedImages sync.Map        // images by index that Prepare made
	builder        promptBuilder
	nonce          nonce
	salts          sync.Map // of passes from the second on, by their number
}

// Open validates the spec, reads its dataset and lays out the schedule.
func Open(s Spec) (*Workload, error) { return OpenWith(s, nil) }

// OpenWith is Open with the tokenizer that the spec names; nil measures by
// package token.
func OpenWith(s Spec, tok Tokenizer) (*Workload, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Tokenizer != "" && tok == nil {
		return nil, field.Errorf("tokenizer", "%s was not opened, so that no length can be measured by it", s.Tokenizer)
	}
	s = s.Defaults()
	p, err := newPromptBuilder(tok, is(s.row().ofWords, s))
	if err != nil {
		return nil, err
	}
	w := &Workload{spec: s, builder: p, long: newLong(s)}
	if w.long != nil {
		some := s
		some.NumPrompts = min(w.long.n, longRows)
		w.src, err = s.row().load(some, p)
	} else {
		w.src, w.due, err = openScheduled(s, p)
	}
	if err != nil {
		return nil, err
	}
	if endless(s) {
		w.supply = &supply{spec: s, dataset: s.row(), builder: p, src: w.src}
	}
	if err := w.measure(); err != nil {
		return nil, err
	}
	return w, nil
}

// Spec returns the spec with its defaults filled in: what was opened.
func (w *Workload) Spec() Spec { return w.spec }

// Len returns the number of requests, all turns of conversations among them; 0
// where it is not known in advance because time decides.
func (w *Workload) Len() int {
	switch {
	case timeDecides(w.spec):
		return 0
	case w.src.conversations != nil:
		return w.src.turns()
	case w.long != nil:
		return w.long.n
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
		if w.long != nil {
			longShard(w, i, n, yield)
			return
		}
		for k := i; w.supply != nil || k < len(w.due); k += n {
			if !yield(w.request(k)) {
				return
			}
		}
	}
}

func (w *Workload) request(k int) Request {
	src, i, before := w.row(k)
	if src.conversations != nil && src.conversations[i].tree != nil {
		t, _ := trees{w}.session(k)
		r := trees{w}.turn(k, t.from)
		if w.supply == nil {
			r.Due = w.due[k]
		}
		return r
	}
	r := Request{
		Index:  k,
		Prompt: src.prompt(i),
		Input:  src.row(i).input,
		Output: src.row(i).output,
		EOS:    !w.spec.IgnoreEOS,
	}
	if w.supply == nil && w.long == nil {
		r.Due = w.due[k]
	}
	if src.fill != nil {
		src.fill(i, &r)
	}
	if src.conversations != nil {
		src.conversations[i].open(&r, k, before+src.first[i])
	}
	w.addModelAndImages(&r, k)
	salt := saltOf(w, k)
	salt.mark(&r)
	r.Input += salt.tokens * src.row(i).texts()
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

// PeakDue is the most requests that are due within any span of that length, of
// conversations how many there are: each goes on after its first turn. It is 0
// where there is no end to them.
func (w *Workload) PeakDue(span time.Duration) int {
	switch {
	case w.supply != nil:
		return 0
	case w.long != nil:
		return w.long.peak(span)
	case w.Conversations():
		return len(w.due)
	}
	most, from := 0, 0
	for i, at := range w.due {
		for w.due[from] <= at-span {
			from++
		}
		most = max(most, i+1-from)
	}
	return most
}

// Offered is the rate at which requests, or conversations, are due, in 1/s: the
// one that was drawn for, or the mean of the due times; 0 when all are due at
// once.
func (w *Workload) Offered() float64 {
	if r := w.spec.Rate; !r.Inf() {
		return float64(r)
	}
	span := time.Duration(0)
	if n := len(w.due); n > 0 {
		span = w.due[n-1]
	}
	if span == 0 {
		return 0
	}
	return float64(len(w.due)-1) / span.Seconds()
}

// MeasuredBy names the tokenizer; "" for package token's approximation.
func (w *Workload) MeasuredBy() string {
	if w.builder.tok == nil {
		return ""
	}
	return w.builder.tok.Name()
}

// KnowsInput reports whether Request.Input is the length of what is sent, and no
// estimate: it is where prompts are made to their length or the model's tokenizer
// measured them, and nothing is sent that it does not count (images, tools) or that
// is counted more than once (documents to rank).
func (w *Workload) KnowsInput() bool {
	s := w.spec
	measured := s.MadeUp() || w.builder.tok != nil
	beside := s.RandomImages > 0 || s.Generates() || s.Dataset == jsonl().name ||
		slices.ContainsFunc(w.src.rows, func(r row) bool { return r.documents > 0 })
	return measured && !beside
}

// Totals sums lengths without building a prompt. Where time decides how many
// requests there are, Requests is 0 and the sums are of the rows drawn at first.
// The input of a conversation's later turns is planned: with the answers that
// the dataset has, or as many tokens as were drawn for.
func (w *Workload) Totals() Totals {
	t := Totals{Requests: w.Len()}
	if len(w.due) > 0 {
		t.Span = w.due[len(w.due)-1]
	}
	for i, r := range w.src.rows {
		times := 1
		if w.long != nil {
			t.Span, times = w.long.span, w.src.repeats(i, w.long.n)
		}
		t.Input += r.input * times
		t.Output += r.output * times
		prompts := r.texts()
		if w.src.conversations != nil {
			prompts = len(w.src.conversations[i].turns) // each repeats the first one's start
		}
		t.Input += w.nonce.tokens * prompts * times
	}
	return t
}

// Dropped returns which rows of the dataset file were left out, most first,
// and how many were read in all.
func (w *Workload) Dropped() (drops []Drop, read int) {
	return w.src.drops.list(), w.src.read
}

// NeedsChat is Spec.NeedsChat, the rows of the dataset looked at: they have a
// value without a path.
func (w *Workload) NeedsChat() (path, value string) {
	if path, value = w.spec.NeedsChat(); path != "" {
		return path, value
	}
	return "", w.src.chat
}

// measure sets the lengths that only the finished requests have: those of rows
// that were read before there was a tokenizer. The nonce comes after it.
func (w *Workload) measure() error {
	if w.builder.tok != nil && w.src.estimated {
		rows := slices.Clone(w.src.rows)
		for i := range rows {
			n, err := w.builder.countRequest(w.request(i))
			if err != nil {
				return err
			}
			rows[i].input = n
		}
		w.src.rows = rows
		if w.supply != nil {
			w.supply.src = w.src
		}
	}
	var err error
	w.nonce, err = newNonce(w.spec.Nonce, w.src.ids, w.builder)
	return err
}

// timeDecides reports whether the number of requests depends on how fast the
// server answers.
func timeDecides(s Spec) bool { return s.Duration != "" && (s.closed() || s.row().sessions) }

// Until is when a run is over whose number of requests time decides: from this
// offset on no request is sent. 0: the requests are all sent.
func (w *Workload) Until() time.Duration {
	if !timeDecides(w.spec) {
		return 0
	}
	return w.spec.length()
}

// Closed reports whether a request is due when the concurrency limit lets it
// pass. That is so in a closed loop of conversations or bounded by time; one of
// a fixed number of requests has them all due at once, as in `vllm bench
// serve`, so that the wait for the limit shows.
func (w *Workload) Closed() bool {
	return w.spec.closed() && (w.spec.Duration != "" || w.Conversations())
}

// openScheduled opens the dataset of a valid spec with its defaults and lays out the
// schedule.
func openScheduled(s Spec, p promptBuilder) (source, []time.Duration, error) {
	due, err := dueInTime(s)
	if err != nil {
		return source{}, nil, err
	}
	drawn := s
	switch {
	case s.row().trace && due != nil:
		drawn.NumPrompts = 0 // its rows are counted below
	case due != nil:
		drawn.NumPrompts = len(due)
	case endless(s):
		drawn.NumPrompts = firstDraw(s, s.row())
	}
	src, err := drawn.row().load(drawn, p)
	if err != nil {
		return source{}, nil, err
	}
	switch {
	case due == nil:
		if due, err = schedule(s, src.rows); err != nil {
			return source{}, nil, err
		}
		if d := s.length(); d > 0 && s.Arrival == "trace" {
			due = due[:len(due)-len(trailing(due, d))]
		}
	case s.row().trace && len(due) > len(src.rows):
		return source{}, nil, fmt.Errorf("the schedule holds %d requests, and the trace, which is not repeated, %d usable rows: "+
			"choose a shorter time or a lower rate", len(due), len(src.rows))
	}
	n := min(len(due), len(src.rows))
	src.rows, due = src.rows[:n], due[:n]
	src.number()
	return src, due, nil
}

// trailing are the due times that are not before an end.
func trailing(due []time.Duration, end time.Duration) []time.Duration {
	n, _ := slices.BinarySearch(due, end)
	return due[n:]
}

// Known says whether the totals are the ones that published runs have, so that
// figures can be compared with theirs; "" where none are known.
func (w *Workload) Known() string {
	known := w.spec.row().known
	if known == nil {
		return ""
	}
	t := w.Totals()
	t.Input -= w.nonce.tokens * t.Requests
	return known(w.spec, t, w.builder.tok)
}

// row is supply.row, or the row itself where there is an end.
func (w *Workload) row(k int) (src source, i, before int) {
	if w.supply == nil {
		return w.src, k, 0
	}
	return w.supply.row(k)
}

// Generates is Spec.Generates.
func (w *Workload) Generates() bool { return w.spec.Generates() }

// Conversations reports whether there are later turns to ask Next for.
func (w *Workload) Conversations() bool { return w.src.conversations != nil }

// addModelAndImages gives a request its adapter, the same for all of a conversation k, and
// its images.
func (w *Workload) addModelAndImages(r *Request, k int) {
	s := &w.spec
	if n := len(s.LoraModules); n > 0 {
		pick := k % n
		if s.LoraAssignment == "random" {
			pick = stat.Stream(s.Seed, "lora "+strconv.Itoa(k)).IntN(n)
		}
		r.Model = s.LoraModules[pick]
	}
	if s.RandomImages == 0 {
		return
	}
	if made, ok := w.preparedImages.LoadAndDelete(r.Index); ok {
		r.Images = made.([]string)
		return
	}
	r.Images = syntheticImages(*s, r.Index)
}
