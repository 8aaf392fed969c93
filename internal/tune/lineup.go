package tune

import (
	"math"
	"slices"

	"perflab/internal/stat"
)

// lineup is what may be confirmed, in order.
type lineup struct {
	*model
	all  []standing
	sure bool // two rounds show the gain of the first
}

// confirmable are what is thought best, then what was measured best, should the two differ, then the
// rest in order.
func confirmable(m *model) lineup {
	all := slices.DeleteFunc(m.standings(), func(st standing) bool { return m.isBase(st.trial.Config) || m.failedGuard(st.trial.Config) })
	best, most := 0, math.Inf(-1)
	for i, st := range all {
		gain := meanLog(m.launches(st.trial.Config, st.trial.Share)) - m.reference(st.trial.Share)
		if st.score.keepsAs(all[0].score) && gain > most {
			best, most = i, gain
		}
	}
	if best > 1 {
		raise(all[1:], best-1)
	}
	l := lineup{model: m, all: all}
	l.simplify()
	l.unite()
	l.sure = l.isSure()
	return l
}

// simplify puts what has fewer settings first, of those between which and the first there is less
// than half of what matters.
func (l lineup) simplify() {
	best := 0
	for i, st := range l.all {
		first := l.all[0]
		like := st.score.keepsAs(first.score) && st.mean > first.mean-math.Log1p(l.objective.MinGain)/2
		if like && l.search.Settings(st.trial.Config) < l.search.Settings(l.all[best].trial.Config) {
			best = i
		}
	}
	raise(l.all, best)
}

// unite keeps the first of those that would be confirmed as one.
func (l *lineup) unite() {
	have := map[string]bool{}
	l.all = slices.DeleteFunc(l.all, func(st standing) bool {
		k := l.entrant(st.trial, 0).config.key()
		again := have[k]
		have[k] = true
		return again
	})
}

// entrant is a finalist of what was launched. It need not carry a share of memory that brings nothing by all that is known.
func (l lineup) entrant(t *trial, began int) *finalist {
	for _, k := range l.search.Removals(t.Config) {
		if _, memory := k.Set[memoryParameter]; memory && l.spare(t.Config, k) {
			from := t.origin.without(k)
			return newFinalist(from.String(), from, k.Apply(t.Config), began)
		}
	}
	return newFinalist(t.name, t.origin, t.Config, began)
}

// hardlyLess is the share of its chance to run that a configuration keeps at least without a setting that it may go without.
const hardlyLess = 0.9

// spare reports whether nothing is predicted to change without a setting, and by the launches it may well bring
// nothing and what is left runs. What would be the baseline then keeps it.
func (l lineup) spare(config Config, setting Change) bool {
	less := setting.Apply(config)
	return !l.isBase(less) && l.idleChance(config, setting) > likelyIdle && l.runChance(less) > hardlyLess*l.runChance(config) && l.foretellsAlike(config, less)
}

// raise puts one of some standings before the others.
func raise(all []standing, i int) {
	if i > 0 {
		st := all[i]
		copy(all[1:i+1], all[:i])
		all[0] = st
	}
}

// rivals reports whether a standing may well be better than the first one. What is thought of two
// that are much alike may be wrong about both: they hardly differ.
func (l lineup) rivals(st standing) bool {
	first, half := l.all[0], math.Log1p(l.objective.MinGain)/2
	return st.score.keepsAs(first.score) && l.fit().Against(l.point(first.trial.Config)).Ahead(l.point(st.trial.Config), half) > rivalry
}

// The power with which two rounds show a gain that is sure, and how many times the noise may be what is
// known of it before the confirmation.
const (
	surePower    = 0.9
	unsureSpread = 1.3
)

// spareLaunches are those beside the least that shows something: where one of so few is lost, the rest show nothing.
const spareLaunches = 1

// isSure reports whether the gain of the first is so far above the noise that two rounds show it almost
// surely, even where their interval is one of the widest: then the launches of a third tell more of the
// next best.
func (l lineup) isSure() bool {
	if len(l.all) == 0 || !l.based() || l.asked.Rounds != 0 || l.options.Rounds == fewest || l.all[0].score.class != meeting {
		return false
	}
	looks := min(max(fewest, l.left()/2), mostRounds*fewest)
	level := stat.SequentialConfidence(fewest, looks, fewest, 1-(1-Confidence)/2)
	noise := l.launchSpread()
	above := l.toShow(&l.all[0]) - stat.NormalQuantile(surePower)*noise
	return above >= 0 && above >= stat.HalfWidth(unsureSpread*noise, len(l.model.launches(l.baseConfig(), 0)), level)
}

// launches are what the confirmation takes at least: the rounds of a pair; of a gain that is sure two
// rounds and the spare, or two rounds of three where the second may be the better one, and stands in where a launch is lost.
func (l lineup) launches() int {
	switch {
	case !l.sure:
		return 2 * l.options.Rounds
	case len(l.all) > 1 && l.rivals(l.all[1]):
		return 3 * fewest
	}
	return 2*fewest + spareLaunches
}
