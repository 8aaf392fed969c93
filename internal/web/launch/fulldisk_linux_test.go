package launch

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"perflab/internal/proc"
)

// TestFullDisk: a request that finds no room leaves nothing, and what ends while there is none is
// known when there is.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no small file system can be mounted here: %v", err)
	}
	t.Cleanup(func() { // a supervisor that ends may still be there
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	o := testOptions(t)
	o.Results = t.TempDir()
	q := openFor(t, dir, o)
	id := submit(t, q, predicted("wait"))
	l := atWork(t, q, id)
	filler := filepath.Join(dir, "filler")
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 512))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	if _, err := q.Submit(predicted("exit-0")); !errors.Is(err, syscall.ENOSPC) || len(q.List()) != 1 {
		t.Errorf("submitted to a full disk: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := q.Stop(id, "ada"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("stopped on a full disk: %v", err)
	}
	if err := os.WriteFile(filepath.Join(l.Dir, "end"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the child has ended", func() bool { p, ok := proc.Read(l.Last().Child.PID); return !ok || p.ID != l.Last().Child })
	if now, _ := q.Get(id); now.State != Running {
		t.Errorf("what could not be written down is known: %+v", now)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if l := ended(t, q, id); l.Last().Exit.Meaning != "done" {
		t.Errorf("ended %+v", l.Last().Exit)
	}
}
