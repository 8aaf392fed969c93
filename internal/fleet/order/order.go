// Package order is what a leader and an agent of a fleet say to each other: orders, answers and
// reports, as JSON, and the words of package bus that they go by.
//
//	answer, err := order.Ask[order.Ready](ctx, conn, id, order.Prepare, job)
//
// Invariants: every order about a load has its epoch, a number that grows with each load of a hub; an
// agent takes no order of an epoch other than that of the load that it prepared last. Instants
// are nanoseconds of the agent's own clock, which begins anew with its process.
//
// Deliberately absent: what is done about an order.
package order

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"perflab/internal/bench"
	"perflab/internal/generator"
	"perflab/internal/result"
)

// Orders, which a leader gives: words of bus.Do.
const (
	Clock   = "clock"   // -> Times
	Prepare = "prepare" // Job -> Ready
	Start   = "start"   // Instant
	Lease   = "lease"   // Load: go on
	Enough  = "enough"  // Load: send nothing more
	Stop    = "stop"    // Load: cancel what is in flight

	Kept      = "kept"       // Load -> KeptPart: what is kept of a load that nobody took
	KeptBatch = "kept.batch" // BatchOf -> AnswerBatch: some of its calls
	Forget    = "kept.drop"  // Load: what is kept of it is somewhere else, or wanted by nobody
)

// Reports, which an agent makes: words of bus.Up.
const (
	Here  = "here"  // Facts, every HereEvery
	Live  = "live"  // Progress, with a dot and the epoch after it
	Calls = "calls" // a batch, likewise; answered when the leader has it
	End   = "end"   // Done, likewise; answered
)

// HereEvery is how often an agent says that it is there, and what it is.
const HereEvery = time.Second

// Facts are what an agent is.
type Facts struct {
	Name      string               `json:"name"`
	Version   string               `json:"version"`
	Process   string               `json:"process"` // another one after a restart
	Since     time.Time            `json:"since"`   // when that began
	Host      generator.Host       `json:"host"`
	Memory    int64                `json:"memory_bytes,omitempty"`
	Links     []Link               `json:"links,omitempty"`
	GPUs      []GPU                `json:"gpus,omitempty"`
	Engines   []string             `json:"engines,omitempty"`        // names of package engine, as they are installed
	Starts    []string             `json:"starts_engines,omitempty"` // for studies, the ways to: see package node
	Labels    map[string]string    `json:"labels,omitempty"`
	Held      *Held                `json:"held,omitempty"` // by a study, whose engines it starts; nil: by nobody
	Work      *Work                `json:"work,omitempty"`
	SelfCheck *generator.SelfCheck `json:"self_check,omitempty"`
	Streams   int                  `json:"most_streams,omitempty"`  // connections to one target that the system lets it have
	Limit     string               `json:"streams_limit,omitempty"` // what sets that
	Epoch     uint64               `json:"epoch,omitempty"`         // of the load that it is at; 0: none
	Doing     string               `json:"doing,omitempty"`         // in words; "": nothing
	Kept      []KeptLoad           `json:"kept,omitempty"`          // what no leader took, the oldest first
	GaveUp    []GivenUp            `json:"gave_up,omitempty"`       // what it kept and keeps no more, though nobody took it; since it was started
}

// Work is the load that an agent is at, for who looks at the fleet.
type Work struct {
	State string `json:"state"` // in words
	Shard int    `json:"shard"` // from 0
	Of    int    `json:"of"`
	Who   string `json:"who,omitempty"`   // makes the run, in words
	Load  string `json:"load,omitempty"`  // what all shards send, in words; "": the agent has not opened it yet
	Model string `json:"model,omitempty"` // of the server under test

	Simulated bool `json:"simulated,omitzero"` // that server is a simulator
}

// Held is who holds a node for a study, also between its loads.
type Held struct {
	Who   string    `json:"who,omitempty"`   // leads the study, in words
	Study string    `json:"study,omitempty"` // its name
	Since time.Time `json:"since"`
	Runs  []Engine  `json:"runs,omitempty"` // engines that run now
}

// Engine is one that a node runs.
type Engine struct {
	Name    string    `json:"name"` // of the replica
	Kind    string    `json:"kind"` // process or container
	Command string    `json:"command,omitempty"`
	Since   time.Time `json:"since"`
}

// Link is a network interface.
type Link struct {
	Name string `json:"name"`
	Mbps int    `json:"mbps,omitempty"` // 0: it does not say
}

// GPU is an accelerator.
type GPU struct {
	Name   string `json:"name"`
	Memory int64  `json:"memory_bytes,omitempty"`
}

