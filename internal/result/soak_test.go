package result

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// soakCall is call i of a run at 1,000 requests/s with so many tokens a call.
func soakCall(i, tokens int) Call {
	chunks := make([]Chunk, tokens)
	x := uint64(i)*0x9e3779b97f4a7c15 + 1
	x ^= x >> 29
	jitter := func(n uint64) time.Duration { x = x*0xbf58476d1ce4e5b9 + 1; return time.Duration(x >> 33 % n) }
	due := time.Duration(i) * time.Millisecond
	c := Call{Index: i, Due: due, Ready: due, Sent: due + jitter(50_000), WantIn: 128, Want: len(chunks), Status: 200, Finish: "length"}
	c.Wrote = c.Sent + 5000
	at := c.Sent + 20*time.Millisecond + jitter(1<<24)
	c.First, c.Headers = at, at
	for k := range chunks {
		chunks[k] = Chunk{At: at, Tokens: 1, Read: int32(k + 1)}
		at += 8*time.Millisecond + jitter(1<<22)
	}
	c.Chunks, c.Reads = chunks, len(chunks)+1
	c.End = chunks[len(chunks)-1].At + 100_000
	c.Usage = &Usage{Prompt: 130, Completion: len(chunks)}
	return c
}

// live is what the heap holds after a collection.
func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestAccumulatorMemory: a call of a long run takes some 50 bytes while there are rows,
// and nothing once there are none, beside what the limits allow for whole calls.
func TestAccumulatorMemory(t *testing.T) {
	const n, fixed = 100_000, 16 << 20
	for _, x := range []struct {
		name string
		rows int
		each uint64
	}{{"rows", 10_000_000, 60}, {"bins", 50_000, 10}} {
		t.Run(x.name, func(t *testing.T) {
			l := Limits{Bytes: 16 << 20, Some: 4 << 20, Rows: x.rows}
			acc, err := NewLimited(Header{Requests: n, Rate: 1000}, Options{}, l)
			if err != nil {
				t.Fatal(err)
			}
			before := live()
			for i := range n {
				c := soakCall(i, 4)
				acc.Add(&c)
			}
			held := live() - before
			t.Logf("%d bytes, %.1f a call", held, float64(held)/n)
			if most := fixed + x.each*n; held > most {
				t.Errorf("%d calls hold %d bytes, want %d at most", n, held, most)
			}
			runtime.KeepAlive(acc)
		})
	}
}

// TestSoak takes in as many calls as PERFLAB_SOAK says, 86400000 for a day at 1,000/s,
// of PERFLAB_SOAK_TOKENS tokens each, stores what is held and reads it again,
// and says what memory the process had at most.
func TestSoak(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("PERFLAB_SOAK"))
	if err != nil {
		t.Skip("set PERFLAB_SOAK to a number of calls")
	}
	acc, err := NewAccumulator(Header{Requests: n, Rate: 1000}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	tokens := 16
	if v, err := strconv.Atoi(os.Getenv("PERFLAB_SOAK_TOKENS")); err == nil {
		tokens = v
	}
	began := time.Now()
	for i := range n {
		c := soakCall(i, tokens)
		acc.Add(&c)
		if i%(n/10) == 0 {
			t.Logf("%d calls after %v: %s", i, time.Since(began).Round(time.Second), peakMemory(t))
		}
	}
	t.Logf("taken in after %v: %s", time.Since(began), peakMemory(t))
	began = time.Now()
	a, err := acc.Analyze(&Client{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("figures after %v: %s; P99 TTFT %v, P99 ITL %v", time.Since(began), peakMemory(t), a.Figures["p99_ttft_ms"], a.Figures["p99_itl_ms"])
	f, err := os.Create(filepath.Join(t.TempDir(), "digest"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	began = time.Now()
	if err := acc.Save(f, "soak"); err != nil {
		t.Fatal(err)
	}
	size, _ := f.Seek(0, io.SeekEnd)
	t.Logf("stored after %v: %d bytes, %s", time.Since(began), size, peakMemory(t))
	acc = nil
	began = time.Now()
	f.Seek(0, io.SeekStart)
	again, err := Load(f, Header{Requests: n, Rate: 1000}, Options{}, "soak")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Analyze(&Client{}, Options{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("figures of what was stored after %v: %s", time.Since(began), peakMemory(t))
}

// peakMemory says what memory the process had at most, where /proc does.
func peakMemory(t *testing.T) string {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "peak memory not known"
	}
	_, rest, _ := bytes.Cut(b, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return "VmHWM" + string(line)
}

// BenchmarkAccumulate is what a call of a run costs whose calls do not all fit into memory.
func BenchmarkAccumulate(b *testing.B) {
	calls := make([]Call, 1000)
	for i := range calls {
		calls[i] = soakCall(i, 128)
	}
	acc, err := NewLimited(Header{Limit: 64}, Options{}, Limits{Bytes: 1 << 16, Some: 1 << 14, Rows: 10_000})
	if err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		acc.Add(&calls[i%len(calls)])
		i++
	}
}
