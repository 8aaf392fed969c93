package study

import (
	"strings"
	"testing"

	"perflab/internal/deploy/kube"
)

// clusterStudy is a study of pods, with hardware and what else is given.
func clusterStudy(gpu, more, runtime string) string {
	return `name: t
model: Qwen/Qwen3-8B
hardware: {` + gpu + `}
objective: {metric: total_token_throughput}
workloads: [{name: a, dataset_name: random, num_prompts: 10}]
strategy: staged
baseline: {label: base, engine: vllm}
` + more + `
runtime:
` + runtime
}

const h100s = "gpu: h100-sxm, gpus: 2"

// TestClusterStudies: what is wrong with a study of pods is said where it stands.
func TestClusterStudies(t *testing.T) {
	const ok = "  kind: kubernetes\n  kubernetes: {image: i}"
	for _, tt := range []struct{ name, hardware, more, runtime, want string }{
		{"an image", h100s, "", ok, ""},
		{"an engine's own image", h100s, "engines: {vllm: {image: i, env: [A=b]}}", "  kind: kubernetes", ""},
		{"all", h100s, "engines: {vllm: {env: [A=b], flags: [--x]}}", `  kind: kubernetes
  kubernetes:
    context: lab
    image: i
    namespace: bench
    reach: pods
    mounts: ["claim:models:/models:ro"]
    secrets: {HF_TOKEN: hub/token}
    pod: {spec: {nodeSelector: {gpu: h100}, tolerations: [{operator: Exists}]}}
`, ""},
		{"over machines", "gpu: h100-sxm, gpus: 16, nodes: 2", "", ok + "\n  spread: ray", ""},
		{"uneven machines", "gpu: h100-sxm, gpus: 15, nodes: 2", "", ok, "t.yaml:3:44: 15 gpus do not spread evenly over 2 nodes"},
		{"no such spread", "gpu: h100-sxm, gpus: 16, nodes: 2", "", ok + "\n  spread: rpc", "t.yaml:12:11: vllm cannot span machines by rpc"},
		{"no image", h100s, "", "  kind: kubernetes", "t.yaml:10:3: vllm: image is missing: name the image that has the engine"},
		{"no image there", h100s, "", "  kind: kubernetes\n  kubernetes: {namespace: bench}", "t.yaml:11:15: vllm: image is missing"},
		{"a wrong mount", h100s, "", "  kind: kubernetes\n  kubernetes:\n    image: i\n    mounts:\n    - claim:a:/a\n    - x", `t.yaml:15:7: mounts[1] "x": write it as`},
		{"a wrong template", h100s, "", "  kind: kubernetes\n  kubernetes:\n    image: i\n    pod:\n      spec:\n        containers:\n        - {name: engine, livenessProbe: {}}", "t.yaml:16:11: pod.spec.containers[0] livenessProbe cannot be set here"},
		{"an unknown key", h100s, "", "  kind: kubernetes\n  kubernetes: {image: i, mount: [a]}", `t.yaml:11:26: unknown key "mount": did you mean mounts?`},
		{"a value as a secret", h100s, "", "  kind: kubernetes\n  kubernetes: {image: i, secrets: {HF_TOKEN: hf_AbCdEfGhIjKlMnOpQrSt}}", "name the Secret and its key as SECRET/KEY, never the value"},
		{"a secret in env", h100s, "engines: {vllm: {env: [HF_TOKEN=hf_AbCdEfGhIjKlMnOpQrSt]}}", ok, "t.yaml:8:24: the value of HF_TOKEN would stand in the cluster for whoever may read pods"},
		{"a secret twice", h100s, "engines: {vllm: {env: [HF_TOKEN=x]}}", "  kind: kubernetes\n  kubernetes: {image: i, secrets: {HF_TOKEN: a/b}}", "HF_TOKEN is named under runtime.kubernetes.secrets too"},
		{"a secret flag", h100s, "engines: {vllm: {flags: [--api-key, abcdefghijkl]}}", ok, "t.yaml:8:25: a secret stands here"},
		{"devices", h100s + ", devices: [0, 1]", "", ok, "the cluster gives each pod its devices"},
		{"no known resource", "gpu: ascend-910b, gpus: 2", "", ok, "resource is missing: the name by which the cluster offers"},
		{"a CPU", "gpu: cpu, gpus: 1", "", ok, ""},
		{"AMD", "gpu: mi300x, gpus: 2", "", ok, ""},
		{"a Service", h100s, "", "  kind: existing\n  service: prod/llama\n  port: 8000\n  kubernetes: {context: lab, reach: service, load: {agents: 2, image: p}}", ""},
		{"a Service behind a gateway", h100s, "", "  kind: existing\n  urls: [http://gateway]\n  service: llama\n  port: http", ""},
		{"no Service", h100s, "", "  kind: existing", "needs urls: the base URLs of the running engine (or service: a Service of a Kubernetes cluster)"},
		{"a wrong Service", h100s, "", "  kind: existing\n  service: prod/llama/8000", `t.yaml:11:12: "prod/llama/8000" is no name of a Service: write NAMESPACE/NAME`},
		{"a wrong port", h100s, "", "  kind: existing\n  service: prod/llama\n  port: a/b", `"a/b" is no port of a Service: give its number or its name`},
		{"a port alone", h100s, "", "  kind: existing\n  urls: [http://a]\n  port: 80", "t.yaml:12:9: port is that of a service"},
		{"a Service to start", h100s, "", ok + "\n  service: prod/llama", "t.yaml:12:12: service applies to runtime kind existing, not kubernetes"},
		{"a Service with hooks", h100s, "", "  kind: existing\n  service: prod/llama\n  hooks: {start: a, stop: b}", "t.yaml:12:10: hooks start and stop what urls name, and a service is measured as it is"},
		{"an image of a Service", h100s, "", "  kind: existing\n  service: prod/llama\n  kubernetes: {image: i}", "t.yaml:12:23: image is for pods that perflab makes, and those of a service are there"},
		{"no such reach", h100s, "", "  kind: existing\n  service: prod/llama\n  kubernetes: {reach: ingress}", `"ingress" must be service or pods or forward`},
		{"a reach beside urls", h100s, "", "  kind: existing\n  service: prod/llama\n  urls: [http://a]\n  kubernetes: {reach: pods}", "reach says how requests get to the service, and urls send them elsewhere"},
		{"no agents", h100s, "", "  kind: existing\n  service: prod/llama\n  kubernetes: {load: {image: p}}", "agents 0 must be from 1 to 1000"},
		{"the reach of a Service", h100s, "", "  kind: kubernetes\n  kubernetes: {image: i, reach: service}", `"service" must be pods or forward`},
		{"a cluster of urls", h100s, "", "  kind: existing\n  urls: [http://a]\n  kubernetes: {context: lab}", "kubernetes does not apply to runtime kind existing"},
		{"of another kind", h100s, "", "  kind: docker\n  docker: {image: i}\n  kubernetes: {image: i}", "kubernetes does not apply to runtime kind docker"},
		{"an image of another kind", h100s, "engines: {vllm: {image: i}}", "  kind: process", "image applies to runtime kinds docker, kubernetes and fleet, not process"},
		{"a directory", h100s, "", ok + "\n  dir: /x", "dir does not apply to runtime kind kubernetes"},
		{"hosts", h100s, "", ok + "\n  hosts: [{name: a}]", "hosts does not apply to runtime kind kubernetes"},
		{"machines", h100s, "", ok + "\n  machines: [{name: a}, {name: b}]", "machines do not apply to runtime kind kubernetes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse("t.yaml", []byte(clusterStudy(tt.hardware, tt.more, tt.runtime)))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hf_AbCdEf") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

// TestCluster: what an engine is started with follows from the runtime, the engine and the hardware.
func TestCluster(t *testing.T) {
	for gpu, want := range map[string]string{h100s: "nvidia.com/gpu", "gpu: mi300x, gpus: 2": "amd.com/gpu", "gpu: cpu, gpus: 1": ""} {
		s, err := Parse("t.yaml", []byte(clusterStudy(gpu, "engines: {vllm: {image: own}}", "  kind: kubernetes\n  kubernetes: {image: any, namespace: bench}")))
		if err != nil {
			t.Fatal(err)
		}
		if k := s.Cluster("vllm"); k.Image != "own" || k.Resource != want || k.Namespace != "bench" {
			t.Errorf("%s: %+v", gpu, k)
		}
		if k := s.Cluster("sglang"); k.Image != "any" {
			t.Errorf("%s: %+v", gpu, k)
		}
	}
	var f File
	if k := f.Cluster("vllm"); k.Image != "" || k.Reach != (kube.Settings{}).Reach {
		t.Errorf("of nothing: %+v", k)
	}
}

// TestSecretsOfCluster: the names of Secrets are no secrets: else text that has them had holes.
func TestSecretsOfCluster(t *testing.T) {
	s, err := Parse("t.yaml", []byte(clusterStudy(h100s, "", "  kind: kubernetes\n  kubernetes: {image: i, secrets: {HF_TOKEN: credentials/token}}")))
	if err != nil {
		t.Fatal(err)
	}
	if text := s.Secrets().Text("mounted from credentials/token"); text != "mounted from credentials/token" {
		t.Errorf("shown as %q", text)
	}
	if s.Runtime.Kubernetes.Secrets["HF_TOKEN"] != "credentials/token" {
		t.Error("the study has lost its reference")
	}
}
