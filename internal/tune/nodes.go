package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"perflab/internal/stat"
)

// node is a machine on which one trial is measured at a time. Those of a race are alike, but
// for what machines of one kind differ by. Where there is but one it has no name.
type node struct {
	name    string
	open    *trial  // under way
	lost    bool    // given up
	stratum string  // what its launches are held to themselves by, see Observation.Stratum
	effect  float64 // what its launches have more of the objective's logarithm than the mean of all, as it is thought to be
}

// NodeEffect is what a machine of several does to the figures of its launches.
type NodeEffect struct {
	Name     string `json:"name"`
	Launches int    `json:"launches"` // with a figure
	// Effect is the ratio of its figures to those of the first machine that has any, less
	// one, in the direction that is better: -0.03 is 3 % slower. None: it is that machine, or
	// no configuration was measured on both.
	Effect  *Span  `json:"effect,omitempty"`
	Stratum string `json:"stratum,omitempty"` // see Observation.Stratum
	Lost    bool   `json:"lost,omitempty"`    // it could not be reached any more
}

// newNodes are the machines of a race.
func newNodes(names []string) []*node {
	if len(names) == 0 {
		return []*node{{}}
	}
	var out []*node
	for _, name := range names {
		out = append(out, &node{name: name})
	}
	return out
}

// nodeErrors says what is wrong with the names of machines.
func nodeErrors(names []string) (errs []error) {
	for i, name := range names {
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("machine %d has no name", i+1))
		case slices.Contains(names[:i], name):
			errs = append(errs, fmt.Errorf("machine %s is listed twice", name))
		}
	}
	return errs
}

// several reports whether there is more than one machine.
func (h *history) several() bool { return len(h.nodes) > 1 }

// usable reports whether launches may be made on a machine: it is not lost, and where launches are
// to be held against each other it is one of those that they may be on.
func (h *history) usable(n *node) bool {
	return !n.lost && (h.only == nil || n.stratum == *h.only)
}

// underWay counts the trials that have not ended.
func (h *history) underWay() int {
	n := 0
	for _, t := range h.trials {
		if t.open {
			n++
		}
	}
	return n
}

// ended counts those that have.
func (h *history) ended() int { return len(h.trials) - h.underWay() }

// room is a machine on which nothing is under way; it awaits ends until there is one, so
// that what is decided next is decided by all that is known then. It is nil where none can
// be used any more.
func (s *launcher) room() *node {
	for {
		for _, n := range s.nodes {
			if n.open == nil && s.usable(n) {
				return n
			}
		}
		if !s.land() {
			return nil
		}
	}
}

// settle awaits the ends of all that is under way.
func (s *launcher) settle() {
	for s.land() {
	}
}

// measure launches a configuration and awaits its end.
func (s *launcher) measure(p Proposal, from lineage) *trial {
	t := s.launch(p, from, nil)
	for t.open && s.land() {
	}
	return t
}

// launch starts a trial on a machine that has room. Once it has ended, then is called.
func (s *launcher) launch(p Proposal, from lineage, then func(*trial)) *trial {
	return s.launchOn(s.room(), p, from, then)
}

// launchOn starts a trial on a machine. Where there is none left the trial is lost.
func (s *launcher) launchOn(n *node, p Proposal, from lineage, then func(*trial)) *trial {
	p.Trial = len(s.trials) + 1
	if p.Workloads == nil {
		p.Workloads = s.workloads()
	}
	s.request(&p)
	t := &trial{Proposal: p, name: from.String(), origin: from, log: math.NaN(), raw: math.NaN(), then: then}
	if n == nil {
		t.Trial, t.end = 0, Observation{Status: Failed, Reason: "no machine is left to launch it on"}
		return t
	}
	t.Node, t.open, n.open = n.name, true, t
	s.trials = append(s.trials, t)
	s.starter.propose(t.Proposal)
	return t
}

// land takes the next end of a trial; false where none is under way.
func (s *launcher) land() bool {
	if !slices.ContainsFunc(s.nodes, func(n *node) bool { return n.open != nil }) {
		return false
	}
	end := s.starter.await()
	n := s.nodes[slices.IndexFunc(s.nodes, func(n *node) bool { return n.open != nil && n.open.Trial == end.Trial })]
	t := n.open
	n.open, n.lost = nil, n.lost || end.Lost
	if end.Stratum != "" {
		n.stratum = end.Stratum
	}
	t.open, t.end, t.merged = false, end, s.merge(end)
	t.raw = s.logOf(t.merged)
	t.log = t.raw
	if t.Stage == BaselineStage && !s.based() {
		s.bounds = s.objective.resolve(t.merged)
	}
	t.score = s.bounds.Score(end.Status, t.merged)
	s.level()
	s.judge(t)
	if t.then != nil {
		t.then(t)
	}
	return true
}

// openEach launches the baseline on every machine: that is how they are told apart, and
// what connects a launch on one with a launch on another.
func (s *raceState) openEach() {
	share := s.short()
	if share > 0 { // bounds are of the figures under all of the load
		s.measure(s.baselineTrial(0), theBaseline)
		if !s.keepBaseline(s.trials[len(s.trials)-1]) {
			return
		}
	}
	var launch func(n *node, tries int)
	launch = func(n *node, tries int) {
		s.launchOn(n, s.baselineTrial(share), theBaseline, func(t *trial) {
			s.keepBaseline(t)
			if t.spoiled() && tries < launchTries && s.usable(n) && s.searching() >= 2 {
				launch(n, tries+1)
			}
		})
	}
	for _, n := range s.nodes {
		if n.open == nil && s.usable(n) {
			launch(n, 1)
		}
	}
	s.settle()
}

