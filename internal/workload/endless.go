package workload

import (
	"fmt"
	"sync"
)

// supply draws rows for as long as they are asked for. Made-up datasets grow,
// by being drawn anew at twice the size: what was there comes out the same, as
// each random choice has a stream of its own that is read in order. Of random
// prompts the lengths come again after longRows. The rows
// of a file, and those that a tokenizer has to measure one by one, which takes
// too long during a run, are repeated in their order.
type supply struct {
	spec    Spec
	dataset dataset
	builder promptBuilder

	mu  sync.Mutex
	src source
}

// endless reports whether requests are drawn for as long as the run lasts.
func endless(s Spec) bool { return s.Duration != "" && s.closed() && s.NumPrompts == 0 }

// redrawn reports whether there are further rows to draw.
func redrawn(s Spec, d dataset) bool { return s.Path == "" && !is(d.slow, s) }

// firstDraw is how many rows are drawn at first: enough for most runs, a few
// megabytes, and of others no more than can be read or measured in a moment.
func firstDraw(s Spec, d dataset) int {
	if s.Pass > 0 && s.Path != "" {
		return s.Pass
	}
	if redrawn(s, d) {
		return 1 << 16
	}
	return 1 << 14
}

// row returns the source that has row k, where it is there, and how many turns
// of conversations were counted before that source's first.
func (e *supply) row(k int) (src source, i, before int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !redrawn(e.spec, e.dataset) {
		n := len(e.src.rows)
		return e.src, k % n, k / n * e.src.turns()
	}
	for k >= len(e.src.rows) && !(lengthsRepeat(e.spec) && len(e.src.rows) >= longRows) {
		bigger := e.spec
		bigger.NumPrompts = 2 * len(e.src.rows)
		grown, err := e.dataset.load(bigger, e.builder)
		if err != nil || len(grown.rows) <= len(e.src.rows) {
			panic(fmt.Sprintf("workload: a made-up dataset cannot be drawn again: %v", err))
		}
		grown.number()
		e.src = grown
	}
	return e.src, k, 0
}
