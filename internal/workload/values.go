package workload

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"perflab/internal/workload/scenario"
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

// Span is a length of time as users write it: "90s", "2m", or seconds alone.
type Span string

// Duration returns the span; "" is 0.
func (s Span) Duration() (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(string(s))
	if seconds, bare := strconv.ParseFloat(string(s), 64); bare == nil {
		// Outside the limits the float would not fit; Abs(NaN) fails as well.
		if !(math.Abs(seconds) <= maxSpan.Seconds()) {
			return 0, fmt.Errorf("%q is not a time: write 90s, 2m or 90", string(s))
		}
		d, err = time.Duration(math.Round(seconds*1e9)), nil
	}
	if err != nil || d <= 0 || d > maxSpan {
		return 0, fmt.Errorf("%q is not a time above 0: write 90s, 2m or 90", string(s))
	}
	return d, nil
}

// Share is a part of a whole as users write it: "2%" or 0.02.
type Share string

// Value is the share; "" is 0.
func (s Share) Value() (float64, error) {
	if s == "" {
		return 0, nil
	}
	number, percent := strings.CutSuffix(string(s), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 1) {
		return 0, fmt.Errorf("%q is no share: write 2%% or 0.02", string(s))
	}
	return v, nil
}

// Range is a number or the numbers from one to another: "4", "2-6".
type Range string

// bounds returns the range; "" is 0 to 0.
func (r Range) bounds() (low, high int, err error) {
	if r == "" {
		return 0, 0, nil
	}
	left, right, both := strings.Cut(string(r), "-")
	low, err = strconv.Atoi(left)
	if high = low; both && err == nil {
		high, err = strconv.Atoi(right)
	}
	if err != nil || low < 1 || high < low || high > maxTokens {
		return 0, 0, fmt.Errorf("%q is no range: write 4 or 2-6, from 1 to %d", string(r), maxTokens)
	}
	return low, high, nil
}

// drawer draws numbers of a valid range; 0 of none.
func (r Range) drawer(rng *rand.Rand) func() int {
	low, high, _ := r.bounds() // Validate has seen the error
	return func() int { return low + rng.IntN(high-low+1) }
}

// parseThink reads a mean, or constant:TIME.
func parseThink(text string) (d time.Duration, constant bool, err error) {
	rest, constant := strings.CutPrefix(text, "constant:")
	if d, err = Span(rest).Duration(); err == nil && constant && rest == "" {
		err = fmt.Errorf("%q has no time", text)
	}
	return d, constant, err
}

// maxSpan bounds a schedule, well below where a Duration overflows.
const maxSpan = 10 * 365 * 24 * time.Hour

// Bounds that a typing error passes before memory or time runs out.
const (
	maxRequests = 10_000_000
	maxTokens   = scenario.MaxTokens // of one prompt or answer
	maxBatch    = 10_000             // texts of one request

	leastBurstiness = 0.01 // gaps of shape k are powers U^(1/k), which no float holds for long
)
