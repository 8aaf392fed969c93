package result

// Spread is how one figure varies between runs of the same spec.
type Spread struct {
	Metric string   `json:"metric"`
	Label  string   `json:"label"` // says of a percentile that it is the mean of the runs' percentiles
	Runs   int      `json:"runs"`
	Mean   float64  `json:"mean"`
	Low    *float64 `json:"low,omitempty"` // 95 % t-interval of the mean over runs; absent for fewer than two
	High   *float64 `json:"high,omitempty"`
	CV     *float64 `json:"cv,omitempty"` // standard deviation (divisor n-1) over mean
	Min    float64  `json:"min"`
	Max    float64  `json:"max"`
}
