package verdict

import (
	"encoding/json"
	"time"

	"perflab/internal/profile"
	"perflab/internal/profile/agentx"
	"perflab/internal/result"
)

// rules are the part of a run's spec that a profile looks at.
type rules struct {
	Name     string          `json:"profile_rules"`
	Idle     time.Duration   `json:"max_system_idle_ns"`
	Body     json.RawMessage `json:"extra_body"`
	Workload agentx.Settings `json:"workload"`
}

// rulesOf are those of a run; of one that another client made there are none.
func rulesOf(h result.Header) (r rules) {
	if h.Imported != nil || json.Unmarshal(h.Spec, &r) != nil {
		return rules{}
	}
	return r
}

// submission judges a run by the rules of the benchmark that it was made by; nil where they judge no single
// run, or there are none.
func submission(a *result.Analysis) *profile.Outcome {
	r := rulesOf(a.Header)
	if r.Name != profile.AgentX {
		return nil
	}
	f := agentx.Facts{
		Settings: r.Workload, Exact: a.Header.Lengths == result.LengthsExact, Streamed: !a.Pooling(),
		Sent: a.Total, Failed: a.Total - a.Completed - a.Failures[result.Cancelled], Overflows: a.Overflows,
		Partial: a.Partial, Simulated: a.Simulated, Seconds: (a.End - a.Start).Seconds(),
	}
	f.SystemIdle, f.Cache, f.Body = r.Idle, a.Header.Cache, r.Body
	if d, err := time.ParseDuration(r.Workload.Duration); err == nil {
		f.Seconds = min(f.Seconds, d.Seconds())
	}
	return agentx.Judge(f)
}

// underRules says in the verdict what a run is worth as a submission.
func underRules(a *result.Analysis, o *profile.Outcome) (c result.Check, made bool) {
	name := rulesOf(a.Header).Name
	switch {
	case o != nil && o.Valid:
		return result.Check{Name: "submission", Status: result.Remark, Text: o.Sentence()}, true
	case o != nil:
		return result.Check{Name: "submission", Status: result.Noted, Text: o.Sentence()}, true
	case name == profile.MLPerfShort:
		return result.Check{Name: "submission", Status: result.Remark, Text: "a point of MLPerf Endpoints' short form, which is no submission"}, true
	case name == profile.MLPerf:
		return result.Check{Name: "submission", Status: result.Remark, Text: "a point of a curve under the rules of MLPerf Endpoints: the whole curve says whether they are kept"}, true
	}
	return c, false
}
