package blame

import (
	"math"
	"testing"
)

// of are the suspects of a configuration of engine e with a layout and a limit.
func of(e, layout, limit string) []Suspect {
	return Suspects(e, e+layout+limit, []Setting{{"layout", layout}, {"limit", limit}})
}

// TestLearn: what ran with a value clears it, and what explains more refusals is the more to blame.
func TestLearn(t *testing.T) {
	none := Learn(nil)
	if x := none.Runs(of("a", "1", "")); x != 1 {
		t.Errorf("before any launch a chance of %v to run", x)
	}
	once := Learn([]Launch{{Of: of("a", "1", "")}})
	twice := Learn([]Launch{{Of: of("a", "1", "")}, {Of: of("a", "2", "")}})
	for _, c := range []struct {
		what       string
		least, top float64
		faults     Faults
		of         []Suspect
	}{
		{"the very configuration that was refused", 0, 0.5, once, of("a", "1", "")},
		{"another layout on its engine", 0.4, 0.8, once, of("a", "2", "64")},
		{"what has nothing in common with it", 1, 1, once, of("b", "2", "64")},
		{"another layout of an engine that two were refused of", 0, 0.3, twice, of("a", "4", "64")},
		{"another engine, of which a layout was refused elsewhere", 0.8, 1, twice, of("b", "1", "64")},
	} {
		if x := c.faults.Runs(c.of); x < c.least || x > c.top {
			t.Errorf("%s runs with a chance of %v, want %v to %v", c.what, x, c.least, c.top)
		}
	}
	cleared := Learn([]Launch{{Of: of("a", "1", "")}, {Of: of("a", "2", ""), Ran: true}})
	if x, y := cleared.Runs(of("a", "2", "")), cleared.Runs(of("a", "1", "")); x != 1 || y > 0.5 {
		t.Errorf("what ran runs with a chance of %v, and what was refused beside it with %v", x, y)
	}
}

// TestLost: a launch that was lost says less than one that was refused, and again and again more.
func TestLost(t *testing.T) {
	lost := Launch{Of: of("a", "1", ""), Lost: true}
	refused := lost
	refused.Lost = false
	next := of("a", "1", "64")
	one, many, sure := Learn([]Launch{lost}).Runs(next), Learn([]Launch{lost, lost, lost}).Runs(next), Learn([]Launch{refused}).Runs(next)
	if !(sure < one && many < one && one < 1) {
		t.Errorf("a chance of %v after one that was lost, %v after three, %v after a refusal", one, many, sure)
	}
}

// TestPair: two values that ran, each with another, can still not go together.
func TestPair(t *testing.T) {
	faults := Learn([]Launch{
		{Of: of("a", "1", "64")}, {Of: of("b", "1", "64")},
		{Of: of("a", "1", "128"), Ran: true}, {Of: of("b", "1", "128"), Ran: true},
		{Of: of("a", "2", "64"), Ran: true}, {Of: of("b", "2", "64"), Ran: true},
	})
	if x := faults.Runs(of("c", "1", "64")); x > 0.6 {
		t.Errorf("together they run with a chance of %v", x)
	}
	if x := faults.Runs(of("c", "2", "128")); math.Abs(x-1) > 1e-12 {
		t.Errorf("apart they run with a chance of %v", x)
	}
}
