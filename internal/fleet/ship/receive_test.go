package ship

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/stat"
)

// TestTakeInAnyOrder: whatever the order in which batches come, and however often, each call
// comes out once, in order.
func TestTakeInAnyOrder(t *testing.T) {
	want := streams(21, 200, 5)
	all := batches(want, 10)
	r := stat.Stream(22, "order")
	for range 50 {
		deck := slices.Concat(r.Perm(len(all)), r.Perm(len(all)), r.Perm(len(all)))
		rec := NewReceiver()
		var got []result.Call
		for _, i := range deck {
			calls, err := rec.Take(uint64(i+1), all[i])
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, calls...)
		}
		if !bytes.Equal(lines(got), lines(want)) || len(rec.Missing()) != 0 || rec.held != 0 || rec.Calls() != len(want) {
			t.Fatalf("%d calls, missing %v, %d bytes held", len(got), rec.Missing(), rec.held)
		}
	}
}

// TestMissing: a gap is told while it lasts, and at the end for good; what came after it is given then.
func TestMissing(t *testing.T) {
	want := streams(23, 100, 5)
	all := batches(want, 10)
	rec := NewReceiver()
	take := func(seq uint64) int {
		t.Helper()
		calls, err := rec.Take(seq, all[seq-1])
		if err != nil {
			t.Fatal(err)
		}
		return len(calls)
	}
	if n := take(1) + take(4) + take(7) + take(6); n != 10 || !slices.Equal(rec.Missing(), []Gap{{2, 3}, {5, 5}}) {
		t.Errorf("%d calls, missing %v", n, rec.Missing())
	}
	if n := take(2) + take(3); n != 30 || !slices.Equal(rec.Missing(), []Gap{{5, 5}}) {
		t.Errorf("%d calls, missing %v", n, rec.Missing())
	}
	if calls := rec.Finish(10); !bytes.Equal(lines(calls), lines(want[50:70])) || !slices.Equal(rec.Missing(), []Gap{{5, 5}, {8, 10}}) {
		t.Errorf("%d calls, missing %v", len(calls), rec.Missing())
	}
	if calls, err := rec.Take(5, all[4]); len(calls) != 0 || err != nil {
		t.Errorf("a batch that was given up: %d calls, %v", len(calls), err)
	}
	rec = NewReceiver()
	take(1)
	if calls := rec.Finish(0); len(calls) != 0 || len(rec.Missing()) != 0 {
		t.Errorf("an end nobody knows: %d calls, missing %v", len(calls), rec.Missing())
	}
	if _, err := rec.Take(2, all[1]); err == nil {
		t.Error("a batch after the end is taken")
	}
}

// TestLostBatch: the number of a batch that does not come leaves a gap, and what follows comes out.
func TestLostBatch(t *testing.T) {
	want := streams(24, 40, 5)
	all := batches(want, 10)
	rec := NewReceiver()
	var got []result.Call
	for _, m := range []message{{1, all[0]}, {3, lostBatch(3)}, {4, all[3]}, {2, lostBatch(2)}} {
		calls, err := rec.Take(m.seq, m.batch)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, calls...)
	}
	if !bytes.Equal(lines(got), lines(slices.Concat(want[:10], want[30:]))) || !slices.Equal(rec.Missing(), []Gap{{2, 3}}) {
		t.Errorf("%d calls, missing %v", len(got), rec.Missing())
	}
}

// forged is a batch with a right checksum around these lines, whatever they are.
func forged(seq uint64, calls, raw uint32, text []byte) []byte {
	p := newPacker()
	defer p.close()
	return p.forge(seq, calls, raw, text)
}

func (p *packer) forge(seq uint64, calls, raw uint32, text []byte) []byte {
	p.lines, p.calls = append(p.lines[:0], text...), 1
	_, b := p.pack(seq)
	binary.LittleEndian.PutUint32(b[12:], calls)
	binary.LittleEndian.PutUint32(b[16:], raw)
	binary.LittleEndian.PutUint32(b[sumAt:], sum(b, b[headerSize:]))
	return b
}

