package tune

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"perflab/internal/stat"
)

// ablation is a setting of the winner, left out.
type ablation struct {
	setting Change
	idle    float64   // chance that it brings less than half of what matters, as the search has it
	alone   *finalist // the winner without it alone; nil: not launched
	span    *Span     // of having it, by these launches
	dropped bool
	reason  *Finding
}

// Settings that bring less than half of what matters with so much of a chance are left out
// together, others by themselves. It is below one half where nothing is known of them but
// that the winner has them.
const (
	likelyIdle   = 0.3
	possiblyIdle = 0.1
)

// surelyWorse is the chance to be worse by half of what matters from which on no
// further launch of a reduced command is for it.
const surelyWorse = 0.9

// ablate looks for settings of the winner that bring nothing. The winner without all
// that probably do not is launched in the rounds of the confirmation, as a finalist is, and
// recommended where it beats the baseline too and is not worse; where it is worse, halves
// of them are tried. A setting that the budget does not reach stays: it was
// launched as a part of the winner, and the report says that nothing more is known of it.
func (s *raceState) ablate(k *confirmation) {
	for _, setting := range s.search.Removals(k.winner.config) {
		a := &ablation{setting: setting, reason: &Finding{Kind: NotTried}}
		k.ablations = append(k.ablations, a)
		if why := s.search.Refuse(setting.Apply(k.winner.config)); why != "" {
			a.reason = &Finding{Kind: NeededRefused, Reason: why}
			continue
		}
		a.idle = s.idleChance(k.winner.config, setting)
	}
	for groups := k.groups(); len(groups) > 0; {
		group := groups[0]
		groups = groups[1:]
		if s.left() < fewest {
			break
		}
		if !s.leaveOut(k, group) && len(group) > 1 {
			half := (len(group) + 1) / 2
			groups = slices.Insert(groups, 0, group[:half], group[half:])
		}
	}
	s.runHoldOuts(k)
}

// idleChance is the chance that a setting brings less than half of what matters, by what
// the search predicts and measured. The two configurations differ in little: what is not
// known of the one is mostly not known of the other either.
func (m *model) idleChance(config Config, without Change) float64 {
	fit := m.fit()
	with, a := fit.At(m.point(config))
	left, b := fit.At(m.point(without.Apply(config)))
	half := math.Log1p(m.objective.MinGain) / 2
	sd := math.Sqrt(max(math.Abs(a*a-b*b), half*half))
	return stat.NormalCDF((half - (with - left)) / sd)
}

// groups are the settings that may go, those that go first together.
func (k *confirmation) groups() [][]*ablation {
	open := slices.DeleteFunc(slices.Clone(k.ablations), func(a *ablation) bool { return a.reason.Kind != NotTried || a.idle < possiblyIdle })
	slices.SortStableFunc(open, func(a, b *ablation) int { return -cmp.Compare(a.idle, b.idle) })
	n := slices.IndexFunc(open, func(a *ablation) bool { return a.idle < likelyIdle })
	if n < 0 {
		n = len(open)
	}
	var out [][]*ablation
	if n > 0 {
		out = append(out, open[:n])
	}
	for _, a := range open[n:] {
		out = append(out, []*ablation{a})
	}
	return out
}

// leaveOut launches what is recommended so far without a group of settings, and
// recommends it where they bring nothing. It reports whether they are gone.
func (s *raceState) leaveOut(k *confirmation, group []*ablation) bool {
	without := Change{Set: Config{}}
	var names []string
	for _, a := range group {
		maps.Copy(without.Set, a.setting.Set)
		names = append(names, a.setting.Label)
	}
	without.Label = "without " + strings.Join(names, ", ")
	config := without.Apply(k.pick.config)
	if why := s.search.Refuse(config); why != "" {
		k.keep(group, Finding{Kind: TogetherRefused, Reason: why})
		return false
	}
	f := k.find(config)
	if at := slices.IndexFunc(k.reduced, func(f *finalist) bool { return maps.Equal(f.config, config) }); at >= 0 {
		k.keep(group, *k.reduced[at].unfit) // the other half went since
		return false
	}
	if f == nil {
		from := k.pick.origin.with(without)
		f = newFinalist(from.String(), from, config, 0)
		k.reduced = append(k.reduced, f)
	}
	f.unfit = s.launchReduced(k, f)
	if len(group) == 1 && k.pick == k.winner {
		group[0].alone = f
		if d, err := k.compareAlone(k.winner, f); err == nil {
			group[0].span = &Span{d.Ratio.Value - 1, d.Ratio.Low - 1, d.Ratio.High - 1}
		}
	}
	if f.unfit != nil {
		k.keep(group, *f.unfit)
		return false
	}
	k.pick = f
	brings := &Finding{Kind: DroppedNoGain, N: len(group)}
	if d, err := k.compareAlone(k.winner, f); err == nil {
		brings.Value = new(d.Ratio.Value - 1)
	}
	for _, a := range group {
		a.dropped, a.reason = true, brings
	}
	return true
}

