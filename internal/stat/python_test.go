package stat

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata/python.json holds what CPython 3.11's random.Random and numpy
// 2.4's default_rng draw, the calls of one seed one after the other from one
// generator of each.
func TestPythonAndNumPy(t *testing.T) {
	b, err := os.ReadFile("testdata/python.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Seed     uint64  `json:"seed"`
		Shuffle  []int   `json:"shuffle"`
		Below    []int   `json:"below"`
		At       []int   `json:"shuffled_at"`
		Choice   []int   `json:"choice"`
		Integers [][]int `json:"integers"` // low, high, then the numbers
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) != 6 {
		t.Fatalf("%d seeds, want 6", len(cases))
	}
	for _, c := range cases {
		p := NewPython(c.Seed)
		shuffle := func(n int) []int {
			list := make([]int, n)
			for i := range list {
				list[i] = i
			}
			p.Shuffle(n, func(i, j int) { list[i], list[j] = list[j], list[i] })
			return list
		}
		if d := cmp.Diff(c.Shuffle, shuffle(10)); d != "" {
			t.Errorf("seed %d: shuffle (-want +got):\n%s", c.Seed, d)
		}
		var below []int
		for _, n := range []int{1, 2, 3, 7, 10, 1000, 94145, 1 << 31, 1<<32 - 1} {
			below = append(below, p.Below(n))
		}
		if d := cmp.Diff(c.Below, below); d != "" {
			t.Errorf("seed %d: below (-want +got):\n%s", c.Seed, d)
		}
		big := shuffle(3000)
		if d := cmp.Diff(c.At, []int{big[0], big[1499], big[2999]}); d != "" {
			t.Errorf("seed %d: long shuffle (-want +got):\n%s", c.Seed, d)
		}
		if d := cmp.Diff(c.Choice, []int{p.Below(94145), p.Below(94145), p.Below(94145)}); d != "" {
			t.Errorf("seed %d: choice (-want +got):\n%s", c.Seed, d)
		}
		g := NewNumPy(c.Seed)
		for _, want := range c.Integers {
			if d := cmp.Diff(want[2:], g.Integers(want[0], want[1], len(want)-2)); d != "" {
				t.Errorf("seed %d: integers(%d, %d) (-want +got):\n%s", c.Seed, want[0], want[1], d)
			}
		}
	}
}

// The wanted numbers are those of numpy.random.default_rng(seed).permutation(n), of NumPy 2.4.
func TestNumPyPermutation(t *testing.T) {
	for _, tt := range []struct {
		seed        uint64
		n           int
		first, last []int
	}{
		{0, 10, []int{4, 6, 2, 7, 3, 5, 9, 0}, []int{0, 8, 1}},
		{3, 10, []int{9, 6, 0, 2, 1, 4, 7, 5}, []int{5, 3, 8}},
		{42, 1500, []int{790, 858, 309, 705, 138, 469, 1422, 474}, []int{141, 706, 973}},
		{7, 1, []int{0}, []int{0}},
		{7, 0, nil, nil},
	} {
		got := NewNumPy(tt.seed).Permutation(tt.n)
		if len(got) != tt.n || !slices.Equal(got[:len(tt.first)], tt.first) || !slices.Equal(got[tt.n-len(tt.last):], tt.last) {
			t.Errorf("seed %d, %d numbers: %v", tt.seed, tt.n, got[:min(tt.n, 10)])
		}
	}
}
