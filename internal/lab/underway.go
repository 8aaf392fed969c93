package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"perflab/internal/bench"
	"perflab/internal/durable"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// underway is where a study stands while it runs: for the file in its directory, and for who
// asks meanwhile.
type underway struct {
	mu   sync.Mutex
	told outcome.Underway  // what changes from trial to trial
	now  map[string]Status // by machine
	took []time.Duration   // trials that have ended, from start to stop
	side int               // machines, on each of which a trial runs
}

// begin takes what is known before the first trial of this process.
func (u *underway) begin(l *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.told = outcome.Underway{
		Schema: outcome.UnderwaySchema, Name: l.Name, Resume: l.Again, Started: clock(), BudgetS: l.Limits.Time.Seconds(), Most: l.mostTrials(),
		Simulated: l.Runtime.Kind == study.Simulated || l.Runtime.Kind == study.Predicted, Trials: []outcome.UnderwayTrial{},
	}
	u.side = max(1, len(l.machines))
}

// mostTrials is how many trials there can be; 0 where that is not known.
func (l *session) mostTrials() int {
	switch race, ok := l.strategy.(*tune.Race); {
	case ok && l.Limits.Trials == 0 && l.Limits.Time > 0:
		return 0 // time ends it
	case ok:
		return race.Planned().Launches
	case l.Limits.Trials > 0:
		return l.Limits.Trials
	case l.Strategy == study.Survey:
		return len(l.Survey)
	}
	return 0
}

// see takes a change of where a trial stands.
func (u *underway) see(s Status) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now == nil {
		u.now = map[string]Status{}
	}
	u.now[s.Machine] = s
}

// take takes what the study has found so far: what its trials took, and what leads.
func (u *underway) take(f outcome.Study, r tune.Result) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.told.Ended, u.told.SpentS, u.took = len(f.Trials), 0, u.took[:0]
	for _, t := range f.Trials {
		if d := t.Ended.Sub(t.Started); !t.Started.IsZero() && d >= 0 {
			u.took = append(u.took, d)
			u.told.SpentS += d.Seconds()
		}
	}
	u.told.Leader = leader(f, r)
}

// leader is what leads a study so far; nil where nothing is measured.
func leader(f outcome.Study, r tune.Result) *outcome.Leader {
	c := f.Conclusion
	out := &outcome.Leader{Higher: f.Objective.Better == "higher"}
	switch {
	case c == nil || c.Kind != tune.BaselineLeads && c.Kind != tune.CandidateLeads:
		return nil
	case c.Kind == tune.BaselineLeads:
		out.Label, out.Baseline = tune.TheBaseline, true
		return out
	}
	out.Label, out.Ratio = c.Name, c.Ratio
	if p := c.Pair; p != nil { // of single measurements there is no interval
		out.Label = p.Name
		if gain := (tune.Objective{Metric: f.Objective.Metric, Higher: out.Higher}).Gain(figure(f, p.Other), figure(f, p.Value)); gain != nil {
			out.Ratio = &tune.Span{Value: 1 + *gain}
		}
	}
	if r.Challenger > 0 && r.Challenger <= len(f.Trials) {
		out.Launches = searched(f.Trials, r.Challenger)
	}
	if f.Race != nil && len(f.Race.Comparisons) > 0 {
		preferConfirming(out, f.Race.Comparisons)
	}
	return out
}

func figure(f outcome.Study, v float64) map[string]float64 {
	return map[string]float64{f.Objective.Metric: v}
}

// searched counts the launches of the search that had the configuration and the load of one trial.
func searched(trials []outcome.Trial, id int) int {
	n, like := 0, trials[id-1]
	for _, t := range trials {
		if t.Status == tune.Measured && t.Stage != tune.ConfirmStage && t.Stage != tune.CheckStage && t.Share == like.Share && maps.Equal(t.Config, like.Config) {
			n++
		}
	}
	return n
}

// preferConfirming takes the ratio by the launches that will decide, where there are some.
func preferConfirming(out *outcome.Leader, all []tune.Comparison) {
	i := slices.IndexFunc(all, func(c tune.Comparison) bool { return c.Label == out.Label && c.Against == tune.TheBaseline })
	if i < 0 || all[i].Verdict == tune.Unknown {
		return
	}
	out.Ratio, out.Launches, out.Confirming = new(all[i].Ratio), len(all[i].Trials), true
}

