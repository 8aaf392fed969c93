package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"perflab/internal/proc"
)

// A guard is this program, started once more between perflab and an engine. It is a
// subreaper: what an engine starts stays below it, whatever session, group and
// environment it gives itself. While perflab runs, the guard starts the engine, tells how it
// ends, and reaps. When perflab is gone, which closes a pipe, it ends all that is below it, and
// then itself.

// Files of a guard beside the standard ones, which are the engine's.
const (
	guardOrders  = 3 // a guardJob, then the end of perflab or of its interest
	guardReports = 4 // guardReports, one a line
)

// guardJob is what a guard starts. It comes through a pipe, so that neither command nor
// environment appears among the guard's own.
type guardJob struct {
	Path   string
	Argv   []string
	Env    []string
	Dir    string
	Marker string
	Cgroup string // name of the cgroup to make for it, "": none
}

// guardReport is what a guard says: first that the engine runs or why it does not, later
// how it ended.
type guardReport struct {
	PID    int                 `json:"pid,omitempty"`
	Cgroup string              `json:"cgroup,omitempty"` // directory of the cgroup around it
	Errno  syscall.Errno       `json:"errno,omitempty"`
	Ended  *syscall.WaitStatus `json:"ended,omitempty"`
}

// guardable is set where this program becomes a guard when it is started as one.
var guardable bool

// GuardMain makes the program able to guard engines: main calls it first. In a process that is
// a guard it does not return.
func GuardMain() {
	if len(os.Args) > 0 && os.Args[0] == guardName {
		// Not os.Exit, before which the race detector waits for a second.
		syscall.Exit(guard(os.NewFile(guardOrders, "orders"), os.NewFile(guardReports, "reports")))
	}
	guardable = true
}

// guard is the life of a guard, and its exit status. Its thread is locked: the kernel ends the engine
// with the thread that forked it, and so with a guard that is killed.
func guard(orders, reports *os.File) int {
	runtime.LockOSThread()
	_ = os.WriteFile("/proc/self/comm", []byte(guardName), 0) // a name for people who look
	syscall.CloseOnExec(int(orders.Fd()))
	syscall.CloseOnExec(int(reports.Fd()))
	asked := catchSignals()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "perflab-guard: become a subreaper:", err)
		return 1
	}
	var j guardJob
	in := json.NewDecoder(orders)
	if err := in.Decode(&j); err != nil {
		return 1 // perflab ended before it had said what to start
	}
	say := json.NewEncoder(reports)
	pid, cgroup, errno := j.start()
	_ = say.Encode(guardReport{PID: pid, Cgroup: cgroup, Errno: errno}) // perflab may be gone, which is seen below
	if errno != 0 {
		return 1
	}
	me, _ := identify(os.Getpid())
	all := scope{marker: j.Marker, guard: me, cgroup: cgroup}
	go func() {
		awaitEnd(orders, asked)
		for len(endAll(all.survivors, all.signal, leftoverGrace, nil)) > 0 {
		}
	}()
	reapAll(func(child int, status syscall.WaitStatus) {
		if child == pid {
			_ = say.Encode(guardReport{Ended: &status})
		}
	})
	all.remove()
	return 0
}

// catchSignals has the signals that ask a process to end delivered. One that is ignored, as under
// nohup, stays so: the engine inherits that.
func catchSignals() <-chan os.Signal {
	asked := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(asked, sig)
		}
	}
	return asked
}

// awaitEnd waits until perflab is gone or wants no more, or a signal asks for the end.
func awaitEnd(orders io.Reader, asked <-chan os.Signal) {
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, orders) // however it ends, nobody gives orders any more
		close(closed)
	}()
	select {
	case <-closed:
	case <-asked:
	}
}

// reapAll waits until the process has no descendant any more, and says which children ended.
func reapAll(ended func(pid int, status syscall.WaitStatus)) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			return
		case status.Exited() || status.Signaled():
			ended(pid, status)
		}
	}
}

// start starts the engine, in a cgroup of its own where that can be.
func (j guardJob) start() (pid int, cgroup string, errno syscall.Errno) {
	attr := &syscall.ProcAttr{Dir: j.Dir, Env: j.Env, Files: []uintptr{0, 1, 2}, Sys: childAttr()}
	if f, err := newCgroup(j.Cgroup); err == nil {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(f.Fd())
		pid, err = syscall.ForkExec(j.Path, j.Argv, attr)
		f.Close()
		if err == nil {
			return pid, f.Name(), 0
		}
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = false, 0
		removeCgroup(f.Name())
	}
	pid, err := syscall.ForkExec(j.Path, j.Argv, attr)
	errno, _ = errors.AsType[syscall.Errno](err)
	if err != nil && errno == 0 {
		errno = syscall.EINVAL // a NUL in a word, which Validate refuses
	}
	return pid, "", errno
}

// guarded is an engine's process below a guard.
type guarded struct {
	name    string // of its program
	group   int    // its process id and its group's
	record  Record // how a later perflab finds it
	guard   *exec.Cmd
	orders  *os.File // closing it has the guard end what is left, and itself
	exited  chan struct{}
	running sync.WaitGroup // the goroutine that hears the guard

	mu       sync.Mutex
	stopping bool
	status   string
	code     int
}

