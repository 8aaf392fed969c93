package launch

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"perflab/internal/durable"
	"perflab/internal/field"
	"perflab/internal/outcome"
	"perflab/internal/redact"
	"perflab/internal/source"
	"perflab/internal/study"
	"perflab/internal/web/allow"
)

// mostText is the largest study file.
const mostText = 1 << 20

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
	l := &Launch{Schema: launchSchema, ID: newID(time.Now()), Who: redact.Printable(r.Who), Work: q.work, State: Queued, Queued: time.Now().UTC(), Order: q.nextOrder(), RetryOf: retryOf}
	if err := q.describe(l, r); err != nil {
		return Launch{}, err
	}
	d, err := durable.Begin(q.path(l.ID), ".part")
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

// Check says what is wrong with a request, or not allowed, as Submit does, and gives the launch
// that would be made.
func (q *Queue) Check(r Request) (Launch, error) {
	l := &Launch{Schema: launchSchema, ID: newID(time.Now()), Who: redact.Printable(r.Who), Work: q.work, State: Queued}
	err := q.describe(l, r)
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

// nextOrder is after all others.
func (q *Queue) nextOrder() int64 {
	most := int64(0)
	for _, l := range q.current() {
		most = max(most, l.Order)
	}
	return most + 1
}

// describe checks a request and says what it makes.
func (q *Queue) describe(l *Launch, r Request) error {
	switch {
	case (r.Study == nil) == (r.Bench == nil):
		return errors.New("a launch is of a study or of a bench: ask for one of them")
	case r.Study != nil:
		return q.describeStudy(l, r.Study)
	}
	return q.describeBench(l, r.Bench)
}

func (q *Queue) checker() allow.Checker {
	return allow.Checker{List: q.o.Allow, Dir: q.work, Roots: q.o.Roots}
}

// Study reads a study as a launch would, without asking for one: what is wrong with it or not
// allowed is the error.
func (q *Queue) Study(r StudyRequest) (*study.Study, error) {
	if len(r.Text) > mostText {
		return nil, fmt.Errorf("the study's text has %d bytes: a launched one has %d at most", len(r.Text), mostText)
	}
	if r.Strategy != "" && !slices.Contains(study.Strategies(), r.Strategy) {
		return nil, field.Errorf("strategy", "%q is not known: use %s", r.Strategy, strings.Join(study.Strategies(), ", "))
	}
	s, err := study.ParseAllowed(studyFile, []byte(r.Text), r.Strategy, q.checker().Study)
	if err != nil {
		return nil, err
	}
	if s.Secrets().Text(r.Text) != r.Text {
		return nil, errors.New("the study holds a secret: leave it out, and let the administrator put it into the environment of perflab serve, which engines inherit")
	}
	return s, nil
}

// describeStudy says what a study makes, of which nothing is opened before it is allowed.
func (q *Queue) describeStudy(l *Launch, r *StudyRequest) error {
	s, err := q.Study(*r)
	if err != nil {
		return err
	}
	l.Kind, l.Name, l.Strategy = Study, s.Name, r.Strategy
	l.Place, l.Simulated = placeOfStudy(s), s.Runtime.Modelled()
	l.Dir = q.resultOf(l)
	l.Args = []string{"tune", q.path(l.ID, studyFile), "--out", l.Dir}
	if r.Strategy != "" {
		l.Args = append(l.Args, "--strategy", r.Strategy)
	}
	return nil
}

// describeBench makes a command line of flags.
func (q *Queue) describeBench(l *Launch, r *BenchRequest) error {
	if err := q.checker().Bench(r.Flags); err != nil {
		return err
	}
	targets := r.Flags["base-url"]
	if len(targets) == 0 {
		host, port := "127.0.0.1", "8000"
		if v := r.Flags["host"]; len(v) > 0 {
			host = v[len(v)-1]
		}
		if v := r.Flags["port"]; len(v) > 0 {
			port = v[len(v)-1]
		}
		targets = []string{"http://" + host + ":" + port}
	}
	var urls []string
	for _, t := range targets {
		urls = append(urls, strings.Split(t, ",")...)
	}
	l.Kind, l.Flags, l.Place = Bench, maps.Clone(r.Flags), endpoints(urls)
	l.Name = cmp.Or(redact.Text(redact.Printable(r.Name)), "bench of "+l.Place.Text())
	l.Dir = q.resultOf(l)
	l.Args = []string{"bench"}
	for _, name := range slices.Sorted(maps.Keys(r.Flags)) {
		for _, v := range r.Flags[name] {
			l.Args = append(l.Args, "--"+name+"="+v)
		}
	}
	l.Args = append(l.Args, "--out", l.Dir)
	if !slices.Equal(redact.Argv(l.Args), l.Args) {
		return errors.New("a flag holds a secret: leave it out; bench takes the API key from OPENAI_API_KEY in the environment of perflab serve")
	}
	return nil
}

// unfit are the bytes that a directory's name is spared.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// resultOf is the directory that a launch makes.
func (q *Queue) resultOf(l *Launch) string {
	if q.o.Results == "" {
		return q.path(l.ID, resultDir)
	}
	name := strings.Trim(unfit.ReplaceAllString(l.Name, "-"), ".-")
	if len(name) > 60 {
		name = name[:60]
	}
	return filepath.Join(q.o.Results, cmp.Or(name, string(l.Kind))+"-"+l.ID)
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
	if err := q.passStops(&l); err != nil { // the loop tries again
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
	r, err := q.request(&l)
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

// request is what a launch was asked for by.
func (q *Queue) request(l *Launch) (Request, error) {
	if l.Kind == Bench {
		return Request{Bench: &BenchRequest{Name: l.Name, Flags: l.Flags}}, nil
	}
	text, err := q.Text(l.ID)
	return Request{Study: &StudyRequest{Text: text, Strategy: l.Strategy}}, err
}

// stillAllowed says what of a launch is not allowed any more.
func (q *Queue) stillAllowed(l *Launch) error {
	r, err := q.request(l)
	if err != nil {
		return err
	}
	return q.describe(l.clone(), r)
}

// Text is the text of a launched study.
func (q *Queue) Text(id string) (string, error) {
	b, err := q.read(id, studyFile)
	if err != nil {
		return "", fmt.Errorf("read the study of launch %s: %w", id, err)
	}
	return string(b), nil
}

// read reads a small file of a launch.
func (q *Queue) read(id, name string) ([]byte, error) {
	if !idPattern.MatchString(id) {
		return nil, &NotFoundError{ID: id}
	}
	root, err := os.OpenRoot(q.path(id))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(name)
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
