package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"perflab/internal/store"
	"perflab/internal/test/storetest"
)

// readOnly makes a directory one of a file system that cannot be written to, until the test ends.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	if os.Getuid() != 0 { // whom rights stop
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(dir, 0o755) })
		return
	}
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("root is stopped by a read-only file system alone, and none can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("no read-only file system can be mounted here: %v", err)
	}
}

// TestReadOnly: the index goes into the user's cache, or into memory, and that is said; marks and
// removals are refused in a sentence.
func TestReadOnly(t *testing.T) {
	root := t.TempDir()
	storetest.Run{N: 1}.Write(t, root, "a")
	readOnly(t, root)
	for _, c := range []struct{ name, cache, says string }{
		{"cache", t.TempDir(), "the index is in"},
		{"memory", filepath.Join(os.DevNull, "x"), "in memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", c.cache)
			s := open(t, store.Options{Roots: []string{root}})
			storetest.Sync(t, s)
			if p := storetest.List(t, s, store.Query{}); p.Total != 1 {
				t.Errorf("%+v", p)
			}
			if notes := strings.Join(s.Info().Notes, "; "); !strings.Contains(notes, c.says) || !strings.Contains(notes, "cannot be written to") {
				t.Errorf("notes %q", notes)
			}
			for _, attempt := range []func() error{
				func() error { return s.Mark(t.Context(), "ada", "a", storetest.Tagged("keep")) },
				func() error { _, err := s.Remove(t.Context(), "ada", "a"); return err },
			} {
				if _, ok := errors.AsType[*store.ReadOnlyError](attempt()); !ok {
					t.Error("something was written")
				}
			}
			if r, err := s.Reduction(t.Context(), "a"); err != nil || len(r.CDF) == 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}