// spawnGuarded starts a command below a guard. What the command has is cmd's.
func spawnGuarded(j Job, cmd *exec.Cmd, fence Fence) (Running, error) {
	name := ""
	if fence == AnyFence {
		name = cgroupName(j.Marker)
	}
	dir, err := filepath.Abs(cmd.Dir) // of perflab's own, and not of the guard's
	if err != nil {
		return nil, &InfraError{Op: j.Op, Err: err, Help: "start perflab in a directory that is there"}
	}
	c := &guarded{name: j.Argv[0], exited: make(chan struct{})}
	reports, err := c.startGuard(j)
	if err != nil {
		return nil, &InfraError{Op: j.Op, Err: err, Help: "perflab starts itself once more between it and an engine: see why the system does not let it"}
	}
	var first guardReport
	in := json.NewDecoder(reports)
	err = json.NewEncoder(c.orders).Encode(guardJob{Path: cmd.Path, Argv: cmd.Args, Env: cmd.Env, Dir: dir, Marker: j.Marker, Cgroup: name})
	if err == nil {
		err = in.Decode(&first)
	}
	if err == nil && first.Errno != 0 {
		err = startError(cmd, first.Errno)
	}
	if err != nil {
		c.orders.Close()
		reports.Close()
		_ = c.guard.Wait() // its status says less
		return nil, &InfraError{Op: j.Op, Err: err, Help: missingHelp(j.Argv[0], err)}
	}
	c.group = first.PID
	id, _ := identify(first.PID)
	id.PID = first.PID // also when it has ended already
	guard, _ := identify(c.guard.Process.Pid)
	c.record = Record{identity: id, Guard: guard, Cgroup: first.Cgroup, Marker: j.Marker}
	c.running.Go(func() { c.hear(in, reports) })
	return c, nil
}

// startError says what os.StartProcess would of the command.
func startError(cmd *exec.Cmd, errno syscall.Errno) error {
	if _, err := os.Stat(cmd.Dir); cmd.Dir != "" && err != nil {
		return &os.PathError{Op: "chdir", Path: cmd.Dir, Err: errno}
	}
	return &os.PathError{Op: "fork/exec", Path: cmd.Path, Err: errno}
}

// startGuard starts the guard, with the engine's log as its output, and returns what it
// reports through.
func (c *guarded) startGuard(j Job) (reports *os.File, err error) {
	ordersOut, ordersIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ordersOut.Close()
	reportsOut, reportsIn, err := os.Pipe()
	if err != nil {
		ordersIn.Close()
		return nil, err
	}
	defer reportsIn.Close()
	c.guard = &exec.Cmd{
		Path: "/proc/self/exe", // this program, also where its file has been replaced
		Args: []string{guardName, j.Name},
		Env:  []string{}, // of it nothing, as of the marker: a guard is not a part of what it guards
		Dir:  "/",
		// A group of its own, which signals of the terminal do not reach.
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		Stdout:      j.Log, Stderr: j.Log,
		ExtraFiles: []*os.File{guardOrders - 3: ordersOut, guardReports - 3: reportsIn},
	}
	if err := c.guard.Start(); err != nil {
		ordersIn.Close()
		reportsOut.Close()
		return nil, err
	}
	c.orders = ordersIn
	return reportsOut, nil
}

// hear takes note of what the guard says, until it has ended.
func (c *guarded) hear(in *json.Decoder, reports *os.File) {
	status, code := "status unknown", -1
	for {
		var r guardReport
		if err := in.Decode(&r); err != nil {
			break
		}
		if r.Ended != nil {
			status, code = waitText(*r.Ended)
			c.markExited(status, code)
		}
	}
	reports.Close()
	_ = c.guard.Wait() // of a guard that was killed the rest is found by other ways
	c.markExited(status, code)
}

// waitText is what os.ProcessState says of a status.
func waitText(s syscall.WaitStatus) (string, int) {
	if s.Exited() {
		return fmt.Sprintf("exit status %d", s.ExitStatus()), s.ExitStatus()
	}
	text := "signal: " + s.Signal().String()
	if s.CoreDump() {
		text += " (core dumped)"
	}
	return text, -1
}

// markExited takes note of the end, the first time. When nobody asked for it, the rest of
// the engine's group is of no use and is ended at once.
func (c *guarded) markExited(status string, code int) {
	c.mu.Lock()
	asked := c.stopping
	select {
	case <-c.exited:
		c.mu.Unlock()
		return
	default:
	}
	c.status, c.code = status, code
	c.mu.Unlock()
	if !asked {
		for _, p := range c.scope().survivors() {
			if p.Group == c.group {
				_ = signalExactly(p.ID, syscall.SIGKILL) // what stays is found by Stop
			}
		}
	}
	close(c.exited)
}

func (c *guarded) scope() scope {
	return scope{marker: c.record.Marker, guard: c.record.Guard, cgroup: c.record.Cgroup}
}

func (c *guarded) Exited() <-chan struct{} { return c.exited }

// Status is "exit status 1" or "signal: killed".
func (c *guarded) Status() (string, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status, c.code
}

// Record holds the identities of process and guard.
func (c *guarded) Record() Record { return c.record }

// Stop ends the process and all that came of it: SIGTERM, and SIGKILL when the grace is over or
// hurry is closed. The end of the guard, which has no descendant then, proves it.
func (c *guarded) Stop(grace time.Duration, hurry <-chan struct{}) error {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	all := c.scope()
	left := endAll(all.survivors, all.signal, grace, hurry)
	if len(left) == 0 {
		_ = c.orders.Close() // fails in a second Stop
		heard := make(chan struct{})
		go func() {
			c.running.Wait()
			close(heard)
		}()
		late := time.NewTimer(leftoverGrace + killWait)
		defer late.Stop()
		select {
		case <-heard:
			all.remove()
			return nil
		case <-late.C:
			left = append(all.survivors(), proc.Process{ID: c.record.Guard, Name: guardName})
		}
	}
	return fmt.Errorf("%s does not end after SIGKILL", describe(left[0]))
}

// URL is a port on the loopback interface.
func (c *guarded) URL(_ context.Context, port int) (string, error) { return loopbackURL(port), nil }
