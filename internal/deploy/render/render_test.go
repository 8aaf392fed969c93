package render_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/deploy"
	"perflab/internal/deploy/render"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/engine/shellwords"
	"perflab/internal/test/deploytest"
)

func TestMain(m *testing.M) {
	deploytest.EngineMain()
	os.Exit(deploytest.Main(m))
}

// hidden is what no text may have.
const hidden = "hf_AbCdEfGhIjKlMnOpQrSt"

func parsed(t *testing.T, line string) engine.Command {
	t.Helper()
	words, err := shellwords.Split(line)
	if err != nil {
		t.Fatal(err)
	}
	c, err := engine.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// two replicas on one machine, with all that needs care in quoting.
func oneMachine(t *testing.T) render.Plan {
	c := parsed(t, `vllm serve Qwen/Qwen3-32B -tp 2 --api-key `+hidden+` --served-model-name "it's $HOME" --speculative-config '{"method": "ngram", "num_speculative_tokens": 3}'`)
	p := render.Plan{
		Name: "qwen3-32b-tp-2", Comments: []string{"Qwen/Qwen3-32B on 4 x NVIDIA H100", "Command: vllm serve --api-key " + hidden},
		Bench: "perflab bench --base-url http://HOST:PORT --model Qwen/Qwen3-32B --num-prompts 200",
		Image: "vllm/vllm-openai:v0.17.1", Ulimits: []string{"memlock=-1", "stack=67108864"}, Caches: []string{"/root/.cache/vllm"},
		Mounts: []render.Mount{{Source: "/models", Target: "/models", ReadOnly: true}}, Pods: render.Pods{Mounts: []string{"/models:/models:ro"}},
		Spec: deploy.Spec{Name: "trial 3", Health: "/health", Timeout: 10 * time.Minute},
	}
	for _, devices := range [][]string{{"0", "3"}, {"1", "2"}} {
		p.Spec.Replicas = append(p.Spec.Replicas, deploy.Replica{Member: deploy.Member{
			Argv: append(c.ArgvPort("0.0.0.0", "{port}"), "--chat-template", "{file:chat.jinja}"),
			Env:  []string{"HF_TOKEN=" + hidden, "VLLM_LOGGING_LEVEL=INFO", "EMPTY="}, Devices: devices,
			Files: []deploy.File{{Name: "chat.jinja", Text: "{% for m in messages %}\n  it's $x: {{ m }}\n{% endfor %}\n"}},
		}})
	}
	return p
}

// machines is a command spread over so many nodes of so many GPUs.
func machines(t *testing.T, name, line, method string, nodes, gpus int, addr func(node string) string) render.Plan {
	t.Helper()
	p := render.Plan{
		Name: name, Image: "image:1", Spec: deploy.Spec{Health: "/health"}, Bench: "perflab bench --base-url http://HOST:PORT",
		Partition: "gpu", TimeLimit: "04:00:00", Pods: render.Pods{Namespace: "serving"},
	}
	for i := range nodes {
		n := cluster.Node{Name: string(rune('a' + i)), Interface: "ib0"}
		n.Addr = addr(n.Name)
		n.Devices = cluster.Devices(gpus)
		p.Nodes = append(p.Nodes, n)
	}
	parts, err := cluster.Spread(parsed(t, line), p.Nodes, method)
	if err != nil {
		t.Fatal(err)
	}
	p.Spec.Replicas = []deploy.Replica{deploy.Spread(parts)}
	return p
}

func known(node string) string {
	return "10.0.0." + map[string]string{"a": "1", "b": "2", "c": "3"}[node]
}

const (
	rayLine    = "HF_TOKEN=" + hidden + " vllm serve m -tp 8 -pp 2"
	nativeLine = "vllm serve m -tp 4 -pp 3"
	dpLine     = "vllm serve m -dp 6 --enable-expert-parallel"
	sglangLine = "python3 -m sglang.launch_server --model-path m --tp-size 16"
	trtllmLine = "trtllm-serve m --tp_size 16"
)

// pooled is what a site plans of a command whose engines are in pools.
func pooled(t *testing.T, format string, s render.Site, line, pools, prefill, decode string) render.Plan {
	t.Helper()
	c, err := parsed(t, line).Apart(pools, strings.Fields(prefill), strings.Fields(decode), []string{"--policy", "random", "--api-key", hidden})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range render.Formats() {
		if f.Name == format {
			s.Format = f
		}
	}
	s.GPUs, s.Nodes = max(s.GPUs, 1), max(s.Nodes, 1)
	p, err := s.Plan(render.Configuration{Name: "apart", Label: "apart", Command: c, World: c.World(), Bench: "perflab bench --base-url http://HOST:PORT"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	vllmLine = "HF_TOKEN=" + hidden + " vllm serve m --max-num-seqs 64"
	sglLine  = "python3 -m sglang.launch_server --model-path m --api-key " + hidden
)

func TestGolden(t *testing.T) {
	here := oneMachine(t)
	slurm := here
	slurm.Nodes = []cluster.Node{{Name: "", Addr: render.Addr("")}}
	for _, c := range []struct {
		name   string
		render func(render.Plan) (string, error)
		plan   render.Plan
	}{
		{"one.sh", render.Script, here},
		{"one.compose.yaml", render.Compose, here},
		{"one.sbatch", render.Slurm, slurm},
		{"one.k8s.yaml", render.Kubernetes, here},
		{"ray.sh", render.Script, machines(t, "ray", rayLine, cluster.Ray, 2, 8, known)},
		{"ray.sbatch", render.Slurm, machines(t, "ray", rayLine, cluster.Ray, 2, 8, render.Addr)},
		{"ray.k8s.yaml", render.Kubernetes, machines(t, "ray", rayLine, cluster.Ray, 2, 8, render.Addr)},
		{"native.k8s.yaml", render.Kubernetes, machines(t, "native", nativeLine, cluster.Native, 3, 4, render.Addr)},
		{"dp.k8s.yaml", render.Kubernetes, machines(t, "dp", dpLine, "", 3, 2, render.Addr)},
		{"sglang.sbatch", render.Slurm, machines(t, "sglang", sglangLine, "", 2, 8, render.Addr)},
		{"trtllm.sh", render.Script, machines(t, "trtllm", trtllmLine, "", 2, 8, known)},
		{"trtllm.sbatch", render.Slurm, machines(t, "trtllm", trtllmLine, "", 2, 8, render.Addr)},
		{"pools.sh", render.Script, pooled(t, "script", render.Site{GPUs: 4}, vllmLine, "1:1", "--max-num-batched-tokens 16384", "")},
		{"pools.remote.sh", render.Script, pooled(t, "script", render.Site{GPUs: 2, Hosts: []string{"a=10.0.0.1", "b=10.0.0.2"}}, sglLine, "1:1", "--tp-size 2", "--tp-size 2")},
		{"pools.sbatch", render.Slurm, pooled(t, "slurm", render.Site{GPUs: 2, Nodes: 2, Images: []string{"engine:1", "router=router:1"}}, vllmLine, "2:1", "", "-tp 2")},
		{"pools.compose.yaml", render.Compose, pooled(t, "compose", render.Site{GPUs: 4, Images: []string{"engine:1", "router=router:1"}}, vllmLine, "1:1", "", "")},
		{"pools.k8s.yaml", render.Kubernetes, pooled(t, "kubernetes", render.Site{GPUs: 4, Images: []string{"router=router:1", "vllm=engine:1"}}, vllmLine, "2:1", "", "-tp 2")},
		{"pools.sglang.k8s.yaml", render.Kubernetes, pooled(t, "kubernetes", render.Site{GPUs: 2, Nodes: 2, Namespace: "serving", Images: []string{"engine:1"}}, sglLine, "1:1", "", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.render(c.plan)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(got, hidden) {
				t.Error("the text holds a secret")
			}
			if again, _ := c.render(c.plan); again != got {
				t.Error("the text is another one the second time")
			}
			if strings.HasSuffix(c.name, ".yaml") {
				documents(t, got)
			} else {
				syntax(t, got)
			}
			golden(t, c.name, got)
		})
	}
}

// golden compares with a file that was read in review. PERFLAB_UPDATE=1 writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("PERFLAB_UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got\n%s", path, d)
	}
}

// documents are the YAML documents of a text.
func documents(t *testing.T, text string) []map[string]any {
	t.Helper()
	var out []map[string]any
	if _, after, ok := strings.Cut(text, "\n---\n"); ok { // comments stand before
		text = after
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		var v map[string]any
		if err := yaml.Load([]byte(doc+"\n"), &v); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		out = append(out, v)
	}
	return out
}

// syntax has bash read a program without running it.
func syntax(t *testing.T, text string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to read it")
	}
	cmd := exec.Command(bash, "-n")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("bash -n: %v\n%s", err, out)
	}
}

