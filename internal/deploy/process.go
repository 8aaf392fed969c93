package deploy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"perflab/internal/redact"
)

// Process is the runtime that starts each process of a deployment as a child at the
// head of its own group on this machine. The zero value is ready to use.
type Process struct {
	Grace  time.Duration // from SIGTERM to SIGKILL; 0: 10 s
	Poll   time.Duration // first pause between health checks, doubled up to 20 times it; 0: 50 ms
	Dir    string        // working directory of the engines; "": perflab's own
	Limits Limits
	Fence  Fence // what keeps hold of what engines start
}

var (
	_ Runtime   = Process{}
	_ Commander = Process{}
)

func (r Process) launcher() Launcher {
	return Launcher{Host: r.Host(), Kind: kindProcess, Bind: loopback, Grace: r.Grace, Poll: r.Poll}
}

// Host is this machine, for whoever starts processes on it one by one.
func (r Process) Host() Host { return local{r.Dir, r.Limits, r.Fence} }

// Start starts the replicas and waits until all are ready.
func (r Process) Start(ctx context.Context, s Spec) (Deployment, error) {
	return r.launcher().Start(ctx, s)
}

// Sweep ends what deployments under dir left running when their perflab was
// killed, and says what that was.
func (r Process) Sweep(ctx context.Context, dir string) ([]string, error) {
	return r.launcher().Sweep(ctx, dir)
}

// Nodes is this machine.
func (r Process) Nodes() []string { return []string{""} }

// Command runs argv on this machine. It ends with perflab, and what it started in its group
// with ctx.
func (r Process) Command(ctx context.Context, _ string, argv []string, stdout io.Writer) error {
	runtime.LockOSThread() // see childAttr
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = childAttr()
	cmd.Cancel = func() error { return killGroup(cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Dir, cmd.Stdout = r.Dir, stdout
	stderr := new(Stderr)
	cmd.Stderr = stderr
	cmd.WaitDelay = time.Second // for what it started and left with its output
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil && err != nil {
		return cause
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return stderr.Failed(argv, exit.ExitCode())
	}
	if err != nil {
		return &InfraError{Op: "run " + strings.Join(redact.Argv(argv), " "), Err: err, Help: missingHelp(argv[0], err)}
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

// local is this machine as a Host.
type local struct {
	dir    string
	limits Limits
	fence  Fence
}

// Ports chooses ports on the loopback interface.
func (h local) Ports(_ context.Context, _ string, n int) ([]int, error) {
	return ChoosePorts(loopback, n)
}

// program finds the program of a command as a child would: relative to the
// directory it is started in.
func (h local) program(name string) error {
	if h.dir != "" && strings.Contains(name, "/") && !filepath.IsAbs(name) {
		name = filepath.Join(h.dir, name)
	}
	_, err := exec.LookPath(name)
	return err
}

// Spawn starts a process.
func (h local) Spawn(_ context.Context, j Job) (Running, error) {
	if err := h.program(j.Argv[0]); err != nil {
		return nil, &InfraError{Op: j.Op, Err: err, Help: missingHelp(j.Argv[0], err)}
	}
	files, err := filepath.Abs(filepath.Join(j.Dir, j.Name+filesSuffix))
	if err != nil {
		return nil, fileError(j.Op, err)
	}
	j.Member = j.In(files)
	if err := writeFiles(files, j.Files); err != nil {
		return nil, fileError(j.Op, err)
	}
	return h.spawn(j)
}

// writeFiles writes what a process reads when it starts; they may hold secrets.
func writeFiles(dir string, files []File) error {
	if len(files) == 0 {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// concealFiles replaces the secrets in what processes of a deployment read when they
// started, now that they have ended: the directory may be given to others.
func concealFiles(dir string) error {
	paths, err := filepath.Glob(filepath.Join(pattern.Replace(dir), "*"+filesSuffix, "*"))
	for _, path := range paths {
		b, rerr := os.ReadFile(path)
		if shown := redact.Text(string(b)); rerr == nil && shown != string(b) {
			rerr = os.WriteFile(path, []byte(shown), 0o600)
		}
		err = errors.Join(err, rerr)
	}
	return err
}

// filesSuffix ends the name of the directory with a process's files.
const filesSuffix = ".files"

// pattern makes a name of a directory a pattern of it alone.
var pattern = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)

// End ends a process of an earlier perflab, by its identity and its marker.
func (h local) End(_ context.Context, r Record) ([]string, error) {
	defer r.scope().remove()
	found := r.remaining()
	if len(found) == 0 {
		return nil, nil
	}
	if left := endAll(r.remaining, r.signal, leftoverGrace, nil); len(left) > 0 {
		return nil, fmt.Errorf("%s of an earlier deployment does not end after SIGKILL", describe(left[0]))
	}
	names := make([]string, len(found))
	for i, p := range found {
		names[i] = describe(p)
	}
	return names, nil
}

// spawn starts a process, below a guard where that can be.
func (h local) spawn(j Job) (Running, error) {
	argv := h.limits.wrap(j.Argv)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = h.dir
	// Python engines set process titles, which overwrites the environment that
	// /proc shows, and with it the marker, unless SPT_NOENV is set.
	cmd.Env = slices.Concat(os.Environ(), []string{"SPT_NOENV=1"}, j.Env)
	if visible, ok := j.VisibleEnv(); ok {
		cmd.Env = append(cmd.Env, visible)
	}
	cmd.Env = append(cmd.Env, j.Marker)
	cmd.Env = cmd.Environ() // each name once, the last: of two that are there, most programs read the first
	if guardable && h.fence != NoFence {
		return spawnGuarded(j, cmd, h.fence)
	}
	cmd.Stdout, cmd.Stderr = j.Log, j.Log
	return spawnChild(j, cmd)
}

// spawnChild starts a child. Its goroutine is locked to its thread until the child
// ends, for the child is bound to the thread that forked it.
func spawnChild(j Job, cmd *exec.Cmd) (Running, error) {
	cmd.SysProcAttr = childAttr()
	c := &child{name: j.Argv[0], marker: j.Marker, cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	c.running.Go(func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			c.handleExit(awaitExit(cmd.Process))
		}
	})
	if err := <-started; err != nil {
		return nil, &InfraError{Op: j.Op, Err: err, Help: missingHelp(j.Argv[0], err)}
	}
	return c, nil
}
