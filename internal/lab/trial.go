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
	"time"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/engine/advice"
	"perflab/internal/load"
	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
)

// measure measures the configuration, and once more where the engine dies without a
// word. Of the first launch the trial keeps what it cost.
func (ev *evaluation) measure(ctx context.Context) error {
	notes := slices.Clone(ev.t.Notes)
	err := ev.measureOnce(ctx)
	died, ok := errors.AsType[*diedSilently](err)
	if !ok {
		return err
	}
	if err := ev.makeRoom(died); err != nil {
		return err
	}
	ev.t.Notes = notes
	if died.others {
		ev.t.note("It was measured again: the first time, %s.", died)
	}
	err = ev.measureOnce(ctx)
	if died, ok := errors.AsType[*diedSilently](err); ok {
		ev.t.Status, ev.t.Reason = tune.Failed, died.Error()
		return nil
	}
	return err
}

// makeRoom makes room for a second launch of a trial whose engine died without
// giving a reason: losing the baseline to it would cost the study its gains.
// The logs stay.
func (ev *evaluation) makeRoom(died *diedSilently) error {
	if err := ev.studyDir.journal.Note(journal.KindInfra, ev.t.ID, ev.Options.Secrets.Text(died.Error()+": launched again")); err != nil {
		return err
	}
	ev.t.Runs, ev.t.Within = nil, nil
	for _, name := range ev.p.Workloads {
		for try := range voidRetries + 1 {
			for _, end := range []string{"", ".tmp"} {
				if err := os.RemoveAll(ev.runDir(name, try) + end); err != nil {
					return fmt.Errorf("clear %s: %w", ev.runDir(name, try), err)
				}
			}
		}
	}
	return nil
}

// measureOnce launches the configuration and runs every workload of the proposal
// against it. Only an error of ctx, or of the disk, ends the study.
func (ev *evaluation) measureOnce(ctx context.Context) error {
	ev.watch.change(func(s *Status) { s.Phase = "launching" })
	begun := time.Now()
	spend := func() { ev.t.GPUSeconds += time.Since(begun).Seconds() * float64(ev.Hardware.GPUs) }
	la, d, err := ev.launch(ctx)
	if err != nil {
		if r, ok := errors.AsType[*engine.Rejection](err); ok {
			ev.t.reject(ev.config.Engine, r, ev.config.Command)
			return nil
		}
		spend()
		return ev.refused(err)
	}
	ev.t.Log = ev.studyDir.relative(filepath.Join(ev.dir, logsDir))
	err = ev.runAll(ctx, la, d)
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	stopErr := d.Stop(stopCtx)
	spend()
	switch {
	case stopErr == nil:
		return err
	case err != nil:
		return fmt.Errorf("%w (after: %v)", stopErr, err)
	}
	// What was measured stands; nothing more can be, beside a stuck engine.
	ev.past.stuck = stopErr
	ev.t.note("Its engine could not be stopped: %v.", stopErr)
	return nil
}

// refused ends the trial by why there was no launch: the engine refuses the
// configuration, or our machinery is broken. Other errors are the study's.
func (ev *evaluation) refused(err error) error {
	if refused, ok := errors.AsType[*deploy.RefusedError](err); ok {
		ev.t.refuse(refused.Reason, refused.Failure, ev.config.Command)
		ev.t.Log = ev.studyDir.relative(refused.Log)
		return nil
	}
	if infra, ok := errors.AsType[*deploy.InfraError](err); ok {
		ev.t.Status, ev.t.Reason = tune.Failed, infra.Error()
		if infra.Hint() != "" {
			ev.t.Reason += " (" + infra.Hint() + ")"
		}
		return nil
	}
	return err
}

