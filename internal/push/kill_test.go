package push_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"perflab/internal/push"
	"perflab/internal/test/deploytest"
	"perflab/internal/web"
	"perflab/internal/web/guard"
)

// victim is the variable that makes the test program a server that is killed: it names root and address.
const victim = "PERFLAB_TEST_PUSH_VICTIM"

func TestMain(m *testing.M) {
	if listen := os.Getenv(victim); listen != "" {
		serveForEver(listen, os.Args[1])
	}
	os.Exit(m.Run())
}

func serveForEver(listen, root string) {
	ctx := context.Background()
	s, err := web.Open(ctx, web.Options{Roots: []string{root}, Reserve: 1, Guard: guard.Options{Listen: listen}})
	if err == nil {
		err = s.Run(ctx, func(string) { fmt.Println("serves") })
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// start starts a server and waits until it can be reached.
func start(t *testing.T, listen, root string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], root)
	c.Env = append(os.Environ(), victim+"="+listen)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("the server has ended by itself")
	}
	return c
}

func kill(t *testing.T, c *exec.Cmd) {
	t.Helper()
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = c.Wait() // it was killed
}

// TestKill: a server that is killed again and again in the middle of a push loses nothing of what came, and
// shows nothing of it before it is whole.
func TestKill(t *testing.T) {
	dir := large(t, t.TempDir(), "run", 1, 60<<20) // some pieces
	root := t.TempDir()
	listen := fmt.Sprintf("127.0.0.1:%d", deploytest.UnusedPorts(t, 1))
	server := start(t, listen, root)
	defer func() { kill(t, server) }()
	kills, sent := 0, int64(0)
	done, err := push.Push(t.Context(), push.Options{URL: "http://" + listen}, []string{dir}, func(p push.Progress) {
		if p.Waiting == "" && p.Bytes > sent && kills < 4 {
			sent = p.Bytes
			kills++
			kill(t, server)
			if _, err := os.Stat(filepath.Join(root, "run")); err == nil {
				t.Error("it is there before it is whole")
			}
			server = start(t, listen, root)
		}
	})
	if err != nil || len(done) != 1 || kills < 4 {
		t.Fatalf("%+v after %d kills: %v", done, kills, err)
	}
	same(t, dir, filepath.Join(root, "run"))
	if left, err := os.ReadDir(filepath.Join(root, ".perflab", "uploads")); err != nil || len(left) > 0 {
		t.Errorf("%d uploads are left: %v", len(left), err)
	}
	again, err := push.Push(t.Context(), push.Options{URL: "http://" + listen}, []string{dir}, nil)
	if err != nil || !again[0].There {
		t.Errorf("%+v: %v", again, err)
	}
}
