package kubetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// markerKey names the variable that all processes of a container have.
const markerKey = "KUBETEST_CONTAINER"

// container is one of a pod, over all its restarts.
type container struct {
	pod     *pod
	spec    corev1.Container
	init    bool
	id      string
	mounts  map[string]string // directories of volumes by their names
	ctx     context.Context   // of what the container runs: ends when it is to end
	cancel  context.CancelCauseFunc
	devices []device

	mu            sync.Mutex
	state, last   corev1.ContainerState
	imageID       string
	restarts      int32
	ready         bool
	started       bool
	oom           bool
	cmd           *exec.Cmd
	env           []string // of the process that runs
	log, previous *logs
}

func newContainer(p *pod, spec corev1.Container, init bool) *container {
	c := &container{pod: p, spec: spec, init: init, id: newToken() + newToken(), log: newLogs()}
	c.ctx, c.cancel = context.WithCancelCause(p.ctx)
	return c
}

// sidecar says whether a container begins before the others and runs on beside them.
func (c *container) sidecar() bool {
	return c.init && c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func (c *container) containerID() string {
	if c.state.Running == nil && c.state.Terminated == nil {
		return ""
	}
	return "kubetest://" + c.id
}

func (c *container) marker() string { return markerKey + "=" + c.id }

// run runs the container, again where its pod restarts it; true: it has ended well.
func (c *container) run() bool {
	for failed := 0; ; failed++ {
		code, ran := c.once()
		if !ran {
			return false
		}
		if c.ctx.Err() != nil || !c.pod.restarts(c.spec, code) || c.init && !c.sidecar() && code == 0 {
			return code == 0
		}
		if !c.pause(failed) {
			return false
		}
	}
}

// pause waits for the next start, as one who ended before; false: the pod ends meanwhile.
func (c *container) pause(failed int) bool {
	c.mu.Lock()
	c.restarts++
	c.last, c.ready, c.started = c.state, false, false
	c.previous, c.log = c.log, newLogs()
	if failed > 0 {
		c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason:  "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)", backOff(failed)*100, c.spec.Name, c.pod.object.Name, c.pod.object.Namespace, c.pod.object.UID),
		}}
	}
	c.mu.Unlock()
	c.pod.changed()
	if failed > 0 {
		c.say(corev1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s_%s(%s)", c.spec.Name, c.pod.object.Name, c.pod.object.Namespace, c.pod.object.UID)
	}
	return sleep(c.ctx, backOff(failed))
}

// sleep waits; false: ctx ends before the time is up.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// once runs the container once and returns its exit code; false: the pod ended before it began.
func (c *container) once() (code int, ran bool) {
	env, ok := c.prepare()
	if !ok {
		return 0, false
	}
	begun := metav1.Now()
	cmd, out, err := c.launch(env)
	if errors.Is(err, errEnds) {
		return 0, false
	}
	if err != nil {
		c.say(corev1.EventTypeWarning, "Failed", "Error: %v", err)
		c.end(corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: metav1.Unix(0, 0)})
		return 128, true
	}
	c.say(corev1.EventTypeNormal, "Started", "Container started")
	c.attend(cmd, out)
	code = exitCode(cmd.ProcessState)
	t := corev1.ContainerStateTerminated{ExitCode: int32(code), Reason: "Error", StartedAt: begun}
	if code != 0 && c.spec.TerminationMessagePolicy == corev1.TerminationMessageFallbackToLogsOnError {
		t.Message = c.log.last(2048)
	}
	c.mu.Lock()
	oom := c.oom
	c.oom, c.cmd = false, nil
	c.mu.Unlock()
	switch {
	case oom:
		t.Reason = "OOMKilled"
	case code == 0:
		t.Reason = "Completed"
	}
	if ws, is := cmd.ProcessState.Sys().(syscall.WaitStatus); is && ws.Signaled() {
		t.Signal = int32(ws.Signal())
	}
	c.end(t)
	return code, true
}

// attend keeps what the process writes, probes it and ends it when the pod ends, until it and
// all that it started have ended.
func (c *container) attend(cmd *exec.Cmd, out *os.File) {
	ctx, cancel := context.WithCancel(context.Background())
	var beside, copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(c.log, out) }) // it ends with its writers
	beside.Go(func() { c.stopWhenAsked(ctx, cmd) })
	beside.Go(func() { c.probe(ctx) })
	c.pod.node.c.plane.family.wait(cmd)
	cancel()
	killMarked(c.marker())
	// One that hides from the marker may keep the stream open.
	_ = out.SetReadDeadline(time.Now().Add(time.Second)) // pipes have deadlines
	copying.Wait()
	_ = out.Close() // it was only read
	beside.Wait()
	c.log.close()
}

// end takes note of the end.
func (c *container) end(t corev1.ContainerStateTerminated) {
	t.FinishedAt, t.ContainerID = metav1.Now(), "kubetest://"+c.id
	c.mu.Lock()
	c.state, c.ready, c.started = corev1.ContainerState{Terminated: &t}, false, false
	c.mu.Unlock()
	c.pod.changed()
}

// prepare has the image and the environment there; false: the pod ends before that.
func (c *container) prepare() (env []string, ok bool) {
	if !c.pull() {
		return nil, false
	}
	told := ""
	ok = eventually(c.ctx, 1<<62, func() bool {
		var err error
		env, err = c.environment()
		if err == nil {
			return true
		}
		c.wait("CreateContainerConfigError", err.Error())
		if text := err.Error(); text != told {
			told = text
			c.say(corev1.EventTypeWarning, "Failed", "Error: %s", text)
		}
		return false
	})
	return env, ok
}

