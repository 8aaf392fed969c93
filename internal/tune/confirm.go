package tune

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"perflab/internal/stat"
	"perflab/internal/tune/surrogate"
)

// confirmation is what only launches with fresh seeds decide: the best of the search
// against the baseline, and what each setting of the winner brings.
type confirmation struct {
	*model
	finalists   []*finalist // the baseline first, if it could be measured, then the best, in order
	least, most int         // rounds after which it may be looked at, and after which it ends
	rounds      int         // so far
	gaveUp      bool        // the rounds that were left were not expected to show a gain
	winner      *finalist   // of the finalists; nil: the baseline stays
	ablations   []*ablation
	reduced     []*finalist // the winner without some of its settings, as they were tried
	pick        *finalist   // what is recommended in the end
}

// finalist is a configuration in the confirmation.
type finalist struct {
	name   string
	origin lineage
	config Config
	began  int            // rounds before its first
	rounds map[int]*trial // by Pass, those that have figures
	more   map[int]*trial // after the confirmation, of what was in it
	failed *trial         // the last that has none
	lost   int            // rounds in which no launch has a figure
	out    bool           // it is launched no more
	unfit  *Finding       // of a reduced command: why it does not take the winner's place
}

func newFinalist(name string, origin lineage, config Config, began int) *finalist {
	return &finalist{name: name, origin: origin, config: config, began: began, rounds: map[int]*trial{}, more: map[int]*trial{}}
}

// label is the finalist's in a proposal: the baseline has the one it has elsewhere.
func (f *finalist) label() string {
	if f.origin.isBaseline() {
		return BaselineStage
	}
	return f.name
}

// trials are its launches that have figures, in order of rounds.
func (f *finalist) trials() []*trial {
	var out []*trial
	for _, round := range slices.Sorted(maps.Keys(f.rounds)) {
		out = append(out, f.rounds[round])
	}
	return out
}

// middle is the launch with the median figure, which stands for a finalist where one launch is shown; 0 for none.
func (f *finalist) middle() int {
	trials := f.trials()
	if len(trials) == 0 {
		return 0
	}
	slices.SortStableFunc(trials, func(a, b *trial) int { return cmp.Or(cmp.Compare(a.log, b.log), a.Trial-b.Trial) })
	return trials[(len(trials)-1)/2].Trial
}

// launchesWith counts the launches that have a figure.
func (f *finalist) launchesWith(metric string) int {
	n := 0
	for _, t := range f.rounds {
		if _, ok := t.merged[metric]; ok {
			n++
		}
	}
	return n
}

const (
	// mostRounds is how often a configuration is launched in a confirmation at most,
	// as a multiple of the least.
	mostRounds = 4
	// launchTries is how often a launch is made that our machinery loses, and mostLost in
	// how many rounds.
	launchTries = 3
	mostLost    = 2
	// rivalry is the chance to be better by half of what matters from which on a second
	// configuration is worth its launches.
	rivalry = 0.2
	// likelier is that chance from which on another takes the place of what is confirmed.
	likelier = 0.5
	// futile is the chance to be shown better by the last round below which no
	// further round is for it.
	futile = 0.05
)

// Confidence of an interval before it is corrected, Power of what can be shown.
const (
	Confidence = 0.95
	Power      = 0.8
)

// confirm launches the baseline and the best again, a round each with seeds of its own, until a gain is shown, or none
// is to be expected any more, or the budget ends. Whoever looks after every round may stop by what is seen: see level.
func (s *raceState) confirm() {
	s.begin(ConfirmStage)
	k := s.plan()
	if len(k.finalists) < 2 {
		return
	}
	s.confirmation = k
	s.confirmOn()
	for k.rounds < k.most {
		s.replace(k)
		s.reconsider(k)
		racing := k.racing()
		if len(racing) < 2 || k.based() && k.baseline().out || k.rounds >= k.least && s.left() < len(racing) {
			break
		}
		first := k.rounds + 1
		k.rounds += s.atOnce(k, len(racing))
		s.launchRounds(racing, ConfirmStage, first, k.rounds, func(round int) bool { return len(racing) == 2 || round > k.least-fewest })
		s.launchOdd(k)
		if k.dropBehind(); k.decided() {
			break
		}
	}
	k.winner = k.best()
	k.pick = k.winner
}

