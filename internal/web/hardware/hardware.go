// Package hardware is the screen Models and hardware: what a model can do on the accelerators
// that are there, by measurement and by prediction beside each other.
//
//	s := hardware.New(hardware.Options{Pages: pages, Store: store})
//	defer s.Close()
//	routes := s.Routes()
//
// Invariants: no page waits for a probe or a prediction: they are made beside it, one after
// another, and the page is renewed when they are there; this machine is looked at once a minute at
// most; what was measured stands before what was predicted, and what was simulated says so.
//
// Deliberately absent: how a prediction is made, which is package capacity.
package hardware

import (
	"context"
	"embed"
	"errors"
	"net/http"
	"sync"
	"time"

	"perflab/internal/capacity"
	"perflab/internal/doctor"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/version"
	"perflab/internal/web/guard"
	"perflab/internal/web/page"
)

//go:embed hardware.html
var files embed.FS

// Options are what the screen needs.
type Options struct {
	Pages *page.Pages
	Store *store.Store
	Look  func(context.Context) ([]doctor.Accelerator, error) // at this machine; nil: by the tools of its devices' makers
}

// Screen is the screen, with what it computes beside its pages.
type Screen struct {
	Options
	template *page.Template
	jobs     *jobs

	mu     sync.Mutex
	here   *job // the newest look at this machine
	looked time.Time
	before *job // the one before it, which is shown until then
}

// New makes the screen.
func New(o Options) *Screen {
	if o.Look == nil {
		o.Look = func(ctx context.Context) ([]doctor.Accelerator, error) {
			return doctor.Accelerators(ctx, doctor.System(version.Read()))
		}
	}
	return &Screen{Options: o, template: o.Pages.Template(files, "hardware.html"), jobs: newJobs()}
}

// Close ends what is computed.
func (s *Screen) Close() { s.jobs.close() }

// Routes are the addresses of the screen.
func (s *Screen) Routes() []page.Route {
	return []page.Route{
		{Pattern: "GET /hardware", Role: guard.Read, Serve: s.serve},
		{Pattern: "GET /hardware/events", Role: guard.Read, Stream: true, Serve: s.events},
	}
}

// Looks at this machine.
const (
	lookAgain = time.Minute
	lookLimit = 20 * time.Second
)

// look is the newest look at this machine that is shown. It has a place of its own: a tool
// that hangs must not keep predictions waiting.
func (s *Screen) look() *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here != nil && (!s.here.over() || time.Since(s.looked) < lookAgain) {
		return s.here
	}
	x := &job{done: make(chan struct{})}
	s.before, s.here, s.looked = s.here, x, time.Now()
	s.jobs.beside(func(ctx context.Context) {
		defer close(x.done)
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		x.value, x.err = s.Look(ctx)
	})
	return x
}

// asked is what an address asks for.
type asked struct {
	Q     string // filter of runs
	Ask   capacity.Ask
	Given bool // something is asked
}

// needs are the jobs that a page is made of.
type needs struct {
	here   *job
	answer *job // nil: nothing was asked, or it cannot be
	checks map[string]*job
	cases  []capacity.Case
	wrong  error // with the question
}

// all are the jobs.
func (n needs) all() []*job {
	out := []*job{n.here}
	if n.answer != nil {
		out = append(out, n.answer)
	}
	for _, j := range n.checks {
		out = append(out, j)
	}
	return out
}

// mostChecked bounds the predictions that a page begins by itself.
const mostChecked = 12

// need begins what a page is made of.
func (s *Screen) need(r *http.Request) (asked, needs, error) {
	a, err := parse(r.URL.Query())
	n := needs{here: s.look(), checks: map[string]*job{}, wrong: err}
	if a.Given && err == nil {
		if n.wrong = a.Ask.Check(); n.wrong == nil {
			n.answer = s.jobs.ask("ask "+a.Ask.Key(), func(ctx context.Context) (any, error) { return capacity.Predict(ctx, a.Ask) })
		}
	}
	slo := a.Ask.SLO
	if n.wrong != nil {
		slo = ""
	}
	if n.cases, err = capacity.Measured(r.Context(), s.Store, a.Q, slo); err != nil {
		if _, ok := errors.AsType[*filter.Error](err); ok {
			err = page.Bad(err.Error())
		}
		return a, n, err
	}
	for _, c := range n.cases {
		if len(n.checks) == mostChecked {
			break
		}
		if c.Predicted || c.GPU == "" || c.Best.Command == "" {
			continue
		}
		n.checks[c.Best.ID] = s.jobs.ask("check "+c.Best.ID, func(ctx context.Context) (any, error) { return capacity.Hold(ctx, c.Best) })
	}
	return a, n, nil
}

func (s *Screen) serve(w http.ResponseWriter, r *http.Request) error {
	a, n, err := s.need(r)
	if err != nil {
		return err
	}
	if to, ok := a.tidy(r.URL); !ok {
		http.Redirect(w, r, to, http.StatusSeeOther)
		return nil
	}
	v := viewOf(a, n)
	s.mu.Lock()
	v.Looked = s.looked
	if v.Looking && s.before != nil {
		v.devices(s.before)
	}
	s.mu.Unlock()
	if len(v.Waiting) > 0 {
		v.Events = "/hardware/events?" + r.URL.RawQuery
	}
	status := http.StatusOK
	if n.wrong != nil {
		status = http.StatusBadRequest
	}
	return s.Pages.ShowStatus(w, r, status, s.template, page.View{Title: "Models and hardware", Nav: "hardware", Data: v})
}

// events tells a page when something that it waits for is there.
func (s *Screen) events(w http.ResponseWriter, r *http.Request) error {
	_, n, err := s.need(r)
	if err != nil {
		return err
	}
	stream, err := page.OpenStream(w)
	if err != nil {
		return err
	}
	beat := page.Beat()
	defer beat.Stop()
	for _, j := range n.all() {
		for waits := true; waits; {
			select {
			case <-j.done:
				waits = false
			case <-beat.C:
				if err := stream.Alive(); err != nil {
					return nil // the reader left
				}
			case <-r.Context().Done():
				return nil
			}
		}
		if err := stream.Send("reload", "", struct{}{}); err != nil {
			return nil // the reader left
		}
	}
	_ = stream.Send("end", "", map[string]string{"text": "all is there"}) // or the reader left
	return nil
}

// link is the page with another question.
func link(a capacity.Ask) string {
	q := asked{Ask: a, Given: true}.query()
	return "/hardware?" + q.Encode()
}