// at is all of it at an instant.
func (u *underway) at(now time.Time) outcome.Underway {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.told
	out.At, out.Trials = now.UTC().Truncate(time.Millisecond), []outcome.UnderwayTrial{}
	running := 0.0
	for _, machine := range slices.Sorted(maps.Keys(u.now)) {
		s := u.now[machine]
		if s.Phase == PhaseRanking {
			out.Ranked = s.Ranked
			continue
		}
		if s.Trial == 0 || s.Phase == phaseEnded {
			continue
		}
		out.Trials = append(out.Trials, trialAt(s, now))
		running += now.Sub(s.Begun).Seconds()
	}
	if len(u.took) > 0 {
		sum := time.Duration(0)
		for _, d := range u.took {
			sum += d
		}
		out.EachS = sum.Seconds() / float64(len(u.took))
		out.LeftS = left(out, running, u.side)
	}
	return out
}

// left is how long a study may still take, if each trial takes as long as those before did; nil
// where nothing bounds it.
func left(out outcome.Underway, running float64, machines int) *float64 {
	if out.EachS == 0 || out.Most == 0 && out.BudgetS == 0 {
		return nil
	}
	seconds := float64(max(0, out.Most-out.Ended))*out.EachS - running
	if out.BudgetS > 0 {
		byTime := out.BudgetS - out.SpentS - running
		if seconds = min(seconds, byTime); out.Most == 0 {
			seconds = byTime
		}
	}
	return new(max(0, seconds/float64(machines)))
}

func trialAt(s Status, now time.Time) outcome.UnderwayTrial {
	out := outcome.UnderwayTrial{
		Trial: s.Trial, Machine: s.Machine, Stage: s.Stage, Label: s.Label, Why: s.Why,
		Workload: s.Workload, Phase: s.Phase, Detail: s.Detail, Since: s.Since.UTC().Truncate(time.Millisecond),
	}
	if p := s.Progress; p != nil && s.Phase == bench.PhaseMeasuring {
		out.Load = &outcome.UnderwayLoad{
			Planned: int(p.Planned.Load()), Done: int(p.Done.Load()), Failed: int(p.Failed.Load()),
			InFlight: int(p.InFlight.Load()), Tokens: int(p.Tokens.Load()), Seconds: now.Sub(s.Since).Seconds(),
		}
	}
	return out
}

// publishEvery is how often the file in the study's directory is replaced.
const publishEvery = time.Second

// publish keeps the file in the study's directory until what it returns is called, with why the
// study ended: a study that came to its end has no such file. Nothing waits for it: a file that
// cannot be written costs nobody but who looks at it.
func (l *session) publish() (end func(error)) {
	path := filepath.Join(l.Dir, rundir.UnderwayFile)
	write := func(why error) {
		u := l.underway.at(time.Now())
		if why != nil {
			u.Stopped = why.Error()
		}
		b, err := json.MarshalIndent(u, "", "  ")
		if err == nil {
			_ = durable.Disk{Unsynced: true}.WriteFile(path, append(l.Options.Secrets.JSON(b), '\n'), 0o644)
		}
	}
	write(nil)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(publishEvery)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
				write(nil)
			}
		}
	}()
	return func(why error) {
		close(stop)
		<-done
		if why == nil {
			_ = os.Remove(path)
			return
		}
		write(why)
	}
}

// why says in a few words why a trial is made.
func (l *session) why(p tune.Proposal, before []outcome.Trial) string {
	switch p.Stage {
	case tune.BaselineStage:
		return "the baseline, which everything is held against"
	case tune.ConfirmStage:
		return fmt.Sprintf("confirmation, round %d: on fresh seeds", p.Pass)
	case tune.CheckStage:
		return "is it as good without settings that seem to bring nothing?"
	case tune.HoldOutStage:
		return "further workloads, by which nothing was chosen"
	case tune.RepairStage:
		return "an answer to a refusal or to what bounds it"
	case tune.FinalStage:
		return "one of the best, now under all of the load"
	case tune.RefineStage:
		return "a change of what leads, expected to gain most"
	case tune.BestStage:
		return "predicted best"
	case tune.RaceStage, tune.NamedStage:
		return l.whyRaced(p, before)
	}
	return ""
}

// whyRaced tells what the study names, and the first launch of an engine or a checkpoint, from
// what is expected to gain most.
func (l *session) whyRaced(p tune.Proposal, before []outcome.Trial) string {
	if l.names == nil && l.space != nil {
		g := l.space.SearchSpace()
		for _, c := range g.Candidates {
			if c.Named {
				l.names = append(l.names, c.Label)
			}
		}
		for _, c := range g.Elsewhere {
			l.names = append(l.names, c.Label)
		}
	}
	named := func(label string) bool { return p.Label == label || strings.HasPrefix(p.Label, label+" (") }
	if slices.ContainsFunc(l.names, named) {
		return "named by the study"
	}
	for _, is := range []struct{ key, word string }{{"engine", "engine"}, {"model", "checkpoint"}} {
		if !slices.ContainsFunc(before, func(t outcome.Trial) bool { return t.Config[is.key] == p.Config[is.key] }) {
			return "the first launch of this " + is.word
		}
	}
	return "expected to gain most"
}
