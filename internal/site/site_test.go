package site

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/audit"
	"perflab/internal/interop"
	"perflab/internal/outcome"
	"perflab/internal/report"
	"perflab/internal/report/audited"
	"perflab/internal/result"
	"perflab/internal/tune"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// hostile is a name that would end an element, a string of a script and a path.
const hostile = `</script><script>alert(1)</script>"'&../../x` + "\x1b[31m"

// summary has the figures of a run that was sent all at once.
func summary(total float64, status result.Status) result.Summary {
	return result.Summary{
		Figures: map[string]float64{"completed": 100, "total_token_throughput": total, "output_throughput": total / 4, "mean_ttft_ms": 120, "p99_ttft_ms": 480, "mean_tpot_ms": 21, "mean_e2el_ms": 1e6 / total},
		Verdict: result.Verdict{Status: status, Checks: []result.Check{{Name: "imported", Status: status, Text: "figures of a file"}}},
	}
}

// side is a run of a document.
func side(dir, model, command string, rate, total float64, labels map[string]string) report.Side {
	return report.Side{Name: "imported/" + dir, Summary: summary(total, result.Sound), Header: result.Header{
		Model: model, Workload: "sharegpt", Requests: 100, Rate: rate, Command: command,
		Imported: &result.Imported{Client: "vllm bench serve", File: "report.md", Line: 3, Section: []string{"Results", "1. " + dir}, Labels: labels},
	}}
}

// list is an import with its report.
func list(name, title string, sides ...report.Side) Entry {
	a := audited.Audit{Files: []string{"report.md"}, Findings: []audit.Finding{{Type: "throughput", Severity: audit.Error, Place: interop.Place{File: "report.md", Line: 7}, Text: "the figures contradict each other"}}}
	return OfRuns(name, title, sides, report.List{Title: title, Sides: sides}.Document(), a)
}

// predicted is a study that launched nothing.
func predicted(t *testing.T, title string) Entry {
	t.Helper()
	base, best := summary(2000, result.Sound), summary(4000, result.Sound)
	base.Predicted, best.Predicted, base.Simulated, best.Simulated = true, true, true, true
	trial := func(id int, label string, s result.Summary) outcome.Trial {
		return outcome.Trial{ID: id, Label: label, Engine: "vllm", Command: "vllm serve Qwen/Qwen3-32B --label " + label, Replicas: 1, GPUs: 1, Status: tune.Measured, Stage: "Baseline",
			Runs: []outcome.Run{{Workload: "chat", Dir: "trials/" + label, Summary: s}}}
	}
	s := outcome.Study{
		Schema: "perflab.study/1", Name: "qwen", Title: title, Strategy: "staged", Predicted: true, Simulated: true, Model: "Qwen/Qwen3-32B", Hardware: "1 x NVIDIA H100 PCIe on one node",
		Started: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), Objective: outcome.Objective{Metric: "total_token_throughput", Better: "higher"},
		Workloads: []outcome.Load{{Name: "chat", Title: "Chat", Primary: true, Text: "100 requests", Command: "perflab bench"}},
		Trials:    []outcome.Trial{trial(1, "vLLM", base), trial(2, "vLLM-FP8", best)},
		Stages:    []outcome.Stage{{Name: "Baseline", Trials: []int{1, 2}, Winner: 2}},
		Baseline:  &outcome.Pick{Trial: 1, Label: "vLLM", Command: "vllm serve Qwen/Qwen3-32B", Replicas: 1, Summary: &base},
		Recommended: &outcome.Pick{Trial: 2, Label: "vLLM-FP8", Command: "vllm serve Qwen/Qwen3-32B-FP8 --max-num-seqs 512 --max-num-batched-tokens 16384 --gpu-memory-utilization 0.95",
			Replicas: 1, Summary: &best, Gain: new(1.0)},
	}
	d, err := report.Study(s, report.Options{Dir: "qwen"})
	if err != nil {
		t.Fatal(err)
	}
	return OfStudy("Qwen 3", s, d, audited.Audit{Files: []string{"qwen"}})
}

