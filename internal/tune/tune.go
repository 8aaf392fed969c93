// Package tune decides what to measure next and what was learned. It sees
// configurations and numbers only, and knows nothing of servers.
//
// A strategy is asked for a proposal and told how its trial ended, until it
// has no more. Package journal does so, and writes each step down before it is made:
//
//	s, err := tune.NewRace(candidates, predictor, space, objective, budget, tune.RaceOptions{})
//	err = journal.Run(ctx, s, j, evaluate)
//	fmt.Println(s.Result().Verdict.Kind)          // finding.Worded writes the sentence
//
// Invariants: a strategy is a pure state machine: the same space, seed and
// observations give the same proposals. Every gain is given against
// the incumbent and against the baseline. A figure that is missing loses to
// any figure, and fails every bound. Nothing is recommended in place of the
// baseline by a single measurement, but by staged.Singles, which say so.
//
// Deliberately absent: files, clocks, goroutines, random numbers that no seed
// decides, what a parameter means, and sentences: what a study found is a Finding.
package tune

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// Config is one point of the space: parameter name -> value. What the names
// mean is the caller's affair ("engine", "model", "tp", ...). Equal maps are
// the same configuration; an empty value is the same as none.
type Config map[string]string

// with is c with one value set; an empty one removes it.
func (c Config) with(name, value string) Config {
	c = maps.Clone(c)
	if c[name] = value; value == "" {
		delete(c, name)
	}
	return c
}

// Change is a change of the incumbent: Set overrides its parameters, an
// empty value removes one, Replace starts from nothing instead.
type Change struct {
	Label   string `json:"label"`
	Set     Config `json:"set"`
	Replace bool   `json:"replace,omitempty"`
	Why     string `json:"why,omitempty"` // what asks for it, one clause, for the reader
}

// Apply returns the configuration that the candidate makes of an incumbent's.
func (c Change) Apply(incumbent Config) Config {
	config := Config{}
	if !c.Replace {
		maps.Copy(config, incumbent)
	}
	maps.Copy(config, c.Set)
	maps.DeleteFunc(config, func(_, v string) bool { return v == "" })
	return config
}

// Stage is one step of a staged search: its candidates compete with the
// incumbent, and the best goes on.
type Stage struct {
	Name    string   `json:"name"`
	Changes []Change `json:"candidates"`
}

// Space is what may be tried.
type Space struct {
	Baseline Config   `json:"baseline"`
	Stages   []Stage  `json:"stages"`
	Primary  string   `json:"primary"`          // workload the search is judged by
	Others   []string `json:"others,omitempty"` // measured on the baseline and the winner at the end
}

// Proposal asks for one trial: a configuration measured under workloads.
type Proposal struct {
	Trial     int      `json:"trial"` // 1, 2, 3 ...
	Stage     string   `json:"stage"` // BaselineStage, a stage's name, ConfirmStage, SurveyStage
	Label     string   `json:"label"`
	Config    Config   `json:"config"`
	Workloads []string `json:"workloads"`
	Pass      int      `json:"pass"`                // 0 in the search; each further number asks for fresh seeds
	Share     float64  `json:"share,omitempty"`     // of the full load; 0: all of it
	Questions bool     `json:"questions,omitempty"` // ask what Observation.Answers is of
	Compare   bool     `json:"compare,omitempty"`   // hold a few greedy answers beside the baseline's: the figure AgreementFigure
	Node      string   `json:"node,omitempty"`      // the machine to measure it on, where there are several
}

// Stages that are not of the space.
const (
	BaselineStage = "baseline"
	ConfirmStage  = "confirm"
	SurveyStage   = "survey"
	SearchStage   = "search"    // of strategies that draw from SearchSpace.Domain
	RaceStage     = "race"      // candidates, under a part of the load
	RepairStage   = "repair"    // a candidate with what its bottleneck or its refusal asks for
	FinalStage    = "final"     // candidates that were not eliminated, under all of the load
	RefineStage   = "refine"    // small changes of what leads
	AblateStage   = "ablate"    // the phase of CheckStage; of older versions the winner without one of its settings
	CheckStage    = "check"     // the winner without settings that seem to bring nothing
	HoldOutStage  = "hold-outs" // what is recommended and the baseline, for the workloads that the search is not judged by
	NamedStage    = "named"     // of a search by prediction: what the study names
	BestStage     = "best"      // of a search by prediction: what is predicted best
)

// Figures that a search knows by name.
const (
	AccuracyFigure  = "accuracy"  // share of the questions answered right
	AgreementFigure = "agreement" // share of greedy continuations that is the baseline's
)

// Clone is a proposal that shares nothing with this one.
func (p Proposal) Clone() Proposal {
	p.Config = maps.Clone(p.Config)
	p.Workloads = slices.Clone(p.Workloads)
	return p
}

