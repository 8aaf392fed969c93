package result

import "cmp"

// Race is what stands behind the conclusion of a study by strategy race, beside
// its trials: facts for the report. Ratios are of the objective in the direction
// that is better: 1.1 is 10 % better, also where less is better.
type Race struct {
	Noise       Noise        `json:"noise"`
	Arms        []Arm        `json:"arms"` // as they were ranked, refused ones last
	Steps       []RaceStep   `json:"steps,omitempty"`
	Foretold    []Foretold   `json:"foretold,omitempty"`
	Comparisons []Contest    `json:"comparisons,omitempty"`
	Ablation    []Ablated    `json:"ablation,omitempty"`
	HoldOuts    []Contest    `json:"hold_outs,omitempty"` // recommended against baseline on each further workload
	Accuracy    []PairedTest `json:"accuracy,omitempty"`
	Constraints []Constraint `json:"constraints,omitempty"` // kept by what is recommended, where it was launched again
	Frontier    []FrontPoint `json:"frontier,omitempty"`
	Phases      []Phase      `json:"phases"`
	Stopped     string       `json:"stopped,omitempty"` // why the search ended before its budget, one sentence
}

// Noise is the spread of the objective between equal measurements, as a share.
type Noise struct {
	Between  float64 `json:"between"`          // launches of one configuration
	Launches int     `json:"launches"`         // that it was estimated from
	Within   float64 `json:"within,omitempty"` // one launch; 0: not known
}

// Span is an estimate with its interval.
type Span struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// Arm is what became of a configuration that the race could begin with.
type Arm struct {
	Label     string   `json:"label"`
	Engine    string   `json:"engine"`
	Command   string   `json:"command,omitempty"` // none where a rule refused it before there was one
	Prior     string   `json:"prior,omitempty"`   // where it comes from, if not from the catalogue
	Trials    []int    `json:"trials,omitempty"`
	State     string   `json:"state"`               // refused, pruned, untried, failed, eliminated, left, carried
	Reason    string   `json:"reason,omitempty"`    // one sentence
	Predicted *float64 `json:"predicted,omitempty"` // ratio to the baseline, before the race
	Expected  *float64 `json:"expected,omitempty"`  // by what the predictor had learned at its end
	Measured  *Span    `json:"measured,omitempty"`  // ratio to the baseline
}

// RaceStep is a repair or a refinement that was tried.
type RaceStep struct {
	Trial int      `json:"trial,omitzero"`
	Label string   `json:"label"`
	Gain  *float64 `json:"gain,omitempty"`  // over what led when it was tried
	Total *float64 `json:"total,omitempty"` // over the baseline
	Note  string   `json:"note,omitempty"`
}

// Foretold is how well predictions of one engine met its measurements.
type Foretold struct {
	Engine string  `json:"engine"`
	N      int     `json:"n"`     // configurations with both
	Bias   float64 `json:"bias"`  // log measured = bias + scale * log predicted, as ratios to the baseline
	Scale  float64 `json:"scale"` //
	Error  float64 `json:"error"` // mean absolute relative error of the uncorrected ratios
}

// Contest is the ratio of two configurations by launches of both.
type Contest struct {
	Label    string  `json:"label"`
	Against  string  `json:"against"`
	Workload string  `json:"workload"`
	Trials   []int   `json:"trials"`
	Others   []int   `json:"others"`
	Ratio    Span    `json:"ratio"` // at 95 %, corrected for Family comparisons; nothing where there is no figure of both
	P        float64 `json:"p"`
	Family   int     `json:"family"`
	Shown    float64 `json:"shown"` // the least effect that so many launches show 4 times in 5
	Verdict  string  `json:"verdict"`
	Sentence string  `json:"sentence"`
}

// Constraint is how launches keep a bound: their mean decides.
type Constraint struct {
	Bound    string   `json:"bound"`
	Mean     *float64 `json:"mean,omitempty"` // nil: a launch has no figure
	Held     bool     `json:"held"`           // by the mean
	Met      int      `json:"met"`            // launches that met it by themselves
	Launches int      `json:"launches"`
}

// Ablated is a setting of the winner and what it brings.
type Ablated struct {
	Setting string `json:"setting"`
	Trial   int    `json:"trial,omitzero"`
	Gain    *Span  `json:"gain,omitempty"` // 0.02: with it the objective is 2 % better
	Dropped bool   `json:"dropped"`
	Reason  string `json:"reason"`
}

// PairedTest holds answers against those of the baseline, question by question.
type PairedTest struct {
	Label     string  `json:"label"`
	Questions int     `json:"questions"`
	Right     int     `json:"right"`
	Base      int     `json:"baseline_right"`
	Lost      int     `json:"lost"` // the baseline alone was right
	Won       int     `json:"won"`
	Change    float64 `json:"change"`    // share of right answers, less the baseline's
	Error     float64 `json:"std_error"` // of Change
	Low       float64 `json:"low"`       // one-sided 95 % bound of Change
	P         float64 `json:"p_mcnemar"`
	Margin    float64 `json:"margin"`
	Accepted  bool    `json:"accepted"`
	Sentence  string  `json:"sentence"`
}

// FrontPoint is a configuration by what a user sees and what a GPU yields.
type FrontPoint struct {
	Trials  []int  `json:"trials"` // launches under all of the load that it is the mean of
	Label   string `json:"label"`
	PerUser Span   `json:"tokens_per_s_per_user"` // 1000 / mean TPOT in ms
	PerGPU  Span   `json:"tokens_per_s_per_gpu"`  // output tokens; per replica of a study without accelerators
	Front   bool   `json:"front"`                 // none is better in both
	Pick    string `json:"pick,omitempty"`        // baseline, recommended
}

// Phase is what one part of the race cost and brought.
type Phase struct {
	Name     string   `json:"name"`
	Launches int      `json:"launches"`
	LoadS    float64  `json:"load_s"`
	GPUS     float64  `json:"gpu_s"`
	WallS    float64  `json:"wall_s,omitempty"` // its launches from start to stop, one after another; 0: not known
	Gain     *float64 `json:"gain,omitempty"`   // of what led at its end over what led at its beginning
}

// PerHour is the gain that a GPU-hour of the phase brought, where no GPU was
// allocated an hour of its launches; false where either is not known.
func (p Phase) PerHour() (float64, bool) {
	hours := cmp.Or(p.GPUS, p.WallS) / 3600
	if p.Gain == nil || hours <= 0 {
		return 0, false
	}
	return *p.Gain / hours, true
}
