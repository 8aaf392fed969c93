package surrogate

import "testing"

// TestCoverage: what has run by itself and what together, and what that counts.
func TestCoverage(t *testing.T) {
	point := func(engine, model, seqs string) Point {
		return Point{At: []Coordinate{{Value: engine}, {Value: model}, {Value: seqs, Ordered: true}}}
	}
	for _, c := range []struct {
		name  string
		alone bool
		of    Point
		fresh float64
		first bool
	}{
		{"ran", false, point("a", "x", "1"), 0, false},
		{"a choice that ran with others", false, point("a", "y", "1"), 1.5, false},
		{"the two choices alone did not run together", false, point("a", "y", "2"), 1, false},
		{"another number", false, point("a", "x", "4"), 0.5 + 0.5, false},
		{"another choice", false, point("c", "x", "1"), 1 + 0.5, true},
		{"alone: each ran", true, point("a", "y", "2"), 0, false},
		{"alone: another number and choice", true, point("c", "x", "4"), 1.5, true},
	} {
		k := Coverage{Alone: c.alone}
		k.Add(point("a", "x", "1"))
		k.Add(point("b", "y", "2"))
		k.Add(point("a", "z", "2"))
		if got := k.Fresh(c.of); got != c.fresh || k.First(c.of) != c.first {
			t.Errorf("%s: %v, first %v, want %v and %v", c.name, got, k.First(c.of), c.fresh, c.first)
		}
	}
}

// TestClosed: a choice is closed while all with it was refused, and what is in none of that is unlike it.
func TestClosed(t *testing.T) {
	point := func(engine, model, seqs string) Point {
		return Point{At: []Coordinate{{Value: engine}, {Value: model}, {Value: seqs, Ordered: true}}}
	}
	var k Coverage
	k.Add(point("a", "x", "1"))
	k.Refuse(point("a", "y", "2"))
	k.Refuse(point("b", "y", "1"))
	k.Refuse(point("b", "y", "4"))
	for _, c := range []struct {
		name   string
		of     Point
		place  int
		closed bool
		unlike int
	}{
		{"what ran", point("a", "x", "1"), 0, false, 0},
		{"a number that was refused closes nothing", point("a", "x", "4"), 0, false, 0},
		{"an engine with another model and number", point("b", "x", "2"), 0, true, 2},
		{"a model that was refused three times", point("a", "y", "8"), 0, false, 0},
		{"an engine that is, with such a model", point("b", "y", "8"), 0, false, 0},
		{"nothing is known of an engine", point("c", "x", "1"), 0, false, 0},
	} {
		place, closed := k.Closed(c.of, 3)
		if place != c.place || closed != c.closed || closed && k.Unlike(c.of, place) != c.unlike {
			t.Errorf("%s: closed at %d %v, %d unlike, want %d %v, %d", c.name, place, closed, k.Unlike(c.of, place), c.place, c.closed, c.unlike)
		}
	}
}

// TestShut: a choice with which nothing ran is shut once it was refused or lost often enough.
func TestShut(t *testing.T) {
	k := &Coverage{}
	k.Add(at("a", "1", 64, 0))
	of := at("b", "1", 64, 0)
	for n, note := range []func(Point){k.Refuse, k.Lose, k.Refuse} {
		if k.Shut(of, 3) {
			t.Errorf("shut after %d launches", n)
		}
		note(at("b", "2", 64, 0))
	}
	if _, closed := k.Closed(of, 3); closed || !k.Shut(of, 3) || k.Shut(at("a", "1", 128, 0), 1) {
		t.Error("what never ran in three launches is open, or what ran is shut")
	}
	if k.Add(at("b", "4", 64, 0)); k.Shut(of, 3) {
		t.Error("what ran is shut")
	}
}

// TestShutByAnother: refusals that an engine explains do not shut a layout that was tried on it alone.
func TestShutByAnother(t *testing.T) {
	k := &Coverage{}
	k.Add(at("a", "1", 64, 0))
	for range 3 {
		k.Refuse(at("b", "8", 64, 0))
	}
	if of := at("a", "8", 64, 0); !k.Shut(of, 3) {
		t.Error("either may be why, and one is open")
	}
	k.Refuse(at("b", "1", 64, 0))
	if k.Shut(at("a", "8", 64, 0), 3) || !k.Shut(at("b", "1", 128, 0), 3) {
		t.Error("the layout is shut, or the engine that was refused with another too is not")
	}
}
