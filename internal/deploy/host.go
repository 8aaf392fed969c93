package deploy

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"
)

// Pauses between two looks at what still runs.
const (
	firstLook = 5 * time.Millisecond
	lastLook  = 100 * time.Millisecond
	killWait  = 10 * time.Second // for the kernel to end what SIGKILL was sent to
)

// Host starts single processes, or containers, for a Launcher.
type Host interface {
	// Ports chooses n ports of a node, all distinct, that are free there now.
	Ports(ctx context.Context, node string, n int) ([]int, error)
	// Spawn starts a process. What goes wrong is an *InfraError, or ctx's cause.
	// ctx is for the start alone.
	Spawn(ctx context.Context, j Job) (Running, error)
	// End ends what a record of an earlier Spawn leads to, as far as it still runs, and
	// says what that was.
	End(ctx context.Context, r Record) (ended []string, err error)
}

// Running is a process that a Host started.
type Running interface {
	// Exited is closed when the process has ended, asked to or not.
	Exited() <-chan struct{}
	// Status says how it ended ("exit status 1", "signal: killed") and with which
	// status, -1 for none. Only after Exited.
	Status() (text string, code int)
	// Record leads back to it after a crash; the Launcher fills in the rest.
	Record() Record
	// URL is where this machine reaches a port of the process, without a path.
	URL(ctx context.Context, port int) (string, error)
	// Stop ends the process and all that it started: it asks, and forces when the
	// grace is over or hurry is closed. It returns when nothing runs any more, or
	// with an error that names what does.
	Stop(grace time.Duration, hurry <-chan struct{}) error
}

// Planner is a Host that makes the processes of a replica together, as those of a pod are: it is
// told what the Launcher has chosen before the first of them is spawned.
type Planner interface {
	Plan(p Plan) error
}

// Plan is what a Launcher has chosen for a deployment.
type Plan struct {
	Op     string           // for messages: "start trial 3"
	Marker string           // each Job's is this with a number of its own behind it
	Ports  []map[string]int // of each replica by their names, "" the one that serves
}

// Waiter is a Host that waits, before an engine can begin, for what is not the engine's: its turn in
// a queue, a free machine, an image. That is not part of the time that a start may take.
type Waiter interface {
	Waited() time.Duration // all in all, also of a wait under way
}

// Explained is a Running that may know more of its end than the status.
type Explained interface {
	Explain() End // only after Exited
}

// End is what is known of why a process has ended.
type End struct {
	Help    string // what to do; "": nothing is known
	Outside bool   // something else ended it, whatever its log says of the consequences
}

// Forwarder is a Running whose URLs may be ports of perflab's own, which Stop closes, as
// Launcher.Forwarded says of all.
type Forwarder interface {
	Forwarded() bool
}

// Job is a process to start: a Member whose ports are filled in.
type Job struct {
	Member
	Op      string // for messages: "start trial 3"
	Name    string // distinct in the deployment: "replica-0", "replica-0.head"
	Marker  string // KEY=value for its environment and that of all it starts; nothing else has it
	Ports   []int  // it may listen on
	Visible string // environment variable that names the accelerators, as in Spec
	Dir     string // on this machine, of the deployment's logs
	Log     *os.File
}

// Launcher starts deployments whose processes a Host starts one by one. It does what
// is alike in every runtime: ports, order, logs, readiness, the kinds of failure, the
// record of what runs, the stop.
type Launcher struct {
	Host
	Kind  string        // of the runtime, in records: "process", "ssh", "docker"
	Bind  string        // address that engines listen on; replaces {host}
	Grace time.Duration // from asking a process to end to forcing it; 0: 10 s
	// Forwarded says that URLs are ports of perflab's own, closed by Stop: that somebody listens there afterwards, who was
	// given the number, tells nothing of the engine.
	Forwarded bool
	Poll      time.Duration // first pause between health checks, doubled up to 20 times it; 0: 50 ms
}

const (
	defaultGrace = 10 * time.Second
	portAttempts = 3 // a free port may be taken between the choice and the engine's bind
)

// fileError is for the files that this package writes.
func fileError(op string, err error) error {
	help := "choose an output directory that can be written to"
	if errors.Is(err, syscall.ENOSPC) {
		help = "the disk is full: free some space and start again"
	}
	return &InfraError{Op: op, Err: err, Help: help}
}

// PortError is an InfraError that says that a port was taken between its choice and
// its use: the deployment is started again on other ports. A Host gives it where not
// the engine binds, so that no log says it.
type PortError struct{ InfraError }

// Unwrap is the InfraError.
func (e *PortError) Unwrap() error { return &e.InfraError }

// VisibleEnv is the environment entry that shows a process its accelerators alone, and
// false where it may see all.
func (j Job) VisibleEnv() (string, bool) {
	if j.Devices == nil {
		return "", false
	}
	name := j.Visible
	if name == "" {
		name = "CUDA_VISIBLE_DEVICES"
	}
	return name + "=" + strings.Join(j.Devices, ","), true
}

const (
	kindProcess = "process"
	loopback    = "127.0.0.1"
)
