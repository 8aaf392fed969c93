package studies

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"perflab/internal/rundir"
)

// TestWatch: however many look at a directory, one reads it, and nobody when the last has left.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, rundir.JournalFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w := &watchers{by: map[string]*watcher{}}
	const users = 200
	type user struct {
		x     *watcher
		leave func()
	}
	all := make([]user, users)
	var wait sync.WaitGroup
	for i := range all {
		wait.Go(func() {
			x, leave := w.watch(dir)
			all[i] = user{x, leave}
			if s, _ := x.scene(); s == nil {
				t.Error("there is no scene after the first look")
			}
		})
	}
	wait.Wait()
	for _, u := range all {
		if u.x != all[0].x {
			t.Fatal("a directory has two watchers")
		}
	}
	first, next := all[0].x.scene()
	<-next
	if now, _ := all[users-1].x.scene(); now.n <= first.n || now.n > first.n+3 {
		t.Errorf("look %d follows look %d", now.n, first.n)
	}
	for _, u := range all {
		u.leave()
		u.leave() // twice is once
	}
	if len(w.by) != 0 {
		t.Errorf("%d watchers are left", len(w.by))
	}
	select {
	case <-all[0].x.ended:
	default:
		t.Error("the watcher goes on after the last has left")
	}
	if _, leave := w.watch(dir); len(w.by) != 1 {
		t.Error("nobody watches again")
	} else {
		leave()
	}
}
