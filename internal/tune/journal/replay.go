package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"perflab/internal/tune"
)

// Log is what a journal holds. The zero Log is that of an empty one.
type Log struct {
	Head   *Head // nil: nothing is recorded yet
	Trials []Logged
	Ended  bool  // the strategy had no more to ask
	Size   int64 // bytes up to the end of the last whole line: where to go on writing
	Cut    int64 // bytes of a last line without its end, to be truncated

	records int
}

// Logged is one trial of a journal.
type Logged struct {
	Proposal    tune.Proposal
	Observation *tune.Observation // nil: no end is recorded
	Line        int               // of that end, 1 the first
	Facts       []Fact            // in order; a trial that was interrupted may have been launched twice
}

// Fact is what was noted about a trial on the way.
type Fact struct {
	Kind Kind
	Data json.RawMessage
}

// Replay reads a journal. A last line without its end was never safe, so it
// is left out and counted in Cut; anything else that is not a record in its
// order is an error that names the line.
func Replay(r io.Reader) (Log, error) {
	var log Log
	in := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			log.Cut = int64(len(line))
			return log, nil
		}
		if err != nil {
			return Log{}, fmt.Errorf("read journal line %d: %w", n, err)
		}
		rec, err := parse(line)
		if err == nil {
			err = log.apply(rec)
		}
		if err == nil && (log.Head.Format == Format || rec.Sum != "") {
			err = checkSum(line, rec)
		}
		switch {
		case errors.Is(err, errFormat):
			return Log{}, err
		case err != nil && n == 1:
			return Log{}, fmt.Errorf("journal line 1 is damaged: %w; restore the file, or begin anew in an empty directory", err)
		case err != nil:
			return Log{}, fmt.Errorf("journal line %d is damaged: %w; restore the file, or remove line %d and those after it to have what they tell measured again", n, err, n)
		}
		log.Size += int64(len(line))
	}
}

func parse(line []byte) (Record, error) {
	var r Record
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return r, fmt.Errorf("not a record: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return r, errors.New("not a record: more follows it on the line")
	}
	return r, nil
}

// Check refuses the journal of another study; an empty one is of any. Two studies
// whose fingerprints begin alike do not exist: then the journal's was changed.
func (l Log) Check(study string) error {
	if l.Head == nil || l.Head.Study == study {
		return nil
	}
	const shown = 12 // digits that tell any two studies apart
	if was := l.Head.Study; len(was) >= shown && strings.HasPrefix(study, was[:shown]) {
		return fmt.Errorf("the fingerprint in line 1 of the journal was changed: it begins as that of this study, but has %d digits, of which number %d differs; write %s back in its place", len(was), firstDifference(was, study), study)
	}
	return &AnotherStudyError{Was: fmt.Sprintf("%.12s", l.Head.Study), Is: fmt.Sprintf("%.12s", study), Version: l.Head.Version}
}

// firstDifference numbers the first digit in which two texts differ, 1 the first.
func firstDifference(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i + 1
		}
	}
	return min(len(a), len(b)) + 1
}

// AnotherStudyError says that a journal is of another study than the one that is to go on.
type AnotherStudyError struct {
	Was, Is string // the beginnings of their fingerprints
	Version string // of the program that began the journal
}

func (e *AnotherStudyError) Error() string {
	return fmt.Sprintf("the journal is of another study (%s, this one is %s): resume with the study file it was begun with, or begin anew in an empty directory", e.Was, e.Is)
}

// Open returns the proposals that have no end yet.
func (l Log) Open() []tune.Proposal {
	var out []tune.Proposal
	for _, t := range l.Trials {
		if t.Observation == nil {
			out = append(out, t.Proposal.Clone())
		}
	}
	return out
}

// open is the trial of a number, nil where it is not open.
func (l Log) open(trial int) *Logged {
	if trial < 1 || trial > len(l.Trials) || l.Trials[trial-1].Observation != nil {
		return nil
	}
	return &l.Trials[trial-1]
}

// propose takes the next proposal: on each machine there is one trial at a time.
func (l *Log) propose(p *tune.Proposal) error {
	if p == nil || p.Trial != len(l.Trials)+1 || slices.ContainsFunc(l.Open(), func(o tune.Proposal) bool { return o.Node == p.Node }) {
		return fmt.Errorf("proposed is not the one of trial %d after the end of the last", len(l.Trials)+1)
	}
	l.Trials = append(l.Trials, Logged{Proposal: p.Clone()})
	return nil
}

// apply takes the next record; reader and writer share it, so that what is
// written can be read.
func (l *Log) apply(r Record) error {
	switch {
	case r.Seq != l.records+1:
		return fmt.Errorf("seq is %d after %d, so a record is missing or doubled", r.Seq, l.records)
	case (r.Kind == KindStudy) != (l.Head == nil):
		return errors.New("a journal begins with its one study record")
	case l.Ended:
		return errors.New("a record follows the end")
	}
	switch r.Kind {
	case KindStudy:
		if err := l.begin(r.Head); err != nil {
			return err
		}
	case KindProposed:
		if err := l.propose(r.Proposal); err != nil {
			return err
		}
	case KindLaunched, KindRun, KindInfra:
		open := l.open(r.Trial)
		if open == nil {
			return fmt.Errorf("%s is of trial %d, which is not open", r.Kind, r.Trial)
		}
		open.Facts = append(open.Facts, Fact{Kind: r.Kind, Data: r.Data})
	case KindObserved, KindFailed:
		if err := l.observe(r); err != nil {
			return err
		}
	case KindEnd:
		if open := l.Open(); len(open) > 0 {
			return fmt.Errorf("the end comes while trial %d is open", open[0].Trial)
		}
		l.Ended = true
	default:
		return fmt.Errorf("kind %q is unknown", r.Kind)
	}
	l.records++
	return nil
}

func (l *Log) begin(h *Head) error {
	switch {
	case h == nil:
		return errors.New("the study record is empty")
	case h.Format != Format && h.Format != oldFormat:
		return fmt.Errorf("%w: it is %q and this version reads %q, so resume with the version that wrote it", errFormat, h.Format, Format)
	}
	l.Head = new(*h)
	return nil
}

func (l *Log) observe(r Record) error {
	o := r.Observation
	if o == nil || l.open(o.Trial) == nil {
		return fmt.Errorf("%s is not the end of an open trial", r.Kind)
	}
	switch {
	case (o.Status == tune.Failed) != (r.Kind == KindFailed):
		return fmt.Errorf("%s has the status %q", r.Kind, o.Status)
	case !slices.Contains([]string{tune.Measured, tune.Refused, tune.Failed, tune.Void}, o.Status):
		return fmt.Errorf("trial %d ended with the status %q: it is none of ok, refused, failed, void", o.Trial, o.Status)
	}
	open := l.open(o.Trial)
	open.Observation, open.Line = new(o.Settled()), r.Seq
	return nil
}

var errFormat = errors.New("the journal has another format")
