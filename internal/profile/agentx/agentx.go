// Package agentx has the rules of SemiAnalysis's AgentX benchmark as AIPerf 0.13 locks them in its scenario
// inferencex-agentx-mvp: what a load must be like, and after the run whether its result is a valid one.
//
//	o := agentx.Judge(agentx.Facts{...})
//
// Invariants: rules have the names that AIPerf gives their locks and its reasons, where it has one; a flag that breaks
// a rule is never changed, and the result says so.
//
// Absent: the load itself (workload, load), and the corpora, which are SemiAnalysis's.
package agentx

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"perflab/internal/profile"
)

// What a run has where nobody says otherwise, and what it must have.
const (
	Duration      = 30 * time.Minute
	LeastDuration = 15 * time.Minute
	StartRatio    = "0..1"
	MaxIdle       = 10 * time.Second // that no server does anything

	MostOverflows = 0.01 // share of requests that the server had no room for
	MostFailed    = 0.05 // share of failed ones, as InferenceX runs it
)

// Corpora are the data sets that count, by their names at Hugging Face.
func Corpora() []string {
	return []string{"semianalysisai/cc-traces-weka-062126"}
}

// Settings are those of a run that rules look at, as its spec has them.
type Settings struct {
	Dataset     string        `json:"dataset_name"`
	Path        string        `json:"dataset_path"`
	NumPrompts  int           `json:"num_prompts"`
	Arrival     string        `json:"arrival"`
	Steps       string        `json:"steps"`
	Sessions    int           `json:"max_concurrency"`
	Duration    string        `json:"duration"`
	Precision   string        `json:"until_precision"`
	MaxIdle     string        `json:"max_idle"`
	OverContext string        `json:"over_context"`
	SystemIdle  time.Duration `json:"-"`
	Cache       string        `json:"-"`
	Body        []byte        `json:"-"` // what is merged into each request's
}

// Facts are what a run was.
type Facts struct {
	Settings
	Exact     bool // the server was told to generate every token that was asked for
	Streamed  bool
	Sent      int // requests that ended
	Failed    int
	Overflows int // failed because the server had no room for the prompt
	Partial   bool
	Seconds   float64 // for which the run was measured
	Simulated bool
}

// Judge holds a run against the rules.
func Judge(f Facts) *profile.Outcome {
	var broken profile.Findings
	add := broken.Add
	add(f.Simulated, "simulated", "SIMULATED: a simulator answered, no hardware was measured")
	f.settings(&broken)
	asked := f.Sent
	share := func(n int) float64 { return float64(n) / float64(max(1, asked)) }
	add(share(f.Overflows) > MostOverflows, "context_overflow_rate_exceeded", "the server had no room for %.1f %% of the requests: at most %g %% may be so", 100*share(f.Overflows), 100*MostOverflows)
	add(share(f.Failed) > MostFailed, "failed_request_threshold", "%.1f %% of the requests failed: at most %g %% may", 100*share(f.Failed), 100*MostFailed)
	add(f.Partial, "run_cancelled", "the run was stopped before its end")
	add(!f.Partial && f.Seconds < LeastDuration.Seconds(), "min_benchmark_duration", "a load of %.0f s is too short: %.0f s are wanted", f.Seconds, LeastDuration.Seconds())
	return profile.Of(profile.AgentX, broken, []profile.Finding{
		{Rule: "server_context", Text: "the server has to run at the model's own context length, which only its command tells"},
	})
}

// Foresee are the rules that a run of these settings will break, before it is made.
func Foresee(s Settings) []profile.Finding {
	seconds := Duration.Seconds()
	if d, err := time.ParseDuration(s.Duration); err == nil {
		seconds = d.Seconds()
	}
	return Judge(Facts{Settings: s, Exact: true, Streamed: true, Seconds: seconds}).Broken
}

// settings looks at what was asked for.
func (f Facts) settings(broken *profile.Findings) {
	add := broken.Add
	add(f.Dataset != "agents", "require_loader", "the requests are of the data set %s: recorded sessions of agents are wanted", f.Dataset)
	add(!ofCorpus(f.Path), "corpus", "%s is not known to be the benchmark's corpus: give its copy in the Hugging Face cache, a directory below datasets--%s", f.Path, strings.ReplaceAll(Corpora()[0], "/", "--"))
	add(f.Arrival != "inf" || f.Steps != "" || f.Sessions == 0, "timing_mode", "sessions must begin as others end: give --max-concurrency, and no rate")
	add(!f.Exact || denied(f.Body, "ignore_eos"), "ignore_eos", "answers could end before they had the recorded length")
	add(!f.Streamed || denied(f.Body, "stream"), "streaming", "answers did not come as a stream")
	add(f.MaxIdle != "", "trace_idle_gap_cap", "--max-idle %s shortens the recorded idle times", f.MaxIdle)
	add(f.SystemIdle != MaxIdle, "system_idle_gap_cap", "the servers together may be idle for %v at most, and no other time", MaxIdle)
	add(f.OverContext == "truncate", "input_truncation", "--over-context truncate cuts prompts")
	add(f.Cache != "unique", "cache_bust", "--cache %s lets the server find prompts of earlier sessions", f.Cache)
	add(f.Precision != "", "min_benchmark_duration", "--until-precision may end the run early")
}

// ofCorpus reports whether a path leads into the Hugging Face cache's copy of a corpus.
func ofCorpus(path string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		for _, name := range Corpora() {
			if part == "datasets--"+strings.ReplaceAll(name, "/", "--") {
				return true
			}
		}
	}
	return false
}

// denied reports whether a JSON object says no to a key.
func denied(body []byte, key string) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		return false
	}
	v, given := object[key]
	switch strings.ToLower(string(bytes.Trim(v, `"`))) {
	case "false", "0", "no":
		return given
	}
	return false
}
