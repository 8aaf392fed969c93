package sim

import (
	"math"
	"time"
)

// frontEnd is the API process before the scheduler: HTTP, chat template,
// tokeniser. Each request needs cost of its time. They are coroutines of one
// event loop, and what counts is where they yield to each other. vLLM waits for
// its tokeniser's thread, and SGLang starts its stream after the template, before
// anything is handed on: they share the time equally, so n requests that arrive at
// once all leave n*cost later. TensorRT-LLM goes from the message to the engine's
// queue without a pause (serial): they leave one by one, cost apart.
//
// With equal work, equal shares mean first in, first out. attained counts the
// work that each request present since the beginning has had; a request that
// arrives at attained v leaves at v+cost.
type frontEnd struct {
	cost     float64       // ns of work
	entry    time.Duration // that a request takes besides, which keeps no other waiting
	serial   bool          // first in, first out
	attained float64       // ns
	at       time.Duration
	since    time.Duration // when it was last empty
	inside   queue[arrival]
	done     queue[*seq]
}

type arrival struct {
	s     *seq
	leave float64 // value of attained, which counts the time itself if serial
}

// add takes a job in as it arrives, which is not before f.at.
func (f *frontEnd) add(s *seq) {
	at := s.job.Arrive
	f.advance(at)
	if n := f.inside.len(); n > 0 {
		f.attained += float64(at-f.at) / f.share(n)
	} else {
		f.attained, f.since = 0, at
	}
	f.at = at
	leave := f.attained + f.cost
	if n := f.inside.len(); f.serial && n > 0 {
		leave = f.inside.items[f.inside.head+n-1].leave + f.cost
	}
	f.inside.pushBack(arrival{s, leave})
}

// leaves is when the oldest request inside leaves if no other arrives.
func (f *frontEnd) leaves() time.Duration {
	left := max(0, f.inside.front().leave-f.attained) * f.share(f.inside.len())
	return f.at + time.Duration(math.Ceil(left))
}

// share is among how many of the n requests inside the time is divided.
func (f *frontEnd) share(n int) float64 {
	if f.serial {
		return 1
	}
	return float64(n)
}

// advance moves the requests that leave by t to done.
func (f *frontEnd) advance(t time.Duration) {
	for f.inside.len() > 0 {
		at := f.leaves()
		if at > t {
			return
		}
		j := f.inside.popFront()
		j.s.ready = at + f.entry
		f.attained, f.at = j.leave, at
		f.done.pushBack(j.s)
	}
}

// next is when a request is, or will be, ready for the scheduler.
func (f *frontEnd) next() (time.Duration, bool) {
	if f.done.len() > 0 {
		return f.done.front().ready, true
	}
	if f.inside.len() > 0 {
		return f.leaves() + f.entry, true
	}
	return 0, false
}