// at walks into a YAML document by keys and indices.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// TestYAMLMeans: what a YAML reader gets is what was meant, through every quoting.
func TestYAMLMeans(t *testing.T) {
	text, err := render.Compose(oneMachine(t))
	if err != nil {
		t.Fatal(err)
	}
	doc := documents(t, text)[0]
	argv, _ := at(doc, "services", "replica-1", "entrypoint").([]any)
	words := make([]string, len(argv))
	for i, a := range argv {
		words[i], _ = a.(string)
	}
	want := []string{"vllm", "serve", "Qwen/Qwen3-32B", "-tp", "2", "--speculative-config", `{"method":"ngram","num_speculative_tokens":3}`, "--api-key", "${API_KEY:?set API_KEY}",
		"--served-model-name", "it's $$HOME", "--host", "0.0.0.0", "--port", "8001", "--chat-template", "/etc/perflab/chat.jinja"}
	if d := cmp.Diff(want, words); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for _, c := range []struct {
		want any
		path []any
	}{
		{"1", []any{"services", "replica-1", "deploy", "resources", "reservations", "devices", 0, "device_ids", 0}},
		{"HF_TOKEN=${HF_TOKEN:?set HF_TOKEN}", []any{"services", "replica-0", "environment", 0}},
		{"EMPTY=", []any{"services", "replica-0", "environment", 2}},
		{"{% for m in messages %}\n  it's $$x: {{ m }}\n{% endfor %}\n", []any{"configs", "replica-0-chat-jinja", "content"}},
		{"no", []any{"services", "replica-0", "restart"}},
		{-1, []any{"services", "replica-0", "ulimits", "memlock"}},
		{"host", []any{"services", "replica-0", "ipc"}},
		{"/models:/models:ro", []any{"services", "replica-0", "volumes", 0}},
		{"replica-1-cache-0:/root/.cache/vllm", []any{"services", "replica-1", "volumes", 1}},
	} {
		if got := at(doc, c.path...); got != c.want {
			t.Errorf("%v: %#v, want %#v", c.path, got, c.want)
		}
	}
}

