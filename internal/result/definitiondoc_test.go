package result

import (
	"go/ast"
	"go/parser"
	source "go/token"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDefinitionsAreExplained holds the table against the constants, and what
// it says they are of against the metric table.
func TestDefinitionsAreExplained(t *testing.T) {
	f, err := parser.ParseFile(source.NewFileSet(), "definition.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	tags := map[Definition]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == "Definition" {
				s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				tags[Definition(s)] = true
			}
		}
		return true
	})
	delete(tags, Ours)
	if len(tags) < 15 {
		t.Fatalf("found %d constants", len(tags))
	}
	for _, d := range definitions() {
		if !tags[d.Tag] {
			t.Errorf("%s is there twice, or is no constant", d.Tag)
		}
		delete(tags, d.Tag)
		if d.Formula == "" || d.Clients == "" {
			t.Errorf("%s has no formula or no clients", d.Tag)
		}
		for of := range strings.SplitSeq(d.Of, ", ") {
			_, isFamily := familyOf(of)
			if _, err := Lookup(of); err != nil && !isFamily {
				t.Errorf("%s is of %q, which is no family and no figure", d.Tag, of)
			}
		}
	}
	for tag := range tags {
		t.Errorf("%s is not explained", tag)
	}
	if _, ok := Ours.Doc(); ok {
		t.Error("our own definition needs no explanation")
	}
}

func TestComplete(t *testing.T) {
	s := Summary{
		Figures:     map[string]float64{"mean_ttft_ms": 10, "mean_tpot_ms": 5, "mean_queue_ms": 3, "completed": 2},
		Definitions: map[string]Definition{"ttft": FirstMessage, "tpot": E2EPerToken, "max_output_tokens_per_s": InverseGapPeak},
	}
	s.Complete(Summary{
		Figures:   map[string]float64{"mean_ttft_ms": 10.0000001, "p90_ttft_ms": 12, "mean_tpot_ms": 4, "p90_tpot_ms": 6, "mean_itl_ms": 3, "mean_queue_ms": 4, "max_queue_ms": 5, "max_output_tokens_per_s": 7, "completed": 3},
		Intervals: map[string][2]float64{"mean_ttft_ms": {9, 11}, "p90_ttft_ms": {11, 13}, "mean_tpot_ms": {3, 5}, "p90_tpot_ms": {5, 7}},
		Samples:   map[string]int{"ttft": 2, "tpot": 2, "itl": 2},
		Failures:  map[Class]int{EarlyClose: 1},
	}, "itl")
	want := Summary{
		Figures:     map[string]float64{"mean_ttft_ms": 10, "p90_ttft_ms": 12, "mean_tpot_ms": 5, "mean_queue_ms": 3, "completed": 2},
		Definitions: s.Definitions,
		Intervals:   map[string][2]float64{"mean_ttft_ms": {9, 11}, "p90_ttft_ms": {11, 13}},
		Samples:     map[string]int{"ttft": 2},
		Failures:    map[Class]int{EarlyClose: 1},
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{90}, s.Percentiles()); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"ttft", "tpot", "queue"}, s.Sections()); d != "" {
		t.Error(d)
	}
}
