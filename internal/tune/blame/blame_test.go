package blame

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"testing"
)

// parameters are a layout and a limit.
var parameters = []Parameter{
	{Name: "layout", Values: []string{"", "1", "2", "4"}},
	{Name: "limit", Values: []string{"", "64", "128", "256"}, Ordered: true},
}

// of is a configuration of engine e with a layout and a limit.
func of(e, layout, limit string) *Config {
	return Of(parameters, e, e+" "+layout+" "+limit, map[string]string{"layout": layout, "limit": limit})
}

func refused(all ...*Config) (out []Launch) {
	for _, c := range all {
		out = append(out, Launch{Of: c})
	}
	return out
}

func ran(all ...*Config) (out []Launch) {
	for _, c := range all {
		out = append(out, Launch{Of: c, Ran: true})
	}
	return out
}

// chance is that of a configuration after some launches.
func chance(c *Config, after ...[]Launch) float64 {
	return Learn(parameters, slices.Concat(after...)).Runs(c)
}

// TestLearn: what ran with a value clears it, and what explains more refusals is the more to blame.
func TestLearn(t *testing.T) {
	once, twice := refused(of("a", "1", "")), refused(of("a", "1", ""), of("a", "2", ""))
	// On an engine that refuses each limit above 64 with two layouts, and runs with 64.
	above := slices.Concat(refused(of("a", "1", ""), of("a", "2", ""), of("a", "1", "256"), of("a", "2", "128")), ran(of("a", "1", "64")))
	// An engine that refuses all of six, four of them with a layout that was tried on no other.
	dead := refused(of("a", "1", ""), of("a", "2", "64"), of("a", "4", ""), of("a", "4", "64"), of("a", "4", "128"), of("a", "4", "256"))
	for _, c := range []struct {
		what       string
		least, top float64
		after      []Launch
		of         *Config
	}{
		{"anything before any launch", 1, 1, nil, of("a", "1", "")},
		{"the very configuration that was refused", 0, 0.5, once, of("a", "1", "")},
		{"another layout on its engine, and another limit", 0.4, 0.8, once, of("a", "2", "64")},
		{"what has nothing in common with it", 1, 1, once, of("b", "2", "64")},
		{"another layout of an engine that two were refused of", 0, 0.3, twice, of("a", "4", "")},
		{"that with a limit, of which the engine may need one", 0.3, 0.7, twice, of("a", "4", "64")},
		{"another engine, of which a layout was refused elsewhere", 0.8, 1, twice, of("b", "1", "64")},
		{"a third layout with the limit that runs", 0.9, 1, above, of("a", "4", "64")},
		{"a third layout with a limit that is too large", 0, 0.1, above, of("a", "4", "128")},
		{"the layout of an engine that runs nothing, on another", 0.9, 1, dead, of("b", "4", "64")},
		{"what ran beside a refusal", 1, 1, slices.Concat(once, ran(of("a", "2", ""))), of("a", "2", "")},
		{"what was refused beside it", 0, 0.5, slices.Concat(once, ran(of("a", "2", ""))), of("a", "1", "")},
	} {
		if x := chance(c.of, c.after); x < c.least || x > c.top {
			t.Errorf("%s runs with a chance of %v, want %v to %v", c.what, x, c.least, c.top)
		}
	}
}

// TestNeeds: an engine that runs with one choice of a parameter alone is foretold to, with others than ran.
func TestNeeds(t *testing.T) {
	after := [][]Launch{refused(of("a", "1", "64"), of("a", "2", "128"), of("a", "", "")), ran(of("a", "4", "64"), of("b", "1", "64"), of("b", "2", "128"))}
	if x := chance(of("a", "4", "256"), after...); x < 0.8 {
		t.Errorf("with the layout that it needs it runs with a chance of %v", x)
	}
	if x := chance(of("a", "1", "256"), after...); x > 0.1 {
		t.Errorf("with another one it runs with a chance of %v", x)
	}
}

// TestDrawn: causes are drawn by their probability: of two that explain the same refusal, each as often as it is
// likely beside the other.
func TestDrawn(t *testing.T) {
	f := Learn(nil, refused(Of(nil, "a", "a", nil)))
	for _, k := range f {
		n := 0
		for _, sets := range k.sets {
			n += bits.OnesCount64(sets)
		}
		chance := ofEngine
		if k.key != "" {
			chance = ofWhole
		}
		// Both, either, or neither, which the refusal makes less likely.
		none := unexplained * (1 - ofEngine) * (1 - ofWhole)
		want := chance / (1 - (1-ofEngine)*(1-ofWhole) + none)
		if got := float64(n) / draws; math.Abs(got-want) > 4*math.Sqrt(want*(1-want)/draws) {
			t.Errorf("%+v is in %.3f of the sets, want %.3f", k.cause, got, want)
		}
	}
	if len(f) != 2 {
		t.Errorf("%d causes, want the engine and the whole", len(f))
	}
}

// TestLost: a launch that was lost says less than one that was refused, and again and again more.
func TestLost(t *testing.T) {
	next := of("a", "1", "64")
	lost := func(layouts ...string) (out []Launch) {
		for _, l := range layouts {
			out = append(out, Launch{Of: of("a", l, ""), Lost: true})
		}
		return out
	}
	one, sure := chance(next, lost("1")), chance(next, refused(of("a", "1", "")))
	for _, layouts := range [][]string{{"1", "1", "1"}, {"1", "2", "4"}} {
		if many := chance(next, lost(layouts...)); !(sure < one && many < one && one < 1) {
			t.Errorf("a chance of %v after one that was lost, %v after three of layouts %v, %v after a refusal", one, many, layouts, sure)
		}
	}
}

// TestPair: two values that ran, each with another, can still not go together.
func TestPair(t *testing.T) {
	after := [][]Launch{refused(of("a", "1", "64"), of("b", "1", "64")), ran(of("a", "1", "128"), of("b", "1", "128"), of("a", "2", "64"), of("b", "2", "64"))}
	if x := chance(of("c", "1", "64"), after...); x > 0.6 {
		t.Errorf("together they run with a chance of %v", x)
	}
	if x := chance(of("c", "2", "128"), after...); math.Abs(x-1) > 1e-12 {
		t.Errorf("apart they run with a chance of %v", x)
	}
}

func BenchmarkLearn(b *testing.B) {
	var many []Parameter
	for i := range 8 {
		many = append(many, Parameter{strconv.Itoa(i), parameters[1].Values, true})
	}
	var all []Launch
	for i := range 24 {
		with := map[string]string{}
		for _, p := range many {
			with[p.Name] = p.Values[i%4]
		}
		all = append(all, Launch{Of: Of(many, "a", strconv.Itoa(i), with), Ran: i%4 == 1})
	}
	for b.Loop() {
		Learn(many, all)
	}
}
