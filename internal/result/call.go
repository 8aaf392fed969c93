package result

import "time"

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
	At     time.Duration // since the run's start, taken when read and before decoding
	Tokens int           // from continuous usage where the server gives it, else 1
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
	Index  int `json:"index"`
	Target int `json:"target,omitzero"` // index into Header.Targets

	Due     time.Duration `json:"due_ns"`              // when the schedule wanted it sent
	Ready   time.Duration `json:"ready_ns"`            // when the concurrency limit let it pass
	Sent    time.Duration `json:"sent_ns"`             // just before the request was written
	Headers time.Duration `json:"headers_ns,omitzero"` // response headers read
	End     time.Duration `json:"end_ns"`              // stream closed or failure known

	Chunks []Chunk       `json:"-"`                    // see MarshalJSON for the compact form
	Answer time.Duration `json:"answer_ns,omitzero"`   // first token that was not reasoning
	Text   string        `json:"text,omitempty"`       // kept only with --save-detailed
	Finish string        `json:"finish,omitempty"`     // finish_reason
	Usage  *Usage        `json:"usage,omitempty"`      // nil: the server sent none
	Status int           `json:"status,omitzero"`      // HTTP status
	Sim    bool          `json:"simulated,omitzero"`   // the server said it is a simulator
	Field  string        `json:"new_field,omitempty"`  // a growing string field of a delta we do not know
	WantIn int           `json:"want_input,omitzero"`  // prompt tokens by the workload's own count
	Want   int           `json:"want_output,omitzero"` // max_tokens asked for

	Class Class  `json:"class,omitempty"`
	Error string `json:"error,omitempty"` // one sentence, with the first bytes of a body that explains it
}
