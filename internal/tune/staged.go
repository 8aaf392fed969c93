package tune

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Staged is the greedy search of the published studies: the baseline first,
// then stage after stage, whose best candidate goes on if it beats the
// incumbent, and at the end baseline and winner launched again.
//
// A candidate is a change of the incumbent its stage began with, and the
// stage is decided when its last candidate is in, so the order of candidates
// decides only between equals: the first goes on, and the incumbent stays
// where the best only equals it. A configuration that was measured or refused
// before is not launched again: its trial stands for it. One that failed or
// was void may be, when another candidate asks for it.
//
// Without a measured baseline the search goes on: candidates change the
// baseline's configuration, and the first stage that measures one has a
// winner with nothing to compare it with.
//
// The confirmation measures baseline and winner once more, in this order, on
// fresh seeds and under every workload. Only a winner that beats the baseline
// there by the same rule is recommended; else the baseline is, and the verdict
// says that no difference was shown.
type Staged struct {
	space     Space
	objective Objective
	budget    Budget
	told      []Observation
	now       *walk // where the observations lead
}

var _ Strategy = (*Staged)(nil)

// NewStaged returns a staged search, or everything that is wrong with what it
// was given.
func NewStaged(s Space, o Objective, b Budget) (*Staged, error) {
	if err := errors.Join(s.Validate(), o.Validate(), b.validate(len(s.Stages) > 0)); err != nil {
		return nil, err
	}
	st := &Staged{space: s, objective: o, budget: b}
	st.now = st.walk()
	return st, nil
}

// Ask returns the trial to measure next.
func (s *Staged) Ask() (Proposal, bool) { return ask(s.now.open) }

// Tell takes the end of the trial that was asked for.
func (s *Staged) Tell(o Observation) {
	s.told = append(s.told, heard(s.now.open, o))
	s.now = s.walk()
}

// Result is what the observations so far say.
func (s *Staged) Result() Result { return s.walk().result }

func ask(open *Proposal) (Proposal, bool) {
	if open == nil {
		return Proposal{}, false
	}
	return open.clone(), true
}

// heard checks that an observation answers the open proposal.
func heard(open *Proposal, o Observation) Observation {
	switch {
	case open == nil:
		panic(fmt.Sprintf("tune: told the end of trial %d when none was asked for", o.Trial))
	case open.Trial != o.Trial:
		panic(fmt.Sprintf("tune: told the end of trial %d when %d was asked for", o.Trial, open.Trial))
	}
	return o.settle()
}

// trial is a proposal with its end and what the objective makes of it.
type trial struct {
	Proposal
	name  string // the labels that led to it, "TensorRT-LLM + FP8"
	end   Observation
	score score

	merged map[string]float64 // of a race: figures of the workloads that it is judged by
	log    float64            // of a race: of the objective, more is better
	origin lineage            // of a race
}

// figures of the primary workload; none for no trial or an unmeasured one.
func (t *trial) figures(primary string) map[string]float64 {
	if !t.measured() {
		return nil
	}
	return t.end.Figures[primary]
}

func (t *trial) measured() bool { return t != nil && t.score.class != none }

// id is the trial's, or 0 when it has no figures.
func (t *trial) id() int {
	if !t.measured() {
		return 0
	}
	return t.Trial
}

// walk retraces the whole search along the observations, up to the first
// trial that has none. Starting over after every observation makes the search
// a plain procedure and its purity plain to see; it costs nothing beside a
// launch.
type walk struct {
	*Staged
	trials []*trial
	open   *Proposal // the trial to measure next

	base, lead           *trial // lead is the incumbent; nil while nothing could be measured
	baseAgain, leadAgain *trial // of the confirmation
	result               Result
}

func (s *Staged) walk() *walk {
	w := &walk{Staged: s}
	if w.baseline() && w.search() {
		w.confirm()
	}
	w.conclude()
	return w
}

// measure proposes a trial or, where its end was told, returns it. It is
// false when the walk ends here.
func (w *walk) measure(p Proposal, name string) (*trial, bool) {
	p.Trial = len(w.trials) + 1
	if p.Trial > len(w.told) {
		w.open = &p
		return nil, false
	}
	end := w.told[p.Trial-1]
	t := &trial{Proposal: p, name: name, end: end}
	t.score = w.objective.score(end.Status, end.Figures[w.space.Primary])
	w.trials = append(w.trials, t)
	return t, true
}

func (w *walk) baseline() bool {
	t, ok := w.measure(Proposal{
		Stage: BaselineStage, Label: BaselineStage,
		Config: Change{}.Apply(w.space.Baseline), Workloads: []string{w.space.Primary},
	}, "the baseline")
	if ok {
		w.base = t
		if t.measured() {
			w.lead = t
		}
	}
	return ok
}

func (w *walk) search() bool {
	for _, st := range w.space.Stages {
		if !w.stage(st) {
			return false
		}
	}
	return true
}

