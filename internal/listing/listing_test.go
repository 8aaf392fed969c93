package listing_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"perflab/internal/listing"
	"perflab/internal/report/doc"
	"perflab/internal/store"
	"perflab/internal/store/filter"
	"perflab/internal/store/mark"
	"perflab/internal/store/scan"
)

var now = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)

// TestEveryFact: whatever an expression can name can be a column.
func TestEveryFact(t *testing.T) {
	for _, f := range filter.Fields() {
		if _, err := listing.Columns([]string{f.Name}); err != nil {
			t.Error(err)
		}
	}
}

func entries() []store.Entry {
	low, high := 90.0, 110.0
	return []store.Entry{
		{
			Facts:   scan.Facts{ID: "0123456789abcdef", Kind: scan.Run, Name: "=cmd|' /C calc'!A0", Model: "a/b", Verdict: "sound", Reasons: []string{"nothing\tcasts doubt"}, Started: now.Add(-50 * time.Hour), Bytes: 2500, Duration: 90, Simulated: true},
			Marks:   mark.Marks{Tags: []string{"keep", "may"}, Note: "before\nthe driver", Pinned: true, Issues: []mark.KnownIssue{{ID: "clock", Text: "capped"}}},
			Places:  []store.Place{{Root: "/lab", Path: "runs/one"}, {Host: "node-2", Root: "/lab", Path: "copy"}},
			Figures: map[string]scan.Figure{"p99_ttft_ms": {Metric: "p99_ttft_ms", Value: 100.25, Low: &low, High: &high}},
		},
		{Facts: scan.Facts{ID: "fedcba9876543210", Kind: scan.Study, Name: "study"}, Figures: map[string]scan.Figure{"gain": {Metric: "gain", Value: 0.123}, "trials": {Metric: "trials", Value: 7}}},
	}
}

func table(t *testing.T, columns string) string {
	t.Helper()
	c, err := listing.Columns(strings.Split(columns, ","))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := doc.Text(&out, listing.Document(entries(), c, now)); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestDocument: what is missing is "-" and never 0, and the row of a simulated run says so.
func TestDocument(t *testing.T) {
	want := `id          age  duration     size        p99_ttft_ms  gain     trials  tag       issue  pinned  source
0123456789  2 d  1 min 30 s   2.5 KB      100.25       -        -       keep may  clock  yes     SIMULATED
fedcba9876  -    -            -           -            +12.3 %  7       -         -      -       -
`
	if got := table(t, "id,age,duration,size,p99_ttft_ms,gain,trials,tags,issue,pinned"); squeezed(got) != squeezed(want) {
		t.Errorf("got\n%s", got)
	}
	if got := table(t, "name,note"); !strings.Contains(got, "before the driver") {
		t.Errorf("a note broke the table:\n%s", got)
	}
}

func squeezed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "\n")
}

func TestCSV(t *testing.T) {
	c, err := listing.Columns([]string{"name", "started", "p99_ttft_ms", "simulated"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := listing.CSV(&out, entries(), c); err != nil {
		t.Fatal(err)
	}
	want := "name,started,p99_ttft_ms,simulated,source\n'=cmd|' /C calc'!A0,2026-11-09T10:00:00Z,100.25,true,SIMULATED\nstudy,,,false,\n"
	if out.String() != want {
		t.Errorf("got\n%s", out.String())
	}
}

func TestColumnErrors(t *testing.T) {
	for name, want := range map[string]string{"modle": "did you mean model?", "": `there is no column ""`, "p99_tft_ms": "did you mean p99_ttft_ms?", "zzzzzzzzzz": "columns are facts, such as id, name"} {
		if _, err := listing.Columns([]string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestShow(t *testing.T) {
	var out bytes.Buffer
	e := entries()[0]
	if err := doc.Text(&out, listing.Show(e, entries()[1:], []listing.File{{Name: "calls.jsonl", Bytes: 1}}, now)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"SIMULATED: these are figures of a model", "verdict sound: nothing casts doubt", "started 2026-11-09 10:00 UTC (2 d)", "place /lab/runs/one", "place node-2:/lab/copy",
		"P99 TTFT (ms) 100.25 90.00 to 110.00", "tags keep may", "pinned yes", "note before the driver", "known issue clock: capped",
		"What lies in it (1; perflab list --all parent=0123456789):", "fedcba9876 study", "calls.jsonl 1 byte",
	} {
		if !strings.Contains(squeezed(out.String()), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}

func TestAge(t *testing.T) {
	for before, want := range map[time.Duration]string{0: "just now", 59 * time.Second: "just now", time.Minute: "1 min", 23*time.Hour + 59*time.Minute: "23 h", 400 * 24 * time.Hour: "400 d", -time.Hour: "2026-11-11 13:00"} {
		if got := listing.Age(now, now.Add(-before)); got != want {
			t.Errorf("%v before: %q, want %q", before, got, want)
		}
	}
}
