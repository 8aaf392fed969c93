package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
)

// Kubernetes is the objects of a plan as YAML, with comments that say how to start, end and
// measure it.
func Kubernetes(p Plan) (string, error) {
	k, all, err := p.manifests()
	if err != nil {
		return "", err
	}
	objects, err := k.objects(all)
	if err != nil {
		return "", err
	}
	more := []string{"", "Start it: kubectl apply -f " + p.Name + ".yaml; end it: kubectl delete -f " + p.Name + ".yaml"}
	if names := p.Pods.unreferenced(secrets(all)); len(names) > 0 {
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
		b.WriteString("---\n")
		if err := writeYAML(&b, o); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// Objects are what a cluster needs for a plan, as the API takes them: for files a ConfigMap; a
// Deployment, or for replicas over several nodes a LeaderWorkerSet; a Service. Replicas must be
// alike: the cluster chooses their machines and devices. Where a router stands before engines,
// a StatefulSet for each pool and a Deployment of the router. Secrets come from where Pods.Secrets
// says, or else from the Secret NAME-secrets.
func Objects(p Plan) ([]map[string]any, error) {
	k, all, err := p.manifests()
	if err != nil {
		return nil, err
	}
	objects, err := k.objects(all)
	if err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(objects))
	for i, o := range objects {
		out[i], _ = plain(o).(map[string]any)
	}
	return out, nil
}

// manifests is the plan as a template, and the processes of all its replicas.
func (p Plan) manifests() (manifests, [][]process, error) {
	if p.Image == "" {
		return manifests{}, nil, errImage
	}
	if err := p.Pods.Validate(); err != nil {
		return manifests{}, nil, err
	}
	all, err := p.processes(true)
	if err != nil {
		return manifests{}, nil, err
	}
	return manifests{Plan: p, processes: all[0], replicas: len(all)}, all, nil
}

// objects are those of a deployment.
func (k manifests) objects(all [][]process) ([]object, error) {
	if k.front().router && !k.Gated {
		return k.pooled(all)
	}
	if err := alike(all); err != nil {
		return nil, err
	}
	files, err := k.files()
	if err != nil {
		return nil, err
	}
	work, err := k.workload()
	if err != nil {
		return nil, err
	}
	var out []object
	if files != nil {
		out = append(out, files)
	}
	out = append(out, work)
	if !k.Gated { // a runtime reaches each pod by its address
		out = append(out, k.service())
	}
	return out, nil
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

// recommended begins the labels that every tool knows.
const recommended = "app.kubernetes.io/"

func (k manifests) meta(name string) object {
	return object{{"name", name}, {"namespace", k.Pods.Namespace}, {"labels", k.labeled(object{{"app", k.Name}})}}
}

// work is the metadata of what makes pods.
func (k manifests) work(name string) object {
	out := k.meta(name)
	if k.Pods.Queue != "" {
		labels, _ := out[len(out)-1].value.(object)
		out[len(out)-1].value = append(labels, entry{queueLabel, k.Pods.Queue})
	}
	return out
}

// queueLabel says in which queue of Kueue something waits.
const queueLabel = "kueue.x-k8s.io/queue-name"

// labeled are labels by which things are chosen, and those by which they are found.
func (k manifests) labeled(chosen object) object {
	out := slices.Clone(chosen)
	all := map[string]string{recommended + "name": "perflab-engine", recommended + "instance": k.Name}
	maps.Copy(all, k.Labels)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		out = append(out, entry{key, all[key]})
	}
	return out
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
func (k manifests) files() (object, error) {
	var data object
	for _, q := range k.processes {
		for _, f := range q.files {
			i, ok := find(data, f.Name)
			switch {
			case !ok:
				data = append(data, entry{f.Name, f.Text})
			case data[i].value != f.Text:
				return nil, missing("two processes read different files named %s, and pods have one of each name: use a script or Slurm", f.Name)
			}
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	return object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", k.meta(k.Name + "-files")}, {"data", data}}, nil
}

// hasFiles reports whether a process reads a file.
func (k manifests) hasFiles() bool {
	return slices.ContainsFunc(k.processes, func(q process) bool { return len(q.files) > 0 })
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
	if len(nodes) == 1 {
		return k.deployment(nodes)
	}
	if k.front().router {
		return nil, missing("engines behind a router are one pod here, and these are on several machines: give each replica a machine that has all of its GPUs")
	}
	var templates [2]object
	for i, role := range []string{"leader", "worker"} {
		c, err := k.member(i, nodes)
		if err != nil {
			return nil, err
		}
		if templates[i], err = k.template(object{{"app", k.Name}, {"role", role}}, false, nil, c); err != nil {
			return nil, err
		}
	}
	return object{{"apiVersion", "leaderworkerset.x-k8s.io/v1"}, {"kind", "LeaderWorkerSet"}, {"metadata", k.work(k.Name)}, {"spec", object{
		{"replicas", k.replicas}, {"leaderWorkerTemplate", object{
			{"size", len(nodes)}, {"restartPolicy", "RecreateGroupOnPodRestart"},
			{"leaderTemplate", templates[0]}, {"workerTemplate", templates[1]},
		}},
	}}}, nil
}

// deployment has replicas of one node each.
func (k manifests) deployment(nodes []string) (object, error) {
	containers, err := k.gated()
	if len(containers) == 0 && err == nil {
		containers = make([]container, 1)
		containers[0], err = k.member(0, nodes)
	}
	if err != nil {
		return nil, err
	}
	labels := object{{"app", k.Name}}
	template, err := k.template(labels, true, nil, containers...)
	if err != nil {
		return nil, err
	}
	return object{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", k.work(k.Name)}, {"spec", object{
		{"replicas", k.replicas}, {"strategy", object{{"type", "Recreate"}}}, {"selector", object{{"matchLabels", labels}}}, {"template", template},
	}}}, nil
}

// member is the container of the leader's pod, or with at > 0 of every worker's: one process
// as it is, several on one node, or workers that differ by their rank, as a small program of
// the shell's.
func (k manifests) member(at int, nodes []string) (c container, err error) {
	c = container{name: engineContainer, image: k.Image, caches: k.Caches}
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
			if k.Pods.Secrets[v.name] != "" || len(v.value) == 1 && v.value[0].kind == secret {
				out = append(out, k.fromSecret(v.name, v.name))
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
	for _, name := range slices.Sorted(maps.Keys(k.Pods.Secrets)) {
		if !seen[name] {
			out = append(out, k.fromSecret(name, name))
		}
	}
	return out, nil
}

func (k manifests) fromSecret(name, key string) object {
	from, key := k.secretRef(key)
	return object{{"name", name}, {"valueFrom", object{{"secretKeyRef", object{{"name", from}, {"key", key}}}}}}
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
