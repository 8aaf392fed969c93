// Package profile has what the rules of published benchmarks have in common: their names, and what
// a run is worth under them. The rules themselves are in the packages below, one for each benchmark.
//
//	if err := profile.Known(name); err != nil { ... }
//
// Invariants: a run that keeps all rules that can be checked has no broken one; what only somebody
// else can show (accuracy, a description of the system) is open and never taken for kept.
package profile

import (
	"fmt"
	"slices"
	"strings"
)

// Names of profiles, as --profile takes them.
const (
	MLPerf      = "mlperf-endpoints"
	MLPerfShort = "mlperf-endpoints-short"
	AgentX      = "agentx"
)

// Names returns the names of all profiles.
func Names() []string { return []string{MLPerf, MLPerfShort, AgentX} }

// Known refuses a name that is none of a profile.
func Known(name string) error {
	if slices.Contains(Names(), name) {
		return nil
	}
	return fmt.Errorf("%q is no profile: use %s, or nothing to have the server's profiler run", name, strings.Join(Names(), ", "))
}

// IsMLPerf reports whether a profile is MLPerf Endpoints, in its full or its short form.
func IsMLPerf(name string) bool { return name == MLPerf || name == MLPerfShort }

// Finding is a rule, by the name that its benchmark gives it, and what a run has to do with it in a
// sentence.
type Finding struct {
	Rule string `json:"rule"`
	Text string `json:"text"`
}

// Findings collects the rules that are broken.
type Findings []Finding

// Add adds a rule, with a sentence, if it is broken.
func (f *Findings) Add(broken bool, rule, format string, args ...any) {
	if broken {
		*f = append(*f, Finding{Rule: rule, Text: fmt.Sprintf(format, args...)})
	}
}

// Outcome is what a run or a series is worth under a profile.
type Outcome struct {
	Profile string    `json:"profile"`
	Valid   bool      `json:"submission_valid"` // no rule that perflab can check is broken
	Broken  []Finding `json:"submission_invalid_reasons,omitempty"`
	Open    []Finding `json:"not_checked,omitempty"` // what only others can show
}

// Of is the outcome of a profile with these broken and open rules.
func Of(name string, broken, open []Finding) *Outcome {
	return &Outcome{Profile: name, Valid: len(broken) == 0, Broken: broken, Open: open}
}

// Breaks reports whether a rule is broken.
func (o *Outcome) Breaks(rule string) bool {
	return slices.ContainsFunc(o.Broken, func(f Finding) bool { return f.Rule == rule })
}

// Sentence says what the outcome is, with the rules that are broken.
func (o *Outcome) Sentence() string {
	if o.Valid {
		return "submission_valid true: every rule of " + o.Profile + " that perflab checks is kept"
	}
	texts := make([]string, len(o.Broken))
	for i, f := range o.Broken {
		texts[i] = fmt.Sprintf("%s (%s)", f.Rule, f.Text)
	}
	return "submission_valid false, by the rules of " + o.Profile + ": " + strings.Join(texts, "; ")
}
