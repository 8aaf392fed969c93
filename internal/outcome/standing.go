package outcome

import "time"

// StandingSchema names the format of a Standing; it changes when that does.
const StandingSchema = "perflab.status/1"

// Standing is how far what a directory holds has come: a study, a run, or a series of runs.
type Standing struct {
	Schema  string          `json:"schema"`
	Dir     string          `json:"dir"`
	Kind    string          `json:"kind"`  // study, run, or of a series its kind: sweep, find-max, repeat
	State   State           `json:"state"` // running, stopped, finished
	Ended   int             `json:"ended"` // trials of a study, runs of a series
	Study   *Underway       `json:"study,omitempty"`
	Run     *RunStanding    `json:"run,omitempty"`     // the run, or that of a series that is under way
	Verdict string          `json:"verdict,omitempty"` // of a finished study, or why a series ended
	Report  string          `json:"report,omitempty"`  // a file to open
	Next    string          `json:"next,omitempty"`    // a command that makes sense now
	Open    []UnderwayTrial `json:"open,omitempty"`    // of a study that says nothing else of itself
}

// State says whether something goes on.
type State string

// States of what a directory holds.
const (
	Running  State = "running"
	Stopped  State = "stopped" // before its end
	Finished State = "finished"
)

// RunStanding is how far a run has come, by the calls that its directory has.
type RunStanding struct {
	Dir       string       `json:"dir"`
	Partial   bool         `json:"partial,omitempty"` // not all that was planned was sent
	Model     string       `json:"model"`
	Simulated bool         `json:"simulated"`
	Started   time.Time    `json:"started"`
	Load      UnderwayLoad `json:"load"`
}
