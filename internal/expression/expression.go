// Package expression reads bounds as people write them: of SLOs, of studies, of conditions.
//
//	e, ok := expression.Parse("p99_ttft_ms <= 500")
//	limit, err := expression.Limit(e.Limit, "ms")
//
// Absent: what figures there are, and what is held against a bound.
package expression

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bound is a bound as it is written, its limit not yet read: SLOs, the
// bounds of a study and the conditions of a comparison are all of this form.
type Bound struct {
	Name  string // of the figure: "p99_ttft"
	Op    string // <= or >=; < and > mean the same, which no measured figure can tell apart
	Limit string // "500", "0.5s", "1.05x": the functions Limit and Ratio read it
}

// Parse takes "p99_ttft_ms <= 500" apart; ok is false where there is no
// sign.
func Parse(s string) (e Bound, ok bool) {
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return e, false
	}
	return Bound{
		Name:  strings.TrimSpace(s[:i]),
		Op:    s[i:i+1] + "=",
		Limit: strings.TrimSpace(strings.TrimPrefix(s[i+1:], "=")),
	}, true
}

// Limit reads a number with an optional unit and converts it to unit.
func Limit(s, unit string) (float64, error) {
	s = strings.TrimSpace(s)
	written, factor := unit, 1.0
	number := s
	for _, u := range []string{"ms", unit, "s", "%"} { // s after the units that end in it
		if n, ok := strings.CutSuffix(s, u); ok {
			number, written = strings.TrimSpace(n), u
			break
		}
	}
	switch written + ">" + unit {
	case "s>ms":
		factor = 1000
	case "ms>s":
		factor = 1.0 / 1000
	case "%>ratio":
		factor = 1.0 / 100
	case unit + ">" + unit:
	default:
		return 0, fmt.Errorf("limit %q: the metric is in %s", s, unit)
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("limit %q is not a number", s)
	}
	v *= factor
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("limit %q is not finite", s)
	}
	return v, nil
}

// Ratio reads a limit that is relative to another figure: "1.05x", or a
// change with its sign, "+5%". ok is false for what is written otherwise, and for
// ratios that are not above 0 or that nobody means.
func Ratio(s string) (ratio float64, ok bool) {
	const absurd = 1e9
	number, times := strings.CutSuffix(s, "x")
	if !times {
		if number, ok = strings.CutSuffix(s, "%"); !ok || !strings.HasPrefix(s, "+") && !strings.HasPrefix(s, "-") {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !times {
		v = 1 + v/100
	}
	return v, err == nil && v > 0 && v < absurd
}
