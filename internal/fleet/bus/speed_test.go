package bus

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"
)

// pair is an agent and a leader who reach a hub over TLS on loopback, all three in this process.
func pair(b *testing.B) (agent, leader *Conn) {
	b.Helper()
	s := startHub(b, Options{Dir: b.TempDir(), Listen: "127.0.0.1:0"})
	leader = connected(b, must[Identity](b)(LoadLeader(s.o.Dir)), DialOptions{Pending: 1 << 20})
	return connected(b, join(b, s, "a"), DialOptions{}), leader
}

// BenchmarkMessages sends messages of 1 KiB from an agent to a leader, and ends when the leader has all.
func BenchmarkMessages(b *testing.B) {
	a, l := pair(b)
	arrived := make(chan struct{}, 1024) // so many are on their way, as a sender who waits for nobody would have
	must[func()](b)(l.Handle(Up("*", "calls"), func(Message) { <-arrived }))
	data := make([]byte, 1024)
	b.SetBytes(int64(len(data)))
	subject := Up(a.ID(), "calls")
	for b.Loop() {
		arrived <- struct{}{}
		if err := a.Publish(subject, data); err != nil {
			b.Fatal(err)
		}
	}
	for range cap(arrived) { // full again means that all before were taken
		arrived <- struct{}{}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}

// BenchmarkRequest asks and waits, one after the other.
func BenchmarkRequest(b *testing.B) {
	a, l := pair(b)
	must[func()](b)(l.Handle(Up("*", "ask"), func(m Message) {
		if err := m.Reply(m.Data); err != nil {
			b.Error(err)
		}
	}))
	subject, data := Up(a.ID(), "ask"), make([]byte, 64)
	ctx := within(b)
	for b.Loop() {
		if _, err := a.Request(ctx, subject, data); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFile brings 64 MB to the hub and fetches them from there as an agent.
func BenchmarkFile(b *testing.B) {
	const size = 64_000_000
	a, l := pair(b)
	path := filepath.Join(b.TempDir(), "file")
	data := make([]byte, size)
	b.Run("put", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			b.StopTimer()
			_, _ = rand.Read(data[:32]) // another file each time, and other pieces would be no slower
			if err := os.WriteFile(path, data, 0o600); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			must[string](b)(l.PutFile(within(b), path))
		}
	})
	digest := must[string](b)(l.PutFile(within(b), path))
	b.Run("put again", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			must[string](b)(l.PutFile(within(b), path))
		}
	})
	b.Run("get", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			if err := a.GetFile(within(b), digest, path+".got"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
