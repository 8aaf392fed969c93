package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/result"
)

// Covariate is a thing besides the figures in which runs should agree for these to
// compare.
type Covariate struct {
	Key     string // as --by takes it: "engine"
	Label   string
	Of      func(result.Header, result.Summary) string // "": the run does not tell
	Differ  string                                     // what to say when they do not agree; "": a reader sees it by the fact itself
	Unknown string                                     // what to say when some run does not tell; "" where that is no doubt
	Setup   bool                                       // somebody chose it, so it may be what a comparison is of

	number    func(result.Summary) (float64, bool) // of work that was done: what Of writes
	tolerance float64                              // by which numbers may differ, as a share
}

// Keys of covariates that code asks for.
const (
	KeyFingerprint  = "fingerprint"
	keyModel        = "model"
	keyEngine       = "engine"
	keyEngineVer    = "engine_version"
	keyCommand      = "command"
	keyInputTokens  = "input_tokens"
	keyOutputTokens = "output_tokens"
	keySuccess      = "success_rate"
)

// Covariates are what runs are checked for before their figures are put side
// by side.
func Covariates() []Covariate {
	return slices.Concat(loadCovariates(), serverCovariates(), outcomeCovariates())
}

// loadCovariates are of who measured and what was sent.
func loadCovariates() []Covariate {
	header := func(of func(result.Header) string) func(result.Header, result.Summary) string {
		return func(h result.Header, _ result.Summary) string { return of(h) }
	}
	return []Covariate{
		{Key: KeyFingerprint, Label: "Workload fingerprint", Of: header(func(h result.Header) string { return h.Fingerprint }),
			Differ:  "The runs did not send the same requests: their figures differ by the workload too.",
			Unknown: "Whether the runs sent the same requests is not known: not every header has a workload fingerprint."},
		{Key: "cache", Label: "Prefix cache policy", Setup: true, Of: header(func(h result.Header) string { return h.Cache }),
			Differ:  "The runs had different prefix cache policies: TTFT and throughput differ by what the cache already held.",
			Unknown: "Whether the runs met the same prefix cache is not known: not every header names its policy."},
		{Key: "tokenizer", Label: "Lengths counted by", Of: header(func(h result.Header) string { return h.Tokenizer }),
			Differ: "Lengths were counted by different tokenizers: figures per token are not of the same tokens."},
		{Key: "backend", Label: "Backend", Setup: true, Of: header(func(h result.Header) string { return h.Backend }),
			Differ: "The runs spoke different APIs: a chat template adds tokens that plain prompts do not have."},
		{Key: "clock", Label: "Stamps taken by", Of: header(func(h result.Header) string { return h.ClockText() }),
			Differ: "Different clocks stamped the reads: latencies differ by the client's own delay too."},
		{Key: "client", Label: "Client", Of: header(clientName),
			Differ: "Different clients, or versions of one, sent the load: what they send and stamp may differ."},
		{Key: "answered_by", Label: "Answered by", Of: answeredBy,
			Differ: "Some of the runs are simulated and some are measured: they do not compare."},
	}
}

// serverCovariates are of what was measured and under which load.
func serverCovariates() []Covariate {
	setup := func(key, label string, of func(result.Header) string) Covariate {
		return Covariate{Key: key, Label: label, Setup: true, Of: func(h result.Header, _ result.Summary) string { return of(h) }}
	}
	label := func(key string) func(result.Header) string {
		return func(h result.Header) string { return h.Label(key) }
	}
	return []Covariate{
		setup(keyModel, "Model", func(h result.Header) string { return h.Model }),
		setup(keyEngine, "Engine", engineName),
		setup(keyEngineVer, "Engine version", label(result.LabelEngineVersion)),
		setup("hardware", "Hardware", label(result.LabelHardware)),
		setup("gpus", "GPUs", label(result.LabelGPUs)),
		setup("workload", "Workload", func(h result.Header) string { return h.Workload }),
		setup("requests", "Requests", func(h result.Header) string {
			if h.Requests == 0 {
				return ""
			}
			return strconv.Itoa(h.Requests)
		}),
		setup("rate", "Request rate", result.Header.RateText),
		setup("limit", "Concurrency limit", result.Header.LimitText),
		setup(keyCommand, "Serving command", func(h result.Header) string { return h.Command }),
	}
}

// workTolerance is by how much the tokens of a request may differ between sides
// that did the same work, as a share; and successTolerance is that of the share of
// calls that succeeded.
const (
	workTolerance    = 0.02
	successTolerance = 0.001
	packTolerance    = 0.05 // of the tokens that a read brings: ITL differs by as much
)