// launchOdd gives what leads beside the baseline the launch that the last round leaves over, before it is looked at:
// less is known of it than of the baseline, which the search launched more often, and no other use has a launch alone.
func (s *raceState) launchOdd(k *confirmation) {
	others := k.challengers()
	if k.rounds >= k.least && s.left() == 1 && len(others) > 0 && len(others) < len(k.racing()) {
		s.launchRounds([]*finalist{k.ahead(others)}, ConfirmStage, k.rounds+1, k.rounds+1, func(int) bool { return false })
	}
}

// plan is who is confirmed, and in how many rounds: a second configuration only where it may be the
// better one, since each costs as many launches as would tell more of the first.
func (s *raceState) plan() *confirmation {
	k := &confirmation{model: s.model, least: s.options.Rounds}
	if s.based() {
		k.finalists = append(k.finalists, newFinalist(theBaseline.candidate, theBaseline, s.baseConfig(), 0))
	}
	line, left := confirmable(s.model), s.left()
	if line.sure {
		k.least = fewest
	}
	for _, st := range line.all {
		if len(k.finalists) >= 2 && (len(k.finalists) == 3 || k.based() && !line.rivals(st) || (len(k.finalists)+1)*k.least > left) {
			break
		}
		k.finalists = append(k.finalists, line.entrant(st.trial, k.rounds))
	}
	spare := left - len(k.finalists)*k.least // for a pair: of three one falls behind
	k.most = min(k.least+max(0, spare/2), mostRounds*k.least)
	return k
}

// replace puts the next best in the place of what could not be launched again.
func (s *raceState) replace(k *confirmation) {
	if !k.based() || k.baseline().out || slices.ContainsFunc(k.others(), func(f *finalist) bool { return !f.out || len(f.rounds) >= fewest }) {
		return
	}
	line := confirmable(s.model)
	for _, st := range line.all {
		if f := line.entrant(st.trial, k.rounds); k.find(f.config) == nil && s.left() >= 2*fewest {
			k.finalists = append(k.finalists, f)
			return
		}
	}
}

// reconsider puts another in the place of what is confirmed alone, where it is probably better by all that was launched:
// what led by luck has none in the confirmation, whose launches tell of the noise too. There must be launches for two of it
// and for the baseline in one of its rounds, and one that may be lost.
func (s *raceState) reconsider(k *confirmation) {
	racing := k.challengers()
	if !k.based() || len(racing) != 1 || len(racing[0].rounds) == 0 || s.left() <= fewest+spareLaunches {
		return
	}
	lead, next, best := racing[0], (*finalist)(nil), likelier
	score, half := k.score(lead), math.Log1p(k.objective.MinGain)/2
	against := surrogate.New(s.measurements(func(*trial) bool { return true }), s.choices).Against(s.point(lead.config))
	line := confirmable(s.model)
	for _, st := range line.all {
		f := line.entrant(st.trial, k.rounds)
		if k.find(f.config) != nil || !st.score.keepsAs(score) {
			continue
		}
		if ahead := against.Ahead(s.point(st.trial.Config), half); ahead > best {
			next, best = f, ahead
		}
	}
	if next != nil {
		lead.out = true
		k.finalists = append(k.finalists, next)
	}
}

// yields reports whether the launches that are left, and one that may be lost, go to others before it: the baseline was
// launched in the search too, and what has fewer than fewest figures of its own cannot be recommended.
func (f *finalist) yields(to []*finalist, left int) bool {
	lacking := 0
	for _, o := range to {
		if o != f && !o.out {
			lacking += max(0, fewest-len(o.rounds))
		}
	}
	return f.origin.isBaseline() && len(f.rounds) > 0 && lacking > 0 && left <= lacking+spareLaunches
}

