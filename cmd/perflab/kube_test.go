package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/test/kubetest"
)

// simulatedVLLM stands where an image has vllm: it answers what perflab asks of an engine, and
// serves as the simulator does.
const simulatedVLLM = `#!/bin/sh
case "$*" in
--version) echo 0.14.0; exit ;;
*--help*) echo "no help here" >&2; exit 1 ;;
*--headless*) exec sleep 600 ;;
esac
PERFLAB_TEST_MAIN=1 exec %s sim --gpu h100-sxm --gpus 16 --startup 100ms -- vllm "$@"
`

// pods is a cluster with a namespace, and a node whose every image has the simulated vllm.
type pods struct {
	*kubetest.Cluster
	namespace string
	admin     *api
	dir       string // that commands run in
}

func newPods(t *testing.T) *pods {
	t.Helper()
	c := kubetest.Start(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for name, text := range map[string]string{"vllm": fmt.Sprintf(simulatedVLLM, self), "vllm-router": "#!/bin/sh\nexec " + routerName + " \"$@\"\n", "hf": "#!/bin/sh\necho \"Fetching $2 with $HF_TOKEN\"\n"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(bin, "perflab"), fmt.Appendf(nil, "#!/bin/sh\nPERFLAB_TEST_MAIN=1 exec %s \"$@\"\n", self), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"any", "vllm/vllm-openai:v0.11.0", "registry.example/vllm:v1", "registry.example/perflab:v1"} {
		c.Image(ref, kubetest.Image{Programs: bin})
	}
	c.Image("perflab:latest", kubetest.Image{Programs: bin, Entrypoint: []string{"perflab"}})
	if err := os.Symlink(self, filepath.Join(bin, routerName)); err != nil {
		t.Fatal(err)
	}
	p := &pods{Cluster: c, namespace: c.Namespace(t), dir: t.TempDir()}
	c.Node(t, "node-1", kubetest.Resources{"nvidia.com/gpu": "8"}, "nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3")
	p.admin = newAPI(t, c.Kubeconfig(t, kubetest.Admin))
	return p
}

// api applies objects as kubectl does.
type api struct {
	http       *http.Client
	url, token string
}

func newAPI(t *testing.T, kubeconfig string) *api {
	t.Helper()
	text, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Clusters []struct {
			Cluster struct {
				Server string `yaml:"server"`
				CA     string `yaml:"certificate-authority-data"`
			} `yaml:"cluster"`
		} `yaml:"clusters"`
		Users []struct {
			User struct {
				Token string `yaml:"token"`
			} `yaml:"user"`
		} `yaml:"users"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil || len(c.Clusters) != 1 || len(c.Users) != 1 {
		t.Fatalf("%v in %s", err, kubeconfig)
	}
	ca, err := base64.StdEncoding.DecodeString(c.Clusters[0].Cluster.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &api{&http.Client{Transport: transport}, c.Clusters[0].Cluster.Server, c.Users[0].User.Token}
}

// kinds are where the API has the objects that tests apply.
var kinds = map[string]string{
	"ServiceAccount": "/api/v1/namespaces/%s/serviceaccounts/", "Secret": "/api/v1/namespaces/%s/secrets/",
	"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles/", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings/",
	"Pod":                   "/api/v1/namespaces/%s/pods/",
	"PersistentVolumeClaim": "/api/v1/namespaces/%s/persistentvolumeclaims/", "PersistentVolume": "/api/v1/persistentvolumes/",
	"ConfigMap": "/api/v1/namespaces/%s/configmaps/", "Service": "/api/v1/namespaces/%s/services/",
	"Deployment": "/apis/apps/v1/namespaces/%s/deployments/", "StatefulSet": "/apis/apps/v1/namespaces/%s/statefulsets/",
	"Job": "/apis/batch/v1/namespaces/%s/jobs/", "CronJob": "/apis/batch/v1/namespaces/%s/cronjobs/",
}

// apply is kubectl apply -f of a text.
func (a *api) apply(t *testing.T, text string) {
	t.Helper()
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var o struct {
			Kind     string `yaml:"kind"`
			Metadata struct {
				Name      string `yaml:"name"`
				Namespace string `yaml:"namespace"`
			} `yaml:"metadata"`
		}
		if err := yaml.Unmarshal([]byte(doc), &o); err != nil || kinds[o.Kind] == "" {
			t.Fatalf("kind %q, %v in\n%s", o.Kind, err, doc)
		}
		path := kinds[o.Kind]
		if strings.Contains(path, "%s") {
			path = fmt.Sprintf(path, o.Metadata.Namespace)
		}
		path += o.Metadata.Name
		a.do(t, http.MethodPatch, path+"?fieldManager=kubectl", doc)
		t.Cleanup(func() {
			if answer, err := a.send(context.Background(), http.MethodDelete, path+"?propagationPolicy=Background", ""); err != nil {
				t.Error(err)
			} else {
				_ = answer.Body.Close() // that it is gone is looked at when its namespace goes
			}
		})
	}
}

func (a *api) send(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	return a.http.Do(r)
}

func (a *api) do(t *testing.T, method, path, body string) []byte {
	t.Helper()
	answer, err := a.send(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		t.Fatalf("%s %s: %s, %v\n%s", method, path, answer.Status, err, text)
	}
	return text
}

// claim makes a claim that is bound to a directory of this machine.
func (p *pods) claim(t *testing.T, name string) {
	t.Helper()
	volume := p.namespace + "-" + name
	p.admin.apply(t, fmt.Sprintf(`apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: ""
  hostPath: {path: %[2]s}
  claimRef: {namespace: %[3]s, name: %[4]s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[4]s, namespace: %[3]s}
spec:
  accessModes: [ReadWriteMany]
  storageClassName: ""
  volumeName: %[1]s
  resources: {requests: {storage: 1Gi}}
`, volume, t.TempDir(), p.namespace, name))
	path := fmt.Sprintf(kinds["PersistentVolumeClaim"], p.namespace) + name
	for end := time.Now().Add(time.Minute); !bytes.Contains(p.admin.do(t, http.MethodGet, path, ""), []byte(`"Bound"`)); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the claim %s is not bound", name)
		}
	}
}

// perflab runs a command as a user of the cluster, and gives what it prints.
func (p *pods) perflab(t *testing.T, kubeconfig string, args ...string) (string, error) {
	t.Helper()
	cmd := p.command(t, kubeconfig, args...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *pods) command(t *testing.T, kubeconfig string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := perflabCommand(t, args...)
	cmd.Dir, cmd.Env = p.dir, append(cmd.Env, "KUBECONFIG="+kubeconfig)
	return cmd
}

// works runs a command that must succeed.
func (p *pods) works(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	out, err := p.perflab(t, kubeconfig, args...)
	if err != nil && !void(out) {
		t.Fatalf("perflab %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	if strings.Contains(out, "UnhandledError") {
		t.Errorf("perflab %s shows what a library logs:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// empty looks that nothing of perflab is in the namespace.
func (p *pods) empty(t *testing.T, kubeconfig string) {
	t.Helper()
	if out := p.works(t, kubeconfig, "kube", "list", "-n", p.namespace); out != "No deployment of perflab is in the namespace.\n" {
		t.Errorf("left in the namespace:\n%s", out)
	}
}

// small makes a study of the documents one that simulated engines serve in a moment.
var small = strings.NewReplacer("num_prompts: 2000", "num_prompts: 20", "random_input_len: 1024", "random_input_len: 64",
	"random_output_len: 256", "random_output_len: 8")

// shellBlock has the commands of a document.
var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestKubernetesDocument runs the commands of docs/kubernetes.md in their order, perflab's as the
// account that the Role is for: from an empty namespace to a study of six launches, which leaves nothing.
func TestKubernetesDocument(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	if err := os.Mkdir(filepath.Join(p.dir, "examples"), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../examples/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	study := strings.ReplaceAll(small.Replace(string(text)), "namespace: bench", "namespace: "+p.namespace)
	if err := os.WriteFile(filepath.Join(p.dir, "examples", "kubernetes.yaml"), []byte(study), 0o644); err != nil {
		t.Fatal(err)
	}
	p.claim(t, "models")
	doc, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	user, commands := "", 0
	before, rest, _ := strings.Cut(string(doc), serviceSection) // whose commands TestKubernetesService runs
	_, after, _ := strings.Cut(rest, "\n## ")
	for _, block := range shellBlock.FindAllStringSubmatch(before+after, -1) {
		for line := range strings.Lines(block[1]) {
			commands++
			words := strings.Fields(strings.ReplaceAll(line, " bench", " "+p.namespace))
			switch {
			case line == "kubectl create namespace bench\n": // the kit's
			case strings.HasPrefix(line, "kubectl create secret generic "):
				p.admin.apply(t, fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: %s}\nstringData: {token: %s}\n", words[4], p.namespace, canaryToken))
			case strings.HasSuffix(line, "| kubectl apply -f -\n"):
				p.admin.apply(t, p.works(t, "", words[1:5]...))
				user = p.Kubeconfig(t, p.Account(t, p.namespace, "perflab"))
			case words[0] == "perflab":
				out := p.works(t, user, words[1:]...)
				if words[2] == "check" {
					address := regexp.MustCompile(`https://\S+ answers \(\S+\)`)
					shown := regexp.MustCompile("(?s)```text\n(.*?)```").FindSubmatch(doc)
					want, got := address.ReplaceAllString(string(shown[1]), "ADDRESS"), address.ReplaceAllString(strings.ReplaceAll(out, p.namespace, "bench"), "ADDRESS")
					if d := cmp.Diff(want, got); d != "" {
						t.Errorf("docs/kubernetes.md shows another check: -shown +printed\n%s", d)
					}
				}
				if words[1] == "tune" && words[2] != "--resume" {
					checkClusterStudy(t, p, out)
				}
			default:
				t.Errorf("the test cannot run %q", line)
			}
		}
	}
	if commands < 8 {
		t.Errorf("docs/kubernetes.md has %d commands", commands)
	}
	p.empty(t, user)
}

