package tune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"perflab/internal/stat"
)

// hopeless is how many times worse than the best an arm must be predicted to be
// never launched: the predictor orders, and prunes only what it cannot err about.
const hopeless = 3

// rungShare is the part of the search's launches that arms may take, repairs
// included; the rest refines.
const rungShare = 0.5

// mostRepairs is how often one arm is mended.
const mostRepairs = 2

// idle is the expected gain, in units of the gain that matters, under which a
// launch is not worth its cost.
const idle = 0.02

// idleUnbounded is the same of a search without a budget, which nothing else ends.
const idleUnbounded = 0.25

// worthwhile is the least expected gain that a launch is for.
func (c *course) worthwhile() float64 {
	if c.budget.Trials == 0 && c.budget.Time == 0 {
		return idleUnbounded * c.objective.MinGain
	}
	return idle * c.objective.MinGain
}

// lineUp ranks the arms by what is predicted.
func (c *course) lineUp() []*runner {
	var out []*runner
	seen := map[string]bool{}
	best := math.Inf(-1)
	for _, a := range c.guide.Candidates() {
		a.Config = Change{}.Apply(a.Config)
		if k := a.Config.key(); seen[k] {
			continue
		} else {
			seen[k] = true
		}
		r := &runner{Candidate: a, origin: lineage{arm: a.Label}, point: c.place(a.Config)}
		if a.Refused == "" {
			r.point = c.point(a.Config)
			best = max(best, r.point.x)
		}
		out = append(out, r)
	}
	out = append(out, c.foreseenBest(out)...)
	for _, r := range out {
		best = max(best, r.point.x)
	}
	for _, r := range out {
		r.pruned = r.Refused == "" && r.point.known && r.point.x < best-math.Log(hopeless)
	}
	slices.SortStableFunc(out, func(a, b *runner) int {
		refused := func(r *runner) int { return min(1, len(r.Refused)) }
		return cmp.Or(cmp.Compare(refused(a), refused(b)), -cmp.Compare(a.point.x, b.point.x))
	})
	return out
}

// How far the predictor alone refines arms before any is launched: the best of so many
// kinds (an engine with a checkpoint, a KV type, a way to speculate: what is best for
// one seldom is for another) and so many more, so many steps of each, none for less
// than a half percent.
const (
	foreseenKinds = 12
	foreseenArms  = 3
	foreseenSteps = 4
	foreseenGain  = 0.005
)

// foreseenBest are arms beside the given ones: what the predictor makes of the best of
// them by small steps.
func (c *course) foreseenBest(arms []*runner) []*runner {
	ranked := slices.DeleteFunc(slices.Clone(arms), func(r *runner) bool { return r.Refused != "" || !r.point.known })
	slices.SortStableFunc(ranked, func(a, b *runner) int { return -cmp.Compare(a.point.x, b.point.x) })
	kinds := map[string]bool{}
	seen := map[string]bool{}
	for _, r := range arms {
		seen[r.Config.key()] = true
	}
	var out []*runner
	for i, r := range ranked {
		kind := r.Config[engineParameter] + " " + c.guide.Numerics(r.Config)
		if i >= foreseenArms && kinds[kind] || len(kinds) >= foreseenKinds && !kinds[kind] {
			continue
		}
		kinds[kind] = true
		if t := c.climb(r); t != nil && !seen[t.Config.key()] {
			seen[t.Config.key()] = true
			out = append(out, t)
		}
	}
	return out
}

// climb takes the step that is predicted to bring most, again and again; nil where
// none brings anything.
func (c *course) climb(r *runner) *runner {
	at := *r
	for range foreseenSteps {
		best := at.point.x + foreseenGain
		var step *Change
		for _, k := range c.guide.Steps(at.Config) {
			config := k.Apply(at.Config)
			if c.guide.Refuse(config) != "" || !c.promises(config) {
				continue
			}
			if p := c.point(config); p.known && p.x > best {
				best, step = p.x, &k
			}
		}
		if step == nil {
			break
		}
		at.Config = step.Apply(at.Config)
		at.origin = at.origin.with(*step)
		at.point = c.point(at.Config)
	}
	if len(at.origin.changes) == 0 {
		return nil
	}
	at.Label, at.Prior = at.origin.String(), "the predictor"
	return &at
}

// promises reports whether a configuration is predicted to meet the bounds, as far as
// they are limits.
func (c *course) promises(config Config) bool {
	f := c.foresee(config)
	for _, b := range c.bounds.SLOs {
		if _, ok := f.figures[b.Metric]; ok && !b.Holds(f.figures) {
			return false
		}
	}
	return true
}

