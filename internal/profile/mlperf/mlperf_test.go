package mlperf

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/profile"
	"perflab/internal/result"
)

// Regions as MLCommons' checker 1.5.3 computes them.
func TestRegions(t *testing.T) {
	for _, c := range []struct {
		cMax, cMin               int
		low, medium, high, above Span
	}{
		{33, 1, Span{2, 4}, Span{5, 11}, Span{12, 33}, Span{34, 37}},
		{33, 16, Span{17, 19}, Span{20, 23}, Span{24, 33}, Span{34, 37}},
		{33, 32, Span{33, 33}, Span{34, 33}, Span{34, 33}, Span{34, 37}},
		{40, 16, Span{17, 19}, Span{20, 24}, Span{25, 40}, Span{41, 44}},
		{64, 1, Span{2, 5}, Span{6, 17}, Span{18, 64}, Span{65, 71}},
		{100, 32, Span{33, 36}, Span{37, 49}, Span{50, 100}, Span{101, 111}},
		{256, 16, Span{17, 22}, Span{23, 55}, Span{56, 256}, Span{257, 282}},
		{1024, 16, Span{17, 26}, Span{27, 117}, Span{118, 1024}, Span{1025, 1127}},
		{1024, 1, Span{2, 11}, Span{12, 103}, Span{104, 1024}, Span{1025, 1127}},
		{4096, 32, Span{33, 48}, Span{49, 287}, Span{288, 4096}, Span{4097, 4506}},
		{100000, 7, Span{8, 53}, Span{54, 2161}, Span{2162, 100000}, Span{100001, 110001}},
	} {
		r, err := RegionsOf(c.cMax, c.cMin)
		if err != nil || r.Low != c.low || r.Medium != c.medium || r.High != c.high || r.Above != c.above {
			t.Errorf("RegionsOf(%d, %d) = %+v, %v", c.cMax, c.cMin, r, err)
		}
	}
	r, _ := RegionsOf(1024, 16)
	for c, want := range map[int]string{1: LowLatency, 16: LowLatency, 17: Low, 26: Low, 27: Medium, 1024: High, 1025: Margin, 1127: Margin, 1128: "", 0: ""} {
		if got := r.Of(c); got != want {
			t.Errorf("region of %d is %q, want %q", c, got, want)
		}
	}
	for _, c := range [][2]int{{32, 1}, {64, 0}, {64, 33}} {
		if _, err := RegionsOf(c[0], c[1]); err == nil {
			t.Errorf("RegionsOf(%d, %d) has no error", c[0], c[1])
		}
	}
}

// A proposed curve breaks none of the rules on where its points are.
func TestProposed(t *testing.T) {
	proposed := 0
	for cMax := UltraLow + 1; cMax < 3000; cMax += 1 + cMax/20 {
		for cMin := 1; cMin <= UltraLow; cMin++ {
			list, err := Propose(cMax, cMin)
			if err != nil {
				if cMax-cMin > 18 {
					t.Errorf("Propose(%d, %d): %v", cMax, cMin, err)
				}
				continue
			}
			proposed++
			var f findings
			curve := Curve{Profile: profile.MLPerf, CMax: cMax}
			for _, c := range list {
				curve.Points = append(curve.Points, Point{Concurrency: c})
			}
			f.coverage(curve)
			if len(f.Findings) > 0 || !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("Propose(%d, %d) = %v breaks %v", cMax, cMin, list, f.Findings)
			}
			if at := curve.AccuracyAt(); len(at) != 4 || at[3] != cMax {
				t.Errorf("accuracy of %v is wanted at %v", list, at)
			}
		}
	}
	if proposed < 1000 {
		t.Errorf("only %d curves were proposed", proposed)
	}
}

// kept is a curve that keeps every rule.
func kept() Curve {
	c := Curve{Profile: profile.MLPerf, CMax: 256}
	list, _ := Propose(256, 16)
	for _, k := range list {
		c.Points = append(c.Points, Point{
			Concurrency: k, Pass: 500, Issued: 2000, Completed: 1990, WholeS: 1500, Basis: FromWhole, SystemTPS: float64(k) * 50, TPOTP90: float64(k), TPSPerUser: 1000 / float64(k),
			Closed: true, Cache: "unique", Workload: "one", Seed: SeedSets()[0].Sample,
		})
	}
	return c
}

