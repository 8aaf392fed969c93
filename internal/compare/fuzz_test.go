package compare

import (
	"math"
	"testing"
)

// FuzzParseCondition: a condition that is taken has a limit that figures can be held
// against, and what is shown of it reads back as the same.
func FuzzParseCondition(f *testing.F) {
	for _, s := range []string{"p99_ttft_ms > 1.05x", "output_throughput < 0.95x", "mean_tpot_ms > +5%", "p99_ttft_ms > 500", "success_rate<99%", "mean_itl_ms > infx", "p99_ttft_ms > -200%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := ParseCondition(s)
		if err != nil {
			return
		}
		if math.IsNaN(c.Limit) || math.IsInf(c.Limit, 0) || c.Relative && c.Limit <= 0 {
			t.Errorf("%q has the limit %v", s, c.Limit)
		}
		if again, err := ParseCondition(c.String()); err != nil || again.Limit != c.Limit || again.Above != c.Above || again.Relative != c.Relative {
			t.Errorf("%q is %+v and reads back as %+v, %v", s, c, again, err)
		}
	})
}
