package calib

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"perflab/internal/engine"
	"perflab/internal/sim"
)

// replay runs a load on a configuration in virtual time and gives the figures
// that fits look at. A request that is refused is an error: nothing measured
// could be held against the rest.
func replay(cfg engine.Config, replicas int, l Load, k *sim.Constants, seed uint64) (map[string]float64, error) {
	f, refused, err := figures(cfg, replicas, l, k, seed)
	if err == nil && refused != "" {
		err = errors.New(refused)
	}
	return f, err
}

// figures are those of a load that is replayed, of the requests that are served,
// and why one of the others was refused. They are of the same definitions as
// result.Summarize's; no call is kept, since fits and ranges make many replays.
func figures(cfg engine.Config, replicas int, l Load, k *sim.Constants, seed uint64) (f map[string]float64, refused string, err error) {
	c, err := l.course(max(1, replicas), seed, k)
	if err != nil {
		return nil, "", err
	}
	out, err := sim.Replay(cfg, max(1, replicas), c.Jobs, c.Options)
	if err != nil {
		return nil, "", err
	}
	var ttft, tpot, e2e mean
	gaps := gapBuffers.Get().(*[]float64)
	defer gapBuffers.Put(gaps)
	itl := (*gaps)[:0]
	var ttfts []float64
	var tokens, generated, end float64
	begin := math.Inf(1)
	for o := range out {
		begin = min(begin, ms(o.Due)/1e3)
		if o.Err != "" {
			refused = fmt.Sprintf("request %d is refused: %s", o.Index, o.Err)
			continue
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
		tokens, generated = tokens+float64(o.Prompt+n), generated+float64(n)
		end = max(end, ms(last.At)/1e3)
	}
	*gaps = itl
	if err := c.Err(); err != nil {
		return nil, "", err
	}
	span := end - begin
	f = map[string]float64{
		Throughput: tokens / span, "output_throughput": generated / span, "request_throughput": float64(len(ttfts)) / span,
		MeanTTFT: ttft.value(), MeanE2E: e2e.value(), MeanTPOT: tpot.value(),
	}
	f[MedianTTFT], f[MedianITL] = median(ttfts), median(itl)
	for name, v := range f {
		if math.IsNaN(v) || len(ttfts) == 0 {
			delete(f, name)
		}
	}
	return f, refused, nil
}

// gapBuffers hold the gaps between the tokens of one replay: a load has some 100,000.
var gapBuffers = sync.Pool{New: func() any { return new([]float64) }}

// median is that of x, which it reorders: no more of it is sorted than that takes, as
// there is a gap for each token.
func median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	half := len(x) / 2
	upper := nth(x, half)
	if len(x)%2 == 1 {
		return upper
	}
	return (slices.Max(x[:half]) + upper) / 2
}

// nth is the element of rank k, from 0, with those before it before and those after it
// behind (Hoare's selection).
func nth(x []float64, k int) float64 {
	lo, hi := 0, len(x)-1
	for lo < hi {
		pivot := x[lo+(hi-lo)/2]
		i, j := lo, hi
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return x[k]
		}
	}
	return x[k]
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
