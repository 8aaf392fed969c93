package clock

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"perflab/internal/stat"
)

const (
	us   = time.Microsecond
	msec = time.Millisecond
)

// TestExchange: one exchange by hand.
func TestExchange(t *testing.T) {
	for _, c := range []struct {
		e                   Exchange
		offset, trip, bound time.Duration
	}{
		{Exchange{0, 5 * msec, 5 * msec, 10 * msec}, 0, 10 * msec, 5 * msec},
		{Exchange{0, 105 * msec, 106 * msec, 11 * msec}, 100 * msec, 10 * msec, 5 * msec},
		{Exchange{1000, 5, 7, 1005}, -996, 3, 2}, // -996.5, to within 1.5
		{Exchange{-10, -10, -10, -10}, 0, 0, 0},
	} {
		if c.e.Offset() != c.offset || c.e.RoundTrip() != c.trip || c.e.Bound() != c.bound {
			t.Errorf("%+v: offset %v, round trip %v, bound %v", c.e, c.e.Offset(), c.e.RoundTrip(), c.e.Bound())
		}
		var track Track
		track.Add(c.e)
		offset, bound, ok := track.At(c.e.middle())
		// An instant away from both ends of the exchange the clocks may have drifted.
		if slack := 2 * drift(c.e.T4-c.e.T1); !ok || (offset-c.offset).Abs() > 1 || bound > c.bound+slack+1 {
			t.Errorf("%+v: at its middle %v ± %v, %v", c.e, offset, bound, ok)
		}
	}
}

// TestDriftBetween: away from the exchanges the bound grows by the drift, on both sides.
func TestDriftBetween(t *testing.T) {
	var track Track
	track.Add(Exchange{10 * time.Second, 15 * time.Second, 15 * time.Second, 10 * time.Second})
	for _, c := range []struct{ at, bound time.Duration }{
		{10 * time.Second, 0}, {11 * time.Second, MaxDrift * us}, {9 * time.Second, MaxDrift * us}, {110 * time.Second, 100 * MaxDrift * us},
	} {
		offset, bound, ok := track.At(c.at)
		if !ok || offset != 5*time.Second || bound != c.bound {
			t.Errorf("at %v: %v ± %v, %v; want 5 s ± %v", c.at, offset, bound, ok, c.bound)
		}
	}
}

// TestSlowWays: an exchange whose way there was slow and one whose way back was bound the
// offset together better than each.
func TestSlowWays(t *testing.T) {
	var track Track
	track.Add(Exchange{0, 9 * msec, 9 * msec, 10 * msec})           // 9 there, 1 back: between -1 and 9
	track.Add(Exchange{10 * msec, 11 * msec, 11 * msec, 20 * msec}) // 1 there, 9 back: between -9 and 1
	offset, bound, ok := track.At(10 * msec)
	if !ok || offset.Abs() > 4*us || bound > msec+8*us {
		t.Errorf("%v ± %v, %v; want 0 ± 1 ms and the drift of 10 ms", offset, bound, ok)
	}
}

// TestNone: without an exchange nothing is known.
func TestNone(t *testing.T) {
	var track Track
	if _, _, ok := track.At(0); ok || track.Fit() != (Fit{}) {
		t.Errorf("without an exchange: %v, %+v", ok, track.Fit())
	}
}

// TestNonsense: readings that no clock gives leave no estimate.
func TestNonsense(t *testing.T) {
	for name, e := range map[string]Exchange{
		"back in time":                     {5, 0, 0, 4},
		"agent back in time":               {0, 5, 4, 10},
		"too far":                          {0, math.MaxInt64, math.MaxInt64, 10},
		"too far back":                     {0, math.MinInt64, math.MinInt64, 10},
		"answered for longer than it took": {0, 0, time.Second, msec},
	} {
		var track Track
		track.Add(Exchange{0, 0, 0, msec})
		track.Add(e)
		if _, _, ok := track.At(0); ok || !track.Fit().Stepped {
			t.Errorf("%s: %v, %+v", name, ok, track.Fit())
		}
	}
	var track Track
	track.Add(Exchange{0, 0, 0, msec})
	if _, _, ok := track.At(math.MaxInt64); ok {
		t.Error("an offset in a future without end")
	}
}

