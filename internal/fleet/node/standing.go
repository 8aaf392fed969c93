package node

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"perflab/internal/fleet/order"
	"perflab/internal/redact"
)

// Watch says who holds the node that an agent serves, for what the agent says of itself. Its zero value is given to
// Serve by Options.
type Watch struct {
	mu   sync.Mutex
	s    *server // nil: nothing is served
	last *order.Held
}

// of is called when serving begins.
func (w *Watch) of(s *server) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.s = s
}

// Now is who holds the node and what it runs; nil: nobody. It waits for nothing: an engine that is being started is not
// among them yet, and while the holder is busy it says what it said before.
func (w *Watch) Now() *order.Held {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.s == nil {
		return nil
	}
	w.s.mu.Lock()
	h := w.s.holder
	w.s.mu.Unlock()
	if h == nil {
		w.last = nil
		return nil
	}
	out := &order.Held{Who: h.who, Study: h.study, Since: h.since}
	if !h.mu.TryLock() {
		if w.last != nil && w.last.Since.Equal(h.since) {
			return w.last
		}
		return out
	}
	defer h.mu.Unlock()
	for _, e := range h.engines {
		if e.runs() {
			out.Runs = append(out.Runs, e.describe())
		}
	}
	slices.SortFunc(out.Runs, func(a, b order.Engine) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Name, b.Name))
	})
	w.last = out
	return out
}

// runs reports whether the engine was started and has not ended.
func (e *engine) runs() bool {
	select {
	case <-e.started:
	default:
		return false
	}
	if e.failed != nil {
		return false
	}
	select {
	case <-e.Exited():
		return false
	default:
		return true
	}
}

// mostCommand is how much of a command is said.
const mostCommand = 300

// describe is the engine for who looks at the fleet.
func (e *engine) describe() order.Engine {
	kind, r := "process", e.Record()
	if r.ID != "" || r.Container != "" {
		kind = "container"
	}
	text := redact.Printable(strings.Join(redact.Argv(e.argv), " "))
	if all := []rune(text); len(all) > mostCommand {
		text = string(all[:mostCommand]) + "..."
	}
	return order.Engine{Name: e.name, Kind: kind, Command: text, Since: e.began}
}
