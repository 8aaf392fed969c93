package tokenizer

// trie finds the keys a text begins with. Its edges lie in one hash table, by
// node and byte, which is quick to fill and to walk.
type trie struct {
	keys  []uint64 // node<<8 | byte, plus one
	nodes []int32  // where the edge leads
	used  int
	value []int32 // by node; -1: no key ends here
	roots [256]int32
}

func newTrie(edges int) *trie {
	size := 64
	for size < 2*edges {
		size *= 2
	}
	return &trie{keys: make([]uint64, size), nodes: make([]int32, size), value: []int32{-1}}
}

// slot returns where an edge is, or would be.
func (t *trie) slot(key uint64) int {
	mask := uint64(len(t.keys) - 1)
	for i := key * 0x9E3779B97F4A7C15 >> 20 & mask; ; i = (i + 1) & mask {
		if k := t.keys[i]; k == key || k == 0 {
			return int(i)
		}
	}
}

// step returns the node behind an edge, 0 when there is none.
func (t *trie) step(node int32, b byte) int32 {
	if node == 0 {
		return t.roots[b]
	}
	return t.nodes[t.slot(uint64(node)<<8|uint64(b)+1)]
}

func (t *trie) insert(key string, value int32) {
	node := int32(0)
	for i := range len(key) {
		next := t.step(node, key[i])
		if next == 0 {
			next = int32(len(t.value))
			t.value = append(t.value, -1)
			t.link(node, key[i], next)
		}
		node = next
	}
	t.value[node] = value
}

func (t *trie) link(node int32, b byte, next int32) {
	if node == 0 {
		t.roots[b] = next
		return
	}
	if 2*t.used >= len(t.keys) {
		t.grow()
	}
	key := uint64(node)<<8 | uint64(b) + 1
	i := t.slot(key)
	t.keys[i], t.nodes[i] = key, next
	t.used++
}

func (t *trie) grow() {
	keys, nodes := t.keys, t.nodes
	t.keys, t.nodes = make([]uint64, 2*len(keys)), make([]int32, 2*len(keys))
	for i, k := range keys {
		if k != 0 {
			j := t.slot(k)
			t.keys[j], t.nodes[j] = k, nodes[i]
		}
	}
}