// baselineTrial is a launch of the baseline in the search.
func (s *raceState) baselineTrial(share float64) Proposal {
	return Proposal{Stage: BaselineStage, Label: BaselineStage, Config: s.baseConfig(), Share: share}
}

// keepBaseline takes a launch of the baseline, and has the predictor learn of the first; false
// where it has no figure.
func (s *raceState) keepBaseline(t *trial) bool {
	if t.measured() || s.base == nil {
		s.base = append(s.base, t)
	}
	s.learn(t)
	return t.measured()
}

// machineSpread is how far machines of one kind are thought to differ, as a standard
// deviation of logarithms.
const machineSpread = 0.03

// level takes what the machines do to figures off the launches: by the additive model, in
// which a launch is its configuration and its machine. So configurations that were launched
// on different machines can be held against each other.
func (h *history) level() {
	if !h.several() {
		return
	}
	all, of := h.launchesByNode()
	effects := all.NodeEffects(len(h.nodes), priorSpread*priorSpread/(machineSpread*machineSpread))
	for i, n := range h.nodes {
		n.effect = effects[i]
	}
	for i, t := range of {
		t.log = t.raw - effects[all[i].Node]
		t.score.Value = h.objective.unlog(t.log)
		t.merged[h.objective.Metric] = t.score.Value
	}
}

// launchesByNode are all launches that have a figure. Those under one load with the same
// requests are one arm.
func (h *history) launchesByNode() (stat.Launches, []*trial) {
	var all stat.Launches
	var of []*trial
	arms := map[string]int{}
	for _, t := range h.trials {
		if !t.measured() || math.IsNaN(t.raw) {
			continue
		}
		k := fmt.Sprint(t.Share, min(t.Pass, 1), t.Config.key())
		if _, known := arms[k]; !known {
			arms[k] = len(arms)
		}
		all = append(all, stat.Launch{Y: t.raw, Arm: arms[k], Node: h.nodeOf(t)})
		of = append(of, t)
	}
	return all, of
}

// nodeOf is the place of a trial's machine.
func (h *history) nodeOf(t *trial) int {
	return slices.IndexFunc(h.nodes, func(n *node) bool { return n.name == t.Node })
}

// levelled is the number of machines whose effects were taken off figures, less one: what
// launches tell of these they do not tell of the noise.
func (h *history) levelled() int {
	on := map[string]bool{}
	for _, t := range h.trials {
		if t.measured() {
			on[t.Node] = true
		}
	}
	return max(0, len(on)-1)
}

// nodeEffects is what was learned of the machines; none where there is one. It is the
// contrast of two machines in the model of stat.Launches.Contrast, in which configurations
// are what their launches have in common.
func (h *history) nodeEffects() []NodeEffect {
	if !h.several() {
		return nil
	}
	all, _ := h.launchesByNode()
	for i, l := range all {
		all[i].Arm, all[i].Round, all[i].Node = l.Node, l.Arm, 0
	}
	first := -1
	var out []NodeEffect
	for i, n := range h.nodes {
		e := NodeEffect{Name: n.name, Stratum: n.stratum, Lost: n.lost}
		for _, l := range all {
			if l.Arm == i {
				e.Launches++
			}
		}
		if first < 0 && e.Launches > 0 {
			first = i
		} else if d, err := all.Contrast(first, i, Confidence); first >= 0 && err == nil {
			e.Effect = &Span{math.Expm1(d.Diff), math.Expm1(d.Low), math.Expm1(d.High)}
		}
		out = append(out, e)
	}
	return out
}

// turn is a launch that is still to be made in the rounds of a confirmation.
type turn struct {
	of    *finalist
	round int
}

// seat is the machine and the place of the turn to launch next: each configuration is launched
// on each machine about as often, so that rounds turn over the machines. Where a machine that
// has room had what is left more often than another, that one is awaited. The machine is nil
// where none is left.
func (s *raceState) seat(turns []turn) (*node, int) {
	for {
		best := s.room()
		if best == nil || !s.several() {
			return best, 0
		}
		at, least := 0, s.ahead(turns[0].of, best)
		for _, n := range s.nodes {
			for i, t := range turns {
				if a := s.ahead(t.of, n); n.open == nil && s.usable(n) && a < least {
					best, at, least = n, i, a
				}
			}
		}
		if least == 0 || !s.land() {
			return best, at
		}
	}
}

// ahead is how often a configuration was launched on a machine in the confirmation, less how
// often on the one on which it was launched least.
func (s *raceState) ahead(f *finalist, n *node) int {
	on := map[string]int{}
	for _, t := range s.trials {
		if t.Pass > 0 && maps.Equal(t.Config, f.config) {
			on[t.Node]++
		}
	}
	least := on[n.name]
	for _, m := range s.nodes {
		if s.usable(m) {
			least = min(least, on[m.name])
		}
	}
	return on[n.name] - least
}

// confirmOn chooses the machines of the confirmation: the largest number of those that may be
// held against each other.
func (s *raceState) confirmOn() {
	if !s.several() {
		return
	}
	n := map[string]int{}
	best := ""
	for _, m := range s.nodes {
		if !m.lost {
			if n[m.stratum]++; n[m.stratum] > n[best] || n[best] == 0 {
				best = m.stratum
			}
		}
	}
	s.only = &best
}

// atOnce is how many rounds of so many configurations are launched before any is looked at:
// as many as keep the machines busy, and of a pair all that must be made anyway.
func (s *raceState) atOnce(k *confirmation, of int) int {
	machines := 0
	for _, n := range s.nodes {
		if s.usable(n) {
			machines++
		}
	}
	if machines < 2 {
		return 1
	}
	rounds := machines / of
	if of == 2 {
		rounds = max(rounds, k.least-k.rounds)
	}
	return max(1, min(rounds, k.most-k.rounds, s.left()/of))
}
