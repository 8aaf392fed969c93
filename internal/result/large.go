package result

import (
	"math"
	"time"

	"perflab/internal/stat"
	"perflab/internal/timebins"
)

// large is what stands for the streams of a run whose calls are not all kept, and
// beyond Limits.Rows for the calls too.
type large struct {
	Flow     *timebins.Course
	Gaps     *pooled
	PerToken *pooled                 // nil as long as every read brought one token: then it is Gaps
	Families map[string]*stat.Sketch // of one sample a call; nil as long as there are rows
	VLLM     *largeVLLM              // nil: its definitions were not asked for

	families []family
	samples  []float64 // of one call
}

func newLarge(from time.Duration, compat string) *large {
	l := &large{Flow: timebins.New(from), Gaps: &pooled{}}
	if compat == VLLM {
		l.VLLM = &largeVLLM{Flow: timebins.New(from), Gaps: &pooled{}, Families: map[string]*stat.Sketch{}}
	}
	return l
}

// addStream takes a successful call in, but for its families.
func (l *large) addStream(c *Call) {
	addCall(l.Flow, c)
	x := c.appendGaps(l.samples[:0])
	if l.PerToken == nil && uneven(c) {
		l.PerToken = l.Gaps.clone()
	}
	l.Gaps.add(x)
	if l.PerToken != nil {
		x = c.appendPerToken(x[:0])
		l.PerToken.add(x)
	}
	l.samples = x
	if l.VLLM != nil {
		l.VLLM.add(c)
	}
}

// addFamilies takes the call's samples in. The steady window of a run begins with the
// first end of a call and holds every later sending.
func (l *large) addFamilies(c *Call, limit int, firstEnd time.Duration) {
	if l.families == nil {
		l.families = families()
	}
	if l.Families == nil {
		l.Families = map[string]*stat.Sketch{}
	}
	for i := range l.families {
		f := &l.families[i]
		if f.value == nil || f.steady && c.Sent <= firstEnd {
			continue
		}
		if v, ok := f.value(c, limit); ok {
			sketchOf(l.Families, f.name).Add(v)
		}
	}
}

func sketchOf(all map[string]*stat.Sketch, name string) *stat.Sketch {
	s := all[name]
	if s == nil {
		s = &stat.Sketch{}
		all[name] = s
	}
	return s
}

// pooled is a distribution of samples that calls have many of.
type pooled struct {
	stat.Sketch
	Groups int // calls with samples
	Sums   [3]float64
}

func (p *pooled) add(x []float64) {
	sum := 0.0
	for _, v := range x {
		p.Add(v)
		sum += v
	}
	k := p.clusters(nil)
	k.AddGroup(sum, len(x))
	p.Groups, p.Sums = k.Groups, k.Sums
}

func (p *pooled) clone() *pooled { return &pooled{*p.Sketch.Clone(), p.Groups, p.Sums} }

// clusters are the samples, grouped by call, with those of the calls that are at hand.
func (p *pooled) clusters(some *stat.Clusters) stat.SampledClusters {
	k := stat.SampledClusters{All: &p.Sketch, Groups: p.Groups, Sums: p.Sums}
	if some != nil {
		k.Some = *some
	}
	return k
}

// addCall takes a successful call into the course of the run.
func addCall(to *timebins.Course, c *Call) {
	to.Bin(c.Sent).Sent++
	end := to.Bin(c.End)
	end.Ended++
	end.Took += c.End - c.Sent
	if c.Turn == 0 {
		due := to.Bin(c.Due)
		due.Due++
		due.Spent.Add(c.spent())
	}
	if at, ok := c.last(); ok {
		if first, ok := c.FirstToken(); ok {
			at = first
		}
		p, _ := c.Input()
		to.Bin(at).Prompts += float64(p)
	}
	for e := range c.tokenEvents() {
		to.AddTokens(e.At, e.Tokens)
	}
}

// addFailed takes the place that a failed call held.
func addFailed(to *timebins.Course, c *Call) {
	if from := max(c.Sent, c.Ready); from < c.End {
		to.Bin(from).FailedFrom++
		to.Bin(c.End).FailedTo++
	}
}

// largeVLLM are the figures of vllm bench serve, by its definitions.
type largeVLLM struct {
	Flow     *timebins.Course // messages as its tokens
	Gaps     *pooled
	Families map[string]*stat.Sketch
	Output   int
	Start    time.Duration // of the first call
	Calls    int
}

func (v *largeVLLM) add(c *Call) {
	t := c.vllmTimeline()
	if v.Calls++; v.Calls == 1 {
		v.Start = t.Start
	}
	v.Start = min(v.Start, t.Start)
	v.Output += t.Output
	v.Flow.Bin(t.Start).Sent++
	v.Flow.Bin(t.End).Ended++
	for _, at := range t.Messages {
		v.Flow.AddTokens(at, 1)
	}
	var x []float64
	for name, appendTo := range vllmSamplers {
		if name == familyITL {
			v.Gaps.add(appendTo(t, x[:0]))
			continue
		}
		for _, ms := range appendTo(t, x[:0]) {
			sketchOf(v.Families, name).Add(ms)
		}
	}
}

