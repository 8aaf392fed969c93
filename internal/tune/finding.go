package tune

import "math"

// Finding is something that a study found out: its kind, and the names and numbers
// that belong to the kind. Whoever shows it writes the sentence. A gain is as
// Objective.Gain has it; a ratio is of the objective in the direction that is better.
type Finding struct {
	Kind    FindingKind `json:"kind"`
	Name    string      `json:"name,omitempty"`    // of the configuration that it is about
	Against string      `json:"against,omitempty"` // of the one that it is held against
	Value   *float64    `json:"value,omitempty"`   // figure, gain or ratio, as the kind says
	N       int         `json:"n,omitzero"`        // configurations, launches or trials, as the kind says
	Of      int         `json:"of,omitzero"`       // of so many
	Seconds float64     `json:"seconds,omitempty"` // of a budget
	Fresh   bool        `json:"fresh,omitempty"`   // measured again on fresh seeds
	Ratio   *Span       `json:"ratio,omitempty"`   // to the baseline by launches of the search, with its interval
	After   *int        `json:"after,omitempty"`   // trials after which this is said of a study that is not finished

	Workload   string      `json:"workload,omitempty"`
	Pair       *Pair       `json:"pair,omitempty"`       // by one measurement of each, in the search
	Repeated   *Pair       `json:"repeated,omitempty"`   // by the second one of each
	Total      *Pair       `json:"total,omitempty"`      // against the baseline, where Pair is against another
	Comparison *Comparison `json:"comparison,omitempty"` // by launches that were repeated
	Bound      *BoundPair  `json:"bound,omitempty"`      // by which it is preferred
	Cause      *Finding    `json:"cause,omitempty"`      // why there is no figure, or no recommendation
	Again      *Finding    `json:"again,omitempty"`      // why there is none of the second launch

	Misses   []Constraint `json:"misses,omitempty"`   // bounds that it misses, or that what is recommended misses
	Unsteady []Constraint `json:"unsteady,omitempty"` // bounds that are kept on average, but not in every launch

	Status string `json:"status,omitempty"` // of a trial
	Reason string `json:"reason,omitempty"` // in the words of an engine, a rule or an error
}

// Pair is two configurations by one measurement of each.
type Pair struct {
	Name    string       `json:"name"`
	Against string       `json:"against"`
	Value   float64      `json:"value"` // figure of the objective
	Other   float64      `json:"other"`
	Above   string       `json:"above,omitempty"`  // the one that bounds, and not the objective, put above the other
	Nearer  bool         `json:"nearer,omitempty"` // it misses them by less, where else it meets them
	Misses  []Constraint `json:"misses,omitempty"` // of the one below
}

// BoundPair is a bound by which one configuration is preferred to another.
type BoundPair struct {
	Bound Constraint `json:"bound"`
	Other Constraint `json:"other"`
}

// FindingKind says what a Finding tells, and which of its fields do.
type FindingKind string

// Of a trial: why it has no figure, or does not count.
const (
	TrialEnded   FindingKind = "ended"          // Status, Reason
	NoFigure     FindingKind = "no_figure"      // of the objective on Workload
	MissesBounds FindingKind = "misses_bounds"  // Misses
	OtherAnswers FindingKind = "other_answers"  // not shown to answer as the baseline does
	NoTrialsLeft FindingKind = "no_trials_left" // the budget of N is used up but for the Of of the confirmation
	NoTimeLeft   FindingKind = "no_time_left"   // the same, of Seconds
)

// Of a stage of a staged search.
const (
	StageOpen   FindingKind = "stage_open"    // N of Of candidates are in
	StageEmpty  FindingKind = "stage_empty"   // none but the incumbent Against (none: no configuration yet) has figures; Cause of Name, if it was tried
	StageFirst  FindingKind = "stage_first"   // Name goes on with Value, the first that could be measured
	StageNoGain FindingKind = "stage_no_gain" // Pair; not more than Value, so Against stays
	StageStays  FindingKind = "stage_stays"   // Pair; Against stays
	StageGoesOn FindingKind = "stage_goes_on" // Pair; Name goes on; Total
)

// Of a study.
const (
	NothingYet        FindingKind = "nothing_yet"
	BaselineLeads     FindingKind = "baseline_leads"
	CandidateLeads    FindingKind = "candidate_leads"    // Name; by Pair, or against a baseline that has the Cause, or at Ratio and not confirmed
	NothingMeasured   FindingKind = "nothing_measured"   // Against, which was first, has the Cause
	NothingAcceptable FindingKind = "nothing_acceptable" // what could be measured may not be recommended, or is Name alone, and the baseline has the Cause
	NothingBeside     FindingKind = "nothing_beside"     // of single measurements: no other configuration has figures
	NothingElse       FindingKind = "nothing_else"       // no other configuration has figures; Fresh or Cause of the baseline's second launch
	NoneUsable        FindingKind = "none_usable"        // of N others none could be measured and may be recommended
	NoBaseline        FindingKind = "no_baseline"        // Name is the best of N, with Value; the baseline has the Cause
	NoBaselineAgain   FindingKind = "no_baseline_again"  // the baseline has the Cause, and what led (Name) could not be measured again: Again
	BaselineUnbeaten  FindingKind = "baseline_unbeaten"  // of N none beats it; Fresh or Cause of its second launch; Value of a single measurement
	SearchBest        FindingKind = "search_best"        // Pair; the best of N single measurements
	SurveyBest        FindingKind = "survey_best"        // Name has the best figure, Value, of N on Workload
	NotConfirmed      FindingKind = "not_confirmed"      // Pair; the second launch of Name has the Cause
	Confirmed         FindingKind = "confirmed"          // Repeated; the best of N
	NotRepeated       FindingKind = "not_repeated"       // Pair, but Repeated
	BaselineLost      FindingKind = "baseline_lost"      // Name led, and the baseline measured again has the Cause
	LeaderLost        FindingKind = "leader_lost"        // Name led, and measured again has the Cause
	OneLaunch         FindingKind = "one_launch"         // of the launches to confirm Name only one has figures
	Incomparable      FindingKind = "incomparable"       // Name led; Reason
	NotRecommended    FindingKind = "not_recommended"    // Name is the best of N and has the Cause
	BudgetTooSmall    FindingKind = "budget_too_small"   // Name; Comparison
	NoGainShown       FindingKind = "no_gain_shown"      // Name, the best of N; Comparison
	ShownBetter       FindingKind = "shown_better"       // Name, the best of N; Comparison
	BetterByBound     FindingKind = "better_by_bound"    // Name; Bound, Comparison where there is one
)