// launch starts the deployment, and again after failures of our own machinery.
func (ev *evaluation) launch(ctx context.Context) (*launch, deploy.Deployment, error) {
	la, notes, err := ev.engines.prepare(ctx, ev.config, ev.dir)
	if err != nil {
		return nil, nil, err
	}
	ev.t.Notes = append(ev.t.Notes, notes...)
	ev.t.Replicas = len(la.spec.Replicas)
	for try := 0; ; try++ {
		d, err := ev.start(ctx, la)
		infra, broke := errors.AsType[*deploy.InfraError](err)
		if !broke || try == len(ev.pauses) || ev.Attached() || permanent(infra) {
			return la, d, err
		}
		if late, ok := errors.AsType[*deploy.LateError](err); ok && !ev.engines.allowMore(la, late) {
			return la, d, err
		}
		if err := ev.studyDir.journal.Note(journal.KindInfra, ev.t.ID, ev.Options.Secrets.Text(err.Error())); err != nil {
			return nil, nil, err
		}
		select {
		case <-time.After(ev.pauses[try]):
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// start is one try of a launch, on machines that are fit for it.
func (ev *evaluation) start(ctx context.Context, la *launch) (deploy.Deployment, error) {
	if err := ev.engines.preflight(ctx, la); err != nil {
		return nil, err
	}
	ev.t.Launches++
	name := ev.config.Command.Engine
	ev.watch.change(func(s *Status) { s.Detail = ev.engines.patience.expect(name) })
	begun := time.Now()
	d, err := la.runtime.Start(ctx, la.spec)
	if err == nil {
		took := time.Since(begun)
		ev.t.ReadyS = took.Seconds()
		ev.engines.patience.learn(name, took)
		ev.t.readLogs(ev.config.Engine, la.spec)
		ev.t.Pods = podsOf(ctx, d)
		ev.service(d)
		if (result.Header{Pods: ev.t.Pods}).Forwarded() {
			ev.t.note("Requests went through a port-forward of the API server, for the addresses of pods did not answer or the study wants it so: a smoke test, and no measurement.")
		}
	}
	if image, ok := la.runtime.(resolver); ok {
		ev.t.Image, _ = image.Resolved()
	}
	return d, err
}

// permanent reports whether another try would break in the same way: a program, or a
// model, that is not there does not come by waiting.
func permanent(e *deploy.InfraError) bool {
	return e.Lasting || errors.Is(e, exec.ErrNotFound) || errors.Is(e, fs.ErrNotExist) || errors.Is(e, fs.ErrPermission)
}

// runAll runs the proposal's workloads against a live deployment, and ends
// the trial early when the engine dies.
func (ev *evaluation) runAll(ctx context.Context, la *launch, d deploy.Deployment) error {
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
	for _, name := range ev.p.Workloads {
		run, err := ev.runOne(ctx, la, d, name)
		if died, ok := errors.AsType[*engineDied](err); ok {
			return died.end(ev.t, name, ev.config.Command)
		}
		if err != nil && ctx.Err() == nil && !isDiskError(err) {
			ev.t.Status, ev.t.Reason = tune.Failed, fmt.Sprintf("%s: %v", name, err)
			return nil
		}
		if err != nil {
			return err
		}
		if !ev.t.take(run) {
			return nil
		}
	}
	return ev.askQuestions(ctx, d)
}

// voidRetries is how often a void measurement is made again. Tests, which share their
// machine with other tests, set it higher.
var voidRetries = 1

// runOne makes one run; it is repeated once where there is a reason to measure again.
func (ev *evaluation) runOne(ctx context.Context, la *launch, d deploy.Deployment, name string) (*measuredRun, error) {
	for try := 0; ; try++ {
		run, err := ev.load(ctx, la, d, name, try)
		if err != nil && !isDiskError(err) || err == nil && run.broken() {
			err = ev.awaitEngineDeath(ctx, err)
		}
		if err != nil || try == voidRetries || run.Search != nil {
			return run, err
		}
		why := outcome.Again(run.Summary)
		if why == "" {
			return run, nil
		}
		if err := ev.studyDir.journal.Note(journal.KindInfra, ev.p.Trial, ev.Options.Secrets.Text(why)); err != nil {
			return nil, err
		}
	}
}

// load is one run over HTTP, or the search for the load of the workload.
func (ev *evaluation) load(ctx context.Context, la *launch, d deploy.Deployment, name string, try int) (*measuredRun, error) {
	b := ev.runner(name)
	if w := &b.Spec.Workload; try > 0 { // the engine has the first try's prompts in its cache
		w.Seed += againSeed
		if w.Nonce != "" {
			w.Nonce += "-again"
		}
	}
	b.Progress = &load.Progress{}
	ev.watch.change(func(s *Status) { s.Workload, s.Progress = name, b.Progress })
	b.Spec.Targets, b.Spec.Warmups, b.Spec.Telemetry = d.Targets(), 8, ev.Bench.TelemetryInterval()
	b.Sources, b.Meters = la.sources(d, b.Spec.Telemetry), meters(d)
	if ev.Bench.Warmups != nil {
		b.Spec.Warmups = *ev.Bench.Warmups
	}
	b.Pods, b.Service = ev.t.Pods, serviceOf(d)
	b.Dir, b.APIKey, b.Secrets = ev.runDir(name, try), ev.APIKey, ev.Options.Secrets
	if m := ev.Runtime.Node(); m.Name != "" {
		b.Crew = ev.Fleet.Crew(m.Name)
	} else if ev.Crew != nil {
		b.Crew = beside{ev.Crew, d}
	}
	b.Phase = func(text string) { ev.watch.change(func(s *Status) { s.Phase = text }) }
	if err := rundir.ClearPartial(b.Dir); err != nil {
		return nil, err
	}
	return ev.run(ctx, b, func(ctx context.Context, b bench.Runner) (*bench.Outcome, error) { return b.Run(ctx) })
}

// predict answers a proposal without a server: the predictor's calls go the
// same way as measured ones, into a run directory and through Summarize.
func (ev *evaluation) predict(ctx context.Context) error {
	ev.t.Launches = 1
	for _, name := range ev.p.Workloads {
		ev.watch.change(func(s *Status) { s.Workload, s.Phase = name, "predicting" })
		b := ev.runner(name)
		b.Dir = ev.runDir(name, 0)
		run, err := ev.run(ctx, b, ev.predictRun)
		if err != nil {
			return err
		}
		if !ev.t.take(run) {
			break
		}
	}
	ev.t.GPUSeconds = ev.t.LoadS * float64(ev.Hardware.GPUs)
	return ev.askQuestions(ctx, nil)
}

// predictRun is a run in virtual time, in its directory.
func (ev *evaluation) predictRun(ctx context.Context, b bench.Runner) (*bench.Outcome, error) {
	w, tok, err := bench.OpenWorkload(b.Spec.Workload)
	if err != nil {
		return nil, err
	}
	return b.Predict(ctx, ev.Predictor, bench.Prediction{Config: ev.config.Config, Replicas: ev.config.Replicas, Workload: w, Tokenizer: tok})
}

// run makes a run of a workload by a function, or searches its load by several.
func (ev *evaluation) run(ctx context.Context, b bench.Runner, runOnce runFunc) (*measuredRun, error) {
	if f := ev.LoadSearch(b.Name); f != nil {
		return ev.runLoadSearch(ctx, b, f, runOnce)
	}
	out, err := runOnce(ctx, b)
	if err != nil {
		return nil, err
	}
	run := ev.measured(b.Name, out)
	run.Dir, run.Seed = ev.studyDir.relative(out.Dir), b.Spec.Workload.Seed
	return run, nil
}

// fits holds the longest requests of a proposal's workloads against what the
// configuration serves. It is an *engine.Rejection that requests of the first one, which
// decides what the trial is worth, are known not to fit; of the others, and of lengths that
// are estimates, the trial gets a note.
func (l *session) fits(t *trialRecord, p tune.Proposal, c study.Configuration) error {
	for i, name := range p.Workloads {
		longest := l.Lengths(name, p.Pass)
		if longest == nil {
			continue
		}
		r := cmp.Or(c.Config.Fits(longest.Whole.Input, longest.Whole.Output), c.Config.Fits(longest.Prompt.Input, longest.Prompt.Output))
		switch {
		case r == nil:
		case !longest.Exact:
			t.note("Workload %s may have requests that do not fit, by an estimate of their lengths: %s.", name, r.Reason)
		case i > 0 || l.Attached():
			t.note("Workload %s has requests that do not fit: %s.", name, r.Reason)
		default:
			return &engine.Rejection{Rule: r.Rule, Log: r.Log, Reason: fmt.Sprintf("workload %s: %s", name, r.Reason)}
		}
	}
	return nil
}

// remarks are what the figures of a configuration do not show: flags that the
// simulated engine knows nothing of, and devices that no replica uses.
func (l *session) remarks(c study.Configuration) []string {
	var out []string
	if flags := c.Command.Unmodelled(); len(flags) > 0 && (l.Runtime.Kind == study.Simulated || l.Runtime.Kind == study.Predicted) {
		out = append(out, "Not simulated: "+strings.Join(flags, ", ")+". The figures are those without it.")
	}
	out = append(out, advice.Of(c.Config)...)
	if l.Runtime.Kind == study.Process {
		out = append(out, c.Command.Remarks(runtime.NumCPU())...)
	}
	if idle := l.Hardware.GPUs - c.Replicas*c.Config.GPUs; idle > 0 && l.Runtime.Kind == study.Predicted {
		out = append(out, fmt.Sprintf("%d of %d GPUs are used by no replica; they count as allocated.", idle, l.Hardware.GPUs))
	}
	return out
}
