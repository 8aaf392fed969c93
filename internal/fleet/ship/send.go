package ship

import (
	"context"
	"errors"
	"time"
)

// A batch that was not taken is sent again after a pause, which doubles from the first to the most.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// errNoAnswer is why an attempt is given up.
var errNoAnswer = errors.New("the leader did not answer in time")

// send gives batches to the link in their order, each until the leader has it. It ends when
// no more come, or when ctx does.
func (s *Shipper) send(ctx context.Context) {
	pause := firstPause
	for {
		p, ok := s.head(ctx)
		if !ok {
			return
		}
		batch := s.load(&p)
		err := s.attempt(ctx, p.seq, batch)
		if err == nil {
			s.acknowledged(p, len(batch))
			pause = firstPause
			continue
		}
		s.failed(ctx, err)
		select {
		case <-time.After(pause):
			pause = min(2*pause, mostPause)
		case <-ctx.Done():
			return
		}
	}
}

// attempt sends a batch once.
func (s *Shipper) attempt(ctx context.Context, seq uint64, batch []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Timeout, errNoAnswer)
	defer cancel()
	err := s.link.Send(ctx, seq, batch)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// head waits for the first batch of the queue; false: there is none any more, or ctx ended.
func (s *Shipper) head(ctx context.Context) (parcel, bool) {
	for ctx.Err() == nil {
		over := false
		select {
		case <-s.written: // and so all of it is in the queue
			over = true
		default:
		}
		if p, ok := s.first(); ok || over {
			return p, ok
		}
		select {
		case <-s.queued:
		case <-s.written:
		case <-ctx.Done():
		}
	}
	return parcel{}, false
}

func (s *Shipper) first() (parcel, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return parcel{}, false
	}
	return s.queue[0], true
}

// load returns the bytes of a batch. Of one that the disk does not give back as it was, the
// number alone is sent, so that the leader knows that it does not come.
func (s *Shipper) load(p *parcel) []byte {
	if p.at == nil {
		return p.data
	}
	batch, err := s.spool.read(p.at)
	if err == nil {
		if _, err = check(p.seq, batch); err == nil {
			return batch
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.Waiting -= p.calls
	s.lose(p.calls, "the spool does not give them back: "+err.Error())
	p.calls = 0
	s.queue[0].calls = 0 // and is lost no second time
	return lostBatch(p.seq)
}

// acknowledged takes the head off the queue: the leader has it.
func (s *Shipper) acknowledged(p parcel, size int) {
	s.mu.Lock()
	s.queue[0] = parcel{}
	s.queue = s.queue[1:]
	s.held -= int64(len(p.data))
	s.sent.Waiting -= p.calls
	s.sent.Calls += p.calls
	s.sent.Bytes += int64(size)
	s.sent.Failing = ""
	s.mu.Unlock()
	s.spool.free(p.seq, p.at)
}

// failed keeps why an attempt failed. That the sending was ended says less than what went
// wrong before.
func (s *Shipper) failed(ctx context.Context, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent.Again++
	if ctx.Err() == nil || s.sent.Failing == "" {
		s.sent.Failing = err.Error()
	}
}