// canaryToken is what no file of a study may have.
const canaryToken = "hf_CanaryCanaryCanary1234"

// checkClusterStudy looks at what a study of pods leaves in its directory.
func checkClusterStudy(t *testing.T, p *pods, out string) {
	t.Helper()
	root := filepath.Join(p.dir, "perflab-out", "kubernetes")
	if !concluded(out) {
		t.Errorf("the study came to no conclusion:\n%s", out)
	}
	launches, evidence, downloads := 0, 0, 0
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if bytes.Contains(text, []byte(canaryToken)) {
			t.Errorf("%s has the token", path)
		}
		switch name := filepath.Base(path); {
		case name == "header.json":
			launches++
			for _, want := range []string{`"node":`, `node-1`, `sha256:`, `"uid":`} {
				if !bytes.Contains(text, []byte(want)) {
					t.Errorf("%s does not say %s:\n%s", path, want, text)
				}
			}
		case name == "start.yaml":
			for _, want := range []string{"kind: Deployment", "claimName: models", "name: hub"} {
				if !bytes.Contains(text, []byte(want)) {
					t.Errorf("%s does not say %s:\n%s", path, want, text)
				}
			}
		case name == "download.log":
			downloads++
			if !bytes.Contains(text, []byte("Fetching Qwen/Qwen3-32B")) {
				t.Errorf("%s has %s", path, text)
			}
		case strings.HasSuffix(name, ".pod.yaml"):
			evidence++
		}
		return nil
	})
	if err != nil || launches < 6 || evidence < 6 || downloads != 1 {
		t.Errorf("%d launches with %d pods kept, want 6 or more, after %d downloads: %v", launches, evidence, downloads, err)
	}
}

