package bench

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"perflab/internal/load"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/stat"
	"perflab/internal/verdict"
	"perflab/internal/workload"
)

// slow answers each request with ten tokens after a time that scatters.
type slow struct {
	mu      sync.Mutex
	rng     *rand.Rand
	scatter float64 // standard deviation of the logarithm
}

func (s *slow) Send(_ context.Context, start time.Time, r workload.Request) result.Call {
	s.mu.Lock()
	takes := time.Duration(float64(100*time.Millisecond) * math.Exp(s.scatter*s.rng.NormFloat64()))
	s.mu.Unlock()
	c := result.Call{Sent: time.Since(start), Usage: &result.Usage{Completion: 10}}
	time.Sleep(takes / 2)
	c.Chunks = append(c.Chunks, result.Chunk{At: time.Since(start), Tokens: 1})
	time.Sleep(takes - takes/2)
	c.End = time.Since(start)
	c.Chunks = append(c.Chunks, result.Chunk{At: c.End, Tokens: 9, Read: 1})
	c.Reads = 2
	return c
}

// TestUntilPrecision: on a steady engine a run ends as soon as its figure is known, on a noisy one
// it goes on to its last request. What is in flight then is answered, and the run is a whole one.
func TestUntilPrecision(t *testing.T) {
	for _, tt := range []struct {
		name    string
		scatter float64
		metric  string
		rate    workload.Rate
		ended   bool
		from    int // requests
		to      int
	}{
		{"steady", 0.02, "", 0, true, stat.WatchEnds(4), 240},
		{"scatters", 0.2, "", 0, true, 300, 1900},
		{"noisy", 1.5, "", 0, false, 2000, 2000},
		{"steady latency", 0.02, "mean_steady_ttft_ms", 0, true, stat.WatchEnds(4), stat.WatchEnds(4) + 4},
		{"a percentile takes longer", 0.1, "p90_steady_e2el_ms", 0, true, 200, 1900},
		{"at a rate", 0.05, "", 20, true, stat.WatchEnds(1), 300},
	} {
		synctest.Test(t, func(t *testing.T) {
			spec := workload.Spec{NumPrompts: 2000, UntilPrecision: "2%", UntilMetric: tt.metric, Rate: tt.rate, RandomInputLen: 8, RandomOutputLen: 10}
			if tt.rate == 0 {
				spec.MaxConcurrency = 4
			}
			spec = spec.Defaults()
			if err := (Spec{Workload: spec}).checkPrecision(); err != nil {
				t.Fatal(tt.name, err)
			}
			w, err := workload.Open(spec)
			if err != nil {
				t.Fatal(tt.name, err)
			}
			v := watch(spec)
			var calls []result.Call
			stats, err := load.Run(t.Context(), w.All(), []load.Sender{&slow{rng: stat.Stream(1, tt.name), scatter: tt.scatter}},
				v.options(load.Options{MaxConcurrency: spec.MaxConcurrency}), func(c result.Call) {
					v.add(&c)
					calls = append(calls, c)
				})
			if err != nil || stats.Partial {
				t.Fatalf("%s: %+v, %v", tt.name, stats, err)
			}
			p := v.found()
			if p.Ended != tt.ended || len(calls) < tt.from || len(calls) > tt.to {
				t.Errorf("%s: %d requests, ended %v (%+v), want %v after %d to %d", tt.name, len(calls), p.Ended, p, tt.ended, tt.from, tt.to)
			}
			if p.Half == nil || p.Ended != (*p.Half <= p.Asked) {
				t.Errorf("%s: %+v", tt.name, p)
			}
			stats.Client.Precision = p
			s, err := verdict.Summarize(result.Header{Limit: spec.MaxConcurrency}, &stats.Client, result.Options{}, func(yield func(result.Call) bool) {
				for _, c := range calls {
					if !yield(c) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(tt.name, err)
			}
			if truth := 4 * 10 / 0.1 / math.Exp(tt.scatter*tt.scatter/2); tt.ended && tt.metric == "" && tt.rate == 0 {
				if off := math.Abs(s.Figures["steady_output_throughput"]/truth - 1); off > 1.5**p.Half {
					t.Errorf("%s: the steady throughput is off by %.4f, and known to %.4f", tt.name, off, *p.Half)
				}
			}
			want := map[bool]string{true: "the run ended after", false: "the run came to its end with steady_output_throughput known to ±"}[tt.ended]
			if c, _ := s.Verdict.Check(result.CheckPrecision); !strings.Contains(c.Text, want) || !strings.Contains(s.Verdict.Text(), c.Text) || s.Partial {
				t.Errorf("%s: partial %v, %q", tt.name, s.Partial, c.Text)
			}
		})
	}
}

// TestRunUntilPrecision: a run over HTTP that ends early is whole, keeps what it found, and says so again
// when it is opened.
func TestRunUntilPrecision(t *testing.T) {
	l := listen(t)
	behind := httputil.NewSingleHostReverseProxy(must(url.Parse(l.url)))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(10 * time.Millisecond) // so that what this machine adds is a small part
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	l.url = s.URL
	spec := l.spec(workload.Spec{NumPrompts: 2000, MaxConcurrency: 2, UntilPrecision: "90%", RandomInputLen: 8, RandomOutputLen: 2})
	dir := filepath.Join(t.TempDir(), "run")
	out, err := Runner{Spec: spec, Dir: dir}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := int(out.Summary.Figures["completed"])
	if p := out.Client.Precision; p == nil || !p.Ended || n < stat.WatchEnds(2) || n >= 2000 || out.Summary.Partial {
		t.Errorf("%d requests, partial %v, %+v", n, out.Summary.Partial, p)
	}
	if out.Totals.Requests != n {
		t.Errorf("the totals are of %d requests, %d were sent", out.Totals.Requests, n)
	}
	r, err := rundir.OpenRun(dir)
	if err != nil || r.Partial || r.Header.Requests != 0 {
		t.Fatalf("partial %v, planned %d, %v", r.Partial, r.Header.Requests, err)
	}
	if c, _ := out.Summary.Verdict.Check(result.CheckPrecision); !strings.Contains(c.Text, "steady_output_throughput is known to ±") {
		t.Error(c.Text)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestWatchedFigures: what runs of different lengths do not compare by is refused.
func TestWatchedFigures(t *testing.T) {
	closed, rate := workload.Spec{MaxConcurrency: 4}, workload.Spec{Rate: 4}
	for _, tt := range []struct {
		name string
		w    workload.Spec
		want string // "": it can be watched
	}{
		{"steady_output_throughput", closed, ""},
		{"steady_total_token_throughput", closed, ""},
		{"steady_request_throughput", closed, ""},
		{"steady_request_throughput", rate, "is that of the arrivals"},
		{"mean_steady_e2el_ms", rate, ""},
		{"p99_steady_ttft_ms", closed, ""},
		{"median_steady_tpot_ms", closed, ""},
		{"output_throughput", closed, "over the steady part of a run"},
		{"mean_ttft_ms", closed, "over the steady part of a run"},
		{"max_steady_ttft_ms", closed, "over the steady part of a run"},
		{"steady_duration", closed, "over the steady part of a run"},
		{"energy_j", closed, "over the steady part of a run"},
	} {
		err := WatchedFigure(tt.name, tt.w)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	spec := Spec{Targets: []string{"http://a"}, Model: "m", Backend: "openai", Workload: workload.Spec{MaxConcurrency: 4, UntilPrecision: "2%", UntilMetric: "mean_ttft_ms"}.Defaults()}
	if err := spec.Validate(); err == nil || !strings.Contains(err.Error(), "until_metric") {
		t.Error(err)
	}
}
