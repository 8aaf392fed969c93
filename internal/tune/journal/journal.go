// Package journal runs a strategy with a journal that is written before each step, and
// goes on from one:
//
//	log, err := journal.Replay(f)                 // empty for a new file
//	err = log.Check(fingerprint)                  // the same study?
//	f.Truncate(log.Size)                          // drop a line cut by a crash
//	j, err := journal.Open(f, log, journal.Head{Study: fingerprint})
//	s, err := staged.New(space, objective, budget)
//	_, err = journal.Resume(s, log)               // no-op for a new file
//	err = journal.Run(ctx, s, j, evaluate)
//
// Resume is replay of the journal through Tell; there is no other code for it. Where a
// journal is kept is its caller's affair.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"perflab/internal/tune"
)

// Format names the journal's layout.
const Format = "perflab.journal/2"

// oldFormat is the layout without checksums. Such a journal goes on as it was
// begun: the version that began it can still resume it.
const oldFormat = "perflab.journal/1"

// Kind says what a record tells.
type Kind string

// Kinds of records. A trial begins with proposed and ends with observed or
// failed; launched, run and infra are facts on the way, kept for the reader
// and never told to a strategy.
const (
	KindStudy    Kind = "study"    // the first record: which study this is
	KindProposed Kind = "proposed" // a strategy asked for a trial
	KindLaunched Kind = "launched" // a deployment of the trial started
	KindRun      Kind = "run"      // one workload of the trial was measured
	KindInfra    Kind = "infra"    // our machinery broke and is tried again
	KindObserved Kind = "observed" // the trial's end: ok, refused or void
	KindFailed   Kind = "failed"   // the trial's end: our machinery broke for good
	KindEnd      Kind = "end"      // the strategy has no more to ask
)

// Record is one line of a journal. The line ends with a checksum of all that
// stands before it, which appendSum writes and checkSum reads.
type Record struct {
	Seq         int               `json:"seq"` // 1, 2, 3 ...
	Kind        Kind              `json:"kind"`
	Head        *Head             `json:"study,omitempty"`
	Proposal    *tune.Proposal    `json:"proposal,omitempty"`
	Observation *tune.Observation `json:"observation,omitempty"`
	Trial       int               `json:"trial,omitzero"` // of a fact
	Data        json.RawMessage   `json:"data,omitempty"` // of a fact, its writer's own
	Sum         string            `json:"sum,omitempty"`  // of a line that was read
}

// Head says which study a journal is of.
type Head struct {
	Format  string `json:"format"`
	Study   string `json:"hash"` // Fingerprint of all that decides the proposals and what they mean
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"` // of the program, for the reader
}

// Fingerprint identifies a study by the SHA-256 of its JSON form.
func Fingerprint(study any) (string, error) {
	b, err := json.Marshal(study)
	if err != nil {
		return "", fmt.Errorf("fingerprint the study: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// Syncer is where a journal goes; *os.File is one.
type Syncer interface {
	io.Writer
	Sync() error // returns when all that was written is safe
}

// Journal appends records, each safe before Append returns. It refuses a
// record that Replay would not accept, and writes nothing more after an error,
// since a line may then be cut.
type Journal struct {
	mu  sync.Mutex // trials that are measured at the same time note what they do
	w   Syncer
	log Log
	err error
}

// Open continues the journal that log was read from, or begins one if
// log is empty. w must stand at log.Size, with nothing behind it. A journal of
// another study is refused, as Log.Check does.
func Open(w Syncer, log Log, head Head) (*Journal, error) {
	head.Format = Format
	if err := log.Check(head.Study); err != nil {
		return nil, err
	}
	log.Trials = slices.Clone(log.Trials) // the caller's stay as they were read
	j := &Journal{w: w, log: log}
	if log.Head != nil {
		return j, nil
	}
	if err := j.Append(Record{Kind: KindStudy, Head: &head}); err != nil {
		return nil, err
	}
	return j, nil
}

// Append writes one record, numbered by the journal, and waits until it is
// safe.
func (j *Journal) Append(r Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	r.Seq = j.log.records + 1
	line, err := encode(r)
	if err != nil {
		return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	if err := j.log.apply(r); err != nil {
		return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	if j.Checksums() {
		line = appendSum(line)
	}
	n, err := j.w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = j.w.Sync()
	}
	if err != nil {
		j.err = fmt.Errorf("write journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return j.err
}

// Note appends a fact about an open trial: KindLaunched, KindRun or
// KindInfra, with any data that encodes as JSON. It must hold no secrets.
func (j *Journal) Note(kind Kind, trial int, data any) error {
	b, err := encode(data)
	if err != nil {
		return fmt.Errorf("journal %s of trial %d: %w", kind, trial, err)
	}
	return j.Append(Record{Kind: kind, Trial: trial, Data: b})
}

// Checksums reports whether the journal has a checksum a record, and may have those
// of the trials' files: Observation.Files. One of an older version has none.
func (j *Journal) Checksums() bool { return j.log.Head != nil && j.log.Head.Format == Format }

// Ended reports whether the journal has the end of a trial.
func (j *Journal) Ended(trial int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return trial >= 1 && trial <= len(j.log.Trials) && j.log.Trials[trial-1].Observation != nil
}

// encode is JSON on a line of its own, in which commands stay legible.
func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return line.Bytes(), err
}

func (j *Journal) observe(o tune.Observation) error {
	kind := KindObserved
	if o.Status == tune.Failed {
		kind = KindFailed
	}
	return j.Append(Record{Kind: kind, Observation: &o})
}

func (j *Journal) end() error {
	if j.log.Ended {
		return nil
	}
	return j.Append(Record{Kind: KindEnd})
}

// sumKey is what stands between a record and its checksum.
const sumKey = `,"sum":"`

// sumOf is the checksum of a line up to its sumKey: 64 bits of SHA-256, so that no
// change that nobody made on purpose goes by.
func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// appendSum adds the checksum to an encoded record, as its last member.
func appendSum(line []byte) []byte {
	text := bytes.TrimSuffix(line, []byte("}\n"))
	return append(slices.Clip(text), sumKey+sumOf(text)+"\"}\n"...)
}

// checkSum is an error where a line is not as it was written.
func checkSum(line []byte, r Record) error {
	if r.Sum == "" {
		return errors.New("it has no checksum")
	}
	text, ok := bytes.CutSuffix(line, []byte(sumKey+r.Sum+"\"}\n"))
	if !ok || sumOf(text) != r.Sum {
		return errors.New("it was changed after it was written, for its checksum does not match")
	}
	return nil
}

func foreign(trial int) error {
	return fmt.Errorf("the journal was made by another study or version: its trial %d is not the one proposed now; resume with the study file and the version it was begun with, or begin anew in an empty directory", trial)
}
