package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/fleet/bus"
	"perflab/internal/test/deploytest"
)

func TestMain(m *testing.M) {
	deploytest.EngineMain()
	if filepath.Base(os.Args[0]) == engineName {
		if err := standIn(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if name := os.Getenv(partVariable); name != "" {
		fmt.Fprintln(os.Stderr, play(name))
		os.Exit(1)
	}
	os.Exit(run(m))
}

// run runs the tests with the stand-in on the PATH before all others.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "node-engines")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, engineName))
	}
	if err != nil {
		panic(err)
	}
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	os.Setenv("HF_HUB_CACHE", filepath.Join(dir, "hub")) // no tokenizer of this machine measures a test's prompts
	os.Setenv("GORACE", "atexit_sleep_ms=0")             // the race detector else makes every exit take a second
	return deploytest.Main(m)
}

// site is a hub with a leader's connection.
type site struct {
	dir  string // of the hub
	hub  *bus.Server
	conn *bus.Conn

	mu     sync.Mutex
	agents []Agent
}

func startSite(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	hub, err := bus.Start(bus.Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := hub.Dial(t.Context(), bus.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := hub.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{dir: dir, hub: hub, conn: conn}
}

// start starts an agent that serves processes, until end is called.
func (s *site) start(t *testing.T, name string, labels map[string]string) (end func()) {
	t.Helper()
	return s.startWith(t, name, labels, Options{Processes: true})
}

// startWith starts an agent that serves as its options say.
func (s *site) startWith(t *testing.T, name string, labels map[string]string, o Options) (end func()) {
	t.Helper()
	conn := s.join(t, name, labels)
	o.Conn, o.Dir = conn, t.TempDir()
	x := newServer(conn.ID(), o)
	stop, err := x.listen()
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		stop()
		x.close()
		conn.Close()
	})
	t.Cleanup(end)
	return end
}

// join makes an agent's connection.
func (s *site) join(t *testing.T, name string, labels map[string]string) *bus.Conn {
	t.Helper()
	url, err := s.hub.Invite(bus.Invite{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	me, err := bus.Join(t.Context(), url, t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Dial(t.Context(), me, bus.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agents = append(s.agents, Agent{ID: me.ID, Name: name, Labels: labels})
	return conn
}

func (s *site) there(context.Context) []Agent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.agents)
}

// lead leads the site's nodes.
func (s *site) lead(t *testing.T, o Leader) *Nodes {
	t.Helper()
	if o.Conn == nil {
		o.Conn = s.conn
	}
	o.Agents, o.Who = s.there, strings.TrimSpace("a test "+o.Who)
	n := Lead(o)
	t.Cleanup(n.Close)
	return n
}

// TestRuntime: a node is a runtime as any other.
func TestRuntime(t *testing.T) {
	s := startSite(t)
	s.start(t, "a", nil)
	n := s.lead(t, Leader{Lease: time.Minute})
	t.Run("suite", func(t *testing.T) {
		deploytest.Run(t, func(*testing.T) deploy.Runtime { return n.On("a", deploy.Process{}, nil) })
	})
	t.Run("devices", func(t *testing.T) { deploytest.Devices(t, n.On("a", deploy.Process{}, nil)) })
}
