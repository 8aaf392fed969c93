package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"perflab/internal/gauge"
	"perflab/internal/outcome"
	"perflab/internal/rundir"
	"perflab/internal/study"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/dockertest"
	"perflab/internal/tune"
)

// remote runs a study whose engines run elsewhere, as its text says.
func remote(t *testing.T, text string, watch func(Status)) (dir string, f outcome.Study) {
	t.Helper()
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "out")
	if f, err = Tune(t.Context(), s, []byte(text), Options{Dir: dir, Watch: watch}); err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Trials {
		if r.Status != tune.Measured && r.Status != tune.Void { // by a machine that is busy with something else
			t.Fatalf("trial %d is %s: %s", r.ID, r.Status, r.Reason)
		}
	}
	return dir, f
}

const remotely = `name: t
strategy: survey
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2, check: off}
objective: {metric: total_token_throughput}
workloads:
  - {name: a, dataset_name: random, num_prompts: 20, random_input_len: 100, random_output_len: 2, request_rate: 20}
bench: {num_warmups: 0, telemetry_interval_s: 0.2}
candidates:
  - {label: first, engine: vllm}
`

// A study in containers: the image is pulled once and kept by its digest, each engine
// has its own, and none is left.
func TestStudyInContainers(t *testing.T) {
	t.Parallel()
	const vllm, sglang = "vllm/vllm-openai:v0.11.0", "lmsysorg/sglang:v0.5.5"
	e := dockertest.Start(t, dockertest.Image{Ref: vllm, Remote: true}, dockertest.Image{Ref: sglang})
	pids := filepath.Join(t.TempDir(), "pids")
	if err := os.Mkdir(pids, 0o755); err != nil {
		t.Fatal(err)
	}
	text := remotely + `  - {label: second, engine: sglang, set: {tp: 2}}
engines: {sglang: {image: "` + sglang + `"}, vllm: {env: ["LAB_PIDS=` + pids + `"]}}
runtime: {kind: docker, ready_timeout_s: 20, docker: {image: "` + vllm + `", docker_host: "` + e.Host + `"}}
`
	var mu sync.Mutex
	var details []string
	dir, f := remote(t, text, func(s Status) {
		mu.Lock()
		defer mu.Unlock()
		if s.Detail != "" {
			details = append(details, s.Phase+": "+s.Detail)
		}
	})
	for i, ref := range []string{vllm, sglang} {
		if got, want := f.Trials[i].Image, e.Digest(ref); got != want || !strings.Contains(want, "@sha256:") {
			t.Errorf("trial %d ran image %q, want %q", i+1, got, want)
		}
	}
	if f.Trials[0].Replicas != 2 || f.Trials[1].Replicas != 1 || len(deploytest.PIDs(t, filepath.Dir(pids))) != 2 {
		t.Errorf("%d and %d replicas, processes %v", f.Trials[0].Replicas, f.Trials[1].Replicas, deploytest.PIDs(t, filepath.Dir(pids)))
	}
	if v := f.Engines[0].Version; v != "0.11.0" {
		t.Errorf("the engine says it is %q", v)
	}
	if !slices.ContainsFunc(details, func(d string) bool { return strings.HasPrefix(d, "looking for the engines: pull ") }) {
		t.Errorf("of the pull is said %q", details)
	}
	if n := slices.IndexFunc(f.Trials[0].Facts, func(x outcome.EngineFact) bool { return x.Name == "kv_tokens" && x.Value == 322560 }); n < 0 {
		t.Errorf("facts %+v", f.Trials[0].Facts)
	}
	if left := e.Containers(); len(left) > 0 {
		t.Errorf("containers %+v are left", left)
	}
	readBy(t, dir, f.Trials[0], gauge.SourceHost, "")
	if again, err := rundir.OpenStudy(dir); err != nil || again.Trials[1].Image != e.Digest(sglang) {
		t.Errorf("study.json: %v", err)
	}
}