func TestKubernetesMeans(t *testing.T) {
	text, err := render.Kubernetes(machines(t, "dp", dpLine, "", 3, 2, render.Addr))
	if err != nil {
		t.Fatal(err)
	}
	docs := documents(t, text)
	spec := at(docs[0], "spec", "leaderWorkerTemplate")
	if docs[0]["kind"] != "LeaderWorkerSet" || at(spec, "size") != 3 {
		t.Errorf("%v of size %v", docs[0]["kind"], at(spec, "size"))
	}
	if got := at(spec, "leaderTemplate", "spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"); got != 2 {
		t.Errorf("%v GPUs", got)
	}
	leader, _ := at(spec, "leaderTemplate", "spec", "containers", 0, "command").([]any)
	if len(leader) < 3 || leader[0] != "vllm" {
		t.Errorf("the leader runs %v", leader)
	}
	script, _ := at(spec, "workerTemplate", "spec", "containers", 0, "command", 2).(string)
	for _, want := range []string{"1)\nexec vllm serve", "--data-parallel-start-rank 2 ", "2)\nexec vllm serve", "--data-parallel-start-rank 4 ", `--data-parallel-address "$LWS_LEADER_ADDRESS"`} {
		if !strings.Contains(script, want) {
			t.Errorf("the workers' program lacks %q:\n%s", want, script)
		}
	}
	syntax(t, script)
	if probe := at(spec, "workerTemplate", "spec", "containers", 0, "readinessProbe"); probe != nil {
		t.Error("a worker serves nothing, and is probed")
	}
}

