package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/outcome"
	"perflab/internal/study"
)

// commander is a runtime whose machines answer commands so.
type commander struct {
	deploy.Runtime
	nodes  []string
	answer func(ctx context.Context, node string, argv []string) (string, error)
}

func (c commander) Nodes() []string { return c.nodes }

func (c commander) Command(ctx context.Context, node string, argv []string, out io.Writer) error {
	text, err := c.answer(ctx, node, argv)
	fmt.Fprint(out, text)
	return err
}

// with is a study of a text over a runtime of vLLM's.
func with(t *testing.T, text string, rt deploy.Runtime) *launcher {
	t.Helper()
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := newLauncher(s, Options{}, &watcher{})
	l.runtimes["vllm"] = rt
	return l
}

// A machine whose nvidia-smi hangs is dealt in order, and costs the study half a minute.
func TestTopologyThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := with(t, strings.Replace(good, "predicted", "process", 1), commander{nodes: []string{""}, answer: func(ctx context.Context, _ string, _ []string) (string, error) {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}})
		if known, err := l.topologies(t.Context(), "vllm"); err != nil || len(known) > 0 {
			t.Errorf("topologies %v, %v", known, err)
		}
		why := errors.New("interrupted")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		l.islands = nil
		if _, err := l.topologies(ctx, "vllm"); !errors.Is(err, why) {
			t.Errorf("interrupted: %v", err)
		}
	})
}

// A machine that could not be reached when an engine was asked for its flags is asked
// again by the next trial; an engine that has no help to give is not.
func TestAskAgain(t *testing.T) {
	e, err := engine.ByName("vllm")
	if err != nil {
		t.Fatal(err)
	}
	const help = "options:\n  --port PORT\n"
	for _, tt := range []struct {
		name  string
		first error
		asked int // in three trials, for its help
		notes []int
	}{
		{"unreachable", &deploy.InfraError{Op: "connect to node-1", Err: errors.New("timed out")}, 2, []int{1, 0, 0}},
		{"no help", &deploy.ExitError{Argv: []string{"vllm"}, Code: 1}, 1, []int{1, 0, 0}},
	} {
		asked := 0
		l := with(t, strings.Replace(good, "predicted", "process", 1), commander{nodes: []string{""}, answer: func(_ context.Context, _ string, argv []string) (string, error) {
			if argv[len(argv)-1] != "--help=all" {
				return "0.11.0\n", nil
			}
			if asked++; asked == 1 {
				return "", tt.first
			}
			return help, nil
		}})
		for i, want := range tt.notes {
			if notes, err := l.ask(t.Context(), e); err != nil || len(notes) != want {
				t.Errorf("%s: trial %d: notes %q, %v", tt.name, i+1, notes, err)
			}
		}
		if asked != tt.asked || l.version("vllm") != "0.11.0" {
			t.Errorf("%s: asked %d times, version %q", tt.name, asked, l.version("vllm"))
		}
	}
}

