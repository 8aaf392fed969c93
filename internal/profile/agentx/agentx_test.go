package agentx

import (
	"testing"
)

// kept are the facts of a run that keeps every rule.
func kept() Facts {
	return Facts{
		Settings: Settings{
			Dataset: "agents", Path: "/home/me/.cache/huggingface/hub/datasets--semianalysisai--cc-traces-weka-062126/snapshots/0/data",
			Arrival: "inf", Sessions: 32, Duration: "30m", SystemIdle: MaxIdle, Cache: "unique",
		},
		Exact: true, Streamed: true, Sent: 1000, Failed: 10, Overflows: 10, Seconds: 900,
	}
}

func TestKept(t *testing.T) {
	if o := Judge(kept()); !o.Valid || len(o.Open) == 0 {
		t.Errorf("%+v", o)
	}
}

// Each rule has a change that breaks it.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		rule   string
		change func(*Facts)
	}{
		{"simulated", func(f *Facts) { f.Simulated = true }},
		{"require_loader", func(f *Facts) { f.Dataset = "random" }},
		{"corpus", func(f *Facts) { f.Path = "/data/cc-traces-weka-062126" }},
		{"timing_mode", func(f *Facts) { f.Arrival = "poisson" }},
		{"timing_mode", func(f *Facts) { f.Steps = "2:30s" }},
		{"timing_mode", func(f *Facts) { f.Sessions = 0 }},
		{"ignore_eos", func(f *Facts) { f.Exact = false }},
		{"ignore_eos", func(f *Facts) { f.Body = []byte(`{"ignore_eos":false}`) }},
		{"ignore_eos", func(f *Facts) { f.Body = []byte(`{"ignore_eos":"No"}`) }},
		{"streaming", func(f *Facts) { f.Streamed = false }},
		{"streaming", func(f *Facts) { f.Body = []byte(`{"stream": false}`) }},
		{"trace_idle_gap_cap", func(f *Facts) { f.MaxIdle = "60s" }},
		{"system_idle_gap_cap", func(f *Facts) { f.SystemIdle = 0 }},
		{"input_truncation", func(f *Facts) { f.OverContext = "truncate" }},
		{"cache_bust", func(f *Facts) { f.Cache = "shared" }},
		{"min_benchmark_duration", func(f *Facts) { f.Seconds = 899 }},
		{"min_benchmark_duration", func(f *Facts) { f.Precision = "2%" }},
		{"context_overflow_rate_exceeded", func(f *Facts) { f.Overflows = 11 }},
		{"failed_request_threshold", func(f *Facts) { f.Failed = 51 }},
		{"run_cancelled", func(f *Facts) { f.Partial = true }},
	} {
		f := kept()
		c.change(&f)
		if o := Judge(f); o.Valid || !o.Breaks(c.rule) || len(o.Broken) != 1 {
			t.Errorf("%s is not what is broken: %+v", c.rule, o.Broken)
		}
	}
}

// What settings alone break is known before the run.
func TestForesee(t *testing.T) {
	s := kept().Settings
	if b := Foresee(s); len(b) > 0 {
		t.Errorf("%+v", b)
	}
	s.Duration, s.MaxIdle = "5m", "60s"
	if b := Foresee(s); len(b) != 2 || b[0].Rule != "trace_idle_gap_cap" || b[1].Rule != "min_benchmark_duration" {
		t.Errorf("%+v", b)
	}
}

// What is allowed breaks nothing.
func TestAllowed(t *testing.T) {
	f := kept()
	f.OverContext, f.NumPrompts, f.Duration = "drop", 500, "1h"
	f.Body = []byte(`{"ignore_eos":true,"stream":true,"top_k":0}`)
	if o := Judge(f); !o.Valid {
		t.Errorf("%+v", o.Broken)
	}
}