// laboratory has a study, an import with two models, one without figures and one of hostile names.
func laboratory(t *testing.T) Site {
	t.Helper()
	bare := side("bare", "", "", 0, 0, nil)
	bare.Summary = result.Summary{Figures: map[string]float64{}}
	return Site{Title: "Laboratory", URL: "https://lab.example.org", Date: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Entries: []Entry{
		predicted(t, "Optimizing Qwen3-32B"),
		list("published", "Qwen3 on NVIDIA A100 SXM 80GB",
			side("vLLM", "Qwen/Qwen3-235B-A22B", "vllm serve Qwen/Qwen3-235B-A22B -tp 8", 0, 3792.50, map[string]string{result.LabelGPUs: "8"}),
			side("FP8", "Qwen/Qwen3-235B-A22B-FP8", "vllm serve Qwen/Qwen3-235B-A22B-FP8 -tp 4", 0, 3019.19, map[string]string{result.LabelGPUs: "8"}),
			side("at a rate", "GPT-OSS-20B", "vllm serve GPT-OSS-20B", 4, 900, nil)),
		list("bare", "Nothing in it", bare),
		list(hostile, hostile, side(hostile, hostile, hostile, 0, 10, map[string]string{result.LabelHardware: hostile}), side("two "+hostile, hostile, hostile, 0, 20, nil)),
	}}
}

func filesOf(t *testing.T, s Site) map[string][]byte {
	t.Helper()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// inlined are the style and the scripts of a page, which others test.
var inlined = regexp.MustCompile(`(?s)(<style>|<script>).*?(</style>|</script>)`)

func TestGoldenSite(t *testing.T) {
	files := filesOf(t, laboratory(t))
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, inlined.ReplaceAllString(string(files[name]), "$1$2"))
	}
	const golden = "testdata/site.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("the site (-golden +got; -update rewrites it):\n%s", d)
	}
}

// Whatever order entries come in, the bytes are the same.
func TestDeterministic(t *testing.T) {
	s := laboratory(t)
	first := filesOf(t, s)
	slices.Reverse(s.Entries)
	for name, b := range filesOf(t, s) {
		if string(first[name]) != string(b) {
			t.Errorf("%s depends on the order of the entries", name)
		}
	}
}

var (
	hrefs = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	ids   = regexp.MustCompile(` id="([^"]*)"`)
)

// check reports links that lead nowhere.
func check(t *testing.T, files map[string][]byte, from, link string) {
	t.Helper()
	file, anchor, _ := strings.Cut(link, "#")
	target := from
	if file != "" {
		target = path.Join(path.Dir(from), file)
	}
	b, ok := files[target]
	switch {
	case strings.Contains(link, ":") || strings.HasPrefix(link, "/"):
		t.Errorf("%s leads out of the site: %s", from, link)
	case !ok:
		t.Errorf("%s leads to %s, which is not there", from, link)
	case anchor != "" && !slices.ContainsFunc(ids.FindAllSubmatch(b, -1), func(m [][]byte) bool { return string(m[1]) == anchor }):
		t.Errorf("%s leads to %s, and %s has no such place", from, link, target)
	}
}

func TestLinks(t *testing.T) {
	files := filesOf(t, laboratory(t))
	n := 0
	for name, b := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		for _, m := range hrefs.FindAllSubmatch(b, -1) {
			check(t, files, name, string(m[1]))
			n++
		}
	}
	var rows [][3]string
	text := strings.TrimSuffix(strings.TrimPrefix(string(files["search.js"]), "window.perflabIndex="), ";\n")
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		check(t, files, "index.html", r[1])
	}
	if n < 50 || len(rows) < 10 {
		t.Errorf("%d links and %d rows of the index were looked at", n, len(rows))
	}
}

// Every page is an element tree, and no name in it is one.
func TestWellFormed(t *testing.T) {
	for name, b := range filesOf(t, laboratory(t)) {
		text := string(b)
		if strings.Contains(text, "<script>alert") || strings.Contains(text, "\x1b") {
			t.Errorf("%s has a hostile name as it was", name)
		}
		if name == "search.js" {
			continue
		}
		if strings.HasSuffix(name, ".html") {
			text = regexp.MustCompile(`<(meta|link|br|input)( [^>]*)?>`).ReplaceAllString(inlined.ReplaceAllString(text, ""), `<$1$2/>`)
		}
		text = regexp.MustCompile(` (hidden|open)([ >])`).ReplaceAllString(strings.TrimPrefix(text, "<!doctype html>\n"), ` $1=""$2`)
		dec := xml.NewDecoder(strings.NewReader(text))
		dec.Entity = xml.HTMLEntity
		for {
			if _, err := dec.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Errorf("%s is not well-formed: %v", name, err)
				break
			}
		}
	}
}

