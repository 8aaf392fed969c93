package launch

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"perflab/internal/durable"
	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/source"
	"perflab/internal/study"
)

// Submit puts a launch at the end of the queue, if all of it is right and allowed. What is not
// is told as values with their paths (package field), or with line and column (study.Error).
func (q *Queue) Submit(r Request) (Launch, error) {
	q.acts.Lock()
	defer q.acts.Unlock()
	return q.submit(r, "")
}

func (q *Queue) submit(r Request, retryOf string) (Launch, error) {
	if err := q.mayWrite(); err != nil {
		return Launch{}, err
	}
	l := &Launch{Schema: launchSchema, ID: newID(time.Now()), Who: redact.Printable(r.Who), Work: q.make.work, State: Queued, Queued: time.Now().UTC(), Order: q.nextOrder(), RetryOf: retryOf}
	if err := q.make.describe(l, r); err != nil {
		return Launch{}, err
	}
	d, err := durable.Begin(q.dir.path(l.ID), ".part")
	if err != nil {
		return Launch{}, fmt.Errorf("make the directory of a launch: %w", err)
	}
	defer d.Abandon()
	if r.Study != nil {
		err = durable.WriteFile(filepath.Join(d.Path, studyFile), []byte(r.Study.Text), 0o600)
	}
	if err == nil {
		err = writeJSON(filepath.Join(d.Path, launchFile), l)
	}
	if err == nil {
		err = durable.PublishAll(d)
	}
	if err != nil {
		return Launch{}, fmt.Errorf("write down a launch: %w", err)
	}
	q.put(l)
	q.soon()
	return q.Get(l.ID)
}

// Study reads a study as a launch would, without asking for one: what is wrong with it or not
// allowed is the error.
func (q *Queue) Study(r StudyRequest) (*study.Study, error) { return q.make.parse(r) }

// Check says what is wrong with a request, or not allowed, as Submit does, and gives the launch
// that would be made.
func (q *Queue) Check(r Request) (Launch, error) {
	l := &Launch{Schema: launchSchema, ID: newID(time.Now()), Who: redact.Printable(r.Who), Work: q.make.work, State: Queued}
	err := q.make.describe(l, r)
	return *l, err
}

// mayWrite says why nothing can be asked for.
func (q *Queue) mayWrite() error {
	if err := q.ReadOnly(); err != nil {
		return err
	}
	waiting := 0
	for _, l := range q.current() {
		if l.State == Queued {
			waiting++
		}
	}
	if waiting >= mostWaiting {
		return &FullError{Most: mostWaiting}
	}
	return nil
}

// newID names a launch by its time, so that names sort, and by chance.
func newID(at time.Time) string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // which never fails
	return at.UTC().Format("20060102-150405-") + hex.EncodeToString(b)
}

// nextOrder is after all others that wait.
func (q *Queue) nextOrder() int64 {
	most := int64(0)
	for _, l := range q.current() {
		most = max(most, l.Order)
	}
	return most + 1
}

// change lets a function change a launch, and writes it down.
func (q *Queue) change(id string, do func(*Launch) error) (Launch, error) {
	q.acts.Lock()
	defer q.acts.Unlock()
	if err := q.ReadOnly(); err != nil {
		return Launch{}, err
	}
	q.mu.Lock()
	l := q.launches[id]
	if l != nil {
		l = l.clone()
	}
	q.mu.Unlock()
	if l == nil {
		return Launch{}, &NotFoundError{ID: id}
	}
	if l.State == Running {
		q.observe(l) // it may have ended
		q.mu.Lock()
		l = q.launches[id].clone()
		q.mu.Unlock()
	}
	if err := do(l); err != nil {
		return Launch{}, err
	}
	if err := q.save(l); err != nil {
		return Launch{}, err
	}
	q.soon()
	return q.Get(id)
}

// Cancel takes a launch out of those that wait.
func (q *Queue) Cancel(id, who string) (Launch, error) {
	return q.change(id, func(l *Launch) error {
		if l.State != Queued {
			return &StateError{id, "does not wait: it " + l.standing()}
		}
		l.Cancel, l.Resume, l.State = &Act{who, time.Now().UTC()}, false, Cancelled
		if len(l.Attempts) > 0 {
			l.State = Ended
		}
		return nil
	})
}

