package recall

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/store"
)

// TestMade: a question is looked up once for all who ask at once, again for a later version of the
// index, and again after an error.
func TestMade(t *testing.T) {
	x := New(nil)
	var looked atomic.Int32
	ask := func(version int64, err error) (int32, error) {
		return Made(t.Context(), Now{x, version}, "q", 0, func(context.Context) (int32, error) { return looked.Add(1), err })
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
}

// TestBounds: what is kept stays within a size, and what is too large is not kept at all.
func TestBounds(t *testing.T) {
	x := New(nil)
	text := template.HTML(strings.Repeat("x", mostOf/2))
	for i := range 100 {
		if _, err := Made(t.Context(), Now{x, 3}, fmt.Sprint(i), 0, func(context.Context) (template.HTML, error) { return text, nil }); err != nil {
			t.Fatal(err)
		}
		held := 0
		for _, a := range x.answers {
			held += a.size
		}
		if held != x.held || held > mostKept+mostOf {
			t.Fatalf("%d bytes are kept, counted as %d", held, x.held)
		}
	}
	large := func(context.Context) (store.Page, error) {
		return store.Page{Entries: make([]store.Entry, mostOf/3000+1)}, nil
	}
	if p, err := Made(t.Context(), Now{x, 4}, "large", 0, large); err != nil || len(p.Entries) == 0 || len(x.answers) != 0 || x.held != 0 {
		t.Errorf("%d entries, %v; %d answers of %d bytes are kept", len(p.Entries), err, len(x.answers), x.held)
	}
}

// TestFresh: what is shown only for a while is made again after it, though nothing changed.
func TestFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, made := New(nil), 0
		ask := func() int {
			v, err := Made(t.Context(), Now{x, 1}, "q", 5*time.Second, func(context.Context) (int, error) { made++; return made, nil })
			if err != nil {
				t.Error(err)
			}
			return v
		}
		if a, b := ask(), ask(); a != 1 || b != 1 {
			t.Errorf("%d and %d at once", a, b)
		}
		time.Sleep(6 * time.Second) // of the test's own clock
		if a := ask(); a != 2 || len(x.answers) != 1 {
			t.Errorf("%d after a while, %d answers", a, len(x.answers))
		}
	})
}

// TestLeft: who no longer wants an answer does not wait for it.
func TestLeft(t *testing.T) {
	x := New(nil)
	begun, end := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		_, _ = Made(t.Context(), Now{x, 1}, "q", 0, func(context.Context) (int, error) { close(begun); <-end; return 1, nil })
	})
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Made(ctx, Now{x, 1}, "q", 0, func(context.Context) (int, error) { return 2, nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(end)
	wait.Wait()
}

// TestTurns: no more is made at a time than there are processors, in the order in which it was asked for, and what one
// answer asks for is a part of its turn.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := New(nil)
		var making, most int
		var order []int
		var mu sync.Mutex
		count := func(by int) {
			mu.Lock()
			defer mu.Unlock()
			making += by
			most = max(most, making)
		}
		var wait sync.WaitGroup
		for i := range 20 {
			wait.Go(func() {
				_, err := Made(t.Context(), Now{x, 1}, fmt.Sprint("page ", i), 0, func(ctx context.Context) (int, error) {
					count(1)
					defer count(-1)
					v, err := Made(ctx, Now{x, 1}, fmt.Sprint("part ", i), 0, func(context.Context) (int, error) {
						time.Sleep(time.Second) // of the test's own clock
						return i, nil
					})
					mu.Lock()
					defer mu.Unlock()
					order = append(order, v)
					return v, err
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // it waits for its turn, or has it
		}
		long := make(chan struct{})
		wait.Go(func() {
			_, _ = Made(Aside(t.Context()), Now{x, 1}, "long", 0, func(context.Context) (int, error) { close(long); return 1, nil })
		})
		<-long
		wait.Wait()
		if most != min(20, runtime.GOMAXPROCS(0)) {
			t.Errorf("%d were made at a time by %d processors", most, runtime.GOMAXPROCS(0))
		}
		if first := order[0]; first >= most {
			t.Errorf("number %d was made before those that asked first: %v", first, order)
		}
	})
}
