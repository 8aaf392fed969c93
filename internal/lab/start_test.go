package lab

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"perflab/internal/outcome"
)

// What launches chose for themselves: ports, and the address to listen on.
var (
	chosenPort = regexp.MustCompile(`(--port |--master-port |--dist-init-addr [\w.]+:)\d+`)
	chosenHost = regexp.MustCompile(`--host [\w.]+`)
	dealt      = regexp.MustCompile(`CUDA_VISIBLE_DEVICES=\S* `)
)

// alike is a command line without what every launch chooses anew, and without its devices, which
// are not in a log.
func alike(line string) string {
	return dealt.ReplaceAllString(chosenHost.ReplaceAllString(chosenPort.ReplaceAllString(line, "${1}PORT"), "--host HOST"), "")
}

// asLaunched holds what is said of a trial's start against what was started, by the logs.
func asLaunched(t *testing.T, dir string, r outcome.Trial) {
	t.Helper()
	if len(r.Processes) == 0 {
		t.Errorf("trial %d does not say how it is started", r.ID)
	}
	heads := regexp.MustCompile(`(?m)^# \d{4}\S+Z (.*)$`)
	for i, p := range r.Processes {
		name := "replica-" + string(rune('0'+p.Replica))
		if p.Name != "" {
			name += "." + p.Name
		}
		b, err := os.ReadFile(filepath.Join(dir, r.Log, name+".log"))
		launches := heads.FindAllSubmatch(b, -1)
		if err != nil || len(launches) == 0 {
			t.Fatalf("process %d of trial %d, %+v, was not launched: %v", i, r.ID, p, err)
		}
		if got, want := alike(p.Command), alike(string(launches[len(launches)-1][1])); got != want {
			t.Errorf("trial %d says\n%s\nand launched\n%s", r.ID, got, want)
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, r.Log, "*.log"))
	if err != nil || len(logs) != len(r.Processes) {
		t.Errorf("trial %d launched %q, and says %d processes (%v)", r.ID, logs, len(r.Processes), err)
	}
	script, err := os.ReadFile(filepath.Join(dir, r.Script))
	if err != nil {
		t.Error(err)
	}
	for _, p := range r.Processes {
		argv := p.Command[strings.LastIndex(p.Command, "=vllm serve ")+1:]
		for word := range strings.FieldsSeq(argv) {
			if !strings.Contains(string(script), word) {
				t.Errorf("the script of trial %d lacks %s of %s", r.ID, word, p.Command)
			}
		}
	}
}

// What is printed of a configuration is what perflab started: one engine, and two replicas with
// devices and ports of their own.
func TestStartAsLaunched(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer("gpus: 1, check: off", "gpus: 2, check: off, devices: [4, 6]", "engine: vllm}", "engine: vllm, set: {tp: 2}}",
		"{label: sound, engine: sglang}", "{label: sound, engine: vllm, set: {max_num_seqs: 64}}").Replace(twoEngines)
	o, err := failing(t, text)
	if err != nil {
		t.Fatal(err)
	}
	one, two := o.study.Trials[0], o.study.Trials[1]
	for _, r := range []outcome.Trial{one, two} {
		asLaunched(t, o.dir, r)
	}
	const model = "vllm serve Qwen/Qwen3-8B "
	want := [][]string{{"CUDA_VISIBLE_DEVICES=4,6 " + model, "--host 127.0.0.1 --port 8000"}, {"CUDA_VISIBLE_DEVICES=4 " + model, "--port 8000"}, {"CUDA_VISIBLE_DEVICES=6 " + model, "--port 8001"}}
	for i, p := range append(one.Processes, two.Processes...) {
		for _, part := range want[i] {
			if !strings.Contains(p.Command, part) {
				t.Errorf("%s lacks %s", p.Command, part)
			}
		}
	}
	if p := o.study.Recommended; p == nil || len(p.Processes) != o.study.Trials[p.Trial-1].Replicas || p.Script != o.study.Trials[p.Trial-1].Script {
		t.Errorf("recommended is %+v", p)
	}
}

// Where nothing runs on the study's machines, what is said is for them all the same: addresses that
// the study does not name are left open.
func TestStartOfPrediction(t *testing.T) {
	text := strings.NewReplacer("Qwen/Qwen3-14B", "Qwen/Qwen3-8B", "gpus: 2}", "gpus: 4, nodes: 2}", "set: {tp: 2}", "set: {tp: 4}", "strategy: staged\n", "strategy: staged\nengines: {sglang: {flags: [--api-key, sk-abcdefghijklmnop]}}\n").Replace(good)
	dir, f := tuned(t, text, replay{})
	four, over := f.Trials[0], f.Trials[1]
	if len(four.Processes) != 4 || four.Processes[3].Node != "node-1" || !strings.HasPrefix(four.Processes[3].Command, "CUDA_VISIBLE_DEVICES=1 vllm serve ") {
		t.Errorf("processes %+v", four.Processes)
	}
	if len(over.Processes) != 2 || over.Script != "" {
		t.Fatalf("processes %+v, script %q", over.Processes, over.Script)
	}
	for i, p := range over.Processes {
		rank := "--node-rank " + string(rune('1'-i)) // the one that serves is the last
		if !strings.Contains(p.Command, rank+` --dist-init-addr "${ADDR_NODE_0}":20000`) || !strings.Contains(p.Command, `--api-key "${API_KEY}"`) || strings.Contains(p.Command, "sk-abc") {
			t.Errorf("process %d: %s", i, p.Command)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "trials", "002", scriptFile)); !os.IsNotExist(err) {
		t.Errorf("a script without addresses: %v", err)
	}
}