// concluded reports whether a study says what to use, or cannot.
func concluded(out string) bool {
	return strings.Contains(out, "Recommended") || strings.Contains(out, "The baseline stays") || void(out)
}

// void reports whether what was measured cannot be believed, as on a busy machine.
func void(out string) bool {
	return strings.Contains(out, "  void: ") || strings.Contains(out, "the measurement is void")
}

// clusterStudy is a small study in the namespace of the test.
func (p *pods) clusterStudy(t *testing.T, name, stages, more string) string {
	t.Helper()
	path := filepath.Join(p.dir, name+".yaml")
	if stages != "" {
		stages = "stages: [{name: Sequences, try: [" + stages + "]}]"
	}
	text := fmt.Sprintf(`name: %s
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: short, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8}
strategy: staged
baseline: {label: TP2, engine: vllm, set: {tp: 2}}
%s
runtime: {kind: kubernetes, kubernetes: {image: any, namespace: %s%s}}
`, name, stages, p.namespace, more)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const sequences = "{label: s1, set: {max_num_seqs: 64}}, {label: s2, set: {max_num_seqs: 32}}"

// TestKubernetesKilled: a study that is killed while a pod serves goes on, removes what its killed
// part left, and ends as another does that runs in the same namespace.
func TestKubernetesKilled(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	user := p.Kubeconfig(t, kubetest.Admin)
	killed := p.clusterStudy(t, "killed", sequences, "")
	cmd := p.command(t, user, "tune", killed, "--out", "killed")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for served := filepath.Join(p.dir, "killed", "trials", "002", "short.tmp"); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(served); err == nil {
			break
		}
		if waited.Err() != nil {
			_ = cmd.Process.Kill() // it did not come so far
			_ = cmd.Wait()
			t.Fatalf("the second trial did not begin:\n%s", out.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if list := p.works(t, user, "kube", "list", "-n", p.namespace); !strings.Contains(list, "perflab-") {
		t.Errorf("the killed study left nothing to remove:\n%s", list)
	}
	beside := p.command(t, user, "tune", p.clusterStudy(t, "beside", "{label: s1, set: {max_num_seqs: 64}}", ", reach: forward"), "--out", "beside")
	var other bytes.Buffer
	beside.Stdout, beside.Stderr = &other, &other
	if err := beside.Start(); err != nil {
		t.Fatal(err)
	}
	again := p.works(t, user, "tune", killed, "--out", "killed", "--resume")
	if err := beside.Wait(); err != nil && !void(other.String()) {
		t.Errorf("the study beside it: %v\n%s", err, other.String())
	}
	for file, want := range map[string]string{"trial.json": "a smoke test, and no measurement", "short/summary.json": "good for a smoke test"} {
		text, err := os.ReadFile(filepath.Join(p.dir, "beside", "trials", "001", file))
		if err != nil || !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s of a study through the API server: %v, want %q in\n%s", file, err, want, text)
		}
	}
	for _, text := range []string{again, other.String()} {
		if !concluded(text) {
			t.Errorf("a study came to no conclusion:\n%s", text)
		}
	}
	p.empty(t, user)
}

// TestKubernetesLacks: what the cluster lacks ends a study in a sentence, before anything is made
// there that would wait for it.
func TestKubernetesLacks(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	user := p.Kubeconfig(t, kubetest.Admin)
	for more, want := range map[string]string{
		"pod: {spec: {nodeSelector: {a: b}}}": "no node has 2 nvidia.com/gpu for a pod, with the labels that it asks for",
		"pod: {spec: {nodeSelektor: {a: b}}}": "nodeSelektor",
		"secrets: {HF_TOKEN: hub/token}":      "there is no Secret hub, from which HF_TOKEN comes: kubectl create secret generic hub",
		`mounts: ["claim:none:/models"]`:      "there is no claim none",
		"queue: team":                         "have Kueue installed",
		"cpu: 1000":                           "no node has 1k cpu, 2 nvidia.com/gpu",
	} {
		out, err := p.perflab(t, user, "tune", p.clusterStudy(t, "lacks", "", ", "+more), "--out", "lacks")
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, want %q in\n%s", more, err, want, out)
		}
		if _, err := os.Stat(filepath.Join(p.dir, "lacks")); err == nil {
			t.Errorf("%s: the study has begun", more)
		}
	}
	p.empty(t, user)
}

// TestKubernetesOverNodes: a replica that needs two nodes is a group of pods, measured at its leader.
func TestKubernetesOverNodes(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	p.Node(t, "node-2", kubetest.Resources{"nvidia.com/gpu": "8"})
	user := p.Kubeconfig(t, kubetest.Admin)
	path := filepath.Join(p.dir, "nodes.yaml")
	text := fmt.Sprintf(`name: nodes
model: Qwen/Qwen3-235B-A22B
hardware: {gpu: h100-sxm, gpus: 16, nodes: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: short, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8}
strategy: survey
candidates: [{label: two nodes, engine: vllm, set: {tp: 8, pp: 2}}]
runtime: {kind: kubernetes, spread: native, kubernetes: {image: any, namespace: %s}}
`, p.namespace)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out := p.works(t, user, "tune", path, "--out", "nodes")
	header, err := os.ReadFile(filepath.Join(p.dir, "nodes", "trials", "001", "short", "header.json"))
	if err != nil {
		t.Fatalf("%v after\n%s", err, out)
	}
	for _, node := range []string{`-node-1"`, `-node-2"`} {
		if !bytes.Contains(header, []byte(node)) {
			t.Errorf("no pod ran on %s:\n%s", node, header)
		}
	}
	manifests, err := os.ReadFile(filepath.Join(p.dir, "nodes", "trials", "001", "start.yaml"))
	if err != nil || !bytes.Contains(manifests, []byte("kind: LeaderWorkerSet")) {
		t.Errorf("%v of\n%s", err, manifests)
	}
	p.empty(t, user)
}

// TestKubernetesApart: engines behind a router are containers of one pod, each begun in its turn and
// with GPUs of its own.
func TestKubernetesApart(t *testing.T) {
	t.Parallel()
	p := newPods(t)
	user := p.Kubeconfig(t, kubetest.Admin)
	path := filepath.Join(p.dir, "apart.yaml")
	text := fmt.Sprintf(`name: apart
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads:
  - {name: short, dataset_name: random, num_prompts: 20, random_input_len: 64, random_output_len: 8}
strategy: survey
candidates: [{label: apart, engine: vllm, set: {disaggregation: "1:1"}}]
runtime: {kind: kubernetes, kubernetes: {image: any, namespace: %s, pod: {spec: {containers: [{name: engine, env: [{name: SITE, value: here}]}]}}}}
`, p.namespace)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := p.perflab(t, user, "tune", path, "--out", "apart") // on a busy machine the trial may be void
	logs := filepath.Join(p.dir, "apart", "trials", "001", "logs")
	for name, want := range map[string]string{
		"replica-0.log": "STAND-IN router before 1 prefill and 1 decode engines", "replica-0.prefill-0.log": "kv_producer", "replica-0.decode-0.log": "kv_consumer",
		"replica-0.pod.yaml": "nvidia.com/gpu: \"1\"",
	} {
		if log, err := os.ReadFile(filepath.Join(logs, name)); err != nil || !bytes.Contains(log, []byte(want)) {
			t.Errorf("%s does not say %s: %v\n%s", name, want, err, log)
		}
	}
	trial, readErr := os.ReadFile(filepath.Join(p.dir, "apart", "trials", "001", "trial.json"))
	if readErr != nil || !regexp.MustCompile(`"status": "(ok|void)"`).Match(trial) {
		t.Errorf("%v, %v after\n%s", err, readErr, out)
	}
	p.empty(t, user)
}
