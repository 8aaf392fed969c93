package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"perflab/internal/deploy"
)

// container is what a pod runs.
type container struct {
	name, image  string
	command, env list
	devices      int
	port         int // that it serves on; 0: none
	caches       []string
	gated        bool
}

// template is a pod template: with labels, first before its containers (nil for nothing), and
// what the site says of pods. Where Kueue counts pods one by one they carry its label.
func (k manifests) template(labels object, queued bool, first object, all ...container) (object, error) {
	found := k.labeled(labels)
	if queued && k.Pods.Queue != "" {
		found = append(found, entry{queueLabel, k.Pods.Queue})
	}
	return k.Pods.merge(object{{"metadata", object{{"labels", found}}}, {"spec", k.pod(first, all)}})
}

// pod is the specification of a pod.
func (k manifests) pod(first object, all []container) object {
	// Links of services set variables that engines take for their own, such as VLLM_PORT.
	spec := object{{"enableServiceLinks", false}}
	var pull list
	for _, name := range k.Pods.PullSecrets {
		pull = append(pull, object{{"name", name}})
	}
	spec = append(spec, entry{"imagePullSecrets", pull})
	if first != nil {
		spec = append(spec, entry{"initContainers", list{first}})
	}
	var containers list
	for _, c := range all {
		containers = append(containers, k.container(c))
	}
	return append(spec, entry{"containers", containers}, entry{"volumes", k.volumes(all)})
}

func (k manifests) container(c container) object {
	out := object{{"name", c.name}, {"image", c.image}, {"command", c.command}, {"env", c.env}}
	if c.port > 0 {
		out = append(out,
			entry{"ports", list{object{{"containerPort", c.port}}}},
			entry{"startupProbe", append(k.asks(k.health(), c.port), entry{"failureThreshold", k.startupFailures()})},
			entry{"readinessProbe", k.asks(cmp.Or(k.Models, k.health()), c.port)})
	}
	if r := k.Pods.resources(c.devices); r != nil {
		out = append(out, entry{"resources", r})
	}
	mounts := list{object{{"name", "shm"}, {"mountPath", "/dev/shm"}}}
	for i, m := range k.mounts() {
		mounts = append(mounts, m.mount(fmt.Sprintf("mount-%d", i)))
	}
	for i, target := range k.ownCaches(c) {
		mounts = append(mounts, object{{"name", cacheVolume(c, i)}, {"mountPath", target}})
	}
	if k.hasFiles() {
		mounts = append(mounts, object{{"name", "files"}, {"mountPath", strings.TrimSuffix(filesAt, "/")}})
	}
	if c.gated {
		mounts = append(mounts, object{{"name", "gate"}, {"mountPath", gateAt}})
	}
	return append(out, entry{"volumeMounts", mounts})
}

// volumes are what containers mount.
func (k manifests) volumes(all []container) list {
	out := list{object{{"name", "shm"}, {"emptyDir", object{{"medium", "Memory"}, {"sizeLimit", k.Pods.shm()}}}}}
	for i, m := range k.mounts() {
		out = append(out, m.of(fmt.Sprintf("mount-%d", i)))
	}
	for _, c := range all {
		for i := range k.ownCaches(c) {
			out = append(out, object{{"name", cacheVolume(c, i)}, {"emptyDir", nothing{}}})
		}
	}
	if k.hasFiles() {
		out = append(out, object{{"name", "files"}, {"configMap", object{{"name", k.Name + "-files"}}}})
	}
	if all[0].gated {
		out = append(out, object{{"name", "gate"}, {"emptyDir", nothing{}}})
	}
	return out
}

// cacheVolume is the volume of a cache: processes in one pod must not share theirs either.
func cacheVolume(c container, i int) string {
	if c.gated {
		return fmt.Sprintf("cache-%s-%d", c.name, i)
	}
	return fmt.Sprintf("cache-%d", i)
}

// mounts are the site's, which Validate has read.
func (k manifests) mounts() []volume {
	out := make([]volume, len(k.Pods.Mounts))
	for i, text := range k.Pods.Mounts {
		out[i], _ = parseVolume(text)
	}
	return out
}

// ownCaches are those in whose place the site mounts nothing of its own.
func (k manifests) ownCaches(c container) []string {
	return slices.DeleteFunc(slices.Clone(c.caches), func(target string) bool {
		return k.Pods.mountedBy(target) || slices.ContainsFunc(k.mounts(), func(v volume) bool { return v.target == target })
	})
}

// Probes.
const (
	probePeriodS  = 5
	probeTimeoutS = 5
	longestStartS = 7 * 24 * 3600
)

// asks is a probe of a path.
func (k manifests) asks(path string, port int) object {
	return object{{"httpGet", object{{"path", path}, {"port", port}}}, {"periodSeconds", probePeriodS}, {"timeoutSeconds", probeTimeoutS}}
}

// startupFailures is how often an engine may not answer before the kubelet ends it. Where a
// runtime waits for it, the runtime alone decides that.
func (k manifests) startupFailures() int {
	if k.Gated {
		return longestStartS / probePeriodS
	}
	return (k.timeoutS() + probePeriodS - 1) / probePeriodS
}

// gateAt is where containers wait for their turn.
const gateAt = "/perflab/gate"

// Gate is the file whose appearance lets the process of a container begin, in a pod of a
// gated plan. It is gone then, so that a container that the kubelet starts again waits.
func Gate(container string) string { return gateAt + "/" + container }

// ContainerOf is the container of a replica's process in a gated plan: of a peer by its name, of
// the front process "engine", or "router" before engines that serve.
func ContainerOf(r deploy.Replica, peer string) string {
	switch {
	case peer != "":
		return strings.Trim(notObject.ReplaceAllString(strings.ToLower(peer), "-"), "-")
	case served(r):
		return routerRole
	}
	return engineContainer
}

// gated are the containers of a pod in which each process begins when it is let; none where
// one process is the whole replica.
func (k manifests) gated() ([]container, error) {
	if !k.Gated || len(k.processes) == 1 {
		return nil, nil
	}
	replica := k.Spec.Replicas[0]
	var out []container
	for _, q := range k.processes {
		c := container{name: ContainerOf(replica, q.peer), image: k.imageFor(q), devices: len(q.devices), port: q.port, caches: k.cachesOf(q), gated: true}
		command, err := k.command(q, "")
		if err == nil {
			c.env, err = k.env([]process{q}, "")
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o container) bool { return o.name == c.name }) {
			return nil, missing("two processes of a replica would be the container %s: give them names that differ in letters or digits", c.name)
		}
		wait := fmt.Sprintf(`until rm %s 2>/dev/null; do sleep 0.1; done; exec "$@"`, Gate(c.name))
		c.command = append(list{"sh", "-c", unexpanded(wait), "--"}, command...)
		out = append(out, c)
	}
	return out, nil
}
