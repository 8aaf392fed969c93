package ship

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// stream is a call as a load makes them: chunks some 10 ms apart, each of a read of its own
// but for some, with the odd late read, failure and text.
func stream(r *rand.Rand, index, chunks int) result.Call {
	at := time.Duration(index) * 3 * time.Millisecond
	c := result.Call{Index: index, Due: at, Ready: at, Sent: at + time.Duration(r.IntN(40_000)), WantIn: 512, Want: chunks, Status: 200}
	c.Wrote = c.Sent + time.Duration(r.IntN(20_000))
	now := c.Wrote + time.Duration(30e6+r.ExpFloat64()*20e6)
	c.First, c.Headers = now, now
	c.Empty = []result.Stamp{{At: now}}
	read := int32(0)
	for range chunks {
		if now += time.Duration(9e6 + r.NormFloat64()*7e5); r.IntN(50) > 0 {
			read++
		}
		c.Chunks = append(c.Chunks, result.Chunk{At: now, Tokens: 1, Read: read})
	}
	c.Reads, c.End, c.Done, c.UsageAt = int(read)+1, now+2e5, now+1e5, now
	c.Finish, c.Usage = "length", &result.Usage{Prompt: 512, Completion: chunks}
	switch r.IntN(20) {
	case 0:
		c.Class, c.Error, c.Usage = result.StreamError, "it said \"no\" \u2028 \x00 \xff", nil
	case 1:
		c.Text = strings.Repeat("töken ", chunks)
	case 2:
		c.Late = []result.LateRead{{Read: 1, By: 12345}}
		c.New, c.Dial = true, 1e6
	}
	return c
}

func streams(seed uint64, n, chunks int) []result.Call {
	r := stat.Stream(seed, "calls")
	calls := make([]result.Call, n)
	for i := range calls {
		calls[i] = stream(r, i, 1+r.IntN(2*chunks))
	}
	return calls
}

// lines are calls as calls.jsonl has them.
func lines(calls []result.Call) []byte {
	var b []byte
	for i := range calls {
		b = append(calls[i].AppendJSON(b), '\n')
	}
	return b
}

// leader is a Link with a Receiver behind it. fault is what the network does to the n-th
// attempt, from 0; nil: nothing.
type leader struct {
	fault func(n int) fault

	mu       sync.Mutex
	receiver *Receiver
	calls    []result.Call
	attempts int
	seqs     []uint64 // of the batches that arrived
	late     []message
	refused  error // by the receiver
}

type message struct {
	seq   uint64
	batch []byte
}

type fault int

const (
	none      fault = iota
	cut             // nothing arrives
	unheard         // it arrives, and the answer is lost
	twice           // it arrives two times
	held            // it arrives after the next one that does
	heldTwice       // so it does, and with the next one
	hangs           // nothing arrives, and nobody answers
	broken          // it arrives with a byte changed
)

var errCut = errors.New("the link is cut")

func newLeader(fault func(n int) fault) *leader {
	return &leader{fault: fault, receiver: NewReceiver()}
}

func (l *leader) Send(ctx context.Context, seq uint64, batch []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := none
	if l.fault != nil {
		f = l.fault(l.attempts)
	}
	l.attempts++
	switch f {
	case cut:
		return errCut
	case hangs:
		l.mu.Unlock()
		<-ctx.Done()
		l.mu.Lock()
		return ctx.Err()
	case held, heldTwice:
		l.late = append(l.late, message{seq, bytes.Clone(batch)})
		if f == heldTwice {
			l.late = append(l.late, message{seq, bytes.Clone(batch)})
		}
		return errCut
	case broken:
		b := bytes.Clone(batch)
		b[int(seq)%len(b)] ^= 0x20
		if err := l.take(seq, b); err == nil {
			return nil // of the number a duplicate may have, nobody looks at the rest
		}
		return errCut
	}
	err := l.take(seq, batch)
	if f == twice && err == nil {
		err = l.take(seq, batch)
	}
	for _, m := range l.late {
		if e := l.take(m.seq, m.batch); e != nil {
			l.refused = e
		}
	}
	l.late = nil
	if f == unheard {
		return errCut
	}
	if err != nil {
		l.refused = err
	}
	return err
}

