package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"perflab/internal/calib"
	"perflab/internal/engine"
	"perflab/internal/report"
	"perflab/internal/result"
	"perflab/internal/sim"
)

// predictRow is an answer, or the row of a refusal.
type predictRow struct {
	config, load int
	p            calib.Prediction
	err          error
}

// predict answers every configuration under every load, a core each.
func (f *predictFlags) predict(ctx context.Context, env Env, cal *calib.Calibration, configs []configuration, loads []predictLoad) ([]predictRow, error) {
	var rows []predictRow
	for i := range configs {
		if configs[i].refused != nil {
			rows = append(rows, predictRow{config: i, load: -1})
			continue
		}
		for k := range loads {
			rows = append(rows, predictRow{config: i, load: k})
		}
	}
	var done atomic.Int64
	line := startLive(env, func() string { return fmt.Sprintf("predicting %d of %d", done.Load()+1, len(rows)) }, nil)
	next := make(chan *predictRow)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(rows)) {
		wg.Go(func() {
			for r := range next {
				if c := &configs[r.config]; r.load >= 0 && ctx.Err() == nil {
					r.p, r.err = cal.Predict(f.question(c, &loads[r.load]))
				}
				done.Add(1)
			}
		})
	}
	for i := range rows {
		next <- &rows[i]
	}
	close(next)
	wg.Wait()
	line.end()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for i := range rows {
		if err := rows[i].err; err != nil {
			return nil, fmt.Errorf("predict %s: %w", configs[rows[i].config].shown(), err)
		}
	}
	return rows, nil
}

func (f *predictFlags) question(c *configuration, l *predictLoad) calib.Question {
	draws := f.draws
	if draws == 0 {
		draws = -1
	}
	return calib.Question{
		Config: c.cfg, Replicas: c.replicas, Load: l.calib, Options: f.options, Seed: l.spec.Seed, Draws: draws,
	}
}

const predictSchema = "perflab.prediction/1"

// forecast is what the answers show.
func (f *predictFlags) forecast(env Env, cal *calib.Calibration, name string, configs []configuration, loads []predictLoad, rows []predictRow) report.Forecast {
	doc := report.Forecast{
		Schema: predictSchema, Version: env.Version, Simulated: true, Workload: loads[0].line,
		Calibration: report.ForecastSource{Name: name, Source: cal.Source, Runs: cal.Runs, Draws: f.draws},
		Metrics:     f.metrics, Latency: f.latency, Objective: f.objective,
	}
	if len(loads) == 1 {
		doc.Workload += ", " + loads[0].name
	}
	doc.Spec, _ = json.Marshal(loads[0].spec) // numbers and strings
	for _, b := range f.bounds {
		doc.SLOs = append(doc.SLOs, b.String())
	}
	for i, label := range labels(configs) {
		doc.Commands = append(doc.Commands, f.command(&configs[i], label))
	}
	for i := range rows {
		doc.Rows = append(doc.Rows, f.row(&configs[rows[i].config], &rows[i], loads))
	}
	if f.defaults && len(rows) > 1 { // of one workload, output tokens are the same share of all in each row
		doc.Metrics = slices.DeleteFunc(slices.Clone(f.metrics), func(m string) bool { return m == "output_throughput" })
	}
	front(doc.Rows, f.latency)
	f.order(doc.Rows)
	return doc
}

func (f *predictFlags) command(c *configuration, label string) report.ForecastCommand {
	out := report.ForecastCommand{
		Label: label, Command: c.shown(), Engine: c.cmd.Engine, Model: c.cmd.Model,
		GPU: c.gpu.Name, GPUTitle: c.gpu.Title, GPUs: f.gpus, Notes: c.notes,
	}
	if c.refused != nil {
		out.Refused = c.why()
		return out
	}
	out.Each, out.Replicas = c.cfg.GPUs, c.replicas
	m := report.ForecastMemory(c.cfg.Memory())
	out.Memory = &m
	return out
}

