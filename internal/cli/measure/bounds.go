package measure

import (
	"fmt"
	"regexp"
	"strings"

	"perflab/internal/openai"
	"perflab/internal/result"
)

// tokenMetrics finds the figures that need an answer of tokens.
var tokenMetrics = regexp.MustCompile(`(^|_)(ttft|tpot|ttfa|itl|output_throughput|output_tokens)(_|$)`)

// checkBounds refuses bounds on figures that the run cannot have: after an hour
// of load every one of them would be missed, as if the server were to blame.
func (f *benchFlags) checkBounds() error {
	whole := func(flag string, bound result.SLO) error {
		if openai.Generates(f.spec.Backend) || !tokenMetrics.MatchString(bound.Metric) {
			return nil
		}
		return fmt.Errorf("%s on %s: answers of backend %s are whole, they have only e2el and e2el_due", flag, bound.Metric, f.spec.Backend)
	}
	for _, bound := range f.bounds {
		if strings.Contains(bound.Metric, "goodput") && len(f.spec.Goodput) == 0 {
			return fmt.Errorf("--slo on %s needs --goodput, which says what a good call is", bound.Metric)
		}
		if err := whole("--slo", bound); err != nil {
			return err
		}
	}
	for _, text := range f.spec.Goodput {
		bounds, err := result.ParseGoodput(text)
		if err != nil {
			return nil // Validate says it
		}
		for _, bound := range bounds {
			if err := whole("--goodput", bound); err != nil {
				return err
			}
		}
	}
	return nil
}
