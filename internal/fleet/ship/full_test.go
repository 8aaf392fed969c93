package ship

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// broken is a link that does not work until it is mended.
func brokenLink() (l *leader, mend func()) {
	var mended atomic.Bool
	l = newLeader(func(int) fault {
		if mended.Load() {
			return none
		}
		return cut
	})
	return l, func() { mended.Store(true) }
}

// disks are spools that cannot take all, each made in a directory of a test's own.
var disks = map[string]func(t *testing.T, o *Options){
	"a spool that is full": func(_ *testing.T, o *Options) { o.MostSpool = 20_000 },
	"no room at all":       func(_ *testing.T, o *Options) { o.MostSpool = 1 },
	"a full device": func(t *testing.T, o *Options) {
		if _, err := os.Stat("/dev/full"); err != nil {
			t.Skip("this system has no device that is always full:", err)
		}
		if err := os.MkdirAll(o.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, number := range []string{"00000001", "00000002", "00000003"} { // then there is room again
			if err := os.Symlink("/dev/full", filepath.Join(o.Dir, segmentPrefix+number)); err != nil {
				t.Fatal(err)
			}
		}
	},
	"a disk that is full": func(t *testing.T, o *Options) { smallDisk(t, filepath.Dir(o.Dir), "64k") },
}

// TestFullDisk: what the disk does not take waits in memory, and arrives in its order.
func TestFullDisk(t *testing.T) {
	for name, full := range disks {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: filepath.Join(t.TempDir(), "spool"), Calls: 20, Timeout: time.Second}
			full(t, &o)
			synctest.Test(t, func(t *testing.T) { testFullDisk(t, o) })
		})
	}
}

func testFullDisk(t *testing.T, o Options) {
	l, mend := brokenLink()
	s, err := startOn(l, o)
	if err != nil {
		t.Fatal(err)
	}
	want := streams(11, 600, 50)
	for i := range want {
		if s.Add(&want[i]); i%100 == 0 {
			time.Sleep(time.Second)
		}
	}
	time.Sleep(time.Second)
	synctest.Wait()
	if got := s.Sent(); got.Disk == "" || got.Failing != errCut.Error() || got.Waiting != len(want) || got.Lost != 0 {
		t.Errorf("before: %+v", got)
	}
	mend()
	if sent, err := s.Close(t.Context()); err != nil || sent.Calls != len(want) || sent.Lost != 0 {
		t.Fatalf("%+v, %v", sent, err)
	}
	l.holds(t, want)
}

// startOn is New on a directory that a test prepared: what is in it is no leftover.
func startOn(l Link, o Options) (*Shipper, error) {
	o = o.filled()
	sp, err := openSpool(o.Dir, o.MostSpool)
	if err != nil {
		return nil, err
	}
	return newShipper(l, o, sp).start(), nil
}

// TestFullMemory: calls that neither disk nor memory has room for are counted as lost with
// the reason, the others arrive, and memory stays within its bound.
func TestFullMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, mend := brokenLink()
		o := Options{Dir: filepath.Join(t.TempDir(), "spool"), Calls: 20, MostSpool: 20_000, MostMemory: 100_000}
		s, err := New(l, o)
		if err != nil {
			t.Fatal(err)
		}
		all := streams(12, 1000, 50)
		var kept []result.Call
		for i := range all {
			before := s.Sent().Lost
			if s.Add(&all[i]); s.Sent().Lost == before {
				kept = append(kept, all[i])
			}
			if i%20 == 0 {
				time.Sleep(300 * time.Millisecond)
				synctest.Wait()
			}
			if s.held > o.MostMemory {
				t.Fatalf("%d bytes in memory", s.held)
			}
		}
		got := s.Sent()
		if got.Lost == 0 || got.Lost+got.Waiting != len(all) || got.Waiting != len(kept) || !strings.Contains(got.Why, "the spool is full") {
			t.Errorf("%d kept: %+v", len(kept), got)
		}
		mend()
		sent, err := s.Close(t.Context())
		if err == nil || sent.Calls != len(kept) || sent.Lost != got.Lost || sent.Waiting != 0 || !strings.Contains(err.Error(), "are lost") {
			t.Errorf("%+v, %v", sent, err)
		}
		l.holds(t, kept)
		if s.held != 0 {
			t.Errorf("%d bytes are said to be in memory still", s.held)
		}
	})
}

// TestFullAtEnd: when time is up, every call is somewhere or said to be lost; Look finds
// those that are on disk.
func TestFullAtEnd(t *testing.T) {
	for name, full := range disks {
		t.Run(name, func(t *testing.T) {
			o := Options{Dir: filepath.Join(t.TempDir(), "spool"), Calls: 20}
			full(t, &o)
			synctest.Test(t, func(t *testing.T) { testFullAtEnd(t, o) })
		})
	}
}

