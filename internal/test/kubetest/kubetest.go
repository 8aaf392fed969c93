// Package kubetest is a Kubernetes cluster for tests: a real control plane (etcd, API server,
// controller manager and scheduler, each a process), nodes whose kubelet runs pods as processes
// of this machine, and what a site adds to a cluster (LeaderWorkerSet, Kueue's gate, webhooks).
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Main(m)) }
//
//	func TestPod(t *testing.T) {
//		c := kubetest.Start(t)
//		ns := c.Namespace(t)
//		c.Node(t, "node-1", kubetest.Resources{"nvidia.com/gpu": "8"})
//		run(c.Kubeconfig(t, kubetest.Admin), ns)
//	}
//
// The control plane is the program that PERFLAB_KUBE_CONTROL names (make kube-control builds
// it); without it tests are skipped. All tests of a binary share one, and each has its own
// place in it: pods of its namespaces run on its nodes alone, and it reaches the API server by
// a door of its own, which shows no nodes of others, which Away closes and FailWith makes fail.
// When a test binary ends, however it ends, nothing of all this is left.
//
// A container's command runs as it is written. Where the command, the environment or a probe
// names the mount path of a volume, the directory that the volume is stands there instead. A
// container has devices of its own where it asks for some, and those of NVIDIA in the variable
// of its plugin. Back-off is a hundred times as short as that of a real kubelet, a probe that
// succeeds is noticed at once, and none fails because the machine is busy.
//
// What a kubelet here lacks: namespaces and limits of the kernel (a container sees this
// machine's files, network and process ids; every pod has the address 127.0.0.1, which the
// API server takes for no endpoint of a Service), the content of images (Image says what else
// they do), and attaching to a container.
package kubetest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"perflab/internal/test/deploytest"
)

// Variable names the program of the control plane.
const Variable = "PERFLAB_KUBE_CONTROL"

// Admin is the user who may do everything.
const Admin = "admin"

// soon bounds what should take a moment, on a machine that is busy.
const soon = 60 * time.Second

// tenantLabel marks what belongs to a test: its namespaces, its nodes and what the kit makes for it.
const tenantLabel = "kubetest/test"

// Cluster is one test's place in the control plane.
type Cluster struct {
	plane *plane
	id    string // of the test in the control plane
	dir   string
	door  *door
	ctx   context.Context // the test's work; ends before the door
	work  sync.WaitGroup
	// How long what is about to go from a namespace may take at the test's end.
	patience time.Duration

	mu         sync.Mutex
	namespaces []string
	users      map[string]string // tokens
	images     map[string]Image
	nodes      []*Node
}

var tenants atomic.Int64

// Start gives a test its place in the control plane of the test binary, which the first one
// starts; without the program the test is skipped.
func Start(t testing.TB) *Cluster {
	t.Helper()
	program := os.Getenv(Variable)
	if program == "" {
		t.Skip("no control plane of Kubernetes: make kube-control builds one, and " + Variable + " names it")
	}
	p, err := shared(program)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		plane: p, patience: patience, id: fmt.Sprintf("t%d", tenants.Add(1)),
		users: map[string]string{Admin: p.token}, images: map[string]Image{},
	}
	c.dir = filepath.Join(p.dir, c.id)
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if c.door, err = openDoor(p, c.id); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.ctx = ctx
	t.Cleanup(func() {
		c.mu.Lock()
		nodes := slices.Clone(c.nodes)
		c.mu.Unlock()
		for _, n := range nodes {
			n.Stop()
		}
		cancel()
		c.work.Wait()
		c.door.shut()
		p.api.CloseIdleConnections()
		if err := p.ended(); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(c.dir) // removed with the control plane at the latest
	})
	return c
}

// Main runs a package's tests as deploytest.Main does, and ends the control plane after them.
func Main(m *testing.M) int { return deploytest.Main(tests{m}) }

// Tests are a package's tests with the end of the control plane after them, for a TestMain that has
// another way to run them.
func Tests(m *testing.M) interface{ Run() int } { return tests{m} }

type tests struct{ m *testing.M }

func (r tests) Run() int {
	code := r.m.Run()
	end()
	return code
}

// Kubeconfig writes a file by which a user reaches the API server, and returns its path. The
// context's namespace is the test's first.
func (c *Cluster) Kubeconfig(t testing.TB, user string) string {
	t.Helper()
	c.mu.Lock()
	token, known := c.users[user]
	namespace := ""
	if len(c.namespaces) > 0 {
		namespace = c.namespaces[0]
	}
	c.mu.Unlock()
	if !known {
		t.Fatalf("the cluster has no user %q", user)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, kubeconfig(c.door.url, c.plane.certs.authority, user, token, namespace), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Away closes the API server's door to this test's clients: connections break and new ones are
// refused, while the cluster goes on behind it. The function that it returns opens the door again.
func (c *Cluster) Away(t testing.TB) (back func()) {
	t.Helper()
	c.door.shut()
	return func() {
		t.Helper()
		if err := c.door.listen(); err != nil {
			t.Error(err)
		}
	}
}

// FailWith has f asked before each request of this test's clients: a status other than 0 is the
// answer, with the message, as the API server's own failures. A nil f lets all pass.
func (c *Cluster) FailWith(f func(r *http.Request) (status int, message string)) {
	c.door.fail.Store(&f)
}

// Requests are the requests of this test's clients so far: user agent, method and path.
func (c *Cluster) Requests() []Request { return c.door.seen() }

// Request is one that a client made.
type Request struct{ Agent, Method, Path string }

func (r Request) String() string { return strings.Join([]string{r.Agent, r.Method, r.Path}, " ") }

// eventually asks, ever more seldom, until f says yes; false: not before the time was up, or ctx ended.
func eventually(ctx context.Context, limit time.Duration, f func() bool) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for pause := 10 * time.Millisecond; !f(); pause = min(2*pause, 200*time.Millisecond) {
		select {
		case <-time.After(pause):
		case <-timer.C:
			return f()
		case <-ctx.Done():
			return false
		}
	}
	return true
}
