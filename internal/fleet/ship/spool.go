package ship

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"perflab/internal/durable"
)

// The spool's files: batches one after the other in several files, each of which goes when
// the leader has all of it; and the number of the last batch that it has.
const (
	segmentPrefix = "batches-"
	ackedName     = "acknowledged"
	ackedWidth    = 20
)

// segmentSize is the size at which the next file is begun.
const segmentSize = 8 << 20

// LeftoverError says that a spool has calls of an earlier load.
type LeftoverError struct {
	Dir   string
	Calls int
}

func (e *LeftoverError) Error() string {
	return fmt.Sprintf("%s has %d calls of an earlier load that did not reach its leader: fetch or remove them first", e.Dir, e.Calls)
}

// spool keeps batches on disk until they are acknowledged.
type spool struct {
	dir     string
	most    int64
	segment int64 // size at which the next one is begun

	mu       sync.Mutex // of all that follows, files too
	segments []*segment // the last is written
	number   int        // of the next segment
	bytes    int64      // of all segments
	acked    *os.File   // held, so that no other process uses the spool
}

// segment is one file of batches.
type segment struct {
	file *os.File
	path string
	size int64
	left int // batches that are not acknowledged
}

// place is where a batch lies.
type place struct {
	in   *segment
	at   int64
	size int
}

// openSpool makes the spool's directory or opens what a process left of one.
func openSpool(dir string, most int64) (*spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the spool: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, ackedName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the spool: %w", err)
	}
	s := &spool{dir: dir, most: most, segment: segmentSize, acked: f, number: 1}
	held, err := durable.Hold(f)
	if err == nil && !held {
		err = errors.New("another process uses it")
	}
	if err == nil {
		err = s.reserve()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open the spool %s: %w", dir, err)
	}
	return s, nil
}

// reserve gives the number of the last acknowledged batch its room, so that it can be
// written when the disk is full.
func (s *spool) reserve() error {
	info, err := s.acked.Stat()
	if err != nil || info.Size() > 0 {
		return err
	}
	return s.acknowledge(0)
}

// acknowledge notes the last batch that the leader has.
func (s *spool) acknowledge(seq uint64) error {
	_, err := s.acked.WriteAt(fmt.Appendf(nil, "%0*d\n", ackedWidth, seq), 0)
	return err
}

