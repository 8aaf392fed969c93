package render

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"perflab/internal/arch"
	"perflab/internal/deploy"
	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
	"perflab/internal/field"
	"perflab/internal/redact"
)

// Format is a form in which deployments are written down.
type Format struct {
	Name      string
	Ext       string // of its files' names
	Container bool   // it needs an image
	Write     func(Plan) (string, error)
}

// KubernetesFormat is the name of the format of manifests.
const KubernetesFormat = "kubernetes"

// Formats are all of them.
func Formats() []Format {
	return []Format{
		{"script", ".sh", false, Script},
		{"compose", ".yaml", true, Compose},
		{"slurm", ".sbatch", false, Slurm},
		{KubernetesFormat, ".yaml", true, Kubernetes},
	}
}

// Site is the machines that deployments are for, and how their files are to be.
type Site struct {
	Format Format

	GPUs      int      // of each machine
	Devices   []string // of each machine, for a script or a compose file; empty: from index 0. Slurm and Kubernetes choose them
	Nodes     int      // machines, where their names are known only to Slurm or Kubernetes
	Hosts     []string // machines by name, or as name=address
	Interface string
	HCA       string
	Method    string            // how a replica spans machines; "": what suits the engine
	Topology  *cluster.Topology // of each machine; nil: not known

	Port      int
	Ready     time.Duration // that replicas may take
	Images    []string      // of containers: one, or ENGINE=IMAGE for each engine
	Mounts    []string      // SOURCE:TARGET[:ro]
	ShmSize   string
	Ulimits   []string
	Partition string
	Account   string
	TimeLimit string
	Namespace string
	Pods      Pods // Kubernetes: what is not said above
}

// Configuration is a serving command to write down for a site.
type Configuration struct {
	Label   string
	Name    string // of files and objects
	Command engine.Command
	GPU     arch.Accelerator // the zero one where it is not known
	Image   string           // where the site names none; "": the engine's own
	World   int              // devices of a replica
	Bench   string           // see Plan
	Notes   []string
}

// machines are those of the site, with all devices of each.
func (s *Site) machines() ([]cluster.Node, error) {
	if s.GPUs < 1 || s.Nodes < 1 {
		return nil, field.Errorf("", "[gpus] %d [nodes] %d: there is at least one of each", s.GPUs, s.Nodes)
	}
	devices := cluster.Devices(s.GPUs)
	if len(s.Devices) > 0 && (s.Format.Name == "script" || s.Format.Name == "compose") {
		devices = s.Devices
	}
	var nodes []cluster.Node
	add := func(name, addr string) {
		nodes = append(nodes, cluster.Node{Name: name, Addr: addr, Devices: devices, Interface: s.Interface, HCA: s.HCA})
	}
	switch {
	case len(s.Hosts) > 0:
		for _, host := range s.Hosts {
			name, addr, _ := strings.Cut(host, "=")
			add(name, cmp.Or(addr, name))
		}
	case s.Format.Name == "slurm" || s.Format.Name == KubernetesFormat:
		for i := range s.Nodes {
			name := fmt.Sprintf("node-%d", i)
			add(name, Addr(name))
		}
	case s.Nodes > 1 && s.Format.Name == "compose":
		return nil, field.Errorf("", "a compose file describes one machine: use [as] slurm or kubernetes, or script with [hosts]")
	case s.Nodes > 1:
		return nil, field.Errorf("", "a script needs the machines by name: [hosts] a=10.0.0.1,b=10.0.0.2")
	default:
		add("", "")
	}
	return nodes, nil
}

// topologies are those of the machines by name; of an unknown one none.
func (s *Site) topologies(nodes []cluster.Node) map[string]cluster.Topology {
	if s.Topology == nil {
		return nil
	}
	out := map[string]cluster.Topology{}
	for _, n := range nodes {
		out[n.Name] = *s.Topology
	}
	return out
}

