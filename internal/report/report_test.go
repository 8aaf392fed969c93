package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"perflab/internal/block"
	"perflab/internal/outcome"
	"perflab/internal/report/doc"
	"perflab/internal/report/runplot"
	"perflab/internal/result"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, write func(io.Writer) error) string {
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
	return b.String()
}

func TestGoldenStudies(t *testing.T) {
	for name, s := range map[string]outcome.Study{"throughput": throughputStudy(), "latency": latencyStudy()} {
		o := Options{Repeat: "perflab tune " + s.Name + ".yaml"}
		golden(t, name+".md", func(w io.Writer) error { return doc.Markdown(w, must(Study(s, o))) })
		golden(t, name+".html", func(w io.Writer) error { return doc.HTML(w, must(Study(s, o))) })
		golden(t, name+".txt", func(w io.Writer) error { return doc.Text(w, must(Study(s, Options{}))) })
	}
}

func TestGoldenRun(t *testing.T) {
	h, calls := burst(120)
	s := *chat(3792.5, 38065.91, 123.36)
	s.Failures = map[result.Class]int{result.EarlyClose: 2, result.Connect: 0}
	s.Verdict = result.Verdict{Status: result.Noted, Checks: []result.Check{
		{Name: "failures", Status: result.Noted, Text: "2 of 120 calls failed"}, {Name: "identity", Status: result.Sound, Text: "TTFT + TPOT*(n-1) = E2E in every call"}}}
	golden(t, "run.md", func(w io.Writer) error { return doc.Markdown(w, must(Run(h, s, block.Style{}, nil, nil))) })
	golden(t, "run.html", func(w io.Writer) error { return doc.HTML(w, must(Run(h, s, block.Style{}, calls, nil))) })
	golden(t, "run.txt", func(w io.Writer) error { return doc.Text(w, must(Run(h, s, block.Style{}, nil, nil))) })
}

func render(t *testing.T, s outcome.Study) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, f := range map[string]func(io.Writer) error{
		"md":   func(w io.Writer) error { return doc.Markdown(w, must(Study(s, Options{}))) },
		"html": func(w io.Writer) error { return doc.HTML(w, must(Study(s, Options{}))) },
		"text": func(w io.Writer) error { return doc.Text(w, must(Study(s, Options{}))) },
	} {
		var b strings.Builder
		if err := f(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = b.String()
	}
	return out
}

// TestHonesty names what a published study must not hide, in every form.
func TestHonesty(t *testing.T) {
	for form, doc := range render(t, throughputStudy()) {
		for _, want := range []string{"SIMULATED", "2 replicas", "refused by the engine", "void", "Confirmed: baseline and recommendation were launched again", "+49.5 %", "+90.5 %"} {
			if !strings.Contains(strings.ReplaceAll(doc, "&#43;", "+"), want) {
				t.Errorf("%s lacks %q", form, want)
			}
		}
	}
	for form, doc := range render(t, latencyStudy()) {
		for _, want := range []string{"1.63x faster", "Not confirmed: each side of the comparison is a single launch"} {
			if !strings.Contains(doc, want) {
				t.Errorf("%s lacks %q", form, want)
			}
		}
		if strings.Contains(doc, "SIMULATED") {
			t.Errorf("%s says SIMULATED of a measured study", form)
		}
	}
}

// TestSurvey: a list is no comparison. Every block is shown, also those of the
// first and the best, and nothing is an improvement of anything.
func TestSurvey(t *testing.T) {
	s := throughputStudy()
	s.Strategy, s.Cases, s.Confirmed, s.Verdict = "survey", nil, false, "SGLang has the best figure of 2 configurations"
	blocks := 0
	s.Trials = s.Trials[:2]
	for i := range s.Trials {
		s.Trials[i].Stage = "survey"
		s.Trials[i].Runs = runs(chat(4000+float64(i), 1, 1), chat(3000, 1, 1))
		blocks += len(s.Trials[i].Runs)
	}
	s.Stages = []outcome.Stage{{Name: "survey", Trials: []int{1, 2}, Winner: 2, Result: "SGLang has the best figure"}}
	s.Baseline = &outcome.Pick{Trial: 1, Label: "vLLM default", Summary: &s.Trials[0].Runs[0].Summary}
	s.Recommended = &outcome.Pick{Trial: 2, Label: "SGLang", Command: "sglang", Summary: &s.Trials[1].Runs[0].Summary}
	style := regexp.MustCompile(`(?s)<style>.*?</style>`)
	for form, doc := range render(t, s) {
		doc = style.ReplaceAllString(doc, "")
		for _, bad := range []string{"aseline", "ecommended", "ncumbent", "ain of stage", "against", "onfirmed"} {
			if i := strings.Index(doc, bad); i >= 0 && !(bad == "against" && form != "text") { // the plot of one figure against another
				t.Errorf("%s of a survey says %q", form, doc[max(0, i-60):i+len(bad)])
			}
		}
		if n := strings.Count(doc, "Serving Benchmark Result"); form != "text" && n != blocks {
			t.Errorf("%s shows %d blocks of %d", form, n, blocks)
		}
		if form == "md" && !strings.Contains(doc, "| **#2 SGLang** | 4001.00 | 3000.00 |") {
			t.Errorf("the table of the survey lacks its row:\n%s", doc)
		}
	}
}