// TestAskOnce: what an engine of one version said of its flags stands when the study goes
// on later; another version, and another perflab, asks anew.
func TestAskOnce(t *testing.T) {
	e, err := engine.ByName("vllm")
	if err != nil {
		t.Fatal(err)
	}
	version, dir, asked := "0.32.0+cpu\n", t.TempDir(), 0
	part := func(perflab string) *launcher {
		l := with(t, strings.Replace(good, "predicted", "process", 1), commander{nodes: []string{""}, answer: func(_ context.Context, _ string, argv []string) (string, error) {
			if argv[len(argv)-1] != "--help=all" {
				return version, nil
			}
			asked++
			return "options:\n  --port PORT\n  --of-" + strings.TrimSpace(version) + "\n", nil
		}})
		l.dir, l.perflab = dir, perflab
		return l
	}
	for i, tt := range []struct {
		perflab, version string
		asked            int
	}{{"1", "0.32.0+cpu\n", 1}, {"1", "0.32.0+cpu\n", 1}, {"1", "0.33.0\n", 2}, {"1", "0.33.0\n", 2}, {"2", "0.33.0\n", 3}, {"2", "who knows\n", 4}, {"2", "who knows\n", 5}} {
		version = tt.version
		l := part(tt.perflab)
		for range 2 {
			if _, err := l.ask(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		help := l.asked["vllm"].help
		if asked != tt.asked || len(help.Flags) != 2 {
			t.Errorf("part %d: asked %d times, want %d: %+v", i, asked, tt.asked, help)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "engines.json"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := part("2").ask(t.Context(), e); err == nil || !strings.Contains(err.Error(), "remove ") {
		t.Errorf("a broken file: %v", err)
	}
}

// TestVersionOfBuild: the version that the study names is that of any build of it.
func TestVersionOfBuild(t *testing.T) {
	e, err := engine.ByName("vllm")
	if err != nil {
		t.Fatal(err)
	}
	l := with(t, good, nil)
	l.Engines = map[string]study.EngineUse{"vllm": {Version: "0.32.0"}}
	for version, want := range map[string]int{"": 0, "0.32.0": 0, "0.32.0+cpu": 0, "0.32.1": 1, "0.33.0+cpu": 1} {
		notes := slices.DeleteFunc(l.remarks(e, installed{version: version}), func(n string) bool { return strings.HasPrefix(n, "perflab was not tried with ") })
		if len(notes) != want {
			t.Errorf("%s by its own account: notes %q", version, notes)
		}
	}
}

// An engine is asked in the environment that the study gives it, and no secret of it is in
// an argument.
func TestWithin(t *testing.T) {
	argv := []string{"vllm", "--version"}
	env := []string{"PATH=/opt/vllm/bin:/usr/bin", "HF_TOKEN=hf_secret", "WHERE={host}", "NOTE=hf_abcdefghijklmnopqrstuvwx"}
	if got := strings.Join(inEnv(env, argv), " "); got != "env PATH=/opt/vllm/bin:/usr/bin vllm --version" {
		t.Errorf("%s", got)
	}
	if got := strings.Join(inEnv(env[1:], argv), " "); got != "vllm --version" {
		t.Errorf("%s", got)
	}
}

// An engine that was upgraded between two parts of a study is named.
func TestUnlike(t *testing.T) {
	trials := []trialRecord{
		{Trial: outcome.Trial{ID: 1, Engine: "vllm", Version: "0.11.0", Image: "v@sha256:1"}}, {Trial: outcome.Trial{ID: 2, Engine: "sglang", Version: "0.5.5"}},
		{Trial: outcome.Trial{ID: 3, Engine: "vllm", Version: "0.11.0", Image: "v@sha256:2"}}, {Trial: outcome.Trial{ID: 4, Engine: "vllm"}},
	}
	got := strings.Join(changedVersions(trials), "\n")
	if got != "The image of vLLM changed during the study (v@sha256:1 from trial 1, v@sha256:2 from trial 3): differences between its trials may be of that." {
		t.Errorf("%s", got)
	}
	if more := changedVersions(trials[:2]); len(more) > 0 {
		t.Errorf("nothing changed, and yet %q", more)
	}
	trials[0].Machine, trials[2].Machine = "a", "b"
	got = strings.Join(changedVersions(trials), "\n")
	if got != "The image of vLLM is not the same on all machines (v@sha256:1 on a; v@sha256:2 on b): differences between trials on them may be of that." {
		t.Errorf("%s", got)
	}
	trials[2].Machine = "a"
	if got = strings.Join(changedVersions(trials), "\n"); !strings.Contains(got, "changed during the study on machine a (v@sha256:1 from trial 1,") {
		t.Errorf("%s", got)
	}
}

// Where there are no accelerators to deal, no process of a replica is dealt any.
func TestNoDevicesToDeal(t *testing.T) {
	text := strings.NewReplacer("Qwen/Qwen3-14B", "/models/m.gguf", "gpu: h100-sxm, gpus: 2", "gpu: cpu, gpus: 2, nodes: 2", "engine: vllm", "engine: llamacpp",
		"{label: SGLang, engine: sglang, set: {tp: 2}}", "{label: Q8, set: {threads: 2}}",
		"{kind: predicted}", "{kind: ssh, spread: rpc, hosts: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]}").Replace(good)
	l := with(t, text, nil)
	p, err := l.configure(l.BaselineConfig())
	if err != nil {
		t.Fatal(err)
	}
	places, _, err := l.places(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := l.deployment(p, places, t.TempDir())
	if err != nil || len(spec.Replicas) != 1 || len(spec.Replicas[0].Peers) == 0 {
		t.Fatalf("%+v, %v", spec.Replicas, err)
	}
	rep := spec.Replicas[0]
	for _, peer := range rep.Peers {
		if peer.Devices != nil {
			t.Errorf("%s is dealt %v", peer.Name, peer.Devices)
		}
	}
	if spec.Visible != "" || rep.Devices != nil {
		t.Errorf("dealt %v by %q", rep.Devices, spec.Visible)
	}
}

// Facts are those of the last launch in a log.
func TestReadLog(t *testing.T) {
	dir := t.TempDir()
	text := "# 2026-11-22T11:30:33Z vllm serve M\nfirst\n# 2 comments\n# 2026-11-22T11:30:40Z vllm serve M\nsecond\n"
	if err := os.WriteFile(filepath.Join(dir, "replica-0.log"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := readLog(dir, "replica-0"); !strings.HasSuffix(got, "Z vllm serve M\nsecond\n") || strings.Contains(got, "first") {
		t.Errorf("%q", got)
	}
	if got := readLog(dir, "replica-1"); got != "" {
		t.Errorf("%q of a log that is not there", got)
	}
}