// peak is the fullest of the whole seconds since the first sending, as far as bins
// tell, and by what share it may be off.
func (v *largeVLLM) peak() (most, bound float64) {
	edge := 0.0
	for from := v.Start; from <= v.Flow.End(); from += time.Second {
		n, e := v.Flow.Tokens(from, from+time.Second)
		if n > most {
			most, edge = n, e
		}
	}
	return math.Round(most), share(edge, most)
}

// addSketch sets the statistics of one family from a sketch, as addDistribution does
// from samples; ci and meanCI are its intervals.
func (t *statistics) addSketch(name string, s *stat.Sketch, quantileCI func(q, confidence float64) (lo, hi float64, ok bool), meanCI func(confidence float64) (lo, hi float64, ok bool)) {
	if s == nil || s.N == 0 {
		return
	}
	single := name != familyITL && name != familyITLToken // one sample a call
	figure := func(stat string) string { return stat + "_" + name + "_ms" }
	interval := func(stat string, lo, hi float64, ok bool) {
		if ok {
			t.Intervals[figure(stat)] = [2]float64{lo, hi}
		}
	}
	t.Samples[name] = s.N
	t.Figures[figure("mean")], t.Figures[figure("std")] = s.Mean(), s.StdDev()
	lo, hi, ok := meanCI(confidence)
	lo, hi = meanInterval(s.Mean(), (hi-lo)/2, s.Min)
	interval("mean", lo, hi, ok)
	t.Figures[figure("min")], t.Figures[figure("max")] = s.Min, s.Max
	for _, p := range t.percentiles {
		stat := PercentileName(p)
		t.set(figure(stat), s.Quantile(p/100), sketchBound(s, p))
		if single {
			t.addOverCalls(figure(stat), p, s.Quantile)
		}
		lo, hi, ok := quantileCI(p/100, confidence)
		interval(stat, lo, hi, ok)
	}
	t.addBounds(name, s, !single)
	t.copyFigure(figure("p50"), figure("median"))
}

// sketchBound is by what share a percentile of a sketch may be off: not at all at the
// ends.
func sketchBound(s *stat.Sketch, p float64) float64 {
	if p <= 0 || p >= 100 || s.Min == s.Max {
		return 0
	}
	return stat.SketchError
}

// addSingle sets the statistics of a family of one sample a call.
func (t *statistics) addSingle(name string, s *stat.Sketch) {
	if s == nil {
		return
	}
	t.addSketch(name, s, s.QuantileCI, func(confidence float64) (lo, hi float64, ok bool) {
		return stat.MeanCI(s.Mean(), s.StdDev(), s.N, confidence)
	})
}

// addPooled sets those of samples that calls have many of; some are those of the
// calls at hand.
func (t *statistics) addPooled(name string, p *pooled, some stat.Clusters) {
	k := p.clusters(&some)
	t.addSketch(name, &p.Sketch, k.QuantileCI, k.MeanCI)
}

// set sets a figure, and by what share it may be off.
func (t *statistics) set(name string, v, bound float64) {
	t.Figures[name] = v
	if bound > 0 {
		t.Approximate[name] = bound
	}
}

// uneven reports whether a read of the call brought other than one token.
func uneven(c *Call) bool {
	if n, _ := c.Output(); n != c.Counted() {
		return true
	}
	for i := range c.Chunks {
		if c.Chunks[i].Tokens != 1 || i > 0 && c.joined(i) {
			return true
		}
	}
	return false
}

// steadyFlow is the steady window of a run without rows.
func (s *CallSet) steadyFlow(w Window) Window {
	n, took, _ := s.large.Flow.Ended(w.From, w.To)
	w.Ends = int(n)
	if w.Ends < minEnds {
		return Window{}
	}
	w.OK = true
	w.InFlight = s.large.Flow.MeanInFlight(w.From, w.To)
	w.CallTime = took.Seconds() / float64(w.Ends)
	return w
}

// pace is what CallSet.Pace is of, from bins.
func (l *large) pace(ended int) Pace {
	spent, calls := l.Flow.Thirds()
	dues := calls[0] + calls[1] + calls[2]
	span := func(n int, of func(timebins.Bin) uint32) float64 {
		return l.Flow.Quantile(n, of, 0.9) - l.Flow.Quantile(n, of, 0.1)
	}
	return Pace{
		Calls:   dues,
		DueSpan: span(dues, func(b timebins.Bin) uint32 { return b.Due }), EndSpan: span(ended, func(b timebins.Bin) uint32 { return b.Ended }),
		First: meanSpent(spent[0], calls[0]), Middle: meanSpent(spent[1], calls[1]), Last: meanSpent(spent[2], calls[2]),
	}
}

// share is the share of one value in another, 0 where there is nothing.
func share(part, of float64) float64 {
	if part <= 0 || of <= 0 {
		return 0
	}
	return part / of
}

// atMost is a figure and by what share it may be above it, of the least and the most that it can be.
func atMost(least, most float64) (v, bound float64) { return least, share(most-least, least) }
