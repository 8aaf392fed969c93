package outline

import (
	"iter"
	"time"

	"perflab/internal/sim"
	"perflab/internal/workload"
	"perflab/internal/workload/agents"
)

// trees are the sessions of agents that are under way.
type trees struct {
	w    *workload.Workload
	open map[int]*tree // by session, from 1
}

// tree is a session of agents.
type tree struct {
	workload.Recorded
	session int // from 1
	walk    *agents.Walk
	left    int // turns that are due or in flight
}

// firsts are the first jobs of all sessions.
func (w *trees) firsts() iter.Seq[sim.Job] {
	return func(yield func(sim.Job) bool) {
		for k := 0; ; k++ {
			r, ok := w.w.Recorded(k)
			if !ok {
				return
			}
			t := &tree{Recorded: r, session: k + 1}
			w.open[t.session] = t
			if !yield(t.job(t.From, t.Due)) {
				return
			}
		}
	}
}

// Begin starts a session, as workload.Workload's Begin does.
func (w *trees) Begin(first sim.Job, at time.Duration) []sim.Job {
	t := w.open[first.Session]
	t.walk, t.left = t.Walk(t.From), 1
	return t.jobs(t.walk.Begin(at)[1:])
}

// Ended is what is due after a turn has ended.
func (w *trees) Ended(session, turn int, at time.Duration, ok bool) []sim.Job {
	t := w.open[session]
	due, _ := t.walk.Ended(turn, at, ok)
	jobs := t.jobs(due)
	if t.left--; t.left == 0 {
		delete(w.open, session)
	}
	return jobs
}

// jobs are those of turns that are due.
func (t *tree) jobs(due []agents.Step) []sim.Job {
	t.left += len(due)
	var out []sim.Job
	for _, s := range due {
		out = append(out, t.job(s.Turn, s.Due))
	}
	return out
}

// job is a turn of the session.
func (t *tree) job(turn int, due time.Duration) sim.Job {
	u := &t.Turns[turn]
	return sim.Job{
		Index: t.First + turn - t.From, Arrive: due, PromptLen: t.Head + u.Input, Pieces: t.pieces(turn), Output: u.Output,
		Session: t.session, Turn: turn, Turns: len(t.Turns) - t.From,
	}
}

// pieces are what the prompt of a turn is made of.
func (t *tree) pieces(turn int) []sim.Piece {
	made := t.Pieces(turn)
	out := make([]sim.Piece, 0, len(made)+1)
	if t.Head > 0 {
		out = append(out, sim.Piece{Tokens: t.Head}) // of all prompts of the run
	}
	for _, p := range made {
		out = append(out, sim.Piece{Key: p.ID, Tokens: p.Tokens})
	}
	return out
}

// home is the replica whose cache was filled for a session that begins in the middle, as package bench chooses it; -1: any will do.
func (p *Pass) home(session, replicas int) int {
	if session > p.w.Spec().MaxConcurrency {
		return -1
	}
	return (session - 1) % replicas
}

// fills are what a replica's cache is filled with before the run: the prompts that the sessions that begin with it in the
// middle would have sent, those of each one after the other.
func (p *Pass) fills(replica, replicas int) (iter.Seq[sim.Job], sim.Sessions) {
	f := &filling{left: map[int][]sim.Job{}}
	var first []sim.Job
	for k := range p.w.Spec().MaxConcurrency {
		r, ok := p.w.Recorded(k)
		if !ok {
			break
		}
		if p.home(k+1, replicas) != replica {
			continue
		}
		t := tree{Recorded: r, session: k + 1}
		for _, turn := range r.Filling(r.From) {
			j := t.job(turn, 0)
			f.n++
			j.Index, j.Output = -f.n, 1
			f.left[t.session] = append(f.left[t.session], j)
		}
		if list := f.left[t.session]; len(list) > 0 {
			first, f.left[t.session] = append(first, list[0]), list[1:]
		}
	}
	return func(yield func(sim.Job) bool) {
		for _, j := range first {
			if !yield(j) {
				return
			}
		}
	}, f
}

// filling is what fills a cache, by session what is left of it.
type filling struct {
	left map[int][]sim.Job
	n    int
}

// Begin starts no other job.
func (f *filling) Begin(sim.Job, time.Duration) []sim.Job { return nil }

// Ended is the next prompt of a session; behind one that failed nothing more is sent.
func (f *filling) Ended(session, _ int, at time.Duration, ok bool) []sim.Job {
	list := f.left[session]
	if !ok || len(list) == 0 {
		return nil
	}
	f.left[session] = list[1:]
	list[0].Arrive = at
	return list[:1]
}

var (
	_ sim.Sessions = (*trees)(nil)
	_ sim.Sessions = (*filling)(nil)
)
