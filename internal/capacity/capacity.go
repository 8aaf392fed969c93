// Package capacity says what a model can do on hardware: what the simulator predicts, beside
// what runs measured, and how far the one was from the other.
//
//	answer, err := capacity.Predict(ctx, capacity.Ask{Model: "Qwen/Qwen3-32B", GPU: "h100-sxm", GPUs: 8, Engine: "vllm", Input: 2000, Output: 256})
//	cases, err := capacity.Measured(ctx, store, "")
//	check, err := capacity.Hold(ctx, cases[0].Best)
//
// Invariants: what was predicted is never called measured; a figure that nobody has is absent;
// what an engine would refuse is an answer, with the reason; whatever was new to the calibration
// is said.
//
// Deliberately absent: predictions of package forecast are not made better here, and nothing
// is started.
package capacity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/field"
	"perflab/internal/forecast"
	"perflab/internal/result"
	"perflab/internal/workload"
)

// Ask is what is asked: a model on accelerators, with the lengths of its requests.
type Ask struct {
	Model  string // of the catalogue, or a name for Config
	Config string // text of the model's config.json; "": the catalogue has the model
	GPU    string // short name of the accelerator
	GPUs   int    // of the machine
	Engine string
	TP     int // GPUs of a replica; 0: each power of two that the machine has
	Input  int // tokens of a prompt
	Output int // tokens of an answer
	SLO    string
}

// Bounds of what is asked: an answer shall take seconds.
const (
	mostGPUs   = 64
	mostTokens = 1 << 17
	mostConfig = 64 << 10
)

// Check names what cannot be.
func (a Ask) Check() error {
	switch {
	case strings.TrimSpace(a.Model) == "":
		return field.Errorf("model", "is missing: name one of the catalogue, or give a name and its config.json")
	case len(a.Config) > mostConfig:
		return field.Errorf("config", "is longer than a config.json is")
	case a.GPUs < 1 || a.GPUs > mostGPUs:
		return field.Errorf("gpus", "%d cannot be: from 1 to %d", a.GPUs, mostGPUs)
	case a.TP < 0 || a.TP > a.GPUs:
		return field.Errorf("tp", "%d cannot be: a replica has from 1 to all %d GPUs", a.TP, a.GPUs)
	case a.Input < 1 || a.Input > mostTokens:
		return field.Errorf("input", "%d tokens cannot be: from 1 to %d", a.Input, mostTokens)
	case a.Output < 1 || a.Output > mostTokens:
		return field.Errorf("output", "%d tokens cannot be: from 1 to %d", a.Output, mostTokens)
	}
	g, err := arch.LookupAccelerator(a.GPU)
	if err != nil {
		return field.Errorf("gpu", "%s", err)
	}
	if !g.Known() {
		return field.Errorf("gpu", "nothing is known of %s to predict from", g.Title)
	}
	if _, err := engine.ByName(a.Engine); err != nil {
		return field.Errorf("engine", "%s", err)
	}
	if _, err := a.model(); err != nil {
		return err
	}
	_, err = a.slos()
	return err
}

func (a Ask) model() (arch.Model, error) {
	if a.Config == "" {
		m, err := arch.LookupModel(a.Model)
		if err != nil {
			return m, field.Errorf("model", "%s", err)
		}
		return m, nil
	}
	m, err := arch.ParseConfig(a.Model, strings.NewReader(a.Config))
	if err != nil {
		return m, field.Errorf("config", "%s", err)
	}
	return m, nil
}

func (a Ask) slos() ([]result.SLO, error) {
	if strings.TrimSpace(a.SLO) == "" {
		return nil, nil
	}
	slos, err := result.ParseSLOs(a.SLO)
	if err != nil {
		return nil, field.Errorf("slo", "%s", err)
	}
	return slos, nil
}

// limits are the loads that an answer is made of: requests in flight. 0 sends all at once, which
// is saturation.
var limits = []int{0, 1, 4, 16, 64, 256}

// Requests of a load, and draws for its ranges: enough for the ranges to be known to a
// few percent, and few enough for seconds.
const (
	mostRequests  = 400
	tokenBudget   = 1 << 17 // output tokens of one load
	leastRequests = 32
	drawn         = 20
)

// Answer is what was predicted.
type Answer struct {
	Ask     Ask
	Options []Option // by output throughput at saturation, refusals last
	Notes   []string
}

// Option is a way to use the GPUs.
type Option struct {
	forecast.Configuration

	Saturated *forecast.Row // all requests at once
	AtSLO     *forecast.Row // the load with the highest throughput that meets the SLOs; nil: none does, or none is asked for
	Alone     *forecast.Row // one request at a time
	Rows      []forecast.Row
	Outside   []string // what of it is new to the calibration
}

// metrics are those that an answer shows.
func metrics() []string {
	return []string{Throughput, MeanTTFT, P99TTFT, MeanTPOT, "request_throughput"}
}

