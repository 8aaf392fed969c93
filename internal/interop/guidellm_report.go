package interop

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Labels of guidellm's reports.
const (
	labelGuideID      = "benchmark_id" // of one benchmark; equal in both files of benchmark-runner
	labelGuideProfile = "profile"      // constant, poisson, concurrent, throughput, synchronous, sweep
	labelUnstreamed   = "requests_without_token_events"
	labelFirstError   = "first_error"
)

// guideReport is what a report says of all its benchmarks.
type guideReport struct {
	Metadata struct {
		Version int    `json:"version"`
		Guide   string `json:"guidellm_version"`
	} `json:"metadata"`
	Args struct { // before 0.6
		Target string          `json:"target"`
		Model  string          `json:"model"`
		Data   json.RawMessage `json:"data"`
		Format string          `json:"data_request_formatter"`
	} `json:"args"`
	Config struct { // since
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
		Spec struct {
			Backend guideBackend    `json:"backend"`
			Data    json.RawMessage `json:"data"`
		} `json:"spec"`
	} `json:"config"`

	data string // what it says of its data, the same for all benchmarks
}

// mostGuideLabels of one report are taken: each of its runs has them.
const mostGuideLabels = 100

type guideBackend struct {
	Target string `json:"target"`
	Model  string `json:"model"`
	Format string `json:"request_format"`
}

// guideBenchmark is one benchmark without its figures.
type guideBenchmark struct {
	Config struct {
		ID       string        `json:"id_"`
		RunID    string        `json:"run_id"`
		Strategy guideStrategy `json:"strategy"`
		Profile  struct {
			Limit int `json:"max_concurrency"`
		} `json:"profile"`
		Backend guideBackend `json:"backend"`
	} `json:"config"`
	Scheduler struct {
		Start        guideTime `json:"start_time"`
		MeasureStart guideTime `json:"measure_start_time"`
		MeasureEnd   guideTime `json:"measure_end_time"`
	} `json:"scheduler_metrics"`
	Metrics struct {
		Totals *guideCounts `json:"request_totals"`
	} `json:"metrics"`
	Requests  *guideRequests `json:"requests"`
	Truncated *guideRequests `json:"requests_truncated"`
}

type guideStrategy struct {
	Type    string  `json:"type_"`
	Rate    float64 `json:"rate"`
	Streams int     `json:"streams"`
	Limit   int     `json:"max_concurrency"`
}

type guideCounts struct {
	Successful int `json:"successful"`
	Incomplete int `json:"incomplete"`
	Errored    int `json:"errored"`
}

type guideRequests struct {
	Successful []json.RawMessage `json:"successful"`
	Incomplete []json.RawMessage `json:"incomplete"`
	Errored    []json.RawMessage `json:"errored"`
}

// guideRun is one benchmark while it is read.
type guideRun struct {
	o         object
	head      *guideReport
	line, end int
	b         guideBenchmark
	run       Run
	faults    []Fault
}

func (r *guideRun) fault(line int, format string, args ...any) {
	r.faults = append(r.faults, Fault{Place: Place{File: r.o.file, Line: line}, Text: fmt.Sprintf(format, args...)})
}

// version of the report's layout.
func (h *guideReport) version() int {
	if h.Metadata.Version == 0 && h.Config.Spec.Backend != (guideBackend{}) {
		return 2
	}
	return max(1, h.Metadata.Version)
}

// guideData is what a report says of its data, as one text.
func guideData(raw json.RawMessage) string {
	var texts []string
	if json.Unmarshal(raw, &texts) == nil {
		return short(strings.Join(texts, " "))
	}
	var list []struct {
		Kind   string `json:"kind"`
		Path   string `json:"path"`
		Source string `json:"source"`
		Prompt int    `json:"prompt_tokens"`
		Output int    `json:"output_tokens"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return ""
	}
	for _, d := range list {
		switch name := cmp.Or(d.Path, d.Source); {
		case name != "":
			texts = append(texts, d.Kind+" "+name)
		case d.Prompt > 0:
			texts = append(texts, fmt.Sprintf("%s prompt_tokens=%d,output_tokens=%d", d.Kind, d.Prompt, d.Output))
		case d.Kind != "":
			texts = append(texts, d.Kind)
		}
	}
	return short(strings.Join(texts, " "))
}

// guideAPI is our name of an API of guidellm's.
func guideAPI(format string) string {
	switch {
	case strings.Contains(format, "chat"):
		return "openai-chat"
	case strings.Contains(format, "completions"):
		return "openai"
	}
	return ""
}

// guideTime is an epoch time in nanoseconds. guidellm writes seconds; a text is
// taken digit by digit, as a float64 of today's seconds is 0.2 microseconds
// coarse.
type guideTime struct {
	ns int64
	ok bool
}

var errInstant = errors.New("is no time in seconds since 1970")

func (t *guideTime) UnmarshalJSON(data []byte) error {
	*t = guideTime{}
	text := string(data)
	if text == "null" {
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v < 9e9) {
		return fmt.Errorf("%.40s %w", text, errInstant)
	}
	whole, part, _ := strings.Cut(text, ".")
	s, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(part, "0123456789") != "" { // 1.7e9
		*t = guideTime{int64(v * 1e9), true}
		return nil
	}
	digits := (part + "0000000000")[:10]
	tenths, _ := strconv.ParseInt(digits, 10, 64)
	*t = guideTime{s*1e9 + (tenths+5)/10, true}
	return nil
}

// guideRequest is one request of a report.
type guideRequest struct {
	ResponseID string `json:"response_id"`
	Info       struct {
		Conversation string `json:"conversation_id"`
		Turn         int    `json:"turn_index"`
		Timings      struct {
			Targeted     guideTime `json:"targeted_start"`
			Dequeued     guideTime `json:"dequeued"`
			ResolveStart guideTime `json:"resolve_start"`
			Start        guideTime `json:"request_start"`
			First        guideTime `json:"first_token_iteration"`
			Answer       guideTime `json:"first_output_token_iteration"`
			Last         guideTime `json:"last_token_iteration"`
			Events       int       `json:"token_iterations"`
			End          guideTime `json:"request_end"`
			ResolveEnd   guideTime `json:"resolve_end"`
		} `json:"timings"`
		Error string `json:"error"`
	} `json:"info"`
	In struct {
		Total  int `json:"total_tokens"`
		Text   int `json:"text_tokens"`
		Cached int `json:"cached_tokens"`
	} `json:"input_metrics"`
	Out struct {
		Total int `json:"total_tokens"`
		Text  int `json:"text_tokens"`
	} `json:"output_metrics"`
}

// What a report of ours says of its origin, in the labels of its
// configuration, which guidellm keeps as they are.
const (
	labelClient    = "client"
	labelVersion   = "client_version"
	labelSimulated = "simulated"
)