// launchRounds launches each of some configurations in rounds, forwards and backwards in turn, so that what drifts
// favours none, and on several machines so that each is launched on each about as often. A launch that our machinery
// lost is made good for: it says nothing about its configuration.
func (s *raceState) launchRounds(of []*finalist, stage string, first, last int, holdOuts func(round int) bool) {
	var all []turn
	for round := first; round <= last; round++ {
		order := slices.Clone(of)
		if round%2 == 0 {
			slices.Reverse(order)
		}
		for _, f := range order {
			all = append(all, turn{f, round})
		}
	}
	made := map[turn]bool{} // once at least
	for try := range launchTries {
		for left := slices.Clone(all); len(left) > 0; {
			n, i := s.seat(left)
			next := left[i]
			f, round := next.of, next.round
			left = slices.Delete(left, i, i+1)
			if n == nil {
				made[next] = true
				f.failed = s.launchOn(nil, Proposal{}, f.origin, nil)
				continue
			}
			if f.rounds[round] != nil || f.out || !s.affords(1) || try > 0 && s.left() < 1 || f.yields(of, s.left()) {
				continue
			}
			made[next] = true
			p := Proposal{Stage: stage, Label: f.label(), Config: f.config, Pass: round, Workloads: s.workloads()}
			if holdOuts(round) {
				p.Workloads = append(p.Workloads, s.holdOuts()...)
			}
			s.launchOn(n, p, f.origin, func(t *trial) {
				if t.measured() {
					f.rounds[round] = t
				} else {
					f.failed, f.out = t, !t.spoiled()
				}
			})
		}
		s.settle()
	}
	for _, t := range all {
		if f := t.of; made[t] && f.rounds[t.round] == nil { // not what yielded
			f.lost++
			f.out = f.out || f.lost >= mostLost
		}
	}
}

// racing are the finalists that are still launched.
func (k *confirmation) racing() []*finalist {
	return slices.DeleteFunc(slices.Clone(k.finalists), func(f *finalist) bool { return f.out })
}

// challengers are those of them beside the baseline.
func (k *confirmation) challengers() []*finalist {
	return slices.DeleteFunc(k.racing(), func(f *finalist) bool { return f == k.baseline() })
}

// dropBehind drops of two the one that is behind, once it is not likely any more to be the better one by what matters.
func (k *confirmation) dropBehind() {
	racing := k.challengers()
	if !k.based() || len(racing) != 2 {
		return
	}
	a, b := racing[0], racing[1]
	if x, y := k.score(a), k.score(b); !x.keepsAs(y) {
		if k.rounds >= k.least {
			a.out, b.out = k.bounds.prefer(y, x), k.bounds.prefer(x, y)
		}
		return
	}
	d, err := k.contrast(b, a, k.objectiveOn(""), Confidence)
	if err != nil {
		return
	}
	half := math.Log1p(k.objective.MinGain) / 2
	behind, chance := b, 1-d.Below(half)
	if d.Diff > 0 {
		behind, chance = a, d.Below(-half)
	}
	behind.out = chance <= rivalry
}

// decided reports whether a further round is for nothing: the one that leads is
// shown to be better, or none may still be.
func (k *confirmation) decided() bool {
	racing := k.challengers()
	if len(racing) == 0 || slices.ContainsFunc(racing, func(f *finalist) bool { return k.rounds-f.began < k.least }) {
		return false
	}
	if !k.based() {
		return true
	}
	if lead := k.ahead(racing); k.beatsBaseline(lead) {
		return true
	}
	k.gaveUp = k.rounds < k.most && !slices.ContainsFunc(racing, k.promising)
	return k.gaveUp
}

// ahead is the one of some finalists that stands best by its launches.
func (k *confirmation) ahead(of []*finalist) *finalist {
	best := of[0]
	for _, f := range of[1:] {
		x, y := k.score(f), k.score(best)
		if !x.keepsAs(y) {
			if k.bounds.prefer(x, y) {
				best = f
			}
		} else if d, err := k.contrast(f, best, k.objectiveOn(""), Confidence); err == nil && d.Diff > 0 {
			best = f
		}
	}
	return best
}

