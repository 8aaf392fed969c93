package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"perflab/internal/bench"
	"perflab/internal/compare"
	"perflab/internal/deploy"
	"perflab/internal/deploy/kube"
	"perflab/internal/engine"
	"perflab/internal/outcome"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// evaluation is one proposal from its begin to its record. A launch of it is a
// value of its own, since there may be two.
type evaluation struct {
	*session
	p      tune.Proposal
	t      *trialRecord
	config study.Configuration
	dir    string // of the trial
}

// servedName is the name under which the engine serves the model, also where the
// configuration is one that our rules refuse and what is up serves nevertheless.
func (ev *evaluation) servedName() string {
	cmd := ev.config.Command
	name := cmp.Or(cmd.Flag("--served-model-name"), cmd.Flag("--served_model_name"))
	return cmp.Or(ev.config.Config.ServedName, name, cmd.Model, ev.p.Config["model"])
}

// runDir is the directory of a run of the trial.
func (ev *evaluation) runDir(workload string, try int) string {
	if try > 0 {
		workload += fmt.Sprintf(".again-%d", try)
	}
	return filepath.Join(ev.dir, workload)
}

// runner is one run of the proposal as far as it does not depend on whether a
// server answers it.
func (ev *evaluation) runner(name string) bench.Runner {
	return bench.Runner{
		Spec: bench.Spec{
			Targets: []string{}, Backend: ev.Bench.Backend, Model: ev.servedName(), Workload: ev.ShortenedSpec(name, ev.p.Pass, ev.p.Share), Cache: ev.Bench.Cache,
			Goodput: ev.Bench.Goodput, Percentiles: ev.Percentiles(), Price: ev.Hardware.Price, GPUs: ev.AllocatedGPUs(),
		},
		Name: name, Command: redacted(ev.config.Command), Version: ev.Version, SelfCheck: ev.selfCheck, Secrets: ev.Options.Secrets, TokenizerFrom: ev.Tokenizers[name].From,
	}
}

// measured is an outcome as a run of the trial.
func (ev *evaluation) measured(workload string, o *bench.Outcome) *measuredRun {
	within, _ := compare.StandardError(compare.Run{Header: o.Header, Summary: o.Summary, Calls: o.Calls}, ev.Metric.Name)
	return &measuredRun{Run: outcome.Run{Workload: workload, Summary: o.Summary}, within: within, engine: o.Engine}
}

// runFunc makes one run.
type runFunc func(context.Context, bench.Runner) (*bench.Outcome, error)

// engineDied is the cause by which a run ends when its engine does.
type engineDied struct{ err error }

func (e *engineDied) Error() string { return e.err.Error() }

// end is what a death means: an engine that ran out of memory, or gave another
// reason of its own, cannot run this configuration under this load; one that
// died without a word may have been ended by anything, and is a *diedSilently.
func (e *engineDied) end(t *trialRecord, workload string, cmd engine.Command) error {
	reason := fmt.Sprintf("the engine died under %s: %v", workload, e.err)
	if _, ok := errors.AsType[*kube.ChangedError](e.err); ok {
		return &diedSilently{fmt.Sprintf("under %s %v", workload, e.err), true}
	}
	if d, ok := errors.AsType[*deploy.DiedError](e.err); ok && d.Reason != "" && !d.Failure.Infra {
		t.refuse(reason, d.Failure, cmd)
		return nil
	}
	return &diedSilently{reason, false}
}

// diedSilently says that an engine died under load without giving a reason.
type diedSilently struct {
	reason string
	others bool // whoever runs a Service has changed it
}

func (e *diedSilently) Error() string { return e.reason }

// isDiskError reports whether an error is of our own files: then the study stops,
// for the next trial could not be kept either.
func isDiskError(err error) bool {
	_, path := errors.AsType[*fs.PathError](err)
	_, link := errors.AsType[*os.LinkError](err)
	return path || link || errors.Is(err, syscall.ENOSPC)
}

// againSeed is between the seeds of a pass's workloads and those of the next.
const againSeed = 500
