package verdict

import (
	"fmt"

	"perflab/internal/result"
)

// judgePrecision says how a run ended that was to end when its figure is known well enough. How
// well that is casts no doubt on the figures: it remarks where less is known than was asked.
func judgePrecision(a *result.Analysis) (result.Status, string) {
	p := a.Client.Precision
	of := fmt.Sprintf("of %d requests in %d blocks, %d left out before them", p.Values, p.Blocks, p.Left)
	switch {
	case p.Half == nil:
		return result.Remark, fmt.Sprintf("how well %s is known cannot be said, and ± %s was asked for: %s (%s): send more requests", p.Figure, percent(p.Asked), p.Because, of)
	case p.Ended:
		return result.Sound, fmt.Sprintf("the run ended after %d requests because %s is known to ± %s by its requests (95 %% interval, %s, %d looks; ± %s was asked for)", a.Total, p.Figure, percent(*p.Half), of, p.Looks, percent(p.Asked))
	case *p.Half <= p.Asked:
		return result.Sound, fmt.Sprintf("the run came to its end with %s known to ± %s by its requests (95 %% interval, %s; ± %s was asked for)", p.Figure, percent(*p.Half), of, percent(p.Asked))
	}
	return result.Remark, fmt.Sprintf("the run came to its end with %s known to ± %s (95 %% interval, %s), and ± %s was asked for: send more requests, or ask for less", p.Figure, percent(*p.Half), of, percent(p.Asked))
}

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }
