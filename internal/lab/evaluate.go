package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// evaluate measures one configuration: one launch, one run per workload. What
// the engine refuses, what our machinery breaks and what cannot be believed
// are three different ends.
func (l *session) evaluate(ctx context.Context, p tune.Proposal, dir string) (*trialRecord, error) {
	t := &trialRecord{Trial: result.Trial{
		ID: p.Trial, Stage: p.Stage, Label: p.Label, Engine: p.Config["engine"],
		Config: p.Config, Share: l.LoadShare(p), GPUs: l.Hardware.GPUs, Status: tune.Measured,
	}}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create %s: %w", dir, err)
	}
	e, err := engine.ByName(p.Config["engine"])
	if err != nil {
		return nil, err
	}
	if t.Notes, err = l.ask(ctx, e); err != nil {
		return nil, err
	}
	t.Version = l.version(e.Name)
	pl, err := l.configure(p.Config)
	t.Command = shown(pl.Command)
	if err == nil {
		err = l.fits(t, p, pl)
	}
	if r, ok := errors.AsType[*engine.Rejection](err); ok && !l.Attached() {
		t.reject(e, r, pl.Command)
		return t, nil
	}
	if err != nil && !l.Attached() {
		return nil, err
	}
	t.Notes = append(t.Notes, l.remarks(pl)...)
	t.Replicas = l.copies(pl)
	if l.Runtime.Kind != study.Existing { // what serves there is not known
		t.Each = pl.Config.GPUs
	}
	if l.Runtime.Kind == study.Predicted {
		return t, l.predict(ctx, t, p, pl, dir)
	}
	return t, l.attempt(ctx, t, p, pl, dir)
}

// attempt measures a plan, and once more where the engine dies without a word. Of the
// first attempt the trial keeps what it cost.
func (l *session) attempt(ctx context.Context, t *trialRecord, p tune.Proposal, pl study.Configuration, dir string) error {
	notes := slices.Clone(t.Notes)
	err := l.measure(ctx, t, p, pl, dir)
	died, ok := errors.AsType[*diedAlone](err)
	if !ok {
		return err
	}
	if err := l.again(t, p, died, dir); err != nil {
		return err
	}
	t.Notes = notes
	err = l.measure(ctx, t, p, pl, dir)
	if died, ok := errors.AsType[*diedAlone](err); ok {
		t.Status, t.Reason = tune.Failed, died.Error()
		return nil
	}
	return err
}

// remarks are what the figures of a plan do not show: flags that the simulated
// engine knows nothing of, and devices that no replica uses.
func (l *session) remarks(pl study.Configuration) []string {
	var out []string
	if flags := pl.Command.Unmodelled(); len(flags) > 0 && (l.Runtime.Kind == study.Simulated || l.Runtime.Kind == study.Predicted) {
		out = append(out, "Not simulated: "+strings.Join(flags, ", ")+". The figures are those without it.")
	}
	out = append(out, pl.Config.Remarks()...)
	if l.Runtime.Kind == study.Process {
		out = append(out, pl.Command.Remarks(runtime.NumCPU())...)
	}
	if idle := l.Hardware.GPUs - pl.Replicas*pl.Config.GPUs; idle > 0 && l.Runtime.Kind == study.Predicted {
		out = append(out, fmt.Sprintf("%d of %d GPUs are used by no replica; they count as allocated.", idle, l.Hardware.GPUs))
	}
	return out
}

// again makes room for a second launch of a trial whose engine died without
// giving a reason: losing the baseline to it would cost the study its gains.
// The logs stay.
func (l *session) again(t *trialRecord, p tune.Proposal, died *diedAlone, dir string) error {
	if err := l.journal.Note(tune.KindInfra, t.ID, died.Error()+": launched again"); err != nil {
		return err
	}
	t.Runs, t.Within = nil, nil
	for _, name := range p.Workloads {
		for try := range 2 {
			for _, end := range []string{"", ".tmp"} {
				if err := os.RemoveAll(runDir(dir, name, try) + end); err != nil {
					return fmt.Errorf("clear %s: %w", runDir(dir, name, try), err)
				}
			}
		}
	}
	return nil
}

// shown is a command as it may be written down: without secrets.
func shown(c engine.Command) string {
	return deploy.RedactCommand(c).String()
}

