package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"perflab/internal/candidate"
	"perflab/internal/engine"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
)

// Tune runs a study to its end, or until ctx is cancelled, and writes
// DIR/study.json after every trial. What it returns is always the study as far
// as it got. Renderers make the report from it.
func Tune(ctx context.Context, s *study.Study, source []byte, o Options) (facts outcome.Study, err error) {
	if err := study.Startable(runtime.GOOS, s.Runtime.Kind); err != nil {
		return outcome.Study{}, err
	}
	o.Secrets = o.Secrets.Join(s.Secrets())
	if err := chooseNodes(ctx, s, &o); err != nil {
		return outcome.Study{}, err
	}
	l := newSession(s, o)
	if o.Resume { // of a large study that takes a while
		l.watch.change(func(s *Status) { s.Phase = "checking what was measured" })
	}
	defer l.release()
	log, err := l.begin(ctx, source)
	if l.studyDir != nil {
		defer l.studyDir.file.Close()
	}
	if err != nil {
		return outcome.Study{}, err
	}
	if o.Follow != nil {
		o.Follow(l.underway.at)
	}
	l.facts.predictor = predictorOf(ctx, l)
	if l.strategy, l.space, err = l.newStrategy(l.facts.predictor); err != nil {
		return outcome.Study{}, err
	}
	defer tune.Stop(l.strategy)
	l.underway.begin(l)
	ended := l.publish()
	defer func() { ended(err) }()
	var short string
	if race, ok := l.strategy.(*tune.Race); ok {
		short = shortBudget(race.Planned())
	}
	l.facts.foreseen = l.foresee(l.facts.predictor, l.space) // by what is predicted before any launch
	if _, err := journal.Resume(l.strategy, log); err != nil {
		return outcome.Study{}, fmt.Errorf("resume %s: %w", o.Dir, err)
	}
	if err := context.Cause(ctx); err != nil { // while it ranked: what it could not predict is in its order
		return outcome.Study{}, err
	}
	if err := l.recall(log); err != nil {
		return outcome.Study{}, err
	}
	l.facts.workloads = l.facts.describe()
	if short != "" && l.Tell != nil {
		l.Tell(short)
	}
	l.warn(true, l.past.trials...)
	err = journal.Run(ctx, l.strategy, l.studyDir.journal, l)
	var ferr error
	facts, ferr = l.save(err != nil)
	if err == nil {
		err = ferr // one that comes after another is its consequence
	}
	return facts, err
}

// newStrategy is that of the study, unless a test has another.
func (l *session) newStrategy(p tune.Predictor) (tune.Strategy, *candidate.Field, error) {
	if l.strategist != nil {
		return l.strategist(l.Study, p)
	}
	return l.Study.NewStrategy(p)
}

// begin looks at what the study stands on, and opens its directory. A new study looks first:
// what would keep every trial from starting is said before there is a directory that the next
// start would find in its way. One that goes on first ends what its killed part left running,
// which would be taken for somebody else's.
func (l *session) begin(ctx context.Context, source []byte) (log journal.Log, err error) {
	if err := (&directory{path: l.Dir}).check(l.Resume); err != nil {
		return log, err
	}
	if err := l.learn(); err != nil {
		return log, err
	}
	if err := l.chooseTokenizers(ctx); err != nil {
		return log, err
	}
	if !l.Resume {
		if err := l.look(ctx); err != nil {
			return log, err
		}
	}
	if l.studyDir, log, err = openDirectory(l.Study, source, l.Options); err != nil || !l.Resume {
		return log, err
	}
	swept, err := l.sweep(ctx, log)
	if err != nil {
		return log, err
	}
	if swept > 0 {
		select {
		case <-time.After(memoryReturns):
		case <-ctx.Done():
		}
	}
	return log, l.look(ctx)
}

// memoryReturns is how long drivers may take to have a device's memory back after the process that
// held it has ended.
const memoryReturns = 5 * time.Second

// clock is the time to the second, as reports have it.
func clock() time.Time { return time.Now().UTC().Truncate(time.Second) }

// save assembles the study's facts from the trial directories and writes
// study.json.
func (l *session) save(partial bool) (outcome.Study, error) {
	trials, err := l.studyDir.trials()
	if err != nil {
		return outcome.Study{}, err
	}
	r := l.strategy.Result()
	f := l.facts.assemble(partial, trials, r)
	l.underway.take(f, r)
	if l.Words != nil {
		f = l.Words(f)
	}
	return f, l.writeJSON(filepath.Join(l.Dir, rundir.StudyFile), f)
}

// writeJSON is rundir.WriteJSON without secrets.
func (l *session) writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return rundir.WriteFile(path, append(l.Options.Secrets.JSON(b), '\n'))
}

