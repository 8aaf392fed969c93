// Package forecast has the use cases of perflab predict and perflab calibrate:
// questions in, rows out.
//
//	d, err := forecast.Deployments(commands, grid, hardware)
//	l, err := forecast.NewLoad(w, tokenizer)
//	table, err := forecast.Question{...}.Answer(&calibration, d, []forecast.Load{l})
//
//	var o forecast.Observer
//	o.Run(run)                          // for each
//	fit, err := forecast.Calibrate(&o, forecast.FitOptions{})
//
// Invariants: everything here is a function of its arguments. What an engine
// would refuse is a row with the reason, and a run that gives no observation is
// named with the reason: nothing is dropped without a word. Every figure that is
// shown of a prediction or a calibration is computed here or below.
//
// Deliberately absent: files, flags and text. Who calls opens what a user names
// and says how the work is spread over cores; package report writes the tables.
package forecast

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/calib"
	"perflab/internal/result"
)

// Question is what is asked of every deployment under every load.
type Question struct {
	Options   result.Options // percentiles and goodput of the figures
	Draws     int            // of constants and loads, for the ranges; 0: no range
	SLOs      []result.SLO
	Metrics   []string // to show; empty: DefaultMetrics
	Latency   string   // of the front
	Objective string   // that rows are ordered by; "": as they were given

	Each calib.Each // of the work
}

// DefaultMetrics are shown where a question names none.
func DefaultMetrics() []string {
	return []string{calib.Throughput, outputThroughput, calib.MeanTTFT, calib.MeanTPOT, calib.MedianITL, calib.MeanE2E}
}

// SessionMetrics are shown of loads of sessions where a question names none.
func SessionMetrics() []string {
	return []string{"sessions_per_hour", "mean_session_s", "e2e_avg_interactivity", calib.MeanTTFT, calib.MeanTPOT}
}

const outputThroughput = "output_throughput"

// answer is what the simulator says of a deployment under a load.
type answer struct {
	number int // of the deployment, from 0
	load   *Load
	calib.Prediction
	err error
}

// Answer predicts every deployment under every load: there is at least one of
// each.
func (q Question) Answer(c *calib.Calibration, deployments []Deployment, loads []Load) (Table, error) {
	answers := q.ask(c, deployments, loads)
	for i := range answers {
		if a := &answers[i]; a.err != nil {
			return Table{}, fmt.Errorf("predict %s: %w", deployments[a.number].text(), a.err)
		}
	}
	t := Table{
		Schema: Schema, Simulated: true, Workload: loads[0].line,
		Calibration: Source{Source: c.Source, Runs: c.Runs, Draws: q.Draws},
		Metrics:     q.Metrics, Latency: q.Latency, Objective: q.Objective,
	}
	if len(loads) == 1 {
		t.Workload += ", " + loads[0].name
	}
	t.Spec, _ = json.Marshal(loads[0].spec) // numbers and strings
	for _, slo := range q.SLOs {
		t.SLOs = append(t.SLOs, slo.String())
	}
	for i, label := range labels(deployments) {
		t.Configurations = append(t.Configurations, deployments[i].describe(label))
	}
	for i := range answers {
		t.Rows = append(t.Rows, q.row(&deployments[answers[i].number], &answers[i]))
	}
	if len(answers) == 1 && answers[0].load != nil && q.Draws > 0 {
		if err := q.doubts(c, &deployments[0], &answers[0], &t.Rows[0]); err != nil {
			return Table{}, fmt.Errorf("predict %s: %w", deployments[0].text(), err)
		}
	}
	if len(t.Metrics) == 0 {
		t.Metrics = DefaultMetrics()
		if slices.ContainsFunc(loads, func(l Load) bool { return l.calib.Sessions }) {
			t.Metrics = SessionMetrics()
		}
		if len(t.Rows) > 1 { // of one workload, output tokens are the same share of all in each row
			t.Metrics = slices.DeleteFunc(t.Metrics, func(m string) bool { return m == outputThroughput })
		}
	}
	markFront(t.Rows, q.Latency)
	sortBy(t.Rows, q.Objective)
	return t, nil
}

