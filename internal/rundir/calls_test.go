package rundir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
)

// TestDigest: of a run whose calls were not all kept there is a digest, which gives the
// figures without reading the calls; where the calls are others, they count.
func TestDigest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	calls := someCalls(2000)
	w := startRun(t, dir, calls)
	h := result.Header{Schema: "perflab.run/1", Model: "m", Requests: len(calls), Spec: []byte("{}")}
	acc, err := result.NewLimited(h, result.Options{}, result.Limits{Bytes: 100_000, Some: 50_000, Rows: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	for i := range calls {
		acc.Add(&calls[i])
	}
	w.Condensed(acc)
	if err := w.Finish(&result.Client{Wall: time.Second, Procs: 2}, &result.Summary{}, nil); err != nil {
		t.Fatal(err)
	}
	opened := func(open func(string) (*Run, error)) (*Run, result.Summary) {
		t.Helper()
		r, err := open(dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := r.Resummarise()
		if err != nil {
			t.Fatal(err)
		}
		return r, s
	}
	short, s := opened(OpenRun)
	if short.Every < 2 || short.Len() != len(calls) || len(short.Calls) >= len(calls)/2 || short.Whole() != nil {
		t.Errorf("the digest has %d of %d calls, one in %d", len(short.Calls), short.Len(), short.Every)
	}
	n := 0
	for range short.All() {
		n++
	}
	whole, exact := opened(OpenCalls)
	if whole.Every != 1 || n != len(calls) || len(whole.Calls) != n || len(s.Approximate) == 0 || len(exact.Approximate) > 0 {
		t.Errorf("%d and %d of %d calls; approximate %v and %v", n, len(whole.Calls), len(calls), s.Approximate, exact.Approximate)
	}
	if d := cmp.Diff(exact.Figures["p99_ttft_ms"], s.Figures["p99_ttft_ms"]); d != "" {
		t.Error(d)
	}
	if err := os.Truncate(filepath.Join(dir, CallsFile), 1000); err != nil {
		t.Fatal(err)
	}
	if cut, _ := opened(OpenRun); cut.Len() >= len(calls) {
		t.Errorf("%d calls of a file that was cut", cut.Len())
	}
}
