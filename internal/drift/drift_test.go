package drift

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/stat"
)

// values are points of these values, a build each.
func values(x ...float64) []Point {
	points := make([]Point, len(x))
	for i, v := range x {
		points[i].Value = v
	}
	return points
}

// steady are n values around 100 that never leave 99 to 101.
func steady(n int) []float64 {
	x := make([]float64, n)
	r := stat.Stream(1, "drift test")
	for i := range x {
		x[i] = 99 + 2*r.Float64()
	}
	return x
}

func indices(f Found) []int {
	var all []int
	for _, c := range f.Changes {
		all = append(all, c.Index)
	}
	return all
}

func moved(x []float64, from, to int, by float64) []float64 {
	x = slices.Clone(x)
	for i := from; i < to; i++ {
		x[i] += by
	}
	return x
}

func TestFind(t *testing.T) {
	tests := []struct {
		name   string
		x      []float64
		o      Options
		want   []int
		status Status
		result Outcome
	}{
		{"nothing", nil, Options{}, nil, TooFew, ""},
		{"six points", []float64{1, 1, 1, 5, 5, 5}, Options{}, nil, TooFew, ""},
		{"no noise and no change", []float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, Options{}, nil, Steady, ""},
		{"steady", steady(40), Options{Better: Lower}, nil, Steady, ""},
		{"a step up of what should be low", moved(steady(40), 20, 40, 5), Options{Better: Lower}, []int{20}, Changed, Worsened},
		{"a step up of what should be high", moved(steady(40), 20, 40, 5), Options{Better: Higher}, []int{20}, Changed, Improved},
		{"of what has no direction", moved(steady(40), 20, 40, 5), Options{}, []int{20}, Changed, ""},
		{"two steps", moved(moved(steady(60), 20, 60, 5), 40, 60, 5), Options{}, []int{20, 40}, Changed, ""},
		{"up and back", moved(steady(60), 20, 40, 5), Options{Better: Higher}, []int{20, 40}, Changed, Worsened},
		{"a short stretch of a long series", moved(steady(300), 150, 158, 5), Options{}, []int{150, 158}, Changed, ""},
		{"an outlier", moved(steady(40), 20, 21, 50), Options{}, nil, Steady, ""},
		{"an outlier of a short series", moved(steady(11), 7, 8, 50), Options{}, nil, Steady, ""},
		{"two outliers of a long series", moved(moved(steady(60), 20, 21, 50), 40, 41, 50), Options{}, nil, Steady, ""},
		{"an outlier before the newest", moved(steady(40), 38, 39, 50), Options{}, nil, Steady, ""},
		{"the newest point", moved(steady(40), 39, 40, 50), Options{Better: Lower}, []int{39}, Changing, Worsened},
		{"the newest two", moved(steady(40), 38, 40, 50), Options{Better: Higher}, []int{38}, Changing, Improved},
		{"the newest three", moved(steady(40), 37, 40, 50), Options{}, []int{37}, Changed, ""},
		{"the newest three of ten", moved(steady(10), 7, 10, 50), Options{}, []int{7}, Changed, ""},
		{"the newest of seven", moved(steady(7), 6, 7, 50), Options{}, []int{6}, Changing, ""},
		{"no persistence asked for", moved(steady(40), 39, 40, 50), Options{Persist: 1}, []int{39}, Changed, ""},
		{"more persistence asked for", moved(steady(40), 36, 40, 50), Options{Persist: 5}, []int{36}, Changing, ""},
		{"smaller than the least", moved(steady(40), 20, 40, 5), Options{Least: 0.2}, nil, Steady, ""},
		{"a small one and a large one", moved(moved(steady(60), 20, 60, 3), 40, 60, 50), Options{Least: 0.1}, []int{40}, Changed, ""},
		{"from zero", append(make([]float64, 20), moved(make([]float64, 20), 0, 20, 3)...), Options{}, []int{20}, Changed, ""},
	}
	for _, tt := range tests {
		f := finds(t, values(tt.x...), tt.o)
		if d := cmp.Diff(tt.want, indices(f)); d != "" {
			t.Errorf("%s: changes %s", tt.name, d)
		}
		if want := (State{tt.status, tt.result}); f.State != want {
			t.Errorf("%s: state %+v, want %+v", tt.name, f.State, want)
		}
	}
}

