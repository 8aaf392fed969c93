package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perflab/internal/result"
	"perflab/internal/rundir"
	"perflab/internal/test/deploytest"
	"perflab/internal/test/kubetest"
)

// llama is a Service of somebody else over two pods of an engine, each at a port of its own.
type llama struct {
	*pods
	port int
}

// newLlama starts it, and returns when its pods take requests.
func newLlama(t *testing.T) llama {
	t.Helper()
	l := llama{newPods(t), deploytest.UnusedPorts(t, 3)}
	l.admin.apply(t, fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: llama, namespace: %s}
spec:
  clusterIP: None
  selector: {app: llama}
  ports: [{name: http, port: 80, targetPort: serve}]
`, l.namespace))
	l.start(t, 0)
	l.start(t, 1)
	for i := range 2 {
		for end := time.Now().Add(time.Minute); !bytes.Contains(l.admin.do(t, http.MethodGet, l.pod(i), ""), []byte(`"ready":true`)); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("pod %d of the Service is not ready", i)
			}
		}
	}
	return l
}

// pod is the path of the i-th pod.
func (l llama) pod(i int) string {
	return fmt.Sprintf("/api/v1/namespaces/%s/pods/llama-%d", l.namespace, i)
}

// start starts the i-th pod.
func (l llama) start(t *testing.T, i int) {
	t.Helper()
	l.admin.apply(t, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: llama-%[1]d, namespace: %[2]s, labels: {app: llama}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: registry.example/vllm:v1
    command: [vllm, serve, Qwen/Qwen3-8B, --port, "%[3]d"]
    ports: [{name: serve, containerPort: %[3]d}]
    readinessProbe: {httpGet: {path: /health, port: %[3]d}, periodSeconds: 1}
    resources: {limits: {nvidia.com/gpu: "1"}}
`, i, l.namespace, l.port+i))
}

// service is its name as a user writes it.
func (l llama) service() string { return l.namespace + "/llama" }

// opened is the run of a directory.
func opened(t *testing.T, dir, out string) *rundir.Run {
	t.Helper()
	r, err := rundir.OpenRun(dir)
	if err != nil {
		t.Fatalf("%v after\n%s", err, out)
	}
	return r
}

// verdictOf is the verdict on a run.
func verdictOf(t *testing.T, r *rundir.Run) result.Verdict {
	t.Helper()
	s, err := r.Resummarise()
	if err != nil {
		t.Fatal(err)
	}
	return s.Verdict
}

// looks holds what a run says of the Service's pods against what is there.
func (l llama) looks(t *testing.T, h result.Header, reach, metrics string) {
	t.Helper()
	if h.Service == nil || h.Service.Name != l.service() || h.Service.Port != 80 || h.Service.Reach != reach || len(h.Service.Lacks) > 0 {
		t.Errorf("the Service of the run is %+v", h.Service)
	}
	if len(h.Pods) != 2 {
		t.Fatalf("its pods are %+v", h.Pods)
	}
	for i, p := range h.Pods {
		if p.Name != fmt.Sprintf("llama-%d", i) || p.Replica != i || p.UID == "" || !strings.HasSuffix(p.Node, "node-1") || !strings.Contains(p.Image, "@sha256:") || p.Metrics != metrics {
			t.Errorf("pod %d is %+v", i, p)
		}
	}
}

const tinyLoad = "--num-prompts=40 --random-input-len=64 --random-output-len=8 --num-warmups=0 --max-error-rate=1"

