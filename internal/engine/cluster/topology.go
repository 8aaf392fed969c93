package cluster

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/redact"
)

// Topology is how the accelerators of a machine are connected.
type Topology struct {
	GPUs  int
	Links [][]Link // [i][j]; nil where nothing is known
	NUMA  []int    // memory node of each, -1 where unknown; nil where nothing is known

	Indices map[string]int // of devices that are known by another name, a UUID; nil: none is
}

// Link is how close two accelerators are: the number of NVLinks between them over 10,
// else one of the PCIe distances, the larger the closer.
type Link int

// PCIe distances, as nvidia-smi names them.
const (
	LinkUnknown Link = iota
	LinkSYS          // over the interconnect of the sockets
	LinkNODE         // over host bridges of one NUMA node
	LinkPHB          // over one host bridge
	LinkPXB          // over several PCIe bridges
	LinkPIX          // over one PCIe bridge
	linkSelf         // itself

	linkNV Link = 10 // and the number of NVLinks
)

var linkNames = map[string]Link{"SYS": LinkSYS, "NODE": LinkNODE, "PHB": LinkPHB, "PXB": LinkPXB, "PIX": LinkPIX, "X": linkSelf, "SOC": LinkSYS}

func (l Link) String() string {
	if l > linkNV {
		return fmt.Sprintf("NV%d", l-linkNV)
	}
	for name, link := range linkNames {
		if link == l && name != "SOC" { // as old drivers call SYS
			return name
		}
	}
	return "unknown"
}

var (
	topoGPU = regexp.MustCompile(`^GPU(\d{1,3})$`)
	topoNV  = regexp.MustCompile(`^NV(\d{1,3})$`)
	blanks  = regexp.MustCompile(` {2,}`)
)

// ParseTopology reads what nvidia-smi topo -m prints. Rows and columns of network
// adapters, and the legend, are passed over; links that it does not know are unknown.
func ParseTopology(text string) (Topology, error) {
	var t Topology
	var columns []int // of the header: GPU index, -1 for another adapter
	numaAt := -1
	for line := range strings.Lines(text) {
		line = strings.TrimRight(redact.Plain(line), " \r\n")
		cells := topoCells(line)
		switch {
		case len(cells) == 0:
		case columns == nil:
			if topoGPU.MatchString(cells[0]) {
				columns, numaAt = topoHeader(cells)
				t.GPUs = 1 + slices.Max(columns)
			}
		case topoGPU.MatchString(cells[0]):
			if err := t.row(cells, columns, numaAt); err != nil {
				return Topology{}, err
			}
		}
	}
	if columns == nil {
		return Topology{}, fmt.Errorf("no table of GPUs is in the text: give what nvidia-smi topo -m prints")
	}
	for i, row := range t.Links {
		if row == nil {
			return Topology{}, fmt.Errorf("the row of GPU%d is missing in the table of nvidia-smi topo -m", i)
		}
	}
	if len(t.Links) < t.GPUs {
		return Topology{}, fmt.Errorf("the table of nvidia-smi topo -m has %d columns of GPUs and %d rows", t.GPUs, len(t.Links))
	}
	return t, nil
}

// topoCells splits a line at tabs, or where a table was copied with blanks, at those.
// Titles of two words (CPU Affinity) are one cell.
func topoCells(line string) []string {
	if !strings.Contains(line, "\t") {
		line = blanks.ReplaceAllString(line, "\t")
	}
	var cells []string
	for cell := range strings.SplitSeq(line, "\t") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	return cells
}

// topoHeader is the GPU of each link column, and the place of the NUMA node among the
// cells of a row, counted from the last link; -1 where it has none.
func topoHeader(cells []string) (columns []int, numaAt int) {
	numaAt = -1
	after := 0
	for _, cell := range cells {
		m := topoGPU.FindStringSubmatch(cell)
		switch {
		case m != nil:
			n, _ := strconv.Atoi(m[1])
			columns = append(columns, n)
		case strings.HasPrefix(cell, "CPU Affinity"):
			after++
		case cell == "NUMA Affinity":
			numaAt = after
			after++
		case after == 0:
			columns = append(columns, -1)
		default:
			after++
		}
	}
	return columns, numaAt
}

func (t *Topology) row(cells []string, columns []int, numaAt int) error {
	i, _ := strconv.Atoi(topoGPU.FindStringSubmatch(cells[0])[1])
	cells = cells[1:]
	if i >= t.GPUs || len(cells) < len(columns) {
		return fmt.Errorf("the row of GPU%d does not fit the header of the table of nvidia-smi topo -m", i)
	}
	row := make([]Link, t.GPUs)
	for j, gpu := range columns {
		if gpu < 0 {
			continue
		}
		link := linkNames[cells[j]]
		if m := topoNV.FindStringSubmatch(cells[j]); m != nil {
			n, _ := strconv.Atoi(m[1])
			link = linkNV + Link(n)
		}
		row[gpu] = link
	}
	for len(t.Links) <= i {
		t.Links, t.NUMA = append(t.Links, nil), append(t.NUMA, -1)
	}
	t.Links[i] = row
	if rest := cells[len(columns):]; numaAt >= 0 && numaAt < len(rest) {
		if n, err := strconv.Atoi(rest[numaAt]); err == nil {
			t.NUMA[i] = n
		}
	}
	return nil
}