// row turns an answer into facts.
func (f *predictFlags) row(c *configuration, r *predictRow, loads []predictLoad) report.ForecastRow {
	out := report.ForecastRow{Configuration: r.config + 1}
	if r.load < 0 {
		return out
	}
	l, p := &loads[r.load], &r.p
	out.Load, out.Rate, out.Concurrency = l.name, l.calib.Rate, l.calib.Concurrency
	out.Figures, out.PerGPU = map[string]report.Estimate{}, map[string]report.Estimate{}
	for name, v := range p.Summary.Figures {
		e := report.Estimate{Value: v}
		if x, ok := p.Figures[name]; ok {
			e.Low, e.High = &x.Low, &x.High
		}
		out.Figures[name] = e
		if name == calib.Throughput || name == "output_throughput" {
			out.PerGPU[name] = each(e, float64(f.gpus))
		}
	}
	if b := p.Bottleneck; b.Name != "" {
		out.Bottleneck = &report.ForecastBottleneck{Name: b.Name, Share: b.Share, Text: b.Text}
	}
	out.KV = &report.ForecastKV{Tokens: p.KV.Tokens, Peak: p.KV.Peak, Concurrency: p.KV.Concurrency, Preemptions: p.KV.Preemptions, Found: p.KV.Found}
	out.Utilisation, out.Outside, out.Steps, out.Running = p.Utilisation, p.Outside, p.Steps.Steps, p.Steps.PeakRunning
	out.Times, out.Waits = times(p.Steps.Times), waitTimes(p.Steps.Waits)
	if n := int(p.Summary.Figures["failed"]); n > 0 {
		why, _ := p.Summary.Verdict.Check("failures")
		out.Failed = cmp.Or(why.Text, fmt.Sprintf("%d of %d requests", n, l.calib.Requests))
		if rej := c.tooLong(l.calib.Exact); rej != nil {
			out.Failed = strings.TrimSuffix(out.Failed, ".") + "; " + rej.Reason
		}
	}
	out.SLO, out.Missed = f.met(p)
	return out
}

// tooLong is why the configuration does not serve the longest of the requests that it
// does not serve, nil where it serves all.
func (c *configuration) tooLong(requests []calib.Request) *engine.Rejection {
	var worst *engine.Rejection
	most := 0
	for _, r := range requests {
		if n := r.Input + r.Output; n > most {
			if rej := c.cfg.Fits(r.Input, r.Output); rej != nil {
				worst, most = rej, n
			}
		}
	}
	return worst
}

func each(e report.Estimate, n float64) report.Estimate {
	part := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(*v / n)
	}
	return report.Estimate{Value: e.Value / n, Low: part(e.Low), High: part(e.High)}
}

// Words for the bounds of a row.
const (
	sloMet    = "met"
	sloMissed = "missed"
	unsure    = ", unsure"
)

// met judges the bounds by the predicted figures; it is unsure where a range
// holds the limit.
func (f *predictFlags) met(p *calib.Prediction) (word string, missed []string) {
	if len(f.bounds) == 0 {
		return "", nil
	}
	word = sloMet
	doubt := ""
	for _, b := range f.bounds {
		if ok, why := b.Judge(p.Summary); !ok {
			word, missed = sloMissed, append(missed, why)
		}
		if r, ok := p.Figures[b.Metric]; ok && r.Low < b.Limit && b.Limit < r.High {
			doubt = unsure
		}
	}
	return word + doubt, missed
}

// times are a core's times by term, in seconds.
func times(t sim.Times) map[string]float64 {
	return map[string]float64{
		calib.Weights: t.Weights.Seconds(), calib.Arithmetic: t.Arithmetic.Seconds(),
		calib.ExpertReads: t.ExpertReads.Seconds(), calib.Experts: t.Experts.Seconds(),
		calib.KVReads: t.KV.Seconds(), calib.Attention: t.Attention.Seconds(),
		calib.Collectives: t.Collectives.Seconds(), calib.Elementwise: t.Elementwise.Seconds(),
		calib.Host: t.Host.Seconds(), calib.Drafting: t.Drafting.Seconds(),
	}
}

func waitTimes(w sim.Waits) map[string]float64 {
	return map[string]float64{
		calib.KVBlocks: w.KV.Seconds(), calib.RunLimit: w.Seqs.Seconds(), calib.StepTokens: w.Tokens.Seconds(),
		calib.FrontEnd: w.FrontEnd.Seconds(), "idle": w.Idle.Seconds(),
	}
}

// front marks the rows that no other beats in throughput per GPU and latency
// both.
func front(rows []report.ForecastRow, latency string) {
	at := func(r *report.ForecastRow) (x, y float64, ok bool) {
		a, has := r.Figures[latency]
		b, too := r.PerGPU[calib.Throughput]
		return a.Value, b.Value, has && too
	}
	for i := range rows {
		x, y, ok := at(&rows[i])
		rows[i].Front = ok && !slices.ContainsFunc(rows, func(r report.ForecastRow) bool {
			a, b, ok := at(&r)
			return ok && a <= x && b >= y && (a < x || b > y)
		})
	}
}

// order sorts rows by the objective, best first and refusals last; of equals
// and without one they stay as given.
func (f *predictFlags) order(rows []report.ForecastRow) {
	m, err := result.Lookup(f.objective)
	if err != nil {
		return
	}
	slices.SortStableFunc(rows, func(a, b report.ForecastRow) int {
		x, ok := a.Figures[m.Name]
		y, too := b.Figures[m.Name]
		switch {
		case ok && too && m.Better == result.Higher:
			return cmp.Compare(y.Value, x.Value)
		case ok && too:
			return cmp.Compare(x.Value, y.Value)
		case ok:
			return -1
		case too:
			return 1
		}
		return 0
	})
}
