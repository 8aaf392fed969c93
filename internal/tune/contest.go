package tune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// contest is what only launches with fresh seeds decide: the confirmation of the
// best against the baseline, and what each setting of the winner brings.
type contest struct {
	entries []*entrant // the baseline first, if it could be measured, then the best, in order
	rounds  int
	winner  *entrant // by the confirmation; nil: the baseline stays
	ablated []*ablation
	reduced *entrant // the winner without what brought nothing
	pick    *entrant // what is recommended in the end
	done    bool
}

// entrant is a configuration in the contest.
type entrant struct {
	name   string
	origin lineage
	config Config
	rounds map[int]*trial // by Pass, those that have figures
	failed *trial         // the last that has none
}

// ablation is a setting of the winner, left out.
type ablation struct {
	setting Change
	without *entrant
	span    *Span // of having it
	dropped bool
	reason  string
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
func (c *course) confirm() bool {
	c.begin(ConfirmStage)
	plan := choose(c, c.entry)
	if len(plan.entries) < 2 {
		return true
	}
	k := &contest{rounds: plan.rounds}
	for _, e := range plan.entries {
		k.entries = append(k.entries, &entrant{name: e.name, origin: e.origin, config: e.config, rounds: map[int]*trial{}})
	}
	c.contest = k
	for round := 1; round <= k.rounds; round++ {
		order := slices.Clone(k.entries)
		if round%2 == 0 {
			slices.Reverse(order)
		}
		for _, e := range order {
			if !c.enter(e, ConfirmStage, round) {
				return false
			}
		}
	}
	for _, e := range k.entries { // a launch that broke is made up for, once
		for round := 1; round <= k.rounds && len(e.rounds) > 0; round++ {
			if e.rounds[round] == nil && c.left() > 0 && !c.enter(e, ConfirmStage, round) {
				return false
			}
		}
	}
	k.winner = c.won()
	k.pick = k.winner
	return true
}

// entry is who is confirmed, and in how many rounds: as many as the noise asks for
// to show a gain that matters, as far as the budget goes.
func (c *course) entry() *contest {
	k := &contest{}
	base := Change{}.Apply(c.space.Baseline)
	if c.based() {
		k.entries = append(k.entries, &entrant{name: "the baseline", origin: lineage{arm: "the baseline"}, config: base})
	}
	left, rounds := c.left(), c.options.Rounds
	for _, s := range c.contenders() {
		if len(k.entries) >= 2 && (len(k.entries) == 3 || (len(k.entries)+1)*rounds > left) {
			break
		}
		k.entries = append(k.entries, &entrant{name: s.trial.name, origin: s.trial.origin, config: s.trial.Config})
	}
	if len(k.entries) < 2 {
		return k
	}
	sd, _, _ := c.spread()
	settings := len(c.guide.Removals(k.entries[1].config))
	each := len(k.entries)
	spare := left - each*rounds - min(settings+rounds, max(0, left-each*rounds))
	want := stat.LaunchesFor(sd, math.Log1p(c.objective.MinGain), confidence, power)
	k.rounds = rounds + max(0, min(want-rounds, spare/each, (mostRounds-1)*rounds))
	return k
}

// contenders are what may be confirmed: what is thought best, then what was measured best,
// should the two differ, then the rest in order.
func (c *course) contenders() []standing {
	base := Change{}.Apply(c.space.Baseline)
	all := slices.DeleteFunc(c.standings(), func(s standing) bool { return maps.Equal(s.trial.Config, base) || c.barred(s.trial.Config) })
	measured := func(s standing) float64 {
		if s.score.class != all[0].score.class || s.score.miss != all[0].score.miss {
			return math.Inf(-1)
		}
		if span := c.measured(s.trial.Config, s.trial.Share); span != nil {
			return span.Value
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
		s := all[best]
		copy(all[2:best+1], all[1:best])
		all[1] = s
	}
	return all
}

// enter launches a configuration in a round of the contest, under every workload.
func (c *course) enter(e *entrant, stage string, round int) bool {
	t, ok := c.measure(Proposal{
		Stage: stage, Label: e.label(), Config: e.config, Pass: round,
		Workloads: append(c.workloads(), c.holdOuts()...),
	}, e.origin)
	if !ok {
		return false
	}
	if t.measured() {
		e.rounds[round] = t
	} else {
		e.failed = t
	}
	return true
}

// label is the entrant's in a proposal: the baseline has the one it has elsewhere.
func (e *entrant) label() string {
	if e.origin.arm == "the baseline" && len(e.origin.changes) == 0 {
		return BaselineStage
	}
	return e.name
}

// holdOuts are the workloads that the search is not judged by.
func (c *course) holdOuts() []string {
	var out []string
	for _, w := range c.space.Others {
		if !(c.objective.Weights[w] > 0) {
			out = append(out, w)
		}
	}
	return out
}

// table is a figure of the contest as rows of rounds.
func (k *contest) table(of []*entrant, figure func(*trial) float64) stat.Rounds {
	rows := make(stat.Rounds, k.rounds)
	for i := range rows {
		for _, e := range of {
			x := math.NaN()
			if t := e.rounds[i+1]; t != nil {
				x = figure(t)
			}
			rows[i] = append(rows[i], x)
		}
	}
	return rows
}

// objectiveOn is the figure of the objective on a workload; "" stands for what the
// search is judged by.
func (c *course) objectiveOn(workload string) func(*trial) float64 {
	return func(t *trial) float64 {
		if workload == "" {
			return t.log
		}
		v, ok := t.end.Figures[workload][c.objective.Metric]
		if !ok {
			return math.NaN()
		}
		return c.objective.log(v)
	}
}

// contrast is a figure of a over that of b. It is estimated from the launches of
// the confirmation and of the two: what is launched after the confirmation changes
// nothing of what that has shown.
func (k *contest) contrast(a, b *entrant, figure func(*trial) float64, level float64) (stat.Contrast, error) {
	of := slices.Clone(k.entries)
	for _, e := range []*entrant{a, b} {
		if !slices.Contains(of, e) {
			of = append(of, e)
		}
	}
	return k.table(of, figure).Contrast(slices.Index(of, b), slices.Index(of, a), level)
}

// against compares two entrants; family is the number of comparisons it is one of.
func (c *course) against(a, b *entrant, workload string, family int) (Comparison, error) {
	level := 1 - (1-confidence)/float64(family)
	d, err := c.contest.contrast(a, b, c.objectiveOn(workload), level)
	out := Comparison{Label: a.name, Against: b.name, Workload: cmp.Or(workload, c.space.Primary), Trials: a.ids(), Others: b.ids(), Family: family}
	if err != nil {
		return out, err
	}
	out.Ratio = Span{math.Exp(d.Diff), math.Exp(d.Low), math.Exp(d.High)}
	out.P = min(1, d.P*float64(family))
	out.Shown = math.Expm1(stat.Detectable(d.SD, max(1, d.N), d.DF, level, power))
	out.Verdict = c.verdictOf(out.Ratio, workload == "" && b == c.baseEntrant())
	out.Sentence = c.say(out)
	if !slices.Contains(c.contest.entries, a) {
		out.Sentence += ", launched after the others"
	}
	return out, nil
}

// baseEntrant is the baseline in the contest; nil where the search had no figure of it.
func (c *course) baseEntrant() *entrant {
	if !c.based() {
		return nil
	}
	return c.contest.entries[0]
}

// verdictOf reads an interval. Where only a gain is asked for, a loss need not be
// ruled out to say that there is none; elsewhere no difference is shown only where
// neither a gain nor a loss that matters is left.
func (c *course) verdictOf(s Span, gain bool) string {
	matters := 1 + c.objective.MinGain
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

func (e *entrant) ids() []int {
	var out []int
	for _, round := range slices.Sorted(maps.Keys(e.rounds)) {
		out = append(out, e.rounds[round].Trial)
	}
	return out
}

// won is the entrant to recommend by the confirmation; nil: the baseline. One is
// better that is shown to beat the baseline, on the objective or on a bound that
// the baseline misses. Of two that both do the better goes first, and of two between
// which there is less than matters the one that sets less.
func (c *course) won() *entrant {
	base := c.baseEntrant()
	var best *entrant
	for _, e := range c.rest() {
		if c.beatsBase(e, base) && (best == nil || c.preferred(e, best)) {
			best = e
		}
	}
	return best
}

// rest are the entrants beside the baseline.
func (c *course) rest() []*entrant {
	if c.based() {
		return c.contest.entries[1:]
	}
	return c.contest.entries
}

// fewest is how many launches a recommendation rests on at least.
const fewest = 2

// beatsBase reports whether an entrant may be recommended in the baseline's place:
// it misses no bound that the baseline meets, and is shown to be nearer to one that
// the baseline misses, or to be better.
func (c *course) beatsBase(e, base *entrant) bool {
	if c.barred(e.config) || len(e.rounds) < fewest {
		return false
	}
	if base == nil {
		return true
	}
	mine, theirs := c.scoreOfEntrant(e), c.scoreOfEntrant(base)
	switch {
	case theirs.class == none || mine.class < theirs.class:
		return false
	case c.meetsMore(e, base):
		return true
	case mine.class == missing && mine.miss > theirs.miss && c.nearer(base, e):
		return false
	}
	d, err := c.against(e, base, "", c.family())
	return err == nil && d.Verdict == Better
}

// preferred reports whether a goes before b, which beats the baseline too.
func (c *course) preferred(a, b *entrant) bool {
	x, y := c.scoreOfEntrant(a), c.scoreOfEntrant(b)
	if x.class != y.class || x.class == missing && x.miss != y.miss {
		return c.bounds.prefer(x, y)
	}
	d, err := c.against(a, b, "", c.family())
	if err != nil {
		return false
	}
	switch matters := 1 + c.objective.MinGain/2; {
	case d.Ratio.Value > matters:
		return true
	case d.Ratio.Value < 1/matters:
		return false
	}
	return c.guide.Settings(a.config) < c.guide.Settings(b.config)
}

// family is the number of comparisons that the confirmation makes. What is left of
// the winner after the ablation is no further one: it is compared only once the
// winner is shown to be better, and on launches of its own. Then it cannot equal
// both the baseline and the winner, so that as many comparisons as before can err.
func (c *course) family() int {
	n := len(c.contest.entries)
	return max(1, n*(n-1)/2)
}

// gainOf is a ratio for a reader: in percent where more is better, else how many times
// better, since "+79 %" of a latency reads as a loss.
func (c *course) gainOf(s Span) string {
	if c.objective.Higher {
		return fmt.Sprintf("%s [%s, %s]", percent(s.Value-1), bare(s.Low-1), bare(s.High-1))
	}
	return fmt.Sprintf("%.3gx better [%.3g, %.3g]", s.Value, s.Low, s.High)
}

// bare is percent without its unit.
func bare(gain float64) string { return strings.TrimSuffix(percent(gain), " %") }

// say is a comparison's verdict for a reader.
func (c *course) say(d Comparison) string {
	gain := c.gainOf(d.Ratio)
	n := fmt.Sprintf("%d and %s", len(d.Trials), count(len(d.Others), "launch"))
	if len(d.Trials) == len(d.Others) {
		n = count(len(d.Trials), "launch") + " each"
	}
	on, matters := c.objective.Metric, 1+c.objective.MinGain
	switch {
	case d.Verdict == Better:
		return fmt.Sprintf("better than %s: %s on %s (%s)", d.Against, gain, on, n)
	case d.Verdict == Worse:
		return fmt.Sprintf("worse than %s: %s on %s (%s)", d.Against, gain, on, n)
	case d.Verdict == NoDifference && d.Ratio.Low > 1:
		return fmt.Sprintf("better than %s by less than the %s %% that matters: %s on %s (%s)", d.Against, strings.TrimPrefix(bare(matters-1), "+"), gain, on, n)
	case d.Verdict == NoDifference && d.Ratio.Low <= 1/matters:
		return fmt.Sprintf("not better than %s by what matters: %s on %s (%s)", d.Against, gain, on, n)
	case d.Verdict == NoDifference:
		return fmt.Sprintf("no difference shown to %s that matters: %s on %s (%s)", d.Against, gain, on, n)
	}
	return fmt.Sprintf("the budget was too small: %s on %s against %s, and %s show an effect of %s or more 4 times in 5", gain, on, d.Against, n, percent(d.Shown))
}