// TestOneSimulatedRunTaintsAll: a study that forgot to say so is still marked.
func TestOneSimulatedRunTaintsAll(t *testing.T) {
	s := latencyStudy()
	s.Trials[1].Runs[0].Summary.Predicted = true
	for form, doc := range render(t, s) {
		if !strings.Contains(doc, "SIMULATED") {
			t.Errorf("%s does not say SIMULATED", form)
		}
	}
}

// TestMissingFigures renders studies in every state of being unfinished: none
// fails, none shows a zero for a figure that is not there.
func TestMissingFigures(t *testing.T) {
	full := throughputStudy()
	bare := full
	bare.Recommended, bare.Baseline, bare.Cases, bare.Stages, bare.Partial = nil, nil, nil, nil, true
	noFigures := latencyStudy()
	noFigures.Recommended.Summary, noFigures.Cases[0].Recommended, noFigures.Recommended.Gain, noFigures.Cases[0].Gain = nil, nil, nil, nil
	noFigures.Trials[1].Runs = nil
	for name, s := range map[string]outcome.Study{"empty": {}, "no conclusion": bare, "no figures": noFigures} {
		for form, doc := range render(t, s) {
			if regexp.MustCompile(`\b0\.00\b`).MatchString(doc) {
				t.Errorf("%s as %s shows a zero for a missing figure", name, form)
			}
			if name == "no figures" && !strings.Contains(doc, missing) {
				t.Errorf("%s as %s does not say %q", name, form, missing)
			}
		}
	}
}

func TestTextFitsTheScreen(t *testing.T) {
	s := throughputStudy()
	for i := range 40 {
		x := s.Trials[5]
		x.ID = 10 + i
		s.Trials = append(s.Trials, x)
	}
	var b strings.Builder
	if err := doc.Text(&b, must(Study(s, Options{}))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > 29 {
		t.Errorf("%d lines, want at most 29:\n%s", n, b.String())
	}
	if !strings.Contains(b.String(), "*9 ") || !strings.Contains(b.String(), "and 39 more in the report") {
		t.Errorf("the recommendation or the count of the rest is missing:\n%s", b.String())
	}
}

func TestHTMLIsSelfContained(t *testing.T) {
	h, calls := burst(120)
	var run strings.Builder
	if err := doc.HTML(&run, must(Run(h, *chat(1, 1, 1), block.Style{}, calls, nil))); err != nil {
		t.Fatal(err)
	}
	fetches := regexp.MustCompile(`(?i)(src|href|action|data|poster|xmlns)\s*=\s*["']?\s*(https?:)?//|(src|href)\s*=\s*["']?[^"'#\s>]|url\(\s*["']?[^#"']|@import|<(link|iframe|img|object|embed)\b`)
	for name, doc := range map[string]string{"throughput": render(t, throughputStudy())["html"], "latency": render(t, latencyStudy())["html"], "run": run.String()} {
		if m := fetches.FindString(doc); m != "" {
			t.Errorf("%s refers outside itself: %q", name, m)
		}
		if n := strings.Count(doc, "<svg"); n == 0 {
			t.Errorf("%s has no plots", name)
		}
	}
}

func TestEscaping(t *testing.T) {
	s := latencyStudy()
	s.Title, s.Verdict, s.Trials[1].Status, s.Trials[1].Reason = `<img src=x onerror=alert(1)>`, "a `b` <b>|</b>", "refused", "</details><script>alert(2)</script>"
	s.Trials[0].Command = "vllm serve x\n```\n<script>alert(3)</script>"
	docs := render(t, s)
	if n := strings.Count(docs["html"], "<script>"); n != 1 {
		t.Errorf("%d script elements in the page, want its own alone", n)
	}
	for _, bad := range []string{"<img", "<script>alert(1)", "</details><script"} {
		if strings.Contains(docs["html"], bad) || strings.Contains(docs["md"], bad) {
			t.Errorf("%q came through", bad)
		}
	}
	if !strings.Contains(docs["md"], "````bash\nvllm serve x") {
		t.Error("a fence within a command closes the fence around it")
	}
}

func TestPlotsAreWellFormed(t *testing.T) {
	h, calls := burst(200)
	plots := append(Plots(throughputStudy()), Plots(latencyStudy())...)
	plots = append(plots, runplot.Plots(h, calls, 1, nil, "")...)
	if len(plots) != 13 {
		t.Errorf("%d plots, want 13", len(plots))
	}
	for _, p := range plots {
		if p.Half != (p.Phone == "") {
			t.Errorf("%s: half %v, and for a phone %d bytes", p.Name, p.Half, len(p.Phone))
		}
		d := xml.NewDecoder(strings.NewReader("<both>" + p.SVG + p.Phone + "</both>"))
		d.Strict = true
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", p.Name, err, p.SVG)
			}
		}
		for _, bad := range []string{"NaN", "Inf", "<script"} {
			if strings.Contains(p.SVG+p.Phone, bad) {
				t.Errorf("%s holds %s", p.Name, bad)
			}
		}
		if !strings.Contains(p.SVG, "prefers-color-scheme:dark") {
			t.Errorf("%s has no dark colours of its own", p.Name)
		}
	}
	for _, p := range append(Plots(throughputStudy()), runplot.Plots(h, calls, 1, nil, "")...) {
		if !strings.Contains(p.SVG, ">SIMULATED<") || p.Phone != "" && !strings.Contains(p.Phone, ">SIMULATED<") {
			t.Errorf("%s does not say SIMULATED", p.Name)
		}
	}
}