// promising reports whether a finalist may still be shown to be better than the
// baseline, or nearer to a bound that the baseline misses.
func (k *confirmation) promising(f *finalist) bool {
	base := k.baseline()
	if k.failedGuard(f.config) || k.neverMeets(f, base) {
		return false
	}
	if len(f.rounds) < fewest || len(base.rounds) < fewest {
		return true
	}
	if d, err := k.contrast(f, base, k.objectiveOn(""), k.level(k.family(), k.rounds)); err != nil || d.Promise(k.rounds, k.most, k.level(k.family(), k.most), math.Log1p(k.objective.MinGain)) >= futile {
		return true
	}
	bounds := k.finalBounds()
	theirs := mean(base.trials())
	return slices.ContainsFunc(bounds.SLOs, func(b Bound) bool {
		if b.Holds(theirs) || math.IsNaN(b.Limit) {
			return false
		}
		d, err := k.contrast(f, base, towards(b, f, base), k.level(k.boundFamily(), k.rounds))
		return err != nil || d.Promise(k.rounds, k.most, k.level(k.boundFamily(), k.most), 0) >= futile
	})
}

// neverMeets reports whether there is a bound that another meets on average, and this one in no launch.
func (k *confirmation) neverMeets(f, other *finalist) bool {
	if len(f.rounds) == 0 || len(other.rounds) == 0 {
		return false
	}
	theirs := mean(other.trials())
	return slices.ContainsFunc(k.finalBounds().SLOs, func(b Bound) bool {
		return b.Holds(theirs) && !slices.ContainsFunc(f.trials(), func(t *trial) bool { return b.Holds(t.merged) })
	})
}

// level is the confidence at which one of a family of comparisons is looked at after each round, so that all intervals
// of the family at all looks hold together with the confidence.
func (k *confirmation) level(family, round int) float64 {
	return stat.SequentialConfidence(k.least, k.most, round, 1-(1-Confidence)/float64(family))
}

// objectiveOn is the figure of the objective on a workload; "" stands for what the search is judged by.
func (k *confirmation) objectiveOn(workload string) func(*trial) float64 {
	return func(t *trial) float64 {
		if workload == "" {
			return t.raw
		}
		v, ok := t.end.Figures[workload][k.objective.Metric]
		if !ok {
			return math.NaN()
		}
		return k.objective.log(v)
	}
}

// counted are the launches of a finalist that count against another. What is launched after the confirmation changes
// nothing of what that has shown: it counts for hold-outs, and for what is left of the winner.
func (k *confirmation) counted(f, against *finalist, heldOut bool) []*trial {
	out := f.trials()
	if heldOut || against != k.baseline() && f != k.baseline() {
		for _, round := range slices.Sorted(maps.Keys(f.more)) {
			out = append(out, f.more[round])
		}
	}
	return out
}

// contrast is a figure of a over that of b by what the search is judged by.
func (k *confirmation) contrast(a, b *finalist, figure func(*trial) float64, level float64) (stat.Contrast, error) {
	return k.contrastOn(a, b, figure, level, false)
}

// contrastOn is a figure of a over that of b, by their launches alone. Those of
// the baseline in the search tell of the noise too: nothing was chosen by them. What
// the machine was like then is another matter, so they tell of nothing else.
func (k *confirmation) contrastOn(a, b *finalist, figure func(*trial) float64, level float64, heldOut bool) (stat.Contrast, error) {
	var all stat.Launches
	for arm, f := range []*finalist{b, a} {
		for _, t := range k.counted(f, []*finalist{a, b}[arm], heldOut) {
			all = append(all, stat.Launch{Y: figure(t), Arm: arm, Round: t.Pass, Node: k.nodeOf(t)})
		}
		for _, t := range k.base {
			if f == k.baseline() && t.measured() && t.Share == 0 {
				all = append(all, stat.Launch{Y: figure(t), Arm: arm, Node: k.nodeOf(t), Stratum: 1})
			}
		}
	}
	return all.Contrast(0, 1, level)
}

