package ship

import (
	"fmt"
	"time"

	"perflab/internal/result"
)

// aimed is how many bytes of lines make a batch, some 400 calls of 200 chunks each: enough
// for them to be compressed well and for a network of long ways, and few enough to
// be one message of any broker when they are compressed.
const aimed = 1 << 20

// write makes batches of calls until no more come.
func (s *Shipper) write() {
	defer close(s.written)
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	p := newPacker()
	defer p.close()
	for last := false; !last; {
		select {
		case <-s.filled:
		case <-tick.C:
		case <-s.closing:
			last = true
		}
		s.flush(p)
	}
}

// flush makes batches of all calls that wait.
func (s *Shipper) flush(p *packer) {
	s.mu.Lock()
	calls := s.pending
	s.pending, s.spare = s.spare[:0], nil
	s.mu.Unlock()
	var weighs int64 // of the calls in the batch
	for i := range calls {
		c := &calls[i]
		before := len(p.lines)
		p.add(c)
		if !fits(p.lines[before:]) {
			s.drop(c, len(p.undo(before)))
			continue
		}
		if before > 0 && len(p.lines) > aimed {
			line := p.undo(before)
			s.finish(p, weighs)
			p.put(line)
			weighs = 0
		}
		weighs += weight(c)
		if p.calls == s.o.Calls {
			s.finish(p, weighs)
			weighs = 0
		}
	}
	if p.calls > 0 {
		s.finish(p, weighs)
	}
	clear(calls)
	s.mu.Lock()
	s.spare = calls
	s.mu.Unlock()
}

// drop gives a call up that no batch can hold.
func (s *Shipper) drop(c *result.Call, size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held -= weight(c)
	s.sent.Waiting--
	s.lose(1, fmt.Sprintf("call %d is larger than any batch, %d MiB", c.Index, size>>20))
}

// finish gives the batch to the disk, or keeps it in memory where that takes none, and to
// the sender. The calls in it weighed so much in memory.
func (s *Shipper) finish(p *packer, weighed int64) {
	s.mu.Lock()
	s.sent.Batches++
	seq := s.sent.Batches
	s.mu.Unlock()
	calls, batch := p.pack(seq)
	next := parcel{seq: seq, calls: calls}
	at, err := s.spool.append(batch)
	if next.at = at; err != nil {
		next.data = append([]byte(nil), batch...)
	}
	s.mu.Lock()
	s.held += int64(len(next.data)) - weighed
	if err != nil {
		s.sent.Disk = err.Error()
	}
	s.queue = append(s.queue, next)
	s.mu.Unlock()
	tell(s.queued)
}
