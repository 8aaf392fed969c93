package lab

import (
	"context"
	"errors"

	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// Prediction is one run to make in virtual time.
type Prediction struct {
	Config   engine.Config
	Replicas int
	Workload *workload.Workload
	Seed     uint64

	Tokenizer workload.Tokenizer // by which the workload's lengths are measured; nil: package token's approximation

	// Engine is told at the end what the engine's own metrics would show of the
	// run, under the names of a summary's figures; nil: nobody asks.
	Engine func(figures map[string]float64)
}

// predict answers a proposal without a server: the predictor's calls go the
// same way as measured ones, into a run directory and through Summarize.
func (l *study) predict(ctx context.Context, t *trialRecord, p tune.Proposal, pl plan, dir string) error {
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

func (l *study) predictOne(ctx context.Context, p tune.Proposal, pl plan, name, dir string) (*loaded, error) {
	b := l.bench(p, pl, name)
	b.Dir = dir
	if f := l.search(name); f != nil {
		return l.seek(ctx, p, b, f, func(ctx context.Context, b Bench) (*Outcome, error) { return l.foretell(ctx, b, pl) })
	}
	o, err := l.foretell(ctx, b, pl)
	if err != nil {
		return nil, err
	}
	run := result.Run{Workload: name, Dir: l.relative(dir), Seed: b.Spec.Workload.Seed, Summary: o.Summary}
	return &loaded{Run: run, within: l.within(o), engine: o.engine}, nil
}

// foretell is a run in virtual time, in its directory.
func (l *study) foretell(ctx context.Context, b Bench, pl plan) (*Outcome, error) {
	tok, err := openTokenizer(b.Spec.Workload)
	if err != nil {
		return nil, err
	}
	w, err := workload.OpenWith(b.Spec.Workload, tok)
	if err != nil {
		return nil, err
	}
	h, err := b.header(w, true)
	if err != nil {
		return nil, err
	}
	h.Predicted, h.Fingerprint = true, w.Fingerprint()
	if err := clearPartial(b.Dir); err != nil {
		return nil, err
	}
	out, err := createRun(b.Dir, h)
	if err != nil {
		return nil, err
	}
	defer out.abandon()
	o := &Outcome{Header: h, Dir: b.Dir}
	asked := Prediction{
		Config: pl.cfg, Replicas: pl.replicas, Workload: w, Seed: b.Spec.Workload.Seed, Tokenizer: tok,
		Engine: func(f map[string]float64) { o.engine = f },
	}
	for c, err := range l.Predictor.Predict(ctx, asked) {
		if err != nil {
			return nil, err
		}
		o.Calls = append(o.Calls, c)
		out.add(&c)
	}
	if err := o.summarise(b.Spec); err != nil {
		return nil, err
	}
	if err := out.finish(nil, &o.Summary, nil); err != nil {
		return nil, err
	}
	return o, nil
}

// percentiles are those of the blocks, and what objective and SLOs ask for.
func (s *Study) percentiles() []float64 {
	out := []float64{95, 99}
	metrics := []string{s.Objective.Metric}
	for _, text := range s.Objective.SLOs {
		if b, err := ParseBound(text); err == nil { // checked when the study was parsed
			metrics = append(metrics, b.Metric)
		}
	}
	return append(out, PercentilesOf(metrics...)...)
}

// OpenPredicted opens a workload that can be replayed in virtual time, with the
// tokenizer by which its lengths are measured; nil for package token's
// approximation.
func OpenPredicted(s workload.Spec) (*workload.Workload, workload.Tokenizer, error) {
	tok, err := openTokenizer(s)
	if err != nil {
		return nil, nil, err
	}
	w, err := workload.OpenWith(s, tok)
	if err != nil {
		return nil, nil, err
	}
	if w.Conversations() || w.Len() == 0 {
		return nil, nil, errors.New("a prediction needs every request and its time in advance: conversations, and a closed loop bounded by --duration, can be measured on perflab sim")
	}
	return w, tok, replayable(w)
}

// replayable reports whether the simulator's replay has a place for what the
// workload sends.
func replayable(w *workload.Workload) error {
	for r := range w.All() {
		switch {
		case r.Index > firstRequests:
			return nil
		case len(r.Images) > 0 || len(r.Documents) > 0:
			return errors.New("images and documents cannot be predicted: the simulated engine generates from text")
		case r.Output == 0:
			return errors.New("requests without output_tokens cannot be predicted: answers need a known length")
		}
	}
	return nil
}