// rung launches arms: the one of each engine that is predicted best, then those
// that a launch is expected to gain most by.
func (c *course) rung() bool {
	c.begin(RaceStage)
	for _, r := range choose(c, c.lineUp) {
		c.arms = append(c.arms, &runner{Candidate: r.Candidate, origin: r.origin, point: r.point, pruned: r.pruned})
	}
	engines := map[string]bool{}
	for _, r := range c.arms {
		if r.runnable() {
			engines[r.Config[engineParameter]] = true
		}
	}
	quota := max(len(engines), int(math.Ceil(rungShare*float64(c.searching()))))
	for n := len(c.trials); len(c.trials)-n < quota && c.searching() > 0; {
		r := choose(c, c.nextArm)
		if r < 0 {
			break
		}
		if !c.race(c.arms[r]) {
			return false
		}
	}
	return true
}

func (r *runner) runnable() bool { return r.Refused == "" && !r.pruned }

// nextArm is the index of the arm to launch; -1 for none that is worth it.
func (c *course) nextArm() int {
	tried := map[string]bool{}
	for _, t := range c.trials {
		if t.Stage != BaselineStage && !t.spoiled() {
			tried[t.Config[engineParameter]] = true
		}
	}
	for i, r := range c.arms {
		if r.runnable() && !tried[r.Config[engineParameter]] && !c.seen(r.Config) && !c.barred(r.Config) {
			return i
		}
	}
	if i := c.mirror(); i >= 0 {
		return i
	}
	var open []int
	var configs []Config
	for i, r := range c.arms {
		if r.runnable() && !c.seen(r.Config) && !c.barred(r.Config) {
			open, configs = append(open, i), append(configs, r.Config)
		}
	}
	if at, gain := c.best(configs, nil); gain > 0 && gain >= c.worthwhile() {
		return open[at]
	}
	return -1
}

// mirror is the arm of another engine that is likest to what leads: what suits a load
// in one engine mostly suits it in another, and one launch of an engine, of
// whatever was predicted best, says little about the engine. It is -1 where every
// engine had its own, or where nothing of it ran.
func (c *course) mirror() int {
	lead := c.leader()
	if lead == nil {
		return -1
	}
	ran, near := map[string]bool{}, map[string]int{}
	for _, t := range c.trials {
		e, d := t.Config[engineParameter], c.otherwise(t.Config, lead.trial.Config)
		ran[e] = ran[e] || t.measured()
		if least, ok := near[e]; !ok || d < least {
			near[e] = d
		}
	}
	m := c.model()
	found, least := -1, 0
	for i, r := range c.arms { // the best predicted first
		e := r.Config[engineParameter]
		if !r.runnable() || !ran[e] || e == lead.trial.Config[engineParameter] || c.seen(r.Config) || c.barred(r.Config) {
			continue
		}
		if d := c.otherwise(r.Config, lead.trial.Config); d < near[e] && (found < 0 || d < least) {
			if mean, sd := m.at(c.point(r.Config)); mean+2*sd > lead.mean {
				found, least = i, d
			}
		}
	}
	return found
}

// otherwise counts the choices beside the engine in which two configurations differ.
func (c *course) otherwise(a, b Config) int {
	n := 0
	for _, axis := range c.axes {
		if !axis.Ordered && axis.Name != engineParameter && a[axis.Name] != b[axis.Name] {
			n++
		}
	}
	return n
}

// race launches an arm under the first share of the load, and mends what is
// refused as the refusal says.
func (c *course) race(r *runner) bool {
	t, ok := c.measure(Proposal{Stage: RaceStage, Label: r.Label, Config: r.Config, Share: c.short()}, r.origin)
	if !ok {
		return false
	}
	r.trials = append(r.trials, t)
	return c.mend(t, c.short())
}

// mend launches what the refusal of a trial asks for, and of that again.
func (c *course) mend(t *trial, share float64) bool {
	for range mostRepairs {
		if t.end.Status != Refused || len(t.end.Moves) == 0 || c.searching() <= 0 {
			return true
		}
		next, ok := c.try(t, t.end.Moves[0], RepairStage, share)
		if !ok {
			return false
		}
		if next == nil {
			return true
		}
		t = next
	}
	return true
}

// try launches a change of what a trial measured, and keeps what came of it; nil
// where it need not or cannot be launched.
func (c *course) try(from *trial, change Change, stage string, share float64) (*trial, bool) {
	config := change.Apply(from.Config)
	if c.seen(config) || c.barred(config) || c.guide.Refuse(config) != "" {
		return nil, true
	}
	label := change.Label
	if change.Why != "" {
		label += " (" + change.Why + ")"
	}
	t, ok := c.measure(Proposal{Stage: stage, Label: label, Config: config, Share: share}, from.origin.with(change))
	if !ok {
		return nil, false
	}
	e := Entry{Label: from.name + ": " + label, Trial: t.Trial, Note: c.bounds.noteOn(t, c.space.Primary)}
	if from.measured() && t.measured() && from.Share == share {
		e.Gain = new(math.Expm1(t.log - from.log))
	}
	if ref := c.reference(share); t.measured() && c.based() && !math.IsNaN(ref) {
		e.Total = new(math.Expm1(t.log - ref))
	}
	c.steps = append(c.steps, e)
	return t, true
}

