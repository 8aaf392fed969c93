package reuse

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// pieces are those of a prompt in a short form: one letter is a piece of 16 tokens, a digit behind it the tokens.
func pieces(text string) (out []Piece) {
	for i := 0; i < len(text); i++ {
		p := Piece{Name("piece", int64(text[i])), 16}
		if i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9' {
			p.Tokens = int(text[i+1] - '0')
			i++
		}
		out = append(out, p)
	}
	return out
}

// TestTrie: of each prompt an earlier one is named that begins alike for as long as any does.
func TestTrie(t *testing.T) {
	var trie Trie
	for i, x := range []struct {
		prompt, answer string
		like, alike    int
	}{
		{"abc", "", 0, 0}, {"abd", "", 1, 32}, {"abd", "", 2, 48}, {"xbc", "", 0, 0},
		{"abc5", "", 1, 37}, {"y3", "", 0, 0}, {"y", "", 6, 3}, {"y9", "", 7, 9}, {"ya", "", 7, 16},
		{"abce", "z", 1, 48}, {"abcez", "", 10, 80}, {"abcezq", "", 10, 80},
	} {
		answer := Piece{}
		if x.answer != "" {
			answer = pieces(x.answer)[0]
		}
		if like, alike := trie.Add(pieces(x.prompt), answer); like != x.like || alike != x.alike {
			t.Errorf("line %d, %s: begins like line %d for %d tokens, want line %d for %d", i+1, x.prompt, like, alike, x.like, x.alike)
		}
	}
}

// step is a request for a test: sent at one instant, its answer from the next second on, and ended.
func step(index, target, sent, end, prompt, output int) Request {
	return Request{Index: index, Target: target, Sent: time.Duration(sent) * time.Second, First: time.Duration(sent+1) * time.Second,
		Last: time.Duration(end) * time.Second, Prompt: prompt, Output: output}
}

