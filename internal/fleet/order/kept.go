package order

import (
	"errors"
	"time"

	"perflab/internal/fleet/ship"
	"perflab/internal/generator"
	"perflab/internal/result"
)

// KeptLoad is what an agent keeps of a load whose leader was gone when it ended.
type KeptLoad struct {
	Load
	Who   string    `json:"who,omitempty"`   // led it, in words
	Ended time.Time `json:"ended"`           // when the agent's part did
	Until time.Time `json:"until"`           // kept no longer than this
	Shard int       `json:"shard"`           // from 0
	Of    int       `json:"of,omitempty"`    // 0: it is not known which shard this was
	Calls int       `json:"calls"`           // that the leader did not say it has
	Bytes int64     `json:"bytes"`           // on the disk
	What  string    `json:"load,omitempty"`  // what all shards sent, in words
	Model string    `json:"model,omitempty"` // of the server under test
	Dir   string    `json:"dir,omitempty"`   // run directory on the leader's machine

	Simulated bool `json:"simulated,omitzero"` // that server was a simulator
}

// GivenUp is what an agent keeps no more.
type GivenUp struct {
	Load
	Calls int    `json:"calls"`
	Why   string `json:"why"`
}

// KeptPart is all that is needed to fetch what an agent keeps of a load.
type KeptPart struct {
	KeptLoad
	Header  *result.Header   `json:"header,omitempty"` // that the leader sent; nil: it is not here
	Agent   *generator.Agent `json:"agent,omitempty"`  // as the header of a run has it; nil likewise
	Done    *Done            `json:"done,omitempty"`   // how the part ended; nil: its process ended before
	Acked   uint64           `json:"acknowledged"`     // the last batch that the leader said it has
	Batches []uint64         `json:"batches"`          // that are here, ascending
	Missing []ship.Gap       `json:"missing,omitempty"`
}

// BatchOf names a batch of calls that is kept.
type BatchOf struct {
	Load
	Seq uint64 `json:"seq"`
}

// rawBatch begins an answer that is a batch; one that says no is JSON.
const rawBatch = 'B'

// AnswerBatch encodes a batch as an answer, or why there is none.
func AnswerBatch(batch []byte, err error) []byte {
	if err != nil {
		return Answer(nil, err)
	}
	return append([]byte{rawBatch}, batch...)
}

// ReadAnswerBatch decodes what AnswerBatch encodes. That there is no batch is a *RefusedError.
func ReadAnswerBatch(raw []byte) ([]byte, error) {
	if len(raw) > 0 && raw[0] == rawBatch {
		return raw[1:], nil
	}
	if _, err := read(raw, KeptBatch); err != nil {
		return nil, err
	}
	return nil, errors.New("the agent answers with no batch of calls")
}
