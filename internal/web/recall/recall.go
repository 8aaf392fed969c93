// Package recall keeps what the index said, and what a page made of it, for as long as the index is of
// one version: when something changed, all pages that are open ask again at once, and one of them has
// it looked up.
//
//	x := recall.New(store)
//	now, err := x.Now(ctx) // one look at the version of the index
//	page, err := now.List(ctx, query)
//	html, err := recall.Made(ctx, now, "list "+address, 5*time.Second, func(ctx context.Context) (template.HTML, error) { ... })
//
// Invariants: an answer is never of an earlier version of the index than the Now that asked; who waits
// for an answer may leave, and the others get it; an error is not kept. What is kept is shared by all
// who ask: nobody changes it.
//
// Deliberately absent: what is made of files that the index does not follow.
package recall

import (
	"context"
	"fmt"
	"html/template"
	"sync"
	"time"

	"perflab/internal/store"
)

const (
	mostKept = 64 << 20     // bytes, about
	mostOf   = mostKept / 8 // bytes of one answer
	keptFor  = time.Minute  // since an expression may speak of ages
)

// Index is a store whose answers are kept.
type Index struct {
	*store.Store

	mu      sync.Mutex
	version int64
	since   time.Time
	held    int // bytes
	answers map[string]*answer

	turns turns
}

// answer is what the index said, once it is done.
type answer struct {
	done  chan struct{}
	asked time.Time
	value any
	err   error
	size  int // once it is kept
}

// New keeps the answers of a store.
func New(s *store.Store) *Index { return &Index{Store: s} }

// Now is the index at one version.
type Now struct {
	x       *Index
	Version int64
}

// Now looks which version the index is of.
func (x *Index) Now(ctx context.Context) (Now, error) {
	version, err := x.Version(ctx)
	return Now{x, version}, err
}

// List is the store's, of now.
func (n Now) List(ctx context.Context, q store.Query) (store.Page, error) {
	return Made(ctx, n, "list "+text(q), 0, func(ctx context.Context) (store.Page, error) { return n.x.List(ctx, q) })
}

// Groups is the store's, of now.
func (n Now) Groups(ctx context.Context, q store.Query, fact string) ([]store.Group, error) {
	return Made(ctx, n, "groups "+fact+" "+text(q), 0, func(ctx context.Context) ([]store.Group, error) { return n.x.Groups(ctx, q, fact) })
}

// Counts is the store's, of now.
func (n Now) Counts(ctx context.Context, q store.Query, facts ...string) (map[string][]store.Group, error) {
	return Made(ctx, n, fmt.Sprintf("counts %q %s", facts, text(q)), 0, func(ctx context.Context) (map[string][]store.Group, error) { return n.x.Counts(ctx, q, facts...) })
}

func text(q store.Query) string {
	return fmt.Sprintf("%q %q %d %d %q %d", q.Filter, q.Order, q.Limit, q.Offset, q.Figures, q.Now.UnixNano())
}

// Made is what make made of the index under a name, now or, where that is fresh enough, before. fresh 0: as
// long as nothing changed.
func Made[T any](ctx context.Context, n Now, name string, fresh time.Duration, make func(context.Context) (T, error)) (T, error) {
	a, mine := n.x.answer(n.Version, name, fresh)
	if mine {
		n.x.turns.take(ctx, func(ctx context.Context) { a.value, a.err = make(ctx) })
		n.x.keep(name, a)
		close(a.done)
	}
	select {
	case <-a.done:
		v, _ := a.value.(T)
		return v, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// answer is the one of a name; mine says that the caller has to find it.
func (x *Index) answer(version int64, name string, fresh time.Duration) (a *answer, mine bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answers == nil || version > x.version || time.Since(x.since) > keptFor || x.held > mostKept {
		x.version, x.since, x.held, x.answers = max(version, x.version), time.Now(), 0, map[string]*answer{}
	}
	a = x.answers[name]
	if a != nil && (fresh == 0 || time.Since(a.asked) < fresh) {
		return a, false
	}
	if a != nil {
		x.held -= a.size
	}
	a = &answer{done: make(chan struct{}), asked: time.Now()}
	x.answers[name] = a
	return a, true
}

// keep counts what an answer takes, and forgets one that is an error or too large.
func (x *Index) keep(name string, a *answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answers[name] != a {
		return
	}
	a.size = size(a.value)
	if a.err != nil || a.size > mostOf {
		delete(x.answers, name)
		return
	}
	x.held += a.size
}

// sized is an answer that knows about how many bytes it takes.
type sized interface{ Size() int }

// size is about how many bytes an answer takes.
func size(v any) int {
	const entry, figure, group, least = 3000, 100, 80, 200
	n := least
	switch v := v.(type) {
	case sized:
		n += v.Size()
	case template.HTML:
		n += len(v)
	case store.Page:
		n += len(v.Entries) * entry
		for _, e := range v.Entries {
			n += len(e.Figures) * figure
		}
	case []store.Group:
		n += len(v) * group
	case map[string][]store.Group:
		for _, g := range v {
			n += len(g) * group
		}
	}
	return n
}
