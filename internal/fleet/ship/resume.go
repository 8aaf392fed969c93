package ship

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// mostLost is the longest row of numbers without a batch that is believed of a spool.
const mostLost = 1 << 20

// Resume sends what the spool of a process that ended has and the leader has not
// acknowledged, until all is sent or ctx ends: see Shipper.Close. Of batches that
// the process had in memory alone, and that are missing between others, the leader is
// told that they are lost. A directory without a spool has nothing to send.
func Resume(ctx context.Context, link Link, o Options) (Sent, error) {
	if err := o.Validate(); err != nil {
		return Sent{}, err
	}
	o = o.filled()
	if _, err := os.Stat(filepath.Join(o.Dir, ackedName)); errors.Is(err, fs.ErrNotExist) {
		return Sent{}, nil
	}
	sp, err := openSpool(o.Dir, o.MostSpool)
	if err != nil {
		return Sent{}, err
	}
	left, err := sp.scan()
	if err == nil {
		left, err = withGaps(left, sp.acknowledged())
	}
	if err != nil {
		sp.close()
		return Sent{}, err
	}
	s := newShipper(link, o, sp)
	s.queue, s.sent.Waiting = left, count(left)
	if n := len(left); n > 0 {
		s.sent.Batches = left[n-1].seq
		for _, p := range left {
			if p.at == nil {
				s.sent.LostBatches++
			}
		}
	}
	close(s.written)
	sending, cancel := context.WithCancelCause(ctx)
	s.cancel = cancel
	s.work.Go(func() { s.send(sending) })
	return s.Close(ctx)
}

// withGaps puts word of each number that is missing after the last acknowledged one
// between the batches.
func withGaps(left []parcel, acked uint64) ([]parcel, error) {
	var all []parcel
	next := acked + 1
	for _, p := range left {
		if p.seq-next > mostLost {
			return nil, fmt.Errorf("the spool is damaged: after batch %d comes %d", next-1, p.seq)
		}
		for ; next < p.seq; next++ {
			all = append(all, parcel{seq: next, data: lostBatch(next)})
		}
		all = append(all, p)
		next = p.seq + 1
	}
	return all, nil
}
