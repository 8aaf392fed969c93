package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/expression"
	"perflab/internal/profile/preset"
)

// SLO is one bound on a metric. No data never passes.
type SLO struct {
	Metric string
	Op     string // <= or >=
	Limit  float64
}

// ParseSLO parses a bound: "p99_ttft_ms <= 500", "success_rate >= 99%",
// "p99_ttft < 0.5s". A limit without unit is in the metric's own, which may also
// be written ("2000 tok/s"). The metric is stored under its full name and the
// limit in its unit.
func ParseSLO(s string) (SLO, error) {
	e, ok := expression.Parse(s)
	if name, named := strings.CutPrefix(strings.TrimSpace(s), preset.Prefix+":"); named && !ok {
		p, err := preset.Find(name)
		if err != nil {
			return SLO{}, fmt.Errorf("SLO %q: %w", s, err)
		}
		return SLO{}, fmt.Errorf("SLO %q stands for several bounds where one is wanted: write %s", s, joinBounds(presetBounds(p, "p99_")))
	}
	if !ok {
		return SLO{}, fmt.Errorf("SLO %q has no bound: write it as p99_ttft_ms <= 500", s)
	}
	m, err := Lookup(e.Name)
	if err != nil {
		return SLO{}, fmt.Errorf("SLO %q: %w", s, err)
	}
	limit, err := expression.Limit(e.Limit, m.Unit)
	if err != nil {
		return SLO{}, fmt.Errorf("SLO %q: %w", s, err)
	}
	return SLO{Metric: m.Name, Op: e.Op, Limit: limit}, nil
}

// goodputBounds are the metrics of one call that a goodput bound may name.
var goodputBounds = []string{"ttft", "tpot", "e2el", "ttfa", "ttft_due", "e2el_due", "ttfa_due"}

// ParseGoodput parses the bounds of vLLM's --goodput, in milliseconds:
// "ttft:500 tpot:50 e2el:3000"; a preset such as mlperf:llama3.1-8b stands for
// its own. A call must meet all of them to count.
func ParseGoodput(s string) ([]SLO, error) {
	var slos []SLO
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }) {
		name, limit, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("goodput bound %q: write it as ttft:500", part)
		}
		if name == preset.Prefix {
			p, err := preset.Find(limit)
			if err != nil {
				return nil, fmt.Errorf("goodput bound %q: %w", part, err)
			}
			slos = append(slos, presetBounds(p, "")...)
			continue
		}
		if !slices.Contains(goodputBounds, name) {
			return nil, fmt.Errorf("goodput bound %q: a call has %s", part, strings.Join(goodputBounds, ", "))
		}
		v, err := expression.Limit(limit, "ms")
		if err != nil {
			return nil, fmt.Errorf("goodput bound %q: %w", part, err)
		}
		if v <= 0 {
			return nil, fmt.Errorf("goodput bound %q: the limit must be above 0 ms", part)
		}
		slos = append(slos, SLO{Metric: name + "_ms", Op: "<=", Limit: v})
	}
	if len(slos) == 0 {
		return nil, fmt.Errorf("goodput %q has no bound: write it as ttft:500 tpot:50", s)
	}
	return slos, nil
}

// perCall returns the test of one call by a goodput bound. A call of one token
// meets any bound on TPOT, as in vLLM: nothing came after the first token that
// could be late. Otherwise a call without the figure does not meet it.
func (o SLO) perCall(limit int) (func(*Call) bool, error) {
	name := strings.TrimSuffix(o.Metric, "_ms")
	i := slices.IndexFunc(families(), func(f family) bool { return f.name == name })
	if i < 0 || !slices.Contains(goodputBounds, name) {
		return nil, fmt.Errorf("goodput bound on %q: a call has %s", o.Metric, strings.Join(goodputBounds, ", "))
	}
	value := families()[i].value
	return func(c *Call) bool {
		if n, _ := c.Output(); name == "tpot" && n == 1 {
			return true
		}
		v, ok := value(c, limit)
		return ok && o.Holds(v)
	}, nil
}

// Holds reports whether v is within the bound.
func (o SLO) Holds(v float64) bool {
	if o.Op == ">=" {
		return v >= o.Limit
	}
	return v <= o.Limit
}

// Judge reports whether a summary meets the bound, with a sentence. A figure
// that is absent does not meet it. Percentiles of the calls' latencies are of all calls, see
// Summary.OverCalls.
func (o SLO) Judge(s Summary) (met bool, why string) {
	v, ok := s.Get(o.Metric)
	if !ok {
		return false, fmt.Sprintf("%s: missed, the run has no such figure", o)
	}
	m, err := Lookup(o.Metric)
	if err != nil {
		return false, fmt.Sprintf("%s: missed, %v", o, err)
	}
	if p, ok := s.failedShare(m); ok {
		return o.judgeOver(s, m, p)
	}
	met = o.Holds(v)
	return met, fmt.Sprintf("%s: %s, %s", o, metOrMissed(met), Quantity(v, m.Unit))
}

func metOrMissed(met bool) string { return map[bool]string{true: "met", false: "missed"}[met] }

// Quantity writes a figure with its unit.
func Quantity(v float64, unit string) string {
	if unit == "ratio" {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64) + " " + unit
}

// String returns the bound as ParseSLO reads it: "p99_ttft_ms <= 500".
func (o SLO) String() string {
	return o.Metric + " " + o.Op + " " + strconv.FormatFloat(o.Limit, 'g', -1, 64)
}

// MarshalText returns String.
func (o SLO) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText parses as ParseSLO does.
func (o *SLO) UnmarshalText(text []byte) (err error) {
	*o, err = ParseSLO(string(text))
	return err
}

// presetBounds returns the preset's bounds on a statistic ("p99_"), or on each call
// ("").
func presetBounds(p preset.Preset, stat string) []SLO {
	var slos []SLO
	for _, b := range []struct {
		family string
		limit  float64
	}{{"ttft", p.TTFT}, {"tpot", p.TPOT}, {"e2el", p.E2EL}} {
		if b.limit > 0 {
			slos = append(slos, SLO{Metric: stat + b.family + "_ms", Op: "<=", Limit: b.limit})
		}
	}
	return slos
}

// joinBounds writes bounds as one reads them out.
func joinBounds(slos []SLO) string {
	var texts []string
	for _, o := range slos {
		texts = append(texts, o.String())
	}
	return strings.Join(texts, " and ")
}

// ParseSLOs parses one bound as ParseSLO does, or a preset, which stands for
// its bounds at the 99th percentile: mlperf:llama2-70b-interactive is
// p99_ttft_ms <= 450 and p99_tpot_ms <= 40.
func ParseSLOs(s string) ([]SLO, error) {
	name, ok := strings.CutPrefix(strings.TrimSpace(s), preset.Prefix+":")
	if !ok {
		slo, err := ParseSLO(s)
		if err != nil {
			return nil, err
		}
		return []SLO{slo}, nil
	}
	p, err := preset.Find(name)
	if err != nil {
		return nil, fmt.Errorf("SLO %q: %w", s, err)
	}
	return presetBounds(p, "p99_"), nil
}
