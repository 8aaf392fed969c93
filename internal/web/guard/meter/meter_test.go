package meter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/prometheus"
)

func written(t *testing.T, m *Meter) string {
	t.Helper()
	var b strings.Builder
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWrite(t *testing.T) {
	m := New()
	m.Request("GET /", 200, 5*time.Millisecond)
	m.Request("GET /", 200, 5001*time.Microsecond)
	m.Request("GET /", 500, time.Minute)
	m.Request("GET /events", 200, -1)
	m.Request("", 404, time.Millisecond)
	m.Refusal("wrong token")
	m.Gauge("perflab_queue", "Waiting.", func() float64 { return 1.5 })
	got := written(t, m)
	want := `# HELP perflab_http_requests_total Requests that were answered, by route and status.
# TYPE perflab_http_requests_total counter
perflab_http_requests_total{route="GET /",status="200"} 2
perflab_http_requests_total{route="GET /",status="500"} 1
perflab_http_requests_total{route="GET /events",status="200"} 1
perflab_http_requests_total{route="other",status="404"} 1
# HELP perflab_http_request_duration_seconds Time from a request's header to the end of its answer, without event streams.
# TYPE perflab_http_request_duration_seconds histogram
perflab_http_request_duration_seconds_bucket{route="GET /",le="0.005"} 1
perflab_http_request_duration_seconds_bucket{route="GET /",le="0.01"} 2
perflab_http_request_duration_seconds_bucket{route="GET /",le="0.025"} 2
`
	if !strings.HasPrefix(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for _, line := range []string{`_bucket{route="GET /",le="10"} 2`, `_bucket{route="GET /",le="+Inf"} 3`, `_count{route="GET /"} 3`, `_sum{route="GET /"} 60.010001`, "perflab_queue 1.5", `refusals_total{reason="wrong token"} 1`} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("there is no %s in:\n%s", line, got)
		}
	}
	if strings.Contains(got, `_count{route="GET /events"}`) {
		t.Error("an event stream has a duration")
	}
}

// Prometheus's own form is read again, whatever a route is called.
func TestReadAgain(t *testing.T) {
	m := New()
	m.Request("GET /a\"b\\c\nd\xff", 200, time.Second)
	samples := prometheus.Parse(written(t, m), func(string) bool { return true })
	if len(samples) < 10 {
		t.Errorf("%d samples", len(samples))
	}
	if s := samples[0]; s.Name != "perflab_http_requests_total" || s.Value != 1 || !strings.Contains(fmt.Sprint(s.Labels), "GET /a\"b\\c\nd\uFFFD") {
		t.Errorf("%+v", s)
	}
}

func TestMostSeries(t *testing.T) {
	m := New()
	for i := range 3 * MostSeries {
		m.Request(fmt.Sprint("/", i), 200, 0)
	}
	if n := strings.Count(written(t, m), "\nperflab_http_requests_total{"); n > MostSeries+1 {
		t.Errorf("%d series", n)
	}
}
