package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Compose is a docker compose file with a service for each replica, on one machine. Of
// engines behind a router each is a service, and the router another; they share the host's
// network, as what engines tell each other takes ports that only they know.
func Compose(p Plan) (string, error) {
	if p.Image == "" {
		return "", errImage
	}
	if err := p.alone("compose file", "a script, Slurm or Kubernetes"); err != nil {
		return "", err
	}
	all, err := p.processes(false)
	if err != nil {
		return "", err
	}
	services, configs, volumes := object{}, object{}, object{}
	var urls []string
	for _, q := range slices.Concat(all...) {
		service, err := p.service(q, all)
		if err != nil {
			return "", err
		}
		services = append(services, entry{q.name, service})
		for _, f := range q.files {
			configs = append(configs, entry{q.name + "-" + configName(f.Name), object{{"content", dollars(f.Text)}}})
		}
		for i := range p.cachesOf(q) {
			volumes = append(volumes, entry{cacheName(q, i), object{{"driver", "local"}}})
		}
		if q.front {
			urls = append(urls, fmt.Sprintf("http://127.0.0.1:%d", q.port))
		}
	}
	more := []string{"", "Start it: docker compose -f " + p.Name + ".yaml up --wait; end it: docker compose -f " + p.Name + ".yaml down"}
	for _, name := range secrets(all) {
		more = append(more, "It needs "+name+" in the environment: its value is not written down here.")
	}
	if p.Bench != "" {
		more = append(more, "Measure it: "+p.bench(urls...))
	}
	var b strings.Builder
	b.WriteString(p.head(more...))
	err = writeYAML(&b, object{{"name", p.Name}, {"services", services}, {"configs", configs}, {"volumes", volumes}})
	return b.String(), err
}

// service is one process; all are those of the file.
func (p Plan) service(q process, all [][]process) (object, error) {
	o := object{{"image", dollars(p.imageFor(q))}}
	var argv, env list
	for _, w := range q.argv {
		argv = append(argv, interpolated(w))
	}
	for _, v := range q.env {
		env = append(env, v.name+"="+interpolated(v.value))
	}
	o = append(o, entry{"entrypoint", argv}, entry{"environment", env})
	if q.serves || q.router {
		o = append(o, entry{"network_mode", "host"}, entry{"depends_on", behind(q, all)})
	} else {
		o = append(o, entry{"ports", list{fmt.Sprintf("%d:%[1]d", q.port)}})
	}
	if p.ShmSize != "" {
		o = append(o, entry{"shm_size", p.ShmSize})
	} else {
		o = append(o, entry{"ipc", "host"})
	}
	limits, err := p.ulimits()
	if err != nil {
		return nil, err
	}
	o = append(o, entry{"ulimits", limits})
	if len(q.devices) > 0 {
		var ids list
		for _, d := range q.devices {
			ids = append(ids, d)
		}
		device := object{{"driver", "nvidia"}, {"device_ids", ids}, {"capabilities", list{"gpu"}}}
		o = append(o, entry{"deploy", object{{"resources", object{{"reservations", object{{"devices", list{device}}}}}}}})
	}
	var mounts, configs list
	for _, m := range p.Mounts {
		mount := m.Source + ":" + dollars(m.Target)
		if m.ReadOnly {
			mount += ":ro"
		}
		mounts = append(mounts, mount)
	}
	for i, target := range p.cachesOf(q) {
		mounts = append(mounts, cacheName(q, i)+":"+target)
	}
	for _, f := range q.files {
		configs = append(configs, object{{"source", q.name + "-" + configName(f.Name)}, {"target", filesAt + f.Name}})
	}
	check := list{"CMD", "curl", "-fsS", "-o", "/dev/null", fmt.Sprintf("http://127.0.0.1:%d%s", q.port, p.health())}
	return append(o, entry{"volumes", mounts}, entry{"configs", configs},
		entry{"healthcheck", object{
			{"test", check}, {"interval", "5s"}, {"timeout", "5s"}, {"retries", 3}, {"start_period", fmt.Sprintf("%ds", p.timeoutS())},
		}},
		entry{"restart", "no"}), nil
}

// filesAt is where containers have the files that an engine reads.
const filesAt = "/etc/perflab/"

func cacheName(q process, i int) string { return fmt.Sprintf("%s-cache-%d", q.name, i) }

func configName(file string) string {
	return strings.ToLower(strings.Trim(notName.ReplaceAllString(file, "-"), "-"))
}

// ulimits are the limits as compose has them.
func (p Plan) ulimits() (object, error) {
	var out object
	for _, text := range p.Ulimits {
		name, value, _ := strings.Cut(text, "=")
		n, err := strconv.Atoi(value)
		if name == "" || err != nil {
			return nil, missing("ulimit %q: write it as memlock=-1", text)
		}
		out = slices.Insert(out, len(out), entry{name, n})
	}
	return out, nil
}

// dollars keeps a text from being interpolated.
func dollars(s string) string { return strings.ReplaceAll(s, "$", "$$") }

// interpolated is a word as compose reads it.
func interpolated(w word) string {
	var b strings.Builder
	for _, p := range w {
		switch p.kind {
		case literal:
			b.WriteString(dollars(p.text))
		case secret:
			fmt.Fprintf(&b, "${%s:?set %[1]s}", p.text)
		case file:
			b.WriteString(filesAt + p.text)
		}
	}
	return b.String()
}

// behind are the engines that must be ready before a router starts.
func behind(router process, all [][]process) object {
	var out object
	for _, list := range all {
		if !router.router || list[len(list)-1].name != router.name {
			continue
		}
		for _, q := range list[:len(list)-1] {
			out = append(out, entry{q.name, object{{"condition", "service_healthy"}}})
		}
	}
	return out
}
