package lab

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/arch"
	"perflab/internal/engine"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/sim"
	"perflab/internal/stat"
	"perflab/internal/study"
	"perflab/internal/tune"
	"perflab/internal/tune/journal"
)

// simulatorName is a name of this test binary under which it is perflab sim.
const simulatorName = "perflab-simulator"

// standInSim serves the simulated engine of a command line of perflab sim, of
// which package cli has the real one, and which lab may not import.
func standInSim() {
	time.AfterFunc(2*time.Minute, func() { os.Exit(3) })
	fs := flag.NewFlagSet("sim", flag.ExitOnError)
	gpu, gpus, file := fs.String("gpu", "", ""), fs.Int("gpus", 1, ""), fs.String("questions", "", "")
	var d stat.Declared
	fs.Float64Var(&d.Accuracy, "accuracy", 1, "")
	fs.Float64Var(&d.Flips, "flips", 0, "")
	fs.Float64Var(&d.Agreement, "agreement", 1, "")
	fs.StringVar(&d.Numerics, "numerics", "", "")
	startup := fs.Duration("startup", 0, "")
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	check(fs.Parse(os.Args[2:]))
	cmd, err := engine.Parse(fs.Args())
	check(err)
	model, err := arch.LookupModel(cmd.Model)
	check(err)
	device, err := arch.LookupAccelerator(*gpu)
	check(err)
	cfg, err := cmd.Resolve(model, device, *gpus)
	check(err)
	core, err := sim.New(cfg, sim.Options{})
	check(err)
	set, err := study.ReadQuestions(*file)
	check(err)
	o := sim.ServerOptions{Declared: d, StartupDelay: *startup}
	for _, q := range set {
		o.Questions = append(o.Questions, sim.Question{Text: q.Text, Right: q.Gold, Wrong: q.Wrong()})
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", cfg.Port))
	check(err)
	server := sim.NewServer(core, o)
	go server.Run(context.Background())
	check(http.Serve(l, server))
}

// asked is a study of a kind of runtime with questions, and the file of them.
func asked(t *testing.T, kind string, n int) *session {
	t.Helper()
	s, err := study.Parse("t.yaml", []byte(strings.Replace(small, "kind: predicted", "kind: "+kind, 1)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var lines []byte
	for i := range n {
		lines = appendLine(lines, map[string]string{
			"question": fmt.Sprintf("Ann has %d pens and buys %d more. How many has she?", i, i+1),
			"answer":   fmt.Sprintf("She has %d+%d=<<%d>>%d.\n#### %d", i, i+1, 2*i+1, 2*i+1, 2*i+1),
		})
	}
	s.Accuracy = &study.Accuracy{Questions: filepath.Join(dir, "q.jsonl"), Concurrency: 200, Declared: &study.Declarations{Base: 0.82, Effects: []study.Effect{
		{When: study.Values{"kv_cache_dtype": "fp8"}, Change: "-6pt", Flips: "2pt", Agreement: 0.6},
		{When: study.Values{"model": "Qwen/Qwen3-8B-FP8"}, Flips: "0.2pt", Agreement: 0.9},
	}}}
	if err := os.WriteFile(s.Accuracy.Questions, lines, 0o644); err != nil {
		t.Fatal(err)
	}
	warmups := 0
	s.Bench.Warmups, s.Bench.TelemetryS = &warmups, new(0.0)
	l := newSession(s, Options{Dir: filepath.Join(dir, "out"), Self: filepath.Join(dir, simulatorName), Predictor: replay{}})
	l.Workloads[0].RandomInputLen, l.Workloads[0].RandomOutputLen = 16, 4
	l.Runtime.StartupS = 0.001
	link(dir, simulatorName)
	l.studyDir = &directory{path: l.Dir}
	if err := os.MkdirAll(filepath.Join(l.Dir, "trials"), 0o755); err != nil {
		t.Fatal(err)
	}
	return l
}

// evaluated evaluates a proposal as a study does, and keeps it.
func (l *session) evaluated(t *testing.T, p tune.Proposal) *trialRecord {
	t.Helper()
	p.Workloads = []string{"a"}
	dir := l.studyDir.trial(p.Trial)
	if j := l.studyDir.journal; j == nil { // it has a note where a busy machine spoils a run
		l.studyDir.journal = journalOf(t, p)
	} else if err := j.Append(journal.Record{Kind: journal.KindProposed, Proposal: &p}); err != nil {
		t.Fatal(err)
	}
	r, err := l.evaluate(t.Context(), p, dir)
	if err != nil {
		t.Fatal(err)
	}
	end := r.observation()
	if err := l.studyDir.journal.Append(journal.Record{Kind: journal.KindObserved, Observation: &end}); err != nil {
		t.Fatal(err)
	}
	if err := rundir.WriteJSON(filepath.Join(dir, trialFile), r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAccuracy: a launch that is asked has its answers, the figures of them and
// the texts; the guard rejects a declared loss of six points and takes a
// checkpoint that loses nothing. A simulated engine and a prediction answer
// alike.
func TestAccuracy(t *testing.T) {
	base := tune.Config{"engine": "vllm", "model": "Qwen/Qwen3-8B"}
	fp8 := tune.Config{"engine": "vllm", "model": "Qwen/Qwen3-8B-FP8"}
	kv := tune.Config{"engine": "vllm", "model": "Qwen/Qwen3-8B", "kv_cache_dtype": "fp8"}
	answers := map[string]string{}
	for _, kind := range []string{study.Predicted, study.Simulated} {
		l := asked(t, kind, 400)
		first := l.evaluated(t, tune.Proposal{Trial: 1, Stage: tune.BaselineStage, Config: base, Questions: true})
		if first.Status != tune.Measured || len(first.Answers) != 200 {
			t.Fatalf("%s: %s (%s): %d answers, %q", kind, first.Status, first.Reason, len(first.Answers), first.Notes)
		}
		o := first.observation()
		figure, ok := o.Figures["a"][tune.AccuracyFigure]
		if want := float64(strings.Count(o.Answers, "1")) / 200; !ok || figure != want || figure < 0.74 || figure > 0.9 {
			t.Errorf("%s: accuracy %v, want %v", kind, figure, want)
		}
		if _, ok := first.Runs[0].Summary.Figures[tune.AccuracyFigure]; ok {
			t.Errorf("%s: the run has a figure of the questions", kind)
		}
		if _, ok := o.Figures["a"][tune.AgreementFigure]; ok {
			t.Errorf("%s: the first launch agrees with nothing", kind)
		}
		if !slices.ContainsFunc(first.Notes, func(s string) bool { return strings.HasPrefix(s, "SIMULATED") }) {
			t.Errorf("%s: notes %q", kind, first.Notes)
		}
		b, err := os.ReadFile(filepath.Join(l.studyDir.trial(1), answersFile))
		if err != nil || strings.Count(string(b), "\n") != 200 || strings.Count(string(b), `"simulated":true`) != 200 {
			t.Errorf("%s: the answers are kept as %.200s: %v", kind, b, err)
		}

		g := l.Accuracy.Guard(0.02)
		second := l.evaluated(t, tune.Proposal{Trial: 2, Stage: tune.RaceStage, Config: kv, Questions: true, Compare: true})
		d, ok := g.Judge("FP8 KV cache", first.Answers, second.Answers)
		if ok || d.Change > -0.02 || d.Margin != 0.02 || d.Reason != "" {
			t.Errorf("%s: a loss of six points passes: %+v", kind, d)
		}
		if share := second.AnswerFigures[tune.AgreementFigure]; share < 0.35 || share > 0.85 {
			t.Errorf("%s: agreement %v, declared 0.6", kind, share)
		}
		third := l.evaluated(t, tune.Proposal{Trial: 3, Stage: tune.RaceStage, Config: fp8, Questions: true, Compare: true})
		if d, ok := g.Judge("FP8", first.Answers, third.Answers); !ok {
			t.Errorf("%s: no loss is rejected: %+v", kind, d)
		}
		if share := third.AnswerFigures[tune.AgreementFigure]; share < 0.7 || share >= 1 {
			t.Errorf("%s: agreement %v, declared 0.9", kind, share)
		}
		answers[kind] = first.Answers + " " + second.Answers + " " + third.Answers
		if kind == study.Simulated {
			continue // two seconds a launch
		}
		fourth := l.evaluated(t, tune.Proposal{Trial: 4, Stage: tune.BaselineStage, Config: base})
		if fourth.Answers != "" || fourth.AnswerFigures[tune.AgreementFigure] != 1 {
			t.Errorf("%s: the baseline again: %q, %v", kind, fourth.Answers, fourth.AnswerFigures)
		}
	}
	if answers[study.Simulated] != answers[study.Predicted] {
		t.Errorf("simulated  %s\npredicted %s", answers[study.Simulated], answers[study.Predicted])
	}
}

// answering is a deployment that answers each question by a function of its prompt.
func answering(t *testing.T, reply func(prompt string) (text, finish string, ok bool)) *dying {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Messages    []struct{ Content string }
			Temperature *float64
			MaxTokens   int `json:"max_tokens"`
		}
		b, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(b, &q)
		}
		if err != nil || q.Temperature == nil || *q.Temperature != 0 || len(q.Messages) != 1 {
			t.Errorf("the request is not greedy: %s: %v", b, err)
			return
		}
		text, finish, ok := reply(q.Messages[0].Content)
		if !ok {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		quoted, _ := json.Marshal(text)
		fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":%q}]}\n\ndata: [DONE]\n\n", quoted, finish)
	}))
	t.Cleanup(srv.Close)
	return &dying{target: srv.URL, done: make(chan struct{})}
}

