package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
)

// Kubernetes is a Deployment, or for replicas over several nodes a LeaderWorkerSet,
// with its Service and, for files, a ConfigMap. Replicas must be alike: the cluster
// chooses their machines and devices. Where a router stands before engines, a StatefulSet for
// each pool and a Deployment of the router. Secrets come from the Secret NAME-secrets.
func Kubernetes(p Plan) (string, error) {
	if p.Image == "" {
		return "", errImage
	}
	all, err := p.processes(true)
	if err != nil {
		return "", err
	}
	k := manifests{Plan: p, processes: all[0], replicas: len(all)}
	objects, err := k.objects(all)
	if err != nil {
		return "", err
	}
	more := []string{"", "Start it: kubectl apply -f " + p.Name + ".yaml; end it: kubectl delete -f " + p.Name + ".yaml"}
	if names := secrets(all); len(names) > 0 {
		var line strings.Builder
		line.WriteString("First, with these in the environment: kubectl create secret generic " + p.Name + "-secrets")
		for _, name := range names {
			line.WriteString(fmt.Sprintf(" --from-literal=%s=\"$%[1]s\"", name))
		}
		more = append(more, line.String())
	}
	if p.Bench != "" {
		more = append(more, "Measure it from within the cluster, or by kubectl port-forward to each pod: "+p.bench(fmt.Sprintf("http://%s:%d", p.Name, k.front().port)))
	}
	var b strings.Builder
	b.WriteString(p.head(more...))
	for _, o := range objects {
		if o != nil {
			b.WriteString("---\n")
			if err := writeYAML(&b, o); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// objects are those of a deployment.
func (k manifests) objects(all [][]process) ([]object, error) {
	if k.front().router {
		return k.pooled(all)
	}
	if err := alike(all); err != nil {
		return nil, err
	}
	work, err := k.workload()
	return []object{k.files(), work, k.service()}, err
}

// alike checks that replicas differ in nothing but their place.
func alike(all [][]process) error {
	text := func(list []process) string {
		var b strings.Builder
		for _, q := range list {
			fmt.Fprintln(&b, len(q.devices), q.files)
			for _, v := range q.env {
				q.argv = append(q.argv, append(word{{literal, v.name + "="}}, v.value...))
			}
			for _, w := range q.argv {
				for _, p := range w {
					if p.kind == address {
						p.text = ""
					}
					fmt.Fprint(&b, p.kind, p.text)
				}
				b.WriteByte('\n')
			}
		}
		return b.String()
	}
	for i, list := range all {
		if text(list) != text(all[0]) {
			return missing("replica %d differs from the first: Kubernetes starts replicas that are alike", i)
		}
	}
	return nil
}

// manifests is a plan whose one replica is a template, or one of several where a router
// stands before engines.
type manifests struct {
	Plan
	processes []process
	replicas  int
	base      string // of the names of a replica's objects, where a router stands before engines
}

func (k manifests) front() process { return k.processes[len(k.processes)-1] }

func (k manifests) meta(name string) object {
	return object{{"name", name}, {"namespace", k.Namespace}, {"labels", object{{"app", k.Name}}}}
}

func (k manifests) service() object {
	selector := object{{"app", k.Name}}
	switch {
	case k.front().router:
		selector = append(selector, entry{"role", routerRole})
	case len(k.nodes()) > 1:
		selector = append(selector, entry{"role", "leader"})
	}
	port := k.front().port
	return object{{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", k.meta(k.Name)}, {"spec", object{
		{"selector", selector}, {"ports", list{object{{"name", "http"}, {"port", port}, {"targetPort", port}}}},
	}}}
}

// files is the ConfigMap of the files, nil without any.
func (k manifests) files() object {
	var data object
	for _, q := range k.processes {
		for _, f := range q.files {
			if !slices.ContainsFunc(data, func(e entry) bool { return e.key == f.Name }) {
				data = append(data, entry{f.Name, f.Text})
			}
		}
	}
	if len(data) == 0 {
		return nil
	}
	return object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", k.meta(k.Name + "-files")}, {"data", data}}
}

// nodes are the machines of the replica, that of the serving process first.
func (k manifests) nodes() []string {
	out := []string{k.front().node}
	for _, q := range k.processes {
		if !slices.Contains(out, q.node) {
			out = append(out, q.node)
		}
	}
	return out
}

func (k manifests) workload() (object, error) {
	nodes := k.nodes()
	if slices.ContainsFunc(k.front().argv, func(w word) bool { return len(w) > 0 && w[0].text == cluster.MPILauncher }) {
		return nil, missing("mpirun reaches other machines by ssh, which pods do not offer: use a script or Slurm")
	}
	leader, err := k.member(0, nodes)
	if err != nil {
		return nil, err
	}
	if len(nodes) == 1 {
		labels := object{{"app", k.Name}}
		return object{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", k.meta(k.Name)}, {"spec", object{
			{"replicas", k.replicas}, {"strategy", object{{"type", "Recreate"}}}, {"selector", object{{"matchLabels", labels}}},
			{"template", object{{"metadata", object{{"labels", labels}}}, {"spec", k.pod(leader, nil)}}},
		}}}, nil
	}
	worker, err := k.member(1, nodes)
	if err != nil {
		return nil, err
	}
	template := func(role string, c container) object {
		return object{{"metadata", object{{"labels", object{{"app", k.Name}, {"role", role}}}}}, {"spec", k.pod(c, nil)}}
	}
	return object{{"apiVersion", "leaderworkerset.x-k8s.io/v1"}, {"kind", "LeaderWorkerSet"}, {"metadata", k.meta(k.Name)}, {"spec", object{
		{"replicas", k.replicas}, {"leaderWorkerTemplate", object{
			{"size", len(nodes)}, {"restartPolicy", "RecreateGroupOnPodRestart"},
			{"leaderTemplate", template("leader", leader)}, {"workerTemplate", template("worker", worker)},
		}},
	}}}, nil
}

