package outcome

import "perflab/internal/tune"

// Earlier is a study made before that this one learned from: what it measured directs the
// search as far as the two are alike. None of its figures is a launch of this study.
type Earlier struct {
	Name           string       `json:"name"`
	Path           string       `json:"path"` // as the study names it
	Simulated      bool         `json:"simulated,omitempty"`
	Likeness       float64      `json:"likeness"`              // 0: nothing is learned from it; 1: it might be a part of this study
	Differences    []string     `json:"differences,omitempty"` // that likeness is made of, in words
	Configurations int          `json:"configurations"`        // that it gives
	Unused         []string     `json:"unused,omitempty"`      // what of it is not used and why, a sentence each
	Measured       []tune.Known `json:"measured,omitempty"`    // what it gives: in earlier.json, and left out of study.json
}
