package live

import (
	"math"
	"slices"
	"time"

	"perflab/internal/web/figure"
)

// Plots are the names of the plots of a run under way, and what they are called.
func Plots() []struct{ Name, Title string } {
	return []struct{ Name, Title string }{
		{"live-throughput", "Throughput so far"}, {"live-ttft", "TTFT so far"}, {"live-engine", "In the engine"},
	}
}

// Figure is a plot of a run under way, as far as it was read. ok is false for a name that is none.
func (w *Watch) Figure(dir, name string) (f figure.Figure, ok bool, err error) {
	if _, err := w.Look(dir); err != nil {
		return f, false, err
	}
	r := w.of(dir)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range Plots() {
		if p.Name == name {
			f = figure.Figure{Name: name, Title: p.Title, Simulated: r.header.Simulated}
			ok = true
		}
	}
	switch name {
	case "live-throughput":
		f.Time = r.throughput()
	case "live-ttft":
		f.Time = r.firstTokens()
	case "live-engine":
		f.Time = r.engine()
	}
	return f, ok, nil
}

// clock is that of all plots of a run.
const clock = "run"

// whole are the bins that have ended: the last one is still filling.
func (s *state) whole() []bin {
	if len(s.bins) < 2 {
		return s.bins
	}
	return s.bins[:len(s.bins)-1]
}

// at is the middle of a bin, in seconds.
func (s *state) at(i int) figure.Number {
	return figure.Number((time.Duration(i)*s.width + s.width/2).Seconds())
}

func (s *state) throughput() *figure.Time {
	tokens := figure.Line{Name: "Output tokens"}
	calls := figure.Line{Name: "Calls that ended", Axis: 1}
	failed := figure.Line{Name: "Calls that failed", Axis: 1}
	for i, b := range s.whole() {
		each := s.width.Seconds()
		for _, x := range []struct {
			line *figure.Line
			n    int
		}{{&tokens, b.tokens}, {&calls, b.done}, {&failed, b.failed}} {
			x.line.Seconds = append(x.line.Seconds, s.at(i))
			x.line.Values = append(x.line.Values, figure.Number(float64(x.n)/each))
		}
	}
	t := &figure.Time{Clock: clock, Axes: []figure.Axis{{Label: "Output tokens", Unit: "tok/s"}, {Label: "Calls", Unit: "req/s"}}, Series: []figure.Line{tokens, calls}}
	if s.failed > 0 {
		t.Series = append(t.Series, failed)
	}
	return t
}

func (s *state) firstTokens() *figure.Time {
	median, most := figure.Line{Name: "median"}, figure.Line{Name: "p99"}
	for i, b := range s.whole() {
		middle, high := figure.Missing, figure.Missing
		if len(b.ttft) > 0 {
			all := slices.Sorted(slices.Values(b.ttft))
			middle, high = figure.Number(all[(len(all)-1)/2]), figure.Number(all[int(math.Ceil(0.99*float64(len(all))))-1])
		}
		median.Seconds, median.Values = append(median.Seconds, s.at(i)), append(median.Values, middle)
		most.Seconds, most.Values = append(most.Seconds, s.at(i)), append(most.Values, high)
	}
	return &figure.Time{Clock: clock, Axes: []figure.Axis{{Label: "TTFT", Unit: "ms"}}, Series: []figure.Line{median, most}}
}

func (s *state) engine() *figure.Time {
	lines := []figure.Line{{Name: "running", Step: true}, {Name: "waiting", Step: true}, {Name: "KV cache", Axis: 1}, {Name: "GPU", Axis: 1}}
	for _, p := range slices.SortedStableFunc(slices.Values(s.gauges), func(a, b gaugePoint) int { return int(a.at - b.at) }) {
		for i, v := range []float64{p.running, p.waiting, 100 * p.cache, 100 * p.device} {
			at := figure.Number(p.at.Seconds())
			l := &lines[i]
			if math.IsNaN(v) || len(l.Seconds) > 0 && at <= l.Seconds[len(l.Seconds)-1] {
				continue
			}
			l.Seconds, l.Values = append(l.Seconds, at), append(l.Values, figure.Number(v))
		}
	}
	t := &figure.Time{Clock: clock, Axes: []figure.Axis{{Label: "Requests"}, {Label: "In use", Unit: "%"}}}
	for _, l := range lines {
		if len(l.Seconds) > 0 {
			t.Series = append(t.Series, l)
		}
	}
	return t
}
