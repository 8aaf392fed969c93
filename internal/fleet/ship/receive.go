package ship

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"perflab/internal/result"
)

// How far before its turn a batch may come, in numbers and in bytes of all that wait.
// A Shipper sends one after the other: further ahead than a few is none of its.
const (
	mostAhead = 256
	mostHeld  = 16 << 20
)

// Gap is a row of batches that did not come, by their first and last number.
type Gap struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// Receiver puts the batches of one Shipper in order. It is not for use by several
// goroutines at once.
type Receiver struct {
	next  uint64            // the number whose turn it is
	ahead map[uint64][]byte // those that came before their turn
	held  int64             // their bytes
	lost  []Gap             // below next
	calls int
	ended bool
	u     *unpacker
}

// NewReceiver returns a Receiver that waits for the first batch.
func NewReceiver() *Receiver {
	return &Receiver{next: 1, ahead: map[uint64][]byte{}, u: newUnpacker()}
}

// Take takes a batch and returns the calls whose turn it is now: none of a batch that came
// before, those of several where this one was missing between them. An error says that
// the batch was not taken, and is to be sent again.
func (r *Receiver) Take(seq uint64, batch []byte) ([]result.Call, error) {
	if _, waits := r.ahead[seq]; waits || seq < r.next && seq > 0 {
		return nil, nil
	}
	h, err := check(seq, batch)
	if err == nil {
		err = r.room(seq, len(batch))
	}
	if err != nil {
		return nil, fmt.Errorf("batch %d: %w", seq, err)
	}
	calls, err := r.open(h, batch)
	if err != nil {
		return nil, fmt.Errorf("batch %d: %w", seq, err)
	}
	if seq != r.next {
		r.ahead[seq] = bytes.Clone(batch)
		r.held += int64(len(batch))
		return nil, nil
	}
	r.turn(h)
	calls = append(calls, r.rest()...)
	r.calls += len(calls)
	return calls, nil
}

// room says why a batch cannot be taken now.
func (r *Receiver) room(seq uint64, size int) error {
	switch {
	case seq == 0:
		return errors.New("the first is 1")
	case r.ended:
		return errors.New("it comes after the end")
	case seq == r.next:
		return nil
	case seq-r.next > mostAhead || r.held+int64(size) > mostHeld:
		return fmt.Errorf("batch %d has not come, and there is no room for more after it", r.next)
	}
	return nil
}

// open returns the calls of a batch that was checked.
func (r *Receiver) open(h header, batch []byte) ([]result.Call, error) {
	if h.lost() {
		return nil, nil
	}
	return r.u.unpack(h, batch)
}

// turn goes on to the next number.
func (r *Receiver) turn(h header) {
	if h.lost() {
		r.lost = add(r.lost, Gap{h.seq, h.seq})
	}
	r.next = h.seq + 1
}

// rest returns the calls of the batches that wait and whose turn has come.
func (r *Receiver) rest() []result.Call {
	var calls []result.Call
	for batch, ok := r.ahead[r.next]; ok; batch, ok = r.ahead[r.next] {
		calls = append(calls, r.pass(batch)...)
	}
	return calls
}

// pass takes the batch whose turn it is from those that wait.
func (r *Receiver) pass(batch []byte) []result.Call {
	delete(r.ahead, r.next)
	r.held -= int64(len(batch))
	h, err := check(r.next, batch)
	if err != nil {
		panic(err) // it was checked when it came
	}
	calls, err := r.open(h, batch)
	if err != nil {
		panic(err) // and opened
	}
	r.turn(h)
	return calls
}

// Finish says that nothing more comes, of so many batches as Sent.Batches has it; 0 where
// nobody knows. It returns the calls that waited for a batch before them.
func (r *Receiver) Finish(batches uint64) []result.Call {
	r.ended = true
	var calls []result.Call
	for _, seq := range slices.Sorted(maps.Keys(r.ahead)) {
		if seq < r.next {
			continue // rest had it
		}
		if seq > r.next {
			r.lost = add(r.lost, Gap{r.next, seq - 1})
			r.next = seq
		}
		calls = append(calls, r.pass(r.ahead[seq])...)
	}
	if batches >= r.next {
		r.lost = add(r.lost, Gap{r.next, batches})
		r.next = batches + 1
	}
	r.calls += len(calls)
	return calls
}

// Missing returns the batches that have not come: those of which the Shipper said that
// they are lost, those before one that came, and after Finish all others too.
func (r *Receiver) Missing() []Gap {
	gaps, next := slices.Clone(r.lost), r.next
	for _, seq := range slices.Sorted(maps.Keys(r.ahead)) {
		if seq > next {
			gaps = add(gaps, Gap{next, seq - 1})
		}
		next = seq + 1
	}
	return gaps
}

// Calls is how many calls came out so far.
func (r *Receiver) Calls() int { return r.calls }

// add appends a gap, as one with the last where it follows that.
func add(gaps []Gap, g Gap) []Gap {
	if n := len(gaps); n > 0 && gaps[n-1].To+1 == g.From {
		gaps[n-1].To = g.To
		return gaps
	}
	return append(gaps, g)
}
