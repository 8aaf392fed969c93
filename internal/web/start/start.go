// Package start is the screens from which studies and benches are launched: the queue, one launch
// with its log, the form and editor of a study with its check, the form of a bench.
//
//	routes := start.Routes(start.Options{Pages: pages, Store: store, Queue: queue, Audit: guard.Audit})
//
// Invariants: what may be launched is decided by the queue and its list alone, here it is only
// shown at its line or its input; a study is checked as perflab tune --check does, and a bench by
// bench.Spec; nothing is launched that the audit log does not have.
//
// Deliberately absent: figures of what was launched. Its own page has them.
package start

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"sync"
	"time"

	"perflab/internal/doctor"
	"perflab/internal/redact"
	"perflab/internal/store"
	"perflab/internal/study"
	"perflab/internal/version"
	"perflab/internal/web/guard"
	"perflab/internal/web/guard/trail"
	"perflab/internal/web/launch"
	"perflab/internal/web/page"
)

//go:embed *.html
var files embed.FS

// Options are what the screens are made of.
type Options struct {
	Pages *page.Pages
	Store *store.Store
	Queue *launch.Queue // nil: this server launches nothing
	Audit func(context.Context, trail.Event) error
	Look  func(context.Context) doctor.Report // at this machine, for the form of a study; nil: doctor's
}

// screen is the screens of one server.
type screen struct {
	Options
	machine machine
	ranking chan struct{} // held by the one ranking that there is at a time

	list, one, study, bench *page.Template
}

// mostBody bounds what is posted: a study's text and a form around it.
const mostBody = 2 << 20

// Routes are the addresses of the screens.
func Routes(o Options) []page.Route {
	s := &screen{Options: o, ranking: make(chan struct{}, 1)}
	if s.machine.look = o.Look; s.machine.look == nil {
		s.machine.look = func(ctx context.Context) doctor.Report { return doctor.Look(ctx, doctor.System(version.Read())) }
	}
	s.list = o.Pages.Template(files, "queue.html", "parts.html")
	s.one = o.Pages.Template(files, "one.html", "parts.html")
	s.study = o.Pages.Template(files, "study.html", "ranking.html")
	s.bench = o.Pages.Template(files, "bench.html")
	return []page.Route{
		{Pattern: "GET /launch", Role: guard.Read, Serve: s.showQueue},
		{Pattern: "GET /launch/events", Role: guard.Read, Stream: true, Serve: s.streamQueue},
		{Pattern: "GET /launch/{id}", Role: guard.Read, Serve: s.showOne},
		{Pattern: "GET /launch/{id}/events", Role: guard.Read, Stream: true, Serve: s.streamOne},
		{Pattern: "GET /launch/{id}/log/{stream}", Role: guard.Read, Serve: s.sendLog},
		{Pattern: "POST /launch/{id}/{act}", Role: guard.Launch, Serve: s.act},
		{Pattern: "GET /launch/study", Role: guard.Launch, Serve: s.showStudy},
		{Pattern: "POST /launch/study", Role: guard.Launch, Limit: mostBody, Serve: s.postStudy},
		{Pattern: "POST /launch/study/ranking", Role: guard.Launch, Limit: mostBody, Serve: s.sendRanking},
		{Pattern: "GET /launch/bench", Role: guard.Launch, Serve: s.showBench},
		{Pattern: "POST /launch/bench", Role: guard.Launch, Limit: mostBody, Serve: s.postBench},
		{Pattern: "POST /launch/bench/check", Role: guard.Launch, Limit: mostBody, Serve: s.checkBench},
		{Pattern: "POST /launch/quickstart", Role: guard.Launch, Serve: s.quickstart},
		s.checkRoute(), s.completeRoute(),
	}
}

// may are the things that who asks may do here.
type may struct {
	Launch bool
	Why    string // nothing can be launched, though the role allows it; "": it can
}

func (s *screen) may(r *http.Request) may {
	m := may{Launch: guard.From(r.Context()).May(guard.Launch)}
	if err := s.closed(); err != nil {
		m.Launch, m.Why = false, err.Error()
	}
	return m
}

// errReadOnly says that this server launches nothing.
var errReadOnly = errors.New("this server only shows what is there: it was started with --read-only")

// closed says why nothing can be launched here.
func (s *screen) closed() error {
	if s.Queue == nil {
		return errReadOnly
	}
	return s.Queue.ReadOnly()
}

// open refuses where nothing can be launched.
func (s *screen) open() error {
	if err := s.closed(); err != nil {
		return &page.Problem{Status: http.StatusConflict, Text: err.Error()}
	}
	return nil
}

// problem is what a reader is told of an error of the queue.
func problem(err error) error {
	if err == nil {
		return nil
	}
	text := redact.Shown(err.Error())
	if e, ok := errors.AsType[*study.Error](err); ok {
		return &page.Problem{Status: http.StatusUnprocessableEntity, Text: text, Hint: e.Hint()}
	}
	if _, ok := errors.AsType[*launch.NotFoundError](err); ok {
		return page.NotFound(text)
	}
	if _, ok := errors.AsType[*launch.FullError](err); ok {
		return &page.Problem{Status: http.StatusTooManyRequests, Text: text}
	}
	_, state := errors.AsType[*launch.StateError](err)
	_, readOnly := errors.AsType[*launch.ReadOnlyError](err)
	if state || readOnly {
		return &page.Problem{Status: http.StatusConflict, Text: text}
	}
	return err
}

// submit launches for who asks, and writes it down.
func (s *screen) submit(ctx context.Context, r launch.Request) (launch.Launch, error) {
	r.Who = guard.From(ctx).Name
	l, err := s.Queue.Submit(r)
	e := trail.Event{Action: "launch", Object: l.ID, Detail: map[string]string{"kind": string(l.Kind), "name": l.Name, "dir": l.Dir}}
	if err != nil {
		e = trail.Event{Action: "launch", Outcome: trail.Refused, Reason: err.Error()}
	}
	return l, errors.Join(err, s.audited(ctx, e))
}

// audited writes an event down. What was done is not undone where that fails: who did it is told.
func (s *screen) audited(ctx context.Context, e trail.Event) error {
	if err := s.Audit(ctx, e); err != nil {
		return &page.Problem{Status: http.StatusInternalServerError, Text: "this could not be written into the audit log: " + err.Error(), Hint: "Look into the queue: what was asked for may have been done nevertheless."}
	}
	return nil
}

// machine is what this machine was found to have, which takes seconds to see and seldom changes.
type machine struct {
	look func(context.Context) doctor.Report

	mutex sync.Mutex
	found doctor.Report
	at    time.Time // zero: never
}

// found for so long, a look is as good as a new one.
const lookFor = 10 * time.Minute

// seen is the machine as it was seen lately.
func (m *machine) seen(ctx context.Context) doctor.Report {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.at.IsZero() || time.Since(m.at) > lookFor {
		found := m.look(ctx)
		if ctx.Err() != nil {
			return found
		}
		m.found, m.at = found, time.Now()
	}
	return m.found
}
