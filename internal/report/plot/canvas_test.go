package plot

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		want   []float64
	}{
		{0, 100, 5, []float64{0, 20, 40, 60, 80, 100}},
		{0, 7193, 5, []float64{0, 2000, 4000, 6000, 8000}},
		{0, 0, 2, []float64{0, 0.5, 1}},
		{0, math.Inf(1), 2, []float64{0, 0.5, 1}},
		{0, math.NaN(), 2, []float64{0, 0.5, 1}},
		{0, math.SmallestNonzeroFloat64, 2, []float64{0, 0.5, 1}},
	} {
		if d := cmp.Diff(c.want, Ticks(c.lo, c.hi, c.n)); d != "" {
			t.Errorf("ticks %v..%v (-want +got):\n%s", c.lo, c.hi, d)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		in   string
		n    int
		want []string
	}{
		{"", 5, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"  one   two  ", 40, []string{"one two"}},
		{"extraordinary words", 6, []string{"extra…", "words"}},
		{"äöü äöü", 7, []string{"äöü äöü"}},
	} {
		if d := cmp.Diff(c.want, wrapped(c.in, c.n)); d != "" {
			t.Errorf("%q in lines of %d (-want +got):\n%s", c.in, c.n, d)
		}
	}
}

// A plot for a phone says all that the wide one says above it, and grows by it.
func TestSized(t *testing.T) {
	title := "A title that is so long that it takes two lines on a phone at least"
	p := Sized("name", title, true, func(c *Canvas) { c.H = 100; c.Under(10, 90, title) })
	for svg, want := range map[string][]string{
		p.SVG:   {`viewBox="0 0 880 100"`, ">SIMULATED<", ">" + title + "<"},
		p.Phone: {`viewBox="0 0 350 151"`, ">SIMULATED<", ">A title that is so long that it takes<", `<g transform="translate(0 36)">`},
	} {
		for _, w := range want {
			if !strings.Contains(svg, w) {
				t.Errorf("%s lacks %s", svg, w)
			}
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 processes", 1: "1 process", 3: "3 processes"} {
		if got := Count(n, "process"); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := Count(2, "replica"); got != "2 replicas" {
		t.Error(got)
	}
}

// TestSteps: from the left edge to a mark its value holds, back to the mark before; a hollow one is off the line.
func TestSteps(t *testing.T) {
	f := (&Canvas{}).Field(0, 0, 100, 100, Linear(10, 5), Linear(10, 5), "", "")
	CurveLine{Steps: true, Marks: []Mark{{Point: Point{X: 4, Y: 8}}, {Point: Point{X: 5, Y: 1}, Hollow: true}, {Point: Point{X: 8, Y: 2}}}}.draw(f)
	if got, want := f.Canvas.Plot("").SVG, `d="M0 20L40 20L40 80L80 80"`; !strings.Contains(got, want) {
		t.Errorf("%s has no %s", got, want)
	}
}