// A change says between which points it happened, and how large it is.
func TestChange(t *testing.T) {
	points := values(moved(steady(40), 20, 40, 10)...)
	points[19].Void = true
	points[25].Value = math.NaN()
	f := finds(t, points, Options{Better: Lower})
	if len(f.Changes) != 1 {
		t.Fatalf("%d changes, want 1", len(f.Changes))
	}
	c := f.Changes[0]
	if c.Index != 20 || c.Previous != 18 || f.Points != 38 || f.Void != 2 || c.Builds != 19 {
		t.Errorf("between %d and %d, %d builds, of %d points and %d void", c.Previous, c.Index, c.Builds, f.Points, f.Void)
	}
	if c.Method != EDivisive || c.P == nil || *c.P > 0.01 || c.Standing != Confirmed || c.Gradual {
		t.Errorf("%+v", c)
	}
	if c.Relative == nil || c.Interval == nil || math.Abs(*c.Relative-0.1) > 0.01 || c.Interval.Low > *c.Relative || c.Interval.High < *c.Relative || c.Interval.High-c.Interval.Low > 0.02 {
		t.Errorf("relative %v, interval %v, want about 10 %%", c.Relative, c.Interval)
	}
	want := []Segment{{From: 0, To: 18, Points: 19, Builds: 19}, {From: 20, To: 39, Points: 19, Builds: 19}}
	for i, s := range f.Segments {
		if s.Band == nil || s.Band.Low >= s.Median || s.Band.High <= s.Median {
			t.Errorf("segment %d has median %v and band %v", i, s.Median, s.Band)
		}
		if i == 1 && s.Median != c.After || i == 0 && s.Median != c.Before {
			t.Errorf("segment %d has median %v, the change is from %v to %v", i, s.Median, c.Before, c.After)
		}
		s.Median, s.Band = 0, nil
		if s != want[i] {
			t.Errorf("segment %+v, want %+v", s, want[i])
		}
	}
}

// Points that scatter more from some place on, around the same middle, are unlike those before, and have
// mostly not moved: docs/history.md says in how many a change is seen all the same.
func TestSpreadAlone(t *testing.T) {
	spread := func(r *rand.Rand) []float64 {
		x := make([]float64, 80)
		for i := range x {
			x[i] = 100 + 2*normal(r)
			if i >= 40 {
				x[i] = 100 + 12*normal(r)
			}
		}
		return x
	}
	moved := share(100, func(_ int, r *rand.Rand) bool {
		return with(finds(t, values(spread(r)...), Options{}), Confirmed)
	})
	cut := share(100, func(_ int, r *rand.Rand) bool {
		return split(spread(r), 0, Options{Level: DefaultLevel}) != nil
	})
	t.Logf("cut: %.0f %%, changes: %.0f %%", cut, moved)
	if moved > 30 || moved > cut/2 {
		t.Errorf("%.0f %% of the histories have a change, and %.0f %% a cut by the energy statistic", moved, cut)
	}
}

// Several points of one build confirm nothing: the build may have had a bad machine.
func TestBuilds(t *testing.T) {
	points := values(moved(steady(40), 30, 40, 10)...)
	for i := 30; i < 40; i++ {
		points[i].Key = "b"
	}
	c := finds(t, points, Options{}).Changes
	if len(c) != 1 || c[0].Builds != 1 || c[0].Standing != Suspected {
		t.Errorf("%+v, want one suspected change of one build", c)
	}
	points = values(moved(steady(60), 30, 40, 10)...)
	for i := 30; i < 40; i++ {
		points[i].Key = "b"
	}
	c = finds(t, points, Options{}).Changes
	if len(c) != 2 || c[0].Standing != Brief || c[1].Standing != Confirmed {
		t.Errorf("%+v, want a brief change and the confirmed one back", c)
	}
}

// Of a few points that agree by chance, their own intervals tell the noise.
func TestOwnIntervals(t *testing.T) {
	points := values(100, 100, 100, 100, 100, 100, 103)
	if f := finds(t, points, Options{}); f.State.Status != Changing {
		t.Errorf("without intervals: %+v", f.State)
	}
	for i := range points {
		points[i].Interval = &Interval{points[i].Value - 4, points[i].Value + 4}
	}
	if f := finds(t, points, Options{}); f.State.Status != Steady {
		t.Errorf("with intervals wider than the change: %+v", f.State)
	}
}

func TestErrors(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		points []Point
		o      Options
		want   string
	}{
		{nil, Options{Least: -1}, "least change"},
		{nil, Options{Least: math.NaN()}, "least change"},
		{nil, Options{Level: 1}, "level"},
		{nil, Options{Level: 1e-9}, "level"},
		{nil, Options{Level: math.NaN()}, "level"},
		{nil, Options{Persist: -1}, "builds"},
		{[]Point{{Time: now}, {Time: now.Add(-1)}}, Options{}, "point 1 is older than point 0"},
	}
	for _, tt := range tests {
		if _, err := Find(tt.points, tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want one of %q", tt.o, err, tt.want)
		}
	}
}

