package tune

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// conclude says what the race found as far as it came.
func (c *course) conclude() Result {
	r := Result{Evidence: c.evidence()}
	for _, t := range c.base {
		if r.Baseline == 0 {
			r.Baseline = t.id()
		}
	}
	r.Winner = r.Baseline
	if l := c.leader(); l != nil && !maps.Equal(l.trial.Config, Change{}.Apply(c.space.Baseline)) {
		r.Challenger = l.trial.Trial
		if !c.based() {
			r.Winner = 0
		}
	}
	if k := c.contest; k != nil && c.open == nil {
		c.picks(&r)
	} else if c.open == nil && c.based() {
		r.Gain = new(0.0)
	}
	if e := c.recommended(); e != nil {
		r.Misses = c.missesOf(e)
		r.Evidence.Constraints = c.kept(e)
	} else if r.Winner > 0 {
		r.Misses = c.bounds.Misses(c.trials[r.Winner-1].merged)
	}
	r.Verdict = c.verdict(r)
	return r
}

// recommended is the entrant that is recommended, the baseline where no other is;
// nil where there is none that was launched again.
func (c *course) recommended() *entrant {
	k := c.contest
	if k == nil || c.open != nil {
		return nil
	}
	e := k.pick
	if e == nil {
		e = c.baseEntrant()
	}
	if e == nil || len(e.rounds) == 0 {
		return nil
	}
	return e
}

// picks names what is recommended, and its gain.
func (c *course) picks(r *Result) {
	k := c.contest
	base := c.baseEntrant()
	if base != nil {
		r.BaselineConfirm = base.middle()
	}
	r.ChallengerConfirm = c.rest()[0].middle()
	r.Confirmed = (r.ChallengerConfirm > 0 || k.pick != nil) && (base == nil || r.BaselineConfirm > 0)
	if k.pick == nil {
		r.WinnerConfirm = r.BaselineConfirm
		if base != nil {
			r.Gain = new(0.0)
		}
		return
	}
	r.WinnerConfirm = k.pick.middle()
	r.Winner = r.WinnerConfirm
	for _, t := range c.trials {
		if maps.Equal(t.Config, k.pick.config) && t.measured() {
			r.Winner = t.Trial
			break
		}
	}
	if base == nil {
		return
	}
	if d, err := c.against(k.pick, base, "", c.family()); err == nil {
		r.Gain = new(d.Ratio.Value - 1)
		r.Interval = &Span{d.Ratio.Value - 1, d.Ratio.Low - 1, d.Ratio.High - 1}
	}
}

