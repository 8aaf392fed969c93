package stat

import (
	"math"
	"testing"
)

// Figures by hand.
func TestPairs(t *testing.T) {
	near := func(what string, got, want, within float64) {
		t.Helper()
		if math.Abs(got-want) > within || math.IsNaN(got) != math.IsNaN(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	p := Pairs{Both: 150, Lost: 12, Won: 5, Neither: 33}
	near("change", p.Change(), -0.035, 1e-15)
	near("error", p.SE(), math.Sqrt(17-49.0/200)/200, 1e-15)
	near("McNemar", p.McNemar(), 0.143463134765625, 1e-12) // 2 * sum of C(17, 0..5) / 2^17
	near("McNemar, none differs", Pairs{Both: 3}.McNemar(), 1, 0)
	near("McNemar, one each", Pairs{Lost: 1, Won: 1}.McNemar(), 1, 0)
	near("McNemar, five", Pairs{Lost: 5}.McNemar(), 2.0/32, 1e-12)
	z := math.Sqrt2 * math.Erfinv(0.9)
	near("none differs", Pairs{Both: 160, Neither: 40}.Low(0.95), -z*z/(200+z*z), 1e-9)
	near("all lost", Pairs{Lost: 10}.Low(0.95), -1, 1e-9)
	near("nothing", Pairs{}.Low(0.95), math.NaN(), 0)

	thrice := Pairs{Both: 450, Lost: 36, Won: 15, Neither: 99, Rounds: 3}
	near("change of three rounds", thrice.Change(), p.Change(), 1e-15)
	near("error of three rounds", thrice.SE(), p.SE(), 1e-15)
	near("bound of three rounds", thrice.Low(0.95), p.Low(0.95), 1e-12)
	near("McNemar of three rounds", thrice.McNemar(), p.McNemar(), 1e-12)
}

// TestScoreVariance holds the closed form against a search: q is where the
// likelihood of the counts is greatest.
func TestScoreVariance(t *testing.T) {
	r := Stream(3, "score")
	for range 200 {
		n := 20 + r.IntN(200)
		b, c := r.IntN(n/3), r.IntN(n/3)
		delta := r.Float64()*0.6 - 0.5
		at := func(q float64) float64 { // log-likelihood of lost q, won q+delta
			terms := 0.0
			for _, k := range []struct {
				n int
				p float64
			}{{b, q}, {c, q + delta}, {n - b - c, 1 - 2*q - delta}} {
				if k.n > 0 {
					terms += float64(k.n) * math.Log(max(k.p, 1e-300))
				}
			}
			return terms
		}
		lo, hi := max(0, -delta), (1-delta)/2
		for range 200 { // the likelihood is concave in q
			x, y := lo+(hi-lo)/3, hi-(hi-lo)/3
			if at(x) < at(y) {
				lo = x
			} else {
				hi = y
			}
		}
		want := 2*lo + delta*(1-delta)
		got := scoreVariance(float64(b)/float64(n), float64(c)/float64(n), delta)
		if math.Abs(got-want) > 1e-5 {
			t.Errorf("%d of %d lost, %d won, change %v: %v, want %v", b, n, c, delta, got, want)
		}
	}
}

// The bound is at most what Change is, falls with the confidence and with a loss,
// and rises as questions are added that are answered alike.
func TestPairsOrder(t *testing.T) {
	r := Stream(1, "pairs")
	for range 500 {
		p := Pairs{Both: r.IntN(200), Lost: r.IntN(20), Won: r.IntN(20), Neither: 1 + r.IntN(60)}
		more, worse := p, p
		more.Both, more.Neither = 3*p.Both, 3*p.Neither
		worse.Lost, worse.Neither = p.Lost+1, p.Neither-1
		low := p.Low(0.95)
		switch {
		case !(low < p.Change() && low >= -1):
			t.Errorf("%+v: %v of %v", p, low, p.Change())
		case p.Low(0.99) >= low:
			t.Errorf("%+v: 99 %% is above 95 %%", p)
		case worse.Low(0.95) >= low:
			t.Errorf("%+v: one more lost is better", p)
		case p.Change() <= 0 && more.Low(0.95) <= low:
			t.Errorf("%+v: more answers alike are worse", p)
		}
	}
}

// pairsCover is the probability that the bound is at most the true change: summed
// over all outcomes, so without the noise of a simulation.
func pairsCover(n int, lose, win float64, low func(Pairs) float64) float64 {
	sum := 0.0
	for b := 0; b <= n; b++ {
		pb := binomialPMF(n, b, lose)
		if lose == 0 {
			pb = 0
			if b == 0 {
				pb = 1
			}
		}
		if pb < 1e-9 {
			continue
		}
		q := win / (1 - lose)
		for c := 0; c <= n-b; c++ {
			pc := 0.0
			switch {
			case q > 0:
				pc = binomialPMF(n-b, c, q)
			case c == 0:
				pc = 1
			}
			if pb*pc < 1e-11 {
				continue
			}
			if low(Pairs{Lost: b, Won: c, Both: n - b - c}) <= win-lose+1e-12 {
				sum += pb * pc
			}
		}
	}
	return sum
}

// TestPairsCoverage is where the doc comment of Low has its figures from.
func TestPairsCoverage(t *testing.T) {
	score := func(p Pairs) float64 { return p.Low(0.95) }
	z := math.Sqrt2 * math.Erfinv(0.9)
	wald := func(p Pairs) float64 { return p.Change() - z*p.SE() }
	least, most, waldLeast, waldMost := 1.0, 0.0, 1.0, 0.0
	for _, n := range []int{50, 200, 500} {
		for _, loss := range []float64{0.01, 0.02, 0.04, 0.1} {
			for _, flips := range []float64{0, 0.02, 0.05, 0.2} { // besides: half of them each way
				c := pairsCover(n, loss+flips/2, flips/2, score)
				if differ := float64(n) * (loss + flips); differ < 3 && c > 0.983 {
					t.Logf("%d questions, loss %v, flips %v: %.4f", n, loss, flips, c)
				} else {
					most = max(most, c)
				}
				least = min(least, c)
				w := pairsCover(n, loss+flips/2, flips/2, wald)
				waldLeast, waldMost = min(waldLeast, w), max(waldMost, w)
			}
		}
	}
	t.Logf("coverage from %.4f to %.4f, of the change less its errors from %.4f to %.4f", least, most, waldLeast, waldMost)
	if least < 0.943 || most > 0.983 {
		t.Errorf("coverage from %.4f to %.4f", least, most)
	}
}

// TestPairsNeeded: so many questions pass as often as promised.
func TestPairsNeeded(t *testing.T) {
	for _, k := range []struct{ differ, change, margin float64 }{
		{0.02, 0, 0.02}, {0.06, 0, 0.02}, {0.1, -0.005, 0.02}, {0.1, 0, 0.05},
	} {
		n := PairsNeeded(k.differ, k.change, k.margin, 0.95, 0.8)
		r := Stream(7, "needed")
		pass := 0
		const draws = 1000
		for range draws {
			p := Pairs{}
			for range n {
				switch u := r.Float64(); {
				case u < (k.differ-k.change)/2:
					p.Lost++
				case u < k.differ:
					p.Won++
				default:
					p.Both++
				}
			}
			if p.Low(0.95) >= -k.margin {
				pass++
			}
		}
		t.Logf("%+v: %d questions, passed %.3f", k, n, float64(pass)/draws)
		if got := float64(pass) / draws; got < 0.74 || got > 0.88 {
			t.Errorf("%+v: %d questions pass %v of the time, want 0.8", k, n, got)
		}
	}
	if n := PairsNeeded(0.1, -0.02, 0.02, 0.95, 0.8); n != 0 {
		t.Errorf("a loss of the margin: %d questions", n)
	}
}
