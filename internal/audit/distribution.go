package audit

import (
	"fmt"
	"math"
)

// distributions checks the statistics of each family against each other.
func distributions(g figures) []Finding {
	var out []Finding
	done, _ := g.get("completed")
	for _, s := range g.families {
		if done == exactly(1) && (s.family == "ttft" || s.family == "tpot" || s.family == "e2el") {
			out = append(out, single(g, s)...)
			continue
		}
		bad := order(g, s)
		if len(bad) == 0 { // of percentiles in disorder nothing follows for the mean
			bad = append(mean(g, s), deviation(g, s)...)
		}
		out = append(out, bad...)
	}
	return out
}

// order finds the first percentile that is above a higher one.
func order(g figures, s *spread) []Finding {
	for i, low := range s.quantiles {
		for _, high := range s.quantiles[i+1:] {
			if high.at > low.at && low.v.above(high.v) {
				return []Finding{g.finding("percentile-order", Error, "",
					fmt.Sprintf("%s %s is above %s %s", g.by[low.name].Label, g.text(low.name), g.by[high.name].Label, g.text(high.name)), low.name, high.name)}
			}
		}
	}
	return nil
}

// mean checks a mean against the percentiles.
//
//	mean >= sum over percentiles q_1 < q_2 < ... of (1 - q_j) (v_j - v_(j-1)), v_0 the minimum or 0
//
// holds for percentiles by rank, by weight, and interpolated as numpy does, the
// last for q >= 1/2 where 1 / (1 - q) is whole, for any number of samples.
func mean(g figures, s *spread) []Finding {
	m, ok := g.get(s.mean)
	if !ok || len(s.quantiles) == 0 || s.family == "dispatch_lag" {
		return nil
	}
	least, last := 0.0, 0.0
	cite := []string{s.mean}
	for _, q := range s.quantiles {
		share := 1 - q.at
		whole := share > 0 && math.Abs(math.Round(1/share)*share-1) < 1e-6 && share <= 0.5
		if (q.at == 0 || whole) && q.v.Lo > last {
			least += share * (q.v.Lo - last)
			last = q.v.Lo
			cite = append(cite, q.name)
		}
		if q.at == 1 && m.above(q.v) {
			return []Finding{g.finding("mean-impossible", Error, "at most "+g.text(q.name),
				fmt.Sprintf("%s %s is above %s %s", g.by[s.mean].Label, g.text(s.mean), g.by[q.name].Label, g.text(q.name)), s.mean, q.name)}
		}
	}
	if !exactly(least).above(m) {
		return nil
	}
	return []Finding{g.finding("mean-impossible", Error, "at least "+num(least)+" ms",
		fmt.Sprintf("%s %s is below %s, the least that its percentiles allow", g.by[s.mean].Label, g.text(s.mean), num(least)), cite...)}
}

// deviation checks a standard deviation: mean and median differ by no more, and
// it is no more than sqrt((max - mean)(mean - min)), times sqrt(n / (n - 1)) for
// that of a sample, of which n = 2 is the worst.
func deviation(g figures, s *spread) []Finding {
	v, ok := g.all(s.mean, s.std)
	if !ok {
		return nil
	}
	m, std := v[0], v[1]
	var low, high *quantile
	for i, q := range s.quantiles {
		switch q.at {
		case 0:
			low = &s.quantiles[i]
		case 1:
			high = &s.quantiles[i]
		case 0.5:
			if far := math.Max(m.Lo-q.v.Hi, q.v.Lo-m.Hi); far > 0 && exactly(far).above(std) {
				return []Finding{g.finding("std-impossible", Error, "at least "+num(far)+" ms",
					fmt.Sprintf("%s %s is less than mean and median are apart", g.by[s.std].Label, g.text(s.std)), s.std, s.mean, q.name)}
			}
		}
	}
	if low == nil || high == nil {
		return nil
	}
	most := math.Sqrt(2 * max(0, high.v.Hi-m.Lo) * max(0, m.Hi-low.v.Lo))
	if !std.above(exactly(most + slack*math.Abs(m.Hi))) { // of samples that are all alike it is what adding them up rounded
		return nil
	}
	return []Finding{g.finding("std-impossible", Error, "at most "+num(most)+" ms",
		fmt.Sprintf("%s %s is more than the range from %s to %s allows", g.by[s.std].Label, g.text(s.std), g.text(low.name), g.text(high.name)), s.std, low.name, high.name, s.mean)}
}

// single finds statistics of one sample that differ.
func single(g figures, s *spread) []Finding {
	m, ok := g.get(s.mean)
	for _, q := range s.quantiles {
		if ok && !q.v.Meets(m) {
			return []Finding{g.finding("single-request", Error, g.text(s.mean)+" ms",
				fmt.Sprintf("of one request, %s %s and %s %s cannot differ", g.by[s.mean].Label, g.text(s.mean), g.by[q.name].Label, g.text(q.name)), s.mean, q.name)}
		}
	}
	return nil
}
