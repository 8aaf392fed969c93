package cli

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// within does work that has no context of its own. Interrupted, it is left to
// end with the process.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1) // so that work that nobody waits for ends
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// onEveryCore runs do for 0..n-1 on every core.
func onEveryCore(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				do(int(i - 1))
			}
		})
	}
	wg.Wait()
}
