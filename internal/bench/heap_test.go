package bench

import "testing"

// TestHeapGrowth: the more a run holds, the smaller is the part of the heap that waits to
// be collected; together they stay at the goal as long as what is held is below it.
func TestHeapGrowth(t *testing.T) {
	for held, want := range map[int]int{0: HeapGrowth, 160 << 20: HeapGrowth, 400 << 20: 100, 700 << 20: 25} {
		if got := heapGrowth(held); got != want {
			t.Errorf("of %d MB held the heap may grow by %d %%, want %d", held>>20, got, want)
		}
	}
}
