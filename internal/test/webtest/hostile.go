package webtest

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/outcome"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/store"
	"perflab/internal/store/mark"
	"perflab/internal/test/calltest"
	"perflab/internal/test/storetest"
	"perflab/internal/tune"
)

// Bad is a text that breaks a page which writes it as it is: it ends attributes and elements, runs
// scripts, and steers a terminal and the direction of writing.
const Bad = "\"'`></title></textarea><script>alert(1)</script><img src=x onerror=alert(2)>{{.}}${7*7}\x1b[31m\x07\u202e"

// badName is as much of Bad as a file can be called by.
var badName = strings.NewReplacer("/", "_").Replace(Bad)

// Hostile makes results below a root whose every text is Bad: a run, one that is void and failed, one
// under way, an import and a study with logs.
func Hostile(t testing.TB, root string) {
	t.Helper()
	for i, status := range []result.Status{"", result.Voided} {
		hostileRun(t, root, fmt.Sprintf("run%d%s", i, badName), i, status)
	}
	hostileUnderway(t, root)
	hostileImport(t, root)
	hostileStudy(t, root)
}

func hostileRun(t testing.TB, root, name string, n int, status result.Status) {
	t.Helper()
	r := storetest.Run{N: n, Model: "model" + Bad, Command: "vllm serve m --served-model-name '" + Bad + "'", Status: status, Build: "abc" + Bad}
	dir := r.Write(t, root, name)
	h, s := hostileHeader(r), r.Summary()
	s.Verdict.Add(result.Check{Name: "tokens", Status: result.Noted, Text: "check" + Bad})
	storetest.WriteJSON(t, filepath.Join(dir, "header.json"), h)
	storetest.WriteJSON(t, filepath.Join(dir, "summary.json"), s)
	storetest.WriteFile(t, filepath.Join(dir, "page.html"), []byte("<!doctype html><title>"+Bad+"</title>"+Bad))
	storetest.WriteFile(t, filepath.Join(dir, "file"+badName+".txt"), []byte(Bad))
	hostileCalls(t, dir)
}

func hostileHeader(r storetest.Run) result.Header {
	h := r.Header()
	h.Workload, h.Backend, h.Invoked, h.Version = "load"+Bad, "api"+Bad, "perflab bench --model '"+Bad+"'", "1.0.0"+Bad
	h.Targets = []string{"http://127.0.0.1:8000/" + Bad}
	h.Host.OS, h.Fingerprint, h.Tokenizer, h.TokenizerFrom = "linux"+Bad, "f"+Bad, "tok"+Bad, Bad
	return h
}

// hostileCalls are calls of which each second one failed.
func hostileCalls(t testing.TB, dir string) {
	t.Helper()
	var b []byte
	for i, c := range calltest.Steady(10, 100*time.Millisecond) {
		if c.Model = Bad; i%2 == 1 {
			c = calltest.Fail(c, "http"+Bad)
			c.Error = "error" + Bad
		}
		b = append(c.AppendJSON(b), '\n')
	}
	storetest.WriteFile(t, filepath.Join(dir, "calls.jsonl"), b)
}

func hostileUnderway(t testing.TB, root string) {
	t.Helper()
	dir := filepath.Join(root, "going"+badName+".tmp")
	storetest.Mkdir(t, dir)
	h := hostileHeader(storetest.Run{N: 7, Model: "going" + Bad})
	h.Started = time.Now()
	storetest.WriteJSON(t, filepath.Join(dir, "header.json"), h)
	hostileCalls(t, dir)
}

func hostileImport(t testing.TB, root string) {
	t.Helper()
	r := storetest.Run{N: 11, Model: "import" + Bad}
	h, s := hostileHeader(r), r.Summary()
	h.Imported = &result.Imported{Client: "client" + Bad, Version: Bad, Format: "vllm bench text", File: "doc" + badName, Line: 3, Section: []string{"part" + Bad},
		Labels: result.Labels{result.LabelEngine: "vllm", result.LabelHardware: "gpu" + Bad, "own" + Bad: Bad}, Other: map[string]string{"other" + Bad: Bad}}
	err := rundir.WriteImports([]rundir.Import{{File: "/tmp/doc" + badName, Dir: filepath.Join(root, "import"+badName), Faults: []rundir.ImportFault{{File: "f" + Bad, Line: 2, Text: "fault" + Bad}},
		Runs: []rundir.ImportedRun{{Dir: "one", Client: h.Imported.Client, Model: h.Model, Case: "case" + Bad, Header: h, Summary: s}}}})
	if err != nil {
		t.Fatal(err)
	}
}