func TestKept(t *testing.T) {
	o := Check(kept())
	if !o.Valid || len(o.Broken) > 0 {
		t.Fatalf("a curve that keeps all rules: %+v", o)
	}
	for _, rule := range []string{RuleAccuracy, RuleSystem, RuleClient} {
		if !slices.ContainsFunc(o.Open, func(f profile.Finding) bool { return f.Rule == rule }) {
			t.Errorf("%s is not named as open", rule)
		}
	}
	if !strings.Contains(o.Open[0].Text, "16, 22, 55, 256") {
		t.Errorf("accuracy is wanted at: %s", o.Open[0].Text)
	}
}

// Each rule has a change that breaks it.
func TestBroken(t *testing.T) {
	all := func(change func(*Point)) func(*Curve) {
		return func(c *Curve) {
			for i := range c.Points {
				change(&c.Points[i])
			}
		}
	}
	one := func(change func(*Point)) func(*Curve) { return func(c *Curve) { change(&c.Points[3]) } }
	without := func(from, to int) func(*Curve) {
		return func(c *Curve) {
			c.Points = slices.DeleteFunc(c.Points, func(p Point) bool { return from <= p.Concurrency && p.Concurrency <= to })
		}
	}
	for rule, change := range map[string]func(*Curve){
		RuleShort:      func(c *Curve) { c.Profile = profile.MLPerfShort },
		RuleSimulated:  one(func(p *Point) { p.Simulated = true }),
		RulePointCount: func(c *Curve) { c.Points = c.Points[:6] },
		RulePointCap: func(c *Curve) {
			for k := 100; len(c.Points) <= MostPoints; k++ {
				p := c.Points[6]
				p.Concurrency = k
				c.Points = append(c.Points, p)
			}
		},
		RuleCMax:     func(c *Curve) { c.CMax = 32 },
		RuleRegions:  all(func(p *Point) { p.Concurrency -= 16 }),
		RuleInRange:  one(func(p *Point) { p.Concurrency = 283 }),
		RuleUltraLow: without(1, 32),
		RuleLow:      without(17, 22),
		RuleMedium:   without(23, 55),
		RuleHigh:     without(56, 256),
		RuleOffline:  without(256, 256),
		RuleLoad:     one(func(p *Point) { p.Closed = false }),
		RuleDuration: func(c *Curve) { c.Points[6].WholeS = 1199 },
		RuleQueries:  one(func(p *Point) { p.Completed = 499 }),
		RulePasses:   one(func(p *Point) { p.Issued = 2001 }),
		RuleTPOT:     one(func(p *Point) { p.TPOTP90 = 0 }),
		RuleDataset:  one(func(p *Point) { p.Workload = "another" }),
		RuleWarmup:   one(func(p *Point) { p.Warmups = 8 }),
		RuleCache:    one(func(p *Point) { p.Cache = "shared" }),
		RuleSeed:     one(func(p *Point) { p.Seed = 42 }),
		RuleSound:    one(func(p *Point) { p.Void = "late" }),
	} {
		c := kept()
		change(&c)
		o := Check(c)
		if o.Valid || !o.Breaks(rule) {
			t.Errorf("%s is not broken: %+v", rule, o.Broken)
		}
		if !strings.Contains(o.Sentence(), rule) {
			t.Errorf("%s is not named: %s", rule, o.Sentence())
		}
	}
}

// At 32 and below 600 s are enough, and the steady window decides where there is one.
func TestDuration(t *testing.T) {
	c := kept()
	c.Points[0].WholeS = 600
	c.Points[6].Basis, c.Points[6].Steady.DurationS, c.Points[6].WholeS = FromSteady, 1200, 5
	if o := Check(c); !o.Valid {
		t.Errorf("long enough: %v", o.Broken)
	}
	c.Points[6].Steady.DurationS, c.Points[6].WholeS = 1199, 5000
	if o := Check(c); !o.Breaks(RuleDuration) {
		t.Error("a steady window of 1,199 s at concurrency 256 was enough")
	}
}

// samples are passes of 50 requests, 1 s apart; level is a pass's factor of the TPOT and the TTFT.
func samples(passes int, level func(pass int) float64) []Sample {
	var out []Sample
	for i := range passes * 50 {
		f := level(i/50) * (1 + 0.02*math.Sin(float64(i*i)))
		sent := time.Duration(i) * time.Second
		out = append(out, Sample{Sent: sent, End: sent + 3*time.Second, OK: true, Output: 100, TTFT: 2e8 * f, TPOT: 2e7 * f})
	}
	return out
}

