package bus

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/test/deploytest"
)

// hubVariable has the test's own program be a hub, which can be killed.
const hubVariable = "PERFLAB_TEST_HUB"

func TestMain(m *testing.M) {
	if dir, listen, ok := strings.Cut(os.Getenv(hubVariable), "|"); ok {
		beHub(dir, listen)
	}
	os.Exit(m.Run())
}

// beHub prints an invitation and stays until it is killed, or the test that has started it is gone.
func beHub(dir, listen string) {
	s, err := Start(Options{Dir: dir, Listen: listen})
	url := ""
	if err == nil {
		url, err = s.Invite(Invite{})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(url)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // ends with the test
	os.Exit(0)
}

// hubProcess starts a hub as a process and gives its invitation, and what kills it.
func hubProcess(t *testing.T, dir, listen string) (url string, kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), hubVariable+"="+dir+"|"+listen)
	stdin, err := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_ = c.Process.Kill() // an error: it was killed already
		_ = c.Wait()
		_ = stdin.Close()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "perflab://") {
		t.Fatalf("the hub says %q, %v", line, err)
	}
	return strings.TrimSpace(line), kill
}

// TestHubKilled kills the hub and starts it again: who was connected is again, and what the hub had said is so.
func TestHubKilled(t *testing.T) {
	dir, listen := t.TempDir(), fmt.Sprint("127.0.0.1:", deploytest.UnusedPorts(t, 1))
	url, kill := hubProcess(t, dir, listen)
	id := must[Identity](t)(Join(within(t), url, t.TempDir(), "a"))
	e := newEnds()
	a, l := connected(t, id, DialOptions{}), connected(t, must[Identity](t)(LoadLeader(dir)), e.options())
	must[func()](t)(a.Handle(Do(id.ID, "x"), func(m Message) { _ = m.Reply([]byte("here")) }))
	for round := range 3 {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, fmt.Append(nil, "file ", round), 0o600); err != nil {
			t.Fatal(err)
		}
		lease := must[*Lease](t)(l.Claim(within(t), fmt.Sprint("node.", round), []byte("me"), time.Hour))
		number := must[uint64](t)(l.Next(within(t), "epoch"))
		digest := must[string](t)(l.PutFile(within(t), path)) // the last before the kill: it is on the disk
		kill()
		come(t, "the news that the hub is away", e.lost)
		_, kill = hubProcess(t, dir, listen)
		come(t, "the connection", e.back)
		if err := l.GetFile(within(t), digest, path+".got"); err != nil {
			t.Error(err)
		}
		if n := must[uint64](t)(l.Next(within(t), "epoch")); n <= number {
			t.Errorf("the number %d follows %d", n, number)
		}
		if err := lease.Renew(within(t)); err != nil {
			t.Error(err)
		}
		var answer []byte
		for ctx, err := within(t), ErrNobody; errors.Is(err, ErrNobody); { // until the agent is back too
			if answer, err = l.Request(ctx, Do(id.ID, "x"), nil); err != nil && !errors.Is(err, ErrNobody) {
				t.Fatal(err)
			}
		}
		if string(answer) != "here" {
			t.Errorf("the agent answers %q", answer)
		}
	}
}