// ask asks each deployment that would start under each load; one that would
// not has an answer without a load.
func (q Question) ask(c *calib.Calibration, deployments []Deployment, loads []Load) []answer {
	var answers []answer
	for i := range deployments {
		if deployments[i].Refused != nil {
			answers = append(answers, answer{number: i})
			continue
		}
		for k := range loads {
			answers = append(answers, answer{number: i, load: &loads[k]})
		}
	}
	each, within := q.Each, calib.Each(nil)
	if len(answers) == 1 { // its draws are the work
		each, within = nil, q.Each
	}
	each.Do(len(answers), func(i int) {
		if a := &answers[i]; a.load != nil {
			d := &deployments[a.number]
			a.Prediction, a.err = c.Predict(calib.Question{
				Config: d.config, Replicas: d.replicas, Load: a.load.calib, Options: q.Options, Seed: a.load.spec.Seed,
				Draws: cmp.Or(q.Draws, -1), // of which 0 means the default
				Each:  within,
			})
		}
	})
	return answers
}

// doubts says what a prediction hangs on, and what would narrow it most.
func (q Question) doubts(c *calib.Calibration, d *Deployment, a *answer, r *Row) error {
	metric := calib.Throughput
	if a.load.calib.Rate > 0 {
		metric = calib.MeanE2E
	}
	var err error
	r.Hangs, err = c.Hinges(calib.Question{Config: d.config, Replicas: d.replicas, Load: a.load.calib, Seed: a.load.spec.Seed, Each: q.Each}, metric)
	if err != nil {
		return err
	}
	plan, err := c.Plan(d.config, d.replicas, calib.FitOptions{Each: q.Each})
	if err == nil && len(plan.Steps) > 0 {
		r.Measure = &plan.Steps[0]
	}
	return err
}

// row turns an answer into facts.
func (q Question) row(d *Deployment, a *answer) Row {
	out := Row{Configuration: a.number + 1}
	if a.load == nil {
		return out
	}
	l := a.load
	out.Load, out.Rate, out.Concurrency = l.name, l.rate, l.calib.Concurrency
	out.Figures, out.PerGPU = map[string]Estimate{}, map[string]Estimate{}
	for name, v := range a.Summary.Figures {
		e := Estimate{Value: v}
		if x, ok := a.Figures[name]; ok {
			e.Low, e.High = &x.Low, &x.High
		}
		out.Figures[name] = e
		if name == calib.Throughput || name == outputThroughput {
			out.PerGPU[name] = e.over(float64(d.gpus))
		}
	}
	if a.Bottleneck.Name != "" {
		out.Bottleneck = &a.Bottleneck
	}
	out.KV, out.Utilisation, out.Outside = &a.KV, a.Utilisation, a.Outside
	out.Steps, out.Running = a.Steps.Steps, a.Steps.PeakRunning
	out.Times, out.Waits = calib.StepSeconds(a.Steps.Times), calib.WaitSeconds(a.Steps.Waits)
	if a.Failed != "" {
		out.Failed = a.Failed
		if rejection := d.tooLong(l); rejection != nil {
			out.Failed = strings.TrimSuffix(out.Failed, ".") + "; " + rejection.Reason
		}
	}
	out.SLO, out.Missed = judge(q.SLOs, &a.Prediction)
	return out
}

// judge holds the predicted figures against the SLOs; the word is unsure where
// a range holds the limit.
func judge(slos []result.SLO, p *calib.Prediction) (word string, missed []string) {
	if len(slos) == 0 {
		return "", nil
	}
	word = "met"
	doubt := ""
	for _, slo := range slos {
		if ok, why := slo.Judge(p.Summary); !ok {
			word, missed = "missed", append(missed, why)
		}
		if r, ok := p.Figures[slo.Metric]; ok && r.Low < slo.Limit && slo.Limit < r.High {
			doubt = ", unsure"
		}
	}
	return word + doubt, missed
}