// wait shows why the container does not begin.
func (c *container) wait(reason, message string) {
	c.mu.Lock()
	old := c.state.Waiting
	same := old != nil && old.Reason == reason && old.Message == message
	c.state = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	c.mu.Unlock()
	if !same {
		c.pod.changed()
	}
}

// errEnds says that a container does not begin any more.
var errEnds = errors.New("the pod ends")

// launch starts the container's process; out is what it writes.
func (c *container) launch(env []string) (cmd *exec.Cmd, out *os.File, err error) {
	argv := c.argv(env)
	if cmd, err = c.command(argv, env); err != nil {
		return nil, nil, err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	cmd.Stdout, cmd.Stderr = in, in
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		err = errEnds
	} else if err = c.pod.node.c.plane.family.start(cmd); err != nil {
		err = fmt.Errorf("exec: %q: %w", argv[0], err)
	}
	if err != nil {
		_ = out.Close() // nothing was written
		return nil, nil, err
	}
	c.cmd, c.env = cmd, env
	c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
	c.started = c.spec.StartupProbe == nil
	c.ready = c.started && c.spec.ReadinessProbe == nil
	c.pod.changed()
	return cmd, out, nil
}

// argv is the container's command with its variables and directories in place.
func (c *container) argv(env []string) []string {
	image := c.pod.node.c.image(c.spec.Image)
	argv := slices.Clone(c.spec.Command)
	if len(argv) == 0 {
		argv = slices.Clone(image.Entrypoint)
	}
	argv = append(argv, c.spec.Args...)
	for i, a := range argv {
		argv[i] = c.placed(expand(a, env))
	}
	return argv
}

// command is a process of the container: its head, or one that is executed in it.
func (c *container) command(argv, env []string) (*exec.Cmd, error) {
	if len(argv) == 0 {
		return nil, errors.New("no command specified")
	}
	home := filepath.Join(c.pod.dir, "containers", c.spec.Name)
	dir := home
	if c.spec.WorkingDir != "" {
		dir = c.placed(c.spec.WorkingDir)
	}
	for _, d := range []string{home, dir} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	program, err := lookPath(argv[0], c.path(env), dir)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Dir = dir
	// What the head leaves behind may hold its output open, and ends with it.
	cmd.WaitDelay = time.Second
	cmd.Env = append([]string{"HOME=" + home, "HOSTNAME=" + c.pod.object.Name}, append(slices.Clone(env), "PATH="+c.path(env), c.marker())...)
	return cmd, nil
}

// path is where the container's programs are looked for.
func (c *container) path(env []string) string {
	path := cmp.Or(lookup(env, "PATH"), os.Getenv("PATH"))
	if own := c.pod.node.c.image(c.spec.Image).Programs; own != "" {
		path = own + string(filepath.ListSeparator) + path
	}
	return path
}

// lookPath finds a program as the container's runtime does.
func lookPath(name, path, dir string) (string, error) {
	if strings.Contains(name, "/") {
		program := name
		if !filepath.IsAbs(program) {
			program = filepath.Join(dir, program)
		}
		if _, err := os.Stat(program); err != nil {
			return "", fmt.Errorf("exec: %q: stat %s: no such file or directory", name, name)
		}
		return program, nil
	}
	for _, d := range filepath.SplitList(path) {
		program := filepath.Join(d, name)
		if info, err := os.Stat(program); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return program, nil
		}
	}
	return "", fmt.Errorf("exec: %q: executable file not found in $PATH", name)
}

// stopWhenAsked asks the process to end when the pod ends, and kills it once the grace is over.
func (c *container) stopWhenAsked(ctx context.Context, cmd *exec.Cmd) {
	select {
	case <-ctx.Done():
		return
	case <-c.ctx.Done():
	}
	if grace := c.pod.graceful(context.Cause(c.ctx)); grace > 0 {
		c.say(corev1.EventTypeNormal, "Killing", "Stopping container %s", c.spec.Name)
		over := time.Now().Add(grace)
		c.beforeStop(ctx, grace)
		_ = cmd.Process.Signal(syscall.SIGTERM) // it has ended by itself
		if !sleep(ctx, time.Until(over)) {
			return
		}
	}
	c.kill()
}

// beforeStop runs what the container wants to be done before it is asked to end.
func (c *container) beforeStop(ctx context.Context, grace time.Duration) {
	if c.spec.Lifecycle == nil || c.spec.Lifecycle.PreStop == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	switch h := c.spec.Lifecycle.PreStop; {
	case h.Exec != nil:
		_ = c.exec(ctx, h.Exec.Command, nil, nil, nil) // whatever comes of it, the container ends
	case h.Sleep != nil:
		sleep(ctx, time.Duration(h.Sleep.Seconds)*time.Second)
	}
}

// kill ends the container's processes at once.
func (c *container) kill() {
	c.mu.Lock()
	cmd := c.cmd
	c.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill() // it has ended by itself
		killMarked(c.marker())
	}
}

// runOutOfMemory kills the container's head; false: it does not run.
func (c *container) runOutOfMemory() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd == nil {
		return false
	}
	c.oom = true
	return c.cmd.Process.Kill() == nil
}

// say makes an event about the container.
func (c *container) say(kind, reason, format string, args ...any) {
	c.pod.node.say(c.pod.object, kind, reason, format, args...)
}
