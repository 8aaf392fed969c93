package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"perflab/internal/deploy"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
)

// onMachines are the sessions of the study's machines.
func (l *session) onMachines() []*session {
	if len(l.Runtime.Machines) < 2 {
		return []*session{l}
	}
	var out []*session
	for _, m := range l.Runtime.Machines {
		on := *l
		on.Study, on.machine, on.watch = l.On(m), m.Name, l.watch.of(m.Name)
		on.engines = newLauncher(on.Study, on.Options, on.watch)
		on.engines.keeper = l.engines.keeper
		out = append(out, &on)
	}
	return out
}

// several reports whether the study has several machines.
func (l *session) several() bool { return len(l.machines) > 1 }

// release gives up what the runtimes of all machines hold.
func (l *session) release() {
	for _, m := range l.machines {
		m.engines.release()
	}
}

// at is the session of the machine of a proposal.
func (l *session) at(p tune.Proposal) *session {
	return l.machines[max(0, slices.IndexFunc(l.machines, func(m *session) bool { return m.machine == p.Node }))]
}

// sweep ends what a study that goes on left running, and counts it. Each machine knows its own.
func (l *session) sweep(ctx context.Context, log journal.Log) (ended int, err error) {
	if !l.several() {
		all, err := l.engines.sweep(ctx, filepath.Join(l.Dir, trialsDir))
		return len(all), err
	}
	for _, t := range log.Trials {
		m := l.at(t.Proposal)
		m.gone = m.gone || t.Observation != nil && t.Observation.Lost
	}
	for _, t := range log.Trials {
		m := l.at(t.Proposal)
		if m.gone {
			continue
		}
		all, err := m.engines.sweep(ctx, l.studyDir.trial(t.Proposal.Trial))
		if ended += len(all); err != nil {
			return ended, err
		}
	}
	return ended, nil
}

// look finds out what would keep trials from starting on any of the machines.
func (l *session) look(ctx context.Context) error {
	if !l.several() {
		return l.engines.look(ctx)
	}
	var wrong []error
	kinds := map[string][]string{}
	g := &l.engines.ground
	var titles []string
	for _, m := range l.machines {
		if m.gone {
			continue
		}
		err := m.engines.look(ctx)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("machine %s: %w", m.machine, err))
		}
		for _, note := range m.engines.ground.notes {
			if !strings.Contains(note, m.machine) {
				note = "Machine " + m.machine + ": " + note
			}
			g.notes = append(g.notes, note)
		}
		if err != nil {
			continue // what it is is not known
		}
		sort := m.engines.ground.sort()
		titles, kinds[sort] = append(titles, m.engines.ground.title), append(kinds[sort], m.machine)
	}
	if len(kinds) > 1 {
		var parts []string
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			parts = append(parts, strings.Join(kinds[kind], ", ")+": "+cmp.Or(kind, "not known"))
		}
		l.engines.warn("The machines are not alike (%s): all direct the search, and the gain is of launches on the most that are.", strings.Join(parts, "; "))
	}
	if titles = slices.Compact(titles); len(titles) == 1 {
		g.title = titles[0]
	}
	g.pool = l.machines[0].engines.ground.pool
	return errors.Join(wrong...)
}

// ended is a trial that was measured.
type ended struct {
	on  *session // the machine
	p   tune.Proposal
	dir string
	t   *trialRecord
	err error
}

// Start begins to measure a proposal on its machine. Only what needs no other trial is done
// beside other trials: the study's own state is of the one who starts trials and waits.
func (l *session) Start(ctx context.Context, p tune.Proposal) {
	m := l.at(p)
	m.studyDir = l.studyDir
	if l.Baseline != nil && p.Label == tune.BaselineStage {
		p.Label = l.Baseline.Label // the strategy knows no name for it
	}
	e := ended{on: m, p: p, dir: l.studyDir.trial(p.Trial)}
	if e.err = l.prepare(ctx, e); e.err != nil {
		l.ended <- e
		return
	}
	go func() {
		started := clock()
		if e.t, e.err = m.evaluate(ctx, p, e.dir); e.t != nil {
			e.t.Started, e.t.Ended = started, clock()
		}
		l.ended <- e
	}()
}

// prepare makes a trial's machine and directory ready.
func (l *session) prepare(ctx context.Context, e ended) error {
	m, p := e.on, e.p
	m.watch.change(func(s *Status) {
		*s = Status{Machine: m.machine, Stage: p.Stage, Trial: p.Trial, Label: p.Label, Begun: time.Now(), Phase: "preparing", Ended: l.past.ended}
	})
	if m.past.stuck != nil {
		return fmt.Errorf("an engine of the trial before is still there: %w", m.past.stuck)
	}
	if err := m.engines.clear(ctx, e.dir); err != nil {
		return err
	}
	// So that a study under way, or one that is killed, can be reported.
	f, err := l.save(true)
	m.watch.change(func(s *Status) { s.Why = l.why(p, f.Trials) })
	return err
}

// Wait waits for the next trial to end. Its facts are on disk before the journal
// learns that it ended; an attempt without an end leaves nothing that counts.
func (l *session) Wait() (int, tune.Observation, error) {
	e := <-l.ended
	if e.err != nil {
		return e.p.Trial, tune.Observation{}, e.err
	}
	o, err := l.conclude(e)
	return e.p.Trial, o, err
}

// conclude writes down what came of a trial.
func (l *session) conclude(e ended) (tune.Observation, error) {
	t := e.t
	t.conceal(l.Options.Secrets)
	t.Moves = l.nextChanges(e.p, t)
	e.on.gone = l.several() && t.Status == tune.Failed && e.on.unreachable()
	if e.on.gone {
		t.note("Machine %s cannot be reached any more: the study goes on without it.", e.on.machine)
	}
	if err := l.writeJSON(filepath.Join(e.dir, trialFile), t); err != nil {
		return tune.Observation{}, err
	}
	o := t.observation()
	o.Lost = e.on.gone
	if l.several() {
		o.Stratum = e.on.engines.ground.sort()
	}
	var err error
	if o.Files, err = l.studyDir.seal(e.dir); err != nil {
		return tune.Observation{}, err
	}
	l.past.ended++
	e.on.watch.change(func(s *Status) {
		if s.Result, s.Ended, s.Progress = l.outcome(t), l.past.ended, nil; l.several() {
			s.Phase = phaseEnded
		}
	})
	if e.on.gone && l.Tell != nil {
		l.Tell(t.Notes[len(t.Notes)-1])
	}
	l.warn(false, *t)
	return o, nil
}

// unreachable reports whether the session's machine cannot be reached by ssh, or through the fleet's hub, after a
// trial on it was lost: that is the second time.
func (l *session) unreachable() bool {
	rt, err := l.engines.runtime("")
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	if r, ok := rt.(interface{ Reach(context.Context) error }); ok {
		return r.Reach(ctx) != nil
	}
	c, ok := rt.(deploy.Commander)
	if !ok || l.Runtime.Kind != study.SSH && l.Runtime.Kind != study.Fleet {
		return false
	}
	err = c.Command(ctx, l.machine, []string{"true"}, io.Discard)
	_, broke := errors.AsType[*deploy.InfraError](err)
	return broke
}
