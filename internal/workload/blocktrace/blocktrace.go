// Package blocktrace is the lines of traces that tell of each request when it came, how long it was, and
// which blocks of tokens its prompt is made of: those that Mooncake publishes, and those that perflab records.
//
//	{"timestamp":0,"input_length":100,"output_length":8,"hash_ids":[7,9],"block_size":64}
//
// An id names the content of a block and of all blocks before it, so two prompts are alike as far as
// their lists of ids are.
//
// Deliberately absent: the texts that stand for ids, which package workload makes up.
package blocktrace

import (
	"encoding/json"
	"fmt"
)

// Row is one line: what a replay needs, and what a recording knows besides. Times are in milliseconds.
type Row struct {
	Timestamp float64 `json:"timestamp"` // when it came
	Input     int     `json:"input_length"`
	Output    int     `json:"output_length"`
	IDs       []int64 `json:"hash_ids"`
	Block     int     `json:"block_size,omitzero"` // tokens of a block; 0: DefaultBlock
	Recorded
}

// Recorded is what a recording says of a request beyond what is replayed.
type Recorded struct {
	Duration  float64 `json:"duration,omitzero"`   // from its coming to the end of its answer
	FirstByte float64 `json:"first_byte,omitzero"` // and to the first byte of it
	Session   string  `json:"session,omitzero"`    // which requests belong together
	Status    int     `json:"status,omitzero"`     // of the answer
	Error     string  `json:"error,omitzero"`      // class of what failed, as in calls.jsonl
	Simulated bool    `json:"simulated,omitzero"`  // by a simulated engine, whose answers and times are not of hardware

	API         string   `json:"api,omitzero"`
	Model       string   `json:"model,omitzero"`
	Stream      bool     `json:"stream,omitzero"`
	MaxTokens   int      `json:"max_tokens,omitzero"`
	Choices     int      `json:"n,omitzero"`
	Temperature *float64 `json:"temperature,omitempty"` // nil: it did not say
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`

	// What counted, where it was not the engine, and what cut the prompt into blocks of how many tokens
	// it took it for.
	InputBy    string `json:"input_by,omitzero"`
	OutputBy   string `json:"output_by,omitzero"`
	BlocksBy   string `json:"blocks_by,omitzero"`
	TextTokens int    `json:"text_tokens,omitzero"`

	Text json.RawMessage `json:"text,omitempty"` // of the prompt, only where somebody wanted it
}

// DefaultBlock is how many tokens an id stands for in the traces that Mooncake publishes.
const DefaultBlock = 512

// Keys are those of a line, as an error names them.
const Keys = "timestamp, input_length, output_length, hash_ids, block_size and what perflab record adds"

// Tokens is how many tokens an id of the line stands for.
func (r Row) Tokens() int {
	if r.Block == 0 {
		return DefaultBlock
	}
	return r.Block
}

// Blocks is how many blocks so many tokens take.
func Blocks(tokens, block int) int { return (tokens + block - 1) / block }

// Check says what is wrong with the blocks of a line whose lengths are possible.
func (r Row) Check() error {
	if r.Block < 0 {
		return fmt.Errorf("a block_size of %d: a block has at least one token", r.Block)
	}
	if len(r.IDs) != Blocks(r.Input, r.Tokens()) {
		return fmt.Errorf("%d hash_ids of %d tokens each do not make an input_length of %d", len(r.IDs), r.Tokens(), r.Input)
	}
	return nil
}

// End is when its answer had ended.
func (r Row) End() float64 { return r.Timestamp + r.Duration }
