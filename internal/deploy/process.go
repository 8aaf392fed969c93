package deploy

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is the runtime that starts each replica as a child process group on
// this machine. The zero value is ready to use.
type Process struct {
	Grace time.Duration // from SIGTERM to SIGKILL; 0: 10 s
	Poll  time.Duration // first pause between health checks, doubled up to 20 times it; 0: 50 ms
}

var _ Runtime = Process{}

const (
	defaultTimeout = 15 * time.Minute
	defaultGrace   = 10 * time.Second
	portAttempts   = 3 // a free port may be taken between the choice and the engine's bind
)

// Start starts the replicas and waits until all are ready. s.Dir belongs to one
// deployment at a time; what a killed perflab left running there is ended
// first.
func (r Process) Start(ctx context.Context, s Spec) (Deployment, error) {
	op := "start " + s.name()
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := r.prepare(op, s); err != nil {
		return nil, err
	}
	limit := cmp.Or(s.Timeout, defaultTimeout)
	late := &lateError{limit}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	for attempt := 1; ; attempt++ {
		d, err := r.launch(ctx, op, s)
		if err == nil {
			return d, nil
		}
		if _, taken := errors.AsType[*portError](err); taken && attempt < portAttempts && ctx.Err() == nil {
			continue
		}
		return nil, err
	}
}

// prepare checks what can be checked before a process is started.
func (r Process) prepare(op string, s Spec) error {
	if err := s.Validate(); err != nil {
		return &InfraError{Op: op, Err: err}
	}
	for _, rep := range s.Replicas {
		if _, err := exec.LookPath(rep.Argv[0]); err != nil {
			return &InfraError{Op: op, Err: err, Help: missingHelp(rep.Argv[0], err)}
		}
	}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return fileError(op, err)
	}
	if _, err := sweepRecord(filepath.Join(s.Dir, recordName)); err != nil {
		return &InfraError{Op: op, Err: err, Help: "end the named processes by hand"}
	}
	return nil
}

func missingHelp(program string, err error) string {
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return program + " is not on PATH: install it, or set the study's runtime kind to simulated"
	case errors.Is(err, fs.ErrNotExist):
		return program + " does not exist: correct the path"
	case errors.Is(err, fs.ErrPermission):
		return program + " is not executable: chmod +x it, or correct the path"
	}
	return ""
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

// portError says that a replica could not bind its port.
type portError struct{ InfraError }

func (e *portError) Unwrap() error { return &e.InfraError }

// launch starts the replicas on new ports and waits until they are ready.
func (r Process) launch(ctx context.Context, op string, s Spec) (_ *processes, err error) {
	d := &processes{
		spec:   s,
		op:     op,
		grace:  cmp.Or(r.Grace, defaultGrace),
		record: record{Marker: markerKey + "=" + rand.Text()},
		path:   filepath.Join(s.Dir, recordName),
		done:   make(chan struct{}),
		hurry:  make(chan struct{}),
	}
	defer func() {
		if err == nil {
			return
		}
		if stop := d.Stop(context.WithoutCancel(ctx)); stop != nil {
			err = errors.Join(err, stop)
		}
	}()
	if err := d.startAll(); err != nil {
		return nil, err
	}
	return d, d.awaitReady(ctx, newHealth(s, r.Poll, func(status int) bool { return status == http.StatusOK }))
}

// processes is a deployment of child processes.
type processes struct {
	spec     Spec
	op       string // for messages: "start trial 3"
	grace    time.Duration
	record   record
	path     string // of the record
	children []*child
	running  sync.WaitGroup // one goroutine a child

	done chan struct{} // closed with err set

	mu       sync.Mutex
	err      error // why the first child ended that should run
	ready    bool
	stopping bool

	hurry     chan struct{} // closed when the grace is over
	hurryOnce sync.Once
	stopOnce  sync.Once
	stopErr   error
}

// startAll starts every replica. The record is written before the first and
// after each, so that at no moment something runs that it does not lead to.
func (d *processes) startAll() error {
	ports, err := freePorts(len(d.spec.Replicas))
	if err != nil {
		return &InfraError{Op: d.op + ": choose a port", Err: err}
	}
	d.record.Owner, _ = identify(os.Getpid())
	if err := d.record.write(d.path); err != nil {
		return fileError(d.op, err)
	}
	for i, rep := range d.spec.Replicas {
		c, err := d.spawn(i, rep, ports[i])
		if err != nil {
			return err
		}
		d.children = append(d.children, c)
		d.record.Processes = append(d.record.Processes, c.recorded())
		if err := d.record.write(d.path); err != nil {
			return fileError(d.op, err)
		}
	}
	return nil
}

