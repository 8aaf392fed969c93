package candidate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"perflab/internal/engine"
	"perflab/internal/tune"
)

// reuse: prompts begin as earlier ones did, and what was computed for those is gone.
func (m *moves) reuse() {
	if !m.f.o.Shared {
		return
	}
	if !m.p.cfg.Prefix {
		value := "true"
		if m.c[engine.PrefixCaching] == "false" {
			value = ""
		}
		m.try(tune.Config{engine.PrefixCaching: value}, "prompts begin alike, and the prefix cache is off")
		return
	}
	if why := m.lostBlocks(); why != "" {
		m.hostCache(why)
	}
}

// lostBlocks says by a run's own counters that blocks were given up which were asked for
// again, "" where they do not.
func (m *moves) lostBlocks() string {
	if n, ok := m.figure("preemptions"); ok && n >= 1 {
		return fmt.Sprintf("%.0f requests lost their room in the KV cache and were computed again", n)
	}
	found, told := m.figure("prefix_hit_ratio")
	possible, known := m.figure("routed_prefix_hit_ratio") // of the replicas that got the requests
	if !known {
		possible, known = m.figure("possible_prefix_hit_ratio")
	}
	if !told || !known || possible-found < missedHits || m.p.cmd.Engine == "vllm" && len(m.p.cfg.Tiers) > 0 { // whose ratio leaves out what the host had
		return ""
	}
	return fmt.Sprintf("%.0f %% of the prompts' tokens were found in the prefix cache and %.0f %% could have been", 100*found, 100*possible)
}

// hostCache tries one size of the host's memory above what there is: the least with room for
// twice the devices' own KV cache, or what comes nearest to it.
func (m *moves) hostCache(why string) {
	e, err := engine.ByName(m.p.cmd.Engine)
	if err != nil || !settable(e, engine.HostCache) {
		return
	}
	p, _ := e.Param(engine.HostCache)
	values, narrowed := m.f.narrow(engine.HostCache)
	if !narrowed {
		values = p.Ladder
	}
	var sizes []float64
	for _, text := range larger(values, m.p.value(engine.HostCache)) {
		v, _ := strconv.ParseFloat(text, 64) // it is one
		sizes = append(sizes, v)
	}
	ranks := max(1, m.p.cfg.TP*m.p.cfg.PP)
	want := 2 * float64(max(0, m.p.cfg.KVPoolBytes())) * float64(ranks) / (1 << 30)
	slices.SortFunc(sizes, func(a, b float64) int {
		if (a < want) != (b < want) { // too little is better than nothing, and comes after all that is enough
			return cmp.Compare(b, a)
		}
		return cmp.Compare(math.Abs(a-want), math.Abs(b-want))
	})
	for _, v := range sizes {
		begun := len(m.out)
		m.try(tune.Config{engine.HostCache: decimal(v)}, why+": a host cache keeps what the devices give up")
		if len(m.out) > begun {
			return // what is refused, as its host has no room, gives way to the next
		}
	}
}
