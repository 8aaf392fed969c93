package studies

import (
	"context"
	"sync"
	"time"
)

// lookEvery is how often a directory is read that somebody looks at: a study says about once a
// second where it stands.
const lookEvery = time.Second

// watcher reads one directory for all who look at it.
type watcher struct {
	mu    sync.Mutex
	now   *scene
	next  chan struct{} // closed when there is another scene
	users int           // guarded by watchers.mu
	end   context.CancelFunc
	ended chan struct{}
}

// watch has a directory read until leave is called, by the same watcher for all. It returns after the first
// look.
func (w *watchers) watch(dir string) (_ *watcher, leave func()) {
	w.mu.Lock()
	x := w.by[dir]
	if x == nil {
		ctx, end := context.WithCancel(context.Background()) // it ends with the last of its users
		x = &watcher{next: make(chan struct{}), end: end, ended: make(chan struct{})}
		w.by[dir] = x
		x.mu.Lock() // whoever comes meanwhile waits for the first look
		go x.follow(ctx, newReader(dir))
	}
	x.users++
	w.mu.Unlock()
	return x, sync.OnceFunc(func() { w.leave(dir, x) })
}

func (w *watchers) leave(dir string, x *watcher) {
	w.mu.Lock()
	x.users--
	last := x.users == 0
	if last {
		delete(w.by, dir)
	}
	w.mu.Unlock()
	if last {
		x.end()
		<-x.ended
	}
}

// follow looks again and again; the watcher is locked until the first look is done.
func (x *watcher) follow(ctx context.Context, r *reader) {
	defer close(x.ended)
	x.now = r.look()
	x.mu.Unlock()
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			x.show(r.look())
		}
	}
}

func (x *watcher) show(s *scene) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.now = s
	close(x.next)
	x.next = make(chan struct{})
}

// scene is what was seen last, and what is closed when there is more.
func (x *watcher) scene() (*scene, <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.now, x.next
}

// seen is what a directory says now: by its watcher where somebody looks at it.
func (w *watchers) seen(dir string) *scene {
	x, leave := w.watch(dir)
	defer leave()
	s, _ := x.scene()
	return s
}