// A study on two machines, by a real sshd that is both: an engine on each, then one over
// both. What no replica uses is named.
func TestStudyOnTwoMachines(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	link(bin, append([]string{"nvidia-smi"}, standIns...)...)
	s := deploytest.StartSSHD(t, "127.0.0.1", []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "LAB_VERSION=0.12.0"})
	text := strings.NewReplacer("gpus: 2, check: off", "gpus: 6, nodes: 2", "engine: vllm}", "engine: vllm, set: {tp: 2}}").Replace(remotely) + `  - {label: over both, engine: vllm, set: {tp: 2, pp: 3}}
runtime:
  kind: ssh
  ready_timeout_s: 20
  ssh_config: ` + s.Config + `
  spread: native
  hosts: [{name: there-1, gpus: 3}, {name: there-2, gpus: 3}]
`
	dir, f := remote(t, text, nil)
	each, both := f.Trials[0], f.Trials[1]
	found := "Found on there-2 as device 0, 1, 2: NVIDIA H100 80GB HBM3, 79.6 GiB, driver 570.86.15, clock up to 1980 MHz, power cap 700 W."
	if f.Hardware != "6 x NVIDIA H100 80GB HBM3 on 2 nodes" || !slices.Contains(f.Notes, found) {
		t.Errorf("hardware %q, notes %q", f.Hardware, f.Notes)
	}
	if each.Replicas != 2 || !slices.Contains(each.Notes, "2 of 6 GPUs are used by no replica (2 of there-1; 2 of there-2); they count as allocated.") {
		t.Errorf("%d replicas; notes %q", each.Replicas, each.Notes)
	}
	if both.Replicas != 1 {
		t.Errorf("%d replicas over both", both.Replicas)
	}
	for _, node := range []string{"there-1", "there-2"} {
		slow := func(n string) bool { return strings.HasPrefix(n, "NCCL runs over plain sockets on "+node) }
		if !slices.ContainsFunc(both.Notes, slow) {
			t.Errorf("nothing is said of the network of %s: %q", node, both.Notes)
		}
		for _, r := range f.Trials {
			readBy(t, dir, r, gauge.SourceHost, node)
		}
	}
	for _, r := range f.Trials {
		asLaunched(t, dir, r)
	}
	for name, want := range map[string]string{"replica-0.log": "--node-rank 0", "replica-0.rank-1.log": "--node-rank 1"} {
		b, err := os.ReadFile(filepath.Join(dir, "trials", "002", "logs", name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
	}
	deploytest.NothingIn(t, s.Tmp)
}

// Machines that are not alike are found before a replica spans them.
func TestMachinesThatDiffer(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	link(bin, append([]string{"nvidia-smi"}, standIns...)...)
	var hosts, known []string
	for i, version := range []string{"0.12.0", "0.13.0"} {
		s := deploytest.StartSSHD(t, "127.0.0.1", []string{"PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "LAB_VERSION=" + version})
		hosts = append(hosts, fmt.Sprintf("{name: node-%d, address: 127.0.0.1, port: %d, identity: %s/key, gpus: 1}", i+1, s.Port, s.Dir))
		known = append(known, s.Dir+"/known_hosts")
	}
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("UserKnownHostsFile "+strings.Join(known, " ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("gpus: 2", "gpus: 2, nodes: 2", "engine: vllm}", "engine: vllm, set: {pp: 2}}").Replace(remotely) +
		"runtime: {kind: ssh, ready_timeout_s: 20, ssh_config: " + config + ", spread: native, hosts: [" + strings.Join(hosts, ", ") + "]}\n"
	s, err := study.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Tune(t.Context(), s, []byte(text), Options{Dir: filepath.Join(t.TempDir(), "out"), pauses: []time.Duration{time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if r := f.Trials[0]; r.Status != tune.Failed || !strings.Contains(r.Reason, "node-1 has version 0.12.0 of the engine and node-2 version 0.13.0: install the same on both") || f.Ledger.Launches != 0 {
		t.Errorf("trial is %s after %d launches: %s", r.Status, f.Ledger.Launches, r.Reason)
	}
}

// readBy checks that a trial's run has readings of a source on a node.
func readBy(t *testing.T, dir string, r outcome.Trial, source, node string) {
	t.Helper()
	run, err := rundir.OpenRun(filepath.Join(dir, r.Runs[0].Dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range run.Readings {
		if x.Source == source && x.Node == node && x.Error == "" {
			return
		}
	}
	t.Errorf("trial %d has no reading of %s of %q: %+v", r.ID, source, node, run.Readings)
}
