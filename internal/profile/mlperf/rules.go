package mlperf

import (
	"time"

	"perflab/internal/profile"
)

// Rules are what a point must keep: those of a submission, or of the short form.
type Rules struct {
	Name  string // of the profile
	Ultra time.Duration
	Other time.Duration // of the regions above
	Short bool          // it is no submission
}

// RulesOf are the rules of a profile.
func RulesOf(name string) Rules {
	if name == profile.MLPerfShort {
		return Rules{Name: name, Ultra: 10 * time.Second, Other: 20 * time.Second, Short: true}
	}
	return Rules{Name: name, Ultra: 600 * time.Second, Other: 1200 * time.Second}
}

// Least is for how long a point of a concurrency must be measured in its steady state.
func (r Rules) Least(concurrency int) time.Duration {
	if concurrency <= UltraLow {
		return r.Ultra
	}
	return r.Other
}

// Load is for how long a point is loaded: a fifth longer, since the time in which
// the server fills is no part of its steady state.
func (r Rules) Load(concurrency int) time.Duration { return r.Least(concurrency) * 6 / 5 }

// SeedSet is a set of seeds that MLCommons published, and the first cohort that may use it.
type SeedSet struct {
	ID, Cohort               string
	Scheduler, Sample, Model uint64
}

// SeedSets are the published sets that perflab knows.
func SeedSets() []SeedSet {
	return []SeedSet{{ID: "A", Cohort: "2026-10-C1", Scheduler: 10487924139932647040, Sample: 586478644936801402, Model: 9315206023656308754}}
}

// Dataset is a performance data set of the benchmark.
type Dataset struct {
	Name    string
	Samples int // completed queries that a point needs
}

// Datasets are those for which the checker knows how many queries must be completed.
func Datasets() []Dataset {
	return []Dataset{
		{"open_orca", 24576}, {"cnn_dailymail", 13368}, {"aime25", 30}, {"gpqa", 198}, {"livecodebench", 880},
		{"shopify_product_catalogue", 48289}, {"shopify_product_catalogue_8k", 8000},
		{"mlperf_gpt_oss_performance", 6396}, {"mlperf_gpt_oss_accuracy", 4395}, {"math500", 500},
	}
}

// Models are the names of the benchmark models of the round.
func Models() []string {
	return []string{"llama3_1-8b", "gpt-oss-120b", "deepseek-r1", "kimi-k3", "qwen3_6-35b-a3b", "deepseek-v4_1-flash"}
}

// Names of rules. Those of MLCommons' checker have its names.
const (
	RulePointCount = "point-count"
	RulePointCap   = "point-cap"
	RuleCMax       = "max-concurrency-declared"
	RuleRegions    = "region-computation"
	RuleInRange    = "concurrency-in-range"
	RuleUltraLow   = "ultra-low-concurrency-coverage"
	RuleLow        = "low-concurrency-coverage"
	RuleMedium     = "med-concurrency-coverage"
	RuleHigh       = "high-concurrency-coverage"
	RuleOffline    = "offline-point-present"
	RuleLoad       = "load-pattern"
	RuleDuration   = "point-duration"
	RuleQueries    = "min-query-count"
	RulePasses     = "whole-passes"
	RuleTPOT       = "metric-consistency-tpot-p90"
	RuleDataset    = "config-consistency-dataset"
	RuleWarmup     = "warmup-present"
	RuleSeed       = "seed-set-membership"
	RuleCache      = "kv-cache-salt"
	RuleSound      = "run-sound"
	RuleShort      = "short-form"
	RuleSimulated  = "simulated"
	RuleAccuracy   = "accuracy-coverage"
	RuleSystem     = "system-description-valid"
	RuleClient     = "reference-client"
)
