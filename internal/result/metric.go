package result

import (
	"strconv"
	"strings"

	"perflab/internal/gauge"
)

// Better is the direction in which a metric improves.
type Better int

// Directions.
const (
	Neither Better = 0
	Higher  Better = 1
	Lower   Better = -1
)

// String returns "higher", "lower" or "".
func (b Better) String() string {
	switch b {
	case Higher:
		return "higher"
	case Lower:
		return "lower"
	}
	return ""
}

// Metric is one row of the metric table: every place that names, prints,
// scales or explains a figure takes it from here.
type Metric struct {
	Name     string // key in JSON, SLOs and objectives: "p99_ttft_ms"
	Label    string // in the block: "P99 TTFT (ms)"
	Unit     string // "ms", "tok/s", "req/s", "1/h", "s", "tokens", "requests", "chunks", "ratio"
	Section  string // of the block: "", "Time to First Token", ...
	Family   string // of a statistic over samples, "ttft"; "" for a scalar
	Stat     string // of a family: "mean", "p99", ...
	Better   Better
	Decimals int
	Doc      string // one sentence
	Formula  string
}

// Sections of scalars. The block prints the first; vLLM's layout has no place
// for the others.
const (
	sectionRun     = ""
	sectionSteady  = "Steady window"
	sectionFull    = "Full load"
	sectionStream  = "Stream"
	sectionClient  = "Load generator"
	sectionSuccess = "Success"
	sectionCache   = "Prefix cache"

	sectionSessions = "Sessions"

	sectionTelemetry = "Telemetry"
	sectionGPU       = "Per GPU"
	sectionSearch    = "Search"
)

// Headline reports whether the figure is one of the run's own numbers in the
// first part of the block: measured, and neither configured nor a latency.
func (m Metric) Headline() bool {
	return m.Family == "" && m.Section == sectionRun && m.Name != "max_concurrency" && m.Name != "request_rate"
}

// percentile parses "p99", "p99.9".
func percentile(stat string) (float64, bool) {
	digits, ok := strings.CutPrefix(stat, "p")
	if !ok || strings.Trim(digits, "0123456789.") != "" {
		return 0, false
	}
	p, err := strconv.ParseFloat(digits, 64)
	return p, err == nil && p <= 100
}

// PercentileName returns "p99.9" of 99.9.
func PercentileName(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// What a figure may need beyond the calls of a run, besides gauge.SourceEngine, gauge.SourceGPU
// and gauge.SourceHost, readings of which it is made.
const (
	NeedPrice  = "price"  // of the deployment
	NeedGPUs   = "gpus"   // their number
	NeedSearch = "search" // for the load
)

// Needs are what the figure needs beyond the calls of a run.
func (m Metric) Needs() []string {
	var needs []string
	if strings.HasSuffix(m.Name, perGPU) {
		needs = append(needs, NeedGPUs)
	}
	switch {
	case strings.HasPrefix(m.Name, goodputRate), m.Name == goodputConcurrency, strings.HasPrefix(m.Name, AgentsServed):
		needs = append(needs, NeedSearch)
		if strings.HasSuffix(m.Name, perKW) {
			needs = append(needs, gauge.SourceGPU)
		}
	case m.Unit == "price":
		needs = append(needs, NeedPrice)
	case m.Section != sectionTelemetry:
	case strings.Contains(m.Name, "host"):
		needs = append(needs, gauge.SourceHost)
	case strings.Contains(m.Name, "gpu"), m.Name == "throttled_ratio", m.Unit == "J", m.Unit == "tok/s/W":
		needs = append(needs, gauge.SourceGPU)
	default:
		needs = append(needs, gauge.SourceEngine)
	}
	return needs
}

// AgentsServed is the figure that a search of a concurrency gives where it counts sessions.
const AgentsServed = "agents_served"

// Figures that a search gives, by its axis.
const (
	goodputRate        = "goodput_rate"
	goodputConcurrency = "goodput_concurrency"
	perGPU             = "_per_gpu"
	perKW              = "_per_kw"
)