// container is what a pod runs.
type container struct {
	name, image  string
	command, env list
	devices      int
	port         int // that it serves on; 0: none
	caches       []string
}

// pod is the specification of a pod; first runs before its container, nil for nothing.
func (k manifests) pod(c container, first object) object {
	container := object{{"name", c.name}, {"image", c.image}, {"command", c.command}, {"env", c.env}}
	if c.port > 0 {
		get := object{{"httpGet", object{{"path", k.health()}, {"port", c.port}}}, {"periodSeconds", 5}, {"timeoutSeconds", 5}}
		container = append(container,
			entry{"ports", list{object{{"containerPort", c.port}}}},
			entry{"startupProbe", append(slices.Clone(get), entry{"failureThreshold", (k.timeoutS() + 4) / 5})},
			entry{"readinessProbe", get})
	}
	if c.devices > 0 {
		container = append(container, entry{"resources", object{{"limits", object{{"nvidia.com/gpu", c.devices}}}}})
	}
	shm := strings.NewReplacer("g", "Gi", "m", "Mi", "k", "Ki").Replace(strings.TrimSuffix(strings.ToLower(cmp.Or(k.ShmSize, "32g")), "b"))
	mounts := list{object{{"name", "shm"}, {"mountPath", "/dev/shm"}}}
	volumes := list{object{{"name", "shm"}, {"emptyDir", object{{"medium", "Memory"}, {"sizeLimit", shm}}}}}
	for i, m := range k.Mounts {
		name := fmt.Sprintf("mount-%d", i)
		mount := object{{"name", name}, {"mountPath", m.Target}}
		if m.ReadOnly {
			mount = append(mount, entry{"readOnly", true})
		}
		mounts = append(mounts, mount)
		volumes = append(volumes, object{{"name", name}, {"hostPath", object{{"path", m.Source}}}})
	}
	for i, target := range c.caches {
		name := fmt.Sprintf("cache-%d", i)
		mounts = append(mounts, object{{"name", name}, {"mountPath", target}})
		volumes = append(volumes, object{{"name", name}, {"emptyDir", nothing{}}})
	}
	if k.files() != nil {
		mounts = append(mounts, object{{"name", "files"}, {"mountPath", strings.TrimSuffix(filesAt, "/")}})
		volumes = append(volumes, object{{"name", "files"}, {"configMap", object{{"name", k.Name + "-files"}}}})
	}
	container = append(container, entry{"volumeMounts", mounts})
	// Links of services set variables that engines take for their own, such as VLLM_PORT.
	spec := object{{"enableServiceLinks", false}}
	if first != nil {
		spec = append(spec, entry{"initContainers", list{first}})
	}
	return append(spec, entry{"containers", list{container}}, entry{"volumes", volumes})
}

// member is the container of the leader's pod, or with at > 0 of every worker's: one process
// as it is, several on one node, or workers that differ by their rank, as a small program of
// the shell's.
func (k manifests) member(at int, nodes []string) (c container, err error) {
	c = container{name: "engine", image: k.Image, caches: k.Caches}
	own := nodes[at : at+1]
	if at > 0 {
		own = nodes[at:]
	} else {
		c.port = k.front().port
	}
	scripts := make([]string, len(own))
	for i, node := range own {
		list := k.on(node)
		for _, q := range list {
			c.devices = max(c.devices, len(q.devices))
		}
		if scripts[i], err = k.script(list, nodes[0]); err != nil {
			return c, err
		}
	}
	first := k.on(own[0])
	if c.env, err = k.env(first, nodes[0]); err != nil {
		return c, err
	}
	same := !slices.ContainsFunc(scripts, func(s string) bool { return s != scripts[0] })
	if same && len(first) == 1 && (first[0].up == "" || first[0].front) {
		c.command, err = k.command(first[0], nodes[0])
		return c, err
	}
	script := scripts[0]
	if !same {
		var b strings.Builder
		b.WriteString("case $LWS_WORKER_INDEX in\n")
		for i, s := range scripts {
			fmt.Fprintf(&b, "%d)\n%s;;\n", at+i, s)
		}
		b.WriteString("esac\n")
		script = b.String()
	}
	c.command = list{"bash", "-c", unexpanded(script)}
	return c, nil
}

