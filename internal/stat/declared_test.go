package stat

import (
	"fmt"
	"math"
	"testing"
)

// What is declared is what comes out, and questions that differ do so both ways.
func TestDeclared(t *testing.T) {
	const n = 20000
	base := Declared{Accuracy: 0.82}
	for _, d := range []Declared{
		base,
		{Accuracy: 0.76, Numerics: "a"},
		{Accuracy: 0.82, Flips: 0.02, Numerics: "a"},
		{Accuracy: 0.76, Flips: 0.05, Numerics: "b"},
		{Accuracy: 0.9, Flips: 0.02, Numerics: "b"},
		{Accuracy: 1, Flips: 0.5}, {Accuracy: 0, Flips: 0.5},
	} {
		var p Pairs
		for i := range n {
			q := fmt.Sprintf("question %d", i)
			switch a, b := base.Right(q), d.Right(q); {
			case a && b:
				p.Both++
			case a:
				p.Lost++
			case b:
				p.Won++
			default:
				p.Neither++
			}
		}
		if got := float64(p.Both+p.Won) / n; math.Abs(got-d.Accuracy) > 0.01 {
			t.Errorf("%+v: %v right", d, got)
		}
		change := d.Accuracy - base.Accuracy
		half := min(d.Flips/2, d.Accuracy, 1-d.Accuracy)
		if got, want := float64(p.Lost)/n, max(0, -change)+half; math.Abs(got-want) > 0.01 || d.Flips == 0 && min(p.Lost, p.Won) > 0 {
			t.Errorf("%+v: %v lost, want about %v; %d won", d, got, want, p.Won)
		}
	}
}

func TestDeclaredCommon(t *testing.T) {
	for _, d := range []Declared{{Agreement: 1, Numerics: "a"}, {Agreement: 0.9, Numerics: "a"}, {Agreement: 0.5, Numerics: "b"}, {Agreement: 0, Numerics: "b"}, {Agreement: 0.3}} {
		sum := 0
		for i := range 2000 {
			c := d.Common(fmt.Sprint(i), 64)
			if c < 0 || c > 64 {
				t.Fatalf("%+v: %d of 64", d, c)
			}
			sum += c
		}
		want := d.Agreement
		if d.Numerics == "" {
			want = 1
		}
		if got := float64(sum) / 2000 / 64; math.Abs(got-want) > 0.02 {
			t.Errorf("%+v: %v in common", d, got)
		}
	}
	if n := (Declared{Agreement: 0.5, Numerics: "b"}).Common("", 0); n != 0 {
		t.Errorf("%d of no tokens", n)
	}
}
