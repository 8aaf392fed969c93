package tune

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
)

// ablation is a setting of the winner, left out.
type ablation struct {
	setting Change
	without *finalist // nil: not launched
	span    *Span     // of having it
	dropped bool
	reason  *Finding
}

// ablate leaves out each setting of the winner once, and launches what is left
// when all that brought nothing has gone. It is recommended in the winner's place
// where it beats the baseline too and is not worse by what matters.
func (s *raceState) ablate(k *confirmation) {
	for _, setting := range s.removals(k.winner.config) {
		a := &ablation{setting: setting}
		k.ablations = append(k.ablations, a)
		config := setting.Apply(k.winner.config)
		if f := k.find(config); f != nil {
			a.without = f
		} else if why := s.search.Refuse(config); why != "" {
			a.reason = &Finding{Kind: NeededRefused, Reason: why}
			continue
		} else if s.left() < 1 || k.drops() && s.left() <= fewest {
			a.reason = &Finding{Kind: NotTried} // or kept for the check of what was dropped
			continue
		} else {
			a.without = newFinalist("without "+setting.Label, k.winner.origin.with(Change{Label: "without " + setting.Label, Set: setting.Set}), config)
			s.launchAgain(a.without, AblateStage, 1)
		}
		k.weigh(a)
	}
	s.check(k)
}

// removals are a configuration's settings, those first that are predicted to bring
// least.
func (s *raceState) removals(config Config) []Change {
	out := slices.Clone(s.search.Removals(config))
	slices.SortStableFunc(out, func(a, b Change) int {
		return -cmp.Compare(s.point(a.Apply(config)).X, s.point(b.Apply(config)).X)
	})
	return out
}

// drops reports whether a setting has been found to bring nothing.
func (k *confirmation) drops() bool {
	return slices.ContainsFunc(k.ablations, func(a *ablation) bool { return a.dropped })
}

// weigh decides whether a setting stays: it goes where it brings less than half of
// what matters and is not shown to bring anything.
func (k *confirmation) weigh(a *ablation) {
	if len(a.without.rounds) == 0 {
		a.reason = &Finding{Kind: NeededEnded, Cause: k.note(a.without.failed)}
		return
	}
	d, err := k.compare(k.winner, a.without, "", 1)
	if err != nil {
		a.reason = &Finding{Kind: NotDecided, Reason: err.Error()}
		return
	}
	a.span = &Span{d.Ratio.Value - 1, d.Ratio.Low - 1, d.Ratio.High - 1}
	switch {
	case k.score(a.without).class < k.score(k.winner).class:
		a.reason = &Finding{Kind: NeededBounds, Cause: k.obstacle(a.without)}
	case a.span.Low > 0:
		a.reason = &Finding{Kind: KeptGain, Value: &a.span.Value}
	case a.span.Value >= k.objective.MinGain/2:
		a.reason = &Finding{Kind: KeptSeeming, Value: &a.span.Value}
	default:
		a.dropped = true
		a.reason = &Finding{Kind: DroppedNoGain, Value: &a.span.Value}
	}
}

// check launches the winner without all that was dropped: in every round of the
// confirmation, also where the ablation launched the same, as that launch is the
// reason why it is here. Where it is worse, or the budget does not allow the launches
// that a recommendation rests on, everything stays.
func (s *raceState) check(k *confirmation) {
	if !k.drops() {
		return
	}
	s.begin(CheckStage)
	without := Change{Set: Config{}}
	var gone []string
	for _, a := range k.ablations {
		if a.dropped {
			maps.Copy(without.Set, a.setting.Set)
			gone = append(gone, a.setting.Label)
		}
	}
	without.Label = "without " + strings.Join(gone, ", ")
	config := without.Apply(k.winner.config)
	if why := s.search.Refuse(config); why != "" {
		k.keepAll(Finding{Kind: TogetherRefused, Reason: why})
		return
	}
	if k.reduced = k.find(config); k.reduced == nil {
		if s.left() < fewest {
			k.keepAll(Finding{Kind: TogetherUntried})
			return
		}
		from := k.winner.origin.with(without)
		k.reduced = newFinalist(from.String(), from, config)
		for round := 1; round <= k.rounds && k.reduced.failed == nil && s.left() > 0; round++ {
			s.launchAgain(k.reduced, CheckStage, round)
		}
	}
	k.decideReduced()
}

// decideReduced recommends what is left of the winner, or the winner.
func (k *confirmation) decideReduced() {
	// At 95 % for this one alone: to keep a setting claims nothing.
	d, err := k.compare(k.reduced, k.winner, "", 1)
	switch won, left := k.score(k.winner), k.score(k.reduced); {
	case k.reduced.failed != nil:
		k.keepAll(Finding{Kind: TogetherEnded, Cause: k.note(k.reduced.failed)})
	case left.class < won.class || left.class == missing && left.miss > won.miss && k.nearestBound(k.winner, k.reduced) != nil:
		k.keepAll(Finding{Kind: TogetherBounds, Cause: k.obstacle(k.reduced)})
	case err != nil:
		k.keepAll(Finding{Kind: NotDecided, Reason: err.Error()})
	case math.Log(d.Ratio.Value) < -math.Log1p(k.objective.MinGain)/2 || d.Ratio.High < 1:
		k.keepAll(Finding{Kind: TogetherWorse, Value: new(d.Ratio.Value - 1)})
	case !k.beatsBaseline(k.reduced):
		k.keepAll(Finding{Kind: TogetherNoGain})
	default:
		k.pick = k.reduced
	}
}

// keepAll takes back what was to be dropped.
func (k *confirmation) keepAll(why Finding) {
	for _, a := range k.ablations {
		if a.dropped {
			a.dropped, a.reason = false, &why
		}
	}
	k.pick = k.winner
}
