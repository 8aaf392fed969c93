package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"perflab/internal/bench"
	"perflab/internal/durable"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/tune/journal"
)

// Standing says how far the study, the run or the series in a directory has come, whether a
// process is still at work there, and what a user may do next.
func Standing(dir string) (outcome.Standing, error) {
	dir = strings.TrimSuffix(filepath.Clean(dir), partial)
	s := outcome.Standing{Schema: outcome.StandingSchema, Dir: dir}
	switch {
	case exists(filepath.Join(dir, rundir.JournalFile)):
		return s, studyStanding(&s)
	case rundir.IsRun(dir):
		s.Kind = "run"
		return s, runStanding(&s)
	case rundir.IsSeries(dir), len(unfinishedRuns(dir)) > 0:
		return s, seriesStanding(&s)
	case !exists(dir):
		return s, fmt.Errorf("there is no directory %s: give the one that perflab tune or perflab bench names with --out", dir)
	}
	return s, fmt.Errorf("%s holds no study and no run: give a directory that perflab tune or perflab bench writes", dir)
}

// partial ends the name of a run's directory until the run has ended.
const partial = ".tmp"

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func studyStanding(s *outcome.Standing) error {
	s.Kind, s.State = "study", outcome.Stopped
	if durable.Held(filepath.Join(s.Dir, rundir.JournalFile)) { // looked at first: it may end meanwhile
		s.State = outcome.Running
	}
	var u outcome.Underway
	if path := filepath.Join(s.Dir, rundir.UnderwayFile); exists(path) {
		if err := rundir.ReadJSON(path, &u); err == nil { // else it was removed just now
			s.Study, s.Ended = &u, u.Ended
		}
	}
	if rundir.IsStudy(s.Dir) {
		f, err := rundir.OpenStudy(s.Dir)
		if err != nil {
			return err
		}
		if s.Study == nil && !f.Partial {
			s.State, s.Ended, s.Verdict = outcome.Finished, len(f.Trials), f.Verdict
			if report := filepath.Join(s.Dir, "report.html"); exists(report) {
				s.Report = report
			}
		}
	}
	if s.Study == nil && s.State != outcome.Finished {
		if err := ofJournal(s); err != nil {
			return err
		}
	}
	switch {
	case s.State == outcome.Stopped && s.Study != nil && s.Study.Resume != "":
		s.Next = s.Study.Resume
	case s.State == outcome.Stopped:
		s.Next = "perflab tune STUDY.yaml --out " + s.Dir + " --resume"
	default:
		s.Next = "perflab report " + s.Dir
	}
	return nil
}

// ofJournal takes what the journal says, of a study that says nothing else of itself.
func ofJournal(s *outcome.Standing) error {
	f, err := os.Open(filepath.Join(s.Dir, rundir.JournalFile))
	if err != nil {
		return fmt.Errorf("read the journal: %w", err)
	}
	defer f.Close()
	log, err := journal.Replay(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	for _, t := range log.Trials {
		if p := t.Proposal; t.Observation == nil {
			s.Open = append(s.Open, outcome.UnderwayTrial{Trial: p.Trial, Machine: p.Node, Stage: p.Stage, Label: p.Label})
		} else {
			s.Ended++
		}
	}
	return nil
}

func runStanding(s *outcome.Standing) error {
	r, running, err := runAt(s.Dir)
	if err != nil {
		return err
	}
	s.Run, s.State, s.Next = r, outcome.Finished, "perflab report "+s.Dir
	switch {
	case running:
		s.State = outcome.Running
	case r.Partial:
		s.State = outcome.Stopped
	}
	return nil
}

// runAt is how far a run has come, and whether somebody is at work on it.
func runAt(dir string) (*outcome.RunStanding, bool, error) {
	r, err := rundir.OpenRun(dir)
	if err != nil {
		return nil, false, err
	}
	if !exists(dir) {
		dir += partial
	}
	out := &outcome.RunStanding{Dir: dir, Model: r.Header.Model, Simulated: r.Header.Simulated, Started: r.Header.Started, Partial: r.Partial}
	out.Load.Planned = r.Header.Requests
	var last time.Duration
	for c := range r.All() {
		out.Load.Done++
		if !c.OK() {
			out.Load.Failed++
		}
		n, _ := c.Output()
		out.Load.Tokens += n
		last = max(last, c.End)
	}
	out.Load.Seconds = last.Seconds()
	return out, strings.HasSuffix(dir, partial) && durable.Held(filepath.Join(dir, rundir.CallsFile)), nil
}

// unfinishedRuns are the runs below a directory that are under way, or were stopped.
func unfinishedRuns(dir string) (out []string) {
	entries, _ := os.ReadDir(dir) // none of what does not exist
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); e.IsDir() && strings.HasSuffix(path, partial) && rundir.IsRun(path) {
			out = append(out, strings.TrimSuffix(path, partial))
		}
	}
	return out
}

func seriesStanding(s *outcome.Standing) error {
	var facts bench.SeriesFacts
	if path := rundir.SeriesFile(s.Dir); path != "" {
		if err := rundir.ReadJSON(path, &facts); err != nil {
			return fmt.Errorf("read the series in %s: %w", s.Dir, err)
		}
	}
	s.Kind, s.Ended, s.Verdict, s.State = facts.Kind, len(facts.Points), facts.Stop.Text, outcome.Finished
	if s.Kind == "" {
		s.Kind = "series"
	}
	if facts.Concluded() {
		s.Verdict = facts.Max.Text(facts.SLOs)
	}
	if s.Next = "perflab report " + s.Dir; facts.Stop.Code != "" && facts.Stop.Code != bench.StopInterrupted && facts.Stop.Code != bench.StopError {
		return nil
	}
	s.State = outcome.Stopped
	if durable.Held(s.Dir) {
		s.State = outcome.Running
	}
	for _, dir := range unfinishedRuns(s.Dir) {
		r, running, err := runAt(dir)
		if err != nil {
			return err
		}
		if s.Run == nil || running {
			s.Run = r
		}
	}
	return nil
}
