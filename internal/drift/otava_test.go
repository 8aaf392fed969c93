package drift

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOtava holds the strongest cut of the whole against that of Apache Otava 0.8.0
// (PairDistanceCalculator, with both sides of three points at least and the end of the series
// as the end of the second).
func TestOtava(t *testing.T) {
	text, err := os.ReadFile("testdata/otava.json")
	if err != nil {
		t.Fatal(err)
	}
	var series []struct {
		X  []float64 `json:"x"`
		At int       `json:"at"`
		Q  float64   `json:"q"`
	}
	if err := json.Unmarshal(text, &series); err != nil || len(series) < 3 {
		t.Fatalf("%d series: %v", len(series), err)
	}
	for _, s := range series {
		e := newEnergy(s.X)
		if q, at := e.whole(e.rank); at != s.At || math.Abs(q-s.Q) > 1e-9*s.Q {
			t.Errorf("%d points: %v at %d, want %v at %d", len(s.X), q, at, s.Q, s.At)
		}
	}
}

// tigerBeetle is the series of tests/tigerbeetle_test.py of Apache Otava (Apache-2.0): performance
// figures of TigerBeetle, a database.
func tigerBeetle(t *testing.T) []float64 {
	text, err := os.ReadFile("testdata/tigerbeetle.txt")
	if err != nil {
		t.Fatal(err)
	}
	var x []float64
	for f := range strings.FieldsSeq(string(text)) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			t.Fatal(err)
		}
		x = append(x, v)
	}
	return x
}

// TestRealSeries holds what is found in a real series against what Otava's tests say that it
// finds: with a least change of 5 % at a p of 0.01, and with none at 0.001, where Otava has 260
// besides.
func TestRealSeries(t *testing.T) {
	points := values(tigerBeetle(t)...)
	for _, tt := range []struct {
		least float64
		want  []int
	}{
		{0.05, []int{15, 71}},
		{1e-9, []int{15, 61, 71, 95, 117, 131, 142, 148, 192, 212}},
	} {
		if d := cmp.Diff(tt.want, indices(finds(t, points, Options{Least: tt.least}))); d != "" {
			t.Errorf("least change %v: %s", tt.least, d)
		}
	}
}

// As the real series grows, its clear changes are confirmed with the third point after them,
// and stay. An outlier at its end is a suspicion for as long as it is the newest point.
func TestRealSeriesGrows(t *testing.T) {
	x := tigerBeetle(t)
	sure := []int{15, 71, 95}
	for _, n := range []int{18, 19, 20, 25, 30, 50, 74, 75, 80, 98, 99, 100, 120, 150, 200, 250, 300, 365} {
		f := finds(t, values(x[:n]...), Options{})
		for _, at := range sure {
			if n >= at+3 && !confirmed(f, at) {
				t.Errorf("%d points: no confirmed change at %d: %v", n, at, indices(f))
			}
		}
	}
	if f := finds(t, values(x[:11]...), Options{Better: Higher}); f.State != (State{Changing, Worsened}) {
		t.Errorf("with the outlier as the newest point: %+v", f.State)
	}
	if f := finds(t, values(x[:12]...), Options{}); f.State.Status != Steady {
		t.Errorf("a point later: %+v", f.State)
	}
}

func confirmed(f Found, at int) bool {
	for _, c := range f.Changes {
		if c.Index == at && c.Standing == Confirmed {
			return true
		}
	}
	return false
}
