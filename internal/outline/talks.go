package outline

import (
	"strconv"
	"time"

	"perflab/internal/reuse"
	"perflab/internal/sim"
	"perflab/internal/workload"
)

// talks are the conversations that are under way.
type talks struct {
	p    *Pass
	open map[int]*talk // by session, from 1
}

// talk is a conversation: its last request and the tokens of that.
type talk struct {
	request workload.Request
	tokens  []uint32
}

// begin is the job of a request that stands alone, or is the first of a conversation.
func (w *talks) begin(r workload.Request, tokens []uint32) sim.Job {
	if r.Session > 0 {
		w.open[r.Session] = &talk{r, tokens}
	}
	return job(r, tokens)
}

func job(r workload.Request, tokens []uint32) sim.Job {
	return sim.Job{Index: r.Index, Arrive: r.Due, Prompt: tokens, Output: r.Output, Session: r.Session, Turn: r.Turn, Turns: r.Turns}
}

// Begin starts no other job: one turn follows the other.
func (w *talks) Begin(sim.Job, time.Duration) []sim.Job { return nil }

// Ended is the next turn of a conversation. One that failed is the last: nobody knows what would have been said next.
func (w *talks) Ended(session, _ int, at time.Duration, ok bool) []sim.Job {
	t := w.open[session]
	answered := t.request.Output
	next, think, more := w.p.w.Next(t.request, "") // no text is made of the answer
	if !ok || !more {
		delete(w.open, session)
		return nil
	}
	var err error
	if w.p.w.Generates() {
		t.tokens = appendAnswer(t.tokens, t.request, answered)
	} else {
		t.tokens, err = appendTokens(t.tokens, next.History[len(next.History)-1].Content, w.p.tok)
	}
	if err == nil {
		t.tokens, err = appendTokens(t.tokens, next.Prompt, w.p.tok)
	}
	if err != nil {
		w.p.unread = err
		delete(w.open, session)
		return nil
	}
	next.Due = at + think
	t.request = next
	return []sim.Job{job(next, t.tokens)}
}

// appendAnswer appends the tokens that stand for what a server said to a request, which no other prompt has.
func appendAnswer(out []uint32, r workload.Request, n int) []uint32 {
	name := reuse.Names("answer " + strconv.Itoa(r.Session) + " " + strconv.Itoa(r.Turn))
	for i := range n {
		out = append(out, uint32(name(int64(i))))
	}
	return out
}

var _ sim.Sessions = (*talks)(nil)
