package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Names of a summary's JSON that are not figures.
const (
	keySimulated = "simulated"
	keyPredicted = "predicted"
	keyPartial   = "partial"
	keyCompat    = "compat"
	keyCurrency  = "currency"
	keyFailures  = "failures_by_class"
	keyVerdict   = "verdict"
	keySamples   = "samples"
	keyIntervals = "intervals"

	keyDefinitions = "definitions"
)

// MarshalJSON writes one flat object: the figures under their names in the
// order of the metric table, then simulated, predicted, partial, compat where
// the figures are by other definitions than ours, currency of a cost, failures_by_class, verdict,
// samples, intervals and the definitions that are not ours.
func (s Summary) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, name := range s.names() {
		v := s.Figures[name]
		figure, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("encode summary: figure %s: %w", name, err)
		}
		b = append(appendString(b, name), ':')
		b = append(append(b, figure...), ',')
	}
	failures := s.Failures
	if failures == nil {
		failures = map[Class]int{}
	}
	tail, err := json.Marshal(struct {
		Simulated   bool                  `json:"simulated"`
		Predicted   bool                  `json:"predicted"`
		Partial     bool                  `json:"partial"`
		Compat      string                `json:"compat,omitempty"`
		Currency    string                `json:"currency,omitempty"`
		Failures    map[Class]int         `json:"failures_by_class"`
		Verdict     Verdict               `json:"verdict"`
		Samples     map[string]int        `json:"samples,omitempty"`
		Intervals   map[string][2]float64 `json:"intervals,omitempty"`
		Definitions map[string]Definition `json:"definitions,omitempty"`
	}{s.Simulated, s.Predicted, s.Partial, s.Compat, s.Currency, failures, s.Verdict, s.Samples, s.Intervals, s.Definitions})
	if err != nil {
		return nil, err
	}
	return append(b, tail[1:]...), nil
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
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	*s = Summary{Figures: map[string]float64{}}
	targets := map[string]any{
		keySimulated: &s.Simulated, keyPredicted: &s.Predicted, keyPartial: &s.Partial,
		keyCompat: &s.Compat, keyCurrency: &s.Currency, keyFailures: &s.Failures, keyVerdict: &s.Verdict,
		keySamples: &s.Samples, keyIntervals: &s.Intervals,
		keyDefinitions: &s.Definitions,
	}
	for name, raw := range fields {
		if bytes.Equal(raw, []byte("null")) {
			continue
		}
		if target, ok := targets[name]; ok {
			if err := json.Unmarshal(raw, target); err != nil {
				return fmt.Errorf("decode summary: %s: %w", name, err)
			}
			continue
		}
		var v float64
		if err := json.Unmarshal(raw, &v); err != nil {
			return fmt.Errorf("decode summary: figure %s: %w", name, err)
		}
		s.Figures[name] = v
	}
	if len(s.Failures) == 0 {
		s.Failures = nil
	}
	return nil
}