// Plan deals the machines out to replicas and says what the site has.
func (s *Site) Plan(c Configuration) (Plan, error) {
	nodes, err := s.machines()
	if err != nil {
		return Plan{}, err
	}
	e, err := engine.ByName(c.Command.Engine)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{
		Name: c.Name, Port: s.Port, Bench: c.Bench, ShmSize: s.ShmSize, Ulimits: s.Ulimits,
		Partition: s.Partition, Account: s.Account, TimeLimit: s.TimeLimit, Pods: s.Pods,
		Spec: deploy.Spec{Name: c.Label, Health: e.Health, Timeout: s.Ready},
	}
	if p.Image, err = s.imageOf(&c); err != nil {
		return p, err
	}
	if p.Router, err = s.routerOf(&c, p.Image); err != nil {
		return p, err
	}
	if s.Format.Container && p.Image == "" {
		return p, field.Errorf("", "name the container image: [image] IMAGE, or [image] %s=IMAGE in a study of several engines", c.Command.Engine)
	}
	if c.GPU.Platform != arch.CUDA { // whose variable is the default
		p.Spec.Visible = c.GPU.Platform.Visible()
	}
	if err := s.podsOf(&p, c); err != nil {
		return p, err
	}
	if nodes[0].Name != "" {
		p.Nodes = nodes
	}
	if s.Format.Name == "script" && len(p.Nodes) == 0 {
		c.Command.Host = cmp.Or(c.Command.Host, "127.0.0.1") // nobody else need reach it
	}
	places, leftover := s.place(c.World, nodes)
	if len(places) == 0 {
		return p, field.Errorf("", "a replica takes %d GPUs, and there are %s: no whole number of machines gives them ([gpus] says how many a machine has)", c.World, counted(len(nodes), s.GPUs))
	}
	if p.Spec.Replicas, err = s.replicas(&c, places); err != nil {
		return p, err
	}
	for _, r := range p.Spec.Replicas {
		for _, peer := range append(r.Peers, deploy.Peer{Member: r.Member}) {
			if p.node(peer.Node) < 0 && peer.Node != "" { // a pod
				p.Nodes = append(p.Nodes, cluster.Node{Name: peer.Node, Addr: Addr(peer.Node)})
			}
		}
	}
	p.Comments = slices.Concat(c.Notes, []string{"Command: " + deploy.RedactCommand(c.Command).String(), replicasText(len(places), places[0], c.GPU)}, cluster.Remarks(c.Command, places[0], s.spreadBy(places[0])))
	for _, n := range leftover {
		p.Comments = append(p.Comments, leftoverText(n))
	}
	return p, s.mountsOf(&p, c.Command)
}

// podsOf is how pods are made where the format has such, and by which name accelerators are
// asked for where it has containers.
func (s *Site) podsOf(p *Plan, c Configuration) error {
	if s.Format.Name != KubernetesFormat {
		if p.Spec.Visible != "" && s.Format.Container {
			return field.Errorf("", "[as] %s asks for NVIDIA GPUs, and %s is none: use [as] kubernetes, script or slurm", s.Format.Name, c.GPU.Title)
		}
		return nil
	}
	p.Pods.Namespace, p.Pods.ShmSize = cmp.Or(s.Namespace, s.Pods.Namespace), cmp.Or(s.ShmSize, s.Pods.ShmSize)
	if len(s.Mounts) > 0 {
		p.Pods.Mounts = s.Mounts
	}
	if filepath.IsAbs(c.Command.Model) && len(p.Pods.Mounts) == 0 {
		p.Pods.Mounts = []string{c.Command.Model + ":" + c.Command.Model + ":ro"}
	}
	if c.GPU.Name != "" && c.GPU.Platform != arch.CPU {
		p.Pods.Resource = cmp.Or(s.Pods.Resource, Resource(c.GPU.Platform))
		if p.Pods.Resource == "" {
			return field.Errorf("", "it is not known by which name a cluster offers %s: use [as] script or slurm, or a study of runtime kubernetes that names the resource", c.GPU.Title)
		}
	}
	if !c.Command.Pools().Split() && !keyed(c.Command, s.Pods.Secrets) {
		p.Models = modelList
	}
	return nil
}

// modelList is where every engine lists its models, under its API key where it has one.
const modelList = "/v1/models"

