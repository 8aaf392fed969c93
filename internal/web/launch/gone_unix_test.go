//go:build unix

package launch

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// TestDirectoryGone: a supervisor whose directory was removed ends, and does not try to write for
// as long as on a full disk.
func TestDirectoryGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := watcher{dir: dir, attempt: 1}
		if err := w.end(exit{At: began}); err == nil || time.Since(began) > writeEvery {
			t.Errorf("it ended after %v: %v", time.Since(began), err)
		}
	})
}