// acknowledged is that number; 0 where it cannot be read: what the leader has is then sent
// once more.
func (s *spool) acknowledged() uint64 {
	b := make([]byte, ackedWidth)
	if _, err := s.acked.ReadAt(b, 0); err != nil {
		return 0
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// append keeps a batch.
func (s *spool) append(batch []byte) (*place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes+int64(len(batch)) > s.most {
		return nil, fmt.Errorf("the spool is full: it may have %d MiB", s.most>>20)
	}
	seg, err := s.current()
	if err != nil {
		return nil, err
	}
	if _, err := seg.file.WriteAt(batch, seg.size); err != nil {
		s.repair(seg)
		return nil, err
	}
	p := &place{in: seg, at: seg.size, size: len(batch)}
	seg.size += int64(len(batch))
	s.bytes += int64(len(batch))
	seg.left++
	return p, nil
}

// current is the segment that is written. The first batch that would make it too large
// begins the next one.
func (s *spool) current() (*segment, error) {
	if n := len(s.segments); n > 0 && s.segments[n-1].size < s.segment {
		return s.segments[n-1], nil
	}
	path := filepath.Join(s.dir, fmt.Sprintf("%s%08d", segmentPrefix, s.number))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	s.number++
	seg := &segment{file: f, path: path}
	s.segments = append(s.segments, seg)
	return seg, nil
}

// repair takes what was written of a batch away. Where it stays, the file is written no
// more: what is in it before is read, and what comes goes to the next.
func (s *spool) repair(seg *segment) {
	if seg.file.Truncate(seg.size) == nil {
		return
	}
	if seg.left == 0 {
		s.drop(seg)
		return
	}
	s.bytes += s.segment // what it takes of the disk nobody knows
	seg.size += s.segment
}

// read returns a batch.
func (s *spool) read(p *place) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	batch := make([]byte, p.size)
	_, err := p.in.file.ReadAt(batch, p.at)
	return batch, err
}

// free gives back the room of a batch that the leader has.
func (s *spool) free(seq uint64, p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.acknowledge(seq) // else it is sent twice if this process ends
	if p == nil {
		return
	}
	seg := p.in
	seg.left--
	switch {
	case seg.left > 0:
	case seg != s.segments[len(s.segments)-1]:
		s.drop(seg)
	case seg.size >= s.segment/8 && seg.file.Truncate(0) == nil: // not after each batch, since it takes time
		s.bytes -= seg.size
		seg.size = 0
	}
}

// drop removes a segment.
func (s *spool) drop(seg *segment) {
	s.segments = slices.DeleteFunc(s.segments, func(o *segment) bool { return o == seg })
	s.bytes -= seg.size
	seg.file.Close()
	_ = os.Remove(seg.path) // else it is sent twice if this process ends
}

// close lets the files go, and leaves what is in them.
func (s *spool) close() error {
	var err error
	for _, seg := range s.segments {
		err = errors.Join(err, seg.file.Close())
	}
	return errors.Join(err, s.acked.Close())
}

// remove removes what close left.
func (s *spool) remove() error {
	var err error
	for _, seg := range s.segments {
		err = errors.Join(err, os.Remove(seg.path))
	}
	err = errors.Join(err, os.Remove(filepath.Join(s.dir, ackedName)))
	_ = os.Remove(s.dir) // unless it is a disk's own, or has other things in it, which is no harm
	return err
}

// reset removes what a process left that the leader has, whose numbers the next load begins
// anew.
func (s *spool) reset() error {
	for _, seg := range slices.Clone(s.segments) {
		if err := os.Remove(seg.path); err != nil {
			return err
		}
		s.drop(seg)
	}
	return s.acknowledge(0)
}

// scan finds the batches after a number that a process left, in their order.
func (s *spool) scan(after uint64) ([]parcel, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	var all []parcel
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), segmentPrefix)
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(number); err == nil && n < math.MaxInt32 {
			s.number = max(s.number, n+1)
		}
		seg, err := s.reopen(e.Name())
		if err != nil {
			return nil, fmt.Errorf("read the spool: %w", err)
		}
		all = append(all, seg.parcels(after)...)
	}
	slices.SortStableFunc(all, func(a, b parcel) int { return cmp.Compare(a.seq, b.seq) })
	return slices.CompactFunc(all, func(a, b parcel) bool { return a.seq == b.seq }), nil
}

// reopen opens a segment that a process left.
func (s *spool) reopen(name string) (*segment, error) {
	path := filepath.Join(s.dir, name)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	seg := &segment{file: f, path: path, size: info.Size()}
	s.segments = append(s.segments, seg)
	s.bytes += seg.size
	return seg, nil
}

// parcels are the batches of a segment after a number, up to the first that is cut off or is
// none.
func (seg *segment) parcels(after uint64) []parcel {
	var all []parcel
	head := make([]byte, headerSize)
	for at := int64(0); ; {
		if _, err := seg.file.ReadAt(head, at); err != nil {
			return all
		}
		h, err := parse(head)
		size := headerSize + h.packed
		if err != nil || at+int64(size) > seg.size {
			return all
		}
		if h.seq > after {
			seg.left++
			all = append(all, parcel{seq: h.seq, calls: h.calls, at: &place{in: seg, at: at, size: size}})
		}
		at += int64(size)
	}
}

// count is the number of calls in batches.
func count(all []parcel) int {
	n := 0
	for _, p := range all {
		n += p.calls
	}
	return n
}
