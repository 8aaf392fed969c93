package study

import (
	"cmp"
	"fmt"
	"strings"

	"perflab/internal/expression"
	"perflab/internal/result"
	"perflab/internal/tune"
)

// Bound is a constraint of a study: on a figure by itself, as result.SLO has
// it, or on what it is beside the baseline's.
type Bound struct {
	tune.Bound
	text string
}

// ParseBound parses "p99_ttft_ms <= 500" and what result.ParseSLO takes besides,
// and bounds of the baseline's figure: "mean_tpot_ms <= baseline + 5%" is of it,
// "p99_ttft_ms <= baseline + 20 ms" adds to it, and so do points of a share,
// "success_rate >= baseline - 1pt". "accuracy >= baseline - 2pt" is the margin
// of the guard on answers: its Limit is -0.02.
func ParseBound(text string) (Bound, error) {
	e, ok := expression.Parse(text)
	if !ok {
		e.Name = strings.TrimSpace(text)
	}
	ofBase := strings.HasPrefix(e.Limit, baselineWord)
	if e.Name == tune.AccuracyFigure && !ofBase {
		return Bound{}, errAccuracy(text)
	}
	if !ofBase {
		if strings.Contains(e.Limit, baselineWord) {
			return Bound{}, errRelative(text)
		}
		slo, err := result.ParseSLO(text)
		return Bound{tune.Bound{Metric: slo.Metric, Op: slo.Op, Limit: slo.Limit}, text}, err
	}
	return relative(text, e)
}

// baselineWord begins a limit that is one of the baseline's figure.
const baselineWord = "baseline"

func errAccuracy(text string) error {
	return fmt.Errorf("SLO %q: accuracy is held against the baseline's answers: write accuracy >= baseline - 2pt", text)
}

// relative parses what stands behind "baseline".
func relative(text string, e expression.Bound) (Bound, error) {
	rest := strings.TrimSpace(strings.TrimPrefix(e.Limit, baselineWord))
	sign := 1.0
	if amount, minus := strings.CutPrefix(rest, "-"); minus {
		sign, rest = -1, strings.TrimSpace(amount)
	} else if amount, plus := strings.CutPrefix(rest, "+"); plus {
		rest = strings.TrimSpace(amount)
	} else if rest != "" {
		return Bound{}, errRelative(text)
	}
	if e.Name == tune.AccuracyFigure {
		lost, err := parsePoints(rest)
		if err != nil || lost < 0 || e.Op != ">=" || sign > 0 && lost > 0 {
			return Bound{}, errAccuracy(text)
		}
		return Bound{tune.Bound{Metric: e.Name, Op: e.Op, Limit: -lost, Of: tune.Plus}, text}, nil
	}
	m, err := result.Lookup(e.Name)
	if err != nil {
		return Bound{}, fmt.Errorf("SLO %q: %w", text, err)
	}
	b := Bound{tune.Bound{Metric: m.Name, Op: e.Op, Limit: 1, Of: tune.Times}, text}
	switch {
	case rest == "":
		return b, nil
	case strings.HasSuffix(rest, "%"):
		var ok bool
		if b.Limit, ok = expression.Ratio(map[float64]string{1: "+", -1: "-"}[sign] + rest); !ok {
			return Bound{}, errRelative(text)
		}
		return b, nil
	case strings.HasSuffix(rest, "pt"):
		v, err := parsePoints(rest)
		if err != nil || v < 0 || m.Unit != "ratio" {
			return Bound{}, fmt.Errorf("SLO %q: points (pt) are of shares, and %s is in %s: write baseline + 5%% or an amount", text, m.Name, cmp.Or(m.Unit, "plain numbers"))
		}
		b.Of, b.Limit = tune.Plus, sign*v
		return b, nil
	}
	v, err := expression.Limit(rest, m.Unit)
	if err != nil || v < 0 {
		return Bound{}, errRelative(text)
	}
	b.Of, b.Limit = tune.Plus, sign*v
	return b, nil
}

func errRelative(text string) error {
	return fmt.Errorf("SLO %q: write a bound of the baseline's figure as baseline, baseline + 5%%, baseline - 1pt or baseline + 20 ms", text)
}

// String is the bound as it was written.
func (b Bound) String() string { return b.text }

// Against is the bound with a limit of its own, for a baseline's figures; false
// where they lack the one it is of, which no figure can then be shown to keep.
func (b Bound) Against(baseline map[string]float64) (tune.Bound, bool) {
	out := b.Bound
	if b.Of == "" {
		return out, true
	}
	of, ok := baseline[b.Metric]
	if b.Of == tune.Times {
		out.Limit *= of
	} else {
		out.Limit += of
	}
	out.Of = ""
	return out, ok
}

// Judge reports whether a summary keeps the bound, with a sentence. Accuracy is
// no figure of a run: what guards it has its own say.
func (b Bound) Judge(s, baseline result.Summary) (met bool, why string) {
	if b.Metric == tune.AccuracyFigure {
		return true, b.text + ": judged by the questions"
	}
	limit, ok := b.Against(baseline.Figures)
	if !ok {
		return false, b.text + ": missed, the baseline has no such figure"
	}
	met, why = result.SLO{Metric: limit.Metric, Op: limit.Op, Limit: limit.Limit}.Judge(s)
	if _, found, cut := strings.Cut(why, ": "); b.Of != "" && cut {
		why = fmt.Sprintf("%s: %s (the limit is %.5g)", b.text, found, limit.Limit)
	}
	return met, why
}
