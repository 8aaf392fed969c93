package draft

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
)

// Objective is what a study can improve, by a short name.
type Objective struct {
	Name   string
	Metric string
	Doc    string
}

// Objectives are those with a short name, the usual one first. Any other metric goes by its own.
func Objectives() []Objective {
	return []Objective{
		{"throughput", "total_token_throughput", "tokens per second of all requests together"},
		{"latency", "mean_latency", "mean time of a request from sending to its last token"},
		{"ttft", "p99_ttft_ms", "99th percentile of the time to the first token"},
		{"tpot", "mean_tpot_ms", "mean time per output token after the first"},
		{"goodput", "request_goodput", "requests per second that meet a TTFT and a TPOT"},
		{"cost", "cost_per_million_tokens", "cost of a million tokens; needs a price per hour"},
	}
}

// ObjectiveNames are their short names, by commas.
func ObjectiveNames() string {
	var names []string
	for _, o := range Objectives() {
		names = append(names, o.Name)
	}
	return strings.Join(names, ", ")
}

// objective finds one by its short name, or the metric of a name.
func objective(name string) (Objective, error) {
	for _, o := range Objectives() {
		if o.Name == name || o.Metric == name {
			return o, nil
		}
	}
	m, err := result.Lookup(name)
	switch {
	case err != nil:
		return Objective{}, fmt.Errorf("%q is not known: use %s, or a metric of docs/metrics.md", name, ObjectiveNames())
	case m.Better == result.Neither:
		return Objective{}, fmt.Errorf("%s is neither better high nor low: use %s, or a metric that can be improved", name, ObjectiveNames())
	}
	return Objective{Name: name, Metric: m.Name}, nil
}

// Workload is a load with a name.
type Workload struct {
	Name, Title string
	In, Out     int // tokens on average
}

// Workloads are those with a name, the usual one first.
func Workloads() []Workload {
	return []Workload{
		{"chat", "Chat", 1024, 256},
		{"long-prompt", "Long prompts", 8000, 256},
		{"long-answer", "Long answers", 256, 1500},
	}
}

// WorkloadNames are their names, by commas.
func WorkloadNames() string {
	var names []string
	for _, w := range Workloads() {
		names = append(names, w.Name)
	}
	return strings.Join(names, ", ")
}

var inOut = regexp.MustCompile(`^([1-9]\d{0,6})/([1-9]\d{0,6})$`)

// loads are the workloads of a list by commas: names, or IN/OUT in tokens.
func loads(text string) ([]Workload, error) {
	var out []Workload
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		w, err := load(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, w) {
			return nil, fmt.Errorf("%s is named twice", name)
		}
		out = append(out, w)
	}
	return out, nil
}

func load(name string) (Workload, error) {
	for _, w := range Workloads() {
		if w.Name == name {
			return w, nil
		}
	}
	m := inOut.FindStringSubmatch(name)
	if m == nil {
		return Workload{}, fmt.Errorf("%q is not known: use %s, or tokens in and out such as 2000/200", name, WorkloadNames())
	}
	in, _ := strconv.Atoi(m[1]) // digits
	out, _ := strconv.Atoi(m[2])
	return Workload{fmt.Sprintf("in%d-out%d", in, out), fmt.Sprintf("%d tokens in, %d out", in, out), in, out}, nil
}

// images are those of the engines' publishers, for containers.
var images = map[string]string{"vllm": "vllm/vllm-openai:latest", "sglang": "lmsysorg/sglang:latest"}
