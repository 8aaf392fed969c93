package render_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yaml "go.yaml.in/yaml/v4"

	"perflab/internal/deploy"
	"perflab/internal/deploy/render"
	"perflab/internal/engine/cluster"
	"perflab/internal/field"
)

// template reads a pod template as a study file has it.
func template(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Load([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPodsValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		pods render.Pods
		want []string // path: reason
	}{
		{"nothing", render.Pods{}, nil},
		{"all of it", render.Pods{
			Namespace: "bench", Resource: "nvidia.com/mig-3g.40gb", Mounts: []string{"claim:models:/models:ro", "/data/hf:/hf", "image:registry:5000/m@sha256:ab:/weights"},
			ShmSize: "16Gi", CPU: "500m", Memory: "64g", Secrets: map[string]string{"HF_TOKEN": "hub/token"}, PullSecrets: []string{"pull"}, Queue: "team",
			Template: template(t, "spec: {nodeSelector: {gpu: h100}, tolerations: [{operator: Exists}], containers: [{name: engine, securityContext: {runAsUser: 0}}, {name: log, image: busybox}]}"),
		}, nil},
		{"names", render.Pods{Namespace: "Bench", Resource: "a gpu", Queue: "a b", PullSecrets: []string{"ok", "No"}}, []string{
			`namespace: "Bench" is no name of a namespace: use lower-case letters, digits and dashes`,
			`resource: "a gpu" is no name of a resource: write it as nvidia.com/gpu`,
			`queue: "a b" is no name of a LocalQueue: use lower-case letters, digits and dashes`,
			`pull_secrets[1]: "No" is no name of a Secret: use lower-case letters, digits and dashes`,
		}},
		{"sizes", render.Pods{CPU: "0", ShmSize: "big", Memory: "1.5Gi"}, []string{
			`cpu: "0" is no number of CPUs: write 16, 0.5 or 500m`, `shm_size: "big" is no size such as 16Gi`, `memory: "1.5Gi" is no size such as 16Gi`,
		}},
		{"shared memory counts", render.Pods{ShmSize: "32g", Memory: "32Gi"}, []string{
			"shm_size: 32g leaves nothing of the memory limit 32Gi, in which /dev/shm counts: make it smaller, or memory larger",
		}},
		{"secrets", render.Pods{Secrets: map[string]string{"HF_TOKEN": hidden, "A B": "s/k", "KEY": "Hub/token"}}, []string{
			`secrets: "A B" is no name of an environment variable`,
			"secrets.HF_TOKEN: name the Secret and its key as SECRET/KEY, never the value",
			"secrets.KEY: name the Secret and its key as SECRET/KEY, never the value",
		}},
		{"mounts", render.Pods{Mounts: []string{"claim:Models:/m", "models:/m", "/a:/m", "/b:/m:ro", "/c:m", "image:a b:/x", "claim:m:/", "/x:/dev/shm", "/a:b:/c"}}, []string{
			`mounts[0]: "claim:Models:/m": "Models" is no name of a PersistentVolumeClaim: use lower-case letters, digits and dashes`,
			`mounts[1]: "models:/m": a directory of the node begins with /; of a claim write claim:NAME:/models`,
			"mounts[2]: /m is mounted already: choose another path",
			"mounts[3]: /m is mounted already: choose another path",
			`mounts[4]: "/c:m": write it as claim:NAME:/models:ro, /host/path:/models:ro or image:REFERENCE:/models`,
			`mounts[5]: "image:a b:/x": "a b" is no reference of an image`,
			`mounts[6]: "claim:m:/" would hide the whole image: name a directory such as /models`,
			"mounts[7]: /dev/shm is mounted already: choose another path",
			`mounts[8]: "/a:b:/c": a directory of the node begins with /; of a claim write claim:NAME:/models`,
		}},
		{"template", render.Pods{Template: template(t, `
kind: Pod
metadata: {labels: {app: mine, app.kubernetes.io/name: x, team: a}}
spec:
  restartPolicy: Always
  containers:
  - {name: engine, image: mine, args: [x], livenessProbe: {}, env: [{name: HF_TOKEN, value: `+hidden+`}]}
  - {image: nameless}
`)}, []string{
			`pod: "kind" is no part of a pod template: it has metadata and spec`,
			"pod.spec: restartPolicy is perflab's own: leave it out",
			"pod.spec.containers[0]: args cannot be set here: the study's configuration is the command",
			"pod.spec.containers[0]: image cannot be set here: the image is that of the runtime, or of the engine",
			"pod.spec.containers[0]: livenessProbe cannot be set here: a liveness probe ends engines under load",
			"pod.spec.containers[1]: the container has no name: engine is the engine's",
			"pod.metadata.labels: the label app is perflab's own: choose another name",
			"pod.metadata.labels: the label app.kubernetes.io/name is perflab's own: choose another name",
			"pod.spec.containers[0].env[0]: the value of HF_TOKEN is a secret: name it in secrets as HF_TOKEN: SECRET/KEY",
		}},
		{"forms", render.Pods{Template: template(t, "{metadata: [a], spec: {containers: x}}")}, []string{"pod.metadata: a mapping belongs here"}},
		{"a list", render.Pods{Template: template(t, "{spec: {containers: x, volumes: [a]}}")}, []string{"pod.spec.containers: a list belongs here"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, e := range field.All(c.pods.Validate()) {
				got = append(got, e.Path+": "+e.Reason)
			}
			slices.Sort(got)
			slices.Sort(c.want)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// single is one replica of one process, as a runtime plans it.
func single(t testing.TB, pods render.Pods) render.Plan {
	t.Helper()
	return render.Plan{
		Name: "perflab-x7-0", Image: "engine:1", Caches: []string{"/root/.cache/vllm"}, Pods: pods, Gated: true,
		Labels: map[string]string{"app.kubernetes.io/instance": "perflab-x7", "app.kubernetes.io/managed-by": "perflab"}, Ports: map[string]int{"": 21234},
		Spec: deploy.Spec{Replicas: []deploy.Replica{{Member: deploy.Member{
			Argv: []string{"vllm", "serve", "m", "--host", "{host}", "--port", "{port}", "$(HOME)"}, Env: []string{"HF_TOKEN=" + hidden, "A=b"}, Devices: []string{"0", "1"},
		}}}},
	}
}

// objects are those of a plan, and the same as its YAML.
func objects(t testing.TB, p render.Plan) []map[string]any {
	t.Helper()
	out, err := render.Objects(p)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := json.Marshal(out); err != nil || strings.Contains(string(b), hidden) {
		t.Errorf("%v, or a secret in %s", err, b)
	}
	text, err := render.Kubernetes(p)
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = strings.Cut("\n"+text, "\n---\n")
	for i, doc := range strings.Split(text, "\n---\n") {
		var v map[string]any
		if err := yaml.Load([]byte(doc+"\n"), &v); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if want, got := normal(t, v), normal(t, out[i]); !reflect.DeepEqual(want, got) {
			t.Errorf("the YAML says otherwise: %s", cmp.Diff(want, got))
		}
	}
	return out
}

// normal is a value as JSON gives it back.
func normal(t testing.TB, v any) (out any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestObjects(t *testing.T) {
	p := single(t, render.Pods{
		Namespace: "bench", Resource: "amd.com/gpu", Mounts: []string{"claim:models:/models:ro", "image:m:1:/w", "/cache:/root/.cache/vllm"}, ShmSize: "8g", CPU: "16", Memory: "64g",
		Secrets: map[string]string{"HF_TOKEN": "hub/token", "OTHER": "s/k"}, PullSecrets: []string{"pull"}, Queue: "team",
		Template: template(t, `
metadata: {labels: {team: a}, annotations: {x: "1"}}
spec:
  priorityClassName: high
  nodeSelector: {gpu: mi300x}
  tolerations: [{key: amd.com/gpu, operator: Exists}]
  volumes: [{name: scratch, emptyDir: {}}]
  containers:
  - name: engine
    securityContext: {capabilities: {add: [IPC_LOCK]}}
    resources: {limits: {rdma/hca: 1}}
    env: [{name: A, value: site}, {name: B, value: ""}]
    volumeMounts: [{name: scratch, mountPath: /scratch}]
  - {name: log, image: busybox}
  - {name: router, securityContext: {}}
`),
	})
	all := objects(t, p)
	if len(all) != 1 || all[0]["kind"] != "Deployment" {
		t.Fatalf("objects %v", all)
	}
	labels := map[string]any{"app": "perflab-x7-0", "app.kubernetes.io/name": "perflab-engine", "app.kubernetes.io/instance": "perflab-x7", "app.kubernetes.io/managed-by": "perflab", "kueue.x-k8s.io/queue-name": "team"}
	pod := at(all[0], "spec", "template", "spec")
	engine := at(pod, "containers", 0)
	ofPod := maps.Clone(labels)
	ofPod["team"] = "a"
	for _, c := range []struct {
		of   any
		path []any
		want any
	}{
		{all[0], []any{"metadata", "namespace"}, "bench"},
		{all[0], []any{"metadata", "labels"}, labels},
		{all[0], []any{"spec", "selector", "matchLabels"}, map[string]any{"app": "perflab-x7-0"}},
		{all[0], []any{"spec", "strategy", "type"}, "Recreate"},
		{all[0], []any{"spec", "template", "metadata", "labels"}, ofPod},
		{all[0], []any{"spec", "template", "metadata", "annotations", "x"}, "1"},
		{pod, []any{"priorityClassName"}, "high"},
		{pod, []any{"imagePullSecrets", 0, "name"}, "pull"},
		{pod, []any{"tolerations", 0, "key"}, "amd.com/gpu"},
		{pod, []any{"containers", 1, "name"}, "log"},
		{pod, []any{"containers", 2}, nil},
		{engine, []any{"command"}, []any{"vllm", "serve", "m", "--host", "0.0.0.0", "--port", "21234", "$$(HOME)"}},
		{engine, []any{"resources", "limits"}, map[string]any{"cpu": "16", "memory": "64Gi", "amd.com/gpu": int64(2), "rdma/hca": int64(1)}},
		{engine, []any{"resources", "requests"}, map[string]any{"cpu": "16", "memory": "64Gi", "amd.com/gpu": int64(2)}},
		{engine, []any{"securityContext", "capabilities", "add", 0}, "IPC_LOCK"},
		{engine, []any{"livenessProbe"}, nil},
		{engine, []any{"startupProbe", "initialDelaySeconds"}, nil},
		{engine, []any{"startupProbe", "httpGet", "path"}, "/health"},
		{engine, []any{"readinessProbe", "httpGet", "port"}, int64(21234)},
		{engine, []any{"env", 1}, map[string]any{"name": "HF_TOKEN", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "hub", "key": "token"}}}},
		{engine, []any{"env", 2}, map[string]any{"name": "A", "value": "b"}},
		{engine, []any{"env", 3, "valueFrom", "secretKeyRef", "name"}, "s"},
		{engine, []any{"env", 4}, map[string]any{"name": "B", "value": ""}},
		{engine, []any{"volumeMounts"}, []any{
			map[string]any{"name": "shm", "mountPath": "/dev/shm"}, map[string]any{"name": "mount-0", "mountPath": "/models", "readOnly": true},
			map[string]any{"name": "mount-1", "mountPath": "/w", "readOnly": true}, map[string]any{"name": "mount-2", "mountPath": "/root/.cache/vllm"},
			map[string]any{"name": "scratch", "mountPath": "/scratch"},
		}},
		{pod, []any{"volumes"}, []any{
			map[string]any{"name": "shm", "emptyDir": map[string]any{"medium": "Memory", "sizeLimit": "8Gi"}},
			map[string]any{"name": "mount-0", "persistentVolumeClaim": map[string]any{"claimName": "models"}},
			map[string]any{"name": "mount-1", "image": map[string]any{"reference": "m:1"}},
			map[string]any{"name": "mount-2", "hostPath": map[string]any{"path": "/cache"}},
			map[string]any{"name": "scratch", "emptyDir": map[string]any{}},
		}},
	} {
		if got := at(c.of, c.path...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %#v, want %#v", c.path, got, c.want)
		}
	}
}

// TestShmWithinMemory: /dev/shm is memory of the pod, so what is not said of it leaves room.
func TestShmWithinMemory(t *testing.T) {
	for memory, want := range map[string]string{"": "32Gi", "256Gi": "32Gi", "16Gi": "8589934592"} {
		all := objects(t, single(t, render.Pods{Memory: memory}))
		if got := at(all[0], "spec", "template", "spec", "volumes", 0, "emptyDir", "sizeLimit"); got != want {
			t.Errorf("memory %q: %v, want %s", memory, got, want)
		}
	}
}

// TestOwnSecret: what the site names no Secret for comes from the deployment's own.
func TestOwnSecret(t *testing.T) {
	all := objects(t, single(t, render.Pods{}))
	want := map[string]any{"name": "perflab-x7-0-secrets", "key": "HF_TOKEN"}
	if got := at(all[0], "spec", "template", "spec", "containers", 0, "env", 1, "valueFrom", "secretKeyRef"); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestGated: processes of one pod are containers that begin when they are let, with resources
// of their own.
func TestGated(t *testing.T) {
	cmd, err := parsed(t, vllmLine).Apart("1:1", nil, strings.Fields("-tp 2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := cluster.Spread(cmd, []cluster.Node{{Devices: cluster.Devices(3)}}, "")
	if err != nil {
		t.Fatal(err)
	}
	p := single(t, render.Pods{Template: template(t, "spec: {containers: [{name: engine, tty: true}, {name: router, stdin: true}]}")})
	p.Router, p.Spec.Replicas, p.Ports = "router:1", []deploy.Replica{deploy.Spread(parts)}, map[string]int{"": 21000, "prefill-0": 22000, "decode-0": 23000}
	all := objects(t, p)
	if len(all) != 1 || all[0]["kind"] != "Deployment" {
		t.Fatalf("objects %v", all)
	}
	pod := at(all[0], "spec", "template", "spec")
	for i, c := range []struct {
		name, image string
		peer        string
		gpus, port  any
		tty, stdin  any
	}{
		{"prefill-0", "engine:1", "prefill-0", int64(1), int64(22000), true, nil}, {"decode-0", "engine:1", "decode-0", int64(2), int64(23000), true, nil},
		{"router", "router:1", "", nil, int64(21000), nil, true},
	} {
		got := at(pod, "containers", i)
		if at(got, "name") != c.name || at(got, "image") != c.image || at(got, "resources", "limits", "nvidia.com/gpu") != c.gpus ||
			at(got, "ports", 0, "containerPort") != c.port || at(got, "tty") != c.tty || at(got, "stdin") != c.stdin {
			t.Errorf("container %d: %v", i, got)
		}
		if name := render.ContainerOf(p.Spec.Replicas[0], c.peer); name != c.name {
			t.Errorf("the container of %q is said to be %s, not %s", c.peer, name, c.name)
		}
		command, _ := at(got, "command").([]any)
		if want := []any{"sh", "-c", "until rm " + render.Gate(c.name) + " 2>/dev/null; do sleep 0.1; done; exec \"$@\"", "--"}; !reflect.DeepEqual(command[:4], want) {
			t.Errorf("%s begins by %q", c.name, command[:4])
		}
		syntax(t, command[2].(string))
	}
	if command, _ := at(pod, "containers", 2, "command").([]any); !slices.Contains(command, any("http://127.0.0.1:22000")) {
		t.Errorf("the router runs %v", command)
	}
	p.Spec.Replicas[0].Peers[0].Name = "decode.0"
	if _, err := render.Objects(p); err == nil || !strings.Contains(err.Error(), "two processes of a replica would be the container decode-0") {
		t.Errorf("two containers of one name: %v", err)
	}
}

// TestGroup: over several nodes a group of pods, which Kueue counts as one.
func TestGroup(t *testing.T) {
	p := machines(t, "dp", dpLine, "", 3, 2, render.Addr)
	p.Gated, p.Pods = true, render.Pods{Queue: "team", Template: template(t, "spec: {hostNetwork: true}")}
	all := objects(t, p)
	if len(all) != 1 || all[0]["kind"] != "LeaderWorkerSet" || at(all[0], "metadata", "labels", "kueue.x-k8s.io/queue-name") != "team" {
		t.Fatalf("objects %v", all)
	}
	for _, role := range []string{"leaderTemplate", "workerTemplate"} {
		pod := at(all[0], "spec", "leaderWorkerTemplate", role)
		if at(pod, "spec", "hostNetwork") != true || at(pod, "metadata", "labels", "kueue.x-k8s.io/queue-name") != nil {
			t.Errorf("%s: %v", role, pod)
		}
	}
}

// TestFilesOfOneName: a ConfigMap has one file of a name.
func TestFilesOfOneName(t *testing.T) {
	p := single(t, render.Pods{})
	rep := &p.Spec.Replicas[0]
	rep.Files = []deploy.File{{Name: "c", Text: "a"}}
	rep.Peers = []deploy.Peer{{Name: "head", Member: deploy.Member{Argv: []string{"x"}, Files: []deploy.File{{Name: "c", Text: "b"}}}}}
	if _, err := render.Objects(p); err == nil || !strings.Contains(err.Error(), "two processes read different files named c") {
		t.Errorf("%v", err)
	}
	rep.Peers[0].Files[0].Text = "a"
	if all := objects(t, p); at(all[0], "data", "c") != "a" {
		t.Errorf("objects %v", all)
	}
}

// FuzzPodTemplate: whatever a site says of pods, what perflab measures stays as it is, and the
// YAML says what the API is given.
func FuzzPodTemplate(f *testing.F) {
	for _, text := range []string{
		"", "{}", "spec: {nodeSelector: {a: b}}", "spec: {containers: [{name: engine, env: [{name: A, value: x}, {name: C, value: 'no'}], ports: []}]}",
		"spec: {containers: [{name: engine, volumeMounts: [{name: v, mountPath: /root/.cache/vllm}]}], volumes: [{name: shm, emptyDir: {medium: ''}}]}",
		"metadata: {labels: {app: x}, annotations: {a: 1}}", "spec: {containers: [1, a, null, {name: b}]}", "spec: {tolerations: [{key: '', operator: Exists}], x: 1.5, y: null, z: [], w: {}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var template map[string]any
		if err := yaml.Load([]byte(text), &template); err != nil || template == nil {
			return
		}
		if _, err := json.Marshal(template); err != nil { // as a study file keeps it
			return
		}
		p := single(t, render.Pods{Template: template})
		got, err := render.Objects(p)
		if invalid := p.Pods.Validate(); (invalid == nil) != (err == nil) {
			t.Fatalf("Validate says %v, and Objects %v", invalid, err)
		}
		if err != nil {
			return
		}
		want, err := render.Objects(single(t, render.Pods{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range [][]any{
			{"metadata"}, {"spec", "selector"}, {"spec", "template", "spec", "containers", 0, "command"}, {"spec", "template", "spec", "containers", 0, "image"},
			{"spec", "template", "spec", "containers", 0, "ports"}, {"spec", "template", "spec", "containers", 0, "startupProbe"}, {"spec", "template", "spec", "containers", 0, "env", 2, "value"},
			{"spec", "template", "metadata", "labels", "app"}, {"spec", "template", "spec", "enableServiceLinks"},
		} {
			if d := cmp.Diff(at(want[0], path...), at(got[0], path...)); d != "" {
				t.Errorf("%v: -without +with\n%s", path, d)
			}
		}
	})
}
