// Package dockertest is a stand-in for the Docker Engine: it speaks the part of the
// Engine API that perflab uses, and the docker command for ps, inspect, logs, pull, run
// and exec, and its containers are processes of this machine.
//
//	e := dockertest.Start(t, dockertest.Image{Ref: "vllm/vllm-openai:v0.11.0"})
//	r := &docker.Runtime{Settings: docker.Settings{Image: "vllm/vllm-openai:v0.11.0", DockerHost: e.Host}}
//
// A container's processes are known by a variable in their environment, as a cgroup would
// know them; when its first process ends, all end. What it lacks: namespaces and limits (a
// program sees this machine's files, network and process ids), a file system of
// a container's own (files that were copied in are found by the words of the command
// that name them), and all endpoints that perflab does not use.
package dockertest

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Image is one that the engine has or can pull.
type Image struct {
	Ref        string   // NAME:TAG
	Remote     bool     // it has to be pulled first
	Login      string   // user:password that its registry wants, "": none
	Entrypoint []string // of the image
	StopSignal string
	Sum        string // of its digest, in hex, so that two engines have the same; "": chosen
}

// Engine is the stand-in.
type Engine struct {
	Host string // as DOCKER_HOST has it

	dir string
	t   testing.TB

	mu         sync.Mutex
	images     map[string]*stored
	containers map[string]*box
	execs      map[string]*session
	fail       func(method, path string) (status int, message string)
	requests   []string
	server     *http.Server
	work       sync.WaitGroup
}

// stored is an image with its names.
type stored struct {
	Image
	id, digest string
}

// Start starts an engine on a socket in the test's directory; it ends with the test, and
// what runs in it.
func Start(t testing.TB, images ...Image) *Engine {
	t.Helper()
	dir, err := os.MkdirTemp("", "dockertest")
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(dir, images...)
	if err != nil {
		t.Fatal(err)
	}
	e.t = t
	t.Cleanup(e.Close)
	return e
}

// Open starts an engine for a program that is none of Go's tests, on the socket docker.sock of a directory, which Close
// removes.
func Open(dir string, images ...Image) (*Engine, error) {
	e := &Engine{
		Host: "unix://" + filepath.Join(dir, "docker.sock"), dir: dir,
		images: map[string]*stored{}, containers: map[string]*box{}, execs: map[string]*session{},
	}
	for _, im := range images {
		sum := cmp.Or(im.Sum, newID())
		e.images[im.Ref] = &stored{Image: im, id: "sha256:" + newID(), digest: repository(im.Ref) + "@sha256:" + sum}
	}
	return e, e.listen()
}

func (e *Engine) listen() error {
	l, err := net.Listen("unix", strings.TrimPrefix(e.Host, "unix://"))
	if err != nil {
		return err
	}
	e.server = &http.Server{Handler: http.HandlerFunc(e.serve)}
	e.work.Go(func() { _ = e.server.Serve(l) }) // ErrServerClosed
	return nil
}

// Restart closes every connection and listens again, as a daemon that is restarted with
// its containers running on.
func (e *Engine) Restart() {
	e.Down()
	if err := e.listen(); err != nil {
		e.t.Fatal(err)
	}
}

// Down closes every connection and listens no more; containers run on.
func (e *Engine) Down() {
	_ = e.server.Close() // only its listener's error
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.execs {
		s.hangUp()
	}
}

// Close ends the engine, and what runs in it.
func (e *Engine) Close() {
	e.Down()
	e.mu.Lock()
	boxes := make([]*box, 0, len(e.containers))
	for _, b := range e.containers {
		boxes = append(boxes, b)
	}
	e.mu.Unlock()
	for _, b := range boxes {
		b.killAll()
	}
	e.work.Wait()
	_ = os.RemoveAll(e.dir) // a test's leavings
}

// FailWith has f asked before each request: a status other than 0 is the answer, with the
// message. The path has no version.
func (e *Engine) FailWith(f func(method, path string) (status int, message string)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fail = f
}

// Requests are the requests so far, "POST /containers/create".
func (e *Engine) Requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.requests)
}

// Digest is that of an image.
func (e *Engine) Digest(ref string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.images[ref].digest
}

// Retag makes a tag mean another image, as a registry's does that was pushed to.
func (e *Engine) Retag(ref string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.images[ref]
	e.images[old.id] = old
	e.images[ref] = &stored{Image: old.Image, id: "sha256:" + newID(), digest: repository(ref) + "@sha256:" + newID()}
}

// Container is what a test sees of one.
type Container struct {
	ID, Name string
	Running  bool
	Config   map[string]any    // as it was created, with HostConfig
	Labels   map[string]string // of Config
	Files    map[string]string // copied in
	PIDs     []int             // of its processes
}

// Containers are those that were created and not removed.
func (e *Engine) Containers() []Container {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := []Container{}
	for _, b := range e.containers {
		out = append(out, b.shown())
	}
	slices.SortFunc(out, func(a, b Container) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// RunOutOfMemory ends a container as the kernel does one whose memory is used up.
func (e *Engine) RunOutOfMemory(id string) {
	e.mu.Lock()
	b := e.containers[id]
	e.mu.Unlock()
	b.mu.Lock()
	b.oom = true
	b.mu.Unlock()
	b.signal("KILL")
}

// Run creates and starts a container as somebody else would, and returns its id.
func (e *Engine) Run(name, ref string, argv []string, labels map[string]string) string {
	e.t.Helper()
	b, err := e.create(name, createBody{Image: ref, Entrypoint: argv, Labels: labels, HostConfig: map[string]any{"NetworkMode": "host"}})
	if err == nil {
		err = b.start()
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return b.id
}

func newID() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// repository is a reference without its tag.
func repository(ref string) string {
	ref, _, _ = strings.Cut(ref, "@")
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i]
	}
	return ref
}

// apiError is an answer other than success.
type apiError struct {
	status  int
	message string
}

func (e *apiError) Error() string { return e.message }

func errorf(status int, format string, args ...any) error {
	return &apiError{status, fmt.Sprintf(format, args...)}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone
}