// measure launches the configuration and runs every workload of the proposal
// against it. Only an error of ctx, or of the disk, ends the study.
func (l *session) measure(ctx context.Context, t *trialRecord, p tune.Proposal, pl study.Configuration, dir string) error {
	l.watch(func(s *Status) { s.Phase = "launching" })
	begun := time.Now()
	d, err := l.launch(ctx, t, pl, dir)
	if refused, ok := errors.AsType[*deploy.RefusedError](err); ok {
		t.refuse(refused.Reason, refused.Failure, pl.Command)
		t.Log = l.relative(refused.Log)
		t.GPUS += l.gpuSeconds(begun)
		return nil
	}
	if r, ok := errors.AsType[*engine.Rejection](err); ok {
		t.reject(pl.Engine, r, pl.Command)
		return nil
	}
	if infra, ok := errors.AsType[*deploy.InfraError](err); ok {
		t.Status, t.Reason = tune.Failed, infra.Error()
		if infra.Hint() != "" {
			t.Reason += " (" + infra.Hint() + ")"
		}
		t.GPUS += l.gpuSeconds(begun)
		return nil
	}
	if err != nil {
		return err
	}
	t.Log = l.relative(filepath.Join(dir, "logs"))
	err = l.runAll(ctx, t, p, pl, d, dir)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	stopErr := d.Stop(stopCtx)
	t.GPUS += l.gpuSeconds(begun)
	switch {
	case stopErr == nil:
		return err
	case err != nil:
		return fmt.Errorf("%w (after: %v)", stopErr, err)
	}
	// What was measured stands; nothing more can be, beside a stuck engine.
	l.stuck = stopErr
	t.Notes = append(t.Notes, "Its engine could not be stopped: "+stopErr.Error()+".")
	return nil
}

func (l *session) gpuSeconds(begun time.Time) float64 {
	return time.Since(begun).Seconds() * float64(l.Hardware.GPUs)
}

