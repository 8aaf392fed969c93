package sim

import (
	"testing"

	"perflab/internal/stat"
)

// TestFindsWhatIsPublished: through publishing, eviction and growth a block is found
// under the hash of its content exactly as long as it holds that. The hashes
// point to few slots, so that they get into each other's way.
func TestFindsWhatIsPublished(t *testing.T) {
	p := newBlockPool(600)
	r := stat.Stream(1, "index")
	want, content := map[uint64]int32{}, map[int32]uint64{}
	var held []int32
	for step := range 20_000 {
		if p.free == 0 || len(held) > 0 && r.IntN(5) < 2 {
			i := r.IntN(len(held))
			p.release(held[i : i+1])
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
			continue
		}
		id := p.alloc()
		if h, ok := content[id]; ok {
			delete(want, h)
			delete(content, id)
		}
		h := uint64(r.IntN(1<<14))<<40 | uint64(r.IntN(200))<<1 | 1
		if p.publish(id, h); want[h] == 0 {
			want[h], content[id] = id, h
		}
		held = append(held, id)
		if got := p.find(h); got != want[h] {
			t.Fatalf("step %d: block %d is found, want %d", step, got, want[h])
		}
		if step%1000 == 0 {
			for h, id := range want {
				if got := p.find(h); got != id {
					t.Fatalf("step %d: block %d is found, want %d", step, got, id)
				}
			}
			if p.indexed != len(want) || p.find(1<<63|1) != 0 {
				t.Fatalf("step %d: %d blocks in the index, want %d", step, p.indexed, len(want))
			}
		}
	}
	if len(want) < 300 {
		t.Errorf("only %d blocks were findable in the end", len(want))
	}
}
