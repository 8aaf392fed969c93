package recall

import (
	"context"
	"runtime"
	"sync"
)

// turns has as many answers made at a time as there are processors, those first that were asked for first. When
// something changed, all pages that are open are made anew: if all were made at once, each would be ready
// when the last one is.
type turns struct {
	mu    sync.Mutex
	busy  int
	queue []chan struct{} // each closed when it is its turn
}

// turn marks a context in which something is made in its turn: what that asks for is a part of it.
type turn struct{}

// Aside marks that what is made takes long: it has no turn, and shares the processors with what has.
func Aside(ctx context.Context) context.Context { return context.WithValue(ctx, turn{}, true) }

// take has something made for all who wait for it, whether or not the one who asked first stays.
func (t *turns) take(ctx context.Context, make func(context.Context)) {
	ctx = context.WithoutCancel(ctx)
	if ctx.Value(turn{}) != nil {
		make(ctx)
		return
	}
	t.wait()
	defer t.next()
	make(Aside(ctx))
}

func (t *turns) wait() {
	t.mu.Lock()
	if t.busy < runtime.GOMAXPROCS(0) {
		t.busy++
		t.mu.Unlock()
		return
	}
	mine := make(chan struct{})
	t.queue = append(t.queue, mine)
	t.mu.Unlock()
	<-mine
}

func (t *turns) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.queue) == 0 {
		t.busy--
		return
	}
	close(t.queue[0])
	t.queue = t.queue[1:]
}
