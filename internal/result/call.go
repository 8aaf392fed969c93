package result

import (
	"math"
	"slices"
	"time"

	"perflab/internal/speculation"
)

// Class says why a call failed; the empty class is success.
type Class string

// Failure classes. A failed call is a fact of the run, never a zero in a mean.
const (
	OK                Class = ""
	Connect           Class = "connect"             // no connection, or it was refused, or TLS failed
	HTTPStatus        Class = "http"                // a status other than 200
	BadBody           Class = "bad_body"            // 200 with something that is not the API's answer
	StreamError       Class = "stream_error"        // an error object inside a 200 stream
	EarlyClose        Class = "early_close"         // the stream ended with neither [DONE] nor a finish reason
	ZeroTokens        Class = "zero_tokens"         // a complete answer without a token
	TimeoutFirstToken Class = "timeout_first_token" // nothing within --timeout-first-token
	TimeoutIdle       Class = "timeout_idle"        // a gap longer than --timeout-idle
	TimeoutTotal      Class = "timeout_total"
	Cancelled         Class = "cancelled" // the run was stopped
)

// Chunk is one piece of a stream that carried tokens. Chunks that came in one
// read share their stamp.
type Chunk struct {
	At     time.Duration // since the run's start; see Header.Clock for who took it
	Tokens int32         // from continuous usage where the server gives it, else 1
	Read   int32         // which read of the answer brought it, from 0
}

// Stamp is when something came that carried no token.
type Stamp struct {
	At   time.Duration
	Read int32
}

// LateRead is a read that brought several messages and may have been made late.
// They share the stamp of its newest byte, so that those before the last may
// have come up to By earlier.
type LateRead struct {
	Read int32         // which read of the answer, from 0
	By   time.Duration // how long before the stamp nothing was waiting on the socket
}

// Conn is how a call came by its connection.
type Conn struct {
	New      bool          `json:"conn_new,omitzero"`      // opened for this call
	DNS      time.Duration `json:"dns_ns,omitzero"`        // of a new one
	Dial     time.Duration `json:"dial_ns,omitzero"`       // of a new one, from asking to having it: DNS, TCP and TLS
	TLS      time.Duration `json:"tls_ns,omitzero"`        // of a new one
	Replaced int           `json:"conn_replaced,omitzero"` // kept ones that the server had closed, met before this one
}

// Usage is what the server said it counted.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Cached     int `json:"cached_tokens,omitzero"`    // of the prompt, from the prefix cache
	Reasoning  int `json:"reasoning_tokens,omitzero"` // of the completion
}

// Call is everything observed about one request. All times are offsets from
// the run's start on the monotonic clock. Figures are computed from calls and
// never stored instead of them.
type Call struct {
	Index   int    `json:"index"`
	Target  int    `json:"target,omitzero"`  // index into Header.Targets
	Agent   int    `json:"agent,omitzero"`   // of Header.Fleet that sent it, from 1; 0: the machine that made the run
	Session int    `json:"session,omitzero"` // conversation, from 1; 0: none
	Turn    int    `json:"turn,omitzero"`    // of the conversation, from 0
	Turns   int    `json:"turns,omitzero"`   // requests that the run has of the session; 0: not known
	Model   string `json:"model,omitempty"`  // where it is not the run's

	Due     time.Duration `json:"due_ns"`              // when the schedule wanted it sent
	Ready   time.Duration `json:"ready_ns"`            // when the concurrency limit let it pass
	Sent    time.Duration `json:"sent_ns"`             // connected, and just before the request was written
	Wrote   time.Duration `json:"wrote_ns,omitzero"`   // its last byte was given to the kernel
	First   time.Duration `json:"first_ns,omitzero"`   // first byte of the answer
	Headers time.Duration `json:"headers_ns,omitzero"` // response headers whole
	UsageAt time.Duration `json:"usage_ns,omitzero"`   // last usage
	Done    time.Duration `json:"done_ns,omitzero"`    // [DONE], or its like in the API spoken
	End     time.Duration `json:"end_ns"`              // stream closed or failure known

	Conn

	Chunks  []Chunk       `json:"-"`                    // see AppendJSON for the compact form
	Empty   []Stamp       `json:"-"`                    // messages that had choices but no token: role, finish, empty text
	Late    []LateRead    `json:"-"`                    // reads whose messages may have come before their stamp, in order; as pairs in "late"
	Reads   int           `json:"reads,omitzero"`       // of the answer, from the socket
	Coarse  int           `json:"coarse,omitzero"`      // of them, without a kernel stamp though Header.Clock says kernel
	Answer  time.Duration `json:"answer_ns,omitzero"`   // first token that was not reasoning
	Text    string        `json:"text,omitempty"`       // kept only with --save-detailed
	Finish  string        `json:"finish,omitempty"`     // finish_reason
	Usage   *Usage        `json:"usage,omitempty"`      // nil: the server sent none
	Status  int           `json:"status,omitzero"`      // HTTP status
	Sim     bool          `json:"simulated,omitzero"`   // the server said it is a simulator
	Field   string        `json:"new_field,omitempty"`  // a growing string field of a delta we do not know
	WantIn  int           `json:"want_input,omitzero"`  // prompt tokens by the workload's own count
	Want    int           `json:"want_output,omitzero"` // max_tokens asked for
	Recount int           `json:"text_tokens,omitzero"` // output tokens by the run's tokenizer, of the text; 0: not counted

	FirstText  int `json:"first_text_bytes,omitzero"` // text that came with the first chunk, in bytes of the answer; 0: not known
	StreamText int `json:"text_bytes,omitzero"`       // and with all chunks

	TraceID string `json:"trace_id,omitempty"` // W3C trace context that was sent; "": none was
	SpanID  string `json:"span_id,omitempty"`  // of the call in that trace

	Speculation *Speculation `json:"speculation,omitempty"` // nil: the server tells nothing of it

	Class Class  `json:"class,omitempty"`
	Error string `json:"error,omitempty"` // one sentence, with the first bytes of a body that explains it
}

