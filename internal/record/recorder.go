package record

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"perflab/internal/result"
	"perflab/internal/workload/blocktrace"
)

// Options say what is recorded, and how.
type Options struct {
	Block         int       // tokens of a block; 0: DefaultBlock
	Tokenizer     Tokenizer // cuts prompts into tokens; nil: package token's estimate
	SessionHeader string    // names the session of a request; "": found by prompts that go on from earlier ones
	Salt          []byte    // of the hashes; nil: a random one that is kept nowhere
	Text          bool      // keep the prompts themselves
	Memory        int64     // bytes of bodies that wait to be taken apart; 0: DefaultMemory
}

// What Options have where they do not say.
const (
	DefaultBlock  = 64
	DefaultMemory = 256 << 20
)

// Recorder writes a line for each request of an API as it ends.
type Recorder struct {
	options  Options
	file     *os.File
	salt     link
	sessions *sessions

	origin atomic.Pointer[time.Time] // of the times: when the first request came
	held   atomic.Int64              // bytes of bodies
	live   Live

	mu      sync.Mutex
	waiting []seen
	wake    chan struct{} // of size 1: there is something waiting
	closed  chan struct{}
	wg      sync.WaitGroup

	sum Summary // of the writing goroutine until it has ended
	err error
}

// Live is what a recording has so far.
type Live struct{ Open, Recorded, Failed, Input, Output atomic.Int64 }

// syncEvery is how long what was written may not be safe from a power cut.
const syncEvery = time.Second

// Open begins a recording in a file that does not exist yet.
func Open(path string, o Options) (*Recorder, error) {
	if o.Block == 0 {
		o.Block = DefaultBlock
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Salt == nil {
		o.Salt = make([]byte, 32)
		rand.Read(o.Salt)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists: give another name, or remove it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("make the recording: %w", err)
	}
	r := &Recorder{options: o, file: f, salt: saltOf(o.Salt), wake: make(chan struct{}, 1), closed: make(chan struct{})}
	r.sessions = newSessions(r.salt, rand.Text())
	r.sum = newSummary(o.Block)
	r.wg.Go(r.work)
	return r, nil
}

// Live is what there is so far.
func (r *Recorder) Live() *Live { return &r.live }

// Close waits until all that has ended is written and safe.
func (r *Recorder) Close() (Summary, error) {
	close(r.closed)
	r.wg.Wait()
	r.sum.Began = r.began()
	if err := r.file.Sync(); r.err == nil && err != nil {
		r.err = fmt.Errorf("write the recording: %w", err)
	}
	if err := r.file.Close(); r.err == nil && err != nil {
		r.err = fmt.Errorf("write the recording: %w", err)
	}
	return r.sum, r.err
}

// start notes that a request has come, from the first of which times count.
func (r *Recorder) start(at time.Time) {
	r.live.Open.Add(1)
	if r.origin.Load() == nil {
		r.origin.CompareAndSwap(nil, &at)
	}
}

func (r *Recorder) began() time.Time {
	if t := r.origin.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// take takes memory for a body, if there is some.
func (r *Recorder) take(n int64) bool {
	if r.held.Add(n) > r.options.Memory {
		r.held.Add(-n)
		return false
	}
	return true
}

func (r *Recorder) give(n int64) { r.held.Add(-n) }

// hand hands an exchange over to who writes.
func (r *Recorder) hand(s seen) {
	if s.api != "" {
		r.live.Open.Add(-1)
	}
	r.mu.Lock()
	r.waiting = append(r.waiting, s)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// work writes what has ended until the recording is closed.
func (r *Recorder) work() {
	var dirty bool
	tick := time.NewTicker(syncEvery)
	defer tick.Stop()
	for open := true; open; {
		select {
		case <-r.wake:
		case <-tick.C:
			if dirty {
				r.note(r.file.Sync())
				dirty = false
			}
		case <-r.closed:
			open = false
		}
		r.mu.Lock()
		list := r.waiting
		r.waiting = nil
		r.mu.Unlock()
		for i := range list {
			dirty = true
			r.note(r.write(&list[i]))
			r.give(list[i].size)
			list[i] = seen{} // its body may be large
		}
	}
}

// note keeps the first error; requests are passed on whatever the disk says.
func (r *Recorder) note(err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("write the recording: %w", err)
	}
}

// write writes the line of an exchange.
func (r *Recorder) write(s *seen) error {
	if s.api == "" {
		r.sum.Others++
		return nil
	}
	row, ok := r.row(s)
	if !ok {
		r.sum.Several++
		return nil
	}
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return err
	}
	r.sum.add(row)
	r.live.Recorded.Add(1)
	if s.class != result.OK {
		r.live.Failed.Add(1)
	}
	r.live.Input.Add(int64(row.Input))
	r.live.Output.Add(int64(row.Output))
	return nil
}

// row is the line of an exchange. It is false for a request of several prompts.
func (r *Recorder) row(s *seen) (blocktrace.Row, bool) {
	c := cutter{tok: r.options.Tokenizer, block: r.options.Block}
	row := blocktrace.Row{Timestamp: max(0, millis(s.at.Sub(r.began()))), Block: r.options.Block, Recorded: blocktrace.Recorded{
		Duration: millis(s.until.Sub(s.at)), Status: s.status, Error: string(s.class), API: s.api, Stream: s.stream, Simulated: s.simulated,
	}}
	if !s.first.IsZero() {
		row.FirstByte = millis(s.first.Sub(s.at))
	}
	b, ok := readBody(s.text())
	if ok {
		b.describe(&row)
		if !c.cut(b, s.api) {
			return row, false
		}
		if r.options.Text {
			row.Text = b.text(s.api)
		}
	}
	r.lengths(&row, s, &c, ok)
	links := c.chain(r.salt)
	if !ok || c.n == 0 {
		links = []link{r.salt.next(moreBlocks, r.unique())}
		c = cutter{block: r.options.Block}
	}
	row.IDs = c.blockIDs(links, blocktrace.Blocks(row.Input, row.Block))
	switch {
	case s.session != "":
		row.Session = r.sessions.name(named, s.session)
	case ok && c.n > 0 && r.options.SessionHeader == "":
		row.Session = r.sessions.of(&c, links)
	}
	return row, true
}

// unique is random, for a prompt that is like no other as far as one knows.
func (r *Recorder) unique() []uint32 {
	var b [16]byte
	rand.Read(b[:])
	out := make([]uint32, len(b))
	for i, v := range b {
		out[i] = uint32(v)
	}
	return out
}

// millis is a time in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Round(time.Microsecond).Microseconds()) / 1e3 }
