//go:build unix

package launch

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve is a server that does nothing but run the queue of a directory until it is killed.
func serve(dir string) int {
	self, err := os.Executable()
	if err == nil {
		_, err = Open(dir, Options{Program: self, Env: append(os.Environ(), "LAUNCH_TEST_SERVER="), AtOnce: 2, every: time.Millisecond})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}

// TestServersKilled kills one server after another, as kill -9 does, at random points. In the end
// each launch was made, none twice, and how each ended is known.
func TestServersKilled(t *testing.T) {
	t.Parallel()
	const launches = 8
	dir := t.TempDir()
	t.Cleanup(func() { killAll(t, dir) })
	for i := range launches {
		written(t, dir, Launch{State: Queued, Order: int64(i)}, map[string]any{}, "count-"+fmt.Sprint(i))
	}
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for left := launches; left > 0 && kills < 20; kills++ {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LAUNCH_TEST_CHILD=1", "LAUNCH_TEST_SERVER="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		life := time.AfterFunc(time.Duration(random.Float64()*float64(400*time.Millisecond)), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed
		life.Stop()
		left = launches - endedIn(t, dir)
	}
	t.Logf("%d servers were killed", kills)
	q := openFor(t, dir, testOptions(t)) // what they have left
	for _, l := range q.List() {
		l = ended(t, q, l.ID)
		if len(l.Attempts) != 1 || l.Last().Exit.Meaning != "done" {
			t.Errorf("%s: %d attempts, the last ended %+v", l.Name, len(l.Attempts), l.Last().Exit)
		}
		ran, err := os.ReadFile(filepath.Join(l.Dir, "ran"))
		if n := strings.Count(string(ran), "\n"); err != nil || n != 1 {
			t.Errorf("%s was made %d times, %v", l.Name, n, err)
		}
	}
	if n := len(q.List()); n != launches {
		t.Errorf("%d launches are left of %d", n, launches)
	}
}

// endedIn is how many launches of a directory have ended.
func endedIn(t *testing.T, dir string) (n int) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*", launchFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		var l Launch
		if err := readJSON(path, &l); err != nil {
			t.Errorf("a kill left %s: %v", path, err)
		} else if l.State == Ended {
			n++
		}
	}
	return n
}