// keyed reports whether engines ask for an API key, which a probe has not.
func keyed(c engine.Command, secrets map[string]string) bool {
	names := slices.Collect(maps.Keys(secrets))
	for _, kv := range c.Env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	if slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "API_KEY") }) {
		return true
	}
	shown := redact.Argv(c.Extra)
	return !slices.Equal(shown, c.Extra)
}

// place deals the machines out to replicas of so many devices.
func (s *Site) place(world int, nodes []cluster.Node) (places [][]cluster.Node, leftover []cluster.Node) {
	if s.Method == cluster.RPC && len(nodes) > 1 { // one replica over whatever there is
		return [][]cluster.Node{nodes}, nil
	}
	return cluster.Place(nodes, world, s.topologies(nodes))
}

// isNamed says that a machine is known by a name and not by its address.
func isNamed(n cluster.Node) bool {
	_, err := netip.ParseAddr(n.Addr)
	return err != nil
}

// replicas are the command's processes in each place.
func (s *Site) replicas(c *Configuration, places [][]cluster.Node) ([]deploy.Replica, error) {
	var out []deploy.Replica
	for _, place := range places {
		if len(place) > 1 && s.Format.Name == "script" && slices.ContainsFunc(place, isNamed) {
			return nil, field.Errorf("", "a replica spans these hosts, and engines want addresses there: write [hosts] a=10.0.0.1,b=10.0.0.2")
		}
		parts, err := cluster.Spread(c.Command, place, s.spreadBy(place))
		if err == nil && s.Format.Name == KubernetesFormat && c.Command.Pools().Split() {
			parts, err = cluster.Spread(c.Command, pods(parts, place[0]), "")
		}
		if err != nil {
			return nil, err
		}
		replica := deploy.Spread(parts)
		if c.GPU.Platform == arch.CPU {
			replica.Devices = nil
			for i := range replica.Peers {
				replica.Peers[i].Devices = nil
			}
		}
		out = append(out, replica)
	}
	return out, nil
}

// pods are the machines of a replica in pools where each of its engines is a pod, and its
// router another, known by their names.
func pods(parts []cluster.Part, like cluster.Node) []cluster.Node {
	pod := func(name string, devices []string) cluster.Node {
		like.Name, like.Addr, like.Devices = name, Addr(name), devices
		return like
	}
	out := []cluster.Node{pod(routerRole, nil)}
	for _, p := range parts {
		if p.Serves != "" {
			out = append(out, pod(p.Name, p.Devices))
		}
	}
	return out
}

// spreadBy is the method where a replica spans machines.
func (s *Site) spreadBy(place []cluster.Node) string {
	if len(place) == 1 {
		return ""
	}
	return s.Method
}

func replicasText(n int, place []cluster.Node, gpu arch.Accelerator) string {
	text := plural(n, "replica")
	if gpu.Platform == arch.CPU {
		return text
	}
	text += " of " + plural(len(place[0].Devices)*len(place), "GPU")
	if len(place) > 1 {
		text += fmt.Sprintf(", over %d machines", len(place))
	}
	return text
}

// plural writes "1 replica", "2 replicas".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func leftoverText(n cluster.Node) string {
	on := ""
	if n.Name != "" {
		on = " of " + n.Name
	}
	return fmt.Sprintf("Used by no replica, and allocated: GPU %s%s", strings.Join(n.Devices, ", "), on)
}

// Validate checks what is the same for all configurations: that an image which
// is for any engine is not for several, and that the machines are named.
func (s *Site) Validate(all []Configuration) error {
	engines := map[string]bool{}
	for _, c := range all {
		engines[c.Command.Engine] = true
	}
	for _, text := range s.Images {
		if !strings.Contains(text, "=") && len(engines) > 1 {
			return field.Errorf("", "[image] %s would be of %s alike: write [image] ENGINE=IMAGE for each", text, strings.Join(slices.Sorted(maps.Keys(engines)), " and "))
		}
	}
	_, err := s.machines()
	return err
}