// TestKubernetesService: a Service that others run is measured by bench and by a study, with the rights of its Role alone;
// nothing of perflab is in the cluster.
func TestKubernetesService(t *testing.T) {
	l := newLlama(t)
	said := l.document(t)
	user, out := l.Kubeconfig(t, l.Account(t, l.namespace, "perflab")), said["bench"]
	r := opened(t, filepath.Join(l.dir, "bench"), out)
	l.looks(t, r.Header, result.ReachPods, result.ReachPods)
	engines := map[int]bool{}
	for _, reading := range r.Readings {
		if reading.Source == "engine" && reading.Error == "" {
			engines[reading.Index] = true
		}
	}
	if len(engines) != 2 || len(r.Header.Targets) != 2 {
		t.Errorf("metrics of %d pods were read, requests went to %q", len(engines), r.Header.Targets)
	}
	if path, _ := verdictOf(t, r).Check("path"); path.Status != result.Sound || !strings.HasPrefix(path.Text, "requests went to the addresses of the pods of the Service "+l.service()+", on ") {
		t.Errorf("the verdict on the path is %+v", path)
	}
	for _, want := range []string{"SIMULATED", "requests go to the pods of the Service " + l.service(), "metrics of 2 pods of the Service " + l.service() + " are read at their addresses"} {
		if !strings.Contains(out, want) {
			t.Errorf("bench does not say %q:\n%s", want, out)
		}
	}
	out = said["kube"]
	for _, want := range []string{"the Service " + l.service() + " is there, and its port 80 leads to 2 pods", "container main at port", "the account has the rights that are needed"} {
		if !strings.Contains(out, want) {
			t.Errorf("kube check does not say %q:\n%s", want, out)
		}
	}
	l.looks(t, opened(t, filepath.Join(l.dir, "tune", "trials", "001", "short"), said["tune"]).Header, result.ReachPods, result.ReachPods)
	forwarded := l.serviceStudy(t, ", kubernetes: {reach: forward}")
	out, err := l.perflab(t, user, "tune", forwarded, "--out", "forwarded")
	if err != nil && !strings.Contains(out, "void") {
		t.Fatalf("%v\n%s", err, out)
	}
	r = opened(t, filepath.Join(l.dir, "forwarded", "trials", "001", "short"), out)
	l.looks(t, r.Header, result.ReachForward, result.ReachForward)
	if path, _ := verdictOf(t, r).Check("path"); !strings.Contains(path.Text, "smoke test") {
		t.Errorf("the verdict on a forwarded port is %+v", path)
	}
	l.empty(t, l.Kubeconfig(t, kubetest.Admin))
}

// serviceSection is the heading of the document about Services of others.
const serviceSection = "## A Service that others run\n"

// document runs the commands of the document about it, with a small load and directories of their own, and gives what
// the last of each kind prints.
func (l llama) document(t *testing.T) map[string]string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(l.serviceStudy(t, ""), filepath.Join(l.dir, "llama.yaml")); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(doc), serviceSection)
	text, _, _ = strings.Cut(text, "\n## ")
	user, out := "", map[string]string{}
	for _, block := range shellBlock.FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			line, apply := strings.CutSuffix(line, " | kubectl apply -f -\n")
			words := strings.Fields(strings.ReplaceAll(line, " prod", " "+l.namespace))
			switch kind := words[1]; {
			case apply:
				l.admin.apply(t, l.works(t, "", words[1:]...))
				user = l.Kubeconfig(t, l.Account(t, l.namespace, "perflab"))
			case kind == "kube":
				out[kind] = l.works(t, user, words[1:]...)
			default:
				if kind == "bench" {
					words = append(words, strings.Fields(tinyLoad)...)
				}
				text, err := l.perflab(t, user, append(words[1:], "--out", kind)...)
				if err != nil && !strings.Contains(text, "void") { // as on a busy machine
					t.Fatalf("%q: %v\n%s", words, err, text)
				}
				out[kind] = text
			}
		}
	}
	if len(out) != 3 {
		t.Fatalf("the document has commands of %d kinds", len(out))
	}
	return out
}

// exitOf is the exit status of a command.
func exitOf(err error) int {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return 0
}

