package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"perflab/internal/durable"
	"perflab/internal/outcome"
	"perflab/internal/proc"
	"perflab/internal/source"
)

// Files of an attempt, each with its number.
const (
	jobName     = "job"
	processName = "process"
	stopName    = "stop"
	exitName    = "exit"
)

// job is what a supervisor starts.
type job struct {
	Program    string        `json:"program"`
	Args       []string      `json:"args"`
	Work       string        `json:"work_dir"`
	ForceAfter time.Duration `json:"force_after_ns"` // after a second request to end
}

// process is what a supervisor says of itself and its child before the child does anything, and
// what it told the child since.
type process struct {
	Supervisor proc.ID   `json:"supervisor"`
	Child      proc.ID   `json:"child"`
	Told       int       `json:"told,omitempty"`   // requests to end that the child got
	ToldAt     time.Time `json:"told_at,omitzero"` // the last one
}

// stop is how urgently a child shall end: 1, keep what was measured; 2, at once.
type stop struct {
	Level int `json:"level"`
}

// exit is how a child ended, as its supervisor saw it.
type exit struct {
	At     time.Time `json:"at"`
	Code   *int      `json:"code,omitempty"`
	Signal string    `json:"signal,omitempty"`
	Fault  string    `json:"fault,omitempty"` // why there was none
}

// mostUrgent is the highest level of a stop.
const mostUrgent = 2

// start starts a launch. What is not allowed any more, or cannot be started at all, ends; what cannot
// be written down now is tried again.
func (q *Queue) start(l *Launch) {
	if err := q.stillAllowed(l); err != nil {
		l.State, l.Resume, l.Fault = Ended, false, "it cannot be started: "+err.Error()
		q.found(l)
		return
	}
	alive, err := q.dir.hold(l.ID)
	if err != nil {
		q.postpone(l.ID, err)
		return
	}
	defer alive.Close() // the supervisor has it too
	a := Attempt{Number: len(l.Attempts) + 1, Started: time.Now().UTC()}
	a.Resume = l.Resume && begun(l)
	j := job{Program: q.o.Program, Args: l.Args, Work: l.Work, ForceAfter: q.o.forceAfter}
	if a.Resume {
		j.Args = append(slices.Clone(l.Args), resumeFlag)
	}
	l.State, l.Resume, l.Fault, l.Cancel = Running, false, "", nil
	l.Attempts = append(l.Attempts, a)
	if err = writeJSON(q.dir.path(l.ID, numbered(jobName, a.Number)), j); err == nil {
		err = q.save(l)
	}
	if err != nil { // nothing was done
		q.postpone(l.ID, err)
		return
	}
	pid, err := supervise(q.dir, l.ID, a.Number, q.o.Env, alive)
	if err != nil {
		q.end(l, exit{At: time.Now().UTC(), Fault: err.Error()})
		return
	}
	q.children[l.ID], q.started[l.ID] = pid, a.Number
}

// postpone leaves a launch waiting, and says why once.
func (q *Queue) postpone(id string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.launches[id].clone()
	if fault := "it cannot be started now, and is tried again: " + err.Error(); l.Fault != fault {
		l.Fault = fault
		q.launches[id] = l
		q.bump()
		q.o.Log.Warn("start a launch", "launch", id, "error", err)
	}
}

// observe looks how a launch that runs is.
func (q *Queue) observe(l *Launch) {
	if pid, ok := q.children[l.ID]; ok && reap(pid) {
		delete(q.children, l.ID)
	}
	a := l.Last()
	supervised := durable.Held(q.dir.path(l.ID, aliveFile)) // before its files: it may end meanwhile
	if q.sawEnd(l) {
		return
	}
	var p process
	known, err := readIfThere(q.dir.path(l.ID, numbered(processName, a.Number)), &p)
	switch {
	case err != nil:
		q.o.Log.Warn("read what a supervisor wrote", "launch", l.ID, "error", err)
	case known && a.Child == proc.ID{}:
		a.Supervisor, a.Child = p.Supervisor, p.Child
		q.found(l)
	}
	if err := q.dir.passStops(l); err != nil {
		q.o.Log.Warn("ask a launch to stop", "launch", l.ID, "error", err)
	}
	switch {
	case supervised:
	case !known && err == nil:
		q.neverBegan(l)
	case childLives(l):
		q.tellOrphan(l, p)
	default:
		q.end(l, exit{})
	}
}