// imageOf is the image to run in, "" where none is named or known: that of the
// site for this engine or for any, the configuration's, the project's own of the
// version.
func (s *Site) imageOf(c *Configuration) (string, error) {
	any := ""
	for _, text := range s.Images {
		name, image, paired := strings.Cut(text, "=")
		switch {
		case paired && name == routerRole:
		case paired && name == c.Command.Engine:
			return image, nil
		case paired:
			if _, err := engine.ByName(name); err != nil {
				return "", field.Errorf("", "[image] %q: %v", text, err)
			}
		case any != "":
			return "", field.Errorf("", "[image] names two images, %s and %s: say which engine each is of, as in %s=%s", any, text, c.Command.Engine, any)
		default:
			any = text
		}
	}
	version := strings.TrimPrefix(c.Command.Version, "v")
	switch image := cmp.Or(any, c.Image); {
	case image != "" || !s.Format.Container || version == "":
		return image, nil
	case c.Command.Engine == "vllm":
		return "vllm/vllm-openai:v" + version, nil
	case c.Command.Engine == "sglang":
		return "lmsysorg/sglang:v" + version, nil
	}
	return "", nil
}

// routerOf is the image of the router before engines in pools, where engines run in one:
// SGLang's has its router.
func (s *Site) routerOf(c *Configuration, image string) (string, error) {
	for _, text := range s.Images {
		if own, ok := strings.CutPrefix(text, routerRole+"="); ok {
			return own, nil
		}
	}
	if image == "" || !c.Command.Pools().Split() {
		return "", nil
	}
	if c.Command.Engine == "vllm" {
		return "", field.Errorf("", "vLLM's router is a package of its own, vllm-router, which vLLM's images lack: name one that has it by [image] router=IMAGE")
	}
	return image, nil
}

// mountsOf gives containers what they need of the machine: the directories named, the
// model where it is a path, else the cache of downloads; and a cache of compiled
// kernels, which replicas must not share.
func (s *Site) mountsOf(p *Plan, cmd engine.Command) error {
	if s.Format.Name == KubernetesFormat {
		for _, text := range s.Mounts {
			if _, err := parseVolume(text); err != nil {
				return field.Errorf("", "[mount] %v", err)
			}
		}
		p.Caches = cachesOf(cmd)
		return nil
	}
	for _, text := range s.Mounts {
		source, rest, ok := strings.Cut(text, ":")
		target, mode, _ := strings.Cut(rest, ":")
		if !ok || source == "" || !strings.HasPrefix(target, "/") || mode != "" && mode != "ro" {
			return field.Errorf("", "[mount] %q: write it as /models:/models:ro", text)
		}
		p.Mounts = append(p.Mounts, Mount{Source: source, Target: target, ReadOnly: mode == "ro"})
	}
	if p.Image == "" {
		return nil
	}
	if filepath.IsAbs(cmd.Model) && len(s.Mounts) == 0 {
		p.Mounts = append(p.Mounts, Mount{Source: cmd.Model, Target: cmd.Model, ReadOnly: true})
	} else if s.Format.Name == "compose" && len(s.Mounts) == 0 {
		p.Mounts = append(p.Mounts, Mount{Source: "${HF_HOME:-${HOME}/.cache/huggingface}", Target: "/root/.cache/huggingface"})
	}
	p.Caches = cachesOf(cmd)
	if cmd.Engine == "trtllm" && len(p.Ulimits) == 0 {
		p.Ulimits = []string{"memlock=-1", "stack=67108864"}
	}
	return nil
}

// cachesOf are where an engine keeps compiled kernels.
func cachesOf(cmd engine.Command) []string {
	if cmd.Engine == "vllm" {
		return []string{"/root/.cache/vllm"}
	}
	return nil
}

// Hardware names what a configuration runs on.
func Hardware(gpu arch.Accelerator, machines, gpus int) string {
	if gpu.Platform == arch.CPU {
		return gpu.Title
	}
	return counted(machines, gpus) + " x " + gpu.Title
}

func counted(machines, gpus int) string {
	if machines > 1 {
		return fmt.Sprintf("%d x %d", machines, gpus)
	}
	return strconv.Itoa(gpus)
}

var notObject = regexp.MustCompile(`[^a-z0-9]+`)

// ObjectName makes a name that files and objects may have.
func ObjectName(text string) string {
	const longest = 40
	name := strings.Trim(notObject.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if name == "" || name[0] < 'a' {
		name = "serve-" + name
	}
	return strings.Trim(name[:min(len(name), longest)], "-")
}