// Source says who counted tokens.
type Source string

// Sources of a token count, best first.
const (
	FromUsage    Source = "usage"    // the server's usage object
	FromText     Source = "text"     // the run's tokenizer, over the text that came
	FromChunks   Source = "chunks"   // counted in the stream
	FromWorkload Source = "workload" // the workload's own count of its prompt
)

// OK reports whether the call succeeded.
func (c *Call) OK() bool { return c.Class == OK }

// Output returns the output tokens n and who counted them: the server's usage
// if it gave a completion count, else the run's tokenizer if there is one, else
// the tokens of the chunks.
func (c *Call) Output() (n int, from Source) {
	if c.Usage != nil && c.Usage.Completion > 0 {
		return c.Usage.Completion, FromUsage
	}
	if c.Recount > 0 {
		return c.Recount, FromText
	}
	return c.Counted(), FromChunks
}

// Input returns the prompt tokens and who counted them: the server's usage if
// it gave a prompt count, else the workload.
func (c *Call) Input() (n int, from Source) {
	if c.Usage != nil && c.Usage.Prompt > 0 {
		return c.Usage.Prompt, FromUsage
	}
	return c.WantIn, FromWorkload
}

// connected reports whether the call tells of its connection: neither
// predicted ones do nor those of versions that did not ask.
func (c *Call) connected() bool { return c.New || c.Wrote > 0 }

// Counted returns the tokens of all chunks.
func (c *Call) Counted() int {
	n := 0
	for _, k := range c.Chunks {
		n += int(k.Tokens)
	}
	return n
}

// FirstToken returns the stamp of the first token.
func (c *Call) FirstToken() (at time.Duration, ok bool) {
	if len(c.Chunks) == 0 {
		return 0, false
	}
	return c.Chunks[0].At, true
}

// LastToken returns the stamp of the last token.
func (c *Call) LastToken() (at time.Duration, ok bool) {
	if len(c.Chunks) == 0 {
		return 0, false
	}
	return c.Chunks[len(c.Chunks)-1].At, true
}

// TTFT returns the time to first token, t_first - Sent.
func (c *Call) TTFT() (d time.Duration, ok bool) {
	first, ok := c.FirstToken()
	if !ok {
		return 0, false
	}
	return first - c.Sent, true
}

// last returns when the answer was complete: the last token, or the end of an
// answer without one. Only an API that generates nothing, as one for
// embeddings, answers so with success.
func (c *Call) last() (at time.Duration, ok bool) {
	if at, ok = c.LastToken(); ok {
		return at, true
	}
	return c.End, c.OK() && c.End > 0
}

// E2E returns the end-to-end latency up to the last token, t_last - Sent; up to
// the end of an answer that has none.
func (c *Call) E2E() (d time.Duration, ok bool) {
	last, ok := c.last()
	if !ok {
		return 0, false
	}
	return last - c.Sent, true
}

// TPOT returns the time per output token after the first, in nanoseconds (a
// quotient, so not rounded to a Duration): (t_last - t_first) / (n - k), with
// k the tokens that came in the first read, which is (t_last - t_first) / (n - 1)
// where each token came by itself. It is undefined when nothing came
// after that read: one token has no interval, and tokens that all came at
// once say nothing about how fast they were made.
func (c *Call) TPOT() (ns float64, ok bool) {
	k, later := c.FirstRead()
	n, _ := c.Output()
	if !later || n <= k {
		return 0, false
	}
	return float64(c.Chunks[len(c.Chunks)-1].At-c.Chunks[0].At) / float64(n-k), true
}

