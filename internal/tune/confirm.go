package tune

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"perflab/internal/stat"
)

// confirmation is what only launches with fresh seeds decide: the best of the search
// against the baseline, and what each setting of the winner brings.
type confirmation struct {
	*model
	finalists []*finalist // the baseline first, if it could be measured, then the best, in order
	rounds    int
	winner    *finalist // of the finalists; nil: the baseline stays
	ablations []*ablation
	reduced   *finalist // the winner without what brought nothing
	pick      *finalist // what is recommended in the end
}

// finalist is a configuration in the confirmation.
type finalist struct {
	name   string
	origin lineage
	config Config
	rounds map[int]*trial // by Pass, those that have figures
	failed *trial         // the last that has none
}

func newFinalist(name string, origin lineage, config Config) *finalist {
	return &finalist{name: name, origin: origin, config: config, rounds: map[int]*trial{}}
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

func (f *finalist) ids() []int {
	var out []int
	for _, t := range f.trials() {
		out = append(out, t.Trial)
	}
	return out
}

// middle is the launch with the median figure, which stands for a finalist where
// one launch is shown; 0 for none.
func (f *finalist) middle() int {
	trials := f.trials()
	if len(trials) == 0 {
		return 0
	}
	slices.SortStableFunc(trials, func(a, b *trial) int {
		switch {
		case a.log < b.log:
			return -1
		case a.log > b.log:
			return 1
		}
		return a.Trial - b.Trial
	})
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

// mostRounds is how often a configuration is launched in a confirmation at most,
// as a multiple of the least.
const mostRounds = 2

// confidence of an interval before it is corrected, power of what can be shown.
const (
	confidence = 0.95
	power      = 0.8
)

// confirm launches the baseline and the best two again, a round each with seeds of
// its own, forwards and backwards in turn, so that what drifts favours none.
func (s *raceState) confirm() {
	s.begin(ConfirmStage)
	k := s.plan()
	if len(k.finalists) < 2 {
		return
	}
	s.confirmation = k
	for round := 1; round <= k.rounds; round++ {
		order := slices.Clone(k.finalists)
		if round%2 == 0 {
			slices.Reverse(order)
		}
		for _, f := range order {
			s.launchAgain(f, ConfirmStage, round)
		}
	}
	for _, f := range k.finalists { // a launch that broke is made up for, once
		for round := 1; round <= k.rounds && len(f.rounds) > 0; round++ {
			if f.rounds[round] == nil && s.left() > 0 {
				s.launchAgain(f, ConfirmStage, round)
			}
		}
	}
	k.winner = k.best()
	k.pick = k.winner
}

// plan is who is confirmed, and in how many rounds: as many as the noise asks for
// to show a gain that matters, as far as the budget goes.
func (s *raceState) plan() *confirmation {
	k := &confirmation{model: s.model}
	if s.based() {
		k.finalists = append(k.finalists, newFinalist(theBaseline.candidate, theBaseline, s.baseConfig()))
	}
	left, rounds := s.left(), s.options.Rounds
	for _, st := range s.confirmable() {
		if len(k.finalists) >= 2 && (len(k.finalists) == 3 || (len(k.finalists)+1)*rounds > left) {
			break
		}
		k.finalists = append(k.finalists, newFinalist(st.trial.name, st.trial.origin, st.trial.Config))
	}
	if len(k.finalists) < 2 {
		return k
	}
	sd, _, _ := s.spread()
	settings := len(s.search.Removals(k.finalists[1].config))
	each := len(k.finalists)
	spare := left - each*rounds - min(settings+rounds, max(0, left-each*rounds))
	want := stat.LaunchesFor(sd, math.Log1p(s.objective.MinGain), confidence, power)
	k.rounds = rounds + max(0, min(want-rounds, spare/each, (mostRounds-1)*rounds))
	return k
}

// confirmable are what may be confirmed: what is thought best, then what was measured best,
// should the two differ, then the rest in order.
func (s *raceState) confirmable() []standing {
	all := slices.DeleteFunc(s.standings(), func(st standing) bool { return s.isBase(st.trial.Config) || s.failedGuard(st.trial.Config) })
	measured := func(st standing) float64 {
		if st.score.class != all[0].score.class || st.score.miss != all[0].score.miss {
			return math.Inf(-1)
		}
		if ratio := s.ratio(st.trial.Config, st.trial.Share); ratio != nil {
			return ratio.Value
		}
		return math.Inf(-1)
	}
	best := 0
	for i := range all {
		if measured(all[i]) > measured(all[best]) {
			best = i
		}
	}
	if best > 1 {
		st := all[best]
		copy(all[2:best+1], all[1:best])
		all[1] = st
	}
	return all
}

// launchAgain launches a configuration in a round of the confirmation, under every
// workload.
func (s *raceState) launchAgain(f *finalist, stage string, round int) {
	t := s.measure(Proposal{
		Stage: stage, Label: f.label(), Config: f.config, Pass: round,
		Workloads: append(s.workloads(), s.holdOuts()...),
	}, f.origin)
	if t.measured() {
		f.rounds[round] = t
	} else {
		f.failed = t
	}
}

// table is a figure of the confirmation as rows of rounds.
func (k *confirmation) table(of []*finalist, figure func(*trial) float64) stat.Rounds {
	rows := make(stat.Rounds, k.rounds)
	for i := range rows {
		for _, f := range of {
			x := math.NaN()
			if t := f.rounds[i+1]; t != nil {
				x = figure(t)
			}
			rows[i] = append(rows[i], x)
		}
	}
	return rows
}

// objectiveOn is the figure of the objective on a workload; "" stands for what the
// search is judged by.
func (k *confirmation) objectiveOn(workload string) func(*trial) float64 {
	return func(t *trial) float64 {
		if workload == "" {
			return t.log
		}
		v, ok := t.end.Figures[workload][k.objective.Metric]
		if !ok {
			return math.NaN()
		}
		return k.objective.log(v)
	}
}

// contrast is a figure of a over that of b. It is estimated from the launches of
// the confirmation and of the two: what is launched after the confirmation changes
// nothing of what that has shown.
func (k *confirmation) contrast(a, b *finalist, figure func(*trial) float64, level float64) (stat.Contrast, error) {
	of := slices.Clone(k.finalists)
	for _, f := range []*finalist{a, b} {
		if !slices.Contains(of, f) {
			of = append(of, f)
		}
	}
	return k.table(of, figure).Contrast(slices.Index(of, b), slices.Index(of, a), level)
}

// compare compares two finalists; family is the number of comparisons it is one of.
func (k *confirmation) compare(a, b *finalist, workload string, family int) (Comparison, error) {
	level := 1 - (1-confidence)/float64(family)
	d, err := k.contrast(a, b, k.objectiveOn(workload), level)
	out := Comparison{Label: a.name, Against: b.name, Workload: cmp.Or(workload, k.space.Primary), Trials: a.ids(), Others: b.ids(), Family: family, MinGain: k.objective.MinGain}
	if err != nil {
		return out, err
	}
	out.Ratio = Span{math.Exp(d.Diff), math.Exp(d.Low), math.Exp(d.High)}
	out.P = min(1, d.P*float64(family))
	out.Shown = math.Expm1(stat.Detectable(d.SD, max(1, d.N), d.DF, level, power))
	out.Verdict = k.verdictOf(out.Ratio, workload == "" && b == k.baseline())
	out.ByObjective, out.Later = out.Verdict, !slices.Contains(k.finalists, a)
	return out, nil
}

// compareAll is compare on what the search is judged by, corrected for all
// comparisons of the confirmation.
func (k *confirmation) compareAll(a, b *finalist) (Comparison, error) {
	return k.compare(a, b, "", k.family())
}

// verdictOf reads an interval. Where only a gain is asked for, a loss need not be
// ruled out to say that there is none; elsewhere no difference is shown only where
// neither a gain nor a loss that matters is left.
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

// best is the finalist to recommend by the confirmation; nil: the baseline. One is
// better that is shown to beat the baseline, on the objective or on a bound that
// the baseline misses. Of two that both do the better goes first, and of two between
// which there is less than matters the one that sets less.
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

// beatsBaseline reports whether a finalist may be recommended in the baseline's place:
// it misses no bound that the baseline meets, and is shown to be nearer to one that
// the baseline misses, or to be better.
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
	if x.class != y.class || x.class == missing && x.miss != y.miss {
		return k.bounds.prefer(x, y)
	}
	d, err := k.compareAll(a, b)
	if err != nil {
		return false
	}
	switch matters := 1 + k.objective.MinGain/2; {
	case d.Ratio.Value > matters:
		return true
	case d.Ratio.Value < 1/matters:
		return false
	}
	return k.search.Settings(a.config) < k.search.Settings(b.config)
}

// family is the number of comparisons that the confirmation makes. What is left of
// the winner after the ablation is no further one: it is compared only once the
// winner is shown to be better, and on launches of its own. Then it cannot equal
// both the baseline and the winner, so that as many comparisons as before can err.
func (k *confirmation) family() int {
	n := len(k.finalists)
	return max(1, n*(n-1)/2)
}

// noise is that between the launches of the confirmation, and how many it is of.
func (k *confirmation) noise() (sd float64, n int) {
	if k == nil || len(k.finalists) < 2 {
		return 0, 0
	}
	d, err := k.contrast(k.finalists[1], k.finalists[0], k.objectiveOn(""), confidence)
	if err != nil {
		return 0, 0
	}
	for _, f := range k.finalists {
		n += len(f.rounds)
	}
	return d.SD, n
}
