package runs_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"perflab/internal/test/storetest"
	"perflab/internal/test/webtest"
	"perflab/internal/web"
)

// BenchmarkList is a page of a list of 10,000 runs and 1,000 studies, as a handler makes it: at first,
// filtered and sorted by a figure, grouped, and of the last page. The worst of a hundred is told too.
func BenchmarkList(b *testing.B) {
	root := b.TempDir()
	storetest.Many(b, root, 10_000, 1_000)
	lab := webtest.Open(b, web.Options{Roots: []string{root}})
	for name, query := range map[string]string{
		"first": "", "filtered": "?q=engine%3Dvllm+p99_ttft_ms%3C200&sort=-output_throughput", "words": "?q=llama&parts=1", "grouped": "?group=config&parts=1", "last": "?page=220",
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				w := httptest.NewRecorder()
				r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/runs"+query, nil)
				r.RemoteAddr = "127.0.0.1:9"
				lab.Handler().ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Body)
				}
				took = append(took, time.Since(began))
			}
			first := took[0]
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms/worst")
			b.ReportMetric(float64(first.Microseconds())/1000, "ms/first")
		})
	}
}

// BenchmarkRun is the page of a run of 1,000 calls, at a second visit.
func BenchmarkRun(b *testing.B) {
	root := b.TempDir()
	storetest.Run{}.Write(b, root, "a")
	lab := webtest.Open(b, web.Options{Roots: []string{root}})
	address := lab.URL + "/run/" + entry(b, lab, "a").ID
	for b.Loop() {
		if a := get(b, address); a.status != http.StatusOK {
			b.Fatal(a.status)
		}
	}
}
