package outcome

import (
	"time"

	"perflab/internal/tune"
)

// UnderwaySchema names the format of an Underway; it changes when that does.
const UnderwaySchema = "perflab.progress/1"

// Underway is where a study stands that has not come to its end: the document progress.json,
// which the study replaces about once a second while it runs, and removes at its end.
type Underway struct {
	Schema    string    `json:"schema"`
	Name      string    `json:"name"`
	Simulated bool      `json:"simulated"`
	Resume    string    `json:"resume,omitempty"` // the command that goes on with it
	Started   time.Time `json:"started"`          // by the process that wrote this
	At        time.Time `json:"at"`               // when all of this was so
	Ranked    int       `json:"ranked,omitzero"`  // configurations that are being predicted before the first launch

	Ended   int             `json:"ended"`             // trials
	Most    int             `json:"most,omitzero"`     // trials that there can be; 0: not known
	BudgetS float64         `json:"budget_s,omitzero"` // of time; 0: none
	SpentS  float64         `json:"spent_s"`           // of it, by trials that have ended
	EachS   float64         `json:"each_s,omitzero"`   // a trial takes on average, by those that have ended; 0: none has
	LeftS   *float64        `json:"left_s,omitempty"`  // to the end at most, by EachS; nil: not known
	Trials  []UnderwayTrial `json:"trials"`            // under way, one a machine
	Leader  *Leader         `json:"leader,omitempty"`  // nil: nothing is measured
	Stopped string          `json:"stopped,omitempty"` // why it ended before its end; "": it runs, or was killed
}

// UnderwayTrial is a trial under way.
type UnderwayTrial struct {
	Trial    int           `json:"trial"`
	Machine  string        `json:"machine,omitempty"` // of several
	Stage    string        `json:"stage"`
	Label    string        `json:"label"`
	Why      string        `json:"why,omitempty"` // it is launched, in a few words
	Workload string        `json:"workload,omitempty"`
	Phase    string        `json:"phase,omitempty"`
	Detail   string        `json:"detail,omitempty"` // what its runtime says in this phase
	Since    time.Time     `json:"since,omitzero"`   // the phase began
	Load     *UnderwayLoad `json:"load,omitempty"`   // nil: no load is being sent
}

// UnderwayLoad is how far a load has come.
type UnderwayLoad struct {
	Planned  int     `json:"planned,omitzero"` // requests; 0: time decides how many
	Done     int     `json:"done"`             // failed ones included
	Failed   int     `json:"failed,omitzero"`
	InFlight int     `json:"in_flight"`
	Tokens   int     `json:"output_tokens"`
	Seconds  float64 `json:"seconds"` // since it began
}

// Leader is the configuration that leads a study so far. It is no winner: launches on fresh
// seeds, after the search, decide.
type Leader struct {
	Label      string     `json:"label"`
	Baseline   bool       `json:"baseline,omitempty"`   // it is the baseline itself
	Ratio      *tune.Span `json:"ratio,omitempty"`      // to the baseline in the direction that is better, with its 95 % interval; nil: not known
	Launches   int        `json:"launches,omitzero"`    // of it that Ratio is of
	Confirming bool       `json:"confirming,omitempty"` // Ratio is of the launches that will decide
	Higher     bool       `json:"higher"`               // more of the objective is better
}
