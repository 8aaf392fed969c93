package agents

import (
	"slices"
	"time"
)

// spawn is a call of a tool that starts an agent.
type spawn struct {
	begin, end time.Time // of the call: the agent was at work within
	after      time.Time // when the request had ended that made the call
}

// asyncSpan are the calls of Codex, which has one tool that starts an agent and
// another that waits for one; which waits for which is not recorded.
type asyncSpan struct {
	starts  []spawn
	waiting time.Time // the last end of a wait
}

// shortestAgent is how long the call of an agent takes at least: shorter ones are
// mostly refusals, and would be taken for agents that happened to run just then.
const shortestAgent = 10 * time.Second

// spawn keeps a call if it starts an agent or waits for one.
func (s *roundSession) spawn(codex bool, t tool, ended time.Time) {
	x := spawn{begin: t.Begin.Time, end: t.End.Time, after: ended}
	if x.begin.After(x.after) {
		x.after = x.begin
	}
	switch {
	case codex && t.Name == "spawn_agent" && !x.begin.IsZero():
		s.async.starts = append(s.async.starts, x)
	case codex && t.Name == "wait_agent" && x.end.After(s.async.waiting):
		s.async.waiting = x.end
	case codex || t.Name != "Agent" && t.Name != "Task":
	case t.TookMs == nil || *t.TookMs < float64(shortestAgent/time.Millisecond):
	case !x.begin.IsZero() && !x.end.IsZero():
		s.spawns = append(s.spawns, x)
	}
}

// calls are the calls of a session that started agents. One of Codex's ends with the
// session's last wait.
func (s *roundSession) calls() []spawn {
	out := s.spawns
	for _, x := range s.async.starts {
		if x.end = s.async.waiting; x.end.After(x.begin) {
			out = append(out, x)
		}
	}
	return out
}

// join finds the agents among the sessions: one of the same user and project that ran
// as a whole within a call that starts an agent was started by it. Of several such calls
// it is the shortest, the narrowest that holds the session.
func join(list []*roundSession) {
	type call struct {
		spawn
		by *roundSession
	}
	calls := map[[2]string][]call{}
	for _, s := range list {
		for _, x := range s.calls() {
			calls[s.owner] = append(calls[s.owner], call{x, s})
		}
	}
	for _, s := range list {
		if s.first.IsZero() {
			continue
		}
		for _, c := range calls[s.owner] {
			within := !s.first.Before(c.begin) && !s.last.After(c.end)
			if !within || !c.by.outlasts(s) || s.parent != nil && c.end.Sub(c.begin) >= s.begun.end.Sub(s.begun.begin) {
				continue
			}
			s.parent, s.begun = c.by, c.spawn
		}
		if s.parent != nil {
			s.parent.agents = append(s.parent.agents, s)
		}
	}
	for _, s := range list {
		slices.SortStableFunc(s.agents, func(a, b *roundSession) int { return a.first.Compare(b.first) })
	}
}

// outlasts reports whether a session can have started another one, so that no two
// have started each other.
func (s *roundSession) outlasts(other *roundSession) bool {
	long, short := s.last.Sub(s.first), other.last.Sub(other.first)
	return long > short || long == short && s.number < other.number
}
