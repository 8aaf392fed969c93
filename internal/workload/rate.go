package workload

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Rate is requests per second; zero or +Inf means all at once. In JSON and
// YAML it is a number or the string "inf", as in vLLM's result files.
type Rate float64

// Inf reports whether all requests are due at once.
func (r Rate) Inf() bool { return r == 0 || math.IsInf(float64(r), 1) }

// String returns the number, or "inf".
func (r Rate) String() string {
	if r.Inf() {
		return "inf"
	}
	return strconv.FormatFloat(float64(r), 'g', -1, 64)
}

// MarshalText writes what UnmarshalText reads.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a number above 0 or "inf" (also YAML's ".inf").
func (r *Rate) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if string(text) == ".inf" {
		v, err = math.Inf(1), nil
	}
	if err != nil || !(v > 0) {
		return fmt.Errorf("request rate %q must be a number above 0 or inf", text)
	}
	*r = Rate(v)
	return nil
}

// MarshalJSON writes "inf" for an infinite rate.
func (r Rate) MarshalJSON() ([]byte, error) {
	if r.Inf() {
		return []byte(`"inf"`), nil
	}
	return json.Marshal(float64(r))
}

// UnmarshalJSON reads a number above 0 or the string "inf".
func (r *Rate) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return fmt.Errorf("request rate %s: %w", data, err)
		}
	}
	return r.UnmarshalText([]byte(text))
}