func (l *leader) take(seq uint64, batch []byte) error {
	given := bytes.Clone(batch)
	calls, err := l.receiver.Take(seq, given)
	clear(given) // a Receiver keeps no part of what it is given
	l.calls = append(l.calls, calls...)
	if err == nil {
		l.seqs = append(l.seqs, seq)
	}
	return err
}

// holds fails the test unless the leader has exactly these calls, byte for byte, in order.
func (l *leader) holds(t *testing.T, want []result.Call) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !bytes.Equal(lines(l.calls), lines(want)) {
		t.Errorf("the leader has %d calls, which are not the %d that were sent", len(l.calls), len(want))
	}
	if gaps := l.receiver.Missing(); len(gaps) > 0 {
		t.Errorf("missing %v", gaps)
	}
	if l.refused != nil {
		t.Error(l.refused)
	}
}

// fetched is what a leader got of a spool that was left.
type fetched struct {
	calls   int // that arrived
	damaged int // batches that the disk does not give back
	missing []Gap
	last    uint64
}

// fetch brings a leader what a spool has and was not acknowledged, and removes the spool.
func fetch(t *testing.T, l *leader, dir string) fetched {
	t.Helper()
	left, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := fetched{missing: left.Missing(0)}
	before := len(l.calls)
	for _, seq := range left.Numbers() {
		if out.last = seq; seq <= left.Acked {
			continue
		}
		batch, err := left.Read(seq)
		if err != nil {
			out.damaged++
			continue
		}
		calls, err := Calls(seq, batch)
		if err != nil {
			t.Fatal(err)
		}
		l.calls = append(l.calls, calls...)
	}
	out.calls = len(l.calls) - before
	if err := left.Remove(); err != nil {
		t.Error(err)
	}
	return out
}

// gone fails the test unless nothing is left of a spool.
func gone(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err == nil {
		t.Errorf("the spool still has %v", left)
	}
}

// TestShip: whatever the link does, each call arrives once, in order and byte for byte.
func TestShip(t *testing.T) {
	script := func(faults ...fault) func(int) fault {
		return func(n int) fault { return faults[n%len(faults)] }
	}
	for name, f := range map[string]func(n int) fault{
		"well":           nil,
		"fails":          script(none, cut, cut),
		"is not heard":   script(unheard, none, unheard),
		"delivers twice": script(twice),
		"out of order":   script(held, none, held, heldTwice, none),
		"hangs":          script(none, hangs, none),
		"breaks":         script(broken, none, broken, unheard),
		"is cut for long": func(n int) fault {
			if n > 5 && n < 40 {
				return cut
			}
			return none
		},
		"all at once": func() func(int) fault {
			r := stat.Stream(7, "faults")
			return func(int) fault { return fault(r.IntN(int(broken) + 1)) }
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testShip(t, f) })
		})
	}
}

