package proc

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
)

// elsewhere has the files of another directory than /proc read, until the test ends.
func elsewhere(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	before := root
	root = dir
	t.Cleanup(func() { root = before })
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// live writes what a process shows.
func live(t *testing.T, dir string, pid, parent int, start uint64) {
	t.Helper()
	write(t, filepath.Join(dir, strconv.Itoa(pid), "stat"), fmt.Sprintf("%d (p) S %d 9 9 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 %d", pid, parent, start))
}

func pids(t Table) []int { return slices.Sorted(maps.Keys(t)) }

func TestUpdate(t *testing.T) {
	dir := elsewhere(t)
	live(t, dir, 1, 0, 1)
	live(t, dir, 10, 1, 5)
	live(t, dir, 11, 10, 6)
	live(t, dir, 20, 1, 7)
	write(t, filepath.Join(dir, "30", "stat"), "30 (no fields)")
	write(t, filepath.Join(dir, "uptime"), "1 1")
	before := All()
	if got := pids(before); !slices.Equal(got, []int{1, 10, 11, 20}) {
		t.Fatalf("processes %v", got)
	}
	members := before.Tree(before[10].ID)

	// 11 ends, and 10 starts two; 20 ends, which nobody asks for.
	for _, pid := range []string{"11", "20"} {
		if err := os.RemoveAll(filepath.Join(dir, pid)); err != nil {
			t.Fatal(err)
		}
	}
	live(t, dir, 12, 10, 9)
	live(t, dir, 13, 12, 9)
	live(t, dir, 21, 1, 9)
	live(t, dir, 1, 5, 1) // not read again
	now := before.Update(members)
	if got := pids(now); !slices.Equal(got, []int{1, 10, 12, 13, 20, 21}) || now[1].Parent != 0 {
		t.Errorf("processes %v, of which 1 is %+v", got, now[1])
	}
	if got := pids(now.Tree(members.IDs()...)); !slices.Equal(got, []int{10, 12, 13}) {
		t.Errorf("members %v", got)
	}
	if got := pids(before); !slices.Equal(got, []int{1, 10, 11, 20}) {
		t.Errorf("the table before has %v now", got)
	}

	// A member's number is another's now.
	live(t, dir, 12, 1, 99)
	if later := now.Update(now.Tree(before[10].ID)); later.Holds(now[12].ID) || later[12].Start != 99 || len(later.Tree(before[10].ID)) != 1 {
		t.Errorf("%+v", later)
	}
	if all := Table(nil).Update(nil); len(all) != 5 {
		t.Errorf("of no table: %v", pids(all))
	}
}

// A process whose parent ended while all were listed has another one since, or has ended too.
func TestAdopt(t *testing.T) {
	dir := elsewhere(t)
	live(t, dir, 10, 1, 5)
	live(t, dir, 12, 10, 6)
	live(t, dir, 14, 10, 6)
	all := table(at(10, 1, 5), at(12, 11, 6), at(13, 11, 6), at(14, 10, 6), at(15, 0, 6))
	all.adopt([]int{12, 13, 14, 15, 16})
	if got := pids(all.Tree(all[10].ID)); !slices.Equal(got, []int{10, 12, 14}) || len(all) != 4 || all[14].Used != 0 {
		t.Errorf("of 10 came %v among %+v", got, all)
	}
}

func TestListening(t *testing.T) {
	dir := elsewhere(t)
	const line = "   0: 0100007F:%04X 00000000:0000 %s 00000000:00000000 00:00000000 00000000     0        0 %d 1\n"
	write(t, filepath.Join(dir, "net", "tcp"), fmt.Sprintf(line, 8000, "0A", 100)+fmt.Sprintf(line, 8001, "0A", 101)+fmt.Sprintf(line, 8002, "01", 102))
	write(t, filepath.Join(dir, "net", "tcp6"), fmt.Sprintf(line, 8003, "0A", 103))
	opens := func(pid int, links ...string) {
		live(t, dir, pid, 1, 1)
		fds := filepath.Join(dir, strconv.Itoa(pid), "fd")
		if err := os.MkdirAll(fds, 0o755); err != nil {
			t.Fatal(err)
		}
		for i, link := range links {
			if err := os.Symlink(link, filepath.Join(fds, strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	opens(10, "/dev/null", "socket:[99]", "socket:[100]")
	opens(11, "socket:[100]") // shares it
	opens(12, "socket:[101]", "socket:[102]")
	opens(13, "socket:[1000]", "/socket:[100]")
	opens(14, "socket:[103]")
	opens(os.Getpid(), "socket:[100]")
	live(t, dir, 15, 1, 1) // another user's
	all := All()
	for _, c := range []struct {
		ports []int
		want  []int
	}{{[]int{8000}, []int{10, 11}}, {[]int{8001, 8003}, []int{12, 14}}, {[]int{8002}, nil}, {[]int{1}, nil}, {nil, nil}} {
		var got []int
		for _, id := range all.Listening(c.ports...) {
			if !all.Holds(id) {
				t.Errorf("%+v is not listed", id)
			}
			got = append(got, id.PID)
		}
		if slices.Sort(got); !slices.Equal(got, c.want) {
			t.Errorf("on %v listen %v, want %v", c.ports, got, c.want)
		}
	}
}

func TestWaits(t *testing.T) {
	dir := elsewhere(t)
	for thread, text := range map[string]string{"10": "5000 300 7\n", "11": "1 40 2\n", "12": "0 x 0\n", "13": "1 2\n", "14": ""} {
		write(t, filepath.Join(dir, "10", "task", thread, "schedstat"), text)
	}
	if waited, runs := Waits(10); waited != 340 || runs != 9 {
		t.Errorf("waited %v in %d", waited, runs)
	}
}

// Where there is no /proc, nothing is known.
func TestNoProc(t *testing.T) {
	root = filepath.Join(elsewhere(t), "none")
	if all := All(); all == nil || len(all) > 0 || all.Listening(80) != nil || len(all.Update(all)) > 0 {
		t.Errorf("processes %v", all)
	}
	if p, ok := Read(7); ok || p != (Process{ID: ID{PID: 7}}) {
		t.Errorf("%+v, %v", p, ok)
	}
	if waited, runs := Waits(7); waited != 0 || runs != 0 {
		t.Errorf("waited %v in %d", waited, runs)
	}
	if c := ReadCPU(); c != (CPU{}) {
		t.Errorf("%+v", c)
	}
}

// This machine is as it says.
func TestThisMachine(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has these files")
	}
	for end := time.Now().Add(30 * time.Millisecond); time.Now().Before(end); {
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := All()
	self, child := all[os.Getpid()], all[cmd.Process.Pid]
	if self.Parent != os.Getppid() || self.Name == "" || self.Start == 0 || self.Boot == "" || self.Used <= 0 || self.Ended {
		t.Errorf("this process is %+v", self)
	}
	if child.Parent != os.Getpid() || child.Group != self.Group || child.Start < self.Start || child.Boot != self.Boot {
		t.Errorf("a child is %+v", child)
	}
	if !all.Tree(self.ID).Holds(child.ID) || all.Tree(child.ID).Holds(self.ID) {
		t.Error("a child is not one")
	}
	if c := ReadCPU(); c.Count < 1 || c.all <= 0 || c.idle <= 0 {
		t.Errorf("processors %+v", c)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if p, ok := Read(child.PID); ok && p.Ended && p.ID == child.ID {
			break
		} else if time.Now().After(end) {
			t.Fatalf("a child that has ended is %+v, %v", p, ok)
		}
	}
	_ = cmd.Wait() // killed
	if p, ok := Read(child.PID); ok && p.ID == child.ID {
		t.Errorf("a child that was reaped is %+v", p)
	}
}
