package figure

import "fmt"

// CDF are the cumulative distributions of one quantity on several sides: which share of the calls is at most so slow.
type CDF struct {
	X     Axis   `json:"x"`
	Sides []Side `json:"sides"`
	SLOs  []Mark `json:"slos,omitempty"` // on X
}

// Side is the distribution of one side.
type Side struct {
	Name   string   `json:"name"`
	Values []Number `json:"values"`           // ascending
	Shares []Number `json:"shares,omitempty"` // from 0 to 1, of the calls that are at most the value; none: Values are the quantiles at equal steps from 0 to 1
	Calls  int      `json:"calls,omitempty"`  // of which it is
}

func (c *CDF) validate() error {
	for _, s := range c.Sides {
		switch {
		case s.Name == "":
			return fmt.Errorf("a side has no name")
		case !ascending(s.Values):
			return fmt.Errorf("the values of side %s do not ascend", s.Name)
		case s.Shares == nil:
			if len(s.Values) == 1 {
				return fmt.Errorf("side %s has one value and no share of it", s.Name)
			}
		case len(s.Shares) != len(s.Values):
			return fmt.Errorf("side %s has %d values and %d shares", s.Name, len(s.Values), len(s.Shares))
		case !ascending(s.Shares) || len(s.Shares) > 0 && (s.Shares[0] < 0 || s.Shares[len(s.Shares)-1] > 1):
			return fmt.Errorf("the shares of side %s do not ascend from 0 to 1", s.Name)
		}
	}
	return nil
}
