package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/test/kubetest"
)

// insideStudy has four pods of an engine, and four agents that send them one load.
const insideStudy = `name: inside
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 4}
objective: {metric: output_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 48, random_input_len: 64, random_output_len: 8, max_concurrency: 8}
strategy: survey
candidates: [{label: vLLM, engine: vllm}]
runtime:
  kind: kubernetes
  kubernetes:
    namespace: %s
    image: registry.example/vllm:v1
    reach: %s
    load: {agents: 4, image: registry.example/perflab:v1, hub: 127.0.0.1, cpu: 100m, memory: 64Mi}
bench: {num_warmups: 0}
`

// TestKubernetesLoad: agents in pods of the cluster send the load of a study to four pods of its engine, each request once,
// at the pods' own addresses even where whoever leads gets there through the API server alone. Nothing stays.
func TestKubernetesLoad(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	p.admin.apply(t, p.works(t, "", "kube", "role", "--agents", "--namespace", p.namespace))
	user := p.Kubeconfig(t, p.Account(t, p.namespace, "perflab"))
	hub := filepath.Join(p.dir, "fleet")
	h := perflabCommand(t, "fleet", "hub", "--dir", hub, "--listen", "127.0.0.1:0")
	begin(t, h, "Hub: ")
	if err := os.WriteFile(filepath.Join(p.dir, "study.yaml"), fmt.Appendf(nil, insideStudy, p.namespace, "forward"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := p.perflab(t, user, "tune", "study.yaml", "--out", "inside", "--hub", hub)
	if err != nil && !strings.Contains(out, "ended void") { // as on a busy machine
		t.Fatalf("%v\n%s", err, out)
	}
	runs, err := filepath.Glob(filepath.Join(p.dir, "inside", "trials", "*", "*", "header.json"))
	if err != nil || len(runs) == 0 {
		t.Fatalf("%v, no run in\n%s", err, out)
	}
	late := 0
	for _, path := range runs {
		r, err := rundir.OpenRun(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		if cameLate(r) {
			late++
			continue
		}
		if got := indices(r); len(got) != 48 || got[0] != 0 || got[47] != 47 {
			t.Errorf("%s has %d calls: %v", path, len(got), got)
		}
		if f := r.Header.Fleet; f == nil || len(f.Agents) != 4 || len(r.Header.Pods) != 4 {
			t.Errorf("%s was sent by %+v to %+v", path, f, r.Header.Pods)
		}
		by, to := map[int]int{}, map[int]int{}
		for i := range r.Calls {
			by[r.Calls[i].Agent]++
			to[r.Calls[i].Target]++
		}
		if len(by) != 4 || len(to) != 4 {
			t.Errorf("%s: calls by agent %v, to replica %v", path, by, to)
		}
		if text, err := json.Marshal(r.Header); err != nil || bytes.Contains(text, []byte("perflab://")) {
			t.Errorf("%s has an invitation: %v", path, err)
		}
	}
	if late == len(runs) {
		t.Errorf("of no run the start came in time to all agents:\n%s", out)
	}
	if strings.Contains(out, "port-forward of the API server") {
		t.Errorf("figures are said to be of a forwarded port:\n%s", out)
	}
	p.empty(t, user)
}

// cameLate reports whether the order to start came too late to an agent, as on a busy machine: the study then measures again.
func cameLate(r *rundir.Run) bool {
	return r.Header.Fleet != nil && slices.ContainsFunc(r.Header.Fleet.Agents, func(a result.Agent) bool { return strings.Contains(a.Lost, "before it was ready") })
}

// lateStarts is how often a load is made again whose order to start came too late to agents: on a machine that other tests
// keep busy it may do so several times in a row.
const lateStarts = 12

// TestKubernetesAgents: perflab kube agents keeps agents in pods until an interrupt; a load by hand comes from them.
func TestKubernetesAgents(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	hub := filepath.Join(p.dir, "fleet")
	begin(t, perflabCommand(t, "fleet", "hub", "--dir", hub, "--listen", "127.0.0.1:0"), "Hub: ")
	server := newHangingServer(t, 1000, true)
	user := p.Kubeconfig(t, kubetest.Admin)
	agents := p.command(t, user, "kube", "agents", "2", "--image", "registry.example/perflab:v1", "--cpu", "100m", "--memory", "64Mi",
		"-n", p.namespace, "--hub", hub, "--agent-hub", "127.0.0.1")
	said := begin(t, agents, "agents of the fleet in pods")
	_, job, _ := strings.Cut(said, "--fleet ")
	bench := []string{"bench", "--fleet", job, "--hub", hub, "--base-url", server.URL, "--model", "m", "--num-prompts", "20", "--num-warmups", "0",
		"--random-input-len", "8", "--random-output-len", "2", "--telemetry", "off", "--out", "run"}
	out, err := p.perflab(t, user, bench...)
	for range lateStarts {
		if !strings.Contains(out, "the start instant was past") && !strings.Contains(out, "before it was ready") {
			break
		}
		for _, dir := range []string{"run", "run.tmp"} {
			if err := os.RemoveAll(filepath.Join(p.dir, dir)); err != nil {
				t.Fatal(err)
			}
		}
		out, err = p.perflab(t, user, bench...)
	}
	r, rerr := rundir.OpenRun(filepath.Join(p.dir, "run"))
	if rerr != nil {
		t.Fatalf("%v, %v\n%s", err, rerr, out)
	}
	if got := indices(r); len(got) != 20 || r.Header.Fleet == nil || len(r.Header.Fleet.Agents) != 2 {
		t.Errorf("%d calls came back from %+v\n%s", len(got), r.Header.Fleet, out)
	}
	if err := agents.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := agents.Wait(); err != nil && agents.ProcessState.ExitCode() != 130 {
		t.Errorf("interrupted: %v", err)
	}
	p.empty(t, user)
}

// begin starts a program that goes on until the test ends, and returns the line in which it says something.
func begin(t *testing.T, cmd *exec.Cmd, line string) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // it was killed
	})
	for s := bufio.NewScanner(out); s.Scan(); {
		if strings.Contains(s.Text(), line) {
			go func() { _, _ = io.Copy(io.Discard, out) }() // it must not wait for a reader
			return s.Text()
		}
	}
	t.Fatalf("%v never said %q", cmd.Args, line)
	return ""
}
