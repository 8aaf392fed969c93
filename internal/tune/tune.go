// Package tune decides what to measure next and what was learned. It sees
// configurations and numbers only, and knows nothing of servers.
//
// Invariants: a Tuner is a pure state machine: the same space, seed and
// observations give the same proposals. Resume is replay of the journal
// through Tell; there is no other code for it.
package tune

// Config is one point of the space: parameter name -> value. What the names
// mean is the caller's affair ("engine", "model", "tp", ...). Equal maps are
// the same configuration.
type Config map[string]string

// Candidate is a change of the incumbent: Set overrides its parameters, an
// empty value removes one, Replace starts from nothing instead.
type Candidate struct {
	Label   string `json:"label"`
	Set     Config `json:"set"`
	Replace bool   `json:"replace,omitempty"`
}

// Stage is one step of a staged search: its candidates compete with the
// incumbent, and the best goes on.
type Stage struct {
	Name       string      `json:"name"`
	Candidates []Candidate `json:"candidates"`
}

// Space is what may be tried.
type Space struct {
	Baseline Config   `json:"baseline"`
	Stages   []Stage  `json:"stages"`
	Primary  string   `json:"primary"`          // workload the search is judged by
	Others   []string `json:"others,omitempty"` // measured on the baseline and the winner at the end
}

// Objective is the figure to improve, and what must hold besides.
type Objective struct {
	Metric string  `json:"metric"`
	Higher bool    `json:"higher"` // is more better
	SLOs   []Bound `json:"slos,omitempty"`
}

// Bound is one constraint on a figure. A missing figure fails it.
type Bound struct {
	Metric string  `json:"metric"`
	Op     string  `json:"op"` // <= or >=
	Limit  float64 `json:"limit"`
}

// Proposal asks for one trial: a configuration measured under workloads.
type Proposal struct {
	Trial     int      `json:"trial"` // 1, 2, 3 ...
	Stage     string   `json:"stage"` // "baseline", a stage's name, "confirm"
	Label     string   `json:"label"`
	Config    Config   `json:"config"`
	Workloads []string `json:"workloads"`
	Pass      int      `json:"pass"` // 0 in the search; 1 asks for fresh seeds
}

// Observation is the end of a trial.
type Observation struct {
	Trial   int                           `json:"trial"`
	Status  string                        `json:"status"` // ok, refused, failed, void
	Reason  string                        `json:"reason,omitempty"`
	Figures map[string]map[string]float64 `json:"figures,omitempty"` // workload -> figure -> value
}

// Statuses of an observation.
const (
	Measured = "ok"
	Refused  = "refused" // the engine rejects the configuration
	Failed   = "failed"  // our machinery broke, after retries
	Void     = "void"    // measured, but the figures cannot be believed
)

// Strategy proposes trials one at a time. Ask returns false when it is done.
// Every proposal is answered by one Tell before the next Ask.
type Strategy interface {
	Ask() (Proposal, bool)
	Tell(Observation)
	Result() Result
}

// Decision is what a stage concluded.
type Decision struct {
	Stage  string   `json:"stage"`
	Trials []int    `json:"trials"`         // of its candidates, in order
	Before int      `json:"before"`         // trial that was the incumbent
	Winner int      `json:"winner"`         // trial that goes on
	Gain   *float64 `json:"gain,omitempty"` // objective's ratio winner/before - 1, in the direction that is better; nil if either lacks it
	Reason string   `json:"reason"`         // one sentence
}

// Result is what a study concluded.
type Result struct {
	Baseline        int        `json:"baseline"` // trial ids; 0 when there is none
	Winner          int        `json:"winner"`
	Stages          []Decision `json:"stages"`
	Confirmed       bool       `json:"confirmed"` // the winner was measured again, on fresh seeds, beside the baseline
	BaselineConfirm int        `json:"baseline_confirm,omitzero"`
	WinnerConfirm   int        `json:"winner_confirm,omitzero"`
	Verdict         string     `json:"verdict"` // one sentence: better by x, or no difference shown
	Gain            *float64   `json:"gain,omitempty"`
}
