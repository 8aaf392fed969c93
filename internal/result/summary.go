package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"perflab/internal/jsonl"
	"perflab/internal/profile"
)

// Summary is the figures computed from a run, by metric name. A figure that
// the data does not support is absent, never zero.
type Summary struct {
	Figures     map[string]float64    `json:"-"`
	Simulated   bool                  `json:"simulated"`
	Predicted   bool                  `json:"predicted"`
	Partial     bool                  `json:"partial"`
	Compat      string                `json:"compat,omitempty"`   // Options.Compat; the verdict is on our own definitions all the same
	Currency    string                `json:"currency,omitempty"` // of what the figures name a cost, where known
	Failures    map[Class]int         `json:"failures_by_class"`  // failed calls by class
	Verdict     Verdict               `json:"verdict"`
	Samples     map[string]int        `json:"samples,omitempty"`          // behind the figures of a family, by its name: "ttft"
	Intervals   map[string][2]float64 `json:"intervals,omitempty"`        // 95 % intervals of means, medians and percentiles, by metric name
	Bounds      map[string][2]float64 `json:"late_bounds,omitempty"`      // the least and the most that figures can be where reads were late, by metric name
	Approximate map[string]float64    `json:"approximate,omitempty"`      // by what share a figure of a very long run may be off, by metric name; all others are exact
	OverCalls   map[string]float64    `json:"over_all_calls,omitempty"`   // percentiles of latencies of calls when those that failed count as endless; absent where none failed, or too many
	OneIn       int                   `json:"calls_kept_one_in,omitzero"` // of a very long run: plots, and blocks of compare, are of one call in so many
	Agents      []AgentFigures        `json:"agents,omitempty"`           // of a load that a fleet sent
	Submission  *profile.Outcome      `json:"submission,omitempty"`       // under the rules of the benchmark that the run was made by; nil: by none
	// Definitions of the figures that are not ours, by family ("ttft") or scalar; see Summary.Definition.
	Definitions map[string]Definition `json:"definitions,omitempty"`
}

// Get returns a figure by name or alias.
func (s Summary) Get(name string) (v float64, ok bool) {
	if v, ok = s.Figures[name]; ok {
		return v, true
	}
	m, err := Lookup(name)
	if err != nil {
		return 0, false
	}
	v, ok = s.Figures[m.Name]
	return v, ok
}

// Definition returns the definition of a figure.
func (s Summary) Definition(name string) Definition {
	if d, ok := s.Definitions[name]; ok {
		return d
	}
	if m, err := Lookup(name); err == nil && m.Family != "" {
		return s.Definitions[m.Family]
	}
	return Ours
}

// summaryKeys are the names of a summary's JSON that are not figures.
var summaryKeys = []string{
	"simulated", "predicted", "partial", "compat", "currency", "failures_by_class", "verdict", "samples", "intervals", "late_bounds", "approximate", "over_all_calls", "calls_kept_one_in", "agents", "submission", "definitions",
}

// MarshalJSON writes one flat object: the figures under their names in the
// order of the metric table, then what the fields of Summary name.
func (s Summary) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, name := range s.names() {
		figure, err := json.Marshal(s.Figures[name])
		if err != nil {
			return nil, fmt.Errorf("encode summary: figure %s: %w", name, err)
		}
		b = append(jsonl.AppendText(b, name), ':')
		b = append(append(b, figure...), ',')
	}
	if s.Failures == nil {
		s.Failures = map[Class]int{}
	}
	type plain Summary // without methods
	rest, err := json.Marshal(plain(s))
	if err != nil {
		return nil, err
	}
	return append(b, rest[1:]...), nil
}

// names returns the figures' names in the order of the metric table, unknown
// percentiles beside their family and the rest at the end.
func (s Summary) names() []string {
	rank := map[string]int{}
	for i, m := range Metrics() {
		rank[m.Name] = i
	}
	place := func(name string) int {
		if i, ok := rank[name]; ok {
			return i
		}
		if m, err := Lookup(name); err == nil && m.Family != "" {
			return rank[PercentileName(99)+"_"+m.Family+"_ms"]
		}
		return len(rank)
	}
	places := make(map[string]int, len(s.Figures))
	for name := range s.Figures {
		places[name] = place(name)
	}
	return slices.SortedFunc(maps.Keys(places), func(a, b string) int {
		return cmp.Or(cmp.Compare(places[a], places[b]), cmp.Compare(a, b))
	})
}

// UnmarshalJSON reads what MarshalJSON writes. A null is an absent figure.
func (s *Summary) UnmarshalJSON(data []byte) error {
	type plain Summary // without methods
	*s = Summary{Figures: map[string]float64{}}
	if err := json.Unmarshal(data, (*plain)(s)); err != nil {
		return fmt.Errorf("decode summary: %w", err)
	}
	if len(s.Failures) == 0 {
		s.Failures = nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	for name, raw := range fields {
		if bytes.Equal(raw, []byte("null")) || slices.Contains(summaryKeys, name) {
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("decode summary: figure %s: %w", name, err)
		}
		s.Figures[name] = v
	}
	return nil
}

// Within says how far a figure of a very long run may be off, "within 0.0031 %"; "" of
// one that is exact.
func (s Summary) Within(name string) string {
	bound := s.Approximate[name]
	if bound <= 0 {
		return ""
	}
	return fmt.Sprintf("within %.2g %%", 100*bound)
}
