//go:build unix

package launch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"perflab/internal/proc"
)

const (
	lookEvery  = 200 * time.Millisecond // of a supervisor for the wish that its child ends
	writeEvery = time.Second            // of a supervisor that cannot write how its child ended
	writeFor   = time.Hour
)

// Main makes the program able to supervise launches: main calls it first. In a process that is a
// supervisor, or a gate, it does not return.
func Main() {
	if len(os.Args) == 0 {
		return
	}
	switch os.Args[0] {
	case supervisorName: // not os.Exit, before which the race detector waits for a second
		syscall.Exit(supervisor(os.Args[1:]))
	case gateName:
		syscall.Exit(gate(os.Args[1:]))
	}
}

// supervisor starts the child of an attempt, passes on wishes that it ends, and writes how it did.
func supervisor(args []string) int {
	syscall.CloseOnExec(aliveFD) // it says that the supervisor lives, not its child
	if len(args) != 2 {
		fmt.Fprintln(os.Stderr, "perflab-launch: this is started by perflab serve alone")
		return 2
	}
	// Who ends a session or a service with signals means its processes, each of which gets them.
	ignored := make(chan os.Signal, 1) // which nobody reads; what is not taken is dropped
	signal.Notify(ignored, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	w := watcher{dir: args[0]}
	if err := w.run(args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "perflab-launch:", err)
		return 1
	}
	return 0
}

// watcher is the life of a supervisor.
type watcher struct {
	dir     string // of the launch
	attempt int
	job     job
	process process
}

func (w *watcher) path(name string) string { return filepath.Join(w.dir, numbered(name, w.attempt)) }

func (w *watcher) run(attempt string) (err error) {
	if w.attempt, err = strconv.Atoi(attempt); err != nil {
		return err
	}
	if err := readJSON(w.path(jobName), &w.job); err != nil {
		return fmt.Errorf("read what to start: %w", err)
	}
	cmd, err := w.start()
	if err != nil {
		return w.end(exit{At: time.Now().UTC(), Fault: err.Error()})
	}
	return w.end(w.await(cmd))
}

// start starts the child behind a gate, which opens when it is written down who it is.
func (w *watcher) start() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(w.job.Work); err != nil { // which exec says less well
		return nil, fmt.Errorf("its working directory: %w", err)
	}
	closed, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer open.Close()
	cmd := &exec.Cmd{
		Path: self, Args: append([]string{gateName, w.job.Program}, w.job.Args...), Dir: w.job.Work,
		Stdout: os.Stdout, Stderr: os.Stderr, ExtraFiles: []*os.File{closed},
	}
	err = cmd.Start()
	closed.Close()
	if err != nil {
		return nil, err
	}
	me, _ := proc.Read(os.Getpid())
	child, _ := proc.Read(cmd.Process.Pid)
	w.process = process{Supervisor: me.ID, Child: child.ID}
	if err := writeJSON(w.path(processName), w.process); err != nil {
		open.Close() // which ends the gate
		_ = cmd.Wait()
		return nil, err
	}
	_, err = open.Write([]byte{1})
	return cmd, err
}

// await waits for the end of the child, and tells it when it shall end sooner.
func (w *watcher) await(cmd *exec.Cmd) exit {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ended:
			return exitOf(cmd.ProcessState)
		case <-look.C:
			var s stop
			if _, err := readIfThere(w.path(stopName), &s); err == nil {
				// What cannot be written down is known here all the same.
				_ = follow(&w.process, s.Level, w.job.ForceAfter, cmd.Process, func(p process) error { return writeJSON(w.path(processName), p) })
			}
		}
	}
}

// exitOf is how a process ended.
func exitOf(s *os.ProcessState) exit {
	e := exit{At: time.Now().UTC()}
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = signalName(status.Signal())
		return e
	}
	e.Code = new(s.ExitCode())
	return e
}

// signalName is what people call the signals that end processes.
func signalName(s syscall.Signal) string {
	names := map[syscall.Signal]string{
		syscall.SIGKILL: "SIGKILL (kill -9, or the system was out of memory)", syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT",
		syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT", syscall.SIGSEGV: "SIGSEGV", syscall.SIGABRT: "SIGABRT", syscall.SIGBUS: "SIGBUS",
	}
	if name, ok := names[s]; ok {
		return name
	}
	return "signal " + strconv.Itoa(int(s))
}

// end writes how the child ended. On a full disk it waits for room; where the launch's directory
// was removed nobody asks any more.
func (w *watcher) end(e exit) error {
	var err error
	for began := time.Now(); time.Since(began) < writeFor; <-time.After(writeEvery) {
		if err = writeJSON(w.path(exitName), e); err == nil {
			return nil
		}
		if _, gone := os.Stat(w.dir); errors.Is(gone, fs.ErrNotExist) {
			break
		}
	}
	return fmt.Errorf("write how the launch ended: %w", err)
}

// gate becomes another program when a byte comes, and ends when none can come any more: its
// supervisor was killed before it had written down that there is one.
func gate(args []string) int {
	open := os.NewFile(openFD, "gate")
	if n, err := open.Read(make([]byte, 1)); n != 1 || len(args) == 0 {
		if err == nil || !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, "perflab-launch: this is started by perflab serve alone")
		}
		return 1
	}
	open.Close()
	err := syscall.Exec(args[0], args, os.Environ())
	fmt.Fprintf(os.Stderr, "perflab-launch: start %s: %v\n", args[0], err)
	return 127
}