// Equal compares by what a journal keeps of a proposal.
func (p Proposal) Equal(q Proposal) bool {
	a, errA := json.Marshal(p)
	b, errB := json.Marshal(q)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// Observation is the end of a trial.
type Observation struct {
	Trial   int                           `json:"trial"`
	Status  string                        `json:"status"` // ok, refused, failed, void
	Reason  string                        `json:"reason,omitempty"`
	Figures map[string]map[string]float64 `json:"figures,omitempty"`   // workload -> figure -> value
	Seconds float64                       `json:"wall_s,omitempty"`    // what the trial took, for the budget
	Within  map[string]float64            `json:"within,omitempty"`    // workload -> standard error of the objective's figure within the launch, as a share of it
	Moves   []Change                      `json:"moves,omitempty"`     // what the end of the trial asks for next, best first: a repair of a refusal, an answer to a bottleneck
	Answers string                        `json:"answers,omitempty"`   // to the questions, in order: 1 right, 0 wrong
	Files   map[string]string             `json:"files,omitempty"`     // of the trial, with their SHA-256: for who resumes, no strategy looks at them
	Lost    bool                          `json:"node_lost,omitempty"` // of several machines the trial's can be used no more

	// Stratum is what may make figures of the trial's machine differ from others' otherwise
	// than by a factor: its driver, its clocks, its image. Gains are of launches of one stratum.
	Stratum string `json:"stratum,omitempty"`
}

// Statuses of an observation.
const (
	Measured = "ok"
	Refused  = "refused" // the engine rejects the configuration
	Failed   = "failed"  // our machinery broke, after retries
	Void     = "void"    // measured, but the figures cannot be believed
)

// Settled returns the observation as a journal gives it back, so that a
// resumed study sees what the first one saw: figures that are not numbers are
// missing, and text is valid UTF-8.
func (o Observation) Settled() Observation {
	o.Reason = strings.ToValidUTF8(o.Reason, "\uFFFD")
	if !finite(o.Seconds) {
		o.Seconds = 0
	}
	figures := make(map[string]map[string]float64, len(o.Figures))
	for workload, f := range o.Figures {
		kept := maps.Clone(f)
		maps.DeleteFunc(kept, func(_ string, v float64) bool { return !finite(v) })
		figures[workload] = kept
	}
	o.Figures = figures
	o.Within = maps.Clone(o.Within)
	maps.DeleteFunc(o.Within, func(_ string, v float64) bool { return !finite(v) })
	return o
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Strategy proposes trials. Each proposal is given once. Ask returns false where there is
// none now: while trials are open the end of one may bring more, and where none is it is the
// end of the search. Ends may be told in any order; what is proposed follows from them and
// their order alone. Tell panics for a trial that is not open. Result may be read at any
// time; before the end its verdict says that the study is not finished. One that is given up
// before its end is to be stopped: see Stop.
type Strategy interface {
	Ask() (Proposal, bool)
	Tell(Observation)
	Result() Result
}

// Decision is what a stage concluded.
type Decision struct {
	Stage   string   `json:"stage"`
	Trials  []int    `json:"trials"`          // of its candidates, in order; one trial may serve several
	Entries []Entry  `json:"entries"`         // every candidate, measured or not
	Before  int      `json:"before"`          // trial that was the incumbent; 0: none could be measured
	Winner  int      `json:"winner"`          // trial that goes on; 0: still none
	Gain    *float64 `json:"gain,omitempty"`  // of the winner over Before, see Objective.Gain; nil if either lacks the figure
	Total   *float64 `json:"total,omitempty"` // of the winner over the baseline
	Reason  *Finding `json:"reason"`
}

// Entry is what became of one candidate of a stage.
type Entry struct {
	Label string   `json:"label"`
	Trial int      `json:"trial,omitzero"`  // 0: not measured, Finding says why
	Gain  *float64 `json:"gain,omitempty"`  // over the stage's incumbent
	Total *float64 `json:"total,omitempty"` // over the baseline
	Note  string   `json:"note,omitempty"`  // Finding in words, by whoever wrote them

	Finding *Finding `json:"finding,omitempty"` // refusal, failure, missed SLOs, spent budget; nil: nothing is wrong with it
}

// Result is what a study concluded. A trial named here has figures.
type Result struct {
	Baseline        int        `json:"baseline"` // trial ids; 0 when there is none
	Winner          int        `json:"winner"`   // what to use: the challenger if its gain was repeated, else the baseline
	Stages          []Decision `json:"stages"`
	Confirmed       bool       `json:"confirmed"` // the search's best was measured again, on fresh seeds, beside the baseline
	BaselineConfirm int        `json:"baseline_confirm,omitzero"`
	WinnerConfirm   int        `json:"winner_confirm,omitzero"` // BaselineConfirm when the baseline is the winner

	Challenger        int          `json:"challenger,omitzero"` // the search's best, if not the baseline; differs from Winner if its gain was not repeated
	ChallengerConfirm int          `json:"challenger_confirm,omitzero"`
	Misses            []Constraint `json:"misses,omitempty"` // SLOs that the winner misses, by its last measurement
	Verdict           Finding      `json:"verdict"`          // better by x, or no difference shown
	Gain              *float64     `json:"gain,omitempty"`   // of the winner over the baseline by the confirming pass; 0 if it is the baseline; nil if nothing was compared

	Interval *Span        `json:"interval,omitempty"` // of Gain, where launches of both were repeated
	Nodes    []NodeEffect `json:"nodes,omitempty"`    // of a race over several machines
	Evidence *Evidence    `json:"evidence,omitempty"` // of a race

	Forecast *ForecastEvidence `json:"forecast,omitempty"` // of a search by prediction
}