// sawEnd ends a launch whose supervisor has said how its child ended.
func (q *Queue) sawEnd(l *Launch) bool {
	var e exit
	ended, err := readIfThere(q.dir.path(l.ID, numbered(exitName, l.Last().Number)), &e)
	if err != nil {
		q.o.Log.Warn("read how a launch ended", "launch", l.ID, "error", err)
	}
	if ended {
		q.end(l, e)
	}
	return ended
}

// neverBegan puts a launch back whose supervisor was gone before it started anything: its server
// was killed at that moment. Where this server started it, it would be so again.
func (q *Queue) neverBegan(l *Launch) {
	if q.started[l.ID] == l.Last().Number {
		q.end(l, exit{At: time.Now().UTC(), Fault: "its supervisor ended before it could start anything; " + stderrFile + " may say why"})
		return
	}
	l.Resume = l.Last().Resume
	l.Attempts = l.Attempts[:len(l.Attempts)-1]
	l.State = Queued
	q.found(l)
}

// end writes down how a launch ended.
func (q *Queue) end(l *Launch, e exit) {
	a := l.Last()
	l.State, a.Exit = Ended, &Exit{Code: e.Code, Signal: e.Signal}
	if !e.At.IsZero() {
		a.Ended = &e.At
	}
	switch {
	case e.Fault != "":
		a.Exit.Meaning = "could not be started: " + e.Fault
	case e.Code != nil:
		a.Exit.Meaning = meaning(*e.Code)
	case e.Signal != "":
		a.Exit.Meaning = "ended by " + e.Signal + "; what was measured before is kept"
	default:
		a.Exit.Meaning = unknownEnd
		if s, err := source.Standing(l.Dir); err == nil && s.State == outcome.Finished {
			a.Exit.Meaning = "came to its end; its exit status is not known, as its supervisor was killed"
		}
	}
	q.found(l)
}

// tellOrphan does what the supervisor of a launch would do, were it there.
func (q *Queue) tellOrphan(l *Launch, p process) {
	a := l.Last()
	if told := q.told[l.ID]; told.Child == p.Child && told.Told > p.Told { // which could not be written down
		p = told
	}
	err := follow(&p, min(len(a.Stops), mostUrgent), q.o.forceAfter, orphan(a.Child), func(p process) error {
		q.told[l.ID] = p
		return writeJSON(q.dir.path(l.ID, numbered(processName, a.Number)), p)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, os.ErrProcessDone) {
		q.o.Log.Warn("ask a launch without a supervisor to stop", "launch", l.ID, "error", err)
	}
}

// signaller is a process that can be asked to end.
type signaller interface{ Signal(os.Signal) error }

// orphan is a process that is asked to end only where it is still the same.
type orphan proc.ID

// Signal opens the process first and looks then who it is, so that none that takes over its
// number gets the signal.
func (o orphan) Signal(sig os.Signal) error {
	p, err := os.FindProcess(o.PID)
	if err != nil {
		return err
	}
	defer p.Release()
	if now, ok := proc.Read(o.PID); !ok || now.ID != proc.ID(o) {
		return fmt.Errorf("process %d: %w", o.PID, os.ErrProcessDone)
	}
	return p.Signal(sig)
}

// follow brings a child to a level: an interrupt for each, and its end some time after the last.
// What it was told is written down after each, so that nobody tells it twice.
func follow(p *process, level int, forceAfter time.Duration, child signaller, write func(process) error) error {
	for p.Told < level {
		if err := child.Signal(os.Interrupt); err != nil {
			return err
		}
		p.Told, p.ToldAt = p.Told+1, time.Now().UTC()
		if err := write(*p); err != nil {
			return err
		}
	}
	if p.Told >= mostUrgent && time.Since(p.ToldAt) > forceAfter {
		return child.Signal(os.Kill)
	}
	return nil
}
