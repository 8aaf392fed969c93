package command

import (
	"strconv"
	"strings"
)

// Benchmark is what a benchmark command or profile asks for; 0 is anything.
type Benchmark struct {
	Requests, Input, Output float64
	ShareGPT                bool
}

// DefaultInput and DefaultOutput are the tokens of a prompt and of its answer
// that vllm bench serve asks for where its command names none.
const (
	DefaultInput  = 1024
	DefaultOutput = 128
)

// ReadBenchmark reads what a benchmark command asks for.
func ReadBenchmark(text string) Benchmark {
	w := Read(text)
	a := Benchmark{Requests: w.Number("num-prompts", "max-requests", "num-requests", "request-count"),
		Input: w.Number("random-input-len", "input-len"), Output: w.Number("random-output-len", "output-len", "sharegpt-output-len")}
	dataset := w.Flags["dataset-name"]
	a.ShareGPT = strings.EqualFold(dataset, "sharegpt")
	if strings.Contains(text, "vllm bench") && (dataset == "" || dataset == "random") {
		if a.Input == 0 && !strings.Contains(text, "random-input-len") {
			a.Input = DefaultInput
		}
		if a.Output == 0 && !strings.Contains(text, "random-output-len") {
			a.Output = DefaultOutput
		}
	}
	return a
}

// Flag is the value of the first of the flags that has one; "" for none.
func (s Setup) Flag(names ...string) string {
	for _, n := range names {
		if v := s.Flags[n]; v != "" {
			return v
		}
	}
	return ""
}

// Number is that of the first of the flags that has one; 0 for none.
func (s Setup) Number(names ...string) float64 {
	for _, n := range names {
		if v, err := strconv.ParseFloat(s.Flags[n], 64); err == nil {
			return v
		}
	}
	return 0
}
