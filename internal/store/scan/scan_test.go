package scan_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perflab/internal/durable"
	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/store/scan"
	"perflab/internal/test/storetest"
)

// later is by when no stamp of a file is new.
var later = time.Now().Add(time.Hour)

func open(t *testing.T, root string) *scan.Tree {
	t.Helper()
	tree, err := scan.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return tree
}

func walk(t *testing.T, tree *scan.Tree, now time.Time) map[string]scan.Place {
	t.Helper()
	places, err := tree.Walk(t.Context(), now)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]scan.Place{}
	for _, p := range places {
		out[p.Path] = p
	}
	return out
}

// facts are those of what lies in a root, by path.
func facts(t *testing.T, root string) map[string]scan.Facts {
	t.Helper()
	tree := open(t, root)
	out := map[string]scan.Facts{}
	for path, p := range walk(t, tree, later) {
		out[path] = tree.Read(p, nil)
	}
	return out
}

func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	storetest.Mkdir(t, filepath.Dir(path))
	storetest.WriteFile(t, path, []byte(content))
}

// TestWalk: what is found, and what is not looked at.
func TestWalk(t *testing.T) {
	root := t.TempDir()
	storetest.Run{N: 1}.Write(t, root, "run")
	storetest.Run{N: 2}.Write(t, root, "run/logs/inner") // within a run there are its own files
	storetest.Run{N: 3}.Write(t, root, ".hidden/run")
	storetest.Run{N: 4}.Write(t, root, "an.importing/run")
	storetest.Study(t, root, "deep/study", 1, 2)
	write(t, root, "series/sweep.json", `{"kind":"sweep"}`)
	storetest.Run{N: 5}.Write(t, root, "series/rate-1")
	write(t, root, "import/import.json", `{"runs":[]}`)
	write(t, root, "site/site.json", `{"schema":"perflab.site/1"}`)
	write(t, root, "site/index.html", "")
	write(t, root, "other/header.json", "{}") // of something else
	write(t, root, "other/site.json", "{}")
	write(t, root, "other/notes.txt", "")
	if err := os.Symlink(root, filepath.Join(root, "other", "loop")); err != nil {
		t.Fatal(err)
	}
	places := walk(t, open(t, root), later)
	want := map[string]string{
		"run": "run", "deep/study": "study", "deep/study/trials/001/chat": "run of deep/study", "deep/study/trials/002/chat": "run of deep/study",
		"series": "series", "series/rate-1": "run of series", "import": "import", "site": "site",
	}
	got := map[string]string{}
	for path, p := range places {
		if got[path] = string(p.Kind); p.Parent != "" {
			got[path] += " of " + p.Parent
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}

// TestRootItself: a root may be a run or a study itself.
func TestRootItself(t *testing.T) {
	root := t.TempDir()
	dir := storetest.Run{N: 1}.Write(t, root, "the-run")
	if f := facts(t, dir)["."]; f.Kind != scan.Run || f.Name != "the-run" {
		t.Errorf("%+v", f)
	}
}

// TestStamps: what changes a stamp, and what does not.
func TestStamps(t *testing.T) {
	root := t.TempDir()
	dir := storetest.Run{N: 1}.Write(t, root, "run")
	study := storetest.Study(t, root, "study", 1, 1)
	tree := open(t, root)
	first := walk(t, tree, later)
	if again := walk(t, tree, later.Add(time.Minute)); !maps.Equal(again, first) {
		t.Error("nothing changed, and stamps did")
	}
	changed := func() []string {
		t.Helper()
		now := walk(t, tree, later)
		var out []string
		for path, p := range now {
			if p.Stamp != first[path].Stamp {
				out = append(out, path)
			}
		}
		first = now
		slices.Sort(out)
		return out
	}
	write(t, dir, "report.html", "not a fact")
	if got := changed(); len(got) > 0 {
		t.Errorf("a report changed %q", got)
	}
	write(t, dir, "summary.json", "{}")
	if got := changed(); !slices.Equal(got, []string{"run"}) {
		t.Errorf("a summary changed %q", got)
	}
	write(t, study, rundir.UnderwayFile, "{}")
	if got := changed(); !slices.Equal(got, []string{"study"}) {
		t.Errorf("its progress changed %q", got)
	}
	write(t, study, rundir.StudyFile, "{}")
	if got := changed(); !slices.Equal(got, []string{"study", "study/trials/001/chat"}) {
		t.Errorf("its findings changed %q", got)
	}
	// What was written just now may be written again within the same tick of the clock.
	now := time.Now()
	if walk(t, tree, now)["run"].Stamp == walk(t, tree, now.Add(time.Millisecond))["run"].Stamp {
		t.Error("a stamp of this moment is trusted")
	}
}

// TestRemembered: what is in a directory is read again when something is added, also where the
// directory was read a moment ago.
func TestRemembered(t *testing.T) {
	root := t.TempDir()
	tree := open(t, root)
	for i := range 20 {
		storetest.Run{N: i}.Write(t, root, fmt.Sprintf("run-%d", i))
		if n := len(walk(t, tree, time.Now())); n != i+1 {
			t.Fatalf("%d of %d runs are found", n, i+1)
		}
	}
}

func TestStates(t *testing.T) {
	root := t.TempDir()
	r := storetest.Run{N: 1}
	r.Write(t, root, "finished")
	storetest.Run{N: 2, Partial: true}.Write(t, root, "partial")
	for _, name := range []string{"stopped.tmp", "running.tmp"} {
		dir := filepath.Join(root, name)
		storetest.Mkdir(t, dir)
		storetest.WriteJSON(t, filepath.Join(dir, "header.json"), r.Header())
		r.WriteCalls(t, dir)
	}
	f, err := os.Open(filepath.Join(root, "running.tmp", rundir.CallsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if held, err := durable.Hold(f); err != nil || !held {
		t.Fatal(held, err)
	}
	got := facts(t, root)
	for path, state := range map[string]scan.State{"finished": scan.Finished, "partial": scan.Partial, "stopped.tmp": scan.Stopped, "running.tmp": scan.Running} {
		if got[path].State != state {
			t.Errorf("%s is %s: %+v", path, got[path].State, got[path])
		}
	}
	if s := got["stopped.tmp"]; len(s.Figures) == 0 || s.Name != "stopped" || s.ID != got["running.tmp"].ID || s.ID != got["finished"].Early {
		t.Errorf("%+v", s)
	}
	if len(got["running.tmp"].Figures) > 0 {
		t.Error("a run that goes on has figures")
	}
}

// TestIdentity: what makes another run of a directory.
func TestIdentity(t *testing.T) {
	id := func(change func(dir string)) string {
		root := t.TempDir()
		change(storetest.Run{N: 1}.Write(t, root, "run"))
		return facts(t, root)["run"].ID
	}
	same := id(func(string) {})
	if same != id(func(dir string) { write(t, dir, "summary.json", "{}") }) {
		t.Error("figures that were computed again make another run")
	}
	for name, change := range map[string]func(string){
		"header": func(dir string) {
			storetest.WriteJSON(t, filepath.Join(dir, "header.json"), storetest.Run{N: 2}.Header())
		},
		"calls": func(dir string) {
			path := filepath.Join(dir, "calls.jsonl")
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)/2]++ // one digit of one call, at the same length
			write(t, dir, "calls.jsonl", string(b))
		},
	} {
		if id(change) == same {
			t.Errorf("another %s is the same run", name)
		}
	}
}

func TestConfiguration(t *testing.T) {
	key := func(command string) string {
		root := t.TempDir()
		storetest.Run{N: 1, Command: command}.Write(t, root, "run")
		f := facts(t, root)["run"]
		if f.Config == "" || f.Known != (command != "") {
			t.Errorf("%s: %q, %v", command, f.Config, f.Known)
		}
		return f.Config
	}
	base := key("vllm serve Qwen/Qwen3-8B -tp 2 --max-num-seqs 64")
	for _, same := range []string{
		"vllm serve Qwen/Qwen3-8B --max-num-seqs 64 --tensor-parallel-size 2",
		"vllm serve Qwen/Qwen3-8B --max-num-seqs=64 -tp=2 --port 9000 --host 0.0.0.0",
		"vllm serve Qwen/Qwen3-8B -tp 2 --max-num-seqs 64 --served-model-name x --api-key secret",
	} {
		if key(same) != base {
			t.Errorf("%s has another key", same)
		}
	}
	seen := map[string]string{base: "the first"}
	for _, other := range []string{
		"vllm serve Qwen/Qwen3-8B -tp 4 --max-num-seqs 64", "vllm serve Qwen/Qwen3-8B-FP8 -tp 2 --max-num-seqs 64",
		"vllm serve Qwen/Qwen3-8B -tp 2 --max-num-seqs 64 --quantization fp8", "VLLM_USE_V1=0 vllm serve Qwen/Qwen3-8B -tp 2 --max-num-seqs 64",
		"my-engine --model Qwen/Qwen3-8B --fast", "",
	} {
		k := key(other)
		if like, twice := seen[k]; twice {
			t.Errorf("%q has the key of %q", other, like)
		}
		seen[k] = other
	}
	if key("my-engine --model m --fast 1 --slow 2") != key("my-engine --model m --slow 2 --fast 1 --port 7") {
		t.Error("the order of flags of an unknown engine makes another key")
	}
}

// TestHostile: files that are not what they should be are faults, and cost no more than they may.
func TestHostile(t *testing.T) {
	root := t.TempDir()
	huge := storetest.Run{N: 1, Figures: map[string]float64{}}
	for i := range 5000 {
		huge.Figures[fmt.Sprintf("figure_%05d", i)] = 1
		huge.Figures[fmt.Sprintf("p%d.%03d_ttft_ms", i%100, i)] = 1
	}
	huge.Write(t, root, "huge-summary")
	long := storetest.Run{N: 2, Model: strings.Repeat("é", 100_000), Command: strings.Repeat("vllm ", 100_000)}
	long.Write(t, root, "long")
	for name, files := range map[string]map[string]string{
		"no-header":     {"header.json": "", "calls.jsonl": ""},
		"other-types":   {"header.json": `{"model":7,"spec":"x"}`, "calls.jsonl": ""},
		"no-summary":    {"header.json": "{}", "calls.jsonl": ""},
		"array":         {"header.json": "[]", "calls.jsonl": "", "summary.json": "[]"},
		"deep":          {"header.json": strings.Repeat("[", 100_000), "calls.jsonl": ""},
		"study":         {"study.json": `{"trials":7}`, "journal.jsonl": ""},
		"series":        {"sweep.json": `{"points":"x"}`},
		"import":        {"import.json": "nonsense"},
		"partial.tmp":   {"header.json": "{}", "calls.jsonl": "nonsense\n{}\n"},
		"negative":      {"header.json": `{"requests":-5,"max_concurrency":-1,"spec":{"gpus":-3}}`, "calls.jsonl": "", "summary.json": "{}"},
		"directory.tmp": {"header.json": "{}", "summary.json/x": ""},
	} {
		for file, content := range files {
			write(t, root, name+"/"+file, content)
		}
	}
	got := facts(t, root)
	if f := got["huge-summary"]; len(f.Figures) == 0 || len(f.Figures) > 2000 || !strings.Contains(f.Fault, "figures more than") {
		t.Errorf("%d figures, fault %q", len(f.Figures), f.Fault)
	}
	if f := got["long"]; len(f.Model) > 500 || len(f.Command) > 17<<10 {
		t.Errorf("model of %d bytes, command of %d", len(f.Model), len(f.Command))
	}
	for _, name := range []string{"no-header", "other-types", "no-summary", "array", "deep", "study", "series", "import", "partial.tmp"} {
		if f := got[name]; f.Fault == "" || f.ID == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if f := got["negative"]; f.Requests != 0 || f.Limit != 0 || f.GPUs != 0 {
		t.Errorf("%+v", f)
	}
}

// TestImported: a run of another client is told apart by its figures too, as it may have no calls.
func TestImported(t *testing.T) {
	root := t.TempDir()
	h := storetest.Run{N: 1}.Header()
	h.Imported = &result.Imported{Client: "guidellm", Labels: result.Labels{
		result.LabelEngine: "vllm", result.LabelEngineVersion: "v0.11.0", result.LabelHardware: "NVIDIA H200", result.LabelGPUs: "4", "commit": "abc1234"}}
	for i, name := range []string{"one", "two"} {
		if err := rundir.WriteImported(filepath.Join(root, name), h, storetest.Run{N: i}.Summary(), nil); err != nil {
			t.Fatal(err)
		}
	}
	got := facts(t, root)
	one := got["one"]
	if one.Imported != "guidellm" || one.Engine != "vllm" || one.GPUs != 4 || one.Hardware != "NVIDIA H200" || one.Build != "abc1234" || one.State != scan.Finished || len(one.Figures) == 0 {
		t.Errorf("%+v", one)
	}
	if one.ID == got["two"].ID {
		t.Error("two runs have one ID")
	}
}

func FuzzFacts(f *testing.F) {
	f.Add([]byte(`{"model":"m","started":"2026-11-01T00:00:00Z","spec":{"gpus":2}}`), []byte(`{"duration":3,"verdict":{"status":"sound"}}`))
	f.Add([]byte(`{"imported":{"client":"x","labels":{"gpus":"-1"}}}`), []byte(`{"p99_ttft_ms":null}`))
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, header, summary []byte) {
		for _, name := range []string{"run/header.json", "study/study.json", "series/repeat.json", "import/import.json"} {
			write(t, root, name, string(header))
		}
		write(t, root, "run/calls.jsonl", "")
		write(t, root, "run/summary.json", string(summary))
		write(t, root, "study/progress.json", string(summary))
		for path, x := range facts(t, root) {
			if x.ID == "" || x.Kind == "" {
				t.Errorf("%s: %+v", path, x)
			}
			for _, v := range []string{x.Title, x.Model, x.Command, x.Load, x.Fault, x.Host} {
				if strings.Contains(v, "\x00") {
					t.Errorf("%s: a NUL in %q", path, v)
				}
			}
		}
	})
}

// TestFigureNames: what is kept of a summary are the figures that the metric table has.
func TestFigureNames(t *testing.T) {
	root := t.TempDir()
	more := map[string]float64{"p99.9_itl_ms": 1, "p12_ttft_ms": 2, "goodput_rate": 3, "p012_ttft_ms": 4, "p101_ttft_ms": 5, "p99_ms": 6, "nonsense": 7, "pNaN_ttft_ms": 8, "_ttft_ms": 9}
	storetest.Run{N: 1, Figures: more}.Write(t, root, "run")
	kept := map[string]float64{}
	for _, f := range facts(t, root)["run"].Figures {
		if _, ok := more[f.Metric]; ok {
			kept[f.Metric] = f.Value
		}
		if m, err := result.Lookup(f.Metric); err != nil || m.Name != f.Metric {
			t.Errorf("the metric table has no %s", f.Metric)
		}
	}
	if want := map[string]float64{"p99.9_itl_ms": 1, "p12_ttft_ms": 2, "goodput_rate": 3}; !maps.Equal(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
}

// TestFleetIsTheHost: of a run that a fleet sent the list says who did, not which machine led it.
func TestFleetIsTheHost(t *testing.T) {
	root := t.TempDir()
	dir := storetest.Run{N: 1}.Write(t, root, "run")
	h, err := rundir.ReadHeader(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := facts(t, root)["run"].Host; got != "linux/amd64, 8 CPUs" {
		t.Errorf("alone: %q", got)
	}
	h.Fleet = &result.Fleet{Agents: []result.Agent{{Name: "a"}, {Name: "b"}}}
	storetest.WriteJSON(t, filepath.Join(dir, "header.json"), h)
	if got := facts(t, root)["run"].Host; got != "2 agents: a, b" {
		t.Errorf("by a fleet: %q", got)
	}
}
