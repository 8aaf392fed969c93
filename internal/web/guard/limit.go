package guard

import (
	"math"
	"sync"
	"time"
)

// buckets are token buckets, one a client.
type buckets struct {
	rate, size float64 // per second, and at once

	mu    sync.Mutex
	of    map[string]*bucket
	swept time.Time
}

type bucket struct {
	left float64
	at   time.Time
}

// mostBuckets is how many clients are told apart. Those beyond share one bucket, so that many
// addresses cost no memory.
const mostBuckets = 1 << 14

func newBuckets(rate, size float64) *buckets {
	return &buckets{rate: rate, size: size, of: map[string]*bucket{}}
}

// take takes one of a client's bucket; else it says how long until there is one.
func (b *buckets) take(client string) (ok bool, wait time.Duration) {
	return b.draw(client, 1)
}

// has says whether take would take, and takes nothing.
func (b *buckets) has(client string) (ok bool, wait time.Duration) {
	return b.draw(client, 0)
}

func (b *buckets) draw(client string, n float64) (bool, time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	k := b.find(client, now)
	k.left = min(b.size, k.left+b.rate*now.Sub(k.at).Seconds())
	k.at = now
	if k.left < 1 {
		return false, time.Duration(math.Ceil((1 - k.left) / b.rate * float64(time.Second)))
	}
	k.left -= n
	return true, 0
}

// find is the bucket of a client.
func (b *buckets) find(client string, now time.Time) *bucket {
	if k := b.of[client]; k != nil {
		return k
	}
	if len(b.of) >= mostBuckets {
		b.sweep(now)
	}
	if len(b.of) >= mostBuckets {
		client = ""
		if k := b.of[client]; k != nil {
			return k
		}
	}
	k := &bucket{b.size, now}
	b.of[client] = k
	return k
}

// sweep forgets the buckets that are full again, as if they had never been, at most once a second.
func (b *buckets) sweep(now time.Time) {
	if now.Sub(b.swept) < time.Second {
		return
	}
	b.swept = now
	for client, k := range b.of {
		if k.left+b.rate*now.Sub(k.at).Seconds() >= b.size {
			delete(b.of, client)
		}
	}
}

// streams counts event streams that are open.
type streams struct {
	each, all int

	mu    sync.Mutex
	open  map[string]int
	count int
}

// enter counts one more of a client, if there may be.
func (s *streams) enter(client string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= s.all || s.open[client] >= s.each {
		return false
	}
	s.count++
	s.open[client]++
	return true
}

func (s *streams) leave(client string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	if s.open[client]--; s.open[client] == 0 {
		delete(s.open, client)
	}
}

func (s *streams) total() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.count)
}
