package surrogate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// at is a configuration of an engine, a layout and a limit.
func at(engine, layout string, limit, predicted float64) Point {
	return Point{Engine: engine, X: predicted, Known: true, At: []Coordinate{
		{Value: engine}, {Value: layout}, {Value: fmt.Sprint(limit), Ordered: true, Log: math.Log2(limit)},
	}}
}

var everything = []int{0, 1, 2}

// TestBelievesThePredictorAtFirst checks that without launches the prediction is the mean.
func TestBelievesThePredictorAtFirst(t *testing.T) {
	mean, sd := New(nil, everything).At(at("a", "1", 64, 0.5))
	if math.Abs(mean-0.5) > 1e-9 || sd < 0.05 {
		t.Errorf("mean %v, sd %v", mean, sd)
	}
}

// TestMeetsWhatWasMeasured checks that a launched configuration is thought to be about
// what was measured, and the less sure the farther another is from it.
func TestMeetsWhatWasMeasured(t *testing.T) {
	base, one := at("a", "1", 64, 0), at("a", "2", 64, 0.3)
	base.Y, one.Y = 0, 0.5
	m := New([]Point{base, one}, everything)
	mean, near := m.At(one)
	if math.Abs(mean-0.5) > 0.03 {
		t.Errorf("mean %v where 0.5 was measured", mean)
	}
	_, step := m.At(at("a", "2", 128, 0.3))
	_, other := m.At(at("b", "4", 512, 0.3))
	if !(near < step && step < other) {
		t.Errorf("standard deviations %v, a step away %v, elsewhere %v", near, step, other)
	}
}

// TestUnlearnsAnEngine checks that a predictor that is wrong about an engine by a factor
// of three is corrected for all of it by two launches.
func TestUnlearnsAnEngine(t *testing.T) {
	wrong := -math.Log(3)
	var points []Point
	for _, p := range []Point{at("a", "1", 64, 0), at("a", "2", 64, 0.2), at("b", "1", 64, wrong), at("b", "2", 128, wrong+0.3)} {
		p.Y = p.X
		if p.Engine == "b" {
			p.Y -= wrong
		}
		points = append(points, p)
	}
	mean, sd := New(points, everything).At(at("b", "1", 256, wrong+0.2))
	if math.Abs(mean-0.2) > 0.1 || sd > 0.3 {
		t.Errorf("mean %v, sd %v where 0.2 is true and %v was predicted", mean, sd, wrong+0.2)
	}
}

// TestUnlearnsALayout checks the same of a layout in whatever engine, and that others keep
// what was predicted of them.
func TestUnlearnsALayout(t *testing.T) {
	var points []Point
	for i, engine := range []string{"a", "b", "a", "b"} {
		for j, layout := range []string{"1", "2", "4"} {
			if i > 1 && j > 1 {
				continue
			}
			p := at(engine, layout, 64*float64(i/2+1), 0.1*float64(i))
			p.Y = p.X
			if layout == "2" {
				p.Y++
			}
			points = append(points, p)
		}
	}
	m := New(points, everything)
	if mean, _ := m.At(at("a", "2", 512, 0.2)); math.Abs(mean-1.2) > 0.2 {
		t.Errorf("mean %v of the layout that is 1 better than predicted 0.2", mean)
	}
	if mean, _ := m.At(at("a", "4", 512, 0.2)); math.Abs(mean-0.2) > 0.2 {
		t.Errorf("mean %v of a layout that is as predicted, 0.2", mean)
	}
}

// TestCoversTheTruth checks the beliefs of a predictor that errs as it may: the truth lies
// within 1.645 standard deviations of the mean nine times in ten.
func TestCoversTheTruth(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inside, n := 0, 0
	for range 60 {
		engine := map[string]float64{"a": 0.15 * r.NormFloat64(), "b": 0.15 * r.NormFloat64(), "c": 0.15 * r.NormFloat64()}
		layout := map[string]float64{"1": 0.08 * r.NormFloat64(), "2": 0.08 * r.NormFloat64(), "4": 0.08 * r.NormFloat64()}
		draw := func() Point {
			p := at([]string{"a", "b", "c"}[r.IntN(3)], []string{"1", "2", "4"}[r.IntN(3)], math.Exp2(float64(5+r.IntN(5))), 0.3*r.NormFloat64())
			p.Y = p.X + engine[p.Engine] + layout[p.At[1].Value] + 0.04*r.NormFloat64()
			return p
		}
		var points []Point
		for range 10 {
			points = append(points, draw())
		}
		m := New(points, everything)
		for range 20 {
			p := draw()
			if mean, sd := m.At(p); math.Abs(mean-p.Y) < 1.645*sd {
				inside++
			}
			n++
		}
	}
	if share := float64(inside) / float64(n); share < 0.82 || share > 0.98 {
		t.Errorf("%.3f of the truth within the 90 %% interval", share)
	}
}

