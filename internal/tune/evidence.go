package tune

import "perflab/internal/tune/answers"

// Evidence is what stands behind a race's conclusion, for the report. Ratios are
// of the objective in the direction that is better, so 1.1 is 10 % better also
// where less is better; see Objective.Gain.
type Evidence struct {
	Noise       Noise           `json:"noise"`
	Candidates  []Outcome       `json:"candidates"`           // in the order in which they were ranked, refused ones last
	Unlaunched  []Entry         `json:"unlaunched,omitempty"` // what the study names and no launch tells of, with the reason
	Predictions []PredictionFit `json:"predictions,omitempty"`
	Learned     *Learned        `json:"learned,omitempty"` // what corrected the predictions; nil: nothing did
	Steps       []Entry         `json:"steps,omitempty"`   // repairs and refinements in the order of their trials
	Comparisons []Comparison    `json:"comparisons,omitempty"`
	Ablation    []Ablation      `json:"ablation,omitempty"`
	HoldOuts    []Comparison    `json:"hold_outs,omitempty"`        // winner over baseline on each further workload
	HeldOut     int             `json:"hold_out_launches,omitzero"` // launches that ran the further workloads
	Accuracy    []answers.Test  `json:"accuracy,omitempty"`
	Constraints []Constraint    `json:"constraints,omitempty"` // kept by what is recommended, where it was launched again
	Phases      []Phase         `json:"phases"`
	Stopped     *Finding        `json:"stop,omitempty"` // why the search ended before its budget
}

// Noise is the spread of the objective between equal measurements, as a
// standard deviation of logarithms: 0.01 is 1 %.
type Noise struct {
	Between  float64 `json:"between"`          // launches of one configuration
	Launches int     `json:"launches"`         // that Between was estimated from, prior knowledge apart
	Within   float64 `json:"within,omitempty"` // one launch, by the runs' own intervals; 0: not known
}

// Span is an estimate with its interval.
type Span struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Outcome is what became of a candidate.
type Outcome struct {
	Label     string   `json:"label"`
	Config    Config   `json:"config"`
	Prior     string   `json:"prior,omitempty"`
	Trials    []int    `json:"trials,omitempty"`
	State     string   `json:"state"` // see States
	Reason    *Finding `json:"why,omitempty"`
	Predicted *float64 `json:"predicted,omitempty"` // ratio to the baseline, before anything but the baseline was launched; see Evidence.Learned
	Expected  *float64 `json:"expected,omitempty"`  // the same, by what the predictor had learned when the race ended
	Measured  *Span    `json:"measured,omitempty"`  // ratio to the baseline, with the interval that decided
}

// States of a candidate.
const (
	StateRefused    = "refused"    // by a rule, never launched
	StatePruned     = "pruned"     // in older studies: predicted to be hopeless, never launched
	StateUntried    = "untried"    // no budget for it
	StateFailed     = "failed"     // launched, without a figure
	StateEliminated = "eliminated" // measured, and shown to be worse, or to miss a constraint
	StateNotWorse   = "left"       // measured and not shown to be worse, but not carried on
	StateRefined    = "carried"    // into the refinement
)

// PredictionFit is how well predictions of one engine met its measurements, as
// learned in the study: log measured = Bias + Scale * log predicted, both as
// ratios to the baseline.
type PredictionFit struct {
	Engine string  `json:"engine"`
	N      int     `json:"n"` // configurations with both
	Bias   float64 `json:"bias"`
	Scale  float64 `json:"scale"`
	Error  float64 `json:"error"` // mean absolute relative error of the uncorrected ratios: 0.1 is 10 %
}

// Learned is a launch of the baseline by which predictions were corrected before any
// configuration was ranked. Figures are of the objective.
type Learned struct {
	Trial     int     `json:"trial"`
	Measured  float64 `json:"measured"`
	Predicted float64 `json:"predicted"` // before
	Corrected float64 `json:"corrected"` // after
}

// Comparison is the ratio of two configurations by launches of both.
type Comparison struct {
	Label    string  `json:"label"`
	Against  string  `json:"against"`
	Workload string  `json:"workload"`
	Trials   []int   `json:"trials"`         // launches of the one
	Others   []int   `json:"others"`         // and of the other
	Ratio    Span    `json:"ratio"`          // with the interval at 95 %, corrected for the number of comparisons and of looks
	Noise    float64 `json:"noise,omitzero"` // between these launches, a standard deviation of logarithms; 0: not known
	P        float64 `json:"p"`              // two-sided, corrected as the interval is
	Family   int     `json:"family"`         // comparisons it was corrected for
	Looks    int     `json:"looks,omitzero"` // times that it was looked at, at most, which it is corrected for too; 0: once
	Shown    float64 `json:"shown"`          // the least effect that so many launches show 4 times in 5: 0.03 is 3 %
	Most     int     `json:"most,omitzero"`  // launches of each that Shown is of, where it was given up before them
	MinGain  float64 `json:"min_gain,omitempty"`
	Verdict  string  `json:"verdict"`            // see Verdicts
	Sentence string  `json:"sentence,omitempty"` // the verdict in words, by whoever wrote them

	ByObjective string       `json:"by_objective,omitempty"` // verdict without bounds, where they decide
	Obstacle    *Finding     `json:"obstacle,omitempty"`     // of Missed: what the other has not
	Misses      []Constraint `json:"misses,omitempty"`       // of Missed: bounds that the other meets on this workload
	Reason      string       `json:"reason,omitempty"`       // of Unknown
	Later       bool         `json:"later,omitempty"`        // Label was launched after the others
}

// Verdicts of a comparison.
const (
	Better       = "better"
	Worse        = "worse"
	NoDifference = "no difference shown"
	TooSmall     = "budget too small"    // for an effect of the size that matters
	Missed       = "misses a constraint" // that the other meets
	Unknown      = "not compared"        // there are no figures of both; Ratio is nothing then
)

// Constraint is how launches keep a bound: their mean decides.
type Constraint struct {
	Bound    string   `json:"bound"`
	Mean     *float64 `json:"mean,omitempty"` // nil: a launch has no figure
	Held     bool     `json:"held"`           // by the mean
	Met      int      `json:"met"`            // launches that met it by themselves
	Launches int      `json:"launches"`       // 0: Mean is of one measurement
}

// Ablation is a setting of the winner and what it brings.
type Ablation struct {
	Setting string `json:"setting"`        // as the engine spells it
	Trial   int    `json:"trial,omitzero"` // one of the launches of the winner without it alone; 0: there is none
	Gain    *Span  `json:"gain,omitempty"` // of having it: ratio of the winner to the configuration without it, less one; nil: not tested alone
	Dropped bool   `json:"dropped"`
	Reason  string `json:"reason,omitempty"` // Finding in words, by whoever wrote them

	Finding *Finding `json:"finding,omitempty"`
}

// Phase is what one part of a race cost and brought.
type Phase struct {
	Name     string   `json:"name"`
	Launches int      `json:"launches"`
	Seconds  float64  `json:"wall_s"`
	Gain     *float64 `json:"gain,omitempty"` // of the leader at its end over the leader at its beginning
}