// keep says why settings stay.
func (k *confirmation) keep(group []*ablation, why Finding) {
	why.N = len(group)
	if a := group[0]; len(group) == 1 {
		switch {
		case why.Kind == TogetherRefused:
			why.Kind = NeededRefused
		case why.Kind == TogetherEnded:
			why.Kind = NeededEnded
		case why.Kind == TogetherBounds:
			why.Kind = NeededBounds
		case why.Kind == TogetherWorse && a.span != nil && a.span.Low > 0:
			why = Finding{Kind: KeptGain, Value: &a.span.Value}
		case why.Kind == TogetherWorse && a.span != nil:
			why = Finding{Kind: KeptSeeming, Value: &a.span.Value}
		}
	}
	for _, a := range group {
		a.reason = &why
	}
}

// launchReduced launches a reduced command in the rounds of the confirmation, and where
// they do not tell with the winner in further ones, until it is known whether it may take
// the winner's place; nil: it may.
func (s *raceState) launchReduced(k *confirmation, f *finalist) *Finding {
	why := &Finding{Kind: TogetherUntried}
	for round := 1; ; round++ {
		if f.failed != nil && f.failed.end.Status == Refused { // in the confirmation, or now
			return &Finding{Kind: TogetherEnded, Cause: k.note(f.failed)}
		}
		if round > k.most {
			break
		}
		last := round
		of := []*finalist{f}
		if round > k.rounds {
			of = append(of, k.winner)
		}
		if f == k.baseline() || s.left() < len(of) { // what the baseline is known by is not added to
			of = nil
		}
		if of == nil && round > k.rounds {
			break
		}
		f.out = false                                     // one that fell behind, and is the simpler one
		if of != nil && s.several() && round < k.rounds { // as many as are made before anything is looked at
			last = max(round, min(k.least, k.rounds, round-1+s.left()))
		}
		s.launchRounds(of, CheckStage, round, last, func(at int) bool { return at > round || len(f.rounds) > 0 })
		if t := k.winner.rounds[round]; t != nil && round > k.rounds {
			delete(k.winner.rounds, round)
			k.winner.more[round] = t
		}
		d, err := k.contrast(f, k.winner, k.objectiveOn(""), Confidence)
		if half := math.Log1p(k.objective.MinGain) / 2; err == nil && d.Below(-half) > surelyWorse {
			return &Finding{Kind: TogetherWorse, Value: new(math.Expm1(d.Diff))}
		}
		if f.lost >= mostLost {
			return &Finding{Kind: TogetherLost, Cause: k.note(f.failed)}
		}
		if len(f.rounds) >= min(k.least, k.rounds) || s.left() < 1 && len(f.rounds) >= fewest {
			if why = k.unfit(f); why == nil {
				return nil
			}
		}
		round = last
	}
	return why
}

// unfit says why a reduced command may not take the winner's place; nil: it may.
func (k *confirmation) unfit(f *finalist) *Finding {
	d, err := k.compareAlone(f, k.winner)
	switch won, left := k.score(k.winner), k.score(f); {
	case left.class < won.class || left.class == missing && left.miss > won.miss && k.nearestBound(k.winner, f) != nil:
		return &Finding{Kind: TogetherBounds, Cause: k.obstacle(f)}
	case err != nil:
		return &Finding{Kind: NotDecided, Reason: err.Error()}
	case math.Log(d.Ratio.Value) < -math.Log1p(k.objective.MinGain)/2 || d.Ratio.High < 1:
		return &Finding{Kind: TogetherWorse, Value: new(d.Ratio.Value - 1)}
	case !k.beatsBaseline(f):
		return &Finding{Kind: TogetherNoGain}
	}
	return nil
}

// runHoldOuts launches the recommendation and the baseline again where too few of their
// launches ran the hold-outs to compare them by.
func (s *raceState) runHoldOuts(k *confirmation) {
	base := k.baseline()
	if base == nil || len(s.holdOuts()) == 0 {
		return
	}
	pair := []*finalist{base, k.pick}
	for n := range fewest {
		lacks := slices.ContainsFunc(pair, func(f *finalist) bool { return s.ranHoldOuts(f) < fewest })
		if !lacks || s.left() < len(pair) {
			return
		}
		if n == 0 {
			s.begin(HoldOutStage)
		}
		round := k.rounds + 1 + n
		of := []*finalist{newFinalist(base.name, base.origin, base.config, 0), newFinalist(k.pick.name, k.pick.origin, k.pick.config, 0)}
		s.launchRounds(of, HoldOutStage, round, round, func(int) bool { return true })
		for i, f := range of {
			if t := f.rounds[round]; t != nil {
				pair[i].more[round] = t
			}
		}
	}
}

// ranHoldOuts counts the launches of a finalist that ran the hold-outs.
func (h *history) ranHoldOuts(f *finalist) int {
	n := 0
	for _, round := range []map[int]*trial{f.rounds, f.more} {
		for _, t := range round {
			if len(t.Workloads) > len(h.workloads()) {
				n++
			}
		}
	}
	return n
}
