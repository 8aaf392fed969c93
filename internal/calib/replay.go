package calib

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"perflab/internal/engine"
	"perflab/internal/sim"
	"perflab/internal/stat"
)

// replay runs a load on a configuration in virtual time and gives the figures
// that fits look at, by the same definitions as result.Summarize: it keeps no
// call, since a fit makes thousands of replays.
func replay(cfg engine.Config, replicas int, l Load, k *sim.Constants, seed uint64) (map[string]float64, error) {
	out, err := sim.Replay(cfg, max(1, replicas), l.Jobs(seed), sim.ReplayOptions{MaxConcurrency: l.Concurrency, Seed: seed, Constants: k, Warm: l.Warm(seed)})
	if err != nil {
		return nil, err
	}
	want := sizes(l, seed)
	var ttft, tpot, e2e mean
	var itl, ttfts []float64
	var tokens, end float64
	for o := range out {
		if o.Err != "" {
			return nil, fmt.Errorf("request %d is refused: %s", o.Index, o.Err)
		}
		n := 0
		for i, e := range o.Tokens {
			n += e.N
			if i > 0 {
				itl = append(itl, ms(e.At-o.Tokens[i-1].At))
			}
		}
		first, last := o.Tokens[0], o.Tokens[len(o.Tokens)-1]
		ttft.add(ms(first.At - o.Sent))
		ttfts = append(ttfts, ms(first.At-o.Sent))
		e2e.add(ms(last.At - o.Sent))
		if rest := n - first.N; rest > 0 {
			tpot.add(ms(last.At-first.At) / float64(rest))
		}
		tokens += float64(want[o.Index] + n)
		end = max(end, ms(last.At)/1e3)
	}
	f := map[string]float64{Throughput: tokens / end, MeanTTFT: ttft.value(), MeanE2E: e2e.value(), MeanTPOT: tpot.value()}
	slices.Sort(ttfts)
	slices.Sort(itl)
	f[MedianTTFT], f[MedianITL] = median(ttfts), median(itl)
	for name, v := range f {
		if math.IsNaN(v) {
			delete(f, name)
		}
	}
	return f, nil
}

func median(sorted []float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return stat.Quantile(sorted, 0.5)
}

// sizes are the prompt lengths of a load, by index.
func sizes(l Load, seed uint64) []int {
	if l.Exact != nil {
		out := make([]int, len(l.Exact))
		for i, r := range l.Exact {
			out[i] = cmp.Or(len(r.Prompt), r.Input)
		}
		return out
	}
	return l.Input.draw(l.Requests, seed, "input")
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

// mean is a running mean; of nothing it is not a number.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) { m.sum, m.n = m.sum+v, m.n+1 }
func (m *mean) value() float64 {
	if m.n == 0 {
		return math.NaN()
	}
	return m.sum / float64(m.n)
}