// Times are an agent's clock when a question came and when its answer left.
type Times struct {
	Received time.Duration `json:"received_ns"`
	Answered time.Duration `json:"answered_ns"`
	Process  string        `json:"process"` // whose clock it is
}

// Job is a shard that an agent is to send.
type Job struct {
	Load
	bench.ShardJob
	Fetch []File        `json:"fetch,omitempty"`   // that the shard needs: they stand in ShardJob.Files when they are there
	Lease time.Duration `json:"lease_ns"`          // the load ends by itself when no Lease came for so long
	Most  time.Duration `json:"most_ns,omitempty"` // it ends after so long whatever comes
	Who   string        `json:"who,omitempty"`     // makes the run, in words

	Header result.Header `json:"header"`        // of the run, with all that send it: for a leader that is gone when the calls are fetched
	Dir    string        `json:"dir,omitempty"` // run directory on the leader's machine; "": it keeps none
}

// File is one that an agent fetches from the hub.
type File struct {
	Key    string `json:"key"`
	Digest string `json:"digest"`
	Name   string `json:"name,omitempty"` // below a directory of the key's own; "": the key is the file
}

// Load names a load.
type Load struct {
	Epoch uint64 `json:"epoch"`
}

// Ready is the answer to a Job.
type Ready struct {
	Agent   generator.Agent `json:"agent"`
	Process string          `json:"process"`
}

// Instant is when a load starts.
type Instant struct {
	Load
	At time.Duration `json:"at_ns"`
}

// Progress is how far an agent is.
type Progress struct {
	Sent     int64 `json:"sent"`
	InFlight int64 `json:"in_flight"`
	Tokens   int64 `json:"tokens"`
}

// Done is how an agent's part ended.
type Done struct {
	Client  generator.Client `json:"client"`
	Sent    int              `json:"sent"`
	Batches uint64           `json:"batches"`           // of calls; all were taken but for those in Left
	Left    string           `json:"left,omitempty"`    // why calls did not come; "": all did
	Wrong   string           `json:"wrong,omitempty"`   // why there was no load, or not all of it
	Late    time.Duration    `json:"late_ns,omitempty"` // the start instant was past by so much: nothing was sent
}

// answer is how an agent answers, where an order has one.
type answer struct {
	Error string          `json:"error,omitempty"`
	Value json.RawMessage `json:"value,omitempty"`
}

// RefusedError says why an agent does not do what it was told.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return e.Text }

// Answer encodes what an agent answers.
func Answer(v any, err error) []byte {
	var a answer
	if err == nil && v != nil {
		a.Value, err = json.Marshal(v)
	}
	if err != nil {
		a = answer{Error: err.Error()}
	}
	return Encode(a)
}

// Asker sends a message and waits for its answer, as bus.Conn does.
type Asker interface {
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
}

// Ask gives an order and decodes the answer. That the agent does not do it is a *RefusedError.
func Ask[T any](ctx context.Context, conn Asker, subject string, v any) (T, error) {
	var out T
	raw, err := conn.Request(ctx, subject, Encode(v))
	if err != nil {
		return out, err
	}
	value, err := read(raw, subject)
	if err != nil || len(value) == 0 {
		return out, err
	}
	if err := json.Unmarshal(value, &out); err != nil {
		return out, fmt.Errorf("read the answer to %s: %w", subject, err)
	}
	return out, nil
}

// Refused is why an answer that has no value says no; nil: it says yes.
func Refused(raw []byte) error {
	_, err := read(raw, Calls)
	return err
}

// read is the value of an answer, or why it says no.
func read(raw []byte, to string) (json.RawMessage, error) {
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("read the answer to %s: %w", to, err)
	}
	if a.Error != "" {
		return nil, &RefusedError{a.Error}
	}
	return a.Value, nil
}

// Encode encodes a message.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("fleet: encode %T: %v", v, err)) // all of them are data
	}
	return b
}

// Decode decodes a message.
func Decode[T any](data []byte) (T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}

// Of is a report's word for one load.
func Of(word string, epoch uint64) string { return fmt.Sprintf("%s.%d", word, epoch) }

// Batch encodes a batch of calls with its number.
func Batch(seq uint64, batch []byte) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 8+len(batch)), seq), batch...)
}

// ReadBatch decodes what Batch encodes.
func ReadBatch(data []byte) (seq uint64, batch []byte, err error) {
	if len(data) < 8 {
		return 0, nil, errors.New("a batch of calls is shorter than its number")
	}
	return binary.BigEndian.Uint64(data), data[8:], nil
}