// serviceStudy is a study of the Service.
func (l llama) serviceStudy(t *testing.T, more string) string {
	t.Helper()
	path := filepath.Join(l.dir, "service.yaml")
	text := fmt.Sprintf(`name: service
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: short, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8}
baseline: {label: as it is, engine: vllm}
runtime: {kind: existing, service: %s, port: 80%s}
`, l.service(), more)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestKubernetesServiceReplaced: a pod that is replaced in the middle ends the run, which is partial and says why.
func TestKubernetesServiceReplaced(t *testing.T) {
	l := newLlama(t)
	user := l.Kubeconfig(t, kubetest.Admin)
	cmd := l.command(t, user, append([]string{"bench", "--kube-service", l.service() + ":http", "--out", "bench", "--request-rate", "20"}, strings.Fields(strings.Replace(tinyLoad, "=40", "=6000", 1))...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	l.underway(t, cmd, &out, filepath.Join(l.dir, "bench.tmp", "calls.jsonl"))
	l.admin.do(t, http.MethodDelete, l.pod(1), "")
	l.start(t, 2)
	if err := cmd.Wait(); exitOf(err) != 4 {
		t.Errorf("%v, want exit status 4 of\n%s", err, out.String())
	}
	want := "the pods of the Service " + l.service() + " have changed in the middle: pod llama-1 on node "
	r := opened(t, filepath.Join(l.dir, "bench"), out.String())
	if partial, _ := verdictOf(t, r).Check("partial"); partial.Status != result.Noted || !strings.Contains(partial.Text, want) || !strings.Contains(out.String(), want) {
		t.Errorf("the verdict on it is %+v after\n%s", partial, out.String())
	}
	l.empty(t, user)
}

// TestKubernetesServiceReplacedInStudy: a trial whose pods change in the middle is measured once more, and says why.
func TestKubernetesServiceReplacedInStudy(t *testing.T) {
	l := newLlama(t)
	study := l.serviceStudy(t, "")
	text, err := os.ReadFile(study)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("num_prompts: 20"), []byte("num_prompts: 120, request_rate: 20"), 1)
	if err := os.WriteFile(study, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := l.command(t, l.Kubeconfig(t, kubetest.Admin), "tune", study, "--out", "study")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	trial := filepath.Join(l.dir, "study", "trials", "001")
	l.underway(t, cmd, &out, filepath.Join(trial, "short.tmp", "calls.jsonl"))
	l.admin.do(t, http.MethodDelete, l.pod(1), "")
	err = cmd.Wait() // on a busy machine the trial may be void
	facts, readErr := os.ReadFile(filepath.Join(trial, "trial.json"))
	want := "It was measured again: the first time, under short the pods of the Service " + l.service() + " have changed in the middle: pod llama-1 on node "
	if readErr != nil || !bytes.Contains(facts, []byte(want)) {
		t.Fatalf("%v, %v, want %q of\n%s\n%s", err, readErr, want, facts, out.String())
	}
	if h := opened(t, filepath.Join(trial, "short"), out.String()).Header; len(h.Pods) != 1 || h.Pods[0].Name != "llama-0" {
		t.Errorf("the second time it ran in %+v", h.Pods)
	}
}

// underway waits until a command has a few calls in a file.
func (l llama) underway(t *testing.T, cmd *exec.Cmd, out *bytes.Buffer, calls string) {
	t.Helper()
	waited, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for begun := false; !begun; time.Sleep(20 * time.Millisecond) {
		text, _ := os.ReadFile(calls) // it may not be there yet
		begun = bytes.Count(text, []byte("\n")) > 5
		if waited.Err() != nil {
			_ = cmd.Process.Kill() // it did not come so far
			_ = cmd.Wait()
			t.Fatalf("the run did not begin:\n%s", out.String())
		}
	}
}

// TestKubernetesServiceLoad: agents in pods send the load of a study to the pods of a Service, at their own addresses even
// where whoever leads gets there through the API server alone.
func TestKubernetesServiceLoad(t *testing.T) {
	l := newLlama(t)
	l.admin.apply(t, l.works(t, "", "kube", "role", "--service", "--agents", "--namespace", l.namespace))
	user := l.Kubeconfig(t, l.Account(t, l.namespace, "perflab"))
	hub := filepath.Join(l.dir, "fleet")
	begin(t, perflabCommand(t, "fleet", "hub", "--dir", hub, "--listen", "127.0.0.1:0"), "Hub: ")
	study := l.serviceStudy(t, fmt.Sprintf(", kubernetes: {namespace: %s, reach: forward, load: {agents: 2, image: registry.example/perflab:v1, hub: 127.0.0.1, cpu: 100m, memory: 64Mi}}", l.namespace))
	out, err := "", error(nil)
	dir := ""
	for try := range lateStarts {
		dir = fmt.Sprintf("inside-%d", try)
		if out, err = l.perflab(t, user, "tune", study, "--out", dir, "--hub", hub); !strings.Contains(out, "the start instant was past") {
			break
		}
	}
	if err != nil && !strings.Contains(out, "void") {
		t.Fatalf("%v\n%s", err, out)
	}
	r := opened(t, filepath.Join(l.dir, dir, "trials", "001", "short"), out)
	if f := r.Header.Fleet; f == nil || len(f.Agents) != 2 || len(indices(r)) != 20 {
		t.Errorf("%d calls were sent by %+v", len(indices(r)), f)
	}
	if text, err := json.Marshal(verdictOf(t, r)); err != nil || bytes.Contains(text, []byte("smoke test")) || !bytes.Contains(text, []byte("the addresses of the pods of the Service")) {
		t.Errorf("the verdict is %s", text)
	}
	l.empty(t, user)
}