func testShip(t *testing.T, f func(int) fault) {
	want := streams(1, 400, 20)
	dir := filepath.Join(t.TempDir(), "spool")
	l := newLeader(f)
	s, err := New(l, Options{Dir: dir, Calls: 16, Every: 100 * time.Millisecond, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if s.Add(&want[i]); i%7 == 0 {
			time.Sleep(30 * time.Millisecond)
		}
	}
	sent, err := s.Close(t.Context())
	if err != nil || sent.Calls != len(want) || sent.Waiting+sent.Lost != 0 {
		t.Fatalf("%+v, %v", sent, err)
	}
	l.holds(t, want)
	if (sent.Again > 0) != (l.attempts > int(sent.Batches)) || l.receiver.Calls() != len(want) {
		t.Errorf("%d attempts, %d calls received: %+v", l.attempts, l.receiver.Calls(), sent)
	}
	if more := l.receiver.Finish(sent.Batches); len(more) > 0 || len(l.receiver.Missing()) > 0 {
		t.Errorf("at the end %d calls more, missing %v", len(more), l.receiver.Missing())
	}
	if !slices.Contains(l.seqs, sent.Batches) || s.Sent() != sent {
		t.Errorf("%d batches, and the leader has %d: %+v", sent.Batches, len(l.seqs), s.Sent())
	}
	gone(t, dir)
}

// TestEvery: a call does not wait longer for others than it may.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(nil)
		s, err := New(l, Options{Dir: filepath.Join(t.TempDir(), "spool"), Every: 40 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		call := streams(1, 1, 5)
		s.Add(&call[0])
		time.Sleep(41 * time.Millisecond)
		synctest.Wait()
		l.holds(t, call)
		if got := s.Sent(); got.Calls != 1 || got.Waiting != 0 {
			t.Errorf("%+v", got)
		}
		if _, err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestNothing: a load without a call leaves nothing, and calls after its end are said to be lost.
func TestNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	l := newLeader(nil)
	s, err := New(l, Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := s.Close(t.Context()); err != nil || sent != (Sent{}) || l.attempts != 0 {
		t.Errorf("%+v, %v, %d attempts", sent, err, l.attempts)
	}
	gone(t, dir)
	call := streams(1, 1, 1)
	if s.Add(&call[0]); s.Sent().Lost != 1 || s.Sent().Why == "" {
		t.Errorf("a call after the end: %+v", s.Sent())
	}
}

// TestCloseInTime: when time is up, what the leader does not have lies in the spool, the
// error says so, and Look finds it.
func TestCloseInTime(t *testing.T) {
	for name, f := range map[string]fault{"cut": cut, "hanging": hangs, "not heard": unheard} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testCloseInTime(t, f) })
		})
	}
}

func testCloseInTime(t *testing.T, f fault) {
	want := streams(2, 100, 20)
	o := Options{Dir: filepath.Join(t.TempDir(), "spool"), Calls: 10, Timeout: time.Second}
	l := newLeader(func(n int) fault {
		if n < 3 {
			return none
		}
		return f
	})
	s, err := New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if s.Add(&want[i]); i%10 == 9 {
			synctest.Wait() // so that each ten are a batch
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	began := time.Now()
	sent, err := s.Close(ctx)
	left, ok := errors.AsType[*LeftError](err)
	if !ok || left.Dir != o.Dir || sent.Waiting != 70 || sent.Calls != 30 || sent.Lost != 0 || time.Since(began) > 11*time.Second {
		t.Fatalf("%+v, %v", sent, err)
	}
	if f != hangs && !strings.Contains(err.Error(), errCut.Error()) || f == hangs && !strings.Contains(err.Error(), errNoAnswer.Error()) {
		t.Errorf("it does not say why: %v", err)
	}
	if _, err := New(l, o); !isLeftover(err, 70) {
		t.Errorf("a spool that is not empty is used again: %v", err)
	}
	l.calls = nil
	kept, err := Look(o.Dir)
	if err != nil || kept.Calls != 70 || kept.Bytes == 0 {
		t.Fatalf("%+v, %v", kept, err)
	}
	if got := fetch(t, l, o.Dir); got.calls != 70 || got.last != 10 || got.missing != nil {
		t.Errorf("%+v", got)
	}
	l.holds(t, want[30:])
	gone(t, o.Dir)
}

func isLeftover(err error, calls int) bool {
	left, ok := errors.AsType[*LeftoverError](err)
	return ok && left.Calls == calls
}

// TestKilled: of what a killed process left, cut at any byte, every batch that is whole is found,
// and nothing else; once it is removed there is nothing.
func TestKilled(t *testing.T) {
	want := streams(3, 60, 5)
	dir := filepath.Join(t.TempDir(), "spool")
	killed(t, dir, want)
	name := filepath.Join(dir, segmentPrefix+"00000001")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var ends []int // of the batches
	for at := 0; at < len(whole); {
		h, err := parse(whole[at:])
		if err != nil {
			t.Fatal(err)
		}
		at += headerSize + h.packed
		ends = append(ends, at)
	}
	if len(ends) != 6 {
		t.Fatalf("%d batches", len(ends))
	}
	for n := 0; n <= len(whole); n += 1 + len(whole)/150 {
		other := filepath.Join(t.TempDir(), "spool")
		if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(other, filepath.Base(name)), int64(n)); err != nil {
			t.Fatal(err)
		}
		batches := 0
		for batches < len(ends) && ends[batches] <= n {
			batches++
		}
		l := newLeader(nil)
		if got := fetch(t, l, other); got.calls != 10*batches || got.missing != nil {
			t.Fatalf("cut at %d of %d: %+v; want %d batches", n, len(whole), got, batches)
		}
		l.holds(t, want[:10*batches])
		gone(t, other)
		if _, err := Look(other); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("again: %v", err)
		}
	}
}

