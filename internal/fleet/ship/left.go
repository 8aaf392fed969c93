package ship

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"perflab/internal/result"
)

// mostLost is the longest row of numbers without a batch that is believed of a spool.
const mostLost = 1 << 20

// Left is what the spool of a load that has ended still has. Its files are open while it is
// read and no longer, and stay as they are until Remove.
type Left struct {
	Acked uint64 // the leader has said that it has this batch, and all before
	Calls int    // in batches that it has not
	Bytes int64  // on the disk

	dir     string
	paths   []string // of the segments
	batches map[uint64]lying
	numbers []uint64
}

// lying is where a batch lies.
type lying struct {
	path  string
	at    int64
	size  int
	calls int
}

// Look finds what a spool has. Where there is no spool the error is fs.ErrNotExist.
func Look(dir string) (*Left, error) {
	if _, err := os.Stat(filepath.Join(dir, ackedName)); err != nil {
		return nil, fmt.Errorf("look into the spool %s: %w", dir, err)
	}
	sp, err := openSpool(dir, 0)
	if err != nil {
		return nil, err
	}
	l := &Left{dir: dir, Acked: sp.acknowledged(), batches: map[uint64]lying{}}
	all, err := sp.scan(0)
	l.Bytes = sp.bytes
	for _, seg := range sp.segments {
		l.paths = append(l.paths, seg.path)
	}
	if err := errors.Join(err, sp.close()); err != nil {
		return nil, err
	}
	for _, p := range all {
		l.batches[p.seq] = lying{p.at.in.path, p.at.at, p.at.size, p.calls}
		l.numbers = append(l.numbers, p.seq)
		if p.seq > l.Acked {
			l.Calls += p.calls
		}
	}
	for _, g := range l.Missing(0) {
		if g.To-g.From >= mostLost {
			return nil, fmt.Errorf("the spool %s is damaged: after batch %d comes %d", dir, g.From-1, g.To+1)
		}
	}
	return l, nil
}

// Numbers are those of the batches that are there, ascending: also of some that the leader had, since a
// process that is killed may not have kept what it had acknowledged.
func (l *Left) Numbers() []uint64 { return slices.Clone(l.numbers) }

// Missing are the batches that are nowhere: the leader does not have them, and the process that ended had
// them in memory alone. Of the last number, as Sent.Batches has it, 0 says that nobody knows it.
func (l *Left) Missing(last uint64) []Gap {
	var gaps []Gap
	next := l.Acked + 1
	for _, seq := range l.numbers {
		if seq > next {
			gaps = append(gaps, Gap{next, seq - 1})
		}
		next = max(next, seq+1)
	}
	if last >= next {
		gaps = append(gaps, Gap{next, last})
	}
	return gaps
}

// Read returns a batch, whole as it was made.
func (l *Left) Read(seq uint64) ([]byte, error) {
	at, ok := l.batches[seq]
	if !ok {
		return nil, fmt.Errorf("the spool %s has no batch %d: %w", l.dir, seq, fs.ErrNotExist)
	}
	f, err := os.Open(at.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	batch := make([]byte, at.size)
	if _, err := f.ReadAt(batch, at.at); err != nil {
		return nil, fmt.Errorf("read batch %d: %w", seq, err)
	}
	if _, err := check(seq, batch); err != nil {
		return nil, fmt.Errorf("batch %d is damaged on the disk: %w", seq, err)
	}
	return batch, nil
}

// Remove removes the spool.
func (l *Left) Remove() error {
	var err error
	for _, path := range append(slices.Clone(l.paths), filepath.Join(l.dir, ackedName)) {
		err = errors.Join(err, os.Remove(path))
	}
	_ = os.Remove(l.dir) // unless it has other things in it, which is no harm
	return err
}

// Calls are those of a batch with this number, from wherever it came.
func Calls(seq uint64, batch []byte) ([]result.Call, error) {
	h, err := check(seq, batch)
	if err != nil {
		return nil, fmt.Errorf("batch %d: %w", seq, err)
	}
	if h.lost() {
		return nil, nil
	}
	u := newUnpacker()
	defer u.zstd.Close()
	calls, err := u.unpack(h, batch)
	if err != nil {
		return nil, fmt.Errorf("batch %d: %w", seq, err)
	}
	return calls, nil
}