// network is how long messages take, in a simulated network.
type network struct {
	name        string
	there, back time.Duration // the least
	queue       time.Duration // mean of an exponential one on top
	burst       float64       // share of messages that wait 100 times as long
}

var networks = []network{
	{"one machine", 15 * us, 15 * us, 5 * us, 0.01},
	{"one rack", 50 * us, 50 * us, 20 * us, 0.02},
	{"one rack, uneven", 30 * us, 130 * us, 20 * us, 0.02},
	{"one site, busy", 200 * us, 200 * us, 500 * us, 0.05},
	{"far", 20 * msec, 20 * msec, 300 * us, 0.02},
	{"far, uneven", 10 * msec, 45 * msec, 2 * msec, 0.02},
}

func (n network) takes(r *rand.Rand, least time.Duration) time.Duration {
	q := r.ExpFloat64() * float64(n.queue)
	if r.Float64() < n.burst {
		q *= 100
	}
	return least + time.Duration(q)
}

// agent is a clock that drifts, the drift itself wandering within ±most.
type agent struct {
	offset, rate []float64 // of second i: at its begin, and during it
}

func newAgent(r *rand.Rand, most float64, seconds int) *agent {
	a := &agent{}
	at, rate := (r.Float64()-0.5)*1e15, (2*r.Float64()-1)*most
	for range seconds {
		a.offset, a.rate = append(a.offset, at), append(a.rate, rate)
		at += rate * 1e9
		rate = min(max(rate+r.NormFloat64()*most/100, -most), most)
	}
	return a
}

// ahead is the true offset.
func (a *agent) ahead(t time.Duration) time.Duration {
	i := int(t / time.Second)
	return time.Duration(math.Round(a.offset[i] + a.rate[i]*float64(t%time.Second)))
}

// exchange is one that begins at an instant.
func (n network) exchange(r *rand.Rand, a *agent, t1 time.Duration) Exchange {
	arrives := t1 + n.takes(r, n.there)
	answers := arrives + time.Duration(r.ExpFloat64()*float64(20*us))
	back := answers + n.takes(r, n.back)
	return Exchange{T1: t1, T2: arrives + a.ahead(arrives), T3: answers + a.ahead(answers), T4: back}
}

// watch is a run of so many seconds: a dozen exchanges before it, one a second, a dozen
// after.
func (n network) watch(r *rand.Rand, a *agent, from time.Duration, seconds int, t *Track) {
	at := from
	for range 12 {
		t.Add(n.exchange(r, a, at))
		at += 50 * msec
	}
	for range seconds {
		t.Add(n.exchange(r, a, at))
		at += time.Second
	}
	for range 12 {
		t.Add(n.exchange(r, a, at))
		at += 50 * msec
	}
}