// killed leaves the spool of a process that was killed before anything was sent, in batches
// of ten calls.
func killed(t *testing.T, dir string, calls []result.Call) {
	t.Helper()
	sp, err := openSpool(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches(calls, 10) {
		if _, err := sp.append(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := sp.close(); err != nil {
		t.Fatal(err)
	}
}

// batches are calls in batches of n, from number 1.
func batches(calls []result.Call, n int) [][]byte {
	p := newPacker()
	defer p.close()
	var out [][]byte
	for part := range slices.Chunk(calls, n) {
		for i := range part {
			p.add(&part[i])
		}
		_, b := p.pack(uint64(len(out) + 1))
		out = append(out, bytes.Clone(b))
	}
	return out
}

// TestAcknowledged: of a spool whose first batches the leader has, the others are what waits; those that are still
// there are found too.
func TestAcknowledged(t *testing.T) {
	want := streams(4, 60, 5)
	dir := filepath.Join(t.TempDir(), "spool")
	killed(t, dir, want)
	sp, err := openSpool(dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(sp.acknowledge(4), sp.close()); err != nil {
		t.Fatal(err)
	}
	l := newLeader(nil)
	for i, b := range batches(want[:40], 10) {
		if err := l.take(uint64(i+1), b); err != nil {
			t.Fatal(err)
		}
	}
	left, err := Look(dir)
	if err != nil || left.Acked != 4 || left.Calls != 20 || !slices.Equal(left.Numbers(), []uint64{1, 2, 3, 4, 5, 6}) {
		t.Fatalf("%+v, %v", left, err)
	}
	if got := fetch(t, l, dir); got.calls != 20 {
		t.Errorf("%+v", got)
	}
	l.holds(t, want)
}

// TestNumbersBeginAnew: what a killed process left and the leader has is no leftover, and its
// numbers stand for nothing in the next load, nor when that is killed.
func TestNumbersBeginAnew(t *testing.T) {
	want := streams(9, 40, 5)
	o := Options{Dir: filepath.Join(t.TempDir(), "spool"), Calls: 10}
	killed(t, o.Dir, streams(10, 60, 5))
	sp, err := openSpool(o.Dir, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(sp.acknowledge(6), sp.close()); err != nil {
		t.Fatal(err)
	}
	l := newLeader(func(int) fault { return cut })
	s, err := New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		s.Add(&want[i])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if sent, err := s.Close(ctx); err == nil || sent.Waiting != 40 {
		t.Errorf("%+v, %v", sent, err)
	}
	if got := fetch(t, l, o.Dir); got.calls != 40 {
		t.Errorf("%+v", got)
	}
	l.holds(t, want)
	gone(t, o.Dir)
}

// TestDamaged: a batch that the disk does not give back as it was is an error, those that were in
// memory alone are missing, and all others are there.
func TestDamaged(t *testing.T) {
	want := streams(5, 60, 5)
	dir := filepath.Join(t.TempDir(), "spool")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	all := batches(want, 10)
	all[1][headerSize+5] ^= 1
	file := slices.Concat(all[0], all[1], all[4], all[5]) // 3 and 4 were in memory
	if err := os.WriteFile(filepath.Join(dir, segmentPrefix+"00000007"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ackedName), []byte("no number"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLeader(nil)
	left, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := left.Missing(8); !slices.Equal(got, []Gap{{3, 4}, {7, 8}}) {
		t.Errorf("missing of eight batches: %v", got)
	}
	if got := fetch(t, l, dir); got.calls != 30 || got.damaged != 1 || !slices.Equal(got.missing, []Gap{{3, 4}}) {
		t.Errorf("%+v", got)
	}
	if !bytes.Equal(lines(l.calls), lines(slices.Concat(want[:10], want[40:]))) {
		t.Errorf("%d calls arrived", len(l.calls))
	}
	gone(t, dir)
}

// TestFarApart: a spool with a row of missing numbers that is too long to be believed is an
// error, and stays.
func TestFarApart(t *testing.T) {
	dir := t.TempDir()
	p := newPacker()
	c := streams(1, 1, 1)
	p.add(&c[0])
	_, b := p.pack(1 << 40)
	for name, text := range map[string][]byte{segmentPrefix + "00000001": b, ackedName: nil} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Look(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, segmentPrefix+"00000001")); err != nil {
		t.Error(err)
	}
}

// TestOneProcess: a spool that is in use is not used by another.
func TestOneProcess(t *testing.T) {
	o := Options{Dir: filepath.Join(t.TempDir(), "spool")}
	l := newLeader(nil)
	s, err := New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(l, o); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second one: %v", err)
	}
	if _, err := Look(o.Dir); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("looked into beside: %v", err)
	}
	if _, err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOptions: what cannot be used is said.
func TestOptions(t *testing.T) {
	for _, o := range []Options{{}, {Dir: "x", Calls: -1}, {Dir: "x", Calls: mostCalls + 1}, {Dir: "x", Every: -1}, {Dir: "x", MostSpool: -1}} {
		if _, err := New(nil, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a directory was made")
	}
}

// TestAddFromMany: several goroutines may add while batches are made and sent.
func TestAddFromMany(t *testing.T) {
	synctest.Test(t, testAddFromMany)
}

func testAddFromMany(t *testing.T) {
	l := newLeader(func(n int) fault { return fault(n % 4) })
	s, err := New(l, Options{Dir: filepath.Join(t.TempDir(), "spool"), Calls: 32, Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	want := streams(6, 800, 5)
	var adding sync.WaitGroup
	for k := range 4 {
		adding.Go(func() {
			for i := k; i < len(want); i += 4 {
				s.Add(&want[i])
			}
		})
	}
	adding.Wait()
	if sent, err := s.Close(t.Context()); err != nil || sent.Calls != len(want) {
		t.Fatalf("%+v, %v", sent, err)
	}
	slices.SortFunc(l.calls, func(a, b result.Call) int { return a.Index - b.Index })
	l.holds(t, want)
}

// TestLarge: calls of many chunks make batches of few, and one that no batch can hold is
// said to be lost.
func TestLarge(t *testing.T) {
	l := newLeader(nil)
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := New(l, Options{Dir: dir, MostMemory: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	want := streams(8, 12, 20_000)
	want[5] = result.Call{Index: 5, Text: strings.Repeat("x", mostRaw)}
	for i := range want {
		s.Add(&want[i])
	}
	sent, err := s.Close(t.Context())
	if _, ok := errors.AsType[*LeftError](err); !ok || sent.Lost != 1 || sent.Calls != 11 || sent.Batches < 2 || !strings.Contains(sent.Why, "call 5") {
		t.Errorf("%+v, %v", sent, err)
	}
	l.holds(t, slices.Delete(want, 5, 6))
	gone(t, dir)
}

func ExampleShipper() {
	dir, err := os.MkdirTemp("", "spool")
	if err != nil {
		panic(err)
	}
	l := newLeader(nil)
	s, err := New(l, Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	s.Add(&result.Call{Index: 7, Sent: 5, End: 9})
	sent, err := s.Close(context.Background())
	fmt.Println(sent.Calls, err, l.calls[0].Index)
	// Output: 1 <nil> 7
}