// Scaling all values, or turning them round, moves no change; another seed moves no clear one.
func TestMetamorphic(t *testing.T) {
	for i := range 20 {
		r := stat.Stream(uint64(i), "drift test")
		shape := func(i int) float64 { return step(30, 2)(i) - step(55, 3)(i) }
		points := made(r, 80, heavy, 0, shape)
		f := finds(t, points, every)
		for _, factor := range []float64{2, 0.001, 1e6 / 3, -1} {
			scaled := slices.Clone(points)
			for j := range scaled {
				scaled[j].Value *= factor
			}
			if d := cmp.Diff(indices(f), indices(finds(t, scaled, every))); d != "" {
				t.Errorf("history %d times %v: %s", i, factor, d)
			}
		}
		if d := cmp.Diff(f, finds(t, points, every)); d != "" {
			t.Errorf("history %d again: %s", i, d)
		}
	}
	points := values(moved(steady(60), 30, 60, 5)...)
	for seed := range uint64(5) {
		if d := cmp.Diff([]int{30}, indices(finds(t, points, Options{Seed: seed}))); d != "" {
			t.Errorf("seed %d: %s", seed, d)
		}
	}
}

// What is before a change is judged alike, however much comes after it.
func TestGrowing(t *testing.T) {
	x := moved(steady(120), 30, 120, 5)
	for n := 40; n <= len(x); n += 10 {
		if d := cmp.Diff([]int{30}, indices(finds(t, values(x[:n]...), Options{}))); d != "" {
			t.Errorf("%d points: %s", n, d)
		}
	}
}

func TestAge(t *testing.T) {
	day := 24 * time.Hour
	start := time.Date(2026, 5, 4, 0, 0, 0, 0, time.UTC) // a Monday
	at := func(days ...float64) []Point {
		var p []Point
		for _, d := range days {
			p = append(p, Point{Value: 1, Time: start.Add(time.Duration(d * float64(day)))})
		}
		return p
	}
	workdays := at(0, 1, 2, 3, 4, 7, 8, 9, 10, 11)
	void := at(0, 1, 2, 3, 4, 5, 6)
	void[5].Void, void[6].Value = true, math.NaN()
	tests := []struct {
		name   string
		points []Point
		now    float64
		want   Staleness
	}{
		{"none", nil, 1, Staleness{}},
		{"too few to tell", at(0, 1, 2), 100, Staleness{Age: 98 * day}},
		{"fresh", at(0, 1, 2, 3), 4, Staleness{Age: day, Gap: day}},
		{"stale", at(0, 1, 2, 3), 7, Staleness{Age: 4 * day, Gap: day, Stale: true}},
		{"after a weekend", workdays, 15, Staleness{Age: 4 * day, Gap: day}},
		{"after a week", workdays, 18, Staleness{Age: 7 * day, Gap: day, Stale: true}},
		{"void since", void, 9, Staleness{Age: 5 * day, Gap: day, Stale: true, Voids: 2}},
		{"several at once", at(0, 0, 0, 1, 1, 2, 2, 3), 4, Staleness{Age: day, Gap: day}},
		{"a clock behind", at(0, 1, 2, 3), 2, Staleness{Gap: day}},
	}
	for _, tt := range tests {
		got := Age(tt.points, start.Add(time.Duration(tt.now*float64(day))))
		got.Newest = time.Time{}
		if got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// FuzzFind holds what is true of every answer.
func FuzzFind(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, uint8(3), uint64(1))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 200, 200, 200, 200, 200, 200, 200, 200}, uint8(0), uint64(2))
	f.Fuzz(func(t *testing.T, raw []byte, persist uint8, seed uint64) {
		var points []Point
		r := rand.New(rand.NewPCG(seed, 1))
		for _, b := range raw[:min(len(raw), 200)] {
			p := Point{Value: float64(int(b)-50) * math.Pow(10, float64(seed%5)), Void: b == 7, Key: []string{"", "a", "b"}[r.IntN(3)]}
			if b == 8 {
				p.Value = math.NaN()
			}
			points = append(points, p)
		}
		got, err := Find(points, Options{Persist: int(persist), Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(got); err != nil {
			t.Fatal(err)
		}
		n := 0
		for i, s := range got.Segments {
			n += s.Points
			if s.From > s.To || s.Builds > s.Points || i > 0 && s.From != got.Changes[i-1].Index || i > 0 && got.Segments[i-1].To != got.Changes[i-1].Previous {
				t.Fatalf("segment %d: %+v", i, s)
			}
		}
		if n != got.Points || got.Points+got.Void != len(points) || n > 0 && len(got.Changes) != len(got.Segments)-1 {
			t.Fatalf("%d points in segments: %+v", n, got)
		}
		for _, c := range got.Changes {
			if c.Relative != nil && math.Abs(*c.Relative) < DefaultLeast {
				t.Fatalf("a change smaller than the least: %+v", c)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	for _, bench := range []struct {
		name  string
		n     int
		shape func(int) float64
	}{
		{"100 points", 100, step(60, 3)},
		{"1000 points of noise", 1000, nil},
		{"1000 points with one step", 1000, step(500, 3)},
		{"1000 points with five steps", 1000, func(i int) float64 { return 3 * float64(i/170%2) }},
		{"1000 points, a rise", 1000, func(i int) float64 { return float64(i) / 100 }},
	} {
		points := made(stat.Stream(1, "drift test"), bench.n, normal, 0, bench.shape)
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Find(points, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
