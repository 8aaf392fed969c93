package ship

import (
	"context"
	"path/filepath"
	"testing"

	"perflab/internal/stat"

	"perflab/internal/result"
)

// usual are calls of about 200 chunks each.
func usual(n int) []result.Call {
	r := stat.Stream(31, "calls")
	calls := make([]result.Call, n)
	for i := range calls {
		calls[i] = stream(r, i, 150+r.IntN(100))
		calls[i].Text = ""
	}
	return calls
}

// nowhere is a Link to nobody who counts.
type nowhere struct{ bytes int }

func (n *nowhere) Send(_ context.Context, _ uint64, batch []byte) error {
	n.bytes += len(batch)
	return nil
}

// BenchmarkAdd is what a call costs the goroutine that collects calls, while batches are made,
// written and sent beside it.
func BenchmarkAdd(b *testing.B) {
	calls := usual(1000)
	s, err := New(new(nowhere), Options{Dir: filepath.Join(b.TempDir(), "spool"), MostMemory: 8 << 30})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.Add(&calls[i%len(calls)])
		if i++; i%2048 == 0 { // at the pace at which batches are made
			b.StopTimer()
			for s.Sent().Waiting > 1024 {
				tell(s.filled)
			}
			b.StartTimer()
		}
	}
	b.StopTimer()
	if sent, err := s.Close(b.Context()); err != nil || sent.Calls != i {
		b.Fatal(sent, err)
	}
}

// BenchmarkShip is all that a call costs the machine that sends: lines, compression, spool.
func BenchmarkShip(b *testing.B) {
	calls := usual(1000)
	b.ReportAllocs()
	var sent Sent
	n := 0
	for b.Loop() {
		s, err := New(new(nowhere), Options{Dir: filepath.Join(b.TempDir(), "spool")})
		if err != nil {
			b.Fatal(err)
		}
		for i := range calls {
			s.Add(&calls[i])
		}
		if sent, err = s.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		n += int(sent.Batches)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(calls)), "us/call")
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "batches/s")
	b.ReportMetric(float64(sent.Bytes)/float64(len(calls)), "B/call")
	b.ReportMetric(float64(len(lines(calls)))/float64(sent.Bytes), "ratio")
}

// BenchmarkPack is one batch of 1 MiB of lines.
func BenchmarkPack(b *testing.B) {
	calls := usual(400)
	p := newPacker()
	defer p.close()
	b.ReportAllocs()
	size := 0
	for b.Loop() {
		for i := range calls {
			p.add(&calls[i])
		}
		_, batch := p.pack(1)
		size = len(batch)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(calls)), "us/call")
	b.ReportMetric(float64(size)/float64(len(calls)), "B/call")
}

// BenchmarkTake is what a call costs the leader until it is one again.
func BenchmarkTake(b *testing.B) {
	calls := usual(400)
	batch := batches(calls, 400)[0]
	rec := NewReceiver()
	b.ReportAllocs()
	for b.Loop() {
		rec.next = 1
		if got, err := rec.Take(1, batch); err != nil || len(got) != len(calls) {
			b.Fatal(len(got), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(calls)), "us/call")
}
