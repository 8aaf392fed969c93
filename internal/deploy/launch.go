package deploy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
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
	Poll  time.Duration // first pause between health checks, doubled up to 20 times it; 0: 50 ms
}

const (
	defaultTimeout = 15 * time.Minute
	defaultGrace   = 10 * time.Second
	portAttempts   = 3 // a free port may be taken between the choice and the engine's bind
)

// Start starts the replicas and waits until all are ready. s.Dir belongs to one
// deployment at a time; what a killed perflab left running there is ended
// first.
func (l Launcher) Start(ctx context.Context, s Spec) (Deployment, error) {
	op := "start " + s.name()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := s.Validate(); err != nil {
		return nil, &InfraError{Op: op, Err: err}
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return nil, fileError(op, err)
	}
	if _, err := l.sweepRecord(ctx, filepath.Join(s.Dir, recordName)); err != nil {
		help := "end the named processes by hand"
		if infra, ok := errors.AsType[*InfraError](err); ok {
			help = infra.Help
		} else if errors.Is(err, errInUse) {
			err, help = fmt.Errorf("%s: %w", s.Dir, err), "wait for its end, or choose another directory"
		}
		return nil, &InfraError{Op: op, Err: err, Help: help}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(s.Timeout, defaultTimeout), &lateError{cmp.Or(s.Timeout, defaultTimeout)})
	defer cancel()
	for attempt := 1; ; attempt++ {
		d, err := l.launch(ctx, op, s)
		if err == nil {
			return d, nil
		}
		if _, taken := errors.AsType[*PortError](err); taken && attempt < portAttempts && ctx.Err() == nil {
			continue
		}
		return nil, err
	}
}

// fileError is for the files that this package writes.
func fileError(op string, err error) error {
	help := "choose an output directory that can be written to"
	if errors.Is(err, syscall.ENOSPC) {
		help = "the disk is full: free some space and start again"
	}
	return &InfraError{Op: op, Err: err, Help: help}
}

// lateError is the cause of a start that takes too long.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string { return fmt.Sprintf("not ready after %v", e.limit) }

// PortError is an InfraError that says that a port was taken between its choice and
// its use: the deployment is started again on other ports. A Host gives it where not
// the engine binds, so that no log says it.
type PortError struct{ InfraError }

// Unwrap is the InfraError.
func (e *PortError) Unwrap() error { return &e.InfraError }

// launch starts the replicas on new ports and waits until they are ready.
func (l Launcher) launch(ctx context.Context, op string, s Spec) (_ *deployment, err error) {
	d := newDeployment(l, op, s)
	defer func() {
		if err == nil {
			return
		}
		if stop := d.Stop(context.WithoutCancel(ctx)); stop != nil {
			err = errors.Join(err, stop)
		}
	}()
	if err := d.startAll(ctx); err != nil {
		return nil, d.explainStart(err)
	}
	return d, d.awaitReady(ctx, newHealth(s, l.Poll, func(status int) bool { return status == http.StatusOK }))
}
