package lab

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"perflab/internal/result"
	"perflab/internal/verdict"
)

// Resummarise computes the figures of a stored run again from its calls, with
// these percentiles besides those that the run was made for. The figures of an
// imported run are those of its file.
func (r *StoredRun) Resummarise(percentiles ...float64) (result.Summary, error) {
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
	return verdict.Summarize(r.Header, client, opt, slices.Values(r.Calls))
}

// Options are those that the run's figures are computed with; of an imported
// run, whose figures are not, the ones that its calls would be.
func (r *StoredRun) Options() (result.Options, error) {
	var spec Spec
	if r.figures != nil {
		return result.Options{}, nil
	}
	if err := json.Unmarshal(r.Header.Spec, &spec); err != nil {
		return result.Options{}, fmt.Errorf("read the run's spec: %w", err)
	}
	opt, err := spec.summaryOptions()
	opt.Readings = r.Readings
	return opt, err
}

// Percentiles are those that the run was made for, else 99; of an imported run
// those that its file has.
func (r *StoredRun) Percentiles() []float64 {
	if r.figures != nil {
		return r.figures.Percentiles()
	}
	var spec Spec
	if json.Unmarshal(r.Header.Spec, &spec) != nil || len(spec.Percentiles) == 0 {
		return []float64{99}
	}
	return slices.Compact(slices.Sorted(slices.Values(spec.Percentiles)))
}

// imported returns the figures as the file has them, and these percentiles
// from the calls where there are calls.
func (r *StoredRun) imported(percentiles []float64) (result.Summary, error) {
	s := *r.figures
	if len(percentiles) == 0 || len(r.Calls) == 0 {
		return s, nil
	}
	own, err := result.Summarize(r.Header, &result.Client{}, result.Options{Percentiles: percentiles}, slices.Values(r.Calls))
	if err != nil {
		return s, fmt.Errorf("summarise the calls: %w", err)
	}
	s.Figures = maps.Clone(s.Figures)
	s.Complete(own, r.Header.Imported.Lacks...)
	return s, nil
}