func TestResults(t *testing.T) {
	void := side("void", "Qwen/Qwen3-8B", "", 0, 5000, nil)
	void.Summary = summary(5000, result.Voided)
	run := func(dir string, rate, total float64) report.Side {
		return side(dir, "Qwen/Qwen3-8B", "", rate, total, nil)
	}
	for _, c := range []struct {
		name              string
		sides             []report.Side
		best, gain, basis string
	}{
		{"throughput", []report.Side{run("a", 0, 1000), run("b", 0, 1500)}, "b", "+50.0 %", "over a; no interval: one run of each"},
		{"latency at a rate", []report.Side{run("a", 4, 1000), run("b", 4, 1500)}, "b", "1.50x faster", "over a; no interval: one run of each"},
		{"void ones are passed over", []report.Side{run("a", 0, 1000), void, run("b", 0, 1100)}, "b", "+10.0 %", "over a; no interval: one run of each"},
		{"a void first one", []report.Side{void, run("b", 0, 1100)}, "", "", "no conclusion: 1 of 2 runs cannot be believed, the first among them"},
		{"nothing but void", []report.Side{void}, "", "", "no conclusion: the run cannot be believed"},
		{"no figure", []report.Side{{Name: "a"}}, "", "", "no conclusion: no run has the figure"},
		{"the first is best", []report.Side{run("a", 0, 1000), run("b", 0, 1000)}, "a", "none", "the first configuration is the best of 2 runs"},
		{"one of its load", []report.Side{run("a", 0, 1000), run("b", 4, 1000)}, "a", "", "nothing to compare it with"},
		{"per GPU", []report.Side{
			side("a", "m", "vllm serve m -tp 8", 0, 3792.50, nil), side("b", "m", "vllm serve m -tp 4", 0, 3019.19, nil)}, "b", "+59.2 %", "over a, per GPU; no interval: one run of each"},
	} {
		r := list("x", "x", c.sides...).Results
		if len(r) != 1 || r[0].Best != c.best || r[0].Gain != c.gain || r[0].Basis != c.basis {
			t.Errorf("%s: %+v, want %s %s (%s)", c.name, r, c.best, c.gain, c.basis)
		}
	}
}

func TestGPUName(t *testing.T) {
	for text, want := range map[string]string{
		"8 x NVIDIA A100 SXM 80GB on one node": "NVIDIA A100 SXM 80GB", "NVIDIA H100 GPUs": "NVIDIA H100", "6x Spark setup": "NVIDIA GB10 (DGX Spark)", "a toaster": "", "": "",
	} {
		if got := gpuName(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestFeed(t *testing.T) {
	s := laboratory(t)
	var f atomFeed
	if err := xml.Unmarshal(filesOf(t, s)["feed.xml"], &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Entries) != 4 || f.Updated != "2026-03-01T00:00:00Z" || f.Entries[0].ID != "https://lab.example.org/studies/qwen-3.html" || f.Entries[0].Updated != "2026-02-03T04:05:06Z" || !strings.HasPrefix(f.Entries[0].Summary, "SIMULATED: ") {
		t.Errorf("feed: %+v", f)
	}
	s.URL, s.Date = "", time.Time{}
	if err := xml.Unmarshal(s.feed(s.sorted()), &f); err != nil || !strings.HasPrefix(f.ID, "urn:uuid:") {
		t.Errorf("feed without an address: %s, %v", f.ID, err)
	}
	if got := s.Undated(); len(got) != 3 {
		t.Errorf("without a date: %q", got)
	}
	empty := Site{}
	if files := filesOf(t, empty); files["feed.xml"] != nil || len(files) != 2 {
		t.Errorf("an empty site has %v", slices.Collect(maps.Keys(files)))
	}
}

func TestManifest(t *testing.T) {
	b, err := WriteManifest(map[string][]byte{"b": nil, "a": nil})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ReadManifest(b); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "{}", `{"schema":"perflab.site/9"}`} {
		if _, err := ReadManifest([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