// FirstRead returns the tokens of the first read, at least 1, and whether any
// chunk came in a later one.
func (c *Call) FirstRead() (k int, later bool) {
	chunks := 0
	for ; chunks < len(c.Chunks); chunks++ {
		if later = chunks > 0 && !c.joined(chunks); later {
			break
		}
	}
	return c.atStart(chunks), later
}

// atStart returns the tokens of so many chunks from the first on, at least 1.
func (c *Call) atStart(chunks int) int {
	k, each := c.spread()
	for i := 1; i < chunks; i++ {
		k += float64(c.Chunks[i].Tokens) * each
	}
	return max(1, int(math.Round(k)))
}

// joined reports whether chunk i, not the first, came together with the one
// before it: in the same read, or with the same stamp (two reads of what one
// packet brought; and all there is to go by where reads were not counted). The
// two have no gap between them that anyone measured.
func (c *Call) joined(i int) bool {
	a, b := &c.Chunks[i-1], &c.Chunks[i]
	return a.At == b.At || c.Reads > 0 && a.Read == b.Read
}

// Bounds of what one call may claim. A server's count that leaps further is
// broken: as many chunks' tokens are not worth the memory, and a sum over calls
// would be of nothing else.
const (
	MaxCallTokens   = speculation.MaxTokens // generated
	MaxPromptTokens = 1 << 30
)

// Plausible returns the call without a token count that cannot be: then each
// chunk is one token, and of the usage only what it says of the prompt stays,
// or nothing where that is the count. The call itself is left as it is.
func (c *Call) Plausible() (_ *Call, ok bool) {
	sum := 0
	for _, k := range c.Chunks {
		if sum += int(k.Tokens); k.Tokens < 0 || sum > MaxCallTokens {
			return c.tokenPerChunk(), false
		}
	}
	if u := c.Usage; u != nil && !(u.Completion <= MaxCallTokens && min(u.Completion, u.Reasoning) >= 0 && u.plausiblePrompt()) {
		return c.tokenPerChunk(), false
	}
	return c, true
}

// plausiblePrompt reports whether the counts of the prompt can be.
func (u *Usage) plausiblePrompt() bool {
	return max(u.Prompt, u.Cached) <= MaxPromptTokens && min(u.Prompt, u.Cached) >= 0
}

// tokenPerChunk returns the call with one token a chunk.
func (c *Call) tokenPerChunk() *Call {
	fixed := *c
	fixed.Chunks = slices.Clone(c.Chunks)
	for i := range fixed.Chunks {
		fixed.Chunks[i].Tokens = 1
	}
	switch u := c.Usage; {
	case u != nil && u.plausiblePrompt():
		fixed.Usage = &Usage{Prompt: u.Prompt, Cached: u.Cached}
	default:
		fixed.Usage = nil
	}
	return &fixed
}

// Lag returns how much later than possible the client sent the call. With a
// concurrency limit the wait for it is not the client's fault; without one
// every delay after Due is, but for the time that a new connection took. A
// later turn of a conversation is due when the one before it ended.
func (c *Call) Lag(limit int) time.Duration {
	from := c.Due
	if limit > 0 {
		from = max(c.Due, c.Ready)
	}
	return c.Sent - from - c.Dial
}

// spread returns the output tokens of the first chunk, and those that each counted
// token of a later one stands for, so that the chunks of the call sum to n; both are
// 0 without a counted token.
//
// Where the stream counted n tokens, these are they. Where chunks are of several
// tokens that only usage knows, engines that stream every so many send the first
// alone, as they do before they speculate, and servers that pack what they write do
// not. The text tells them apart: the first chunk is one of many if its share of the
// bytes is nearer to a chunk's share than to a token's. It has then the mean
// of all, rounded up since the last may be short.
func (c *Call) spread() (first, each float64) {
	n, _ := c.Output()
	counted := c.Counted()
	if counted == 0 || n == 0 {
		return 0, 0
	}
	one := float64(c.Chunks[0].Tokens)
	mean := float64(n) / float64(counted) // tokens for one counted
	switch {
	case n <= counted:
		return one * mean, mean
	case counted == int(one): // all came with it
		return float64(n), 0
	}
	first = one
	// Chunks of two tokens and more, but for the last one, are at least as many.
	if several := n >= 2*counted-1; several && c.FirstText > 0 {
		byText := float64(n) * float64(c.FirstText) / float64(c.StreamText)
		if byText > one*math.Sqrt(mean) {
			first = math.Ceil(one * mean)
		}
	}
	return first, (float64(n) - first) / (float64(counted) - one)
}

// ms is a duration in milliseconds.
func ms(d time.Duration) float64 { return float64(d) / 1e6 }