func TestSteady(t *testing.T) {
	flat := func(int) float64 { return 1 }
	for name, c := range map[string]struct {
		samples         []Sample
		pass            int
		least           time.Duration
		status, verdict string
		first           int
	}{
		"flat":          {samples(12, flat), 50, 500 * time.Second, Windowable, SteadyVerdict, 0},
		"filling":       {samples(12, func(p int) float64 { return []float64{0.4, 0.7, 1, 1}[min(p, 3)] }), 50, 400 * time.Second, Windowable, SteadyVerdict, 2},
		"too short":     {samples(12, flat), 50, 700 * time.Second, InsufficientDuration, SteadyVerdict, 0},
		"few passes":    {samples(3, flat), 50, time.Second, InsufficientPasses, NotFound, 0},
		"no whole pass": {samples(3, flat), 200, time.Second, PartialDataset, NotFound, 0},
		"rising":        {samples(12, func(p int) float64 { return 1 + 0.02*float64(p) }), 50, time.Second, "", DriftingUp, 1},
		"falling":       {samples(12, func(p int) float64 { return 1.15 - 0.015*float64(p) }), 50, time.Second, "", DriftingDown, 1},
	} {
		s := steadyOf(c.samples, c.pass, c.least)
		if s.Status != c.status || s.Verdict != c.verdict || c.status == Windowable && s.First != c.first {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// Figures of a steady run are of its window, in the benchmark's units.
func TestMeasure(t *testing.T) {
	all := samples(12, func(p int) float64 { return []float64{0.4, 0.7, 1, 1}[min(p, 3)] })
	all[130].OK = false
	slices.Reverse(all)
	p := Measure(Point{Pass: 50}, 400*time.Second, all)
	if p.Issued != 600 || p.Completed != 599 || p.Basis != FromSteady || p.Steady.First != 2 || p.Steady.Last != 11 {
		t.Fatalf("%+v", p)
	}
	if p.Of.Output.Count != 499 || p.Of.Output.Total != 49900 || math.Abs(p.SystemTPS-49900.0/499) > 1e-9 {
		t.Errorf("system TPS %g of %+v", p.SystemTPS, p.Of.Output)
	}
	if math.Abs(p.TPOTP90-20.4) > 0.1 || math.Abs(p.TTFTP90-204) > 1 || math.Abs(p.TPSPerUser-1000/p.TPOTP90) > 1e-9 {
		t.Errorf("%+v", p)
	}
	p = Measure(Point{Pass: 5000}, time.Second, all)
	if p.Basis != FromWhole || p.WholeS != 602 || math.Abs(p.SystemTPS-59900.0/602) > 1e-9 {
		t.Errorf("a whole run: %+v", p)
	}
	if p = Measure(Point{Pass: 5}, time.Second, nil); p.TPOTP90 != 0 || p.Issued != 0 {
		t.Errorf("nothing: %+v", p)
	}
}

func TestSampleOf(t *testing.T) {
	c := result.Call{Sent: time.Second, End: 3 * time.Second, Chunks: []result.Chunk{{At: 2 * time.Second, Tokens: 1}, {At: 3 * time.Second, Tokens: 1, Read: 1}}}
	if s := SampleOf(&c); s.TTFT != 1e9 || s.TPOT != 1e9 || s.Output != 2 || !s.OK {
		t.Errorf("%+v", s)
	}
	c.Class = result.HTTPStatus
	if s := SampleOf(&c); s.OK || !math.IsNaN(s.TTFT) || !math.IsNaN(s.TPOT) || s.Output != 0 {
		t.Errorf("%+v", s)
	}
}

// Only points that no other one beats in both figures are on the front.
func TestFront(t *testing.T) {
	got := Front([]Point{
		{Concurrency: 16, TPSPerUser: 90, SystemTPS: 1000}, {Concurrency: 32, TPSPerUser: 60, SystemTPS: 900}, {Concurrency: 64, TPSPerUser: 60, SystemTPS: 1800},
		{Concurrency: 128, TPSPerUser: 50, SystemTPS: 1700}, {Concurrency: 256, TPSPerUser: 20, SystemTPS: 3000}, {Concurrency: 512, TPSPerUser: 10, SystemTPS: 9000, Void: "late"}, {Concurrency: 600},
	})
	want := []Step{{20, 3000, 256}, {60, 1800, 64}, {90, 1000, 16}}
	if !slices.Equal(got, want) {
		t.Errorf("front %v, want %v", got, want)
	}
}
