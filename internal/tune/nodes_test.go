package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"perflab/internal/stat"
)

// onNodes measures a proposal of a world whose machines differ by a factor each.
func onNodes(t *testing.T, f *testSpace, seed uint64, speed map[string]float64) func(Proposal) Observation {
	return func(p Proposal) Observation {
		o, err := f.evaluate(seed)(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, figures := range o.Figures {
			figures["m"] *= speed[p.Node]
		}
		return o
	}
}

// machines are three of one kind, that differ.
var machines = map[string]float64{"a": 1, "b": 0.96, "c": 1.03}

func raceOn(t testing.TB, f *testSpace, b Budget, nodes ...string) *Race {
	t.Helper()
	var p Predictor
	if f.wrong != nil {
		p = f
	}
	return taught(t, f, p, b, nodes...)
}

// TestRaceOnNodes plays races on three machines, whose ends come in any order: a machine has
// one trial at a time, none is launched twice, no budget is exceeded, and a race that is
// resumed after any end goes on alike.
func TestRaceOnNodes(t *testing.T) {
	t.Parallel()
	nodes := slices.Sorted(maps.Keys(machines))
	for seed := range uint64(2) {
		f := world(seed)
		f.broken = map[int]string{5: Failed}
		asked, ends := resumes(t, seed, func() Strategy { return raceOn(t, f, Budget{Trials: 30}, nodes...) }, onNodes(t, f, seed, machines))
		if len(asked) > 30 || len(asked) < 15 {
			t.Errorf("seed %d: %d launches of 30", seed, len(asked))
		}
		checkNodes(t, seed, asked, ends)
		on := map[string]int{}
		for _, p := range asked {
			on[p.Node]++
		}
		for _, n := range nodes {
			if on[n] < len(asked)/5 {
				t.Errorf("seed %d: %d of %d launches are on %s", seed, on[n], len(asked), n)
			}
		}
	}
}

// checkNodes holds the order of proposals and ends against what must be true of any.
func checkNodes(t *testing.T, seed uint64, asked []Proposal, ends []Observation) {
	t.Helper()
	type launch struct{ config, pass string }
	ended := map[int]int{}
	for i, o := range ends {
		ended[o.Trial] = i
	}
	seen := map[launch]Proposal{}
	last := map[string]Proposal{}
	for i, p := range asked {
		if p.Trial != i+1 || ended[p.Trial] == 0 && ends[0].Trial != p.Trial {
			t.Fatalf("seed %d: trial %d is %+v, and has no end", seed, i+1, p)
		}
		k := launch{p.Config.key(), fmt.Sprint(p.Pass)}
		before, twice := seen[k]
		if twice && p.Stage != BaselineStage && !slices.ContainsFunc(ends, func(o Observation) bool { return o.Trial == before.Trial && o.Status == Failed }) {
			t.Errorf("seed %d: trial %d is %d again: %v", seed, p.Trial, before.Trial, p.Config)
		}
		seen[k], last[p.Node] = p, p
	}
}

// TestConfirmationTurns: in the confirmation each configuration is launched on each machine about
// as often as on another.
func TestConfirmationTurns(t *testing.T) {
	t.Parallel()
	f := world(3)
	f.equal = true
	asked, _ := resumes(t, 3, func() Strategy { return raceOn(t, f, Budget{Trials: 40}, "a", "b", "c") }, onNodes(t, f, 3, machines))
	on := map[string]map[string]int{}
	for _, p := range asked {
		if p.Stage == ConfirmStage {
			k := p.Config.key()
			if on[k] == nil {
				on[k] = map[string]int{}
			}
			on[k][p.Node]++
		}
	}
	if len(on) < 2 {
		t.Fatalf("%d configurations are confirmed", len(on))
	}
	for k, n := range on {
		if all := n["a"] + n["b"] + n["c"]; max(n["a"], n["b"], n["c"])-min(n["a"], n["b"], n["c"]) > 1+all/6 {
			t.Errorf("%s is launched on the machines %v times", k, n)
		}
	}
}

// playNodes runs a race to its end, on machines that are as fast as each other but for what
// they do to figures.
func playNodes(r *Race, end func(Proposal) Observation) (asked []Proposal, _ Result) {
	for {
		begun := len(asked)
		for p, ok := r.Ask(); ok; p, ok = r.Ask() {
			asked = append(asked, p)
		}
		if len(asked) == begun {
			return asked, r.Result()
		}
		for _, p := range asked[begun:] {
			o := end(p)
			o.Trial = p.Trial
			r.Tell(o)
		}
	}
}

// TestNodesFindTheBest holds the regret of races over three machines.
func TestNodesFindTheBest(t *testing.T) {
	t.Parallel()
	var regret []float64
	for seed := range uint64(20) {
		f := world(seed)
		asked, r := playNodes(raceOn(t, f, Budget{Trials: 25}, "a", "b", "c"), onNodes(t, f, seed, machines))
		regret = append(regret, 1-f.value(asked[r.Winner-1].Config)/f.best())
	}
	stat.Sort(regret)
	t.Logf("regret: median %.3f, P90 %.3f, most %.3f", regret[10], regret[18], regret[19])
	if regret[10] > 0.02 || regret[18] > 0.06 {
		t.Errorf("regret: median %.3f, P90 %.3f", regret[10], regret[18])
	}
}

// TestNodesOfEquals holds how often a race over three machines that differ by 7 % calls one of
// equals better.
func TestNodesOfEquals(t *testing.T) {
	t.Parallel()
	false1, n := 0, 60
	for seed := range uint64(n) {
		f := world(seed)
		f.equal, f.sd = true, 0.02
		if _, r := playNodes(raceOn(t, f, Budget{Trials: 25}, "a", "b", "c"), onNodes(t, f, seed, machines)); *r.Gain != 0 {
			false1++
		}
	}
	t.Logf("%d of %d races of equals have a winner", false1, n)
	if share := float64(false1) / float64(n); share > 0.05 {
		t.Errorf("%.3f of races of equals have a winner", share)
	}
}

// TestNodeEffects: what is said of the machines holds what is true of them.
func TestNodeEffects(t *testing.T) {
	t.Parallel()
	covered, all := 0, 0
	for seed := range uint64(15) {
		f := world(seed)
		_, r := playNodes(raceOn(t, f, Budget{Trials: 25}, "a", "b", "c"), onNodes(t, f, seed, machines))
		got := r.Nodes
		if len(got) != 3 || got[0].Effect != nil || got[0].Name != "a" {
			t.Fatalf("seed %d: machines %+v", seed, got)
		}
		for _, n := range got[1:] {
			if n.Effect == nil {
				t.Fatalf("seed %d: nothing is said of %s", seed, n.Name)
			}
			all++
			if truth := machines[n.Name] - 1; n.Effect.Low <= truth && truth <= n.Effect.High {
				covered++
			}
		}
	}
	if covered < all*9/10 {
		t.Errorf("%d of %d intervals hold the truth", covered, all)
	}
}

// TestLostNode: a race goes on without a machine that is lost, and ends where all are.
func TestLostNode(t *testing.T) {
	t.Parallel()
	for _, lost := range []string{"b", "abc"} {
		f := world(4)
		end := onNodes(t, f, 4, machines)
		gone := map[string]bool{}
		var after []string
		asked, _ := resumes(t, 4, func() Strategy { return raceOn(t, f, Budget{Trials: 25}, "a", "b", "c") }, func(p Proposal) Observation {
			if p.Trial >= 6 && slices.Contains([]rune(lost), rune(p.Node[0])) {
				return Observation{Status: Failed, Reason: "no route to host", Lost: true, Seconds: 5}
			}
			return end(p)
		})
		for _, p := range asked {
			if gone[p.Node] {
				after = append(after, p.Node)
			}
			gone[p.Node] = gone[p.Node] || p.Trial >= 6 && slices.Contains([]rune(lost), rune(p.Node[0]))
		}
		if len(after) > 0 {
			t.Errorf("launched on %v after they were lost", after)
		}
		if n := len(asked); lost == "b" && n < 12 || lost == "abc" && n > 8 {
			t.Errorf("%d launches where %s is lost", n, lost)
		}
	}
}

// TestLostTrialAgain: the trial of a machine that is lost in the middle of it says nothing about its configuration. In the
// confirmation it is made good for on another machine; in the search its configuration is as open as it was, and is mostly proposed
// again.
func TestLostTrialAgain(t *testing.T) {
	t.Parallel()
	for _, confirming := range []bool{false, true} {
		proposed := 0
		for seed := range uint64(6) {
			f := world(seed)
			end := onNodes(t, f, seed, machines)
			var lost Proposal
			asked, _ := playNodes(raceOn(t, f, Budget{Trials: 40}, "a", "b", "c"), func(p Proposal) Observation {
				if lost.Trial == 0 && p.Node == "b" && p.Stage != BaselineStage && (p.Stage == ConfirmStage) == confirming {
					lost = p
				}
				if lost.Trial > 0 && p.Node == "b" {
					return Observation{Status: Failed, Reason: "node b was not heard of for 10s", Lost: true, Seconds: 5}
				}
				return end(p)
			})
			again := slices.IndexFunc(asked, func(p Proposal) bool {
				return p.Trial > lost.Trial && p.Pass == lost.Pass && p.Config.key() == lost.Config.key()
			})
			switch {
			case lost.Trial == 0:
				t.Fatalf("seed %d: no trial is lost", seed)
			case again >= 0 && asked[again].Node != "b":
				proposed++
			case confirming || again >= 0:
				t.Errorf("seed %d: trial %d of the machine that was lost is not made good for on another", seed, lost.Trial)
			}
		}
		if proposed < 4 {
			t.Errorf("confirming %v: in %d of 6 races the trial is proposed again", confirming, proposed)
		}
	}
}

// TestStrata: launches of another stratum direct the search, and confirm nothing.
func TestStrata(t *testing.T) {
	t.Parallel()
	f := world(3)
	end := onNodes(t, f, 3, machines)
	asked, _ := resumes(t, 3, func() Strategy { return raceOn(t, f, Budget{Trials: 30}, "a", "b", "c") }, func(p Proposal) Observation {
		o := end(p)
		o.Stratum = map[string]string{"a": "driver 550", "b": "driver 570", "c": "driver 570"}[p.Node]
		return o
	})
	searched := false
	for _, p := range asked {
		searched = searched || p.Pass == 0 && p.Node == "a"
		if p.Pass > 0 && p.Node == "a" {
			t.Errorf("trial %d confirms on a machine of another driver than most", p.Trial)
		}
	}
	if !searched {
		t.Error("a machine of another driver has no part in the search")
	}
}

// TestAdditiveFit: where machines differ by 3 % and launches by 0.8 %, the best of eight that
// is 3 % better is found by figures without what the machines do to them, and by raw means in
// three of four studies. Each configuration is launched on two of four machines.
func TestAdditiveFit(t *testing.T) {
	const studies, arms, nodes = 300, 8, 4
	raw, fitted := 0, 0
	for seed := range uint64(studies) {
		r := stat.Stream(seed, "machines")
		var effect [nodes]float64
		for i := range effect {
			effect[i] = machineSpread * r.NormFloat64()
		}
		best := r.IntN(arms) + 1
		var all stat.Launches
		launch := func(arm, node int) {
			y := effect[node] + 0.008*r.NormFloat64()
			if arm == best {
				y += math.Log(1.03)
			}
			all = append(all, stat.Launch{Y: y, Arm: arm, Node: node})
		}
		for node := range nodes {
			launch(0, node) // the baseline
		}
		for arm := 1; arm <= arms; arm++ {
			launch(arm, arm%nodes)
			launch(arm, (arm+1+arm/nodes)%nodes)
		}
		top := func(off []float64) int {
			mean := make([]float64, arms+1)
			for _, l := range all {
				mean[l.Arm] += (l.Y - off[l.Node]) / 2
			}
			mean[0] = math.Inf(-1)
			return slices.Index(mean, slices.Max(mean))
		}
		if top(make([]float64, nodes)) == best {
			raw++
		}
		if top(all.NodeEffects(nodes, priorSpread*priorSpread/(machineSpread*machineSpread))) == best {
			fitted++
		}
	}
	t.Logf("the best is found by raw means in %.1f %% of %d studies, by the additive fit in %.1f %%", 100*float64(raw)/studies, studies, 100*float64(fitted)/studies)
	if fitted < studies*95/100 || raw > studies*4/5 {
		t.Errorf("of %d studies the best is found in %d by raw means, in %d by the fit", studies, raw, fitted)
	}
}
