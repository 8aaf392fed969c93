package rundir

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"perflab/internal/field"
	"perflab/internal/price"
	"perflab/internal/result"
	"perflab/internal/verdict"
)

// Resummarise computes the figures of a stored run again from its calls, with
// these percentiles besides those that the run was made for. The figures of an
// imported run are those of its file.
func (r *Run) Resummarise(percentiles ...float64) (result.Summary, error) {
	if r.figures != nil {
		return r.imported(percentiles)
	}
	opt, err := r.Options()
	if err != nil {
		return result.Summary{}, err
	}
	opt.Percentiles = append(opt.Percentiles, percentiles...)
	client := r.Client
	if client == nil && r.Partial {
		client = &result.Client{Partial: true, StopNote: "the run directory was never finished"}
	}
	a, err := r.calls.Analyze(client, opt)
	if err != nil {
		return result.Summary{}, err
	}
	r.Pace = a.Pace()
	return verdict.Judged(a), nil
}

// Options are those that the run's figures are computed with; of an imported
// run, whose figures are not, the ones that its calls would be.
func (r *Run) Options() (result.Options, error) {
	var spec FigureSpec
	if r.Header.Imported != nil {
		return result.Options{}, nil
	}
	if err := json.Unmarshal(r.Header.Spec, &spec); err != nil {
		return result.Options{}, fmt.Errorf("read the run's spec: %w", err)
	}
	opt, err := spec.Options()
	opt.Readings, opt.Prompts = r.Readings, r.Prompts
	return opt, err
}

// Percentiles are those that the run was made for, else 99; of an imported run
// those that its file has.
func (r *Run) Percentiles() []float64 {
	if r.figures != nil {
		return r.figures.Percentiles()
	}
	var spec FigureSpec
	if json.Unmarshal(r.Header.Spec, &spec) != nil || len(spec.Percentiles) == 0 {
		return []float64{99}
	}
	return slices.Compact(slices.Sorted(slices.Values(spec.Percentiles)))
}

// imported returns the figures as the file has them, and these percentiles
// from the calls where there are calls.
func (r *Run) imported(percentiles []float64) (result.Summary, error) {
	s := *r.figures
	if len(percentiles) == 0 || len(r.Calls) == 0 {
		return s, nil
	}
	a, err := r.calls.Analyze(&result.Client{}, result.Options{Percentiles: percentiles})
	if err != nil {
		return s, fmt.Errorf("summarise the calls: %w", err)
	}
	own := a.Summary()
	s.Figures = maps.Clone(s.Figures)
	s.Complete(own, r.Header.Imported.Lacks...)
	return s, nil
}

// FigureSpec is the part of a run's spec that its figures are computed with.
type FigureSpec struct {
	Percentiles []float64    `json:"metric_percentiles"`
	Goodput     []string     `json:"goodput"`
	Compat      string       `json:"compat"`
	Price       price.Hourly `json:"price_per_hour"`
	GPUs        int          `json:"gpus"`
}

// Options are those of a summary.
func (s FigureSpec) Options() (result.Options, error) {
	opt := result.Options{Percentiles: s.Percentiles, Compat: s.Compat, Price: s.Price, GPUs: s.GPUs}
	if opt.Compat != "" && opt.Compat != result.VLLM {
		return opt, field.Errorf("compat", "%q is unknown: use %s", opt.Compat, result.VLLM)
	}
	for _, g := range s.Goodput {
		slos, err := result.ParseGoodput(g)
		if err != nil {
			return opt, err
		}
		opt.Goodput = append(opt.Goodput, slos...)
	}
	return opt, nil
}