// middle is the launch with the median figure, which stands for an entrant where
// one launch is shown; 0 for none.
func (e *entrant) middle() int {
	trials := e.trials()
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

// verdict is the race's conclusion in one sentence.
func (c *course) verdict(r Result) string {
	tried := c.tried()
	switch {
	case c.open != nil:
		return c.soFar()
	case c.leader() == nil && len(c.base) > 0:
		return fmt.Sprintf("nothing could be measured: the baseline ended %s", c.bounds.note(c.base[0], c.space.Primary))
	case c.contest == nil && !c.based():
		return "nothing is recommended: what could be measured is not acceptable, and the baseline ended " + c.bounds.note(c.base[0], c.space.Primary)
	case c.contest == nil:
		return fmt.Sprintf("no difference shown: of %s none could be measured and may be recommended%s", count(tried, "other configuration"), missed(r))
	case !c.based():
		return c.unopposed(r)
	}
	k := c.contest
	if k.pick == nil {
		return c.unbeaten(r, tried)
	}
	d, err := c.against(k.pick, k.entries[0], "", c.family())
	if err == nil && d.Verdict == Better {
		return fmt.Sprintf("%s is %s; the best of %s%s", k.pick.name, d.Sentence, count(tried, "other configuration"), c.lost(r))
	}
	return c.closer(k.pick, d, err) + c.lost(r)
}

// closer is the verdict by which an entrant is recommended for a bound.
func (c *course) closer(e *entrant, d Comparison, err error) string {
	b := c.nearest(e, c.baseEntrant())
	how := func(e *entrant) string {
		for _, k := range c.kept(e) {
			if k.Bound == b.String() {
				return k.figure()
			}
		}
		return "no figure"
	}
	does := "comes nearer to"
	if b.Holds(mean(e.trials())) {
		does = "meets"
	}
	text := fmt.Sprintf("%s %s %s than the baseline: %s against %s", e.name, does, b, how(e), how(c.baseEntrant()))
	if does == "meets" {
		text = fmt.Sprintf("%s meets %s, which the baseline misses: %s against %s", e.name, b, how(e), how(c.baseEntrant()))
	}
	if err == nil {
		text += fmt.Sprintf("; it is at %s on %s", c.gainOf(d.Ratio), c.objective.Metric)
	}
	return text
}

// unbeaten is the verdict by which the baseline stays. It speaks of the entrant
// that led the search, or of the next where that one has no figure.
func (c *course) unbeaten(r Result, tried int) string {
	base, best := c.contest.entries[0], c.rest()[0]
	for _, e := range c.rest() {
		if len(best.rounds) == 0 && len(e.rounds) > 0 {
			best = e
		}
	}
	of := count(tried, "other configuration")
	d, err := c.against(best, base, "", c.family())
	switch {
	case len(base.rounds) == 0:
		return fmt.Sprintf("not confirmed: %s led the search, but the baseline measured again ended %s, so nothing could be compared and the baseline stays", c.rest()[0].name, c.bounds.note(base.failed, c.space.Primary))
	case len(best.rounds) == 0:
		return fmt.Sprintf("not confirmed: %s led the search, but measured again it ended %s, so the baseline stays%s", best.name, c.bounds.note(best.failed, c.space.Primary), missed(r))
	case len(best.rounds) < fewest:
		return fmt.Sprintf("not confirmed: of the launches to confirm %s only one has figures, so the baseline stays%s", best.name, missed(r))
	case err != nil:
		return fmt.Sprintf("not confirmed: %s led the search, but %s, so the baseline stays%s", best.name, err, missed(r))
	case c.barred(best.config) || c.scoreOfEntrant(best).class < c.scoreOfEntrant(base).class || d.Verdict == Better:
		return fmt.Sprintf("no other configuration is recommended: %s, the best of %s, %s, so the baseline stays%s", best.name, of, c.obstacle(best), missed(r))
	case d.Verdict == TooSmall:
		return fmt.Sprintf("%s%s; the baseline stays%s", best.name+": "+d.Sentence, c.needed(d), missed(r))
	}
	return fmt.Sprintf("no gain shown: %s, the best of %s, is %s; the baseline stays%s", best.name, of, d.Sentence, missed(r))
}

// needed says how many launches the effect that was seen would need.
func (c *course) needed(d Comparison) string {
	if d.Ratio.Value <= 1 {
		return ""
	}
	return fmt.Sprintf(" (an effect of the size seen, %s, needs more launches)", percent(d.Ratio.Value-1))
}

// unopposed is the verdict without a measured baseline.
func (c *course) unopposed(r Result) string {
	no := fmt.Sprintf("the baseline ended %s, so no gain can be given", c.bounds.note(c.base[0], c.space.Primary))
	k := c.contest
	if k.pick == nil {
		return "nothing is recommended: " + no + ", and what led could not be measured again"
	}
	figures := mean(k.pick.trials())
	return fmt.Sprintf("%s is the best of %s that could be measured, with %s of %s; %s%s",
		k.pick.name, count(c.tried(), "configuration"), number(figures[c.objective.Metric]), c.objective.Metric, no, c.lost(r))
}

func (c *course) soFar() string {
	after := "not finished after " + count(len(c.trials), "trial")
	lead := c.leader()
	switch {
	case lead == nil:
		return after + ": nothing is measured yet"
	case maps.Equal(lead.trial.Config, Change{}.Apply(c.space.Baseline)):
		return after + ": nothing beats the baseline yet"
	}
	return fmt.Sprintf("%s: %s leads, not confirmed", after, lead.trial.name)
}

// lost ends a verdict with hold-outs that the winner loses, and constraints it
// misses.
func (c *course) lost(r Result) string {
	var worse, others []string
	for _, d := range r.Evidence.HoldOuts {
		switch d.Verdict {
		case Worse:
			worse = append(worse, fmt.Sprintf("%s (%s)", d.Workload, percent(d.Ratio.Value-1)))
		case Missed, Unknown:
			others = append(others, fmt.Sprintf("on %s it %s", d.Workload, d.Sentence))
		}
	}
	s := ""
	if len(worse) > 0 {
		s = "; it loses on " + strings.Join(worse, ", ")
	}
	for _, text := range others {
		s += "; " + text
	}
	if w := c.wavers(c.contest.pick); len(w) > 0 {
		s += "; not every launch meets " + joined(w)
	}
	return s + missed(r)
}

func missed(r Result) string {
	if len(r.Misses) == 0 {
		return ""
	}
	return "; not every SLO is met: " + strings.Join(r.Misses, ", ")
}

// tried counts the configurations of the search that have figures, the baseline
// apart.
func (c *course) tried() int {
	seen := map[string]bool{}
	for _, t := range c.trials {
		if t.Pass == 0 && t.Stage != BaselineStage && t.measured() {
			seen[t.Config.key()] = true
		}
	}
	return len(seen)
}

// evidence is what stands behind the conclusion.
func (c *course) evidence() *Evidence {
	e := &Evidence{Steps: c.steps, Accuracy: c.accuracy(), Stopped: c.why}
	e.Noise = Noise{Within: c.within()}
	if e.Noise.Between, e.Noise.Launches = c.scatter(); e.Noise.Launches == 0 {
		e.Noise.Between, e.Noise.Launches = c.repeated()
	}
	m := c.model()
	for _, r := range c.arms {
		e.Candidates = append(e.Candidates, c.armEnd(r, m))
	}
	e.Predictions = c.foretold()
	if k := c.contest; k != nil {
		e.Comparisons = c.comparisons()
		e.HoldOuts = c.heldOut()
		for _, a := range k.ablated {
			out := Ablation{Setting: a.setting.Label, Gain: a.span, Dropped: a.dropped, Reason: a.reason}
			if a.without != nil && len(a.without.rounds) == 1 {
				out.Trial = a.without.ids()[0]
			}
			e.Ablation = append(e.Ablation, out)
		}
	}
	e.Phases = c.phases()
	return e
}

// scatter is the noise between the launches of a contest, and how many it is of.
func (c *course) scatter() (sd float64, n int) {
	k := c.contest
	if k == nil || len(k.entries) < 2 {
		return 0, 0
	}
	d, err := k.contrast(k.entries[1], k.entries[0], c.objectiveOn(""), confidence)
	if err != nil {
		return 0, 0
	}
	for _, e := range k.entries {
		n += len(e.rounds)
	}
	return d.SD, n
}

// repeated is the noise between equal launches of the search, without what was
// believed before them, and how many it is of.
func (c *course) repeated() (sd float64, n int) {
	believed, df, n := c.spread()
	if n == 0 || df <= priorLaunches {
		return 0, 0
	}
	return math.Sqrt(max(0, believed*believed*df-priorSpread*priorSpread*priorLaunches) / (df - priorLaunches)), n
}

// comparisons are those of the confirmation, corrected for their number by
// Bonferroni's inequality, and what is left of the winner after the ablation against
// the baseline and the winner.
func (c *course) comparisons() []Comparison {
	k := c.contest
	var out []Comparison
	add := func(a, b *entrant) {
		if d, err := c.against(a, b, "", c.family()); err == nil {
			out = append(out, c.bounded(d, a, b))
		}
	}
	for i, a := range k.entries {
		for _, b := range k.entries[:i] {
			add(a, b)
		}
	}
	if k.reduced != nil && !slices.Contains(k.entries, k.reduced) {
		if base := c.baseEntrant(); base != nil {
			add(k.reduced, base)
		}
		add(k.reduced, k.winner)
	}
	return out
}

// bounded is a comparison in which bounds go before the objective.
func (c *course) bounded(d Comparison, a, b *entrant) Comparison {
	if c.scoreOfEntrant(a).class < c.scoreOfEntrant(b).class {
		d.Verdict, d.Sentence = Missed, c.obstacle(a)+"; "+d.Sentence
	}
	return d
}

// heldOut is the recommendation against the baseline on each workload that the
// search is not judged by. One without figures is there too: what is not known is
// no success.
func (c *course) heldOut() []Comparison {
	k, base := c.contest, c.baseEntrant()
	if k.pick == nil || base == nil {
		return nil
	}
	var out []Comparison
	for _, w := range c.holdOuts() {
		d, err := c.against(k.pick, base, w, len(c.holdOuts()))
		if err != nil {
			d.Verdict, d.Sentence, d.P = Unknown, "cannot be compared: "+err.Error(), 1
		}
		if misses := c.missesOn(w, k.pick, base); len(misses) > 0 {
			d.Verdict, d.Sentence = Missed, joined(append(misses, d.Sentence))
		}
		out = append(out, d)
	}
	return out
}

// accuracy are the verdicts of the guard. What is recommended has one of its own:
// where another of its numerics was asked, that one's.
func (c *course) accuracy() []PairedTest {
	e := c.recommended()
	if e == nil || c.objective.Guard == nil || c.alike(e.config) {
		return c.verdicts
	}
	asked := c.fresh(c.guide.Numerics(e.config))
	if asked == nil || asked.name == e.name {
		return c.verdicts
	}
	out := slices.Clone(c.verdicts)
	for _, p := range slices.Backward(c.verdicts) {
		if p.Label == asked.name {
			p.Label, p.Sentence = e.name, fmt.Sprintf("%s; %s was asked, which answers alike", p.Sentence, asked.name)
			return append(out, p)
		}
	}
	return out
}

func (c *course) armEnd(r *runner, m *surrogate) Outcome {
	out := Outcome{Label: r.Label, Config: r.Config, Prior: r.Prior, Reason: r.Refused}
	if r.point.known {
		out.Predicted = new(math.Exp(r.point.x))
		mean, _ := m.at(r.point)
		out.Expected = new(math.Exp(mean))
	}
	for _, t := range c.trials {
		if t.Pass == 0 && maps.Equal(t.Config, r.Config) {
			out.Trials = append(out.Trials, t.Trial)
		}
	}
	lead := c.launches(r.Config, 0)
	share := 0.0
	if len(lead) == 0 {
		share = c.short()
		lead = c.launches(r.Config, share)
	}
	switch {
	case r.Refused != "":
		out.State = StateRefused
	case len(lead) > 0:
		out.State, out.Reason = StateNotWorse, ""
		out.Measured = c.measured(r.Config, share)
		if why := c.worse(lead[0]); why != "" {
			out.State, out.Reason = StateEliminated, why
		} else if c.barred(r.Config) {
			out.State, out.Reason = StateEliminated, "its answers are not those of the baseline"
		}
		if c.carried(r) {
			out.State, out.Reason = StateRefined, ""
		}
	case len(out.Trials) > 0:
		out.State = StateFailed
		out.Reason = c.bounds.note(c.trials[out.Trials[0]-1], c.space.Primary)
	case r.pruned:
		out.State = StatePruned
		out.Reason = fmt.Sprintf("predicted at %s of the baseline, more than %d times worse than the best", percentage(math.Exp(r.point.x)), hopeless)
	case c.barred(r.Config):
		out.State, out.Reason = StateEliminated, "its numerics were rejected by the accuracy guard"
	default:
		out.State = StateUntried
		out.Reason = "no launch was left that it was worth"
	}
	return out
}

// carried reports whether an arm, or what was made of it, was refined or confirmed.
func (c *course) carried(r *runner) bool {
	return slices.ContainsFunc(c.trials, func(t *trial) bool {
		return t.origin.arm == r.origin.arm && len(t.origin.changes) >= len(r.origin.changes) &&
			(t.Stage == RefineStage && len(t.origin.changes) > len(r.origin.changes) || t.Stage == ConfirmStage)
	})
}

// foretold is how well the predictions met the measurements, by engine.
func (c *course) foretold() []PredictionFit {
	by := map[string][]point{}
	seen := map[string]bool{}
	for _, t := range c.trials {
		p, ref := c.point(t.Config), c.reference(t.Share)
		k := t.Config.key()
		if t.Pass != 0 || !t.measured() || !p.known || math.IsNaN(ref) || seen[k] || t.Stage == BaselineStage {
			continue
		}
		seen[k] = true
		p.y = t.log - ref
		by[t.Config[engineParameter]] = append(by[t.Config[engineParameter]], p)
	}
	var out []PredictionFit
	for _, engine := range slices.Sorted(maps.Keys(by)) {
		out = append(out, foretell(engine, by[engine]))
	}
	return out
}

// phases is the ledger.
func (c *course) phases() []Phase {
	var out []Phase
	lead := math.NaN()
	if l := c.leader(); l != nil {
		lead = l.mean
	}
	for i, m := range c.marks {
		end, after := len(c.trials), lead
		if i+1 < len(c.marks) {
			end, after = c.marks[i+1].trial, c.marks[i+1].lead
		}
		p := Phase{Name: m.name, Launches: end - m.trial}
		for _, t := range c.trials[m.trial:end] {
			p.Seconds += t.end.Seconds
		}
		before := m.lead
		if math.IsNaN(before) {
			before = 0
		}
		if !math.IsNaN(after) && (m.name == RaceStage || m.name == RepairStage || m.name == FinalStage || m.name == RefineStage) {
			p.Gain = new(math.Expm1(after - before))
		}
		out = append(out, p)
	}
	return out
}
