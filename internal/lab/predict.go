package lab

import (
	"context"

	"perflab/internal/bench"
	"perflab/internal/result"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// predict answers a proposal without a server: the predictor's calls go the
// same way as measured ones, into a run directory and through Summarize.
func (l *session) predict(ctx context.Context, t *trialRecord, p tune.Proposal, pl study.Configuration, dir string) error {
	t.Launches = 1
	for _, name := range p.Workloads {
		l.watch(func(s *Status) { s.Workload, s.Phase = name, "predicting" })
		run, err := l.predictOne(ctx, p, pl, name, runDir(dir, name, 0))
		if err != nil {
			return err
		}
		if !t.take(run) {
			break
		}
	}
	t.GPUS = t.LoadS * float64(l.Hardware.GPUs)
	return l.question(ctx, t, p, pl, nil, dir)
}

func (l *session) predictOne(ctx context.Context, p tune.Proposal, pl study.Configuration, name, dir string) (*loaded, error) {
	b := l.bench(p, pl, name)
	b.Dir = dir
	if f := l.LoadSearch(name); f != nil {
		return l.seek(ctx, p, b, f, func(ctx context.Context, b bench.Runner) (*bench.Outcome, error) { return l.predictRun(ctx, b, pl) })
	}
	o, err := l.predictRun(ctx, b, pl)
	if err != nil {
		return nil, err
	}
	run := result.Run{Workload: name, Dir: l.relative(dir), Seed: b.Spec.Workload.Seed, Summary: o.Summary}
	return &loaded{Run: run, within: l.within(o), engine: o.Engine}, nil
}

// predictRun is a run in virtual time, in its directory.
func (l *session) predictRun(ctx context.Context, b bench.Runner, pl study.Configuration) (*bench.Outcome, error) {
	w, tok, err := bench.OpenWorkload(b.Spec.Workload)
	if err != nil {
		return nil, err
	}
	return b.Predict(ctx, l.Predictor, bench.Prediction{Config: pl.Config, Replicas: pl.Replicas, Workload: w, Tokenizer: tok})
}
