package truth

import (
	"slices"
	"time"

	"perflab/internal/stat"
)

// clock is one instant on both clocks: schedules are kept on the monotonic one
// (ns since epoch), records on the wall.
type clock struct {
	epoch time.Time
	wall  int64 // of the epoch
}

func newClock() clock {
	now := time.Now()
	return clock{now, now.UnixNano()}
}

// mono turns an instant of the wall clock near now into a monotonic one.
func (c clock) mono(wall int64) int64 {
	now := time.Now()
	return int64(now.Sub(c.epoch)) - (now.UnixNano() - wall)
}

// book is what both servers share: the parameters, the schedule's rules and
// the record. It is not safe for concurrent use.
type book struct {
	clock
	p       Params
	pages   [2]*page // of text completions and of chats; never written, since streams hold them
	records []*record
	kernel  bool // requests have the kernel's stamp
	coarse  int  // but for these
	started int  // streams
	whole   int  // requests that wait at the gate, or passed it
	open    bool
	origin  int64 // of the slots' grid, monotonic
	blocked int
}

// record is one request and its stream.
type record struct {
	id       int
	received int64 // wall
	due      int64 // of the first send, monotonic; noDue: at the gate
	itl      int64
	sends    []int64 // wall
	tokens   int     // sent
	total    int
	page     *page
}

const noDue = int64(-1 << 62)

func newBook(p Params) (*book, error) {
	b := &book{clock: newClock()}
	return b, b.set(p)
}

// set takes new parameters and forgets the record. Streams that run end as
// they began.
func (b *book) set(p Params) error {
	if err := p.Validate(); err != nil {
		return err
	}
	b.p = p.withDefaults()
	b.pages = [2]*page{newPage(b.p, false), newPage(b.p, true)}
	b.records, b.started, b.whole, b.blocked, b.coarse = nil, 0, 0, 0, 0
	b.open, b.origin = b.p.Gate == 0, 0
	return nil
}

// add records a request that is whole and says which streams now have a due
// time: its own, or all that waited for it at the gate.
func (b *book) add(id int, chat bool, received int64) (r *record, ready []*record) {
	page := b.pages[0]
	if chat {
		page = b.pages[1]
	}
	r = &record{
		id: id, received: received, due: noDue, itl: int64(b.p.ITL), total: b.p.Tokens,
		page: page, sends: make([]int64, 0, b.p.sends()),
	}
	b.records = append(b.records, r)
	b.whole++
	switch {
	case b.open:
		b.schedule(r, b.mono(received)+int64(b.p.TTFT))
		return r, []*record{r}
	case b.whole < b.p.Gate:
		return r, nil
	}
	b.open = true
	b.origin = int64(time.Since(b.epoch)) + int64(b.p.TTFT)
	for _, w := range b.records {
		b.schedule(w, b.origin)
	}
	return r, b.records
}

// schedule gives a stream the first instant of its slot that is not before
// earliest.
func (b *book) schedule(r *record, earliest int64) {
	r.due = earliest
	if slots := int64(b.p.Slots); slots > 0 {
		at := b.origin + int64(b.started)%slots*r.itl/slots
		if behind := earliest - at; behind > 0 {
			at += (behind + r.itl - 1) / r.itl * r.itl
		}
		r.due = at
	}
	b.started++
}

// next is when the record's next send is due.
func (r *record) next() int64 { return r.due + int64(len(r.sends))*r.itl }

// sent records a send and reports whether it was the last.
func (r *record) sent(at int64, tokens int) (last bool) {
	r.sends = append(r.sends, at)
	r.tokens += tokens
	return r.tokens == r.total
}

// truth tells the record.
func (b *book) truth(sends bool) Truth {
	t := Truth{Params: b.p, Stamped: b.kernel && b.coarse == 0, Blocked: b.blocked, Requests: make([]Request, 0, len(b.records))}
	var late []float64
	for _, r := range b.records {
		q := Request{ID: r.id, Received: r.received, Events: r.tokens}
		if n := len(r.sends); n > 0 {
			q.First, q.Last = r.sends[0], r.sends[n-1]
		}
		for k, at := range r.sends {
			late = append(late, float64(at-b.wall-r.due-int64(k)*r.itl))
		}
		if sends {
			q.Sends = slices.Clone(r.sends)
		}
		t.Requests = append(t.Requests, q)
		t.Sends += len(r.sends)
	}
	if len(late) > 0 {
		slices.Sort(late)
		t.LateP50 = time.Duration(stat.Quantile(late, 0.5))
		t.LateP99 = time.Duration(stat.Quantile(late, 0.99))
		t.LateMax = time.Duration(late[len(late)-1])
	}
	return t
}