// stage measures every candidate, then decides. One that is not finished is
// recorded as far as it came.
func (w *walk) stage(st Stage) bool {
	before := w.lead
	d := Decision{Stage: st.Name, Before: before.id()}
	var best *trial
	for _, c := range st.Changes {
		t, note, ok := w.try(st.Name, c)
		if !ok {
			w.unfinished(d, len(st.Changes))
			return false
		}
		d.Entries = append(d.Entries, w.entry(c.Label, t, before, note))
		if t == nil {
			continue
		}
		if !slices.Contains(d.Trials, t.Trial) {
			d.Trials = append(d.Trials, t.Trial)
		}
		if t != before && (best == nil || w.objective.prefer(t.score, best.score)) {
			best = t
		}
	}
	if best.measured() && (before == nil || w.objective.beats(best.score, before.score)) {
		w.lead = best
	}
	d.Winner = w.lead.id()
	d.Gain = w.gain(before, w.lead)
	d.Total = w.gain(w.base, w.lead)
	d.Reason = w.reason(before, best)
	w.result.Stages = append(w.result.Stages, d)
	return true
}

func (w *walk) unfinished(d Decision, candidates int) {
	if len(d.Entries) == 0 {
		return
	}
	d.Winner = d.Before
	d.Reason = fmt.Sprintf("not finished: %d of %d candidates are in", len(d.Entries), candidates)
	w.result.Stages = append(w.result.Stages, d)
}

// try measures a candidate, or finds the trial that did; a nil trial comes
// with a note that says why there is none.
func (w *walk) try(stage string, c Change) (t *trial, note string, ok bool) {
	incumbent, name := w.base.Config, c.Label
	if w.lead != nil {
		incumbent = w.lead.Config
		if w.lead != w.base && !c.Replace {
			name = w.lead.name + " + " + c.Label
		}
	}
	config := c.Apply(incumbent)
	if t := w.find(config); t != nil {
		return t, "", true
	}
	if why := w.budget.spent(w.told[:len(w.trials)]); why != "" {
		return nil, why, true
	}
	t, ok = w.measure(Proposal{
		Stage: stage, Label: c.Label, Config: config, Workloads: []string{w.space.Primary},
	}, name)
	if ok && t.measured() && !w.base.measured() && maps.Equal(config, w.base.Config) {
		w.base, t.name = t, w.base.name // a second attempt at the baseline came through
	}
	return t, "", ok
}

// find returns the trial that measured a configuration, or had it refused.
func (w *walk) find(c Config) *trial {
	for _, t := range w.trials {
		settled := t.end.Status == Measured || t.end.Status == Refused
		if settled && maps.Equal(t.Config, c) {
			return t
		}
	}
	return nil
}

func (w *walk) entry(label string, t, before *trial, note string) Entry {
	if t == nil {
		return Entry{Label: label, Note: note}
	}
	return Entry{
		Label: label, Trial: t.Trial,
		Gain: w.gain(before, t), Total: w.gain(w.base, t),
		Note: w.note(t),
	}
}

func (w *walk) gain(before, after *trial) *float64 {
	return w.objective.Gain(before.figures(w.space.Primary), after.figures(w.space.Primary))
}

func (w *walk) confirm() {
	if w.lead == nil {
		return
	}
	workloads := append([]string{w.space.Primary}, w.space.Others...)
	again := func(t *trial, label string) (*trial, bool) {
		return w.measure(Proposal{
			Stage: ConfirmStage, Label: label, Config: t.Config, Workloads: workloads, Pass: 1,
		}, t.name)
	}
	if w.base.measured() {
		t, ok := again(w.base, BaselineStage)
		if !ok {
			return
		}
		w.baseAgain = t
	}
	if w.lead != w.base {
		w.leadAgain, _ = again(w.lead, w.lead.name)
	}
}

// conclude names what to use. Only figures of the confirming pass are
// compared with each other here: the search's own are biased, since the best
// of several measurements was picked by them.
func (w *walk) conclude() {
	r := &w.result
	r.Baseline, r.BaselineConfirm = w.base.id(), w.baseAgain.id()
	if w.lead != w.base {
		r.Challenger, r.ChallengerConfirm = w.lead.id(), w.leadAgain.id()
	}
	r.Confirmed = w.confirmed()
	pick, again := w.base, w.baseAgain
	if w.shown() {
		pick, again = w.lead, w.leadAgain
	}
	r.Winner, r.WinnerConfirm = pick.id(), again.id()
	switch {
	case w.open != nil || !w.base.measured():
	case pick == w.base:
		r.Gain = new(0.0)
	default:
		r.Gain = w.gain(w.baseAgain, w.leadAgain)
	}
	if again.measured() {
		pick = again
	}
	if pick.measured() {
		r.Misses = w.objective.Misses(pick.figures(w.space.Primary))
	}
	r.Verdict = w.verdict()
}

// confirmed reports whether every trial of the confirmation has figures.
func (w *walk) confirmed() bool {
	return w.open == nil && w.lead != nil &&
		(!w.base.measured() || w.baseAgain.measured()) &&
		(w.lead == w.base || w.leadAgain.measured())
}

// shown reports whether the second measurement repeats that the search's best
// beats the baseline; without a baseline, that it could be confirmed on fresh seeds.
func (w *walk) shown() bool {
	return w.confirmed() && w.lead != w.base &&
		(!w.base.measured() || w.objective.beats(w.leadAgain.score, w.baseAgain.score))
}