// launch starts the deployment, and again after failures of our own machinery.
func (l *session) launch(ctx context.Context, t *trialRecord, pl study.Configuration, dir string) (deploy.Deployment, error) {
	rt, err := l.runtime(pl.Command.Engine)
	if err != nil {
		return nil, err
	}
	places, notes, err := l.places(ctx, pl)
	if err != nil {
		return nil, err
	}
	spec, err := l.deployment(pl, places, dir)
	if err != nil {
		return nil, err
	}
	t.Notes = append(t.Notes, notes...)
	l.live = live{rt, spec, places}
	t.Replicas = len(spec.Replicas)
	for try := 0; ; try++ {
		d, err := l.start(ctx, t, pl)
		infra, broke := errors.AsType[*deploy.InfraError](err)
		if !broke || try == len(l.pauses) || l.Attached() || lasting(infra) {
			return d, err
		}
		if err := l.journal.Note(tune.KindInfra, t.ID, err.Error()); err != nil {
			return nil, err
		}
		select {
		case <-time.After(l.pauses[try]):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// start is one try of a launch, on machines that are fit for it.
func (l *session) start(ctx context.Context, t *trialRecord, pl study.Configuration) (deploy.Deployment, error) {
	if err := l.preflight(ctx, pl); err != nil {
		return nil, err
	}
	t.Launches++
	d, err := l.live.rt.Start(ctx, l.live.spec)
	if err == nil {
		t.account(pl.Engine, l.live.spec)
	}
	if image, ok := l.live.rt.(interface{ Resolved() (string, bool) }); ok {
		t.Image, _ = image.Resolved()
	}
	return d, err
}

// lasting reports whether another try would break in the same way: a program
// that is not there does not come by waiting.
func lasting(e *deploy.InfraError) bool {
	return errors.Is(e, exec.ErrNotFound) || errors.Is(e, fs.ErrNotExist) || errors.Is(e, fs.ErrPermission)
}

// runAll runs the proposal's workloads against a live deployment, and ends
// the trial early when the engine dies.
func (l *session) runAll(ctx context.Context, t *trialRecord, p tune.Proposal, pl study.Configuration, d deploy.Deployment, dir string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	defer func() { cancel(nil); <-watching }()
	go func() {
		defer close(watching)
		select {
		case <-d.Done():
			cancel(&engineDied{d.Err()})
		case <-ctx.Done():
		}
	}()
	for _, name := range p.Workloads {
		run, err := l.runOne(ctx, p, pl, d, name, dir)
		if died, ok := errors.AsType[*engineDied](err); ok {
			return died.end(t, name, pl.Command)
		}
		if err != nil && ctx.Err() == nil && !ofDisk(err) {
			t.Status, t.Reason = tune.Failed, fmt.Sprintf("%s: %v", name, err)
			return nil
		}
		if err != nil {
			return err
		}
		if !t.take(run) {
			return nil
		}
	}
	return l.question(ctx, t, p, pl, d, dir)
}

// deathNotice is how much later than its clients we may learn that an engine
// has ended: connections break first.
const deathNotice = 2 * time.Second

// cause is why a run went wrong: ctx's cause, also if it comes in a moment, or
// else the run's own error, if any.
func (l *session) cause(ctx context.Context, err error) error {
	if l.Attached() && ctx.Err() == nil {
		return err // its end is never told
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(deathNotice):
		return err
	}
}

// broken reports whether a run's calls failed as those of a dead engine do.
func broken(run *loaded) bool {
	status, _ := judgeRun(run.Workload, run.Summary)
	return status == tune.Failed
}

// take adds a run and reports whether the trial goes on. The first workload
// decides what the trial is worth; one of the others that cannot be served or
// believed is said beside it, and costs the trial nothing else.
func (t *trialRecord) take(run *loaded) bool {
	t.Runs = append(t.Runs, run.Run)
	if len(t.Runs) == 1 {
		t.engine = run.engine
	}
	if run.within > 0 {
		if t.Within == nil {
			t.Within = map[string]float64{}
		}
		t.Within[run.Workload] = run.within
	}
	t.LoadS += run.LoadSeconds()
	t.sought(&run.Run)
	status, reason := judgeRun(run.Workload, run.Summary)
	switch {
	case status == tune.Measured:
		return true
	case len(t.Runs) > 1:
		t.Notes = append(t.Notes, fmt.Sprintf("Workload %s (%s)", reason, status))
		return true
	}
	t.Status, t.Reason = status, reason
	return false
}

// ofDisk reports whether an error is of our own files: then the study stops,
// for the next trial could not be kept either.
func ofDisk(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path || link || errors.Is(err, syscall.ENOSPC)
}

// engineDied is the cause by which a run ends when its engine does.
type engineDied struct{ err error }

func (e *engineDied) Error() string { return e.err.Error() }

// end is what a death means: an engine that ran out of memory, or gave another
// reason of its own, cannot run this configuration under this load; one that
// died without a word may have been ended by anything, and is a *diedAlone.
func (e *engineDied) end(t *trialRecord, workload string, cmd engine.Command) error {
	reason := fmt.Sprintf("the engine died under %s: %v", workload, e.err)
	if d, ok := errors.AsType[*deploy.DiedError](e.err); ok && d.Reason != "" && !d.Failure.Infra {
		t.refuse(reason, d.Failure, cmd)
		return nil
	}
	return &diedAlone{reason}
}

// diedAlone says that an engine died under load without giving a reason.
type diedAlone struct{ reason string }

func (e *diedAlone) Error() string { return e.reason }

// judgeRun decides whether a run may be told to the strategy. A server that
// answers every request of a workload with an HTTP error (prompts longer than
// it takes, say) cannot serve it in this configuration.
func judgeRun(name string, s result.Summary) (status, reason string) {
	if failures, ok := s.Verdict.Check("failures"); ok && s.Figures["completed"] == 0 {
		if len(s.Failures) == 1 && s.Failures[result.HTTPStatus] > 0 {
			return tune.Refused, name + ": " + failures.Text
		}
		return tune.Failed, name + ": " + failures.Text
	}
	if s.Verdict.Status == result.Voided {
		return tune.Void, fmt.Sprintf("%s: %s", name, s.Verdict.Why())
	}
	if rate, ok := s.Figures["success_rate"]; !ok || rate < minSuccess {
		return tune.Failed, fmt.Sprintf("%s: %.0f of %.0f calls failed", name, s.Figures["failed"], s.Figures["failed"]+s.Figures["completed"])
	}
	return tune.Measured, ""
}

// minSuccess is the share of calls that must succeed for a run's throughput
// to be comparable with another's.
const minSuccess = 0.99

// runOne makes one run; a void measurement is repeated once before it is
// believed to be void, but where the engine refused every call, or has ended.
func (l *session) runOne(ctx context.Context, p tune.Proposal, pl study.Configuration, d deploy.Deployment, name, dir string) (*loaded, error) {
	for try := 0; ; try++ {
		run, err := l.load(ctx, p, pl, d, name, dir, try)
		if err != nil && !ofDisk(err) || err == nil && broken(run) {
			err = l.cause(ctx, err)
		}
		if err != nil || run.Summary.Verdict.Status != result.Voided || try == 1 || run.Search != nil {
			return run, err
		}
		if status, _ := judgeRun(name, run.Summary); status == tune.Refused {
			return run, nil
		}
		if err := l.journal.Note(tune.KindInfra, p.Trial, "void, measured again: "+run.Summary.Verdict.Why()); err != nil {
			return nil, err
		}
	}
}

// againSeed is between the seeds of a pass's workloads and those of the next.
const againSeed = 500

func runDir(dir, workload string, try int) string {
	if try > 0 {
		workload += fmt.Sprintf(".again-%d", try)
	}
	return filepath.Join(dir, workload)
}

func (l *session) load(ctx context.Context, p tune.Proposal, pl study.Configuration, d deploy.Deployment, name, dir string, try int) (*loaded, error) {
	b := l.bench(p, pl, name)
	if w := &b.Spec.Workload; try > 0 { // the engine has the first try's prompts in its cache
		w.Seed += againSeed
		if w.Nonce != "" {
			w.Nonce += "-again"
		}
	}
	progress := &load.Progress{}
	l.watch(func(s *Status) { s.Workload, s.Progress = name, progress })
	b.Spec.Targets, b.Spec.Warmups = d.Targets(), 8
	b.Spec.Telemetry = l.Bench.TelemetryInterval()
	b.Sources = l.sources(d, b.Spec.Telemetry)
	if l.Bench.Warmups != nil {
		b.Spec.Warmups = *l.Bench.Warmups
	}
	b.Dir, b.Progress, b.APIKey = runDir(dir, name, try), progress, l.APIKey
	b.Phase = func(text string) { l.watch(func(s *Status) { s.Phase = text }) }
	if err := rundir.ClearPartial(b.Dir); err != nil {
		return nil, err
	}
	if f := l.LoadSearch(name); f != nil {
		return l.seek(ctx, p, b, f, nil)
	}
	out, err := b.Run(ctx)
	if err != nil {
		return nil, err
	}
	run := result.Run{Workload: name, Dir: l.relative(out.Dir), Seed: b.Spec.Workload.Seed, Summary: out.Summary}
	return &loaded{Run: run, within: l.within(out)}, nil
}

// bench is one run of a proposal as far as it does not depend on whether a
// server answers it.
func (l *session) bench(p tune.Proposal, pl study.Configuration, name string) bench.Runner {
	return bench.Runner{
		Spec: bench.Spec{
			Targets: []string{}, Backend: l.Bench.Backend, Model: served(pl, p.Config["model"]), Workload: l.ShortenedSpec(name, p.Pass, p.Share), Cache: l.Bench.Cache,
			Goodput: l.Bench.Goodput, Percentiles: l.Percentiles(), Price: l.Hardware.Price, GPUs: l.AllocatedGPUs(),
		},
		Name: name, Command: shown(pl.Command), Version: l.Version, SelfCheck: l.selfCheck,
	}
}

// served is the name under which the engine serves the model, also where the
// plan is one that our rules refuse and what is up serves nevertheless.
func served(pl study.Configuration, model string) string {
	name := cmp.Or(pl.Command.Flag("--served-model-name"), pl.Command.Flag("--served_model_name"))
	return cmp.Or(pl.Config.ServedName, name, pl.Command.Model, model)
}

// relative is a path as seen from the study directory.
func (l *session) relative(path string) string {
	if r, err := filepath.Rel(l.Dir, path); err == nil {
		return filepath.ToSlash(r)
	}
	return path
}

// sweep removes what an attempt at a trial left that never ended: engines
// still running, by their recorded identity, and partial directories.
func (l *session) sweep(ctx context.Context, dir string) error {
	rt, err := l.runtime("")
	if err != nil {
		return err
	}
	if _, err := rt.Sweep(ctx, filepath.Join(dir, "logs")); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clear %s: %w", dir, err)
	}
	return nil
}