// Of a search by prediction: nothing was launched.
const (
	PredictedBetter   FindingKind = "predicted_better"   // Pair, and Comparison where the predictor knows its error; the best of N
	PredictedBaseline FindingKind = "predicted_baseline" // of N none is predicted to be better by what matters
	PredictedAlone    FindingKind = "predicted_alone"    // Name has Value, the best of N; the baseline has the Cause
	PredictedNothing  FindingKind = "predicted_nothing"  // of N none has a figure that counts; Against has the Cause
	PredictedLeads    FindingKind = "predicted_leads"    // Name, so far
	PredictedBrings   FindingKind = "predicted_brings"   // of a setting: Value
	PredictedNeeded   FindingKind = "predicted_needed"   // of a setting: without it a bound is missed
)

// Of a candidate of a race, see Outcome.
const (
	RefusedByRule  FindingKind = "refused"         // Reason
	MissesSurely   FindingKind = "misses_surely"   // Cause
	ShownWorse     FindingKind = "shown_worse"     // than Against: at most Value of it
	NumericsFailed FindingKind = "numerics_failed" // the guard rejected its numerics before it was launched
	PrunedUnseen   FindingKind = "pruned"          // in older studies: predicted at Value of the baseline, more than N times worse than the best
	NotWorth       FindingKind = "not_worth"       // no launch was left for it
	NoLaunchLeft   FindingKind = "no_launch_left"  // the study names it, and the budget (of N launches, else of Seconds) had none left; Of launches have one for all that it names, 0: not known
)

// Of N settings in the ablation, left out together. It is of the winner, unless of one
// setting alone, that they are said to be needed.
const (
	NeededRefused   FindingKind = "needed_refused" // without it: Reason
	NeededEnded     FindingKind = "needed_ended"   // without it the trial has the Cause
	NeededBounds    FindingKind = "needed_bounds"  // without it the command has the Cause
	NotTried        FindingKind = "not_tried"      // it was launched as a part of the winner alone
	NotDecided      FindingKind = "not_decided"    // Reason
	KeptGain        FindingKind = "kept_gain"      // Value, shown
	KeptSeeming     FindingKind = "kept_seeming"   // Value, not shown
	DroppedNoGain   FindingKind = "dropped"        // Value of having them, not shown
	TogetherRefused FindingKind = "together_refused"
	TogetherEnded   FindingKind = "together_ended"
	TogetherBounds  FindingKind = "together_bounds"
	TogetherUntried FindingKind = "together_untried" // too few launches were left
	TogetherLost    FindingKind = "together_lost"    // the launches without them have the Cause
	TogetherWorse   FindingKind = "together_worse"   // Value
	TogetherNoGain  FindingKind = "together_no_gain" // over the baseline
)

// Of the end of a search.
const (
	NothingLeft FindingKind = "nothing_left" // to try
	NoneWorth   FindingKind = "none_worth"   // the most promising of N was expected to bring Value
)

// Note is what is wrong with a trial by its end and its figures on a workload, which have a
// score: why it has none, or which SLOs it misses; nil for nothing.
func (o Objective) Note(end Observation, s Score, workload string, figures map[string]float64) *Finding {
	switch {
	case end.Status != Measured:
		return &Finding{Kind: TrialEnded, Status: end.Status, Reason: end.Reason}
	case !s.Known():
		return &Finding{Kind: NoFigure, Workload: workload}
	}
	misses := o.Misses(figures)
	switch {
	case len(misses) > 0:
		return &Finding{Kind: MissesBounds, Misses: misses}
	case s.class == missing && math.IsInf(s.miss, 1):
		return &Finding{Kind: OtherAnswers}
	}
	return nil
}

// Decide adds to a pair why the SLOs, and not the objective, set the one called name above
// the other, where they did. The figures are the other's.
func (o Objective) Decide(p *Pair, name string, above, below Score, figures map[string]float64) *Pair {
	switch {
	case above.class > below.class:
		p.Above = name
	case above.miss < below.miss:
		p.Above, p.Nearer = name, true
	default:
		return p
	}
	p.Misses = o.Misses(figures)
	return p
}
