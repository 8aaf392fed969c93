package sim

import (
	"container/heap"
	"time"
)

// Sessions say which jobs are due when others have ended. A session begins with a job of the
// sequence that Replay is given, whose Session is its number, and holds one place at the
// concurrency limit until the last of its jobs has ended. A Sessions may be told of one replay
// alone, in the order of its time.
type Sessions interface {
	// Begin is told that the first job of a session is sent, and returns the others that are due
	// whatever becomes of it, each at its Arrive.
	Begin(first Job, at time.Duration) []Job

	// Ended is told that a job of a session has ended, and returns what is due after it, not
	// before that time. ok is false where the engine refused it.
	Ended(session, turn int, at time.Duration, ok bool) []Job
}

// lane is a session under way.
type lane struct {
	replica int // of its first job
	jobs    int // that are in flight or wait for their time
}

// laterJobs are jobs of sessions that wait for their time, the next one first: a heap.
type laterJobs []laterJob

type laterJob struct {
	Job
	order int
}

func (l laterJobs) Len() int      { return len(l) }
func (l laterJobs) Swap(i, k int) { l[i], l[k] = l[k], l[i] }
func (l laterJobs) Less(i, k int) bool {
	return l[i].Arrive < l[k].Arrive || l[i].Arrive == l[k].Arrive && l[i].order < l[k].order
}
func (l *laterJobs) Push(j any) { *l = append(*l, j.(laterJob)) }
func (l *laterJobs) Pop() any {
	n := len(*l) - 1
	j := (*l)[n]
	(*l)[n] = laterJob{}
	*l = (*l)[:n]
	return j
}

// open begins a session.
func (r *replay) open(first Job, at time.Duration) {
	to := -1
	if r.options.Home != nil {
		to = r.options.Home(first)
	}
	if to < 0 {
		to = r.next()
	}
	l := &lane{replica: to, jobs: 1}
	r.lanes[first.Session] = l
	r.wait(l, r.options.Sessions.Begin(first, at))
	r.send(first, at, to)
}

// next is the replica with the fewest jobs in flight, which equals take in turns.
func (r *replay) next() int {
	best := r.least(r.turn)
	r.turn = (best + 1) % len(r.replicas)
	return best
}

// wait keeps jobs of a session for their time, those apart that are due when nothing is sent any more.
func (r *replay) wait(l *lane, jobs []Job) {
	for _, j := range jobs {
		if !r.over(j.Arrive) {
			l.jobs++
			r.order++
			heap.Push(&r.later, laterJob{j, r.order})
		}
	}
}

// arrive sends the next of the jobs that waited for their time.
func (r *replay) arrive() {
	j := heap.Pop(&r.later).(laterJob).Job
	r.now = max(r.now, j.Arrive)
	to := r.lanes[j.Session].replica
	if !r.options.Affinity {
		to = r.next()
	}
	r.send(j, j.Arrive, to)
}

// follow goes on with a session after the end of one of its jobs.
func (r *replay) follow(l *lane, o Outcome, at time.Duration) {
	if r.stopped {
		return
	}
	r.wait(l, r.options.Sessions.Ended(o.Session, o.Turn, at, o.Err == ""))
	if l.jobs--; l.jobs == 0 {
		delete(r.lanes, o.Session)
		r.inFlight--
	}
}

// fill has a replica serve what its cache is filled with, and turns its time back.
func (r *replay) fill(i int) {
	if r.options.Fill == nil {
		return
	}
	jobs, sessions := r.options.Fill(i)
	c := r.replicas[i]
	f := &replay{options: ReplayOptions{Sessions: sessions}, replicas: []*replica{c}, yield: func(Outcome) bool { return true }, lanes: map[int]*lane{}}
	f.run(jobs)
	c.engine.reset()
}
