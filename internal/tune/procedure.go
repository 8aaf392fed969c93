package tune

import (
	"fmt"
	"iter"
	"slices"
)

// Procedure runs a search that is written as a straight function: it starts trials, and
// where it awaits the end of one it is suspended until one is told. The function is a
// coroutine and goes on only inside of Ask, Tell and Result; no goroutine runs beside the
// caller's. What it starts follows from the ends told so far, in their order, and not from
// when it is asked.
//
// A suspended function is not collected. Stop unwinds it; a procedure that came
// to its end has nothing to stop.
type Procedure struct {
	body    func(*Procedure)
	next    func() (struct{}, bool) // nil: not started
	cancel  func()
	yield   func(struct{}) bool
	waiting []Proposal  // started, and not asked for yet
	open    []Proposal  // asked for, without an end
	end     Observation // on its way to the body
	over    bool        // the body has come to its end
	stopped bool
}

// NewProcedure is what a strategy embeds whose search is a function that measures one trial
// after another: it returns when it has no more to measure.
func NewProcedure(search func(measure func(Proposal) Observation)) Procedure {
	return Procedure{body: func(p *Procedure) {
		search(func(next Proposal) Observation {
			p.propose(next)
			return p.await()
		})
	}}
}

// propose starts a trial: its end is among those that await gives.
func (p *Procedure) propose(next Proposal) { p.waiting = append(p.waiting, next) }

// await gives the next end of a trial that was started, in the order in which they come.
func (p *Procedure) await() Observation {
	if !p.yield(struct{}{}) {
		panic("tune: stopped")
	}
	return p.end
}

// start runs the body until it first waits, once.
func (p *Procedure) start() {
	if p.next != nil || p.stopped {
		return
	}
	p.next, p.cancel = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if p.stopped {
				_ = recover() // the panic of await
			}
		}()
		p.yield = yield
		p.body(p)
	})
	p.advance()
}

func (p *Procedure) advance() {
	_, waits := p.next()
	p.over = !waits
}

// Over reports whether the search has come to its end.
func (p *Procedure) Over() bool {
	p.start()
	return p.over
}

// Ask returns the next trial to measure.
func (p *Procedure) Ask() (Proposal, bool) {
	p.start()
	if len(p.waiting) == 0 {
		return Proposal{}, false
	}
	next := p.waiting[0]
	p.waiting, p.open = p.waiting[1:], append(p.open, next)
	return next.Clone(), true
}

// Tell takes the end of a trial that was asked for.
func (p *Procedure) Tell(o Observation) {
	p.start()
	i := slices.IndexFunc(p.open, func(q Proposal) bool { return q.Trial == o.Trial })
	switch {
	case i < 0:
		panic(fmt.Sprintf("tune: told the end of trial %d, which is not open", o.Trial))
	case p.stopped:
		panic(fmt.Sprintf("tune: told the end of trial %d after Stop", o.Trial))
	}
	p.open, p.end = slices.Delete(p.open, i, i+1), o.Settled()
	p.advance()
}

// Stop ends a search that is given up half way and frees what it holds. Ask and
// Result answer as before; Tell panics.
func (p *Procedure) Stop() {
	p.stopped = true
	if p.cancel != nil {
		p.cancel()
	}
}

// Stop frees what a strategy holds that is given up before it had no more to
// ask. It is of no consequence for one that came to its end.
func Stop(s Strategy) {
	if s, ok := s.(interface{ Stop() }); ok {
		s.Stop()
	}
}
