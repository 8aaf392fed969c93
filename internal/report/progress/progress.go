// Package progress says in lines for a terminal where a study, a run or a series of runs stands.
//
//	for _, line := range progress.Study(u) { ... }
//
// Invariants: what leads a study is never called its winner; what is not known is left out; a line
// begins with what matters most, since a narrow terminal breaks it.
//
// Absent: how the lines get onto a terminal (cli/console), and where the facts come from (lab, source).
package progress

import (
	"fmt"
	"strings"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/report/finding"
)

// Study is a panel of a few lines that says where a study stands.
func Study(u outcome.Underway) []string {
	if u.Ranked > 0 && len(u.Trials) == 0 {
		return []string{ranking(u)}
	}
	var out []string
	for i, t := range u.Trials {
		head := launch(u, t)
		if i == 0 {
			head += "  " + Brief(u.At.Sub(u.Started))
			if u.Simulated {
				head += "  SIMULATED"
			}
		}
		out = append(out, head, "  "+what(t), "  "+doing(u, t))
	}
	if len(out) == 0 {
		return nil
	}
	for _, text := range []string{Leader(u.Leader), timeLeft(u)} {
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}

// StudyLine is the same in a line for a log; "" where nothing is under way.
func StudyLine(u outcome.Underway) string {
	at := Brief(u.At.Sub(u.Started)) + "  "
	if u.Ranked > 0 && len(u.Trials) == 0 {
		return at + ranking(u)
	}
	var parts []string
	for _, t := range u.Trials {
		parts = append(parts, launch(u, t)+"  "+t.Label+"  "+doing(u, t))
	}
	if len(parts) == 0 {
		return ""
	}
	line := at + strings.Join(parts, "  |  ")
	if u.LeftS != nil {
		line += "  study: at most ~" + roughly(*u.LeftS) + " left"
	}
	return line
}

func ranking(u outcome.Underway) string {
	return fmt.Sprintf("ranking configurations by prediction (SIMULATED)  %d predictions", u.Ranked)
}

// launch is which trial of how many one is.
func launch(u outcome.Underway, t outcome.UnderwayTrial) string {
	text := fmt.Sprintf("launch %d", t.Trial)
	if u.Most > 0 {
		text += fmt.Sprintf(" of at most %d", max(u.Most, t.Trial))
	}
	if t.Machine != "" {
		text += " on " + t.Machine
	}
	return text
}

// what is launched, and why.
func what(t outcome.UnderwayTrial) string {
	if t.Why == "" {
		return t.Stage + ": " + t.Label
	}
	return fmt.Sprintf("%s (%s)", t.Label, t.Why)
}

// doing is what is being done with it.
func doing(u outcome.Underway, t outcome.UnderwayTrial) string {
	text := t.Phase
	if t.Workload != "" {
		text = t.Workload + "  " + text
	}
	if t.Load != nil {
		return text + "  " + Load(*t.Load)
	}
	if !t.Since.IsZero() {
		if d := u.At.Sub(t.Since); d >= time.Second {
			text += "  for " + Brief(d)
		}
	}
	if t.Detail != "" {
		text += "  " + t.Detail
	}
	return text
}

// Load is how far a load is, how fast, and how long it may take.
func Load(l outcome.UnderwayLoad) string {
	elapsed := time.Duration(l.Seconds * float64(time.Second))
	// What matters most comes first: a narrow terminal cuts the end.
	parts := []string{fmt.Sprintf("%s %d/%d", Bar(l.Done, l.Planned, 16), l.Done, l.Planned)}
	if l.Planned == 0 { // time decides how many
		parts[0] = fmt.Sprintf("%d done", l.Done)
	}
	if l.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", l.Failed))
	}
	if t := Left(l.Done, l.Planned, elapsed); t != "" {
		parts = append(parts, t)
	}
	if l.Seconds > 0 {
		parts = append(parts,
			fmt.Sprintf("%.1f req/s", float64(l.Done)/l.Seconds),
			fmt.Sprintf("%.0f tok/s", float64(l.Tokens)/l.Seconds))
	}
	return strings.Join(append(parts, fmt.Sprintf("%d in flight", l.InFlight)), "  ")
}

// Leader says what leads a study so far, and by what that is known; "" where nothing is measured.
func Leader(l *outcome.Leader) string {
	if l == nil {
		return ""
	}
	text := "leads so far: " + l.Label
	if l.Baseline || l.Ratio == nil {
		return text
	}
	text += ", " + finding.Ratio(*l.Ratio, l.Higher) + " over the baseline"
	switch {
	case l.Confirming:
		return text + fmt.Sprintf(" by %s of the confirmation", counted(l.Launches, "launch", "launches"))
	case l.Launches > 0:
		text += fmt.Sprintf(" by %s of the search", counted(l.Launches, "launch", "launches"))
	}
	return text + ", not confirmed"
}

// timeLeft is how long a study may still take, and by what that is estimated.
func timeLeft(u outcome.Underway) string {
	if u.LeftS == nil {
		if len(u.Trials) > 0 && u.EachS == 0 {
			return "time left: known after the first launch"
		}
		return ""
	}
	text := "at most ~" + roughly(*u.LeftS) + " left"
	switch n := u.Most - u.Ended; {
	case u.BudgetS > 0 && u.Most == 0:
		return text + fmt.Sprintf(" of the study's %s, by its budget of time", roughly(u.BudgetS))
	case n > 0:
		text += fmt.Sprintf(": %s at %s each, the mean of %d so far", counted(n, "launch", "launches"), roughly(u.EachS), u.Ended)
	}
	return text
}
