package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"perflab/internal/bench"
	"perflab/internal/candidate"
	"perflab/internal/deploy"
	"perflab/internal/engine/cluster"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/selfcheck"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// TuneOptions say where and how a study runs.
type TuneOptions struct {
	Dir       string // study directory
	Resume    bool   // continue the study in Dir
	Version   string // of perflab
	Self      string // this program, started again for simulated engines
	APIKey    string
	Predictor bench.Predictor // for runtime kind predicted
	Watch     func(Status)    // told of every change, one at a time; may be nil

	grace  time.Duration   // that an engine of runtime process has to end, 0: the runtime's
	pauses []time.Duration // before each further try of what our machinery broke, nil: backoff
}

// Status is where a study stands.
type Status struct {
	Stage    string
	Trial    int
	Label    string
	Workload string
	Phase    string         // one of the run's, or "preparing", "launching", "predicting"
	Detail   string         // what the runtime said last in this phase: how far an image is pulled
	Since    time.Time      // when the phase began
	Ranked   int            // configurations whose figures were foretold since the last trial
	Ended    int            // trials that have ended
	Result   string         // of the trial that has just ended, with its figure
	Progress *load.Progress // of the run under way, nil between runs
}

// Names in a study directory.
const (
	journalFile = "journal.jsonl"
	trialFile   = "trial.json"
	sourceFile  = "study.yaml"
)

// Tune runs a study to its end, or until ctx is cancelled, and writes
// DIR/study.json after every trial. What it returns is always the study as far
// as it got. Renderers make the report from it.
func Tune(ctx context.Context, s *study.Study, source []byte, o TuneOptions) (result.Study, error) {
	if o.pauses == nil {
		o.pauses = backoff()
	}
	l := &session{Study: s, TuneOptions: o, selfCheck: selfcheck.Load(o.Version)}
	log, err := l.open(source)
	if err != nil {
		return result.Study{}, err
	}
	defer l.file.Close()
	defer l.release()
	if l.strategy, l.field, err = s.NewStrategy(l.predictor(ctx)); err != nil {
		return result.Study{}, err
	}
	defer tune.Stop(l.strategy)
	if _, err := tune.Resume(l.strategy, log); err != nil {
		return result.Study{}, fmt.Errorf("resume %s: %w", o.Dir, err)
	}
	if err := context.Cause(ctx); err != nil { // while it ranked: what it could not foretell is in its order
		return result.Study{}, err
	}
	l.recall(log)
	l.described = l.loads()
	err = tune.Run(ctx, l.strategy, l.journal, l.trial)
	facts, ferr := l.save(err != nil)
	if err == nil {
		err = ferr // one that comes after another is its consequence
	}
	return facts, err
}

// session is a study that runs.
type session struct {
	*study.Study
	TuneOptions
	strategy tune.Strategy
	field    *candidate.Field   // of what may be tried; nil: the study lists it
	base     map[string]float64 // figures of the baseline's first trial, once it was measured
	file     *os.File
	journal  *tune.Journal
	ended    int
	watching sync.Mutex // guards status
	status   Status
	engines  map[string]installed        // by name, those that were asked
	runtimes map[string]deploy.Runtime   // by engine, those that were made
	islands  map[string]cluster.Topology // by machine, where known; nil: not asked yet
	live     live                        // that is being measured
	checked  map[string]bool             // machines that passed their checks, by place and model
	stuck    error                       // an engine that could not be stopped

	selfCheck *result.SelfCheck // of this client on this machine
	described []result.Load     // the workloads as facts: opening a dataset takes time
}

// open creates the study directory, or reopens it, and reads the journal.
func (l *session) open(source []byte) (_ tune.Log, err error) {
	defer func() {
		if err != nil && l.file != nil {
			l.file.Close()
		}
	}()
	if err := l.directory(); err != nil {
		return tune.Log{}, err
	}
	var hash string
	hash, err = l.Fingerprint()
	if err != nil {
		return tune.Log{}, err
	}
	path := filepath.Join(l.Dir, journalFile)
	if l.file, err = os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644); err != nil {
		return tune.Log{}, fmt.Errorf("open the journal: %w", err)
	}
	if err := lock(l.file, l.Dir); err != nil {
		return tune.Log{}, err
	}
	if !l.Resume {
		if err := l.keepSource(source); err != nil {
			return tune.Log{}, err
		}
	}
	log, err := tune.Replay(l.file)
	if err != nil {
		return log, fmt.Errorf("read %s: %w", path, err)
	}
	if err := log.Check(hash); err != nil {
		return log, fmt.Errorf("resume %s: %w (a copy is in %s)", l.Dir, err, filepath.Join(l.Dir, sourceFile))
	}
	// A line cut by the end of the last process is no record.
	if err := l.file.Truncate(log.Size); err != nil {
		return log, fmt.Errorf("mend the journal: %w", err)
	}
	l.journal, err = tune.OpenJournal(l.file, log, tune.Head{Study: hash, Name: l.Name, Version: l.Version})
	return log, err
}

