package science

import (
	"slices"
	"time"

	"perflab/internal/sim"
	"perflab/internal/stat"
)

// figures of a replay, by the definitions of package result, of which a test says that
// they are the same. A landscape has thousands of replays, for which result keeps and
// knows too much.
func figures(outcomes []sim.Outcome) map[string]float64 {
	var in, out int
	var ttft, tpot, e2e []float64
	begin, end := outcomes[0].Sent, time.Duration(0)
	for _, o := range outcomes {
		first, last, n := o.Tokens[0], o.Tokens[len(o.Tokens)-1], 0
		for _, e := range o.Tokens {
			n += e.N
		}
		in, out = in+o.Prompt, out+n
		begin, end = min(begin, o.Sent), max(end, last.At)
		ttft, e2e = append(ttft, ms(first.At-o.Sent)), append(e2e, ms(last.At-o.Sent))
		if rest := n - first.N; rest > 0 {
			tpot = append(tpot, ms(last.At-first.At)/float64(rest))
		}
	}
	span := (end - begin).Seconds()
	f := map[string]float64{
		"completed": float64(len(outcomes)), "duration": span, "request_throughput": float64(len(outcomes)) / span,
		"output_throughput": float64(out) / span, "total_token_throughput": float64(in+out) / span,
	}
	for name, samples := range map[string][]float64{"ttft": ttft, "tpot": tpot, "e2el": e2e} {
		if len(samples) == 0 {
			continue
		}
		slices.Sort(samples)
		f["mean_"+name+"_ms"] = stat.Mean(samples)
		f["median_"+name+"_ms"], f["p99_"+name+"_ms"] = stat.Quantile(samples, 0.5), stat.Quantile(samples, 0.99)
	}
	return f
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// inFlight is the mean and greatest number of requests in flight, and by how many
// they exceeded a limit on average.
func inFlight(outcomes []sim.Outcome, limit int) (mean float64, peak int, above float64) {
	type edge struct {
		at time.Duration
		by int
	}
	var edges []edge
	for _, o := range outcomes {
		edges = append(edges, edge{o.Sent, 1}, edge{o.Tokens[len(o.Tokens)-1].At, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(min(1, max(-1, a.at-b.at)))
		}
		return a.by - b.by
	})
	n, span := 0, (edges[len(edges)-1].at - edges[0].at).Seconds()
	for i, e := range edges[:len(edges)-1] {
		n += e.by
		peak = max(peak, n)
		d := (edges[i+1].at - e.at).Seconds()
		mean += d * float64(n)
		above += d * float64(max(0, n-limit))
	}
	if span <= 0 {
		return 0, peak, 0
	}
	return mean / span, peak, above / span
}