// TestRefused: what is no batch, or not this one, is refused, and the right one is taken then.
func TestRefused(t *testing.T) {
	want := streams(25, 10, 5)
	good := batches(want, 10)[0]
	text := lines(want)
	raw := uint32(len(text))
	other := bytes.Clone(good)
	binary.LittleEndian.PutUint64(other[4:], 2)
	for name, c := range map[string]struct {
		batch []byte
		says  string
	}{
		"nothing":               {nil, "does not begin"},
		"half a header":         {good[:headerSize-1], "does not begin"},
		"cut off":               {good[:len(good)-1], "bytes"},
		"too long":              {append(bytes.Clone(good), 0), "bytes"},
		"other magic":           {append([]byte("PLC2"), good[4:]...), "does not begin"},
		"changed":               {other, "checksum"},
		"of another number":     {batches(streams(25, 20, 5), 10)[1], "number 2"},
		"fewer calls than said": {forged(1, 11, raw, text), "10 calls, and 11"},
		"more calls than said":  {forged(1, 9, raw, text), "more than 9"},
		"fewer bytes than said": {forged(1, 10, raw+1, text), "bytes of calls"},
		"more bytes than said":  {forged(1, 10, raw-1, text), "uncompress"},
		"no calls":              {forged(1, 10, raw, []byte(strings.Repeat("x", int(raw)))), "10 were sent"},
		"lines of other things": {forged(1, 2, 8, []byte("[1]\n{}\n\n")), "is not a call"},
		"too many calls":        {forged(1, mostCalls+1, raw, text), "no batch"},
		"too many bytes":        {forged(1, 10, mostRaw+1, text), "no batch"},
		"bytes of no call":      {forged(1, 0, raw, text), "no batch"},
	} {
		rec := NewReceiver()
		if calls, err := rec.Take(1, c.batch); err == nil || len(calls) > 0 || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "batch 1: ") {
			t.Errorf("%s: %d calls, %v; want an error with %q", name, len(calls), err, c.says)
		}
		if calls, err := rec.Take(1, good); err != nil || len(calls) != 10 {
			t.Errorf("%s: the right one then: %d calls, %v", name, len(calls), err)
		}
	}
	rec := NewReceiver()
	for seq, says := range map[uint64]string{0: "the first is 1", mostAhead + 2: "no room", math.MaxUint64: "no room"} {
		p := newPacker()
		p.put(text[:bytes.IndexByte(text, '\n')+1])
		_, b := p.pack(seq)
		if calls, err := rec.Take(seq, b); err == nil || len(calls) > 0 || !strings.Contains(err.Error(), says) {
			t.Errorf("number %d: %d calls, %v", seq, len(calls), err)
		}
	}
}

// TestMemory: small messages that claim or unpack to much take no more memory than the largest
// batch may, and those before their turn no more than the bound.
func TestMemory(t *testing.T) {
	zeros := forged(1, 1, mostRaw, make([]byte, mostRaw))
	bomb := forged(1, 1, 1000, make([]byte, mostRaw))
	empty := forged(1, mostCalls, mostRaw, bytes.Repeat([]byte("{}\n"), mostRaw/3))
	text := fmt.Appendf(nil, `{"index":0,"chunk_ns":[%s0]}`+"\n", strings.Repeat("0,", mostRaw/2-20))
	chunks := forged(1, 1, uint32(len(text)), text)
	for name, b := range map[string][]byte{"zeros": zeros, "a bomb": bomb, "empty calls": empty, "chunks without end": chunks} {
		if len(b) > 1<<20 {
			t.Errorf("%s are %d bytes", name, len(b))
		}
		rec := NewReceiver()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := rec.Take(1, b)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 8*mostRaw {
			t.Errorf("%s: %v, %d MiB", name, err, n>>20)
		}
	}
	rec := NewReceiver()
	noise := make([]byte, 1<<20) // text that does not compress
	r := stat.Stream(26, "noise")
	for i := range noise {
		noise[i] = 'A' + byte(r.IntN(26))
	}
	taken := 0
	for seq := uint64(2); seq < 100; seq++ {
		p := newPacker()
		p.add(&result.Call{Text: string(noise)})
		_, b := p.pack(seq)
		if _, err := rec.Take(seq, b); err == nil {
			taken++
		}
		if rec.held > mostHeld {
			t.Fatalf("%d MiB wait for their turn", rec.held>>20)
		}
	}
	if taken < 10 || taken > 40 {
		t.Errorf("%d batches before their turn were taken", taken)
	}
}

// FuzzTake: whatever comes, a Receiver does not panic, takes no more than it may, and goes on.
func FuzzTake(f *testing.F) {
	all := batches(streams(27, 20, 3), 10)
	for i, b := range all {
		f.Add(uint64(i+1), b, false)
	}
	f.Add(uint64(1), lines(streams(27, 3, 3)), true)
	f.Add(uint64(3), []byte(`{"index":1,"chunk_ns":[1,2],"late":[[1]]}`+"\n"), true)
	f.Add(uint64(2), lostBatch(2), false)
	f.Add(uint64(1), []byte("\n\n"), true)
	first := batches(streams(28, 5, 3), 5)[0]
	p := newPacker()
	defer p.close()
	f.Fuzz(func(t *testing.T, seq uint64, data []byte, wrap bool) {
		rec := NewReceiver()
		if wrap { // past the checksum
			data = p.forge(seq, uint32(bytes.Count(data, []byte{'\n'})), uint32(len(data)), data)
		}
		calls, err := rec.Take(seq, data)
		if err != nil && len(calls) > 0 {
			t.Errorf("%d calls of a batch that was refused", len(calls))
		}
		again, err2 := rec.Take(seq, data)
		if len(again) > 0 || (err == nil) != (err2 == nil) {
			t.Errorf("the second time %d calls, %v after %v", len(again), err2, err)
		}
		if err != nil || seq != 1 {
			more, err := rec.Take(1, first)
			if err != nil || len(more) < 5 {
				t.Errorf("the first batch after it: %d calls, %v", len(more), err)
			}
		}
		rec.Finish(seq % 1000)
		for i, g := range rec.Missing() {
			if g.From == 0 || g.To < g.From || i > 0 && g.From <= rec.Missing()[i-1].To {
				t.Errorf("missing %v", rec.Missing())
			}
		}
	})
}
