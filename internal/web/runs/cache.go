package runs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"perflab/internal/store"
)

// cache keeps what the index said to a question, for as long as the index is of the same version. When
// something changed, all pages that are open ask again at once: one of them has it looked up.
type cache struct {
	mu      sync.Mutex
	version int64
	since   time.Time
	answers map[string]*answer
}

// answer is what the index said, once it is done.
type answer struct {
	done  chan struct{}
	value any
	err   error
}

const (
	mostAnswers = 300         // that are kept
	answersFor  = time.Minute // since an expression may speak of ages
)

// at empties the cache where it is of an earlier version of the index, too old or full.
func (c *cache) at(version int64) {
	if c.answers != nil && version <= c.version && time.Since(c.since) < answersFor && len(c.answers) < mostAnswers {
		return
	}
	c.version, c.since, c.answers = version, time.Now(), map[string]*answer{}
}

// known is what find found for a question, now or before.
func known[T any](ctx context.Context, c *cache, version int64, question string, find func(context.Context) (T, error)) (T, error) {
	c.mu.Lock()
	c.at(version)
	a := c.answers[question]
	mine := a == nil
	if mine {
		a = &answer{done: make(chan struct{})}
		c.answers[question] = a
	}
	c.mu.Unlock()
	if mine {
		a.value, a.err = find(context.WithoutCancel(ctx)) // others wait for it too
		if a.err != nil {
			c.forget(question, a)
		}
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

func (c *cache) forget(question string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[question] == a {
		delete(c.answers, question)
	}
}

// page is a page of a list.
func (s *screen) page(ctx context.Context, q store.Query) (store.Page, error) {
	version, err := s.o.Store.Version(ctx)
	if err != nil {
		return store.Page{}, err
	}
	question := fmt.Sprintf("page %q %q %d %d %q", q.Filter, q.Order, q.Limit, q.Offset, q.Figures)
	return known(ctx, &s.cache, version, question, func(ctx context.Context) (store.Page, error) { return s.o.Store.List(ctx, q) })
}

// total is how many entries a list has.
func (s *screen) total(ctx context.Context, version int64, condition string) (int, error) {
	return known(ctx, &s.cache, version, "total "+condition, func(ctx context.Context) (int, error) {
		p, err := s.o.Store.List(ctx, store.Query{Filter: condition, Limit: 1})
		return p.Total, err
	})
}

// groups are the counts of a fact's values in a list. Those of all facets are found in one look.
func (s *screen) groups(ctx context.Context, version int64, condition, fact string) ([]store.Group, error) {
	if !slices.Contains(together, fact) {
		return known(ctx, &s.cache, version, "groups "+fact+" "+condition, func(ctx context.Context) ([]store.Group, error) {
			return s.o.Store.Groups(ctx, store.Query{Filter: condition, Limit: store.MostPage}, fact)
		})
	}
	all, err := known(ctx, &s.cache, version, "counts "+condition, func(ctx context.Context) (map[string][]store.Group, error) {
		return s.o.Store.Counts(ctx, store.Query{Filter: condition}, together...)
	})
	return all[fact], err
}

// together are the facts that are counted in one look: those of facets of which an entry has one.
var together = func() []string {
	var out []string
	for _, f := range facetFacts {
		if f.Name != "tag" {
			out = append(out, f.Name)
		}
	}
	return out
}()
