package forecast

import (
	"perflab/internal/calib"
	"perflab/internal/result"
)

// ratioFigure is the figure of which an error is known that a ratio of another follows: what
// counts the same tokens in the same time, on the same hardware.
var ratioFigure = map[string]string{
	"total_token_throughput_per_gpu": calib.Throughput, "output_throughput_per_gpu": calib.Throughput, "request_throughput_per_gpu": calib.Throughput,
	"cost_per_million_tokens": calib.Throughput, "cost_per_million_output_tokens": calib.Throughput,
}

// Ratio holds a run against another of the same load by a figure: how many times better it is
// by prediction, and what that lies between in nine of ten cases by the errors that the
// calibration knows; outside is what it has not seen. It is not ok where it knows none.
func (r Run) Ratio(c *calib.Calibration, to Run, metric string) (better calib.Range, outside []string, ok bool, err error) {
	m, err := result.Lookup(metric)
	if err != nil {
		return better, nil, false, err
	}
	higher := m.Better == result.Higher
	name := m.Name
	if k := ratioFigure[name]; k != "" {
		name, higher = k, true
	}
	l, err := NewLoad(r.Workload, r.Tokenizer)
	if err != nil {
		return better, nil, false, err
	}
	ask := func(r Run) calib.Question {
		return calib.Question{Config: r.Config, Replicas: r.Replicas, Load: l.calib, Seed: r.Seed}
	}
	better, outside, ok, err = c.Ratio(ask(r), ask(to), name)
	if !higher {
		better = calib.Range{Value: 1 / better.Value, Low: 1 / better.High, High: 1 / better.Low}
	}
	return better, outside, ok, err
}