// hostileStudy is a study with a trial that was measured, and one that was refused.
func hostileStudy(t testing.TB, root string) {
	t.Helper()
	dir := filepath.Join(root, "study"+badName)
	s := storetest.StudyOf(3)
	s.Name, s.Title, s.Model, s.Hardware, s.Verdict = "name"+Bad, "title"+Bad, "model"+Bad, "gpu"+Bad, "verdict"+Bad
	s.Objective.Goal, s.Objective.SLOs = "goal"+Bad, []string{"p99_ttft_ms <= 500"}
	s.Engines = []outcome.Software{{Name: "vllm", Title: "vLLM" + Bad, Version: "0.11.0" + Bad}}
	s.Workloads = []outcome.Load{{Name: "chat", Title: "Chat" + Bad, Primary: true, Text: "load" + Bad}}
	s.Stages = []outcome.Stage{}
	s.Recommended.Label, s.Recommended.Command = "best"+Bad, "vllm serve '"+Bad+"'"
	for i := 1; i <= 2; i++ {
		s.Trials = append(s.Trials, outcome.Trial{ID: i, Stage: "stage" + Bad, Label: "trial" + Bad, Engine: "vllm", Version: "0.11.0" + Bad, GPUs: 1, Replicas: 1, Status: tune.Measured,
			Config: map[string]string{"engine": "vllm", "note": Bad}, Command: "vllm serve '" + Bad + "'", Image: "image" + Bad, Notes: []string{"note" + Bad}, Script: "#!/bin/sh\n# " + Bad,
			Facts: []outcome.EngineFact{{Name: "kv_tokens", Value: 1, Doc: "doc" + Bad}}, Started: s.Started, Ended: s.Ended})
	}
	s.Trials[0].Status, s.Trials[0].Reason, s.Trials[0].Class, s.Trials[0].Advice = tune.Refused, "reason"+Bad, "oom", "advice"+Bad
	storetest.Mkdir(t, filepath.Join(dir, "trials", "001", "logs"))
	storetest.WriteFile(t, filepath.Join(dir, "trials", "001", "logs", "replica-0.log"), []byte("log "+Bad+"\n"))
	hostileRun(t, dir, "trials/002/chat", 20, "")
	storetest.Mkdir(t, filepath.Join(dir, "trials", "002", "logs"))
	storetest.WriteFile(t, filepath.Join(dir, "trials", "002", "logs", "replica-0"+badName+".log"), []byte("log "+Bad+"\n"))
	s.Trials[1].Runs = []outcome.Run{{Workload: "chat", Dir: "trials/002/chat", Seed: 1, Summary: storetest.Run{N: 20}.Summary()}}
	storetest.WriteFile(t, filepath.Join(dir, "study.yaml"), []byte("name: x\n# "+Bad+"\n"))
	storetest.WriteFile(t, filepath.Join(dir, rundir.JournalFile), []byte("{\"seq\":1,\"kind\":\"study\",\"study\":{\"hash\":\"3\"}}\n"))
	storetest.WriteJSON(t, filepath.Join(dir, rundir.StudyFile), s)
}

// HostileMarks marks everything that a laboratory has by texts that are Bad, as far as marks may be so.
func (l *Lab) HostileMarks(t testing.TB) {
	t.Helper()
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == '\u202e' {
			return -1
		}
		return r
	}, Bad)
	for _, e := range storetest.List(t, l.Store(), store.Query{Limit: store.MostPage}).Entries {
		err := l.Store().Mark(t.Context(), "who"+Bad, e.ID, mark.Record{Do: mark.Name, Value: "name " + line}, mark.Record{Do: mark.Note, Text: "note " + line},
			mark.Record{Do: mark.Tag, Value: "tag(1);{{.}}&lt"}, mark.Record{Do: mark.Issue, Value: "1 " + line[:50], Text: line, Link: "https://example.com/\"onclick=alert(1)"})
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
	}
}