func TestMeasure(t *testing.T) {
	grows := []Prompt{{Index: 0, Tokens: 64}, {Index: 1, Tokens: 96, Like: 1, Alike: 64}, {Index: 2, Tokens: 160}, {Index: 3, Tokens: 128, Like: 2, Alike: 96}}
	turns := []Request{step(0, 0, 0, 2, 64, 1), step(1, 0, 3, 5, 96, 1), step(2, 0, 6, 8, 160, 1), step(3, 0, 9, 11, 128, 1)}
	apart := slices.Clone(turns)
	apart[1].Target = 1
	for _, x := range []struct {
		name     string
		prompts  []Prompt
		requests []Request
		rooms    []Room
		want     Hits
	}{
		{"room for all", grows, turns, []Room{{1000, 16}}, Hits{448, 160, 160, 160, true, false}},
		// The one in between takes ten of twelve blocks: of the six that were free until then the end goes first.
		{"room for some", grows, turns, []Room{{208, 16}}, Hits{448, 160, 160, 64 + 32, true, false}},
		{"room for one", grows, turns, []Room{{176, 16}}, Hits{448, 160, 160, 64, true, false}},
		{"large blocks", grows, turns, []Room{{1088, 64}}, Hits{448, 128, 128, 128, true, false}},
		{"two replicas", grows, apart, []Room{{1000, 16}, {1000, 16}}, Hits{448, 160, 64, 64, true, true}},
		{"a room that is not known", grows, apart, []Room{{1000, 16}}, Hits{448, 160, 64, 0, false, true}},
		{"no room that is known", grows, turns, nil, Hits{448, 160, 160, 0, false, false}},
		// A block that is there whole is computed again where it has the last token.
		{"the same again", []Prompt{{Index: 0, Tokens: 64}, {Index: 1, Tokens: 64, Like: 1, Alike: 64}}, []Request{step(0, 0, 0, 2, 64, 1), step(1, 0, 3, 5, 64, 1)},
			[]Room{{1000, 16}}, Hits{128, 48, 48, 48, true, false}},
		{"at the same time", []Prompt{{Index: 0, Tokens: 65}, {Index: 1, Tokens: 65, Like: 1, Alike: 65}}, []Request{step(0, 0, 0, 9, 65, 1), step(1, 0, 0, 9, 65, 1)},
			[]Room{{176, 16}}, Hits{130, 64, 64, 64, true, false}},
		{"an answer", []Prompt{{Index: 0, Tokens: 40}, {Index: 1, Tokens: 100, Like: 1, Alike: 70}}, []Request{step(0, 0, 0, 9, 40, 30), step(1, 0, 10, 12, 100, 1)},
			[]Room{{1000, 16}}, Hits{140, 64, 64, 64, true, false}},
		// The last token of the answer was never computed.
		{"an answer's last token", []Prompt{{Index: 0, Tokens: 40}, {Index: 1, Tokens: 100, Like: 1, Alike: 64}}, []Request{step(0, 0, 0, 9, 40, 24), step(1, 0, 10, 12, 100, 1)},
			[]Room{{1000, 16}}, Hits{140, 48, 48, 48, true, false}},
		{"a template of 8 tokens", []Prompt{{Index: 0, Tokens: 40}, {Index: 1, Tokens: 80, Like: 1, Alike: 40}}, []Request{step(0, 0, 0, 2, 48, 1), step(1, 0, 3, 5, 88, 1)},
			[]Room{{1000, 16}}, Hits{136, 48, 48, 48, true, false}},
		{"a template and nothing else", []Prompt{{Index: 0, Tokens: 40}, {Index: 1, Tokens: 80}}, []Request{step(0, 0, 0, 2, 72, 1), step(1, 0, 3, 5, 112, 1)},
			[]Room{{1000, 16}}, Hits{184, 32, 32, 32, true, false}},
		{"words of two tokens", []Prompt{{Index: 0, Tokens: 40}, {Index: 1, Tokens: 80, Like: 1, Alike: 20}}, []Request{step(0, 0, 0, 2, 80, 1), step(1, 0, 3, 5, 160, 1)},
			[]Room{{1000, 16}}, Hits{240, 32, 32, 32, true, false}}, // 40 of the other's 80
		{"filled before", []Prompt{{Fill: true, Tokens: 64}, {Index: 0, Tokens: 80, Like: 1, Alike: 64}}, []Request{step(0, 0, 0, 2, 80, 1)},
			[]Room{{1000, 16}}, Hits{80, 64, 64, 64, true, false}},
		{"filled elsewhere", []Prompt{{Fill: true, Target: 1, Tokens: 64}, {Index: 0, Tokens: 80, Like: 1, Alike: 64}, {Index: 1, Tokens: 10}},
			[]Request{step(0, 0, 0, 2, 80, 1), step(1, 1, 0, 2, 10, 1)}, []Room{{1000, 16}, {1000, 16}}, Hits{90, 64, 0, 0, true, true}},
		// The second waits for the end of the first, and then finds nothing that is its own.
		{"no room at a time", []Prompt{{Index: 0, Tokens: 160}, {Index: 1, Tokens: 160}, {Index: 2, Tokens: 160, Like: 1, Alike: 160}},
			[]Request{step(0, 0, 0, 9, 160, 1), step(1, 0, 1, 20, 160, 1), step(2, 0, 21, 25, 160, 1)}, []Room{{176, 16}}, Hits{480, 144, 144, 0, true, false}},
		{"no prompt that is known", []Prompt{{Index: 7, Tokens: 5}}, turns, nil, Hits{}},
		{"nothing", nil, nil, nil, Hits{}},
	} {
		if got := Measure(x.prompts, x.requests, x.rooms); got != x.want {
			t.Errorf("%s: %+v, want %+v", x.name, got, x.want)
		}
	}
}

// drawn are sessions of random prompts that grow, part and come together again, one request after the other.
func drawn(rng *rand.Rand, n int) (prompts []Prompt, requests []Request, blocks [][]int64) {
	var trie Trie
	name := Names("block")
	for i := range n {
		var ids []int64
		if i > 0 && rng.IntN(4) > 0 {
			ids = blocks[max(0, i-1-rng.IntN(6))]
			ids = slices.Clone(ids[:rng.IntN(len(ids)+1)])
		}
		for range 1 + rng.IntN(5) {
			ids = append(ids, int64(rng.IntN(1000)))
		}
		blocks = append(blocks, ids)
		var p []Piece
		for _, id := range ids {
			p = append(p, Piece{name(id), 16})
		}
		line := Prompt{Index: i, Tokens: 16 * len(ids)}
		line.Like, line.Alike = trie.Add(p, Piece{})
		prompts = append(prompts, line)
		requests = append(requests, step(i, 0, 10*i, 10*i+5, line.Tokens, 1))
	}
	return prompts, requests, blocks
}

