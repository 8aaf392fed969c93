package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/cli"
	"perflab/internal/study"
	"perflab/internal/test/kubetest"
)

// bases are the directories of manifests that the project publishes.
const bases = "../../examples/kubernetes/"

// manifestsOf are the objects of a base, in the order of its list.
func manifestsOf(t *testing.T, base string) (out []map[string]any) {
	t.Helper()
	var k struct {
		Namespace string   `yaml:"namespace"`
		Resources []string `yaml:"resources"`
	}
	text, err := os.ReadFile(bases + base + "/kustomization.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &k)
	}
	if err != nil || k.Namespace != "perflab" || len(k.Resources) == 0 {
		t.Fatalf("%s: %v, %+v", base, err, k)
	}
	for _, name := range k.Resources {
		f, err := os.Open(bases + base + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for d := yaml.NewDecoder(f); ; {
			var o map[string]any
			if err := d.Decode(&o); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			out = append(out, o)
		}
	}
	return out
}

// in is an object in a namespace, as the API takes it.
func in(t *testing.T, namespace string, o map[string]any) string {
	t.Helper()
	meta, _ := o["metadata"].(map[string]any)
	meta["namespace"] = namespace
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), `"namespace":"perflab"`, `"namespace":"`+namespace+`"`)
}

// argsIn are the arguments of perflab's containers in objects.
func argsIn(v any, out *[][]string) {
	switch v := v.(type) {
	case map[string]any:
		if image, _ := v["image"].(string); strings.HasPrefix(image, "perflab:") {
			var args []string
			list, _ := v["args"].([]any)
			for _, a := range list {
				args = append(args, fmt.Sprint(a))
			}
			*out = append(*out, args)
		}
		for _, e := range v {
			argsIn(e, out)
		}
	case []any:
		for _, e := range v {
			argsIn(e, out)
		}
	}
}

// TestKubernetesExamples: what the published manifests run is perflab's commands with flags that it has, the rights are what
// perflab kube role prints, and the study of every night is right.
func TestKubernetesExamples(t *testing.T) {
	var calls [][]string
	for _, base := range []string{"laboratory", "nightly"} {
		for _, o := range manifestsOf(t, base) {
			argsIn(o, &calls)
		}
	}
	if len(calls) != 3 {
		t.Errorf("perflab runs in %d containers: %q", len(calls), calls)
	}
	for _, args := range calls {
		c, rest, err := cli.Command().Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err != nil || !slices.Contains([]string{"serve", "tune", "history"}, c.Name()) {
			t.Errorf("perflab %q: %v", args, err)
		}
	}
	out, err := perflabCommand(t, "kube", "role", "--agents", "-n", "perflab").Output()
	role, rerr := os.ReadFile(bases + "laboratory/role.yaml")
	if err != nil || rerr != nil || string(out) != string(role) {
		t.Errorf("examples/kubernetes/laboratory/role.yaml is not what perflab kube role --agents -n perflab prints (%v, %v): write it anew", err, rerr)
	}
	text, err := os.ReadFile(bases + "nightly/study.yaml")
	if err == nil {
		_, err = study.Parse("study.yaml", text)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestKubernetesLaboratory: a cluster takes all objects of the laboratory and of the study of every night.
func TestKubernetesLaboratory(t *testing.T) {
	p := newPods(t)
	for _, base := range []string{"laboratory", "nightly"} {
		for _, o := range manifestsOf(t, base) {
			kind, _ := o["kind"].(string)
			meta, _ := o["metadata"].(map[string]any)
			if kinds[kind] == "" {
				t.Fatalf("kind %q", kind)
			}
			path := fmt.Sprintf(kinds[kind], p.namespace) + fmt.Sprint(meta["name"])
			p.admin.do(t, http.MethodPatch, path+"?fieldManager=kubectl&dryRun=All&fieldValidation=Strict", in(t, p.namespace, o))
		}
	}
}

// TestKubernetesNightly runs what the CronJob would at night, with a study that needs no GPU: it measures into the claim, and
// the gate looks at what has come of it.
func TestKubernetesNightly(t *testing.T) {
	p := newPods(t)
	p.Image("perflab:latest", kubetest.Image{Entrypoint: []string{"perflab"}})
	results := t.TempDir()
	p.Claim(t, p.namespace, "perflab-results", results)
	for _, o := range []map[string]any{
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "perflab"}},
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "perflab-nightly"}, "data": map[string]any{"study.yaml": nightlyStudy}},
	} {
		p.admin.apply(t, in(t, p.namespace, o))
	}
	var job map[string]any
	for _, o := range manifestsOf(t, "nightly") {
		if o["kind"] == "CronJob" {
			spec, _ := o["spec"].(map[string]any)
			template, _ := spec["jobTemplate"].(map[string]any)
			job = map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "perflab-nightly-1"}, "spec": template["spec"]}
		}
	}
	text := strings.NewReplacer(`"cpu":"4"`, `"cpu":"100m"`, `"memory":"4Gi"`, `"memory":"64Mi"`).Replace(in(t, p.namespace, job))
	p.admin.apply(t, text)
	path := fmt.Sprintf(kinds["Job"], p.namespace) + "perflab-nightly-1"
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		var j struct {
			Status struct {
				Succeeded, Failed int
				Conditions        []map[string]any
			}
		}
		if err := json.Unmarshal(p.admin.do(t, http.MethodGet, path, ""), &j); err != nil {
			t.Fatal(err)
		}
		if j.Status.Succeeded == 1 {
			break
		}
		if j.Status.Failed > 0 || time.Now().After(end) {
			t.Fatalf("the Job has come to %+v\n%s", j.Status, p.logsOf(t, "measure", "gate"))
		}
	}
	if _, err := os.Stat(filepath.Join(results, "perflab-nightly-1", "study.json")); err != nil {
		t.Error(err)
	}
	if text := p.logsOf(t, "gate"); !strings.Contains(text, "qwen3-8b") && !strings.Contains(text, "Qwen3-8B") {
		t.Errorf("the gate looked at\n%s", text)
	}
}

// logsOf are the logs of containers of the namespace's pods.
func (p *pods) logsOf(t *testing.T, containers ...string) string {
	t.Helper()
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	at := "/api/v1/namespaces/" + p.namespace + "/pods"
	if err := json.Unmarshal(p.admin.do(t, http.MethodGet, at, ""), &list); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, pod := range list.Items {
		for _, c := range containers {
			answer, err := p.admin.send(t.Context(), http.MethodGet, at+"/"+pod.Metadata.Name+"/log?container="+c, "")
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(answer.Body) // of what there is
			answer.Body.Close()
			fmt.Fprintf(&b, "%s of %s:\n%s\n", c, pod.Metadata.Name, text)
		}
	}
	return b.String()
}

const nightlyStudy = `name: nightly
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 1}
objective: {metric: output_throughput}
workloads:
  - {name: chat, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8, max_concurrency: 4}
candidates: [{label: vLLM, engine: vllm}]
strategy: survey
runtime: {kind: predicted}
bench: {num_warmups: 0, telemetry_interval_s: 0}
`