// TestUnanswered: failed calls are wrong answers, and too many of them none.
func TestUnanswered(t *testing.T) {
	for _, tt := range []struct {
		fail int
		want string // how the answers begin
		note string
	}{
		{0, "1111", ""},
		{2, "0011", "2 of 40 questions were not answered and count as wrong: "},
		{3, "", "3 of 40 questions were not answered, so the answers count for nothing: "},
	} {
		l := asked(t, study.Process, 40)
		l.Accuracy.Declared, l.Runtime.Kind = nil, study.Process
		d := answering(t, func(prompt string) (string, string, bool) {
			for i := range tt.fail {
				if strings.Contains(prompt, fmt.Sprintf("Ann has %d pens", i)) {
					return "", "", false
				}
			}
			var pens, more int
			if _, err := fmt.Sscanf(prompt, "Ann has %d pens and buys %d more.", &pens, &more); err != nil {
				t.Error(err)
			}
			if pens == 39 {
				return "that is a long", "length", true
			}
			return fmt.Sprintf("It is\n#### %d", pens+more), "stop", true
		})
		r := &trialRecord{Trial: outcome.Trial{Status: tune.Measured}}
		p := tune.Proposal{Trial: 1, Config: tune.Config{"model": "m"}, Questions: true}
		if err := os.MkdirAll(l.studyDir.trial(1), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := (&evaluation{session: l, p: p, t: r, dir: l.studyDir.trial(1)}).askQuestions(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(r.Notes, " ")
		_, has := r.AnswerFigures[tune.AccuracyFigure]
		if !strings.HasPrefix(r.Answers, tt.want) || (tt.want == "") != (r.Answers == "") || has != (tt.want != "") || !strings.Contains(notes, tt.note) || strings.Contains(notes, "SIMULATED") {
			t.Errorf("%d fail: %q, %v, %s", tt.fail, r.Answers, r.AnswerFigures, notes)
		}
		if !strings.Contains(notes, "1 of 40 answers were cut off at max_tokens") {
			t.Errorf("%d fail: %s", tt.fail, notes)
		}
	}
}

// TestQuestionsChanged: later trials are asked what the first one was.
func TestQuestionsChanged(t *testing.T) {
	l := asked(t, study.Predicted, 10)
	p := tune.Proposal{Trial: 1, Stage: tune.RaceStage, Config: tune.Config{"engine": "vllm", "model": "Qwen/Qwen3-8B"}, Questions: true}
	l.evaluated(t, p)
	if err := os.WriteFile(l.Accuracy.Questions, []byte(`{"prompt": "Name the capital of France in one word.", "answer": "Paris"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Trial, p.Workloads = 2, []string{"a"}
	if _, err := l.evaluate(t.Context(), p, l.studyDir.trial(2)); err == nil || !strings.Contains(err.Error(), "are not those that earlier trials were asked") {
		t.Errorf("other questions: %v", err)
	}
}

// TestAgreement: the share of a continuation that is common, in words.
func TestAgreement(t *testing.T) {
	base := &launchContinuations{Texts: []string{"a b c d", "", "x y"}}
	for want, texts := range map[float64][]string{
		1:     {"a b  c d e", "z", "x y"},
		0.375: {"a b c e", "q", "y"},
		0:     {"", "", ""},
	} {
		if got, ok := (launchContinuations{Texts: texts}).agreement(base); !ok || got != want {
			t.Errorf("%q: %v %v, want %v", texts, got, ok, want)
		}
	}
	if _, ok := (launchContinuations{Texts: []string{"a"}}).agreement(nil); ok {
		t.Error("it agrees with nothing")
	}
	if _, ok := (launchContinuations{Texts: []string{"a"}}).agreement(&launchContinuations{Texts: []string{""}}); ok {
		t.Error("it agrees with an empty text")
	}
}
