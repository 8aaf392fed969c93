package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
)

// TestHistogramBuckets: every value lies in its bucket, and buckets follow one
// another without a gap.
func TestHistogramBuckets(t *testing.T) {
	next := uint64(0)
	for i := range histBuckets {
		from, width := histRange(i)
		if from != next || histBucket(from) != i || histBucket(from+width-1) != i {
			t.Fatalf("bucket %d is [%d, +%d): expected it at %d", i, from, width, next)
		}
		next = from + width
	}
	if next != 0 { // 2^64
		t.Errorf("the last bucket ends at %d", next)
	}
}

func TestHistogramQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h Histogram
	b := Buckets{}
	_, median := h.Quantile(0.5)
	if _, ok := b.Quantile(0.5); ok || median {
		t.Error("an empty histogram has a median")
	}
	x := make([]float64, 10_000)
	var wg sync.WaitGroup
	for i := range x {
		x[i] = math.Floor(math.Exp(rng.NormFloat64()*2 + 12))
		b.Add(int64(x[i]))
	}
	for k := range 4 {
		wg.Go(func() {
			for i := k; i < len(x); i += 4 {
				h.Add(int64(x[i]))
			}
		})
	}
	wg.Wait()
	slices.Sort(x)
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
		got, _ := h.Quantile(q)
		want := x[min(int(q*float64(len(x))), len(x)-1)]
		if math.Abs(got-want) > want/60 {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
		if alike, ok := b.Quantile(q); !ok || alike != got {
			t.Errorf("quantile %v is %v by a histogram and %v by its buckets", q, got, alike)
		}
	}
	if n, sum := h.Total(); n != 10_000 || float64(sum) != Sum(x) {
		t.Errorf("%d values with the sum %d", n, sum)
	}
	if n := h.Below(math.MaxInt64); n != 10_000 {
		t.Errorf("%d values below the end", n)
	}
}

func BenchmarkHistogramAdd(b *testing.B) {
	var h Histogram
	i := int64(0)
	for b.Loop() {
		h.Add(i & 0xfffff)
		i += 977
	}
}
