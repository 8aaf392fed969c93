package audit

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"perflab/internal/interop"
)

// Every type is there once, says what it finds and when it holds, and its
// findings have its severity.
func TestChecks(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$|^[a-z]+$`)
	severity := map[string]Severity{}
	for _, c := range slices.Concat(RunChecks(), AcrossChecks()) {
		if _, twice := severity[c.Type]; twice || !kebab.MatchString(c.Type) || c.Severity.rank() < 0 || !strings.HasSuffix(c.Doc, ".") || !strings.HasSuffix(c.Holds, ".") {
			t.Errorf("%+v", c)
		}
		severity[c.Type] = c.Severity
	}
	for _, f := range audited(t, "# Doc\n\n```\n"+guideBlock+"```\n\n```\n"+with(t, guideBlock, "P99 TTFT (ms): 9000", "Mean ITL (ms): 2")+"```\n\n```\n"+vllmBlock+"```\n") {
		if severity[f.Type] != f.Severity {
			t.Errorf("%s is %q, its check %q", f.Type, f.Severity, severity[f.Type])
		}
	}
}

// What lies in the client is said once for a file, with the place of each run.
func TestGather(t *testing.T) {
	fs := audited(t, "# Doc\n\n```\n"+guideBlock+"```\n\n```\n"+guideBlock+"```\n\n```\n"+guideBlock+"```\n")
	i := slices.IndexFunc(fs, func(f Finding) bool { return f.Type == "tpot-includes-first" })
	if i < 0 || len(fs[i].Also) != 2 {
		t.Fatalf("%+v", fs)
	}
	lines := []int{fs[i].Run.Place.Line, fs[i].Also[0].Run.Place.Line, fs[i].Also[1].Run.Place.Line}
	if lines[0] >= lines[1] || lines[1] >= lines[2] || fs[i].Also[1].Place.Line <= lines[2] {
		t.Errorf("of runs at %v, the last at %s", lines, fs[i].Also[1].Place)
	}
}

// What differs by more than its numbers is said apart.
func TestGatherApart(t *testing.T) {
	got := Gather([]Finding{
		{Type: "a", Severity: Error, Text: "1 run of 2.50 s is wrong"}, {Type: "a", Severity: Error, Text: "12 runs of 3 s is wrong"},
		{Type: "a", Severity: Error, Text: "1 run of 2.50 s is late"}, {Type: "b", Severity: Error, Text: "1 run of 2.50 s is wrong"}, {Type: "a", Severity: Note, Text: "1 run of 2.50 s is wrong"},
	})
	if len(got) != 4 || len(got[0].Also) != 1 || got[0].Also[0].Text != "12 runs of 3 s is wrong" {
		t.Errorf("%+v", got)
	}
}

func TestInterval(t *testing.T) {
	two := Interval{1.5, 2.5}
	for _, tt := range []struct {
		name      string
		got, want Interval
	}{
		{"plus", two.plus(exactly(1)), Interval{2.5, 3.5}},
		{"minus", two.minus(two), Interval{-1, 1}},
		{"times", two.times(Interval{-1, 3}), Interval{-2.5, 7.5}},
		{"over", exactly(3).Over(two), Interval{1.2, 2}},
		{"over what may be nothing", two.Over(Interval{-0.5, 0.5}), Interval{3, math.Inf(1)}},
		{"widen", two.widen(0.1), Interval{1.35, 2.75}},
	} {
		if math.Abs(tt.got.Lo-tt.want.Lo) > 1e-12 || tt.got.Hi != tt.want.Hi && math.Abs(tt.got.Hi-tt.want.Hi) > 1e-12 {
			t.Errorf("%s: %v, want %v", tt.name, tt.got, tt.want)
		}
	}
	printed := of(interop.Figure{Value: 0.1 + 0.2, Half: 0.05})
	if !printed.Meets(exactly(0.35)) || !printed.Meets(exactly(0.25)) || printed.Meets(exactly(0.3501)) || printed.above(exactly(0.25)) {
		t.Error("a figure of one decimal stands for what rounds to it, bounds included")
	}
}

func FuzzFiles(f *testing.F) {
	for _, s := range []string{vllmBlock, guideBlock, singleBlock} {
		f.Add("# Qwen/Qwen3-32B on 8 x H100\n" + s + s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, found := range filesAudited([]interop.File{interop.Read("f.md", []byte(text))}, Options{}) {
			if found.Text == "" || found.Type == "" || found.Severity.rank() < 0 {
				t.Errorf("%+v", found)
			}
		}
	})
}

// filesAudited are the findings on the runs of files, in their order.
func filesAudited(files []interop.File, o Options) []Finding {
	var out []Finding
	for i := range files {
		out = append(out, Runs(&files[i], o)...)
	}
	out = append(out, Across(files)...)
	Sort(out, files)
	return out
}
