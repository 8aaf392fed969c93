// Package prediction predicts the figures of a study's configurations for its search, by replays of parts of its loads in
// virtual time, and learns of what was launched.
//
//	p := prediction.New(ctx, study, replay.Predictor{}, func() { ranked++ })
//	figures, ok := p.Predict(config, "chat")
//
// Invariant: what is predicted follows from the study file and from what Learn was told, so that a study that is resumed
// predicts what it did. Absent: how a run is predicted, which a bench.Predictor does.
package prediction

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"perflab/internal/bench"
	"perflab/internal/engine"
	"perflab/internal/outcome"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/workload"
)

// What of a workload is replayed to predict a configuration's figures. A burst
// that is cut short never fills the layouts that it would have told apart: of a
// published study's eight GPUs a fifth of the load predicted 1.3 times for what all
// of it predicted 1.8 times. So it is all of the load, unless that would take more
// than a fraction of a second.
const (
	maxPredictedRequests = 1000   // requests
	minPredictedRequests = 200    // whatever they cost
	predictedTokens      = 600000 // of prompts and answers, in between
)

// Predictor is a tune.Predictor by replays in virtual time. Configurations are
// those of the study file alone, so that a study that is resumed predicts what
// it did before. What it learns is what the journal holds.
type Predictor struct {
	study       *study.Study
	ranked      func()                    // told of each configuration that was predicted
	by          bench.Predictor           // that of the study, or what it has learned
	ctx         context.Context           // of the search: an interface of tune cannot pass it
	stopped     func() bool               // the study was interrupted: a search that ranks ends at once
	mu          sync.Mutex                // guards what follows: a search predicts several configurations at once
	loads       map[string]*predictedLoad // by workload
	predictions map[string]map[string]float64
	turns       map[string]float64 // requests of a session, by workload whose load is searched
	fell        map[string]bool    // predictions of runs that fall behind their rate
}

// predictedLoad is the part of a workload that predictions are of.
type predictedLoad struct {
	w   *workload.Workload
	tok workload.Tokenizer
	err error // it cannot be replayed
}

// New predicts for a study by a predictor of runs, until ctx ends, and tells of each configuration.
func New(ctx context.Context, s *study.Study, by bench.Predictor, ranked func()) *Predictor {
	return &Predictor{
		study: s, ranked: ranked, by: by, loads: map[string]*predictedLoad{}, predictions: map[string]map[string]float64{}, turns: map[string]float64{}, fell: map[string]bool{},
		ctx:     ctx,
		stopped: func() bool { return ctx.Err() != nil },
	}
}

// Predict replays a part of a workload on a configuration, once.
func (f *Predictor) Predict(c tune.Config, name string) (map[string]float64, bool) {
	at := predictionKey(c, name)
	f.mu.Lock()
	figures, known := f.predictions[at]
	f.mu.Unlock()
	if !known && !f.stopped() {
		var err error
		if figures, err = f.replay(c, name); err != nil {
			figures = nil
		}
		f.mu.Lock()
		f.predictions[at] = figures
		f.mu.Unlock()
		if figures != nil { // of an engine that is not modelled nothing is predicted
			f.ranked()
		}
	}
	return figures, figures != nil
}

// PredictAll replays a part of a workload on several configurations, on every core.
func (f *Predictor) PredictAll(of []tune.Config, name string) {
	bench.OnEveryCore(len(of), func(i int) { f.Predict(of[i], name) })
}

// predictionKey tells predictions apart.
func predictionKey(c tune.Config, workload string) string {
	key, err := json.Marshal(c)
	if err != nil {
		panic("prediction: encode a configuration: " + err.Error()) // a map of texts
	}
	return workload + " " + string(key)
}

// Behind reports whether a configuration is predicted to fall behind the rate of a workload.
func (f *Predictor) Behind(c tune.Config, workload string) bool {
	f.Predict(c, workload)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fell[predictionKey(c, workload)]
}

func (f *Predictor) replay(c tune.Config, name string) (map[string]float64, error) {
	pl, err := f.study.Configure(c, study.Installed{})
	if err != nil {
		return nil, err
	}
	if pl.Engine.Outlined(pl.Config.GPU) {
		return nil, engine.ErrMeasuredOnly
	}
	if s := f.study.LoadSearch(name); s != nil {
		return f.highest(pl, name, s)
	}
	o, err := f.once(pl, name, f.load(name))
	if err != nil {
		return nil, err
	}
	if status, why := outcome.JudgeRun(name, o.Summary); status != tune.Measured {
		return nil, fmt.Errorf("predicted: %s", why)
	}
	f.mu.Lock()
	f.fell[predictionKey(c, name)] = outcome.Saturated(o.Summary)
	f.mu.Unlock()
	return o.Summary.Figures, nil
}

// once replays a part of a workload on a plan.
func (f *Predictor) once(pl study.Configuration, name string, part *predictedLoad) (*bench.Outcome, error) {
	if part.err != nil {
		return nil, part.err
	}
	b := bench.Runner{Spec: bench.Spec{
		Targets: []string{}, Backend: f.study.Bench.Backend, Model: pl.Config.ServedName, Workload: part.w.Spec(),
		Goodput: f.study.Bench.Goodput, Percentiles: f.study.Percentiles(), Price: f.study.Hardware.Price, GPUs: f.study.AllocatedGPUs(),
	}, Name: name}
	return b.Predict(f.ctx, f.by, bench.Prediction{Config: pl.Config, Replicas: pl.Replicas, Workload: part.w, Tokenizer: part.tok})
}

// load is the first requests of a workload, opened once.
func (f *Predictor) load(name string) *predictedLoad {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, ok := f.loads[name]; ok {
		return p
	}
	p := &predictedLoad{}
	f.loads[name] = p
	spec := f.study.WorkloadSpec(name, 0)
	spec.UntilPrecision, spec.UntilMetric = "", "" // a prediction has all of its requests at once
	if p.w, p.tok, p.err = bench.OpenPredicted(spec); p.err != nil {
		return p
	}
	n, most := predictedPart(p.w)
	if n <= most || spec.Steps != "" {
		return p
	}
	if first := spec.Sized(most); first.Validate() == nil {
		p.w, p.tok, p.err = bench.OpenPredicted(first)
	}
	return p
}

// predictedPart is how many requests a workload has, and how many of them are replayed at most; of sessions how many
// sessions. Where time decides there is no number, and all of the time is replayed.
func predictedPart(w *workload.Workload) (n, most int) {
	n = w.Len()
	if w.Conversations() {
		// What prompts have in common costs a replay nothing, and fewer sessions than run together are another load.
		s := w.Spec()
		return s.NumPrompts, max(2*s.MaxConcurrency, s.NumPrompts*maxPredictedRequests/max(1, n))
	}
	most = maxPredictedRequests
	if tokens := w.Totals().Input + w.Totals().Output; tokens > 0 {
		most = min(most, max(minPredictedRequests, int(float64(n)*predictedTokens/float64(tokens))))
	}
	return n, most
}

var _ tune.Parallel = (*Predictor)(nil)
