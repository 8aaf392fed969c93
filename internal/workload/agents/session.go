// Package agents reads recorded sessions of agents and goes through them: which
// request follows which, and how long the agent was idle before it.
//
//	var files agents.Reader
//	err := files.Read(file, func(s agents.Read) { sessions = append(sessions, s) })
//	w := sessions[0].Walk(0)
//	due := w.Begin(0)
//	due, lost := w.Ended(due[0].Turn, 3*time.Second, true)
//
// A session is a tree of agents: each sends one request after the other, may
// start further agents, and may wait for their end. What is kept of it is, for
// each request, which others must have ended before it and how long after the
// last of them it came. So a faster server makes a faster session, and nothing
// that depended on an answer is sent before that answer is there.
//
// Invariants: a turn waits only for turns before it; ids of blocks stand for
// the same tokens wherever they stand in a session.
//
// Deliberately absent: texts (package workload makes them of the blocks), and
// agents that a recording does not tell apart. Requests of one level that
// overlap in time are sent as they overlapped, whoever sent them.
package agents

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Session is one recorded session: the requests of an agent and of all agents
// that came of it, in the order of their start.
type Session struct {
	ID     string
	Block  int  // tokens that one id of a block stands for
	Global bool // ids mean the same in all sessions of a file; else in this session alone
	Turns  []Turn
}

// Turn is one request of a session.
type Turn struct {
	Agent  string // who sent it; "": the session's first agent
	Input  int    // tokens of the prompt
	Output int    // tokens of the answer
	Blocks []int64
	After  []int         // turns that must have ended; none: it waits for the session's start alone
	Idle   time.Duration // from the last of their ends to this request
	At     time.Duration // when it was recorded, from the session's start; 0 throughout: not known
}

// Limits of what is read: no recording has more, and slips would fill the memory.
const (
	MaxTurns  = 20_000
	MaxTokens = 10_000_000
	maxIdle   = 1000 * time.Hour
)

// check says what about a session no recording has.
func (s Session) check() error {
	switch {
	case s.Block < 1 || s.Block > MaxTokens:
		return fmt.Errorf("block_size %d: a block has between 1 and %d tokens", s.Block, MaxTokens)
	case len(s.Turns) > MaxTurns:
		return fmt.Errorf("%d requests in one session: at most %d are possible", len(s.Turns), MaxTurns)
	}
	for i, t := range s.Turns {
		if err := t.check(i); err != nil {
			return fmt.Errorf("request %d: %w", i+1, err)
		}
	}
	return nil
}

func (t Turn) check(i int) error {
	switch {
	case t.Input < 1 || t.Output < 1:
		return fmt.Errorf("%d input and %d output tokens: both must be at least 1", t.Input, t.Output)
	case t.Input > MaxTokens || t.Output > MaxTokens:
		return fmt.Errorf("%d input and %d output tokens are over the limit of %d", t.Input, t.Output, MaxTokens)
	case t.Idle < 0:
		return errors.New("the idle time before it is negative")
	}
	for _, k := range t.After {
		if k < 0 || k >= i {
			return fmt.Errorf("it waits for request %d: a request can wait for those before it", k+1)
		}
	}
	return nil
}

// shareBlocks has the turns of an agent hold their blocks in common where one
// prompt goes on from the one before it: a long session would take gigabytes.
func (s Session) shareBlocks() {
	next := map[string][]int64{}
	for i := len(s.Turns) - 1; i >= 0; i-- {
		t := &s.Turns[i]
		if n := len(t.Blocks); n > 0 && n <= len(next[t.Agent]) && slices.Equal(t.Blocks, next[t.Agent][:n]) {
			t.Blocks = next[t.Agent][:n:n]
		}
		next[t.Agent] = t.Blocks
	}
}

// seconds is a time in seconds as a duration.
func seconds(s float64) (time.Duration, error) {
	if !(math.Abs(s) <= maxIdle.Seconds()) {
		return 0, fmt.Errorf("%g s is no time of a session", s)
	}
	return time.Duration(math.Round(s * 1e9)), nil
}

// Tokens are the prompt and answer tokens of the turns from one on.
func (s Session) Tokens(from int) (input, output int) {
	for _, t := range s.Turns[from:] {
		input, output = input+t.Input, output+t.Output
	}
	return input, output
}

// without is the session without some turns; what waited for one of them waits
// for what that one waited for, and if it waited for nothing else, its idle time too.
func (s Session) without(drop func(i int) bool) Session {
	place := make([]int, len(s.Turns)) // in what is kept
	instead := make([][]int, len(s.Turns))
	idle := make([]time.Duration, len(s.Turns))
	var kept []Turn
	for i, t := range s.Turns {
		var after []int
		for _, k := range t.After {
			if place[k] < 0 {
				after = append(after, instead[k]...)
			} else {
				after = append(after, place[k])
			}
		}
		if len(t.After) == 1 && place[t.After[0]] < 0 {
			t.Idle += idle[t.After[0]]
		}
		slices.Sort(after)
		after = slices.Compact(after)
		if drop(i) {
			place[i], instead[i], idle[i] = -1, after, t.Idle
			continue
		}
		place[i] = len(kept)
		t.After = after
		kept = append(kept, t)
	}
	s.Turns = kept
	return s
}