// awaitReady returns when all replicas answer, one has ended, or ctx has.
func (d *processes) awaitReady(ctx context.Context, h *health) error {
	probing, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watch, probes sync.WaitGroup
	watch.Go(func() {
		select {
		case <-d.done:
			cancel(d.Err())
		case <-probing.Done():
		}
	})
	errs, seen := make([]error, len(d.children)), make([]error, len(d.children))
	for i, c := range d.children {
		probes.Go(func() { errs[i] = h.await(probing, c.url, &seen[i]) })
	}
	probes.Wait()
	cancel(nil)
	watch.Wait()
	for i, c := range d.children {
		if errs[i] != nil {
			return d.explainWait(c, errs[i], seen[i])
		}
	}
	return d.nowReady()
}

// nowReady marks the deployment as ready unless a child has ended meanwhile.
func (d *processes) nowReady() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready = d.err == nil
	return d.err
}

// explainWait turns the end of a wait into Start's error.
func (d *processes) explainWait(c *child, err, seen error) error {
	if ended := d.Err(); ended != nil {
		return ended
	}
	late, ok := errors.AsType[*lateError](err)
	if !ok {
		return fmt.Errorf("%s: %w", d.op, err)
	}
	tail := c.log.tail()
	// An engine may print why it cannot run and then hang.
	if reason, ok := d.spec.refusal(tail); ok {
		return &RefusedError{Reason: reason, Log: c.log.path}
	}
	last := lastOf(tail, lastLines)
	state := "it has printed nothing"
	if len(last) > 0 {
		state = "its last line is " + quoteLine(last[len(last)-1])
	}
	if answer, ok := errors.AsType[statusError](seen); ok {
		state += ", and " + answer.Error()
	}
	return &InfraError{
		Op:   d.op,
		Err:  fmt.Errorf("replica %d is %w; %s", c.n, late, state),
		Help: "read its log " + c.log.path + ", and allow more time if it was still loading",
		Last: last,
		Log:  c.log.path,
	}
}

// explainExit says why a child has ended before it was ready.
func (d *processes) explainExit(c *child) error {
	tail := c.log.tail()
	status := c.status()
	if inUse.MatchString(tail) {
		return &portError{InfraError{
			Op:   d.op,
			Err:  fmt.Errorf("replica %d could not bind a port: %s", c.n, quoteLine(inUse.FindString(tail))),
			Help: "end what else binds ports on this machine, and start again",
			Log:  c.log.path,
		}}
	}
	if reason, ok := d.spec.refusal(tail); ok {
		return &RefusedError{Reason: reason, Log: c.log.path}
	}
	if reason, ok := usageRefusal(tail); ok && c.exitCode() == 2 {
		return &RefusedError{Reason: reason, Log: c.log.path}
	}
	last := lastOf(tail, lastLines)
	err := fmt.Errorf("replica %d ended before it was ready (%s) and printed nothing", c.n, status)
	help := "run the command at the head of " + c.log.path + " by hand"
	if len(last) > 0 {
		err = fmt.Errorf("replica %d ended before it was ready (%s); its last line is %s", c.n, status, quoteLine(last[len(last)-1]))
		help = "read its log " + c.log.path
	}
	return &InfraError{Op: d.op, Err: err, Help: help, Last: last, Log: c.log.path}
}

// Targets are the replicas' base URLs.
func (d *processes) Targets() []string {
	out := make([]string, len(d.children))
	for i, c := range d.children {
		out[i] = c.url
	}
	return out
}

// Done is closed when a replica has ended before Stop.
func (d *processes) Done() <-chan struct{} { return d.done }

// Err says why Done is closed; nil as long as it is not.
func (d *processes) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// freePorts chooses n ports on the loopback interface that are free now. All
// are held until the last is chosen, so they are distinct.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// withPort puts the port where the placeholder stands.
func withPort(words []string, port int) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ReplaceAll(w, portMark, strconv.Itoa(port))
	}
	return out
}
