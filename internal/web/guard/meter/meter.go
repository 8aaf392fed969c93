// Package meter counts what a server does and writes it in Prometheus's text format.
//
//	m := meter.New()
//	m.Request("GET /runs/{id}", 200, 12*time.Millisecond)
//	m.Gauge("perflab_event_streams", "Event streams that are open.", open)
//	err := m.Write(w)
//
// Invariants: a route is the pattern of a handler and never the path of a request, so that nobody
// can make series by asking for paths; there are at most MostSeries all the same, and what comes
// after stands under "other". The same counts give the same bytes.
//
// Prometheus's own client library was rejected: it brings eleven modules, protobuf among them,
// for three families that take a hundred lines.
package meter

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// MostSeries is how many series a family has at most.
const MostSeries = 500

// bounds are the upper ends of the histogram's buckets, in seconds. The goals of the pages, 100 and
// 200 ms, are among them.
var bounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 10}

type answer struct {
	route  string
	status int
}

// durations is a histogram.
type durations struct {
	counts []uint64 // by bucket, not added up; the last is what is longer than all bounds
	sum    float64
	n      uint64
}

type gauge struct {
	name, help string
	read       func() float64
}

// Meter holds the counts. Its methods may be called by several goroutines.
type Meter struct {
	mu       sync.Mutex
	answers  map[answer]uint64
	times    map[string]*durations
	refusals map[string]uint64
	gauges   []gauge
}

// New makes a meter that has counted nothing.
func New() *Meter {
	return &Meter{answers: map[answer]uint64{}, times: map[string]*durations{}, refusals: map[string]uint64{}}
}

// other is the route of what has none, or came when there were too many.
const other = "other"

// Request counts a request that was answered, with the time that it took; below zero where that
// says nothing, as of an event stream.
func (m *Meter) Request(route string, status int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := answer{cmp.Or(route, other), status}
	if _, known := m.answers[a]; !known && len(m.answers) >= MostSeries {
		a.route = other
	}
	m.answers[a]++
	if took < 0 {
		return
	}
	d := m.times[a.route]
	if d == nil {
		d = &durations{counts: make([]uint64, len(bounds)+1)}
		m.times[a.route] = d
	}
	at, _ := slices.BinarySearch(bounds, took.Seconds())
	d.counts[at]++
	d.n++
	d.sum += took.Seconds()
}

// Refusal counts a request that was refused, by one of a few reasons that the code names.
func (m *Meter) Refusal(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refusals[reason]++
}

// Gauge adds a figure that is read whenever the metrics are written.
func (m *Meter) Gauge(name, help string, read func() float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gauges = append(m.gauges, gauge{name, help, read})
}

// Write writes all of it.
func (m *Meter) Write(w io.Writer) error {
	m.mu.Lock()
	var b strings.Builder
	m.writeAnswers(&b)
	m.writeTimes(&b)
	head(&b, "perflab_http_refusals_total", "counter", "Requests that were refused, by reason.")
	for _, reason := range slices.Sorted(maps.Keys(m.refusals)) {
		fmt.Fprintf(&b, "perflab_http_refusals_total{reason=\"%s\"} %d\n", label(reason), m.refusals[reason])
	}
	gauges := slices.Clone(m.gauges)
	m.mu.Unlock()
	for _, g := range gauges { // read without the lock: what they read may be waiting for it
		head(&b, g.name, "gauge", g.help)
		fmt.Fprintf(&b, "%s %s\n", g.name, number(g.read()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (m *Meter) writeAnswers(b *strings.Builder) {
	head(b, "perflab_http_requests_total", "counter", "Requests that were answered, by route and status.")
	order := func(x, y answer) int { return cmp.Or(cmp.Compare(x.route, y.route), cmp.Compare(x.status, y.status)) }
	for _, a := range slices.SortedFunc(maps.Keys(m.answers), order) {
		fmt.Fprintf(b, "perflab_http_requests_total{route=\"%s\",status=\"%d\"} %d\n", label(a.route), a.status, m.answers[a])
	}
}

func (m *Meter) writeTimes(b *strings.Builder) {
	const name = "perflab_http_request_duration_seconds"
	head(b, name, "histogram", "Time from a request's header to the end of its answer, without event streams.")
	for _, route := range slices.Sorted(maps.Keys(m.times)) {
		d, below := m.times[route], uint64(0)
		for i, bound := range bounds {
			below += d.counts[i]
			fmt.Fprintf(b, "%s_bucket{route=\"%s\",le=\"%s\"} %d\n", name, label(route), number(bound), below)
		}
		fmt.Fprintf(b, "%s_bucket{route=\"%s\",le=\"+Inf\"} %d\n", name, label(route), d.n)
		fmt.Fprintf(b, "%s_sum{route=\"%s\"} %s\n%s_count{route=\"%s\"} %d\n", name, label(route), number(d.sum), name, label(route), d.n)
	}
}

func head(b *strings.Builder, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

var labelEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func label(s string) string { return labelEscaper.Replace(strings.ToValidUTF8(s, "\uFFFD")) }