// command is a process as the kubelet starts it.
func (k manifests) command(q process, leader string) (out list, err error) {
	for _, w := range q.argv {
		text, err := k.word(w, q.node, leader, plainWord)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// on are the processes of a node in the order of their start.
func (k manifests) on(node string) []process {
	return slices.DeleteFunc(slices.Clone(k.processes), func(q process) bool { return q.node != node })
}

// script runs the processes of one node: each but the last in the background until it
// says that it is up. A worker that joins a leader tries until the leader is there.
func (k manifests) script(processes []process, leader string) (string, error) {
	var b strings.Builder
	for i, q := range processes {
		var words []string
		for _, w := range q.argv {
			text, err := k.word(w, q.node, leader, shellText)
			if err != nil {
				return "", err
			}
			words = append(words, text)
		}
		line := strings.Join(words, " ")
		switch last := i == len(processes)-1; {
		case last && q.node != leader && q.up != "":
			fmt.Fprintf(&b, "until %s; do sleep 5; done\n", line)
		case last:
			fmt.Fprintf(&b, "exec %s\n", line)
		case q.once:
			fmt.Fprintf(&b, "%s || exit\n", line)
		case q.up != "":
			fmt.Fprintf(&b, "%s > >(tee /tmp/%s.log) 2>&1 &\nuntil grep -qF %s /tmp/%[2]s.log 2>/dev/null; do kill -0 $! || exit 1; sleep 1; done\n", line, q.name, engine.Quote(q.up))
		default:
			fmt.Fprintf(&b, "%s &\n", line)
		}
	}
	return b.String(), nil
}

// env is the environment of a pod: its own address, and what its processes have, the first
// process first.
func (k manifests) env(processes []process, leader string) (list, error) {
	out := list{object{{"name", "POD_IP"}, {"valueFrom", object{{"fieldRef", object{{"fieldPath", "status.podIP"}}}}}}}
	seen := map[string]bool{"POD_IP": true}
	for _, q := range processes {
		for _, v := range q.env {
			if seen[v.name] {
				continue
			}
			seen[v.name] = true
			if len(v.value) == 1 && v.value[0].kind == secret {
				out = append(out, k.fromSecret(v.name, v.value[0].text))
				continue
			}
			for _, p := range v.value {
				if p.kind == secret && !seen[p.text] {
					seen[p.text] = true
					out = append(out, k.fromSecret(p.text, p.text))
				}
			}
			text, err := k.word(v.value, q.node, leader, plainWord)
			if err != nil {
				return nil, err
			}
			out = append(out, object{{"name", v.name}, {"value", text}})
		}
		for _, w := range q.argv {
			for _, p := range w {
				if p.kind == secret && !seen[p.text] {
					seen[p.text] = true
					out = append(out, k.fromSecret(p.text, p.text))
				}
			}
		}
	}
	return out, nil
}

func (k manifests) fromSecret(name, key string) object {
	return object{{"name", name}, {"valueFrom", object{{"secretKeyRef", object{{"name", k.Name + "-secrets"}, {"key", key}}}}}}
}

// unexpanded writes a text so that the kubelet's expansion gives it back: $(NAME) is a
// variable there, and $$ one dollar.
func unexpanded(text string) string {
	if strings.Contains(text, "$(") || strings.Contains(text, "$$") || strings.HasSuffix(text, "$") {
		return strings.ReplaceAll(text, "$", "$$")
	}
	return text
}

// form is how a word is written: for the kubelet's expansion, or for a shell.
type form bool

const (
	plainWord form = false
	shellText form = true
)

// word writes a word of a process. Of addresses a pod knows its own and its leader's, or, of
// engines behind a router, their names.
func (k manifests) word(w word, node, leader string, f form) (string, error) {
	variable := func(name string) string {
		if f == shellText {
			return `"$` + name + `"`
		}
		return "$(" + name + ")"
	}
	var b strings.Builder
	for _, p := range w {
		switch {
		case p.kind == literal && f == shellText:
			b.WriteString(engine.Quote(p.text))
		case p.kind == literal:
			b.WriteString(unexpanded(p.text))
		case p.kind == file:
			b.WriteString(filesAt + p.text)
		case p.kind == secret:
			b.WriteString(variable(p.text))
		case p.text == node:
			b.WriteString(variable("POD_IP"))
		case k.base != "":
			b.WriteString(k.dns(p.text))
		case p.text == leader:
			b.WriteString(variable("LWS_LEADER_ADDRESS"))
		default:
			return "", missing("a process on %s must know the address of %s, and in a LeaderWorkerSet a pod knows that of its leader alone: use a script or Slurm", node, p.text)
		}
	}
	if b.Len() == 0 && f == shellText {
		return "''", nil
	}
	return b.String(), nil
}