// Stop asks a launch that runs to end: perflab finishes nothing more, and keeps what was
// measured. Asked again, it ends at once.
func (q *Queue) Stop(id, who string) (Launch, error) {
	l, err := q.change(id, func(l *Launch) error {
		if l.State != Running {
			return &StateError{id, "does not run: it " + l.standing()}
		}
		a := l.Last()
		a.Stops = append(a.Stops, Act{who, time.Now().UTC()})
		return nil
	})
	if err != nil {
		return l, err
	}
	q.acts.Lock()
	defer q.acts.Unlock()
	if err := q.dir.passStops(&l); err != nil { // the loop tries again
		return l, fmt.Errorf("ask launch %s to stop: %w", id, err)
	}
	return l, nil
}

// Resume lets a study that was stopped, or failed, go on where it was.
func (q *Queue) Resume(id, who string) (Launch, error) {
	return q.change(id, func(l *Launch) error {
		switch {
		case l.Kind == Bench:
			return &StateError{id, "is a bench, which cannot go on: retry it"}
		case l.State != Ended:
			return &StateError{id, "cannot go on: it " + l.standing()}
		case l.Fault != "" && len(l.Args) == 0:
			return &StateError{id, "cannot go on: " + l.Fault}
		}
		if s, err := source.Standing(l.Dir); err == nil && s.State == outcome.Finished {
			return &StateError{id, "has come to its end: retry it to make it anew"}
		}
		if err := q.stillAllowed(l); err != nil {
			return err
		}
		l.State, l.Resume, l.Queued, l.Order, l.Fault = Queued, true, time.Now().UTC(), q.nextOrder(), ""
		return nil
	})
}

// Retry puts a launch with what an earlier one asked for at the end of the queue.
func (q *Queue) Retry(id, who string) (Launch, error) {
	l, err := q.Get(id)
	if err != nil {
		return l, err
	}
	if l.State == Queued || l.State == Running {
		return l, &StateError{id, "is not to be repeated yet: it " + l.standing()}
	}
	r, err := q.dir.request(&l)
	if err != nil {
		return l, err
	}
	r.Who = who
	q.acts.Lock()
	defer q.acts.Unlock()
	return q.submit(r, id)
}

// Move gives a launch that waits a place among them, from 1, and numbers all of them anew. Where a
// kill leaves half of it, some have the number of a neighbour, and ids then decide.
func (q *Queue) Move(id string, position int) (Launch, error) {
	l, err := q.Get(id)
	switch {
	case err != nil:
		return l, err
	case l.State != Queued:
		return l, &StateError{id, "does not wait: it " + l.standing()}
	}
	orders := map[string]int64{}
	var ids []string
	for _, l := range q.List() {
		if orders[l.ID] = l.Order; l.State == Queued && l.ID != id {
			ids = append(ids, l.ID)
		}
	}
	ids = slices.Insert(ids, min(max(position, 1)-1, len(ids)), id)
	for i, other := range ids {
		if orders[other] == int64(i+1) {
			continue
		}
		if _, err := q.change(other, func(l *Launch) error { l.Order = int64(i + 1); return nil }); err != nil {
			return l, err
		}
	}
	return q.Get(id)
}

// stillAllowed says what of a launch is not allowed any more.
func (q *Queue) stillAllowed(l *Launch) error {
	r, err := q.dir.request(l)
	if err != nil {
		return err
	}
	return q.make.describe(l.clone(), r)
}

// standing says how far a launch has come, after "it".
func (l Launch) standing() string {
	switch l.State {
	case Queued:
		return "waits"
	case Running:
		return "runs"
	case Cancelled:
		return "was cancelled"
	}
	if a := l.Last(); a != nil && a.Exit != nil {
		return "has ended: " + a.Exit.Meaning
	}
	return "has ended"
}

// Text is the text of a launched study.
func (q *Queue) Text(id string) (string, error) { return q.dir.text(id) }
