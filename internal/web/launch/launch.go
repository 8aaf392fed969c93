package launch

import (
	"fmt"
	"strings"
	"time"

	"perflab/internal/engine"
	"perflab/internal/proc"
)

// Kind says what a launch makes.
type Kind string

// Kinds of launch.
const (
	Study Kind = "study"
	Bench Kind = "bench"
)

// State is how far a launch has come.
type State string

// States of a launch.
const (
	Queued    State = "queued"
	Running   State = "running"
	Ended     State = "ended"
	Cancelled State = "cancelled" // before it began
)

// Request asks for a launch: either of a study or of a bench.
type Request struct {
	Who   string // who asks
	Study *StudyRequest
	Bench *BenchRequest
}

// StudyRequest is a study to launch.
type StudyRequest struct {
	Text     string // of the study file
	Strategy string // in place of the file's; "": the file's
}

// BenchRequest is a run, or a series of runs, to launch.
type BenchRequest struct {
	Name  string              // for people; "": its endpoint
	Flags map[string][]string // of perflab bench, without dashes; "base-url" -> its values
}

// Launch is a study or a bench that somebody asked for. It holds no secret: a request with
// one is refused.
type Launch struct {
	Schema   string              `json:"schema"`
	ID       string              `json:"id"`
	Kind     Kind                `json:"kind"`
	Name     string              `json:"name"`
	Who      string              `json:"who,omitempty"`
	Args     []string            `json:"args"`               // of perflab, without --resume
	Work     string              `json:"work_dir"`           // directory that it runs in
	Dir      string              `json:"dir"`                // of the study, the run or the series
	Strategy string              `json:"strategy,omitempty"` // of a study, in place of its file's
	Flags    map[string][]string `json:"flags,omitempty"`    // of a bench, as they were asked for
	Place    Place               `json:"place"`              // what it uses alone
	State    State               `json:"state"`              //
	Queued   time.Time           `json:"queued"`             // when it was asked for, or asked to go on
	Order    int64               `json:"order"`              // the least is started first
	Attempts []Attempt           `json:"attempts"`           // its starts, the last one last
	Resume   bool                `json:"resume,omitempty"`   // the start that it waits for goes on with what is there
	RetryOf  string              `json:"retry_of,omitempty"` // the launch that it repeats
	Cancel   *Act                `json:"cancel,omitempty"`
	Fault    string              `json:"fault,omitempty"` // why it could not be started, or be looked at

	// Simulated: figures of a model of engine and device, SIMULATED wherever they are shown.
	Simulated bool `json:"simulated,omitempty"`

	// Position is its place among those that wait, from 1, and Waits says for what. Both are
	// of the moment, and not kept.
	Position int    `json:"position,omitempty"`
	Waits    string `json:"waits,omitempty"`
}

// Attempt is one start of a launch.
type Attempt struct {
	Number     int        `json:"number"` // from 1
	Resume     bool       `json:"resume,omitempty"`
	Started    time.Time  `json:"started"`
	Ended      *time.Time `json:"ended,omitempty"` // nil: it has not, or nobody saw when
	Supervisor proc.ID    `json:"supervisor,omitzero"`
	Child      proc.ID    `json:"child,omitzero"` // the perflab that makes it; zero: not started yet
	Stops      []Act      `json:"stops,omitempty"`
	Exit       *Exit      `json:"exit,omitempty"` // nil: it runs
}

// Act is who did something, and when.
type Act struct {
	Who string    `json:"who,omitempty"`
	At  time.Time `json:"at"`
}

// Exit is how an attempt ended.
type Exit struct {
	Code    *int   `json:"code,omitempty"` // nil: ended by a signal, or not known
	Signal  string `json:"signal,omitempty"`
	Meaning string `json:"meaning"`
}

// Last is the newest attempt; nil where there was none.
func (l Launch) Last() *Attempt {
	if len(l.Attempts) == 0 {
		return nil
	}
	return &l.Attempts[len(l.Attempts)-1]
}

// Stopping reports whether it runs and was asked to stop.
func (l Launch) Stopping() bool {
	return l.State == Running && len(l.Last().Stops) > 0
}

// Command is the command line of a launch, to read and to repeat by hand.
func (l Launch) Command() string {
	words := []string{"perflab"}
	for _, a := range l.Args {
		words = append(words, engine.Quote(a))
	}
	if a := l.Last(); l.Resume || a != nil && l.State != Queued && a.Resume {
		words = append(words, resumeFlag)
	}
	return strings.Join(words, " ")
}

const (
	launchSchema = "perflab.launch/1"
	resumeFlag   = "--resume"
)

// meaning says in words how an exit status is meant, as the help of perflab has it.
func meaning(code int) string {
	switch code {
	case 0:
		return "done"
	case 1:
		return "failed: its messages say why"
	case 2:
		return "refused as wrongly asked: its messages say what to correct"
	case 3:
		return "done, and an SLO was missed"
	case 4:
		return "done, and the measurement cannot be believed"
	case 130:
		return "stopped; what was measured is kept"
	}
	return fmt.Sprintf("ended with status %d, which perflab does not give", code)
}

// unknownEnd says that nobody saw an end.
const unknownEnd = "ended without a word, as by a restart of the machine or kill -9; how is not known"

// NotFoundError says that there is no launch of an id.
type NotFoundError struct{ ID string }

func (e *NotFoundError) Error() string { return fmt.Sprintf("there is no launch %q", e.ID) }

// ReadOnlyError says that another server runs the queue.
type ReadOnlyError struct{ Dir string }

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("another perflab serve runs the launches in %s: this one only shows them; ask that one, or end it", e.Dir)
}

// StateError says that a launch is not in a state for what was asked.
type StateError struct{ ID, Reason string }

func (e *StateError) Error() string { return fmt.Sprintf("launch %s %s", e.ID, e.Reason) }

// FullError says that too many launches wait.
type FullError struct{ Most int }

func (e *FullError) Error() string {
	return fmt.Sprintf("%d launches wait already: cancel one, or wait for one to end", e.Most)
}