// outcomeCovariates are of the work that was done, which unlike configuration
// nobody sets.
func outcomeCovariates() []Covariate {
	outcome := func(key, label string, decimals int, tolerance float64, number func(result.Summary) (float64, bool)) Covariate {
		return Covariate{Key: key, Label: label, number: number, tolerance: tolerance, Of: func(_ result.Header, s result.Summary) string {
			v, ok := number(s)
			if !ok {
				return ""
			}
			return strconv.FormatFloat(v, 'f', decimals, 64)
		}}
	}
	perRequest := func(total string) func(result.Summary) (float64, bool) {
		return func(s result.Summary) (float64, bool) {
			v, ok := s.Figures[total]
			n := s.Figures["completed"]
			return v / n, ok && n > 0
		}
	}
	success := func(s result.Summary) (float64, bool) { v, ok := s.Figures[keySuccess]; return v, ok }
	return []Covariate{
		outcome(keyInputTokens, "Input tokens per request", 1, workTolerance, perRequest("total_input_tokens")),
		outcome(keyOutputTokens, "Output tokens per request", 1, workTolerance, perRequest("total_output_tokens")),
		outcome(keySuccess, "Success rate", 4, successTolerance, success),
		{Key: "itl_tokens", Label: "Tokens to a gap of ITL", tolerance: packTolerance, Of: gapTokens,
			Differ: "The gaps of the runs' ITL are of unlike numbers of tokens: compare ITL per token, or TPOT."},
	}
}

// gapTokens is how many tokens a gap of the run's ITL is of.
func gapTokens(_ result.Header, s result.Summary) string {
	if _, known := s.Figures["tokens_per_chunk"]; !known {
		return ""
	}
	_, text, _ := strings.Cut(s.PerEvent(), " of ")
	n, _, _ := strings.Cut(text, " ")
	return cmp.Or(n, "1")
}

func clientName(h result.Header) string {
	if h.Imported != nil {
		return strings.TrimSpace(cmp.Or(h.Imported.Client, "an unknown client") + " " + h.Imported.Version)
	}
	name := strings.TrimSpace("perflab " + h.Version)
	if h.Fleet != nil {
		name += fmt.Sprintf(" (agents: %d)", len(h.Fleet.Agents))
	}
	return name
}

func answeredBy(h result.Header, s result.Summary) string {
	switch {
	case h.Predicted || s.Predicted:
		return "prediction"
	case h.Simulated || s.Simulated:
		return "simulated engine"
	}
	return "server"
}

// engineName is the engine as a label or the serving command tells it.
func engineName(h result.Header) string {
	if e := h.Label(result.LabelEngine); e != "" {
		return e
	}
	for _, e := range []struct{ word, name string }{
		{"trtllm-serve", "trtllm"}, {"sglang", "sglang"}, {"vllm", "vllm"},
	} {
		if strings.Contains(h.Command, e.word) {
			return e.name
		}
	}
	return ""
}

// Fact is what several runs say of one thing.
type Fact struct {
	Key    string   `json:"key"`
	Label  string   `json:"label"`
	Values []string `json:"values"` // "": not recorded
	Differ bool     `json:"differ"` // also where one says and another does not
	Setup  bool     `json:"-"`

	covariate Covariate
}

// Known returns the different values that are told.
func (f Fact) Known() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool { return v == "" }))))
}

// Warning is what to say of the fact, "" for nothing.
func (f Fact) Warning() string {
	switch {
	case len(f.Known()) > 1 && !f.close():
		return f.covariate.Differ
	case slices.Contains(f.Values, ""):
		return f.covariate.Unknown
	}
	return ""
}

// close reports whether what is told are numbers within the tolerance of each other.
func (f Fact) close() bool {
	var numbers []float64
	for _, v := range f.Known() {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			return false
		}
		numbers = append(numbers, n)
	}
	return slices.Max(numbers) <= slices.Min(numbers)*(1+f.covariate.tolerance)
}

// Each says what a fact is for each of the names.
func (f Fact) Each(names []string) string {
	parts := make([]string, len(f.Values))
	for i, v := range f.Values {
		if v == "" {
			v = "not recorded"
		}
		parts[i] = names[i] + " " + v
	}
	return strings.Join(parts, ", ")
}

// Facts returns what sides say of each covariate that any of them tells. The
// runs of a side that do not agree give a list.
func Facts(sides []Side) []Fact {
	var out []Fact
	for _, l := range Covariates() {
		f := Fact{Key: l.Key, Label: l.Label, Setup: l.Setup, covariate: l}
		for _, s := range sides {
			f.Values = append(f.Values, s.value(l))
		}
		f.Differ = slices.ContainsFunc(f.Values, func(v string) bool { return v != f.Values[0] })
		if len(f.Known()) > 0 || l.Unknown != "" {
			out = append(out, f)
		}
	}
	return out
}

// value is what the runs of a side say.
func (s Side) value(l Covariate) string {
	var values []string
	for _, m := range s.Runs {
		if v := l.Of(m.Header, m.Summary); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	if len(values) > 3 {
		values = append(values[:2], fmt.Sprintf("%d more", len(values)-2))
	}
	return strings.Join(values, ", ")
}

// sameWorkload reports whether the runs' workloads are one but for the seed and the
// nonce, as far as their specs tell.
func sameWorkload(a, b result.Header) bool {
	kind := func(h result.Header) map[string]any {
		var spec struct {
			Workload map[string]any `json:"workload"`
		}
		if json.Unmarshal(h.Spec, &spec) != nil {
			return nil
		}
		maps.DeleteFunc(spec.Workload, func(k string, _ any) bool { return k == "seed" || k == "nonce" })
		return spec.Workload
	}
	x := kind(a)
	return len(x) > 0 && reflect.DeepEqual(x, kind(b))
}
