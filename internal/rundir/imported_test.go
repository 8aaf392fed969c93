package rundir

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/result"
)

func importedRun() (result.Header, result.Summary) {
	h := result.Header{Model: "m", Imported: &result.Imported{Client: "vllm bench serve", Format: "text", File: "doc.md", Line: 7}}
	s := result.Summary{
		Figures:     map[string]float64{"completed": 1000, "mean_ttft_ms": 0.002, "p95_ttft_ms": 0.007, "mean_tpot_ms": 3},
		Definitions: map[string]result.Definition{"ttft": result.FirstMessage, "tpot": result.E2EPerToken},
		Verdict:     result.Verdict{Status: result.Noted, Checks: []result.Check{{Name: "imported", Status: result.Sound, Text: "of doc.md:7"}}},
	}
	return h, s
}

// TestImportedRun: the figures of an imported run stand, with and without
// calls, and no check of ours calls it partial or void.
func TestImportedRun(t *testing.T) {
	h, s := importedRun()
	for _, calls := range [][]result.Call{nil, someCalls(3)} {
		dir := filepath.Join(t.TempDir(), "a", "run")
		if err := WriteImported(dir, h, s, calls); err != nil {
			t.Fatal(err)
		}
		if err := WriteImported(dir, h, s, calls); err == nil || !strings.Contains(err.Error(), "exists already") {
			t.Errorf("a second import over the first: %v", err)
		}
		r, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Resummarise()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s, got); d != "" || r.Partial {
			t.Errorf("partial %v, figures:\n%s", r.Partial, d)
		}
		if d := cmp.Diff([]float64{95}, r.Percentiles()); d != "" {
			t.Error(d)
		}
		more, err := r.Resummarise(75, 95)
		if err != nil {
			t.Fatal(err)
		}
		_, computed := more.Figures["p75_ttft_ms"]
		_, mixed := more.Figures["p75_tpot_ms"]
		if computed != (len(calls) > 0) || mixed || more.Figures["p95_ttft_ms"] != 0.007 || more.Figures["completed"] != 1000 {
			t.Errorf("with %d calls: %v", len(calls), more.Figures)
		}
		if _, ok := s.Figures["p75_ttft_ms"]; ok {
			t.Error("the stored figures changed")
		}
	}
}

// TestImportedWithoutFigures: an imported run whose figures are lost is an
// error, and no run of none.
func TestImportedWithoutFigures(t *testing.T) {
	h, s := importedRun()
	dir := filepath.Join(t.TempDir(), "run")
	if err := WriteImported(dir, h, s, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, summaryFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(dir); err == nil || !strings.Contains(err.Error(), summaryFile) {
		t.Errorf("opened with %v", err)
	}
	h.Imported = nil
	if err := WriteImported(filepath.Join(t.TempDir(), "x"), h, s, nil); err == nil {
		t.Error("a run of our own was written as an imported one")
	}
}

// TestImportFails: an import that cannot be finished leaves nothing, of any of its files, and
// can be made again; so can one of which a killed process left a part.
func TestImportFails(t *testing.T) {
	out := t.TempDir()
	h, s := importedRun()
	bad := h
	bad.Imported = nil
	imports := []Import{
		{File: "a", Dir: filepath.Join(out, "a"), Runs: []ImportedRun{{Dir: "1", Header: h, Summary: s}}},
		{File: "none", Runs: nil},
		{File: "b", Dir: filepath.Join(out, "b"), Runs: []ImportedRun{{Dir: "1", Header: h, Summary: s}, {Dir: "2", Header: bad, Summary: s}}},
	}
	if err := WriteImports(imports); err == nil || !strings.Contains(err.Error(), "does not say where") {
		t.Errorf("a run that cannot be written: %v", err)
	}
	if left, _ := os.ReadDir(out); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := WriteImported(filepath.Join(out, "b"+importing, "1"), h, s, nil); err != nil { // as a kill leaves it
		t.Fatal(err)
	}
	imports[2].Runs[1].Header = h
	if err := WriteImports(imports); err != nil {
		t.Fatal(err)
	}
	dirs, err := OpenImport(filepath.Join(out, "b"))
	if err != nil || len(dirs) != 2 || !exists(filepath.Join(out, "a", "1", summaryFile)) {
		t.Errorf("runs %v (%v)", dirs, err)
	}
	if left, _ := os.ReadDir(out); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
	if err := WriteImports(imports[2:]); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second import over the first: %v", err)
	}
}
