package dockertest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// createBody is what is used of a container's description.
type createBody struct {
	Image, WorkingDir    string
	Entrypoint, Cmd, Env []string
	Labels               map[string]string
	HostConfig           map[string]any
	Tty                  bool

	all map[string]any // as it came
}

// box is a container.
type box struct {
	engine *Engine
	id     string
	name   string
	createBody
	image *stored
	root  string // for files that are copied in

	mu       sync.Mutex
	files    map[string]string
	state    string // created, running, exited
	code     int
	oom      bool
	pid      int
	restarts int
	exits    chan struct{} // closed when the container does not run any more, or again
	out      *output
}

// markerKey names the variable that all processes of a container have.
const markerKey = "DOCKERTEST_CONTAINER"

func newBox(e *Engine, name string, body createBody, im *stored) *box {
	id := newID()
	if name == "" {
		name = "nameless_" + id[:6]
	}
	return &box{
		engine: e, id: id, name: name, createBody: body, image: im, root: filepath.Join(e.dir, id[:12]),
		files: map[string]string{}, state: "created", exits: make(chan struct{}), out: newOutput(),
	}
}

// command is a process of the container.
func (b *box) command(argv, env []string, dir string) (*exec.Cmd, error) {
	argv = slices.Clone(argv)
	b.mu.Lock()
	for path := range b.files {
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], path, filepath.Join(b.root, path))
		}
	}
	b.mu.Unlock()
	program, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("exec: %q: executable file not found in $PATH", argv[0])
	}
	cmd := exec.Command(program, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir()}, append(slices.Clone(env), markerKey+"="+b.id)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, nil
}