// compare compares two finalists at a level, as one of a family of comparisons.
func (k *confirmation) compare(a, b *finalist, workload string, level float64, family int) (Comparison, error) {
	figure, heldOut := k.objectiveOn(workload), workload != ""
	with := func(f, against *finalist) (ids []int) {
		for _, t := range k.counted(f, against, heldOut) {
			if finite(figure(t)) {
				ids = append(ids, t.Trial)
			}
		}
		return ids
	}
	d, err := k.contrastOn(a, b, figure, level, heldOut)
	out := Comparison{Label: a.name, Against: b.name, Workload: cmp.Or(workload, k.space.Primary), Trials: with(a, b), Others: with(b, a), Family: family, MinGain: k.objective.MinGain}
	if err != nil {
		return out, err
	}
	out.Ratio = Span{math.Exp(d.Diff), math.Exp(d.Low), math.Exp(d.High)}
	out.Noise, out.P = d.SD, min(1, d.P*(1-Confidence)/(1-level))
	out.Verdict = k.verdictOf(out.Ratio, workload == "" && b == k.baseline())
	out.ByObjective, out.Later = out.Verdict, !slices.Contains(k.finalists, a)
	n, df := max(1, d.N), d.DF
	if k.gaveUp && out.Verdict == TooSmall && workload == "" && !out.Later && n < k.most {
		out.Most = k.most
		n, df = k.most, df+2*float64(k.most-n)
	}
	out.Shown = math.Expm1(stat.Detectable(d.SD, n, df, level, Power))
	return out, nil
}

// compareAll is compare with the baseline on what the search is judged by, corrected
// for all such comparisons and for the looks at them.
func (k *confirmation) compareAll(a, base *finalist) (Comparison, error) {
	d, err := k.compare(a, base, "", k.level(k.family(), min(k.rounds, len(a.rounds))), k.family())
	if k.most > k.least {
		d.Looks = k.most - k.least + 1
	}
	return d, err
}

// compareAlone is compare at 95 % for this one by itself: it decides which of two goes first, and claims no gain.
func (k *confirmation) compareAlone(a, b *finalist) (Comparison, error) {
	return k.compare(a, b, "", Confidence, 1)
}

// verdictOf reads an interval. Where only a gain is asked for, a loss need not be ruled out to say that there is none;
// elsewhere no difference is shown only where neither a gain nor a loss that matters is left.
func (k *confirmation) verdictOf(s Span, gain bool) string {
	matters := 1 + k.objective.MinGain
	switch {
	case s.Low > 1 && s.Value >= matters:
		return Better
	case s.High < 1:
		return Worse
	case s.Low > 1 || s.High < matters && (gain || s.Low > 1/matters):
		return NoDifference
	}
	return TooSmall
}

// baseline is the baseline in the confirmation; nil where the search had no figure of it.
func (k *confirmation) baseline() *finalist {
	if !k.based() {
		return nil
	}
	return k.finalists[0]
}

// others are the finalists beside the baseline.
func (k *confirmation) others() []*finalist {
	if k.based() {
		return k.finalists[1:]
	}
	return k.finalists
}

// find is the finalist that has a configuration.
func (k *confirmation) find(config Config) *finalist {
	for _, f := range k.finalists {
		if maps.Equal(f.config, config) {
			return f
		}
	}
	return nil
}

// best is the finalist to recommend by the confirmation; nil: the baseline. One is better that is shown to beat the
// baseline, on the objective or on a bound that the baseline misses. Of two that both do the better goes first, and of
// two between which there is less than matters the one that sets less.
func (k *confirmation) best() *finalist {
	var best *finalist
	for _, f := range k.others() {
		if k.beatsBaseline(f) && (best == nil || k.preferred(f, best)) {
			best = f
		}
	}
	return best
}

// fewest is how many launches a recommendation rests on at least.
const fewest = 2

// beatsBaseline reports whether a finalist may be recommended in the baseline's place: it misses no bound that the
// baseline meets, and is shown to be nearer to one that the baseline misses, or to be better.
func (k *confirmation) beatsBaseline(f *finalist) bool {
	base := k.baseline()
	if k.failedGuard(f.config) || len(f.rounds) < fewest {
		return false
	}
	if base == nil {
		return true
	}
	mine, theirs := k.score(f), k.score(base)
	switch {
	case theirs.class == none || mine.class < theirs.class:
		return false
	case k.meetsMore(f, base):
		return true
	case mine.class == missing && mine.miss > theirs.miss && k.nearestBound(base, f) != nil:
		return false
	}
	d, err := k.compareAll(f, base)
	return err == nil && d.Verdict == Better
}

