package outcome

import "perflab/internal/tune"

// Forecast is what stands behind the conclusion of a study that launched nothing: a search by
// prediction alone. Its trials are replays, of the baseline, of what the study names and of
// the few best.
type Forecast struct {
	Predicted int             `json:"predicted"`         // configurations
	Unknown   int             `json:"unknown,omitempty"` // of them without a figure
	Refused   int             `json:"refused,omitempty"` // further ones, by rules of their engines
	Cut       bool            `json:"cut,omitempty"`     // the search ended at its limit of predictions
	Named     []tune.Entry    `json:"named,omitempty"`   // what the study names, with its gain over the baseline
	Settings  []tune.Ablation `json:"settings,omitempty"`
	Outside   []string        `json:"outside,omitempty"` // what the errors behind the interval are not known of
}

// Reference is a published recommendation that the study's own is held against.
type Reference struct {
	Label     string   `json:"label"`
	Source    string   `json:"source,omitempty"`
	Command   string   `json:"command,omitempty"`
	Trial     int      `json:"trial,omitzero"` // of it in this study; 0: there is none
	Refused   string   `json:"refused,omitempty"`
	Gain      *float64 `json:"gain,omitempty"`      // over the baseline, in this study
	Published *float64 `json:"published,omitempty"` // its figure of the objective, as published

	PublishedGain *float64   `json:"published_gain,omitempty"` // over the baseline's published figure
	Recommended   *float64   `json:"recommended,omitempty"`    // published figure of what the study recommends; nil: there is none
	Same          bool       `json:"same,omitempty"`           // it is what the study recommends
	Over          *tune.Span `json:"over,omitempty"`           // gain of what is recommended over it, in this study; without an interval Low and High are 0

	Pairs     int         `json:"pairs,omitzero"` // of configurations whose published figures differ
	Alike     int         `json:"alike,omitzero"` // of them that have one figure here
	Otherwise []Otherwise `json:"otherwise,omitempty"`
}

// Otherwise is a pair of configurations that comes the other way round here than published.
type Otherwise struct {
	Better    string  `json:"better"` // as published
	Than      string  `json:"than"`
	Published float64 `json:"published"` // gain
	Here      float64 `json:"here"`      // gain, below 0
}
