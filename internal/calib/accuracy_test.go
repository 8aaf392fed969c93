package calib

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	accuracyFile    = flag.String("accuracy", "", "measure the accuracy of predictions, which takes minutes, and write it to this file")
	calibrationFile = flag.String("calibration", "", "write the calibration of that measurement to this file")
	residualsFile   = flag.String("residuals", "", "write every prediction of that measurement to this file, as JSON")
)

// TestAccuracy predicts every published block by a fit of the other studies, and again
// after the study's first block, and writes docs/accuracy.md: make predict-accuracy. With
// make calibration the fit of all becomes the shipped calibration, with the errors of the
// same predictions.
func TestAccuracy(t *testing.T) {
	if *accuracyFile == "" {
		t.Skip("takes minutes: make predict-accuracy")
	}
	obs := allObservations(t)
	a, err := measureAccuracy(obs, FitOptions{Each: onTwo})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*accuracyFile, []byte(a.markdown()), 0o644); err != nil {
		t.Fatal(err)
	}
	write := func(file string, v any) {
		if file == "" {
			return
		}
		data, err := json.MarshalIndent(v, "", " ")
		if err == nil {
			err = os.WriteFile(file, append(data, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	write(*residualsFile, map[string][]Residual{"in": a.inSample, "held": a.held, "after": a.after, "four": a.four})
	write(*calibrationFile, a.calibration())
	for _, g := range a.goals() {
		if !g.met {
			t.Errorf("%s: %s, want %s", g.what, g.is, g.want)
		}
	}
}

// onTwo does 0..n-1 on two cores.
func onTwo(n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// accuracy is what the document says.
type accuracy struct {
	options  FitOptions
	obs      []Observation
	fitted   *Fitted
	folds    []Fold // by study
	inSample []Residual
	held     []Residual // by a fit without the study
	after    []Residual // the same, corrected by the study's first block
	four     []Residual // of the four studies that have always been here, by workload or model
	ranges   []covered
	afters   []covered
}

// covered is a printed value and the range that was predicted of it.
type covered struct {
	Residual
	low, high float64
}

func (c covered) in() bool { return c.Measured >= c.low && c.Measured <= c.high }

func measureAccuracy(obs []Observation, o FitOptions) (*accuracy, error) {
	a := &accuracy{obs: obs, options: o}
	var err error
	if a.fitted, err = Fit(obs, o); err != nil {
		return nil, err
	}
	for _, r := range a.fitted.Residuals {
		if !math.IsNaN(r.Value) {
			a.inSample = append(a.inSample, r)
		}
	}
	if a.folds, err = holdOutStudies(obs, o); err != nil {
		return nil, err
	}
	a.held = HeldResiduals(a.folds)
	for _, f := range a.folds {
		rest, err := a.afterFirst(f)
		if err != nil {
			return nil, err
		}
		a.after = append(a.after, rest...)
	}
	four := slices.DeleteFunc(slices.Clone(obs), func(b Observation) bool { return !slices.Contains(fourStudies, b.Study) })
	folds, err := HoldOut(four, DefaultHoldOut(four), o)
	if err != nil {
		return nil, err
	}
	a.four = HeldResiduals(folds)
	return a, a.predictRanges()
}

// holdOutStudies holds out each published study of a fit of the others, and each of perflab's
// own of a fit of all the rest.
func holdOutStudies(obs []Observation, o FitOptions) ([]Fold, error) {
	folds, err := HoldOut(slices.DeleteFunc(slices.Clone(obs), func(b Observation) bool { return !printed(&b) }), ByStudy, o)
	if err != nil {
		return nil, err
	}
	p, err := newBlind(obs, o)
	if err != nil {
		return nil, err
	}
	for _, study := range ownStudies {
		own, err := p.without(study, ByStudy)
		if err != nil {
			return nil, err
		}
		folds = append(folds, own)
	}
	return folds, nil
}

var fourStudies = []string{"a100", "h100", "h200", "spark"}

// ownStudies are what perflab measured itself, of a present version: their sites are such
// that the goals, which are of the published studies, know nothing of.
var ownStudies = []string{"own.h100", "own.h200"}

// first is the block that a study begins with: all that a team has that has measured its
// baseline.
func (a *accuracy) first(study string) *Observation {
	for i := range a.obs {
		if b := &a.obs[i]; b.Study == study && b.Apart == "" && !b.Saturated() {
			return b
		}
	}
	return nil
}

// corrected is a fold's calibration corrected by the first block of its study.
func (a *accuracy) corrected(f Fold, c Calibration) (*Calibration, error) {
	return c.With([]Observation{*a.first(f.Key)}, a.options)
}

// afterFirst predicts the blocks of a fold but the first by its calibration corrected by
// that one.
func (a *accuracy) afterFirst(f Fold) ([]Residual, error) {
	c, err := a.corrected(f, Calibration{Sets: f.Sets})
	if err != nil {
		return nil, err
	}
	k, err := c.Constants()
	if err != nil {
		return nil, err
	}
	first := a.first(f.Key)
	var rest []Observation
	for _, b := range a.obs {
		if b.Study == f.Key && b.ID != first.ID {
			rest = append(rest, b)
		}
	}
	out := make([][]Residual, len(rest))
	errs := make([]error, len(rest))
	onTwo(len(rest), func(i int) { out[i], errs[i] = Score(rest[i:i+1], k, a.options.Seed) })
	all := slices.Concat(out...)
	for i := range all {
		b := a.find(all[i].ID)
		all[i].New = cmp.Or(c.measured(Question{Config: b.Config, Replicas: b.Replicas, Load: b.Load}), a.newOf(b.ID))
	}
	return all, cmp.Or(errs...)
}

// newOf is how much of a block was new to the fit without its study.
func (a *accuracy) newOf(id string) Novelty {
	for _, r := range a.held {
		if r.ID == id {
			return r.New
		}
	}
	return nothingFound
}

// afterErrors are the errors after a first block, of those that it speaks of.
func afterErrors(obs []Observation, after []Residual) []Error {
	return slices.DeleteFunc(Errors(obs, after), func(e Error) bool { return !e.New.measured() })
}

// calibration is what the program ships.
func (a *accuracy) calibration() Calibration {
	c := a.fitted.Calibration("result blocks of thirteen published studies and runs of one H100 and one H200", a.obs, a.held)
	c.After = afterErrors(a.obs, a.after)
	return c
}

// predictRanges asks for each block what a user would have been told without its study,
// and after its first block: errors are those of all other studies.
func (a *accuracy) predictRanges() error {
	for _, f := range a.folds {
		inFold := func(r Residual) bool { return a.find(r.ID).Study == f.Key }
		c := Calibration{Sets: f.Sets, Seen: f.Seen,
			Errors: Errors(a.obs, slices.DeleteFunc(slices.Clone(a.held), inFold)),
			After:  afterErrors(a.obs, slices.DeleteFunc(slices.Clone(a.after), inFold)),
		}
		var err error
		if a.ranges, err = a.cover(a.ranges, c, f.Residuals); err != nil {
			return err
		}
		after, err := a.corrected(f, c)
		if err != nil {
			return err
		}
		if a.afters, err = a.cover(a.afters, *after, slices.DeleteFunc(slices.Clone(a.after), func(r Residual) bool { return !inFold(r) })); err != nil {
			return err
		}
	}
	return nil
}

// cover adds the ranges that a calibration gives the figures of some blocks.
func (a *accuracy) cover(out []covered, c Calibration, rs []Residual) ([]covered, error) {
	ids := map[string]bool{}
	for _, r := range rs {
		ids[r.ID] = true
	}
	order := slices.Sorted(maps.Keys(ids))
	told := make([]Prediction, len(order))
	errs := make([]error, len(order))
	onTwo(len(order), func(i int) {
		b := a.find(order[i])
		told[i], errs[i] = c.Predict(Question{Config: b.Config, Replicas: b.Replicas, Load: b.Load, Draws: 6})
	})
	for i, id := range order {
		for _, r := range rs {
			if x, ok := told[i].Figures[r.Metric]; ok && r.ID == id {
				out = append(out, covered{r, x.Low, x.High})
			}
		}
	}
	return out, cmp.Or(errs...)
}

func (a *accuracy) find(id string) *Observation {
	for i := range a.obs {
		if a.obs[i].ID == id {
			return &a.obs[i]
		}
	}
	panic("no block " + id)
}

// errors are the absolute relative errors of a metric, sorted, over the blocks
// that count.
func (a *accuracy) errors(rs []Residual, metric string, counts func(*Observation) bool) []float64 {
	var out []float64
	for _, r := range rs {
		if b := a.find(r.ID); r.Metric == metric && !b.Ambiguous() && counts(b) {
			out = append(out, math.Abs(r.Off()))
		}
	}
	slices.Sort(out)
	return out
}

// at is a quantile of sorted values.
func at(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// pairing is how configurations of one study under one load are told apart.
type pairing struct {
	right, all   int
	wrong        []string
	top3, groups int // groups of four or more whose best is among the three predicted best
}

// pairs counts pairs whose measured throughput differs by more than 5 % (of a load at a
// rate, mean E2E latency), and those predicted in that order.
func (a *accuracy) pairs(rs []Residual, counts func(*Observation) bool) (p pairing) {
	type load struct{ study, workload, metric string }
	groups := map[load][]Residual{}
	for _, r := range rs {
		b := a.find(r.ID)
		metric := Throughput
		if b.Load.Rate > 0 {
			metric = MeanE2E
		}
		if r.Metric == metric && !b.Ambiguous() && counts(b) {
			k := load{b.Study, b.Workload, metric}
			groups[k] = append(groups[k], r)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(groups), func(a, b load) int {
		return cmp.Or(strings.Compare(a.study, b.study), strings.Compare(a.workload, b.workload))
	}) {
		g := groups[k]
		wrong := 0
		for i, x := range g {
			for _, y := range g[i+1:] {
				if math.Abs(math.Log(x.Measured/y.Measured)) <= math.Log(1.05) {
					continue
				}
				p.all++
				if (x.Measured > y.Measured) == (x.Value > y.Value) {
					p.right++
				} else {
					wrong++
				}
			}
		}
		if wrong > 0 {
			p.wrong = append(p.wrong, fmt.Sprintf("%d of %s under %s", wrong, k.study, k.workload))
		}
		if len(g) < 4 {
			continue
		}
		better := func(x, y float64) bool { return (x > y) == (k.metric == Throughput) && x != y }
		best, place := g[0], 1
		for _, x := range g {
			if better(x.Measured, best.Measured) {
				best = x
			}
		}
		for _, x := range g {
			if better(x.Value, best.Value) {
				place++
			}
		}
		p.groups++
		if place <= 3 {
			p.top3++
		}
	}
	return p
}

// coverageOf is how many printed values are within their ranges, and the median width of
// those ranges, high over low.
func (a *accuracy) coverageOf(cs []covered, counts func(covered) bool) (in, all int, width float64) {
	var widths []float64
	for _, c := range cs {
		if counts(c) && printed(a.find(c.ID)) {
			all++
			widths = append(widths, c.high/c.low)
			if c.in() {
				in++
			}
		}
	}
	slices.Sort(widths)
	return in, all, at(widths, 0.5)
}
