package sim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// prefixed is the reuse of prefixes of equal size, each in front of less than a block of a request's own, one request at a time.
type prefixed struct {
	refs   []int // which prefix each request has
	blocks int   // of a prefix
}

// cached replays the references on a cache of so many blocks, and returns the blocks that each request found.
func (p prefixed) cached(t *testing.T, size int) []int {
	t.Helper()
	cfg := testConfig()
	cfg.Block = 16
	jobs := func(yield func(Job) bool) {
		for i, k := range p.refs {
			pieces := []Piece{{uint64(k) + 1, 16 * p.blocks}, {uint64(i) + 1<<32, 8}}
			if !yield(Job{Index: i, Pieces: pieces, PromptLen: 16*p.blocks + 8, Output: 1}) {
				return
			}
		}
	}
	out, err := Replay(cfg, 1, jobs, ReplayOptions{MaxConcurrency: 1, KVTokens: 16 * size})
	if err != nil {
		t.Fatal(err)
	}
	found := make([]int, len(p.refs))
	for o := range out {
		if o.Err != "" {
			t.Fatal(o.Err)
		}
		found[o.Index] = o.Cached / 16
	}
	return found
}

// zipf draws references to n prefixes whose popularities p fall as a power of their rank.
func zipf(n, requests int, exponent float64) (refs []int, p []float64) {
	sum := 0.0
	for i := range n {
		p = append(p, math.Pow(float64(i+1), -exponent))
		sum += p[i]
	}
	upTo := make([]float64, n)
	acc := 0.0
	for i := range p {
		p[i] /= sum
		acc += p[i]
		upTo[i] = acc
	}
	r := rand.New(rand.NewPCG(7, 11))
	for range requests {
		k, _ := slices.BinarySearch(upTo, r.Float64()*acc)
		refs = append(refs, k)
	}
	return refs, p
}

// TestHitRatioOfTheory: under independent references the share of prompts found in the cache is that of Che's
// approximation for an LRU cache (Che, Tung and Wang, Hierarchical Web Caching Systems, IEEE Journal on Selected Areas in
// Communications 20, 2002): what is asked for p times a request is there if it was asked for within the last T requests,
// with probability 1 - exp(-p T), where T is so long that what was used in it fills the cache. Each request fills a
// block of its own besides, which nobody asks for again.
func TestHitRatioOfTheory(t *testing.T) {
	const prefixes, blocks, settle = 150, 6, 3000
	for _, exponent := range []float64{0, 0.9} {
		refs, p := zipf(prefixes, 20_000, exponent)
		for _, size := range []int{200, 450} {
			used := func(T float64) (n float64) {
				for _, p := range p {
					n += blocks * (1 - math.Exp(-p*T))
				}
				return n + T
			}
			low, high := 0.0, float64(size)
			for range 60 {
				if mid := (low + high) / 2; used(mid) < float64(size) {
					low = mid
				} else {
					high = mid
				}
			}
			want := 0.0
			for _, p := range p {
				want += p * (1 - math.Exp(-p*low))
			}
			n := 0
			for _, found := range (prefixed{refs, blocks}).cached(t, size)[settle:] {
				n += found
			}
			got := float64(n) / float64(blocks*(len(refs)-settle))
			t.Logf("exponent %g, %d blocks: %.4f of the blocks are found, %.4f by Che's approximation", exponent, size, got, want)
			if math.Abs(got-want) > 0.012 {
				t.Errorf("exponent %g, %d blocks: %.4f of the blocks are found, %.4f by Che's approximation", exponent, size, got, want)
			}
		}
	}
}

// TestStackDistances: a block is found exactly where fewer others were used since it was used last than the cache has
// (Mattson, Gecsei, Slutz and Traiger, Evaluation Techniques for Storage Hierarchies, IBM Systems Journal 9, 1970).
func TestStackDistances(t *testing.T) {
	const blocks = 5
	refs, _ := zipf(12, 300, 0.7)
	type block struct{ prefix, k int }
	for _, size := range []int{9, 17, 30, 41, 66, 200} {
		var stack []block // the last used first
		var want []int
		for i, ref := range refs {
			found := 0
			for found < blocks {
				at := slices.Index(stack, block{ref, found})
				if at < 0 || at >= size {
					break
				}
				found++
			}
			want = append(want, found)
			used := []block{}
			for k := range blocks {
				used = append(used, block{ref, k})
			}
			stack = slices.DeleteFunc(stack, func(b block) bool { return b.prefix == ref })
			stack = append(append(used, block{-1 - i, 0}), stack...) // the end of a prompt is given up first
		}
		if got := (prefixed{refs, blocks}).cached(t, size); !slices.Equal(got, want) {
			t.Errorf("%d blocks: found %v, want %v", size, got, want)
		}
	}
}
