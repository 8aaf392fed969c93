package journal

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"perflab/internal/tune"
)

// Lab measures trials, several at a time where the strategy has several open. A trial that
// could not be measured has an Observation too; an error stops the study and leaves the
// trial open, to be measured again on resume.
type Lab interface {
	Start(ctx context.Context, p tune.Proposal)         // returns at once
	Wait() (trial int, end tune.Observation, err error) // for the next end of those that were started
}

// Evaluate measures one proposal, and is a Lab that measures one after another: see InTurn.
type Evaluate func(context.Context, tune.Proposal) (tune.Observation, error)

// InTurn is a Lab that measures the trials in the order in which they were started.
func InTurn(evaluate Evaluate) Lab { return &inTurn{evaluate: evaluate} }

type inTurn struct {
	evaluate Evaluate
	started  []started
}

type started struct {
	ctx context.Context
	p   tune.Proposal
}

func (l *inTurn) Start(ctx context.Context, p tune.Proposal) {
	l.started = append(l.started, started{ctx, p})
}

func (l *inTurn) Wait() (int, tune.Observation, error) {
	next := l.started[0]
	l.started = l.started[1:]
	o, err := l.evaluate(next.ctx, next.p)
	return next.p.Trial, o, err
}

// run is a study under way.
type run struct {
	s      tune.Strategy
	j      *Journal
	lab    Lab
	open   map[int]string // labels of the trials under way
	cancel context.CancelCauseFunc
	err    error // the first: then nothing more is started, and what is under way is given up
}

// Run drives a strategy to its end: each proposal is in the journal before it
// is started, and each end is there before the strategy is told. When ctx is
// done, or a trial has an error, Run returns the cause once all that was under way has
// ended, with everything measured kept; whether a trial is finished first is for the lab to
// decide. A strategy that goes on was told what the journal holds by Resume.
func Run(ctx context.Context, s tune.Strategy, j *Journal, lab Lab) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{s: s, j: j, lab: lab, open: map[int]string{}, cancel: cancel}
	asked := r.ask()
	for _, p := range j.log.Open() {
		r.start(ctx, p)
	}
	for {
		for _, p := range asked {
			if r.goes(ctx, p) {
				r.stop(j.Append(Record{Kind: KindProposed, Proposal: &p}))
			}
			r.start(ctx, p)
		}
		if len(r.open) == 0 {
			if r.err == nil {
				r.err = j.end()
			}
			return r.err
		}
		r.end()
		asked = r.ask()
	}
}

// ask is all that the strategy has to start now.
func (r *run) ask() (out []tune.Proposal) {
	for r.err == nil {
		p, ok := r.s.Ask()
		if !ok {
			break
		}
		if p.Trial <= len(r.j.log.Trials) {
			r.stop(foreign(p.Trial))
		}
		out = append(out, p)
	}
	return out
}

// goes reports whether a trial may begin.
func (r *run) goes(ctx context.Context, p tune.Proposal) bool {
	if ctx.Err() != nil {
		r.stop(fmt.Errorf("stop before trial %d (%s): %w", p.Trial, p.Label, context.Cause(ctx)))
	}
	return r.err == nil
}

// start begins a trial.
func (r *run) start(ctx context.Context, p tune.Proposal) {
	if r.goes(ctx, p) {
		r.open[p.Trial] = p.Label
		r.lab.Start(ctx, p)
	}
}

// end takes the next end of a trial.
func (r *run) end() {
	id, o, err := r.lab.Wait()
	label := r.open[id]
	delete(r.open, id)
	if err != nil {
		r.stop(fmt.Errorf("trial %d (%s): %w", id, label, err))
		return
	}
	o.Trial = id
	o = o.Settled()
	if err := r.j.observe(o); err != nil {
		r.stop(err)
		return
	}
	r.s.Tell(o)
}

// stop ends the study for a reason; nil is none.
func (r *run) stop(err error) {
	if r.err == nil && err != nil {
		r.err = err
		r.cancel(err)
	}
}

// Resume tells a new strategy every end that a journal holds, in the order in which they
// came, and returns the proposals that have none yet; Run starts them first. It is an
// error if the strategy proposes anything else than the journal says.
func Resume(s tune.Strategy, log Log) (pending []tune.Proposal, err error) {
	asked := 0
	ask := func(upTo int) error {
		for ; asked < upTo; asked++ {
			if p, ok := s.Ask(); !ok || !p.Equal(log.Trials[asked].Proposal) {
				return foreign(asked + 1)
			}
		}
		return nil
	}
	ended := slices.DeleteFunc(slices.Clone(log.Trials), func(t Logged) bool { return t.Observation == nil })
	slices.SortFunc(ended, func(a, b Logged) int { return cmp.Compare(a.Line, b.Line) })
	for _, t := range ended {
		if err := ask(t.Proposal.Trial); err != nil {
			return nil, err
		}
		s.Tell(*t.Observation)
	}
	if err := ask(len(log.Trials)); err != nil {
		return nil, err
	}
	if log.Ended {
		if p, ok := s.Ask(); ok {
			return nil, foreign(p.Trial)
		}
	}
	return log.Open(), nil
}
