package tune

import (
	"fmt"
	"iter"
)

// Procedure runs a search that is written as a straight function: where the
// function measures, it is suspended until the end of the trial is told. The
// function is a coroutine and goes on only inside of Ask, Tell and Result; no
// goroutine runs beside the caller's.
//
// A suspended function is not collected. Stop unwinds it; a procedure that came
// to its end has nothing to stop.
type Procedure struct {
	body    func(measure func(Proposal) Observation)
	next    func() (Proposal, bool) // nil: not started
	cancel  func()
	open    *Proposal   // proposed, without an end
	end     Observation // of the open proposal, on its way to the body
	stopped bool
}

// NewProcedure is what a strategy embeds whose search is a function: it returns when it has
// no more to measure.
func NewProcedure(search func(measure func(Proposal) Observation)) Procedure {
	return Procedure{body: search}
}

// start runs the body up to its first proposal, once.
func (p *Procedure) start() {
	if p.next != nil || p.stopped {
		return
	}
	p.next, p.cancel = iter.Pull(func(yield func(Proposal) bool) {
		defer func() {
			if p.stopped {
				_ = recover() // the panic below
			}
		}()
		p.body(func(next Proposal) Observation {
			if !yield(next) {
				panic("tune: stopped")
			}
			return p.end
		})
	})
	p.advance()
}

func (p *Procedure) advance() {
	p.open = nil
	if next, ok := p.next(); ok {
		p.open = &next
	}
}

// Ask returns the trial to measure next.
func (p *Procedure) Ask() (Proposal, bool) {
	p.start()
	return ask(p.open)
}

// Tell takes the end of the trial that was asked for.
func (p *Procedure) Tell(o Observation) {
	p.start()
	p.end = checked(p.open, o)
	if p.stopped {
		panic(fmt.Sprintf("tune: told the end of trial %d after Stop", o.Trial))
	}
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

func ask(open *Proposal) (Proposal, bool) {
	if open == nil {
		return Proposal{}, false
	}
	return open.clone(), true
}

// checked is an observation of the open proposal, as a journal would give it back.
func checked(open *Proposal, o Observation) Observation {
	switch {
	case open == nil:
		panic(fmt.Sprintf("tune: told the end of trial %d when none was asked for", o.Trial))
	case open.Trial != o.Trial:
		panic(fmt.Sprintf("tune: told the end of trial %d when %d was asked for", o.Trial, open.Trial))
	}
	return o.settle()
}