// Figures of answers and cases.
const (
	Throughput = "output_throughput"
	MeanTTFT   = "mean_ttft_ms"
	P99TTFT    = "p99_ttft_ms"
	MeanTPOT   = "mean_tpot_ms"
)

// Predict answers what is asked. It takes seconds, and ends with the context.
func Predict(ctx context.Context, a Ask) (Answer, error) {
	if err := a.Check(); err != nil {
		return Answer{}, err
	}
	cmd, err := engine.New(a.Engine, a.Model, nil, nil)
	if err != nil && !forecast.IsRefusal(err) {
		return Answer{}, field.Errorf("engine", "%s", err)
	}
	grid := forecast.Axis{Param: "tp"}
	for n := 1; n <= a.GPUs; n *= 2 {
		grid.Values = append(grid.Values, fmt.Sprint(n))
	}
	if a.TP > 0 {
		grid.Values = []string{fmt.Sprint(a.TP)}
	}
	var loads []forecast.Load
	for _, limit := range limits {
		spec := workload.Spec{Dataset: "random", Seed: 1, NumPrompts: a.requests(limit), RandomInputLen: a.Input, RandomOutputLen: a.Output, MaxConcurrency: limit, IgnoreEOS: true}
		l, err := load(spec)
		if err != nil {
			return Answer{}, err
		}
		loads = append(loads, l)
	}
	t, err := answer(ctx, a, forecast.Command{Line: cmd.String(), Command: cmd, Refused: err}, []forecast.Axis{grid}, loads, drawn)
	if err != nil {
		return Answer{}, err
	}
	return sorted(a, t), nil
}

// requests is how many of them a load has: some rounds of those in flight.
func (a Ask) requests(limit int) int {
	n := min(mostRequests, max(leastRequests, tokenBudget/a.Output))
	if limit > 0 {
		n = min(n, max(8, 4*limit))
	}
	return n
}

func load(spec workload.Spec) (forecast.Load, error) {
	w, err := workload.Open(spec.Defaults())
	if err != nil {
		return forecast.Load{}, err
	}
	return forecast.NewLoad(w, nil)
}

// answer asks the shipped calibration.
func answer(ctx context.Context, a Ask, c forecast.Command, grid []forecast.Axis, loads []forecast.Load, draws int) (forecast.Table, error) {
	gpu, err := arch.LookupAccelerator(a.GPU)
	if err != nil {
		return forecast.Table{}, err
	}
	h := forecast.Hardware{Accelerators: []arch.Accelerator{gpu}, GPUs: a.GPUs, Model: func(name string) (arch.Model, error) {
		if a.Config != "" {
			return a.model()
		}
		return arch.LookupModel(name)
	}}
	deployments, err := forecast.Deployments([]forecast.Command{c}, grid, h)
	if err != nil {
		return forecast.Table{}, err
	}
	slos, err := a.slos()
	if err != nil {
		return forecast.Table{}, err
	}
	var site *forecast.Site
	calibration, err := site.Calibration()
	if err != nil {
		return forecast.Table{}, err
	}
	q := forecast.Question{Draws: draws, SLOs: slos, Metrics: metrics(), Latency: MeanTPOT, Options: result.Options{Percentiles: []float64{50, 90, 95, 99}},
		Each: func(n int, do func(int)) {
			for i := range n { // one after another: who measures on this machine needs its cores
				if ctx.Err() == nil {
					do(i)
				}
			}
		}}
	t, err := q.Answer(calibration, deployments, loads)
	if ctx.Err() != nil {
		return t, context.Cause(ctx)
	}
	return t, err
}

// sorted makes an answer of the rows.
func sorted(a Ask, t forecast.Table) Answer {
	out := Answer{Ask: a, Notes: t.Notes}
	for i, c := range t.Configurations {
		o := Option{Configuration: c}
		for _, r := range t.Rows {
			if r.Configuration == i+1 && r.Figures != nil {
				o.Rows = append(o.Rows, r)
			}
		}
		o.pick(a.SLO != "")
		out.Options = append(out.Options, o)
	}
	slices.SortStableFunc(out.Options, func(x, y Option) int { return cmp.Compare(y.throughput(), x.throughput()) })
	return out
}

// pick chooses the loads that stand for the option.
func (o *Option) pick(slo bool) {
	for i := range o.Rows {
		r := &o.Rows[i]
		switch {
		case r.Concurrency == 0 && r.Rate == 0:
			o.Saturated = r
		case r.Concurrency == 1:
			o.Alone = r
		}
		if slo && len(r.Missed) == 0 && r.Failed == "" && (o.AtSLO == nil || r.Figures[Throughput].Value > o.AtSLO.Figures[Throughput].Value) {
			o.AtSLO = r
		}
		for _, s := range r.Outside {
			if !slices.Contains(o.Outside, s) {
				o.Outside = append(o.Outside, s)
			}
		}
	}
}

func (o Option) throughput() float64 {
	if o.Saturated == nil {
		return -1
	}
	return o.Saturated.Figures[Throughput].Value
}