// TestAgainstList: with requests one after the other the cache is a list of blocks, each found by all that is before
// it, of which the one that was given back longest ago goes.
func TestAgainstList(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		prompts, requests, blocks := drawn(rng, 200)
		for _, room := range []int{40, 60, 100, 4000} {
			var list []string // of blocks by all up to their end, the next to go first
			hits := 0
			for _, ids := range blocks {
				key, chain := "", []string{}
				for _, id := range ids {
					key += fmt.Sprint(id, " ")
					chain = append(chain, key)
				}
				n := 0
				for n < len(chain)-1 && slices.Contains(list, chain[n]) {
					n++
				}
				hits += 16 * n
				list = slices.DeleteFunc(list, func(key string) bool { return slices.Contains(chain[:n], key) })
				for len(list)+len(chain) > room {
					list = list[1:]
				}
				for _, key := range slices.Backward(chain) {
					list = append(list, key)
				}
			}
			if got := Measure(prompts, requests, []Room{{16 * (room + 1), 16}}); got.Fitting != hits {
				t.Errorf("seed %d, room for %d blocks: %d hits, want %d", seed, room, got.Fitting, hits)
			}
		}
	}
}

// TestRooms: however requests overlap, a cache with room for everything has what is possible, no
// cache more, and counts do not depend on the order in which the calls are listed.
func TestRooms(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		prompts, requests, _ := drawn(rng, 200)
		for i := range requests {
			r := &requests[i]
			r.Sent = time.Duration(rng.IntN(1000)) * time.Second
			r.First = r.Sent + time.Duration(rng.IntN(50))*time.Second
			r.Last = r.First + time.Duration(rng.IntN(50))*time.Second
			r.Output, r.Target = 1+rng.IntN(40), rng.IntN(2)
		}
		all := Measure(prompts, requests, []Room{{1 << 20, 16}, {1 << 20, 16}})
		if all.Fitting != all.Routed || all.Routed > all.Any || all.Any >= all.Prompt {
			t.Errorf("seed %d: %+v", seed, all)
		}
		small := Measure(prompts, requests, []Room{{640, 16}, {640, 16}})
		if small.Fitting >= all.Fitting || small.Any != all.Any {
			t.Errorf("seed %d: %+v with little room, %+v with much", seed, small, all)
		}
		rng.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
		if again := Measure(prompts, requests, []Room{{640, 16}, {640, 16}}); again != small {
			t.Errorf("seed %d: %+v in another order, %+v before", seed, again, small)
		}
	}
}

// recorded is a run on a real vLLM: what was sent, and what its counters said.
type recorded struct {
	Engine   string
	Room     Room
	Prompts  []Prompt
	Requests [][7]int // index, sent, first token and last in us, prompt, output, target
	Queries  int
	Hits     int
}

// TestAgainstVLLM: the hits of a cache with the room of a real vLLM are those that it counted.
func TestAgainstVLLM(t *testing.T) {
	files, err := filepath.Glob("testdata/vllm-*.json")
	if err != nil || len(files) < 2 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		var requests []Request
		for _, x := range r.Requests {
			at := func(us int) time.Duration { return time.Duration(us) * time.Microsecond }
			requests = append(requests, Request{Index: x[0], Sent: at(x[1]), First: at(x[2]), Last: at(x[3]), Prompt: x[4], Output: x[5], Target: x[6]})
		}
		h := Measure(r.Prompts, requests, []Room{r.Room})
		off := float64(h.Fitting)/float64(r.Hits) - 1
		t.Logf("%s: %s counted %d hits of %d tokens, possible with its room %d (%+.2f %%), with any %d", filepath.Base(file), r.Engine, r.Hits, r.Queries, h.Fitting, 100*off, h.Any)
		limit := 0.01
		if h.Fitting < h.Any {
			limit = 0.03
		}
		if h.Prompt != r.Queries || math.Abs(off) > limit {
			t.Errorf("%s: off by %.2f %% of its hits, of %d and %d tokens", file, 100*off, r.Queries, h.Prompt)
		}
	}
}

func BenchmarkMeasure(b *testing.B) {
	prompts, requests, _ := drawn(rand.New(rand.NewPCG(1, 1)), 20_000)
	for b.Loop() {
		Measure(prompts, requests, []Room{{16 << 12, 16}})
	}
}
