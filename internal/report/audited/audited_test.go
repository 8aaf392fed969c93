package audited

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/report/doc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("%s (-golden +got; -update rewrites it):\n%s", name, d)
	}
}

func someFindings() Audit {
	at := func(file string, line int) interop.Place {
		return interop.Place{File: file, Line: line, Section: []string{"Results"}}
	}
	return Audit{Files: []string{"a.md", "b|c.md", "clean.md"}, Findings: []audit.Finding{
		{Type: "throughput", Severity: audit.Error, Place: at("a.md", 12), Expected: "50.0 req/s", Text: "100 requests in 2 s are not 60 req/s",
			Figures: []audit.Cited{{Label: "Request throughput (req/s)", Text: "60.00", Line: 12}, {Label: "Benchmark duration (s)", Text: "2.00", Line: 10}}},
		{Type: "burst", Severity: audit.Note, Place: at("a.md", 20), Text: "all requests were sent at once",
			Also: []audit.Finding{{Place: at("a.md", 50), Expected: "5.00 s"}, {Place: at("b|c.md", 4)}}},
		{Type: "unreadable", Severity: audit.Warning, Place: at("b|c.md", 0), Text: "a <table> | that is none"},
	}}
}

func TestAuditGolden(t *testing.T) {
	a := someFindings()
	golden(t, "audit.txt", func(w io.Writer) error { return doc.Text(w, a.Document()) })
	golden(t, "audit.md", func(w io.Writer) error { return doc.Markdown(w, a.Document()) })
	golden(t, "audit.html", func(w io.Writer) error { return doc.HTML(w, a.Document()) })
	golden(t, "audit.json", func(w io.Writer) error { return JSON(w, a) })
}

// TestAuditHidesAndCounts: what is below the severity asked for is not shown,
// and still counted.
func TestAuditHidesAndCounts(t *testing.T) {
	a := someFindings()
	for least, want := range map[audit.Severity]int{audit.Error: 1, audit.Warning: 2, audit.Note: 3, "": 3} {
		a.Least = least
		var text bytes.Buffer
		if err := doc.Text(&text, a.Document()); err != nil {
			t.Fatal(err)
		}
		hides := strings.Contains(text.String(), "not shown")
		if len(a.shown()) != want || hides != (want < 3) || !strings.Contains(text.String(), "1 error, 1 warning, 1 note at 5 places in 3 files") {
			t.Errorf("from %q on: %d findings\n%s", least, len(a.shown()), &text)
		}
	}
	var text bytes.Buffer
	if err := JSON(&text, Audit{Files: []string{"x"}}); err != nil || !strings.Contains(text.String(), `"findings": []`) {
		t.Errorf("no finding is %s, %v", &text, err)
	}
}