func testFullAtEnd(t *testing.T, o Options) {
	l, _ := brokenLink()
	s, err := startOn(l, o)
	if err != nil {
		t.Fatal(err)
	}
	all := streams(13, 600, 50)
	for i := range all {
		if s.Add(&all[i]); i%100 == 0 {
			time.Sleep(time.Second)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	sent, err := s.Close(ctx)
	if err == nil || sent.Calls != 0 || sent.Lost+sent.Waiting != len(all) {
		t.Fatalf("%+v, %v", sent, err)
	}
	if got := fetch(t, l, o.Dir); got.calls != sent.Waiting || got.damaged != 0 {
		t.Errorf("%+v after %+v", got, sent)
	}
	var on []result.Call // what arrived, as it was sent
	for _, c := range l.calls {
		on = append(on, all[c.Index])
	}
	if !bytes.Equal(lines(on), lines(l.calls)) || len(on) != sent.Waiting || !slices.IsSortedFunc(on, func(a, b result.Call) int { return a.Index - b.Index }) {
		t.Errorf("%d calls arrived", len(on))
	}
}

// TestSpoolGivesBack: the disk has little more than what is not acknowledged, whatever the
// order of writing and sending, and never more than the bound.
func TestSpoolGivesBack(t *testing.T) {
	const most, segment = 40_000, 4_000
	dir := filepath.Join(t.TempDir(), "spool")
	sp, err := openSpool(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	sp.segment = segment
	r := stat.Stream(14, "spool")
	type kept struct {
		seq uint64
		at  *place
		b   []byte
	}
	var waiting []kept
	open, full, seq := int64(0), 0, uint64(0)
	for range 5000 {
		if r.IntN(2) == 0 {
			seq++
			b := header{seq: seq, calls: 1, raw: 1, packed: 100 + r.IntN(900)}
			batch := make([]byte, headerSize+b.packed)
			for i := range batch {
				batch[i] = byte(r.Uint32())
			}
			b.put(batch)
			if at, err := sp.append(batch); err == nil {
				waiting = append(waiting, kept{seq, at, batch})
				open += int64(len(batch))
			} else if full++; open+2*segment+1000 < most {
				t.Fatalf("%d bytes wait, and there is no room in %d: %v", open, most, err)
			}
		} else if len(waiting) > 0 {
			k := waiting[0]
			got, err := sp.read(k.at)
			if err != nil || !bytes.Equal(got, k.b) {
				t.Fatalf("batch %d: %v", k.seq, err)
			}
			sp.free(k.seq, k.at)
			waiting, open = waiting[1:], open-int64(len(k.b))
		}
		if on := onDisk(t, dir); on != sp.bytes || on > most || on > open+2*segment+1000 {
			t.Fatalf("%d bytes on the disk, %d by count, %d wait", on, sp.bytes, open)
		}
	}
	if full == 0 {
		t.Error("the spool was never full")
	}
	var want []uint64
	for _, k := range waiting {
		want = append(want, k.seq)
	}
	if err := sp.close(); err != nil {
		t.Fatal(err)
	}
	again, err := openSpool(dir, most)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	found, err := again.scan(again.acknowledged())
	var got []uint64
	for _, p := range found {
		got = append(got, p.seq)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("found %v, %v; want %v", got, err, want)
	}
}

// onDisk is the size of all segments.
func onDisk(t *testing.T, dir string) (n int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, segmentPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		n += info.Size()
	}
	return n
}

// FuzzSpool: whatever lies in a spool's files, looking at it ends, and what it finds lies in them.
func FuzzSpool(f *testing.F) {
	b := batches(streams(15, 30, 3), 10)
	f.Add(slices.Concat(b...), []byte("00000000000000000001\n"))
	f.Add(b[1][:50], []byte{})
	f.Add(slices.Concat(lostBatch(9), b[0]), []byte("99999999999999999999\n"))
	f.Fuzz(func(t *testing.T, segment, acked []byte) {
		dir := t.TempDir()
		for name, text := range map[string][]byte{segmentPrefix + "1": segment, ackedName: acked} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		sp, err := openSpool(dir, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		defer sp.close()
		found, err := sp.scan(sp.acknowledged())
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range found {
			if _, err := sp.read(p.at); err != nil || p.seq <= sp.acknowledged() || i > 0 && p.seq <= found[i-1].seq {
				t.Errorf("batch %d at %+v: %v", p.seq, p.at, err)
			}
		}
	})
}

// smallDisk mounts a disk of a size.
func smallDisk(t *testing.T, dir, size string) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("only root may mount a small disk")
	}
	mountTmpfs(t, dir, size)
}
