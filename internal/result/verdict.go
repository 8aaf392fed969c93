package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Status of a verdict or of one of its checks.
type Status string

// Sound: believe the figures. Noted: believe them with what is said. Void: do
// not. A check may also remark on what the figures mean (few samples, a burst,
// an unsteady load); that casts no doubt on them, so a verdict with remarks
// alone is sound.
const (
	Sound  Status = "sound"
	Remark Status = "remark"
	Noted  Status = "noted"
	Voided Status = "void"
)

// Check is one thing looked at, with its figures in the sentence.
type Check struct {
	Name   string `json:"name"` // stable: dispatch_lag, client_cpu, gc, tokens, little, identity, peak, failures ...
	Status Status `json:"status"`
	Text   string `json:"text"`
}

// Names of the checks that say what kept a run below the rate that was offered; at
// most one of them is not sound. That of the load generator is dispatch_lag.
const (
	CheckSaturation = "saturation"        // the server
	CheckLimit      = "concurrency_limit" // of the workload
)

// Names of the checks that count calls that failed, and say how a run ended whose figure was looked at.
const CheckFailures, CheckPrecision, CheckPauses = "failures", "precision", "pauses"

// Verdict says whether a run's figures can be believed, with reasons. Package
// verdict makes it.
type Verdict struct {
	Status Status  `json:"status"` // the worst of its checks; remarks do not count
	Checks []Check `json:"checks"`
}

// Check returns a check by its name.
func (v Verdict) Check(name string) (Check, bool) {
	for _, c := range v.Checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Add adds a check, and worsens the status by it; a remark does not.
func (v *Verdict) Add(c Check) {
	v.Checks = append(v.Checks, c)
	if v.Status = cmp.Or(v.Status, Sound); c.Status != Remark && c.Status.rank() > v.Status.rank() {
		v.Status = c.Status
	}
}

// rank orders statuses from good to bad.
func (s Status) rank() int { return slices.Index([]Status{Sound, Remark, Noted, Voided}, s) }

// WorseThan reports whether one status is worse than another.
func (s Status) WorseThan(o Status) bool { return s.rank() > o.rank() }

// Text returns the lines that stand under a block: the status, then what is to
// be said. Of the checks that are sound it shows the simulator's sentence, the
// dispatch lag, the machine's self check and the precision alone.
func (v Verdict) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Verdict: %s (%d checks)\n", v.Status, len(v.Checks))
	for _, c := range v.Checks {
		switch {
		case c.Name == "simulated":
			fmt.Fprintf(&b, "  %s\n", c.Text)
		case c.Status != Sound || c.Name == "dispatch_lag" || c.Name == "self_check" || c.Name == CheckPrecision:
			fmt.Fprintf(&b, "  %-6s %s: %s\n", c.Status, c.Name, c.Text)
		}
	}
	return b.String()
}

// Why returns the sentences of the checks that gave the verdict its status,
// joined by semicolons; "" when it is sound.
func (v Verdict) Why() string {
	var why []string
	for _, c := range v.Checks {
		if c.Status == v.Status && c.Status != Sound {
			why = append(why, c.Text)
		}
	}
	return strings.Join(why, "; ")
}