// directory makes a new study directory, or checks that there is one to
// resume.
func (l *session) directory() error {
	_, err := os.Stat(filepath.Join(l.Dir, journalFile))
	switch {
	case err == nil && !l.Resume:
		return &ExistsError{Dir: l.Dir}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("open the study: %w", err)
	case l.Resume:
		return fmt.Errorf("there is no study in %s to resume: it has no %s", l.Dir, journalFile)
	}
	if err := os.MkdirAll(filepath.Join(l.Dir, "trials"), 0o755); err != nil {
		return fmt.Errorf("create the study directory: %w", err)
	}
	return nil
}

// keepSource copies the study file as it is. One that holds a secret is for
// its owner's eyes: it is the only file of a study directory that does.
func (l *session) keepSource(source []byte) error {
	path := filepath.Join(l.Dir, sourceFile)
	if err := rundir.WriteFile(path, source); err != nil || !l.HasSecret() {
		return err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return fmt.Errorf("keep the secrets in %s from others: %w", path, err)
	}
	return nil
}

// lock makes the directory this process's own for as long as its journal is
// open: two at work in it would clear away each other's trials. The kernel
// releases the lock when the process ends, in whatever way.
func lock(journal *os.File, dir string) error {
	err := syscall.Flock(int(journal.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &BusyError{Dir: dir}
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", journal.Name(), err)
	}
	return nil
}

// BusyError says that another process runs the study in the directory.
type BusyError struct{ Dir string }

func (e *BusyError) Error() string { return "another perflab is at work in " + e.Dir }

// ExistsError says that the output directory holds a study already.
type ExistsError struct{ Dir string }

func (e *ExistsError) Error() string { return e.Dir + " holds a study already" }

// watch changes the status and tells of it; runtimes say what they do from goroutines of
// their own.
func (l *session) watch(change func(*Status)) {
	l.watching.Lock()
	defer l.watching.Unlock()
	before := l.status
	change(&l.status)
	if now := l.status; now.Phase != before.Phase || now.Workload != before.Workload || now.Trial != before.Trial {
		l.status.Since, l.status.Detail = time.Now(), ""
	}
	if l.Watch != nil {
		l.Watch(l.status)
	}
}

// trialDir is the directory of one trial.
func (l *session) trialDir(id int) string {
	return filepath.Join(l.Dir, "trials", fmt.Sprintf("%03d", id))
}

// trial evaluates one proposal. Its facts are on disk before the journal
// learns that it ended; an attempt without an end leaves nothing that counts.
func (l *session) trial(ctx context.Context, p tune.Proposal) (tune.Observation, error) {
	if l.Baseline != nil && p.Label == tune.BaselineStage {
		p.Label = l.Baseline.Label // the strategy knows no name for it
	}
	l.watch(func(s *Status) {
		*s = Status{Stage: p.Stage, Trial: p.Trial, Label: p.Label, Phase: "preparing", Ended: l.ended}
	})
	if l.stuck != nil {
		return tune.Observation{}, fmt.Errorf("an engine of the trial before is still there: %w", l.stuck)
	}
	dir := l.trialDir(p.Trial)
	if err := l.sweep(ctx, dir); err != nil {
		return tune.Observation{}, err
	}
	// So that a study under way, or one that is killed, can be reported.
	if _, err := l.save(true); err != nil {
		return tune.Observation{}, err
	}
	t, err := l.evaluate(ctx, p, dir)
	if err != nil {
		return tune.Observation{}, err
	}
	t.Moves = l.asks(p, t)
	if err := rundir.WriteJSON(filepath.Join(dir, trialFile), t); err != nil {
		return tune.Observation{}, err
	}
	l.ended++
	l.watch(func(s *Status) { s.Result, s.Ended, s.Progress = l.outcome(t), l.ended, nil })
	return t.observation(), nil
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

// trialRecord is a trial as kept on disk: its facts and what it cost.
type trialRecord struct {
	result.Trial
	Launches int     `json:"launches"`
	LoadS    float64 `json:"load_s"`
	GPUS     float64 `json:"gpu_s"`

	Within map[string]float64 `json:"within,omitempty"` // workload -> standard error of the objective's figure, as a share of it
	Moves  []tune.Change      `json:"moves,omitempty"`  // what its end asks for next

	Answers string             `json:"answers,omitempty"` // to the study's questions: 1 right, 0 wrong
	Asked   map[string]float64 `json:"asked,omitempty"`   // figures of what was asked after the runs

	engine map[string]float64 // of its primary workload, where a prediction told
	failed *failed            // why the engine refused
}

func (t *trialRecord) observation() tune.Observation {
	o := tune.Observation{Trial: t.ID, Status: t.Status, Reason: t.Reason, Seconds: t.GPUS / float64(t.GPUs), Within: t.Within, Moves: t.Moves}
	for i, r := range t.Runs {
		if status, _ := judgeRun(r.Workload, r.Summary); i > 0 && status != tune.Measured {
			continue // its trial stands, but these are no figures to decide by
		}
		if o.Figures == nil {
			o.Figures = map[string]map[string]float64{}
		}
		o.Figures[r.Workload] = r.Summary.Figures
	}
	o.Answers = t.Answers
	t.withAsked(o.Figures)
	return o
}

// backoff is the pauses before further tries of what our own machinery broke.
func backoff() []time.Duration { return []time.Duration{time.Second, 5 * time.Second} }
