package result

// Better is the direction in which a metric improves.
type Better int

// Directions.
const (
	Neither Better = 0
	Higher  Better = 1
	Lower   Better = -1
)

// Metric is one row of the metric table: every place that names, prints,
// scales or explains a figure takes it from here.
type Metric struct {
	Name     string // key in JSON, SLOs and objectives: "p99_ttft_ms"
	Label    string // in the block: "P99 TTFT (ms)"
	Unit     string // "ms", "tok/s", "req/s", "s", "tokens", "requests", "ratio"
	Section  string // of the block: "", "Time to First Token", ...
	Better   Better
	Decimals int
	Doc      string // one sentence
	Formula  string
}

// Lookup finds a metric by name or alias: total_token_throughput, mean_latency
// (= mean_e2el_ms), p99.9_itl_ms. The error names the nearest known metric.
func Lookup(name string) (Metric, error) { panic("not written yet") }