// start starts the first process.
func (b *box) start() error {
	argv := slices.Concat(b.Entrypoint, b.Cmd)
	if len(argv) == 0 {
		return errorf(http.StatusBadRequest, "No command specified")
	}
	cmd, err := b.command(argv, b.Env, b.WorkingDir)
	if err != nil {
		b.failed()
		return errorf(http.StatusBadRequest, "failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: %v: unknown", err)
	}
	var pipes [2]*os.File
	for i, to := range []*io.Writer{&cmd.Stdout, &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer w.Close()
		pipes[i], *to = r, w
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state == "running" {
		return nil
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if b.state == "exited" {
		b.out = newOutput()
	}
	b.state, b.pid = "running", cmd.Process.Pid
	b.engine.work.Go(func() { b.watch(cmd, pipes, b.out) })
	return nil
}

// watch copies a container's output and takes note of its end.
func (b *box) watch(cmd *exec.Cmd, pipes [2]*os.File, out *output) {
	var copying sync.WaitGroup
	for i, r := range pipes {
		copying.Go(func() {
			defer r.Close()
			_, _ = io.Copy(out.stream(byte(i+1)), r) // it ends with its writers
		})
	}
	state, _ := cmd.Process.Wait()
	b.killRest()
	copying.Wait()
	out.close()
	b.mu.Lock()
	b.state, b.pid, b.code = "exited", 0, exitCode(state)
	b.mu.Unlock()
	b.ended(exitCode(state))
}

// failed takes note of a start that failed.
func (b *box) failed() {
	b.mu.Lock()
	b.out.close()
	b.mu.Unlock()
	b.ended(127)
}

// ended wakes those who wait for the end.
func (b *box) ended(code int) {
	b.mu.Lock()
	b.code = code
	close(b.exits)
	b.exits = make(chan struct{})
	remove, _ := b.HostConfig["AutoRemove"].(bool)
	b.mu.Unlock()
	if remove {
		b.engine.forget(b)
	}
}

func exitCode(state *os.ProcessState) int {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// processes are those of the container that run.
func (b *box) processes() (pids []int) {
	entries, _ := os.ReadDir("/proc") // elsewhere a container has no process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(e []byte) bool { return string(e) == markerKey+"="+b.id }) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killRest ends what is left in the container, as the end of its first process does.
func (b *box) killRest() {
	for left := b.processes(); len(left) > 0; left = b.processes() {
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it has ended by itself
		}
		time.Sleep(time.Millisecond)
	}
}

// killAll ends the container and waits for its end.
func (b *box) killAll() {
	b.mu.Lock()
	exits := b.exits
	b.mu.Unlock()
	if b.signal("KILL") {
		<-exits
	}
}

func (b *box) runs() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state == "running"
}

var signals = map[string]syscall.Signal{"": syscall.SIGKILL, "KILL": syscall.SIGKILL, "9": syscall.SIGKILL, "TERM": syscall.SIGTERM, "15": syscall.SIGTERM, "INT": syscall.SIGINT, "2": syscall.SIGINT}

// signal sends a signal to the first process; false: the container does not run.
func (b *box) signal(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state != "running" {
		return false
	}
	_ = syscall.Kill(b.pid, signals[strings.TrimPrefix(name, "SIG")]) // it has ended by itself
	return true
}

// stop asks, waits and kills.
func (b *box) stop(seconds string) {
	b.mu.Lock()
	exits := b.exits
	b.mu.Unlock()
	n, err := strconv.Atoi(seconds)
	if err != nil {
		n = 10
	}
	if !b.signal(b.image.StopSignal + map[bool]string{true: "TERM"}[b.image.StopSignal == ""]) {
		return
	}
	select {
	case <-exits:
	case <-time.After(time.Duration(n) * time.Second):
		b.killAll()
	}
}

// wait answers when the container does not run, or when it has exited next.
func (b *box) wait(w http.ResponseWriter, r *http.Request, condition string) error {
	b.mu.Lock()
	exits, state := b.exits, b.state
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	if state == "running" || condition == "next-exit" || condition == "removed" {
		select {
		case <-exits:
		case <-r.Context().Done():
			return nil
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]int{"StatusCode": b.code}) // the client has gone
	return nil
}

// logs sends what was written, and with follow what is.
func (b *box) logs(w http.ResponseWriter, r *http.Request, follow bool) error {
	w.Header().Set("Content-Type", "application/vnd.docker.multiplexed-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	b.mu.Lock()
	out, created := b.out, b.state == "created"
	b.mu.Unlock()
	_ = out.copyTo(flushing{w}, r.Context().Done(), follow && !created) // the client has gone
	return nil
}

// flushing sends each frame at once.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	f.ResponseWriter.(http.Flusher).Flush()
	return n, err
}

// attach streams the output of a container that is started afterwards.
func (b *box) attach(w http.ResponseWriter, r *http.Request) error {
	c, err := hijack(w)
	if err != nil {
		return err
	}
	b.mu.Lock()
	out := b.out
	b.mu.Unlock()
	b.engine.work.Go(func() {
		defer c.Close()
		_ = out.copyTo(c, nil, true) // the client has gone
	})
	return nil
}

// keep takes a file in.
func (b *box) keep(path string, text []byte) error {
	at := filepath.Join(b.root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(at, text, 0o644); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files[path] = string(text)
	return nil
}

func (b *box) inspect() map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	mode, _ := b.HostConfig["NetworkMode"].(string)
	return map[string]any{
		"Id": b.id, "Name": "/" + b.name, "Image": b.image.id, "RestartCount": b.restarts, "Created": "2026-01-01T00:00:00Z",
		"State":           map[string]any{"Status": b.state, "Running": b.state == "running", "OOMKilled": b.oom, "ExitCode": b.code, "Pid": b.pid},
		"Config":          map[string]any{"Image": b.Image, "Labels": b.Labels, "StopSignal": b.image.StopSignal, "Env": b.Env, "Tty": b.Tty},
		"HostConfig":      map[string]any{"NetworkMode": mode},
		"NetworkSettings": map[string]any{"Networks": map[string]any{}},
	}
}

func (b *box) summary() map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	return map[string]any{
		"Id": b.id, "Names": []string{"/" + b.name}, "Image": b.Image, "ImageID": b.image.id, "Labels": b.Labels, "State": b.state, "Status": b.state,
		"Command": strings.Join(slices.Concat(b.Entrypoint, b.Cmd), " "), "Created": 0, "Ports": []any{},
	}
}

func (b *box) matches(labels map[string]bool) bool {
	for l := range labels {
		k, v, _ := strings.Cut(l, "=")
		if got, ok := b.Labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// shown is what a test sees.
func (b *box) shown() Container {
	pids := b.processes()
	b.mu.Lock()
	defer b.mu.Unlock()
	return Container{ID: b.id, Name: b.name, Running: b.state == "running", Config: b.all, Labels: maps.Clone(b.Labels), Files: maps.Clone(b.files), PIDs: pids}
}

// output is what a process has written, as frames: a byte for the stream, three zeros,
// the length in four bytes, and the text.
type output struct {
	mu     sync.Mutex
	more   chan struct{} // closed when there is more
	b      []byte
	closed bool
}

func newOutput() *output { return &output{more: make(chan struct{})} }

type streamWriter struct {
	*output
	kind byte
}

func (o *output) stream(kind byte) io.Writer { return streamWriter{o, kind} }

func (s streamWriter) Write(p []byte) (int, error) {
	head := [8]byte{s.kind}
	binary.BigEndian.PutUint32(head[4:], uint32(len(p)))
	s.add(slices.Concat(head[:], p), false)
	return len(p), nil
}

func (o *output) close() { o.add(nil, true) }

func (o *output) add(p []byte, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b, o.closed = append(o.b, p...), o.closed || last
	close(o.more)
	o.more = make(chan struct{})
}

// copyTo writes what there is, and with follow what comes, until the end or done.
func (o *output) copyTo(w io.Writer, done <-chan struct{}, follow bool) error {
	for sent := 0; ; {
		o.mu.Lock()
		b, more, closed := o.b[sent:], o.more, o.closed
		o.mu.Unlock()
		if len(b) > 0 {
			if _, err := w.Write(b); err != nil {
				return err
			}
			sent += len(b)
			continue
		}
		if closed || !follow {
			return nil
		}
		select {
		case <-more:
		case <-done:
			return nil
		}
	}
}