// TestAnotherStudy checks that the figures of an earlier study shift nothing, and teach
// what is better than what.
func TestAnotherStudy(t *testing.T) {
	base := at("a", "1", 64, 0)
	points := []Point{base}
	for _, p := range []Point{at("a", "1", 64, 0), at("a", "2", 64, 0), at("b", "1", 64, 0), at("b", "2", 64, 0)} {
		p.Study, p.Unlike, p.Y = 1, 0.1, 5
		if p.At[1].Value == "2" {
			p.Y += 0.8
		}
		points = append(points, p)
	}
	m := New(points, everything)
	if mean, _ := m.At(base); math.Abs(mean) > 0.05 {
		t.Errorf("mean %v of the baseline that was measured at 0", mean)
	}
	if mean, _ := m.At(at("a", "2", 64, 0)); mean < 0.4 {
		t.Errorf("mean %v of what was 0.8 better elsewhere", mean)
	}
}

func BenchmarkNew(b *testing.B) {
	var points []Point
	for i := range 20 {
		p := at([]string{"a", "b", "c"}[i%3], []string{"1", "2", "4"}[i/3%3], math.Exp2(float64(5+i%5)), 0.1*float64(i))
		p.Y = p.X + 0.1*float64(i%4)
		points = append(points, p)
	}
	for b.Loop() {
		New(points, everything)
	}
}

func BenchmarkAt(b *testing.B) {
	var points []Point
	for i := range 20 {
		p := at([]string{"a", "b", "c"}[i%3], []string{"1", "2", "4"}[i/3%3], math.Exp2(float64(5+i%5)), 0.1*float64(i))
		p.Y = p.X + 0.1*float64(i%4)
		points = append(points, p)
	}
	m := New(points, everything)
	for b.Loop() {
		m.At(points[3])
	}
}

// TestIsACovariance checks that no view has a negative variance anywhere: of points of all
// kinds, predicted and not, whose numbers bind or do not.
func TestIsACovariance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 40 {
		var points []Point
		for range 40 {
			p := at([]string{"a", "b", "c"}[r.IntN(3)], []string{"1", "2", "4"}[r.IntN(3)], math.Exp2(float64(5+r.IntN(5))), 0.3*float64(r.IntN(3)))
			if r.IntN(4) == 0 {
				p.X, p.Known = 0, false
			}
			if r.IntN(3) == 0 {
				p.At[2] = Coordinate{Ordered: true, Log: math.NaN()}
			}
			if p.Study = r.IntN(3); p.Study > 0 {
				p.Unlike = 0.3 * float64(p.Study)
			}
			p.Y = r.NormFloat64()
			points = append(points, p)
		}
		m := New(points, everything)
		for _, v := range m.views {
			for i, row := range v.chol {
				if !(row[i] > 0.9*v.launch) {
					t.Fatalf("view %+v: pivot %d is %v", v.spreads, i, row[i])
				}
			}
		}
	}
}

// TestAhead checks that the chance to be better is of the difference: of two that hardly differ
// little is left to be better by, however little is known of both.
func TestAhead(t *testing.T) {
	base, one, alike, other := at("a", "1", 64, 0), at("b", "4", 512, 0.3), at("b", "4", 480, 0.3), at("a", "4", 512, 0.3)
	one.Y, alike.Y = 0.3, 0.3
	m := New([]Point{base, one, alike}, everything)
	lead := m.Against(one)
	if x := lead.Ahead(alike, 0.02); !(x < 0.1) {
		t.Errorf("what is alike is better by 2 %% with a chance of %v", x)
	}
	if x := lead.Ahead(other, 0.02); !(x > 0.2 && x < 0.5) {
		t.Errorf("on another engine it is with a chance of %v", x)
	}
	for _, by := range []float64{-0.01, 0, 0.01} {
		want := 0.0
		if by < 0 {
			want = 1
		}
		if x := lead.Ahead(one, by); math.Abs(x-want) > 1e-6 {
			t.Errorf("it is ahead of itself by %v with a chance of %v", by, x)
		}
	}
}