// TestPoolsInKubernetes: the engines of a pool are alike and know their own address, and the
// router knows each by its name, and waits for it.
func TestPoolsInKubernetes(t *testing.T) {
	text, err := render.Kubernetes(pooled(t, "kubernetes", render.Site{GPUs: 3, Nodes: 2, Images: []string{"engine:1", "router=router:1"}}, vllmLine, "2:1", "", ""))
	if err != nil {
		t.Fatal(err)
	}
	docs := documents(t, text)
	var kinds []string
	for _, d := range docs {
		name, _ := at(d, "metadata", "name").(string)
		kinds = append(kinds, d["kind"].(string)+" "+name)
	}
	replica := func(n string) []string {
		return []string{"StatefulSet apart-" + n + "-prefill", "Service apart-" + n + "-prefill", "StatefulSet apart-" + n + "-decode", "Service apart-" + n + "-decode", "Deployment apart-" + n + "-router"}
	}
	if want := append(append(replica("0"), replica("1")...), "Service apart"); !slices.Equal(kinds, want) {
		t.Fatalf("objects %q, want %q", kinds, want)
	}
	engine := at(docs[5], "spec", "template", "spec", "containers", 0)
	command, _ := at(engine, "command").([]any)
	for _, c := range []struct {
		of   any
		want any
		path []any
	}{
		{docs[5], 2, []any{"spec", "replicas"}},
		{docs[5], "apart-1-prefill", []any{"spec", "serviceName"}},
		{docs[5], "Parallel", []any{"spec", "podManagementPolicy"}},
		{docs[5], "apart-1", []any{"spec", "template", "metadata", "labels", "replica"}},
		{docs[6], "None", []any{"spec", "clusterIP"}},
		{docs[6], "prefill", []any{"spec", "selector", "role"}},
		{docs[6], "apart-1", []any{"spec", "selector", "replica"}},
		{engine, "$(POD_IP)", []any{"env", 1, "value"}},
		{engine, 1, []any{"resources", "limits", "nvidia.com/gpu"}},
		{engine, command[len(command)-1], []any{"command", len(command) - 1}},
		{docs[10], "router", []any{"spec", "selector", "role"}},
		{docs[10], nil, []any{"spec", "selector", "replica"}},
		{docs[9], "router:1", []any{"spec", "template", "spec", "containers", 0, "image"}},
		{docs[9], "engine:1", []any{"spec", "template", "spec", "initContainers", 0, "image"}},
	} {
		if got := at(c.of, c.path...); got != c.want {
			t.Errorf("%v: %#v, want %#v", c.path, got, c.want)
		}
	}
	port := fmt.Sprint(command[len(command)-1])
	wait, _ := at(docs[9], "spec", "template", "spec", "initContainers", 0, "command", 2).(string)
	router := fmt.Sprint(at(docs[9], "spec", "template", "spec", "containers", 0, "command"))
	for _, n := range []string{"0", "1"} {
		base := "http://apart-1-prefill-" + n + ".apart-1-prefill:" + port
		if !strings.Contains(wait, base+"/health") || !strings.Contains(router, "--prefill "+base+" ") {
			t.Errorf("%s is missing in\n%s\n%s", base, wait, router)
		}
	}
	syntax(t, wait)
}