// TestCallsTaintPlots: the header knows the servers that were asked before the
// run; a call knows who answered it.
func TestCallsTaintPlots(t *testing.T) {
	h, calls := burst(10)
	h.Simulated, h.Predicted, calls[7].Sim = false, false, true
	for _, p := range runplot.Plots(h, calls, 1, nil, "") {
		if !strings.Contains(p.SVG, ">SIMULATED<") {
			t.Errorf("%s does not say SIMULATED", p.Name)
		}
	}
}

func TestUnknownLayoutIsRefused(t *testing.T) {
	s, o, st := throughputStudy(), Options{Block: "fancy"}, block.Style{Layout: "fancy"}
	h, _ := burst(1)
	_, studyErr := Study(s, o)
	_, runErr := Run(h, *chat(1, 1, 1), st, nil, nil)
	for name, err := range map[string]error{
		"Study": studyErr, "Run": runErr,
	} {
		if err == nil || !strings.Contains(err.Error(), "fancy") {
			t.Errorf("%s: %v, want an error that names the layout", name, err)
		}
	}
}

func TestEmptyRunHasNoPlots(t *testing.T) {
	failed := []result.Call{{Class: result.Connect}, {Class: result.Connect}}
	for _, calls := range [][]result.Call{nil, failed} {
		if p := runplot.Plots(result.Header{}, calls, 1, nil, ""); len(p) != 0 {
			t.Errorf("%d plots of %d calls without data", len(p), len(calls))
		}
	}
}

func TestWriteErrorIsPassedOn(t *testing.T) {
	full := errors.New("disk full")
	w := writerFunc(func([]byte) (int, error) { return 0, full })
	s := throughputStudy()
	h, _ := burst(1)
	for name, err := range map[string]error{
		"Markdown": doc.Markdown(w, must(Study(s, Options{}))), "HTML": doc.HTML(w, must(Study(s, Options{}))), "StudyText": doc.Text(w, must(Study(s, Options{}))),
		"RunText": doc.Text(w, must(Run(h, *chat(1, 1, 1), block.Style{}, nil, nil))), "RunMarkdown": doc.Markdown(w, must(Run(h, *chat(1, 1, 1), block.Style{}, nil, nil))), "RunHTML": doc.HTML(w, must(Run(h, *chat(1, 1, 1), block.Style{}, nil, nil))),
	} {
		if !errors.Is(err, full) {
			t.Errorf("%s: %v, want %v", name, err, full)
		}
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// must is the document that a run makes.
func must(d doc.Document, err error) doc.Document {
	if err != nil {
		panic(err)
	}
	return d
}
