package lab

import (
	"sync"
	"time"

	"perflab/internal/load"
)

// Status is where a study stands, or the trial on one of its machines.
type Status struct {
	Machine  string // of several; "": it is of the study, or of the one
	Stage    string
	Trial    int
	Label    string
	Why      string    // it is made, in a few words
	Begun    time.Time // the trial
	Workload string
	Phase    string         // one of the run's, or "preparing", "launching", "predicting"
	Detail   string         // what the runtime said last in this phase: how far an image is pulled
	Since    time.Time      // when the phase began
	Ranked   int            // configurations whose figures were predicted since the last trial
	Ended    int            // trials that have ended
	Result   string         // of the trial that has just ended, with its figure
	Progress *load.Progress // of the run under way, nil between runs
}

// PhaseRanking is when figures of configurations are predicted.
const PhaseRanking = "ranking"

// phaseEnded is the phase of a machine whose trial has ended while others go on.
const phaseEnded = "ended"

// watcher holds where a study stands, or one of its machines, and tells of every change.
// Runtimes say what they do from goroutines of their own.
type watcher struct {
	mu     sync.Mutex
	status Status
	tell   func(Status) // may be nil
}

// of is the watcher of a machine: who is told is told of one change at a time.
func (w *watcher) of(machine string) *watcher {
	return &watcher{status: Status{Machine: machine}, tell: func(s Status) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.tell != nil {
			w.tell(s)
		}
	}}
}

func (w *watcher) change(by func(*Status)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.status
	by(&w.status)
	if now := w.status; now.Phase != before.Phase || now.Workload != before.Workload || now.Trial != before.Trial {
		w.status.Since, w.status.Detail = time.Now(), ""
	}
	if w.tell != nil {
		w.tell(w.status)
	}
}
