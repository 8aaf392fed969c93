package tokenizer

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	cacheSlots = 1 << 15
	maxCached  = 64 // bytes of a word; longer ones seldom come back
)

// cache remembers the ids of words. Each word has one slot, which the last
// writer wins: bounded, without locks, and a hit allocates nothing.
type cache struct {
	seed  maphash.Seed
	slots [cacheSlots]atomic.Pointer[cached]
}

type cached struct {
	word string
	ids  []int32
}

func newCache() *cache { return &cache{seed: maphash.MakeSeed()} }

// find returns the word's slot and what is there for this very word.
func (c *cache) find(word []byte) (slot int, hit *cached) {
	slot = int(maphash.Bytes(c.seed, word) & (cacheSlots - 1))
	if k := c.slots[slot].Load(); k != nil && k.word == string(word) {
		return slot, k
	}
	return slot, nil
}

func (c *cache) put(slot int, word []byte, ids []int32) {
	c.slots[slot].Store(&cached{word: string(word), ids: append([]int32(nil), ids...)})
}
