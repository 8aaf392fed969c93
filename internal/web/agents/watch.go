package agents

import (
	"context"
	"sync"
	"time"

	"perflab/internal/fleet"
)

// lookEvery is how often the fleet is asked while somebody looks: agents say once a second that they are there.
const lookEvery = time.Second

// watcher asks the fleet for all who look at it.
type watcher struct {
	fleet *fleet.Watch

	mu    sync.Mutex
	now   *scene
	next  chan struct{} // closed when there is another scene
	users int
	end   context.CancelFunc
	ended chan struct{}
}

// scene is what was seen once.
type scene struct {
	view  *view
	shape string            // another one where the page is to be drawn anew
	cells map[string]string // figures that change all the time, by their names in the page
}

// look is the fleet as it is: as the watcher saw it a moment ago, where there is one.
func (w *watcher) look(ctx context.Context) *scene {
	w.mu.Lock()
	now, watched := w.now, w.users > 0
	w.mu.Unlock()
	if watched && now != nil {
		return now
	}
	return w.ask(ctx)
}

func (w *watcher) ask(ctx context.Context) *scene {
	st, err := w.fleet.Standing(ctx)
	return newScene(st, err, time.Now())
}

// join has the fleet asked until stop is called, by the same goroutine for all.
func (w *watcher) join() (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.users++
	if w.users == 1 {
		ctx, end := context.WithCancel(context.Background()) // it ends with the last who looks
		w.now, w.next, w.end, w.ended = nil, make(chan struct{}), end, make(chan struct{})
		go w.follow(ctx, w.ended)
	}
	return sync.OnceFunc(w.leave)
}

func (w *watcher) leave() {
	w.mu.Lock()
	w.users--
	var ended chan struct{}
	if w.users == 0 {
		w.end()
		ended = w.ended
	}
	w.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (w *watcher) follow(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for {
		now := w.ask(ctx)
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		w.now = now
		close(w.next)
		w.next = make(chan struct{})
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// scene is what was seen last, nil before the first look, and what is closed when there is more.
func (w *watcher) scene() (*scene, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now, w.next
}
