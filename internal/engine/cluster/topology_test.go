package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func topology(t *testing.T, name string) Topology {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "topology", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := ParseTopology(string(b))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return top
}

func TestParseTopology(t *testing.T) {
	for _, c := range []struct {
		name string
		gpus int
		row0 string
		numa string
	}{
		{"h100-nvswitch", 8, "[X NV18 NV18 NV18 NV18 NV18 NV18 NV18]", "[0 0 0 0 1 1 1 1]"},
		{"pcie-pairs", 8, "[X PHB NODE NODE SYS SYS SYS SYS]", "[0 0 0 0 1 1 1 1]"},
		{"nv-bridges", 4, "[X SYS SYS NV4]", "[0 1 1 0]"},
		{"sys-only", 8, "[X SYS SYS SYS SYS SYS SYS SYS]", "[0 1 0 1 0 1 0 1]"},
		{"pasted-old", 4, "[X NV2 SYS SYS]", "[-1 -1 -1 -1]"},
	} {
		top := topology(t, c.name)
		if top.GPUs != c.gpus || fmt.Sprint(top.Links[0]) != c.row0 || fmt.Sprint(top.NUMA) != c.numa {
			t.Errorf("%s: %d GPUs, %v, %v", c.name, top.GPUs, top.Links[0], top.NUMA)
		}
	}
	one := "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-19\tN/A\t\tN/A\n"
	if top, err := ParseTopology(one); err != nil || top.GPUs != 1 || top.NUMA[0] != -1 {
		t.Errorf("one GPU: %+v %v", top, err)
	}
	for _, text := range []string{
		"", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
		"\tGPU0\tGPU1\nGPU0\t X \tSYS\n", "\tGPU0\tGPU1\nGPU0\t X \nGPU1\tSYS\t X \n", "\tGPU0\tGPU1\nGPU1\tSYS\t X \n", "\tGPU0\nGPU7\t X \n",
	} {
		if top, err := ParseTopology(text); err == nil {
			t.Errorf("%q is read as %+v", text, top)
		}
	}
}

func FuzzTopology(f *testing.F) {
	for _, name := range []string{"h100-nvswitch", "pasted-old"} {
		b, err := os.ReadFile(filepath.Join("testdata", "topology", name+".txt"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Fuzz(func(t *testing.T, text string) {
		top, err := ParseTopology(text)
		if err != nil || top.GPUs > 64 {
			return
		}
		devices := make([]int, top.GPUs)
		for i := range devices {
			devices[i] = i
		}
		replicas, left := Deal(top, 2, devices)
		if 2*len(replicas)+len(left) != len(devices) {
			t.Errorf("%d devices are dealt as %v and %v", len(devices), replicas, left)
		}
	})
}

func TestDeal(t *testing.T) {
	eight := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, c := range []struct {
		name     string
		per      int
		devices  []int
		replicas string
		left     string
	}{
		{"h100-nvswitch", 4, eight, "[[0 1 2 3] [4 5 6 7]]", "[]"},
		{"h100-nvswitch", 3, eight, "[[0 1 2] [3 4 5]]", "[6 7]"},
		{"h100-nvswitch", 16, eight, "[]", "[0 1 2 3 4 5 6 7]"},
		{"pcie-pairs", 2, eight, "[[0 1] [2 3] [4 5] [6 7]]", "[]"},
		{"pcie-pairs", 2, []int{1, 2, 3, 4, 5, 6}, "[[1 6] [2 3] [4 5]]", "[]"}, // whole pairs first
		{"pcie-pairs", 4, []int{2, 3, 4, 5, 6, 7}, "[[4 5 6 7]]", "[2 3]"},
		{"pcie-pairs", 3, eight, "[[0 1 2] [4 5 6]]", "[3 7]"}, // on one socket each
		{"nv-bridges", 2, []int{0, 1, 2, 3}, "[[0 3] [1 2]]", "[]"},
		{"nv-bridges", 1, []int{0, 1, 2, 3}, "[[0] [1] [2] [3]]", "[]"},
		{"nv-bridges", 4, []int{0, 1, 2, 3}, "[[0 1 2 3]]", "[]"},
		{"sys-only", 4, eight, "[[0 2 4 6] [1 3 5 7]]", "[]"},
		{"pasted-old", 2, []int{0, 1, 2, 3}, "[[0 1] [2 3]]", "[]"},
		{"", 2, []int{0, 1, 2, 5, 7}, "[[0 1] [2 5]]", "[7]"}, // nothing is known
		{"", 0, []int{0}, "[]", "[0]"},
	} {
		var top Topology
		if c.name != "" {
			top = topology(t, c.name)
		}
		given := slices.Clone(c.devices)
		replicas, left := Deal(top, c.per, c.devices)
		if fmt.Sprint(replicas) != c.replicas || fmt.Sprint(left) != c.left {
			t.Errorf("%q by %d of %v: %v, %v left, want %s, %s left", c.name, c.per, c.devices, replicas, left, c.replicas, c.left)
		}
		if !slices.Equal(given, c.devices) {
			t.Errorf("%q by %d: the caller's list is changed", c.name, c.per)
		}
	}
}

func TestPlace(t *testing.T) {
	pairs := map[string]Topology{"a": topology(t, "nv-bridges")}
	for _, c := range []struct {
		nodes        []Node
		world        int
		places, left string
	}{
		{nodesOf(2, 4), 2, "a[0 3] a[1 2] b[0 1] b[2 3]", ""},
		{nodesOf(1, 4), 3, "a[0 1 3]", "a[2]"},
		{nodesOf(4, 8), 16, "a[0 1 2 3 4 5 6 7]+b[0 1 2 3 4 5 6 7] c[0 1 2 3 4 5 6 7]+d[0 1 2 3 4 5 6 7]", ""},
		{nodesOf(3, 1), 2, "a[0]+b[0]", "c[0]"},
		{nodesOf(2, 8), 12, "", "a[0 1 2 3 4 5 6 7] b[0 1 2 3 4 5 6 7]"},
		{nodesOf(2, 0), 1, "", "a[] b[]"},
	} {
		places, left := Place(c.nodes, c.world, pairs)
		if got := placed(places...); got != c.places {
			t.Errorf("%d of %d nodes: %s, want %s", c.world, len(c.nodes), got, c.places)
		}
		rest := ""
		for _, n := range left {
			rest += " " + placed([]Node{n})
		}
		if rest != "" {
			rest = rest[1:]
		}
		if rest != c.left {
			t.Errorf("%d of %d nodes leaves %q, want %q", c.world, len(c.nodes), rest, c.left)
		}
	}
}

func placed(places ...[]Node) string {
	var out strings.Builder
	for i, place := range places {
		for j, n := range place {
			switch {
			case j > 0:
				out.WriteString("+")
			case i > 0:
				out.WriteString(" ")
			}
			out.WriteString(n.Name + fmt.Sprint(n.Devices))
		}
	}
	return out.String()
}
