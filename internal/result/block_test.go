package result

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: -want +got (run with -update to accept)\n%s", name, diff)
	}
}

// blockRun is a run with every line that a block can have.
func blockRun(t *testing.T) Summary {
	bounds, err := ParseGoodput("ttft:50")
	if err != nil {
		t.Fatal(err)
	}
	calls := steady(200, 20*msec)
	calls[3] = fail(calls[3], Connect)
	return summarize(t, Header{Limit: 64, Rate: 50}, Options{Goodput: bounds, Percentiles: []float64{99.9}}, calls)
}

func TestBlockGolden(t *testing.T) {
	s := blockRun(t)
	s.Simulated = true
	golden(t, "block_gpustack.txt", Block(s, Style{Layout: GPUStack}))
}

func TestBlockShowsWhatIsAsked(t *testing.T) {
	got := Block(blockRun(t), Style{Sections: []string{"e2el", "queue"}, Percentiles: []float64{50, 99.9}})
	for _, want := range []string{"\nP50 E2EL (ms):                           ", "\nP99.9 E2EL (ms):                         ", "----End-to-end Latency----", "\nMean Queue (ms): "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "TTFT") || strings.Contains(got, "P99 ") {
		t.Errorf("shows what was not asked for\n%s", got)
	}
}

func TestBlockLeavesOutWhatIsAbsent(t *testing.T) {
	got := Block(Summary{Figures: map[string]float64{"completed": 1}}, Style{})
	const want = "============ Serving Benchmark Result ============\n" +
		"Successful requests:                     1\n" +
		"==================================================\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestStyleValidate(t *testing.T) {
	for _, st := range []Style{{Layout: "sglang"}, {Sections: []string{"ttf"}}, {Percentiles: []float64{100.1}}, {Percentiles: []float64{math.NaN()}}} {
		if st.Validate() == nil {
			t.Errorf("%+v is taken", st)
		}
	}
	if err := (Style{Layout: GPUStack, Sections: BlockSections(), Percentiles: []float64{0, 100}}).Validate(); err != nil {
		t.Error(err)
	}
}