// link is how close two devices are. Where links are unknown or the same to all, the
// memory node tells.
func (t Topology) link(i, j int) Link {
	if i >= len(t.Links) || j >= len(t.Links) {
		return LinkUnknown
	}
	link := t.Links[i][j]
	if link == LinkSYS && t.NUMA[i] >= 0 && t.NUMA[i] == t.NUMA[j] {
		return LinkNODE // some platforms report SYS for everything
	}
	return link
}

// Deal gives each replica so many of the devices, those that are closest to each
// other: whole NVLink islands before bridges before NUMA nodes. Devices of an unknown
// topology are dealt out in their order. leftover is what no replica uses.
func Deal(t Topology, perReplica int, devices []int) (replicas [][]int, leftover []int) {
	if perReplica < 1 {
		return nil, slices.Clone(devices)
	}
	levels := []Link{LinkUnknown}
	for _, i := range devices {
		for _, j := range devices {
			if l := t.link(i, j); i != j && !slices.Contains(levels, l) {
				levels = append(levels, l)
			}
		}
	}
	slices.Sort(levels)
	replicas, leftover = t.deal(levels, perReplica, devices)
	for _, r := range replicas {
		slices.Sort(r)
	}
	slices.SortFunc(replicas, slices.Compare)
	slices.Sort(leftover)
	return replicas, leftover
}

// deal serves the islands of the next closer level first; what each leaves over is
// dealt out at this one, in order, so that an island's devices stay together.
func (t Topology) deal(levels []Link, n int, devices []int) (replicas [][]int, rest []int) {
	rest = devices
	if len(levels) > 1 {
		rest = nil
		for _, island := range t.islands(devices, levels[1]) {
			more, left := t.deal(levels[1:], n, island)
			replicas, rest = append(replicas, more...), append(rest, left...)
		}
	}
	whole := len(rest) / n * n
	for chunk := range slices.Chunk(rest[:whole], n) {
		replicas = append(replicas, slices.Clone(chunk))
	}
	return replicas, slices.Clone(rest[whole:])
}

// islands are the groups of devices that are connected by links at least so close, in
// the order of their first device.
func (t Topology) islands(devices []int, least Link) [][]int {
	var out [][]int
	seen := map[int]bool{}
	for _, first := range devices {
		if seen[first] {
			continue
		}
		seen[first] = true
		island := []int{first}
		for k := 0; k < len(island); k++ {
			for _, d := range devices {
				if !seen[d] && t.link(island[k], d) >= least {
					seen[d] = true
					island = append(island, d)
				}
			}
		}
		slices.Sort(island)
		out = append(out, island)
	}
	return out
}

// Place deals the nodes' devices out to replicas of so many devices each: within
// nodes where one has enough, else over whole nodes of as many devices, in their
// order. Each place is what Spread takes. leftover has the nodes with the devices that
// no replica uses. Topologies are by node name; a node without one is dealt in order.
func Place(nodes []Node, world int, topologies map[string]Topology) (places [][]Node, leftover []Node) {
	most := 0
	for _, n := range nodes {
		most = max(most, len(n.Devices))
	}
	if most == 0 || world < 1 {
		return nil, nodes
	}
	var group []Node
	had := 0
	for _, n := range nodes {
		if world <= most {
			dealt, left := dealNamed(topologies[n.Name], world, n.Devices)
			for _, devices := range dealt {
				places = append(places, []Node{n.with(devices)})
			}
			if len(left) > 0 {
				leftover = append(leftover, n.with(left))
			}
			continue
		}
		if len(n.Devices) != most || world%most != 0 { // a replica takes as many of each node
			leftover = append(leftover, n)
			continue
		}
		group, had = append(group, n), had+most
		if had == world {
			places, group, had = append(places, group), nil, 0
		}
	}
	return places, append(leftover, group...)
}

// dealNamed is Deal of devices by their names: by the topology where it knows all of them,
// else in their order.
func dealNamed(t Topology, perReplica int, names []string) (replicas [][]string, leftover []string) {
	numbers, ok := t.indices(names)
	if !ok {
		t = Topology{}
		for i := range numbers {
			numbers[i] = i
		}
	}
	of := make(map[int]string, len(names))
	for i, n := range numbers {
		of[n] = names[i]
	}
	named := func(numbers []int) []string {
		out := make([]string, len(numbers))
		for i, n := range numbers {
			out[i] = of[n]
		}
		return out
	}
	dealt, left := Deal(t, perReplica, numbers)
	for _, devices := range dealt {
		replicas = append(replicas, named(devices))
	}
	return replicas, named(left)
}

// indices are those of devices on the machine, and false where not each has one of its
// own: parts of one device have not.
func (t Topology) indices(names []string) ([]int, bool) {
	out := make([]int, len(names))
	for i, name := range names {
		n, known := t.Indices[name]
		if !known {
			var err error
			if n, err = strconv.Atoi(name); err != nil {
				return out, false
			}
		}
		if slices.Contains(out[:i], n) {
			return out, false
		}
		out[i] = n
	}
	return out, true
}

func (n Node) with(devices []string) Node {
	n.Devices = devices
	return n
}

// Devices are the names of a machine's first n devices: their indices.
func Devices(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}