// preferred reports whether a goes before b, which beats the baseline too.
func (k *confirmation) preferred(a, b *finalist) bool {
	x, y := k.score(a), k.score(b)
	if !x.keepsAs(y) {
		return k.bounds.prefer(x, y)
	}
	d, err := k.compareAlone(a, b)
	if base := k.baseline(); err != nil && base != nil { // no round has both
		x, _ := k.compareAll(a, base)
		y, _ := k.compareAll(b, base)
		d.Ratio.Value = x.Ratio.Value / y.Ratio.Value
	}
	switch matters := 1 + k.objective.MinGain/2; {
	case d.Ratio.Value > matters:
		return true
	case d.Ratio.Value < 1/matters:
		return false
	}
	return k.search.Settings(a.config) < k.search.Settings(b.config)
}

// family is the number of comparisons by which something may be called better: those with the baseline. Which of two
// goes first is no claim. What is left of the winner after the ablation is no further one: it is compared only once the
// winner is shown to be better, and on launches of its own.
func (k *confirmation) family() int {
	return max(1, len(k.finalists)-1)
}

// noise is that between the launches of the confirmation, and how many it is of.
func (k *confirmation) noise() (sd float64, n int) {
	if k == nil || len(k.finalists) < 2 {
		return 0, 0
	}
	d, err := k.contrast(k.finalists[1], k.finalists[0], k.objectiveOn(""), Confidence)
	if err != nil {
		return 0, 0
	}
	for _, f := range k.finalists[:2] {
		n += len(f.rounds)
	}
	return d.SD, n
}

// What the confirmation is kept: rounds of a pair. Until something leads by what matters they
// are one for each launchesPerRound of the budget, at most moreRounds above the least; then
// as many as show the gain of what leads with usualPower, of at most mostKept of all launches, or
// of a small budget keptOfSmall. One more is for a launch that is lost, where there are sparesFrom
// launches; and from reducedBudget on some are for what else may go.
const (
	launchesPerRound = 6
	moreRounds       = 1
	sparesFrom       = 13
	reducedBudget    = 40
	usualPower       = 0.9
	mostKept         = 0.42
	keptOfSmall      = 4.0 / 7
)

// searching is the number of launches left for the search: what the confirmation needs is kept back. While all that was
// launched misses a bound that is the least rounds alone: there is nothing yet to confirm.
func (m *model) searching() int {
	total := m.left() + len(m.trials)
	rounds := m.plannedRounds(total)
	if !m.based() && len(m.standings()) < 2 { // a confirmation needs two
		return m.left() - 2*fewest
	}
	if lead := m.leader(); lead != nil && m.based() {
		switch gain := m.toShow(lead); {
		case lead.score.class == missing:
			return m.left() - 2*m.options.Rounds
		case lead.score.class == meeting && gain > math.Log1p(m.objective.MinGain):
			if line := confirmable(m); line.sure {
				return m.left() - line.launches() - reducing(total, m.options.Rounds)
			}
			share := mostKept
			if total < smallBudget {
				share = keptOfSmall
			}
			most := min(int(share*float64(total)/2), mostRounds*m.options.Rounds)
			level := stat.SequentialConfidence(m.options.Rounds, most, most, Confidence)
			rounds = max(m.options.Rounds, min(stat.LaunchesFor(m.launchSpread(), gain, level, usualPower), most))
		}
	}
	return m.left() - m.kept(total, rounds)
}

// toShow is by how much, as a logarithm, what leads goes before the baseline: in the objective
// or, where it meets a bound that the baseline misses, in the bound's figure.
func (m *model) toShow(lead *standing) float64 {
	gain := lead.mean
	for _, b := range m.bounds.SLOs {
		theirs, mine := stat.Mean(m.baseLogs(b.Metric)), logPositive(lead.trial.merged[b.Metric])
		if math.IsNaN(theirs) || math.IsNaN(mine) || b.Holds(map[string]float64{b.Metric: math.Exp(theirs)}) {
			continue
		}
		if b.Op == ">=" {
			theirs, mine = mine, theirs
		}
		gain = max(gain, theirs-mine)
	}
	return gain
}

// launchSpread is the noise between launches, by repeated ones and by how far single ones are
// from what is thought of their configurations.
func (m *model) launchSpread() float64 {
	sd, _, _ := m.spread()
	return max(sd, m.fit().Launch())
}