// TestBound: whatever the network and the clock, the truth lies within the bound, at any
// instant of a run and around it; and the bound is of use. With -v it says how small it is.
func TestBound(t *testing.T) {
	const clocks, seconds, from = 40, 60, 10
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			r := stat.Stream(1, n.name)
			var bounds, errs, starts []float64
			for range clocks {
				a := newAgent(r, 100e-6, from+seconds+30)
				var track Track
				n.watch(r, a, from*time.Second, seconds, &track)
				if track.Fit().Stepped {
					t.Fatal("a clock that drifts is called one that stepped")
				}
				for range 200 {
					at := time.Duration(r.Float64() * float64((from+seconds+20)*time.Second))
					offset, bound, ok := track.At(at)
					off := (offset - a.ahead(at)).Abs()
					if !ok || off > bound+1 { // the truth is rounded too
						t.Fatalf("at %v: %v ± %v, %v, the truth is %v", at, offset, bound, ok, a.ahead(at))
					}
					if at > from*time.Second && at < (from+seconds)*time.Second {
						bounds, errs = append(bounds, float64(bound)/1e3), append(errs, float64(off)/1e3)
					}
				}
				start := (from + 1) * time.Second
				offset, bound, _ := track.At(start)
				starts = append(starts, float64(bound)/1e3)
				if (offset - a.ahead(start)).Abs() > bound+1 {
					t.Errorf("the start: %v ± %v, the truth is %v", offset, bound, a.ahead(start))
				}
				least := float64(track.Fit().Least) / 2e3
				if most := least + 0.6*MaxDrift + 4*float64(n.queue)/1e3; bounds[len(bounds)-1] > 2*most {
					t.Errorf("a bound of %.0f us, where half of the least round trip is %.0f us", bounds[len(bounds)-1], least)
				}
			}
			slices.Sort(bounds)
			slices.Sort(errs)
			slices.Sort(starts)
			t.Logf("bound during the run: median %.0f us, worst %.0f us; at the start: median %.0f us; off the truth: median %.1f us, p99 %.0f us",
				bounds[len(bounds)/2], bounds[len(bounds)-1], starts[len(starts)/2], errs[len(errs)/2], errs[len(errs)*99/100])
		})
	}
}

// TestDriftFound: of a clock whose drift does not wander the drift is found, the closer
// the better the network.
func TestDriftFound(t *testing.T) {
	for _, c := range []struct {
		network int
		within  float64
	}{{0, 1}, {1, 2}, {3, 10}, {4, 10}} {
		n := networks[c.network]
		r := stat.Stream(2, n.name)
		for _, ppm := range []float64{-100, -37, 0, 3, 100} {
			a := &agent{}
			for i := range 100 {
				a.offset, a.rate = append(a.offset, 1e12+ppm*1e3*float64(i)), append(a.rate, ppm*1e-6)
			}
			var track Track
			n.watch(r, a, 0, 60, &track)
			if f := track.Fit(); math.Abs(f.DriftPPM-ppm) > c.within {
				t.Errorf("%s: %.2f ppm, want %g ± %g", n.name, f.DriftPPM, ppm, c.within)
			}
		}
	}
}

// TestShort: exchanges of half a second say next to nothing of the drift, and the slope
// stays near none.
func TestShort(t *testing.T) {
	n, r := networks[3], stat.Stream(3, "short")
	for range 50 {
		a := newAgent(r, 10e-6, 30)
		var track Track
		n.watch(r, a, time.Second, 0, &track)
		if f := track.Fit(); math.Abs(f.DriftPPM) > 30 {
			t.Errorf("%.1f ppm by exchanges of a second, %v each", f.DriftPPM, f.Least)
		}
	}
}

// TestStep: a step is found when it is larger than what the exchanges around it leave
// open, wherever it is and in either direction, and then there is no estimate.
func TestStep(t *testing.T) {
	for _, n := range networks {
		r := stat.Stream(4, n.name)
		for i := range 40 {
			a := newAgent(r, 100e-6, 100)
			at := 5 + r.IntN(50)
			var before, after, both Track
			n.watch(r, a, time.Second, at, &before)
			both.all = slices.Clone(before.all)
			end := both.all[len(both.all)-1].T4
			// More than all that is open at the end of the one and the beginning of the other.
			_, open, _ := before.At(end)
			step := 2*open + 4*n.there + 4*n.back + 400*n.queue + 4*MaxDrift*us
			if i%2 == 0 {
				step = -step
			}
			for k := range a.offset {
				a.offset[k] += float64(step)
			}
			n.watch(r, a, end, 10, &after)
			for _, e := range after.all {
				both.Add(e)
			}
			if f := both.Fit(); !f.Stepped || before.Fit().Stepped || after.Fit().Stepped {
				t.Errorf("%s: a step of %v after %d s is not found: %+v", n.name, step, at, f)
			}
			if _, _, ok := both.At(end); ok {
				t.Errorf("%s: an estimate over a step", n.name)
			}
		}
	}
}

