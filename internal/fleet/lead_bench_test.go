package fleet

import (
	"context"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"perflab/internal/bench"
	"perflab/internal/fleet/bus"
	"perflab/internal/fleet/order"
	"perflab/internal/fleet/ship"
	"perflab/internal/generator"
	"perflab/internal/load"
	"perflab/internal/result"
)

// kept is a link that keeps what is sent over it.
type kept struct{ batches [][]byte }

func (k *kept) Send(_ context.Context, seq uint64, batch []byte) error {
	k.batches = append(k.batches, order.Batch(seq, batch))
	return nil
}

// BenchmarkLeader is what a leader does with the calls of 100 agents, of 200 tokens each, without the network: decode
// batches, and take calls into the figures.
func BenchmarkLeader(b *testing.B) {
	const agents, calls = 100, 2048
	k := &kept{}
	s, err := ship.New(k, ship.Options{Dir: filepath.Join(b.TempDir(), "calls")})
	if err != nil {
		b.Fatal(err)
	}
	for i := range calls {
		s.Add(made(i))
	}
	if _, err := s.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f := &result.Fleet{}
		for range agents {
			f.Agents = append(f.Agents, generator.Agent{})
		}
		acc, err := result.NewAccumulator(result.Header{Fleet: f}, result.Options{})
		if err != nil {
			b.Fatal(err)
		}
		x := &run{l: &Leader{base: time.Now()}, job: bench.CrewJob{Progress: new(load.Progress)}, woken: make(chan struct{}, 1), emit: func(c result.Call) { acc.Add(&c) }}
		var wait sync.WaitGroup
		for i := range agents {
			w := newMember(x, i, agents, Agent{})
			wait.Go(func() {
				for _, batch := range k.batches {
					w.onCalls(bus.Message{Data: batch})
				}
			})
		}
		wait.Wait()
		if acc.Total != agents*calls {
			b.Fatalf("%d calls of %d came out", acc.Total, agents*calls)
		}
		if b.N == 1 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.HeapInuse>>20), "MB")
		}
	}
	b.ReportMetric(float64(b.N*agents*calls)/b.Elapsed().Seconds(), "calls/s")
}

// made is a call of 200 tokens.
func made(i int) *result.Call {
	at := time.Duration(i) * time.Millisecond
	c := &result.Call{Index: i, Due: at, Ready: at, Sent: at, Want: 200}
	for k := range 200 {
		c.Chunks = append(c.Chunks, result.Chunk{At: at + 50*time.Millisecond + time.Duration(k)*20*time.Millisecond + time.Duration(i*k%977)*time.Microsecond, Tokens: 1, Read: int32(k)})
	}
	c.End = c.Chunks[199].At
	return c
}
