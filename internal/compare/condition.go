package compare

import (
	"fmt"
	"strings"

	"perflab/internal/expression"
	"perflab/internal/result"
)

// Condition is what a comparison must not show: a figure of a later side
// beyond a limit, which is a ratio to the first side or a value of its own.
type Condition struct {
	Metric   result.Metric
	Above    bool    // it fails above the limit; else below
	Limit    float64 // ratio to the first side, or a value in the metric's unit
	Relative bool
	text     string
}

// String returns the condition as it was written.
func (c Condition) String() string { return c.text }

// ParseCondition parses "p99_ttft_ms > 1.05x", "output_throughput < 0.95x",
// "mean_tpot_ms > +5%" and "p99_ttft_ms > 500": a number with x is a ratio, a
// percentage with a sign a change, and anything else a value of the figure.
func ParseCondition(s string) (Condition, error) {
	c := Condition{text: strings.Join(strings.Fields(s), " ")}
	e, ok := expression.Parse(s)
	if !ok {
		return c, fmt.Errorf("condition %q has no limit: write it as p99_ttft_ms > 1.05x", s)
	}
	if e.Name == "" {
		return c, fmt.Errorf("condition %q names no figure: write it as p99_ttft_ms > 1.05x", s)
	}
	m, err := result.Lookup(e.Name)
	if err != nil {
		return c, fmt.Errorf("condition %q: %w", s, err)
	}
	c.Metric, c.Above = m, e.Op == ">="
	percent := strings.HasSuffix(e.Limit, "%")
	signed := strings.HasPrefix(e.Limit, "+") || strings.HasPrefix(e.Limit, "-")
	switch {
	case strings.HasSuffix(e.Limit, "x"), percent && signed:
		if c.Limit, c.Relative = expression.Ratio(e.Limit); !c.Relative {
			return c, fmt.Errorf("condition %q: the limit is no ratio above 0: write it as 1.05x or +5%%", s)
		}
	case percent && m.Unit != "ratio":
		return c, fmt.Errorf("condition %q: write a change with its sign, +%s or -%s", s, e.Limit, e.Limit)
	default:
		if c.Limit, err = expression.Limit(e.Limit, m.Unit); err != nil {
			return c, fmt.Errorf("condition %q: %w", s, err)
		}
	}
	return c, nil
}

// Ruling is a condition held against one side.
type Ruling struct {
	Condition string `json:"condition"`
	Side      string `json:"side"`
	Failed    bool   `json:"failed"`
	Text      string `json:"text"` // why, one sentence without its full stop
}

// Rule holds conditions against every side but the first. What is missing or
// cannot be compared fails: nothing passes for lack of data.
func (c Comparison) Rule(conditions []Condition) []Ruling {
	out := []Ruling{}
	for _, k := range conditions {
		for i := 1; i < len(c.Sides); i++ {
			r := Ruling{Condition: k.text, Side: c.Sides[i].Name}
			r.Failed, r.Text = c.rule(k, i)
			out = append(out, r)
		}
	}
	return out
}

func (c Comparison) rule(k Condition, i int) (failed bool, text string) {
	for j := range c.Sides {
		if void := c.Sides[j].Void; void != "" && (j == i || j == 0 && k.Relative) {
			return true, fmt.Sprintf("%s is void: %s", c.Sides[j].Name, void)
		}
	}
	var row *Row
	for j := range c.Rows {
		if r := &c.Rows[j]; r.Name == k.Metric.Name && (row == nil || r.Cells[i].Value != nil) {
			row = r
		}
	}
	if row == nil {
		return true, "the figure is not in the comparison"
	}
	cell := row.Cells[i]
	if cell.Value == nil {
		return true, cell.Why
	}
	if !k.Relative {
		failed = k.beyond(*cell.Value)
		return failed, fmt.Sprintf("%s, %s %s (the figure alone decides)",
			result.Quantity(*cell.Value, row.Unit), map[bool]string{true: "beyond", false: "within"}[failed], result.Quantity(k.Limit, row.Unit))
	}
	first := row.Cells[0].Value
	switch {
	case first == nil:
		return true, "not comparable: " + cell.Why
	case cell.Ratio == nil && *first == 0 && *cell.Value == 0:
		return false, "both are 0"
	case cell.Ratio == nil && *first == 0:
		failed = k.Above == (*cell.Value > 0)
		return failed, fmt.Sprintf("%s where %s has 0 (the figures alone decide)", result.Quantity(*cell.Value, row.Unit), c.Sides[0].Name)
	case cell.Ratio == nil:
		return true, "the figures have no ratio"
	}
	return k.ratio(cell)
}

// ratio rules on a cell that has one. A ratio beyond the limit fails when its
// interval, where there is one, does not hold 1.
func (k Condition) ratio(cell Cell) (failed bool, text string) {
	beyond := k.beyond(*cell.Ratio)
	if cell.Low == nil {
		why := "without an interval the ratio alone decides: " + cell.Why
		return beyond, fmt.Sprintf("%.4gx; %s", *cell.Ratio, why)
	}
	text = fmt.Sprintf("%.4gx, 95 %% interval %.4gx to %.4gx", *cell.Ratio, *cell.Low, *cell.High)
	shown := *cell.Low > 1 || *cell.High < 1
	if beyond && !shown {
		text += ": beyond the limit, but no difference is shown"
	}
	return beyond && shown, text
}

func (k Condition) beyond(v float64) bool {
	if k.Above {
		return v > k.Limit
	}
	return v < k.Limit
}