// TestOrder: exchanges that come in another order say the same.
func TestOrder(t *testing.T) {
	r := stat.Stream(5, "order")
	a := newAgent(r, 100e-6, 100)
	var one, other Track
	networks[3].watch(r, a, time.Second, 30, &one)
	for _, e := range slices.Backward(one.all) {
		other.Add(e)
		other.At(0) // what was fitted is fitted anew
	}
	for at := range 40 {
		o1, b1, _ := one.At(time.Duration(at) * time.Second)
		o2, b2, _ := other.At(time.Duration(at) * time.Second)
		if (o1-o2).Abs() > 1 || (b1-b2).Abs() > 1 {
			t.Errorf("at %d s: %v ± %v, in the other order %v ± %v", at, o1, b1, o2, b2)
		}
	}
}

// TestFitJSON: keys have units, what is not known is not there, and all is read again.
func TestFitJSON(t *testing.T) {
	for _, c := range []struct {
		fit  Fit
		want string
	}{
		{Fit{At: 1500 * msec, Offset: -250 * us, Bound: 40 * us, DriftPPM: 12.5, Exchanges: 84, Least: 80 * us},
			`{"at_s":1.5,"offset_ms":-0.25,"bound_ms":0.04,"drift_ppm":12.5,"exchanges":84,"least_round_trip_ms":0.08}`},
		{Fit{Exchanges: 1}, `{"at_s":0,"offset_ms":0,"bound_ms":0,"exchanges":1,"least_round_trip_ms":0}`},
		{Fit{Exchanges: 9, Stepped: true}, `{"exchanges":9,"stepped":true}`},
		{Fit{}, `{"exchanges":0}`},
		{Fit{Offset: 123_456_789_012_345_678 / 1000, Bound: 1, Exchanges: 2, At: 987_654_321_987_654}, ""},
	} {
		b, err := json.Marshal(c.fit)
		if err != nil || c.want != "" && string(b) != c.want {
			t.Errorf("%s, %v\nwant %s", b, err, c.want)
		}
		var got Fit
		if err := json.Unmarshal(b, &got); err != nil || got != c.fit {
			t.Errorf("%s is read as %+v, %v; want %+v", b, got, err, c.fit)
		}
	}
	if json.Unmarshal([]byte(`{"offset_ms":"much"}`), new(Fit)) == nil {
		t.Error("text is read as an offset")
	}
}

// Example: an agent whose clock is an hour ahead, 100 us away.
func Example() {
	var t Track
	for i := range time.Duration(3) {
		sent := i * time.Second
		t.Add(Exchange{T1: sent, T2: sent + time.Hour + 50*us, T3: sent + time.Hour + 60*us, T4: sent + 110*us})
	}
	offset, bound, ok := t.At(time.Second + 110*us)
	fmt.Println(offset, bound, ok)
	// Output: 1h0m0s 50.022µs true
}

// BenchmarkAdd is an exchange more after those of an hour, and BenchmarkAt an estimate.
func BenchmarkAdd(b *testing.B) {
	track, next := hour()
	for b.Loop() {
		track.Add(next)
		track.all = track.all[:3600]
	}
}

func BenchmarkAt(b *testing.B) {
	track, _ := hour()
	for b.Loop() {
		if _, _, ok := track.At(30 * time.Minute); !ok {
			b.Fatal("no estimate")
		}
	}
}

func hour() (*Track, Exchange) {
	r := stat.Stream(6, "hour")
	a := newAgent(r, 100e-6, 3700)
	var track Track
	for i := range 3600 {
		track.Add(networks[1].exchange(r, a, time.Duration(i)*time.Second))
	}
	return &track, networks[1].exchange(r, a, time.Hour)
}
