package live

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/result"
	"perflab/internal/stat"
)

// state is what is kept of the calls and readings that were read.
type state struct {
	version        int
	done, failed   int
	tokens         int
	lastEnd        time.Duration
	lastError      string
	errors         map[string]int
	ttft, tpot     stat.Sketch // ms
	seen           []uint64    // bits of the indices of calls: one may be in two files
	bins           []bin
	width          time.Duration // of a bin; 0: none yet
	gauges         []gaugePoint
	latest         map[place]map[string]float64 // the last values of each replica and device
	every, skipped int                          // one of so many readings of the engine is kept
}

// place is what a reading is of.
type place struct {
	source, node string
	index        int
}

// bin is what happened in one span of the run.
type bin struct {
	done, failed, tokens int
	ttft                 []float32 // ms, of some calls that ended in it
	more                 int       // calls that ttft leaves out
}

// gaugePoint is a reading of the engine, or of the devices.
type gaugePoint struct {
	at               time.Duration
	running, waiting float64
	cache            float64 // share of the KV cache
	device           float64 // utilization of the devices
}

const (
	mostBins    = 600
	mostTTFT    = 200 // values of a bin
	mostGauges  = 2000
	mostClasses = 20
	mostPlaces  = 4096
	mostIndex   = 1 << 27
	recent      = 10 * time.Second // that rates are of
)

// call takes a line of a file of calls. One that is none counts for nothing.
func (s *state) call(line []byte) {
	var c result.Call
	if len(line) == 0 || c.UnmarshalJSON(line) != nil || s.again(c.Index) || c.End < 0 {
		return
	}
	s.version++
	s.done++
	s.lastEnd = max(s.lastEnd, c.End)
	b := s.bin(c.End)
	b.done++
	if !c.OK() {
		b.failed++
		s.fail(&c)
		return
	}
	n, _ := c.Output()
	s.tokens += n
	b.tokens += n
	if d, ok := c.TTFT(); ok {
		ms := float64(d) / 1e6
		s.ttft.Add(ms)
		b.add(ms)
	}
	if ns, ok := c.TPOT(); ok {
		s.tpot.Add(ns / 1e6)
	}
}

func (s *state) fail(c *result.Call) {
	s.failed++
	class := string(c.Class)
	if _, known := s.errors[class]; !known && len(s.errors) >= mostClasses {
		class = "others"
	}
	s.errors[class]++
	if c.Error != "" {
		s.lastError = c.Error
	}
}

// again reports whether a call of this index was taken before.
func (s *state) again(index int) bool {
	if index < 0 || index >= mostIndex {
		return false
	}
	for len(s.seen) <= index/64 {
		s.seen = append(s.seen, 0)
	}
	bit := uint64(1) << (index % 64)
	old := s.seen[index/64]&bit != 0
	s.seen[index/64] |= bit
	return old
}

// bin is that of an instant. When there would be too many, each two become one.
func (s *state) bin(at time.Duration) *bin {
	if s.width == 0 {
		s.width = time.Second
	}
	for int(at/s.width) >= mostBins {
		s.width *= 2
		half := make([]bin, 0, mostBins)
		for pair := range slices.Chunk(s.bins, 2) {
			one := pair[0]
			if len(pair) == 2 {
				one.join(pair[1])
			}
			half = append(half, one)
		}
		s.bins = half
	}
	for len(s.bins) <= int(at/s.width) {
		s.bins = append(s.bins, bin{})
	}
	return &s.bins[at/s.width]
}

// add keeps a time to first token, or every so many of them once they are many.
func (b *bin) add(ms float64) {
	if len(b.ttft) < mostTTFT {
		b.ttft = append(b.ttft, float32(ms))
		return
	}
	b.more++
	b.ttft[(b.more*7919)%mostTTFT] = float32(ms)
}

func (b *bin) join(c bin) {
	b.done, b.failed, b.tokens, b.more = b.done+c.done, b.failed+c.failed, b.tokens+c.tokens, b.more+c.more
	for i, v := range slices.Concat(b.ttft, c.ttft) {
		if i == 0 {
			b.ttft = nil
		}
		if len(b.ttft) < mostTTFT {
			b.ttft = append(b.ttft, v)
		} else {
			b.more++
		}
	}
}

// rates are calls and tokens per second of the last whole bins.
func (s *state) rates(elapsed time.Duration) (calls, tokens float64) {
	if s.done == 0 || elapsed < time.Second {
		return math.NaN(), math.NaN()
	}
	span := max(recent, 2*s.width)
	from := max(0, elapsed-span)
	first := int(from / s.width)
	from = time.Duration(first) * s.width
	for i := first; i < len(s.bins); i++ {
		calls += float64(s.bins[i].done)
		tokens += float64(s.bins[i].tokens)
	}
	took := (elapsed - from).Seconds()
	return calls / took, tokens / took
}

func quantiles(s *stat.Sketch) (p50, p99 float64) {
	if s.N == 0 {
		return math.NaN(), math.NaN()
	}
	return s.Quantile(0.5), s.Quantile(0.99)
}

// reading takes a line of the file of readings.
func (s *state) reading(line []byte) {
	var r gauge.Reading
	if len(line) == 0 || json.Unmarshal(line, &r) != nil || len(r.Values) == 0 || r.At < 0 {
		return
	}
	at := place{r.Source, r.Node, r.Index}
	if s.latest == nil {
		s.latest = map[place]map[string]float64{}
	}
	if _, known := s.latest[at]; !known && len(s.latest) >= mostPlaces {
		return
	}
	s.latest[at] = r.Values
	p := gaugePoint{at: r.At, running: math.NaN(), waiting: math.NaN(), cache: math.NaN(), device: math.NaN()}
	switch r.Source {
	case gauge.SourceEngine:
		p.running, _ = s.over(r.Source, running)
		p.waiting, _ = s.over(r.Source, waiting)
		_, p.cache = s.over(r.Source, cacheInUse)
	case gauge.SourceGPU:
		_, p.device = s.over(r.Source, gauge.GPUUtilization)
	default:
		return
	}
	s.version++
	s.keep(p)
}

// Names of gauges that all engines have, see package engine.
const (
	running    = "running"
	waiting    = "waiting"
	cacheInUse = "kv_usage"
)

// over is the sum and the mean of a gauge over all replicas, or devices, by their last readings.
func (s *state) over(source, name string) (sum, mean float64) {
	n := 0
	for at, values := range s.latest {
		if v, ok := values[name]; ok && at.source == source {
			sum += v
			n++
		}
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	return sum, sum / float64(n)
}

// keep adds a point; once there are many every other one goes, from then on too.
func (s *state) keep(p gaugePoint) {
	if s.skipped++; s.skipped < s.every {
		return
	}
	s.skipped = 0
	s.gauges = append(s.gauges, p)
	if len(s.gauges) < mostGauges {
		return
	}
	half := s.gauges[:0]
	for i, p := range s.gauges {
		if i%2 == 0 {
			half = append(half, p)
		}
	}
	s.gauges = half
	s.every = max(2, 2*s.every)
}

// queue are the requests in the engine by its last reading.
func (s *state) queue() (running, waiting float64) {
	for _, p := range slices.Backward(s.gauges) {
		if !math.IsNaN(p.running) {
			return p.running, p.waiting
		}
	}
	return math.NaN(), math.NaN()
}
