package bench

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"perflab/internal/engine"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/workload"
)

// Predictor runs a workload on a configuration in virtual time, without a
// server. It is declared here and made from the simulator by whoever wires the
// two, because the simulator and the load generator meet over HTTP alone.
type Predictor interface {
	Predict(ctx context.Context, c Prediction) iter.Seq2[result.Call, error]
}

// Ratio is how many times better one prediction is than another, what that lies between in
// nine of ten cases, and what of the question the errors behind it are not known of.
type Ratio struct {
	Value, Low, High float64
	Outside          []string
}

// Doubter is a Predictor that knows how far off it is; false where it knows no error.
type Doubter interface {
	Doubt(of, to Prediction, metric string) (Ratio, bool)
}

// Learner is a Predictor that measured runs of one site correct: what Learn returns predicts by
// all of them, and nothing else. It is an error where nothing can be learned of them.
type Learner interface {
	Learn(ctx context.Context, runs []Measured) (Predictor, error)
}

// Measured is what a run that was measured would be as a prediction, and what was measured.
type Measured struct {
	Prediction
	Name    string // of the workload
	Figures map[string]float64
}

// OnEveryCore runs do for 0..n-1 on every core: for predictions, each of which takes one.
func OnEveryCore(n int, do func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				do(int(i - 1))
			}
		})
	}
	wg.Wait()
}

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

// Predict makes the run in virtual time: the predictor's calls go the same way
// as measured ones, into a run directory and through Summarize. q has the
// deployment and the workload, opened.
func (b Runner) Predict(ctx context.Context, p Predictor, q Prediction) (*Outcome, error) {
	o := &Outcome{Dir: b.Dir}
	var err error
	if o.Header, err = b.Header(q.Workload, true); err != nil {
		return nil, err
	}
	o.Header.Predicted = true
	var dir *rundir.Writer
	if b.Dir != "" {
		o.Header.Fingerprint = q.Workload.Fingerprint()
		if err := rundir.ClearPartial(b.Dir); err != nil {
			return nil, err
		}
		if dir, err = rundir.Create(b.Dir, o.Header); err != nil {
			return nil, err
		}
		defer dir.Abandon()
		q.Engine = func(figures map[string]float64) { o.Engine = figures }
	}
	opt, acc, err := b.accumulator(o.Header)
	if err != nil {
		return nil, err
	}
	q.Seed = b.Spec.Workload.Seed
	for c, err := range p.Predict(ctx, q) {
		if err != nil {
			return nil, err
		}
		acc.Add(&c)
		if dir != nil {
			dir.Add(&c)
		}
	}
	if err := o.summarise(acc, opt); err != nil {
		return nil, err
	}
	o.Notes = notes(conversations(q.Workload, &result.Client{Unsent: max(0, q.Workload.Len()-acc.Total)}))
	if dir != nil {
		dir.Condensed(acc)
		if err := dir.Finish(nil, &o.Summary, nil); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// OpenPredicted opens a workload that can be replayed in virtual time, with the
// tokenizer by which its lengths are measured; nil for package token's
// approximation.
func OpenPredicted(s workload.Spec) (*workload.Workload, workload.Tokenizer, error) {
	w, tok, err := OpenWorkload(s)
	if err != nil {
		return nil, nil, err
	}
	return w, tok, Replayable(w)
}

// Replayable reports whether the simulator's replay has a place for what the
// workload sends.
func Replayable(w *workload.Workload) error {
	if w.Trees() {
		return nil // text and lengths are all that they have, and their prompts are long
	}
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
