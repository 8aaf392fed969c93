package outcome

import "perflab/internal/tune"

// Curve is how baseline and recommendation do over the loads that a workload of the study file has
// in each launch.
type Curve struct {
	Workload string       `json:"workload"` // its name in the file
	Title    string       `json:"title"`
	Axis     string       `json:"axis"` // rate, concurrency
	Points   []CurvePoint `json:"points"`
}

// CurvePoint is one load of a curve.
type CurvePoint struct {
	Load     float64 `json:"load"`
	Text     string  `json:"text"`     // "8 in flight"
	Workload string  `json:"workload"` // its name in the study

	Baseline    CurveSide `json:"baseline"`
	Recommended CurveSide `json:"recommended"`
	// Gain is of the objective under this load against the baseline, with its 95 % interval where either side
	// was launched repeatedly: +0.5 is half as good again. Without an interval its ends are the value.
	Gain    *tune.Span `json:"gain,omitempty"`
	Verdict string     `json:"verdict,omitempty"` // tune.Better, tune.Worse or tune.NoDifference; "" without an interval
}

// CurveSide is one configuration under one load: the means of its figures over its launches.
type CurveSide struct {
	Trials  []int              `json:"trials"`
	Figures map[string]float64 `json:"figures"`
}
