package render

import (
	"fmt"
	"slices"
	"strings"
)

// longestSet is how long the name of a StatefulSet may be: its pods have it, and a hash, as a
// label.
const longestSet = 52

// pooled are the objects of replicas whose engines stand behind a router.
func (k manifests) pooled(all [][]process) ([]object, error) {
	var out []object
	for i, list := range all {
		r := k
		r.processes, r.base = list, k.Name
		if len(all) > 1 {
			r.base = fmt.Sprintf("%s-%d", k.Name, i)
		}
		more, err := r.pools()
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return append(out, k.service()), nil
}

// pools are the objects of one replica: for each pool a StatefulSet, and a Service by which
// its engines have names, and a Deployment of the router, which starts when all engines are
// ready. Each engine is a pod of its own, on whatever machine.
func (k manifests) pools() ([]object, error) {
	var names []string
	engines := map[string][]process{}
	for _, q := range k.processes {
		switch {
		case q.front:
			continue
		case !q.serves || q.node != q.peer || len(q.files) > 0:
			return nil, missing("%s is no engine that has a pod of its own, as all behind a router have in Kubernetes: use a script or Slurm", q.name)
		}
		name := pool(q.peer)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		engines[name] = append(engines[name], q)
	}
	var out []object
	for _, name := range names {
		set, err := k.set(name, engines[name])
		if err != nil {
			return nil, err
		}
		out = append(out, set, k.headless(name, engines[name][0].port))
	}
	router, err := k.router()
	return append(out, router), err
}

// set is the StatefulSet of a pool.
func (k manifests) set(name string, engines []process) (object, error) {
	if n := len(k.base + "-" + name); n > longestSet {
		return nil, missing("the name %s-%s is too long for a StatefulSet: make the name %d letters shorter", k.base, name, n-longestSet)
	}
	alike := make([]object, len(engines))
	for i, q := range engines {
		c, err := k.own(q)
		if err != nil {
			return nil, err
		}
		if alike[i], err = k.template(k.labels(name), true, nil, c); err != nil {
			return nil, err
		}
		if written(alike[i]) != written(alike[0]) {
			return nil, missing("%s differs from %s: Kubernetes starts engines of a pool that are alike", q.name, engines[0].name)
		}
	}
	labels := k.labels(name)
	return object{{"apiVersion", "apps/v1"}, {"kind", "StatefulSet"}, {"metadata", k.work(k.base + "-" + name)}, {"spec", object{
		{"replicas", len(engines)}, {"serviceName", k.base + "-" + name}, {"podManagementPolicy", "Parallel"}, {"selector", object{{"matchLabels", labels}}},
		{"template", alike[0]},
	}}}, nil
}

// written is an object as a text.
func written(o object) string {
	var b strings.Builder
	if err := writeYAML(&b, o); err != nil {
		return err.Error()
	}
	return b.String()
}

// headless is the Service by which the engines of a pool have names.
func (k manifests) headless(name string, port int) object {
	return object{{"apiVersion", "v1"}, {"kind", "Service"}, {"metadata", k.meta(k.base + "-" + name)}, {"spec", object{
		{"clusterIP", "None"}, {"selector", k.labels(name)}, {"ports", list{object{{"name", "http"}, {"port", port}, {"targetPort", port}}}},
	}}}
}

// router is the Deployment of the router.
func (k manifests) router() (object, error) {
	c, err := k.own(k.front())
	if err != nil {
		return nil, err
	}
	var wait strings.Builder
	for _, q := range k.processes {
		if q.serves {
			fmt.Fprintf(&wait, "until curl -fsS -o /dev/null --max-time 5 http://%s:%d%s; do sleep 5; done\n", k.dns(q.peer), q.port, k.health())
		}
	}
	first := object{{"name", "wait"}, {"image", k.Image}, {"command", list{"sh", "-c", wait.String()}}}
	labels := k.labels(routerRole)
	template, err := k.template(labels, true, first, c)
	if err != nil {
		return nil, err
	}
	return object{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", k.work(k.base + "-" + routerRole)}, {"spec", object{
		{"replicas", 1}, {"strategy", object{{"type", "Recreate"}}}, {"selector", object{{"matchLabels", labels}}},
		{"template", template},
	}}}, nil
}

// labels tell the pods of a role from the others.
func (k manifests) labels(role string) object {
	out := object{{"app", k.Name}, {"role", role}}
	if k.base != k.Name {
		out = append(out, entry{"replica", k.base})
	}
	return out
}

// dns is the name of an engine.
func (k manifests) dns(peer string) string {
	return fmt.Sprintf("%s-%s.%s-%s", k.base, peer, k.base, pool(peer))
}

// own is the container of a process that has a pod of its own.
func (k manifests) own(q process) (c container, err error) {
	c = container{name: engineContainer, image: k.imageFor(q), devices: len(q.devices), port: q.port, caches: k.cachesOf(q)}
	if q.router {
		c.name = routerRole
	}
	if c.command, err = k.command(q, ""); err == nil {
		c.env, err = k.env([]process{q}, "")
	}
	return c, err
}