// evaluate measures one configuration: one launch, one run per workload. What
// the engine refuses, what our machinery breaks and what cannot be believed
// are three different ends.
func (l *session) evaluate(ctx context.Context, p tune.Proposal, dir string) (*trialRecord, error) {
	t := &trialRecord{Trial: outcome.Trial{
		ID: p.Trial, Stage: p.Stage, Label: p.Label, Engine: p.Config["engine"],
		Config: p.Config, Machine: p.Node, Share: l.LoadShare(p), GPUs: l.Hardware.GPUs, Status: tune.Measured,
	}, Devices: l.engines.ground.pool.Devices}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	e, err := engine.ByName(p.Config["engine"])
	if err != nil {
		return nil, err
	}
	if t.Notes, err = l.engines.ask(ctx, e); err != nil {
		return nil, err
	}
	t.Version = l.engines.version(e.Name)
	config, err := l.engines.configure(p.Config)
	t.Command = redacted(config.Command)
	if err == nil {
		err = l.fits(t, p, config)
	}
	if r, ok := errors.AsType[*engine.Rejection](err); ok && !l.Attached() {
		t.reject(e, r, config.Command)
		return t, nil
	}
	if err != nil && !l.Attached() {
		return nil, err
	}
	t.Notes = append(t.Notes, l.remarks(config)...)
	if shorter := l.ShorterContext(p.Config); shorter != "" {
		t.note("It %s.", shorter)
	}
	t.Replicas = config.Replicas
	if l.Runtime.Kind == study.Existing { // what serves there is not known
		t.Replicas = max(len(l.Runtime.URLs), 1)
	} else {
		t.Each = config.Config.GPUs
	}
	ev := &evaluation{l, p, t, config, dir}
	if err := ev.writeStart(ctx); err != nil {
		return nil, err
	}
	if l.Runtime.Kind == study.Predicted {
		return t, ev.predict(ctx)
	}
	return t, ev.measure(ctx)
}

// outcome is how a trial ended, in a few words: its figure of the objective, or
// why it has none.
func (l *session) outcome(t *trialRecord) string {
	if t.Status != tune.Measured && t.Advice != "" {
		return t.Status + ": " + t.Reason + " (" + t.Advice + ")"
	}
	if t.Status != tune.Measured {
		return t.Status + ": " + t.Reason
	}
	m := l.Metric
	if len(t.Runs) == 0 {
		return t.Status
	}
	v, ok := t.Runs[0].Summary.Figures[m.Name]
	if !ok {
		return t.Status
	}
	text := fmt.Sprintf("%s %.*f", m.Label, m.Decimals, v)
	if len(l.Objective.Weights) > 1 {
		text += " on " + l.Workloads[0].Name // of several that are judged
	}
	if t.Share > 0 && t.Share < 1 {
		text += fmt.Sprintf(" under %.0f %% of the load", 100*t.Share)
	}
	return text
}

// nextChanges is what the end of a trial asks for next: a repair of a refusal, or an
// answer to what bounds the primary workload.
func (l *session) nextChanges(p tune.Proposal, t *trialRecord) []tune.Change {
	switch {
	case l.space == nil:
		return nil
	case t.Status == tune.Refused && t.failed != nil:
		return l.space.Repairs(p.Config, t.failed.Failure, t.failed.command)
	case t.Status != tune.Measured || len(t.Runs) == 0:
		return nil
	}
	figures := maps.Clone(t.Runs[0].Summary.Judged())
	for name, v := range t.engine {
		if _, measured := figures[name]; !measured {
			figures[name] = v
		}
	}
	return l.space.Moves(p.Config, figures, l.missed(p, figures))
}

// missed are the metrics of the constraints that a run's figures do not keep.
// The baseline's own figures are those that its first trial had.
func (l *session) missed(p tune.Proposal, figures map[string]float64) []string {
	if p.Stage == tune.BaselineStage && l.past.baseline == nil {
		l.past.baseline = figures
	}
	var out []string
	for _, b := range l.Bounds {
		if b.Metric == tune.AccuracyFigure {
			continue // answers have a test of their own
		}
		limit, known := b.Against(l.past.baseline)
		if known && !limit.Holds(figures) && !slices.Contains(out, b.Metric) {
			out = append(out, b.Metric)
		}
	}
	return out
}

// recall takes from a journal, and from the trials' own records, what a study that is resumed
// knows of its trials.
func (l *session) recall(log journal.Log) error {
	trials, err := l.studyDir.trials()
	if err != nil {
		return err
	}
	l.past.trials = trials
	for _, t := range trials {
		for _, m := range l.machines {
			m.engines.patience.learn(t.Engine, time.Duration(t.ReadyS*float64(time.Second)))
		}
	}
	for _, t := range log.Trials {
		o := t.Observation
		if o == nil {
			continue
		}
		l.past.ended++
		if t.Proposal.Stage == tune.BaselineStage && o.Status == tune.Measured && l.past.baseline == nil {
			l.past.baseline = o.Figures[l.Workloads[0].Name]
		}
	}
	return nil
}
