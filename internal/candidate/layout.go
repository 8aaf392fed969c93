package candidate

import (
	"slices"
	"strconv"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/tune"
)

// layout is how a copy of a model lies on devices.
type layout struct {
	tp, pp, dp int
	ep         string // as the engine takes it: "false", "true", a number of ranks
	attention  bool   // data-parallel attention inside the tensor-parallel ranks
	pools      engine.Pools
}

// world is the devices of one copy, of all engines of its pools.
func (l layout) world() int {
	engines := max(1, l.pools.Prefills+l.pools.Decodes)
	if l.attention {
		return l.tp * l.pp * engines
	}
	return l.tp * l.pp * l.dp * engines
}

func (l layout) experts() bool { return l.ep != "" && l.ep != "false" && l.ep != "1" }

// config is the layout as parameters, all of them said.
func (l layout) config() tune.Config {
	ep := l.ep
	if ep == "" {
		ep = "false"
	}
	return tune.Config{
		engine.TP: strconv.Itoa(l.tp), engine.PP: strconv.Itoa(l.pp), engine.DP: strconv.Itoa(l.dp),
		engine.ExpertParallel: ep, engine.AttentionDP: strconv.FormatBool(l.attention),
		engine.Disaggregation: l.pools.String(),
	}
}

// shape is what a layout depends on of a model and the devices.
type shape struct {
	model arch.Model
	gpu   arch.Accelerator
}

// shape finds out by the first layout that resolves; a model that no layout of this
// engine has room for may be one of the catalogue.
func (f *rules) shape(e *engine.Engine, model string) shape {
	for _, ep := range []string{"false", "true"} {
		for _, pp := range []int{1, 2} {
			for _, tp := range f.widths(e, engine.TP) {
				c := f.plain(e, model)
				f.lay(c, layout{tp: tp, pp: pp, dp: 1, ep: ep})
				if p := f.resolve(c); p.err == nil {
					return shape{p.cfg.Model, p.cfg.GPU}
				}
			}
		}
	}
	m, _ := arch.LookupModel(model)
	return shape{model: m}
}

// widths are the numbers of devices that a kind of parallelism may take: what divides
// all devices, and powers of two, which divide heads.
func (f *rules) widths(e *engine.Engine, name string) []int {
	if !settable(e, name) {
		return []int{1}
	}
	if values, ok := f.narrow(name); ok {
		var out []int
		for _, v := range values {
			n, err := strconv.Atoi(v)
			if err != nil {
				n = 1
			}
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
		slices.Sort(out)
		return out
	}
	var out []int
	for n := 1; n <= f.o.GPUs; n++ {
		if f.o.GPUs%n == 0 || n&(n-1) == 0 {
			out = append(out, n)
		}
	}
	return out
}

// switches are the values of a switch that may be tried.
func (f *rules) switches(e *engine.Engine, name string) []string {
	if !settable(e, name) {
		return []string{"false"}
	}
	values, ok := f.narrow(name)
	if !ok {
		return []string{"false", "true"}
	}
	var out []string
	for _, v := range values {
		if v == "" {
			v = "false"
		}
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

// pools are the ways to share engines out over prefill and decode that the study lists: by
// itself no search takes engines apart, which helps some loads and needs more than an engine.
func (f *rules) pools(e *engine.Engine) []engine.Pools {
	values, _ := f.narrow(engine.Disaggregation)
	var out []engine.Pools
	for _, v := range values {
		p, err := engine.ParsePools(v)
		if err == nil && !slices.Contains(out, p) && (!p.Split() || settable(e, engine.Disaggregation)) {
			out = append(out, p)
		}
	}
	if len(out) == 0 {
		return []engine.Pools{{}}
	}
	return out
}

// layouts are those that make sense on the devices, small copies first, or large ones
// first where latency is the aim. Loose ones leave devices idle or cut models into
// pipelines: for models that no other layout holds.
func (f catalogue) layouts(e *engine.Engine, model string, loose bool) []layout {
	s := f.shape(e, model)
	var out []layout
	for _, tp := range f.widths(e, engine.TP) {
		for _, pp := range f.widths(e, engine.PP) {
			for _, dp := range f.widths(e, engine.DP) {
				for _, attention := range f.switches(e, engine.AttentionDP) {
					for _, ep := range f.switches(e, engine.ExpertParallel) {
						for _, pools := range f.pools(e) {
							l := layout{tp, pp, dp, ep, attention == "true", pools}
							if f.fills(l, loose) && f.sensible(e, s, l, loose) {
								out = append(out, l)
							}
						}
					}
				}
			}
		}
	}
	slices.SortStableFunc(out, func(a, b layout) int {
		if f.o.Latency {
			return b.world() - a.world()
		}
		return a.world() - b.world()
	})
	return out
}

// fills reports whether copies of the layout take all devices.
func (f catalogue) fills(l layout, loose bool) bool {
	world := l.world()
	if world > f.o.GPUs {
		return false
	}
	_, given := f.narrow(engine.TP)
	return loose || given || l.pools.Split() || f.o.GPUs%world == 0
}

// sensible leaves out what others do better: pipelines beside a fast link, copies behind
// one front end where they could be replicas, and what a model's shape makes pointless.
// What the study lists values of it wants to see.
func (f catalogue) sensible(e *engine.Engine, s shape, l layout, loose bool) bool {
	_, wantsPP := f.narrow(engine.PP)
	_, wantsDP := f.narrow(engine.DP)
	_, wantsEP := f.narrow(engine.ExpertParallel)
	_, wantsAttention := f.narrow(engine.AttentionDP)
	if l.pools.Split() && (l.pp > 1 || l.dp > 1 && !l.attention) {
		return false // which are not laid out
	}
	whole := l.world() == f.o.GPUs && l.world() > 1
	if l.pp > 1 && !wantsPP && (l.dp > 1 || !loose && !s.pipelines(l, f.o.GPUs)) {
		return false
	}
	if l.experts() && !wantsEP && (s.model.MoE == nil || l.tp*l.dp < 2) {
		return false
	}
	groups := settable(e, engine.DP)
	switch {
	case l.attention && groups && (l.dp < 2 || l.tp%l.dp != 0):
		return false
	case l.attention && !groups && l.tp < 2:
		return false
	case l.attention && !wantsAttention && (!whole || l.pp > 1 || s.model.MoE == nil && s.model.MLA == nil):
		return false
	case l.attention && groups && !wantsDP:
		return l.dp == l.tp
	case l.attention || l.dp == 1 || wantsDP:
		return true
	}
	// Copies that share their experts, over all devices; others are replicas.
	return whole && l.experts() && s.model.MoE != nil && !settable(e, engine.AttentionDP)
}

// slowLink is the bandwidth up to which a pipeline may beat slices of each layer.
const slowLink = 100 // 1e9 bytes/s: PCIe and networks are below, NVLink is above

// pipelines reports whether to cut a model into stages: over several groups of devices
// that a link couples, a group being a stage, or over a link that is slow.
func (s shape) pipelines(l layout, gpus int) bool {
	g := s.gpu
	if g.Name == "" {
		return false
	}
	if inside := max(1, g.LinkDevices); gpus > inside && l.world() > inside {
		return l.tp <= inside && (l.tp == inside || l.pp == 2)
	}
	return l.pp == 2 && g.Coupling(2).GBs < slowLink
}
