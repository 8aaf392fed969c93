package progress

import (
	"fmt"
	"strings"

	"perflab/internal/outcome"
)

// Standing says how far what a directory holds has come, and what may be done next.
func Standing(s outcome.Standing) []string {
	head := fmt.Sprintf("%s: %s, %s", s.Dir, kind(s.Kind), s.State)
	switch {
	case s.Kind == "study" && s.State == outcome.Finished:
		return append([]string{fmt.Sprintf("%s after %s", head, counted(s.Ended, "trial", "trials")), s.Verdict}, next(s)...)
	case s.Kind == "study":
		return append(append([]string{head}, study(s)...), next(s)...)
	}
	var out []string
	if s.Kind != "run" {
		head += fmt.Sprintf(", %s made", counted(s.Ended, "run", "runs"))
	}
	if s.Verdict != "" {
		out = append(out, s.Verdict)
	}
	if r := s.Run; r != nil {
		if r.Simulated {
			head += ", SIMULATED"
		}
		out = append(out, run(s, *r))
	}
	return append(append([]string{head}, out...), next(s)...)
}

func kind(k string) string {
	if k == "study" || k == "run" || k == "series" {
		return k
	}
	return "series (" + k + ")"
}

// study is where a study stands that has not come to its end.
func study(s outcome.Standing) (out []string) {
	u := s.Study
	if u == nil {
		out = append(out, fmt.Sprintf("%s ended", counted(s.Ended, "trial has", "trials have")))
		for _, t := range s.Open {
			out = append(out, fmt.Sprintf("trial %d was begun: %s", t.Trial, what(t)))
		}
		return out
	}
	if s.State == outcome.Running {
		if out = Study(*u); len(out) == 0 {
			out = []string{"nothing is launched yet"}
		}
		return out
	}
	text := fmt.Sprintf("stopped on %s with %s ended", u.At.Format("2006-01-02 15:04:05 MST"), counted(u.Ended, "trial", "trials"))
	if u.Most > 0 {
		text += fmt.Sprintf(" of at most %d", u.Most)
	}
	out = append(out, text)
	for _, t := range u.Trials {
		out = append(out, fmt.Sprintf("it was at launch %d: %s, %s", t.Trial, what(t), doing(*u, t)))
	}
	if u.Stopped != "" {
		out = append(out, "why: "+u.Stopped)
	}
	if l := Leader(u.Leader); l != "" {
		out = append(out, l)
	}
	return out
}

// run is how far a run is.
func run(s outcome.Standing, r outcome.RunStanding) string {
	name := ""
	if s.Kind != "run" {
		name = strings.TrimPrefix(strings.TrimSuffix(r.Dir, ".tmp"), s.Dir+"/") + ": "
	}
	l := r.Load
	switch s.State {
	case outcome.Running:
		if r.Started.IsZero() || l.Done == 0 {
			return name + "no request has ended yet"
		}
		text, _, _ := strings.Cut(Load(l), "  0 in flight") // a directory tells of calls that have ended
		return name + text
	case outcome.Stopped:
		of := ""
		if l.Planned > 0 {
			of = fmt.Sprintf(" of %d", l.Planned)
		}
		return fmt.Sprintf("%sstopped after %d%s requests, %d of them failed", name, l.Done, of, l.Failed)
	}
	return fmt.Sprintf("%s%s in %s, %d of them failed", name, counted(l.Done, "request", "requests"), seconds(l.Seconds), l.Failed)
}

// next are the command that makes sense now, and the file to open.
func next(s outcome.Standing) (out []string) {
	switch {
	case s.Next == "":
	case s.State == outcome.Stopped && s.Kind == "study":
		out = append(out, "to go on, keeping what was measured: "+s.Next)
	case s.State == outcome.Running:
		out = append(out, "the report so far: "+s.Next)
	default:
		out = append(out, "the report: "+s.Next)
	}
	if s.Report != "" {
		out = append(out, "to open: "+s.Report)
	}
	return out
}