// noteOn is note for a trial whose figures are merged.
func (o Objective) noteOn(t *trial, primary string) string {
	if !t.measured() {
		return o.note(t, primary)
	}
	if t.score.class == missing && math.IsInf(t.score.miss, 1) && len(o.Misses(t.merged)) == 0 {
		return "its answers are not those of the baseline, see the accuracy guard"
	}
	return joined(o.Misses(t.merged))
}

// repair gives the best arm of each engine what its bottleneck asks for, before
// any is given up: an engine is not judged by its defaults.
func (c *course) repair() bool {
	c.begin(RepairStage)
	for _, t := range choose(c, c.bests) {
		for range mostRepairs {
			if len(t.end.Moves) == 0 || c.searching() <= 1 {
				break
			}
			next, ok := c.try(t, t.end.Moves[0], RepairStage, t.Share)
			if !ok {
				return false
			}
			if next == nil || !next.measured() || !c.bounds.prefer(next.score, t.score) {
				break
			}
			t = next
		}
	}
	return true
}

// bests are the best launch of each engine, the most promising engine first.
func (c *course) bests() []*trial {
	var out []*trial
	seen := map[string]bool{}
	for _, s := range c.standings() {
		if e := s.trial.Config[engineParameter]; !seen[e] {
			seen[e] = true
			out = append(out, s.trial)
		}
	}
	return out
}

// final launches what was not shown to be worse under all of the load, where arms
// met only a part of it.
func (c *course) final() bool {
	c.begin(FinalStage)
	if c.short() == 0 {
		return true
	}
	for _, t := range choose(c, c.survivors) {
		if c.searching() <= 0 {
			break
		}
		if _, ok := c.measure(Proposal{Stage: FinalStage, Label: t.name, Config: t.Config}, t.origin); !ok {
			return false
		}
	}
	return true
}

// mostFinals is how many go from the first rung to the second.
const mostFinals = 3

// survivors are the best that were not shown to be worse.
func (c *course) survivors() []*trial {
	var out []*trial
	for _, s := range c.standings() {
		if len(out) < mostFinals && len(c.launches(s.trial.Config, 0)) == 0 && c.worse(s.trial) == "" {
			out = append(out, s.trial)
		}
	}
	return out
}

// worse says why a measured configuration is out: shown to be worse than what
// leads, at 95 %, or surely missing a bound. It is empty for what may go on.
func (c *course) worse(t *trial) string {
	lead := c.leader()
	if lead == nil || maps.Equal(lead.trial.Config, t.Config) {
		return ""
	}
	if s := c.scoreOf(t); s.class == missing && s.miss > surely && lead.score.class == meeting {
		return "surely misses a constraint: " + c.bounds.noteOn(t, c.space.Primary)
	}
	mine, theirs := c.measured(t.Config, t.Share), c.measured(lead.trial.Config, t.Share)
	if mine == nil || theirs == nil {
		return ""
	}
	// Of both against each other, not each against the baseline.
	sd, df, _ := c.spread()
	a, b := c.launches(t.Config, t.Share), c.launches(lead.trial.Config, t.Share)
	half := stat.StudentQuantile(0.975, df) * c.error(sd, len(a), len(b))
	if diff := math.Log(mine.Value / theirs.Value); diff+half < 0 {
		return fmt.Sprintf("shown to be worse than %s: at most %s of it", lead.trial.name, percentage(math.Exp(diff+half)))
	}
	return ""
}

// surely is by how much a single launch must miss a bound to be out: more than
// the noise of a percentile.
const surely = 0.2

// error is the standard error of a log ratio of so many launches.
func (c *course) error(sd float64, a, b int) float64 {
	w := c.within()
	return math.Sqrt((sd*sd + w*w) * (1/float64(a) + 1/float64(b)))
}

// measured is the ratio of a configuration to the baseline by its launches of the
// search, with the interval that decides; nil where either was not measured.
func (c *course) measured(config Config, share float64) *Span {
	trials := c.launches(config, share)
	ref := c.reference(share)
	if len(trials) == 0 || math.IsNaN(ref) {
		return nil
	}
	var x []float64
	for _, t := range trials {
		x = append(x, t.log)
	}
	bases := 0
	for _, t := range c.base {
		if t.Share == share && t.measured() {
			bases++
		}
	}
	sd, df, _ := c.spread()
	diff := stat.Mean(x) - ref
	half := stat.StudentQuantile(0.975, df) * c.error(sd, len(trials), max(1, bases))
	return &Span{math.Exp(diff), math.Exp(diff - half), math.Exp(diff + half)}
}

// percentage prints a ratio.
func percentage(ratio float64) string { return fmt.Sprintf("%.1f %%", 100*ratio) }
