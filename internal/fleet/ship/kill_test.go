package ship

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// childDir names the spool of the process that TestKill starts.
const childDir = "PERFLAB_TEST_SPOOL"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		child(dir)
		return
	}
	os.Exit(m.Run())
}

// child adds a call each millisecond, over a link that takes the first two batches, and says of how many
// calls batches are made.
func child(dir string) {
	l := newLeader(func(n int) fault {
		if n < 2 {
			return none
		}
		return cut
	})
	s, err := New(l, Options{Dir: dir, Calls: 5, Every: time.Millisecond})
	if err != nil {
		panic(err)
	}
	calls := streams(41, 1000, 20)
	for range time.Tick(time.Millisecond) {
		if len(calls) > 0 {
			s.Add(&calls[0])
			calls = calls[1:]
		}
		fmt.Println(s.Sent().Batches)
	}
}

// TestKill: of a process that was killed in the middle, all that was on disk is found.
func TestKill(t *testing.T) {
	want := streams(41, 1000, 20)
	dir := filepath.Join(t.TempDir(), "spool")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	made := 0
	for lines := bufio.NewScanner(out); made < 40 && lines.Scan(); {
		if made, err = strconv.Atoi(lines.Text()); err != nil {
			t.Error(err)
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // it was killed
	if made < 40 {
		t.Fatalf("it made %d batches", made)
	}
	l := newLeader(nil)
	got := fetch(t, l, dir)
	if got.damaged > 0 || got.missing != nil || int(got.last) < made-1 { // the last may not be on the disk yet
		t.Fatalf("%+v, %d batches were made", got, made)
	}
	from := l.calls[0].Index
	if from > 10 || !bytes.Equal(lines(l.calls), lines(want[from:from+len(l.calls)])) {
		t.Errorf("%d calls from %d on, which are not those that were sent", len(l.calls), from)
	}
	gone(t, dir)
}
