package runs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// TestCache: a question is looked up once for all who ask at once, again for a later version of the
// index, and again after an error.
func TestCache(t *testing.T) {
	var c cache
	var looked atomic.Int32
	ask := func(version int64, err error) (int32, error) {
		return known(t.Context(), &c, version, "q", func(context.Context) (int32, error) { return looked.Add(1), err })
	}
	var wait sync.WaitGroup
	for range 20 {
		wait.Go(func() {
			if v, err := ask(1, nil); v != 1 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		})
	}
	wait.Wait()
	if v, err := ask(2, nil); v != 2 || err != nil {
		t.Errorf("after a change: %d, %v", v, err)
	}
	if v, _ := ask(1, nil); v != 2 {
		t.Errorf("who saw an earlier version gets %d", v)
	}
	bad := errors.New("bad")
	if _, err := ask(3, bad); !errors.Is(err, bad) {
		t.Error(err)
	}
	if v, err := ask(3, nil); v != 4 || err != nil {
		t.Errorf("after an error: %d, %v", v, err)
	}
	for i := range 3 * mostAnswers {
		if _, err := known(t.Context(), &c, 3, fmt.Sprint(i), func(context.Context) (int, error) { return i, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.answers) > mostAnswers {
		t.Errorf("%d answers are kept", len(c.answers))
	}
}

// TestCacheLeft: who no longer wants an answer does not wait for it.
func TestCacheLeft(t *testing.T) {
	var c cache
	begun, end := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = known(t.Context(), &c, 1, "q", func(context.Context) (int, error) { close(begun); <-end; return 1, nil })
	})
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := known(ctx, &c, 1, "q", func(context.Context) (int, error) { return 2, nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(end)
	wait.Wait()
}
