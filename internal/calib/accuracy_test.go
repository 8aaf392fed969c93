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
)

// TestAccuracy predicts every published block by a fit of the others, and writes
// docs/accuracy.md: make predict-accuracy. With make calibration the fit of all
// becomes the shipped calibration, with the errors of the same folds.
func TestAccuracy(t *testing.T) {
	if *accuracyFile == "" {
		t.Skip("takes minutes: make predict-accuracy")
	}
	obs := publishedObservations(t)
	for i := range obs {
		if err := obs[i].Resolve(); err != nil {
			t.Fatal(err)
		}
	}
	o := FitOptions{Each: onTwo}
	fitted, err := Fit(obs, o)
	if err != nil {
		t.Fatal(err)
	}
	folds, err := HoldOut(obs, DefaultHoldOut(obs), o)
	if err != nil {
		t.Fatal(err)
	}
	a := &accuracy{obs: obs, folds: folds, held: HeldResiduals(folds), inSample: fitted.Residuals}
	if a.baseline, err = fromBaselines(obs, o); err != nil {
		t.Fatal(err)
	}
	if err := a.predictRanges(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*accuracyFile, []byte(a.markdown()), 0o644); err != nil {
		t.Fatal(err)
	}
	if *calibrationFile != "" {
		c := fitted.Calibration("result blocks of four published studies", obs, a.held)
		data, err := json.MarshalIndent(c, "", " ")
		if err == nil {
			err = os.WriteFile(*calibrationFile, append(data, '\n'), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
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
	obs      []Observation
	folds    []Fold
	held     []Residual // by workload or model
	baseline []Residual // by the study's baseline alone
	inSample []Residual
	ranges   []covered
}

// covered is a printed value and the range that was predicted of it.
type covered struct {
	Residual
	low, high float64
}

func (c covered) in() bool { return c.Measured >= c.low && c.Measured <= c.high }

// baseline says that a block is one of those that its study begins with: all that
// a team has that has measured one load, or one model.
func baseline(b Observation) bool {
	switch b.Study {
	case "h200":
		return b.Workload == "rate 8"
	case "spark":
		return strings.Contains(b.Config.Model.Name, "Qwen3-VL-32B")
	}
	return b.Workload == "ShareGPT"
}

// fromBaselines predicts the other blocks of each study from a fit of its
// baseline alone.
func fromBaselines(obs []Observation, o FitOptions) ([]Residual, error) {
	var out []Residual
	for _, study := range []string{"a100", "h100", "h200", "spark"} {
		var base, rest []Observation
		for _, b := range obs {
			switch {
			case b.Study != study:
			case baseline(b) && b.Apart == "":
				base = append(base, b)
			default:
				rest = append(rest, b)
			}
		}
		f, err := Fit(base, o)
		if err != nil {
			return nil, err
		}
		r, err := Score(rest, f.Constants, o.Seed)
		if err != nil {
			return nil, err
		}
		out = append(out, r...)
	}
	return out, nil
}

// predictRanges asks for each block what a user would have been told: constants
// of its fold, and errors of all folds but its own.
func (a *accuracy) predictRanges() error {
	for _, f := range a.folds {
		ids := map[string]bool{}
		for _, r := range f.Residuals {
			ids[r.ID] = true
		}
		others := slices.DeleteFunc(slices.Clone(a.held), func(r Residual) bool { return ids[r.ID] })
		cal := Calibration{Sets: f.Sets, Errors: Errors(a.obs, others), Seen: Envelopes(a.obs)}
		for id := range maps.Keys(ids) {
			b := a.find(id)
			p, err := cal.Predict(Question{Config: b.Config, Replicas: b.Replicas, Load: b.Load, Draws: 6})
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			for _, r := range f.Residuals {
				if r.ID == id {
					if x, ok := p.Figures[r.Metric]; ok {
						a.ranges = append(a.ranges, covered{r, x.Low, x.High})
					}
				}
			}
		}
	}
	return nil
}

func (a *accuracy) find(id string) *Observation {
	for i := range a.obs {
		if a.obs[i].ID == id {
			return &a.obs[i]
		}
	}
	return nil
}

// errors are the absolute relative errors of a metric, sorted, over the blocks
// that count.
func (a *accuracy) errors(rs []Residual, metric string, counts func(*Observation) bool) []float64 {
	var out []float64
	for _, r := range rs {
		if r.Metric == metric && counts(a.find(r.ID)) {
			out = append(out, math.Abs(r.Off()))
		}
	}
	slices.Sort(out)
	return out
}

// The groups that are summed up.
func burst(b *Observation) bool    { return b.Apart == "" && b.Load.Rate == 0 }
func openLoop(b *Observation) bool { return b.Apart == "" && b.Load.Rate > 0 }
func sglang(b *Observation) bool   { return b.Apart == "SGLang" }
func drafts(b *Observation) bool   { return b.Apart == "speculation" }

func at(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// pairs counts pairs of configurations of a study under one load whose measured
// figure differs by more than 5 %, and those predicted in that order. tops says
// where the best measured one of each load came among the predicted ones.
func (a *accuracy) pairs(rs []Residual) (right, all int, wrong []string, worstTop int) {
	type load struct{ study, workload, metric string }
	groups := map[load][]Residual{}
	for _, r := range rs {
		b := a.find(r.ID)
		metric := Throughput
		if b.Load.Rate > 0 {
			metric = MeanE2E
		}
		if r.Metric == metric && !b.Ambiguous() {
			groups[load{b.Study, b.Workload, metric}] = append(groups[load{b.Study, b.Workload, metric}], r)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(groups), func(a, b load) int {
		return cmp.Or(strings.Compare(a.study, b.study), strings.Compare(a.workload, b.workload))
	}) {
		g := groups[k]
		for i, x := range g {
			for _, y := range g[i+1:] {
				if math.Abs(math.Log(x.Measured/y.Measured)) <= math.Log(1.05) {
					continue
				}
				all++
				if (x.Measured > y.Measured) == (x.Value > y.Value) {
					right++
				} else {
					wrong = append(wrong, x.ID+" and "+y.ID)
				}
			}
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
		worstTop = max(worstTop, place)
	}
	return right, all, wrong, worstTop
}

// coverage is the share of printed values within their ranges.
func (a *accuracy) coverage(counts func(*Observation) bool) (in, all int) {
	for _, c := range a.ranges {
		if counts(a.find(c.ID)) {
			all++
			if c.in() {
				in++
			}
		}
	}
	return in, all
}
