package bench

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"perflab/internal/load"
	"perflab/internal/openai"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// firstRequests stand for all of a workload where each would take too long.
const firstRequests = 100

// accepts checks that the backend's API has a place for what the workload
// sends. The first requests tell for all: to build every prompt of a long trace
// takes seconds.
func accepts(c *openai.Client, w *workload.Workload) error {
	for r := range w.All() {
		if err := c.Accepts(r); err != nil || r.Index >= firstRequests {
			return err
		}
	}
	return nil
}

// Accepts checks the same of a backend, without a server.
func Accepts(backend string, w *workload.Workload) error {
	client, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1", Backend: backend})
	if err != nil {
		return err
	}
	defer client.Close()
	return accepts(client, w)
}

// holdTime is how long a call is thought to hold its connection at most when
// nothing but time bounds how many there are.
const holdTime = time.Minute

// share is the part of a workload that one machine sends, i of n.
type share struct {
	*workload.Workload
	i, n int
}

// whole is all of a workload.
func whole(w *workload.Workload) share { return share{w, 0, 1} }

// limit is the share's part of the concurrency limit; 0: there is none.
func (s share) limit() int { return s.ShardLimit(s.i, s.n) }

// requests are those of the share.
func (s share) requests() iter.Seq[workload.Request] { return s.Shard(s.i, s.n) }

// of is how many of so many requests in a row the share has at most.
func (s share) of(all int) int { return (all + s.n - 1) / s.n }

// concurrent is how many connections the share may need at once.
func (s share) concurrent() int {
	limit, n := s.limit(), s.of(s.PeakDue(holdTime))
	if limit > 0 && n > 0 {
		return min(limit, n)
	}
	return max(limit, n)
}

// atOnce is how many connections the share needs at once for certain. An open
// loop needs those of its largest burst: how many more depends on how long the
// server takes.
func (s share) atOnce() int {
	if s.Closed() {
		return s.concurrent()
	}
	n := s.Burst()
	if !s.Conversations() {
		n = s.PeakDue(1)
	}
	return s.limited(s.of(n))
}

// first is how many connections the first instant needs.
func (s share) first() int {
	if s.Closed() {
		return s.concurrent()
	}
	return s.limited(s.of(s.Burst()))
}

func (s share) limited(n int) int {
	if limit := s.limit(); limit > 0 {
		return min(n, limit)
	}
	return n
}

// capacityNote says how long a call of an open loop may take until this machine
// cannot hold all that are due meanwhile; "" where that is longer than holdTime.
func capacityNote(w *workload.Workload, targets int) string {
	n, limit, err := load.Capacity(targets)
	rate := w.Offered()
	if err != nil || rate == 0 || whole(w).concurrent() <= n {
		return ""
	}
	return fmt.Sprintf("this machine holds %d requests in flight (%s), which at %.4g/s is enough while a call takes less than %.3g s: "+
		"if calls take longer, set a limit of concurrent requests or raise the %s", n, limit, rate, float64(n)/rate, limit)
}

// sentTotals sums what was sent where no plan says it.
func sentTotals(calls *result.Accumulator) workload.Totals {
	p := calls.Planned
	return workload.Totals{Requests: calls.Total, Input: p.Input, Output: p.Output, Span: p.Span}
}

// droppedRows says which rows of the dataset were left out, "" for none.
func droppedRows(w *workload.Workload) string {
	drops, read := w.Dropped()
	if len(drops) == 0 {
		return ""
	}
	parts := make([]string, len(drops))
	for i, d := range drops {
		parts[i] = fmt.Sprintf("%d %s", d.Rows, d.Reason)
	}
	return fmt.Sprintf("of %d rows read from %s, these were left out: %s", read, w.Spec().Path, strings.Join(parts, ", "))
}

// conversations says what the counts of a run of conversations are of; "" for
// other workloads.
func conversations(w *workload.Workload, c *result.Client) string {
	if !w.Conversations() {
		return ""
	}
	text := "rates and the limit of concurrency are of conversations, which hold their place while they think; requests are turns"
	if w.Trees() {
		text = "rates and the limit of concurrency are of sessions, which hold their place until all of their agents are done; requests are turns" + cuts(w)
	}
	if c != nil && c.Unsent > 0 {
		text += fmt.Sprintf("; %d turns were never sent because the one before failed", c.Unsent)
	}
	return text
}

// cuts says which requests of recorded sessions are not sent as they were recorded; "" for none.
func cuts(w *workload.Workload) (text string) {
	c := w.Cuts()
	if c.Empty > 0 {
		text += fmt.Sprintf("; %d requests of the recording without prompt or answer tokens are left out", c.Empty)
	}
	if c.Undated > 0 {
		text += fmt.Sprintf("; %d requests of the recording without a time are left out", c.Undated)
	}
	if c.Repeated > 0 {
		text += fmt.Sprintf("; %d requests that the recording has again are left out", c.Repeated)
	}
	if c.Joined > 0 {
		text += fmt.Sprintf("; %d sessions of the recording are taken for agents that another one started, by their times", c.Joined)
	}
	room := w.Spec().MaxContext
	if c.Dropped > 0 {
		text += fmt.Sprintf("; %d requests are left out because a context of %d tokens has no room for them or for one that they wait for", c.Dropped, room)
	}
	if c.Cut > 0 {
		text += fmt.Sprintf("; %d requests have their prompt cut to a context of %d tokens", c.Cut, room)
	}
	return text
}