// TestPoolsOfASite: what a site lacks for engines in pools is said.
func TestPoolsOfASite(t *testing.T) {
	formats := map[string]render.Format{}
	for _, f := range render.Formats() {
		formats[f.Name] = f
	}
	for _, c := range []struct {
		site  render.Site
		line  string
		pools string
		want  string
	}{
		{render.Site{Format: formats["compose"], GPUs: 2, Nodes: 1, Images: []string{"engine:1"}}, "vllm serve m", "1:1", "vLLM's router is a package of its own, vllm-router, which vLLM's images lack: name one that has it by image router=IMAGE"},
		{render.Site{Format: formats["slurm"], GPUs: 2, Nodes: 1, Images: []string{"engine:1"}}, "vllm serve m", "1:1", "which vLLM's images lack"},
		{render.Site{Format: formats["script"], GPUs: 2, Nodes: 1}, "vllm serve m", "2:1", "a replica takes 3 GPUs, and there are 2"},
		{render.Site{Format: formats["script"], GPUs: 3, Nodes: 1, Hosts: []string{"a=10.0.0.1", "b=10.0.0.2"}}, "vllm serve m -tp 2", "2:1", "an engine of 2 GPUs has no place on 2 nodes of 3 GPUs"},
		{render.Site{Format: formats["kubernetes"], GPUs: 3, Nodes: 2, Images: []string{"i", "router=r"}}, "vllm serve m -tp 2", "2:1", "an engine of 2 GPUs has no place on 2 nodes of 3 GPUs"},
		{render.Site{Format: formats["script"], GPUs: 1, Nodes: 1, Hosts: []string{"a", "b"}}, "vllm serve m", "1:1", "engines want addresses there"},
	} {
		cmd, err := parsed(t, c.line).Apart(c.pools, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.site.Plan(render.Configuration{Name: "apart", Command: cmd, World: cmd.World()}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s of %s as %s: %v, want %s", c.site.Format.Name, c.line, c.pools, err, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	noImage, badName, stray, unlike := oneMachine(t), oneMachine(t), oneMachine(t), oneMachine(t)
	noImage.Image, badName.Name = "", "Qwen 3"
	stray.Spec.Replicas[0].Node = "z"
	unlike.Spec.Replicas[1].Argv = append(unlike.Spec.Replicas[1].Argv, "--enforce-eager")
	badLimit := oneMachine(t)
	badLimit.Ulimits = []string{"memlock"}
	addressed := oneMachine(t)
	addressed.Spec.Replicas[0].Files[0].Text = "{addr:a}"
	two := machines(t, "ray", rayLine, cluster.Ray, 2, 8, render.Addr)
	images := []string{"engine:1", "router=router:1"}
	local := pooled(t, "compose", render.Site{GPUs: 2, Images: images}, vllmLine, "1:1", "", "")
	mixed := pooled(t, "compose", render.Site{GPUs: 2, Images: images}, vllmLine, "1:1", "", "")
	mixed.Spec.Replicas[0].Peers[0].Serves = ""
	wide := pooled(t, "slurm", render.Site{GPUs: 1, Nodes: 2, Images: images}, vllmLine, "1:1", "", "")
	uneven := pooled(t, "kubernetes", render.Site{GPUs: 3, Images: images}, vllmLine, "2:1", "", "")
	uneven.Spec.Replicas[0].Peers[1].Argv = append(uneven.Spec.Replicas[0].Peers[1].Argv, "--seed", "1")
	long := pooled(t, "kubernetes", render.Site{GPUs: 2, Images: images}, vllmLine, "1:1", "", "")
	long.Name = "a" + strings.Repeat("b", 47)
	for _, c := range []struct {
		render func(render.Plan) (string, error)
		plan   render.Plan
		want   string
	}{
		{render.Compose, noImage, "name the container image: the engine runs in one here"},
		{render.Kubernetes, noImage, "name the container image: the engine runs in one here"},
		{render.Script, badName, `the name "Qwen 3" is no name for files and services: use lower-case letters, digits and dashes`},
		{render.Script, stray, `replica-0 runs on "z", which is none of the nodes`},
		{render.Script, addressed, "the file chat.jinja refers to an address or another file, which only a running deployment knows"},
		{render.Script, two, "node a has no address: name the hosts"},
		{render.Kubernetes, unlike, "replica 1 differs from the first: Kubernetes starts replicas that are alike"},
		{render.Compose, badLimit, `ulimit "memlock": write it as memlock=-1`},
		{render.Compose, two, "a compose file describes one machine, and a replica here spans several: use a script, Slurm or Kubernetes"},
		{render.Slurm, oneMachine(t), "a Slurm job needs its nodes: say how many"},
		{render.Kubernetes, local, "replica-0.prefill-0 is no engine that has a pod of its own, as all behind a router have in Kubernetes: use a script or Slurm"},
		{render.Compose, mixed, "a compose file describes one machine, and a replica here spans several: use a script, Slurm or Kubernetes"},
		{render.Compose, wide, "a compose file describes one machine, and there are 2: use a script, Slurm or Kubernetes"},
		{render.Kubernetes, uneven, "replica-0.prefill-1 differs from replica-0.prefill-0: Kubernetes starts engines of a pool that are alike"},
		{render.Kubernetes, long, "the name " + long.Name + "-prefill is too long for a StatefulSet: make the name 4 letters shorter"},
		{render.Kubernetes, machines(t, "t", trtllmLine, "", 2, 8, render.Addr), "mpirun reaches other machines by ssh, which pods do not offer: use a script or Slurm"},
	} {
		_, err := c.render(c.plan)
		if err == nil || err.Error() != c.want {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	var lacking *render.MissingError
	if _, err := render.Slurm(oneMachine(t)); !errors.As(err, &lacking) {
		t.Errorf("%T is no MissingError", err)
	}
}

// TestSecretsOfLists: of a flag with several secret values none shows, not even as the
// name of a variable.
func TestSecretsOfLists(t *testing.T) {
	p := oneMachine(t)
	p.Spec.Replicas[0].Argv = []string{"vllm", "serve", "m", "--port", "{port}", "--api-key", "alpha=1", "beta", "--x", "Bearer abcdefghijklmnop"}
	text, err := render.Script(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"alpha", "ALPHA", "beta", "BETA", "abcdefghij"} {
		if strings.Contains(text, bad) {
			t.Errorf("the script holds %q", bad)
		}
	}
	for _, want := range []string{`"${API_KEY}"`, `"${API_KEY_2}"`, `"${X}"`, ": \"${API_KEY_2:?"} {
		if !strings.Contains(text, want) {
			t.Errorf("the script lacks %s", want)
		}
	}
}

// TestSecretsOfPools: the router's key is another variable than that of its engines where it is
// another key.
func TestSecretsOfPools(t *testing.T) {
	p := pooled(t, "script", render.Site{GPUs: 2}, strings.Replace(sglLine, hidden, "sk-of-engines-1234", 1), "1:1", "", "")
	text, err := render.Script(p)
	if err != nil {
		t.Fatal(err)
	}
	_, router, _ := strings.Cut(text, "# routers")
	if strings.Count(text, `"${API_KEY}"`) != 2 || strings.Count(router, `"${API_KEY_2}"`) != 1 || !strings.Contains(text, ": \"${API_KEY_2:?") {
		t.Errorf("the keys are mixed up:\n%s", text)
	}
}

// TestOddWords: arguments and files that YAML, compose or the kubelet would take
// otherwise arrive as they are.
func TestOddWords(t *testing.T) {
	for _, odd := range []string{
		"", " ", "true", "No", "null", "~", "1e3", "0x1f", "-", "- a", "a: b", "#c", "a #c", "'", `"`, `\`, "a\tb", "a\nb\n", "a \n", "\n", "  x\n", "{a}", "[a]", "&a", "*a", "!a", "%a", "@a", "`a`",
		"$HOME", "$(HOME)", "$$(HOME)", "${HOME}", "ä\u2028\u0085", "|", ">", "?", "2026-01-01", "<&>",
	} {
		p := oneMachine(t)
		p.Spec.Replicas = p.Spec.Replicas[:1]
		r := &p.Spec.Replicas[0]
		r.Argv, r.Env = []string{"vllm", "{port}", "x" + odd, odd}, nil
		r.Files = []deploy.File{{Name: "f", Text: odd}}
		compose, err := render.Compose(p)
		if err != nil {
			t.Fatal(err)
		}
		doc := documents(t, compose)[0]
		for i, want := range []string{"x" + odd, odd} {
			got, _ := at(doc, "services", "replica-0", "entrypoint", 2+i).(string)
			if strings.ReplaceAll(got, "$$", "$") != want {
				t.Errorf("compose: %q arrives as %q", want, got)
			}
		}
		manifests, err := render.Kubernetes(p)
		if err != nil {
			t.Fatal(err)
		}
		docs := documents(t, manifests)
		got, _ := at(docs[1], "spec", "template", "spec", "containers", 0, "command", 3).(string)
		if strings.ReplaceAll(got, "$$", "$") != odd {
			t.Errorf("kubernetes: %q arrives as %q", odd, got)
		}
		if text, _ := at(docs[0], "data", "f").(string); text != odd {
			t.Errorf("kubernetes: the file %q arrives as %q", odd, text)
		}
	}
}

// Where a signal comes while bash 5.2 reads $(...) or <(...), a trap's text is read as the rest of it, and the
// script ends with a syntax error in place of ending what it started.
func TestNothingIsSubstitutedUnderTraps(t *testing.T) {
	for _, pattern := range []string{"*.sh", "*.sbatch"} {
		paths, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			next, set := 0, strings.Index(string(b), "trap finish EXIT")
			for i, line := range strings.Split(string(b), "\n") {
				at := next
				next += len(line) + 1
				code := strings.ReplaceAll(line, "$((", "")
				// Where no trap is set yet: whether it runs already, and the addresses of a job.
				if at < set && (strings.Contains(line, `"$(begun_at "$mine")"`) || strings.HasPrefix(line, "addr+=") || strings.HasPrefix(line, "mapfile ")) {
					continue
				}
				if strings.Contains(code, "$(") || strings.Contains(code, "<(") || strings.Contains(code, ">(") {
					t.Errorf("%s:%d: %s", path, i+1, line)
				}
			}
		}
	}
}
