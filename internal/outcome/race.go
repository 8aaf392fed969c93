package outcome

import (
	"cmp"
	"encoding/json"

	"perflab/internal/tune"
	"perflab/internal/tune/answers"
)

// Race is what stands behind the conclusion of a study by strategy race, beside
// its trials: facts for the report. Ratios are of the objective in the direction
// that is better: 1.1 is 10 % better, also where less is better.
type Race struct {
	Noise       tune.Noise           `json:"noise"`
	Candidates  []Candidate          `json:"candidates"`           // as they were ranked, refused ones last
	Unlaunched  []tune.Entry         `json:"unlaunched,omitempty"` // what the study names and no launch tells of, with the reason
	Steps       []tune.Entry         `json:"steps,omitempty"`
	Predictions []tune.PredictionFit `json:"predictions,omitempty"`
	Learned     *tune.Learned        `json:"learned,omitempty"` // what corrected the predictions; none: nothing did
	Comparisons []tune.Comparison    `json:"comparisons,omitempty"`
	Ablation    []tune.Ablation      `json:"ablation,omitempty"`
	HoldOuts    []tune.Comparison    `json:"hold_outs,omitempty"`        // recommended against baseline on each further workload
	HeldOut     int                  `json:"hold_out_launches,omitzero"` // launches that ran the further workloads
	Accuracy    []answers.Test       `json:"accuracy,omitempty"`
	Constraints []tune.Constraint    `json:"constraints,omitempty"` // kept by what is recommended, where it was launched again
	Frontier    []FrontPoint         `json:"frontier,omitempty"`
	Phases      []Phase              `json:"phases"`
	Stop        *tune.Finding        `json:"stop,omitempty"`    // why the search ended before its budget
	Stopped     string               `json:"stopped,omitempty"` // the same in words, by whoever wrote them
}

// UnmarshalJSON takes the older keys too: arms for candidates, foretold for
// predictions.
func (r *Race) UnmarshalJSON(b []byte) error {
	type race Race // without this method
	both := struct {
		*race
		Arms     []Candidate          `json:"arms"`
		Foretold []tune.PredictionFit `json:"foretold"`
	}{race: (*race)(r)}
	if err := json.Unmarshal(b, &both); err != nil {
		return err
	}
	if r.Candidates == nil {
		r.Candidates = both.Arms
	}
	if r.Predictions == nil {
		r.Predictions = both.Foretold
	}
	return nil
}

// Candidate is what became of a configuration that the race could begin with.
type Candidate struct {
	Label     string     `json:"label"`
	Engine    string     `json:"engine"`
	Command   string     `json:"command,omitempty"` // none where a rule refused it before there was one
	Prior     string     `json:"prior,omitempty"`   // where it comes from, if not from the catalogue
	Trials    []int      `json:"trials,omitempty"`
	State     string     `json:"state"`                     // refused, pruned, untried, failed, eliminated, left, carried
	Reason    string     `json:"reason,omitempty"`          // Finding in words, by whoever wrote them
	Predicted *float64   `json:"predicted,omitempty"`       // ratio to the baseline, before anything but it was launched; see Learned
	Expected  *float64   `json:"expected,omitempty"`        // by what the predictor had learned at its end
	Measured  *tune.Span `json:"measured,omitempty"`        // ratio to the baseline
	Shorter   string     `json:"shorter_context,omitempty"` // what it cuts of the context: "serves requests of up to ..."

	Finding *tune.Finding `json:"finding,omitempty"`
}

// FrontPoint is a configuration by what a user sees and what a GPU yields.
type FrontPoint struct {
	Trials  []int     `json:"trials"` // launches under all of the load that it is the mean of
	Label   string    `json:"label"`
	PerUser tune.Span `json:"tokens_per_s_per_user"` // 1000 / mean TPOT in ms
	PerGPU  tune.Span `json:"tokens_per_s_per_gpu"`  // output tokens; per replica of a study without accelerators
	Front   bool      `json:"front"`                 // none is better in both
	Pick    string    `json:"pick,omitempty"`        // baseline, recommended
}

// Phase is what one part of the race cost and brought.
type Phase struct {
	Name       string   `json:"name"`
	Launches   int      `json:"launches"`
	LoadS      float64  `json:"load_s"`
	GPUSeconds float64  `json:"gpu_s"`
	WallS      float64  `json:"wall_s,omitempty"` // its launches from start to stop, one after another; 0: not known
	Gain       *float64 `json:"gain,omitempty"`   // of what led at its end over what led at its beginning
}

// PerHour is the gain that a GPU-hour of the phase brought, where no GPU was
// allocated an hour of its launches; false where either is not known.
func (p Phase) PerHour() (float64, bool) {
	hours := cmp.Or(p.GPUSeconds, p.WallS) / 3600
	if p.Gain == nil || hours <= 0 {
		return 0, false
	}
	return *p.Gain / hours, true
}
