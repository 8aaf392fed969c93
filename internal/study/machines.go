package study

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/field"
	"perflab/internal/hardware"
)

// Machine is one of several of a kind, on each of which a study runs one trial at a time.
type Machine struct {
	Name       string           `yaml:"name" json:"name" jsonschema:"required,description=Name of the machine in the study and its report\\, of kind fleet that of its agent; of kind ssh also in the ssh configuration unless an address is given"`
	Address    string           `yaml:"address,omitempty" json:"address,omitempty" jsonschema:"description=ssh: host name or IP address to connect to. docker: where this machine reaches the ports of the Docker host"`
	User       string           `yaml:"user,omitempty" json:"user,omitempty" jsonschema:"description=ssh: account on the machine"`
	Port       int              `yaml:"port,omitempty" json:"port,omitempty" jsonschema:"description=ssh: port of its ssh server"`
	Identity   string           `yaml:"identity,omitempty" json:"identity,omitempty" jsonschema:"description=ssh: file with the private key to log in with"`
	Devices    hardware.Devices `yaml:"devices,omitempty" json:"devices,omitempty" jsonschema:"description=ssh and fleet: which of its accelerators engines may use\\, by index or UUID (default: the first)"`
	DockerHost string           `yaml:"docker_host,omitempty" json:"docker_host,omitempty" jsonschema:"description=docker: address of its Docker Engine\\, as in DOCKER_HOST"`
	Speed      float64          `yaml:"speed,omitempty" json:"speed,omitempty" jsonschema:"description=simulated: how fast it is beside others of its kind\\, such as 0.97 (default 1)"`
}

// host is the machine as ssh reaches it.
func (m Machine) host() deploy.HostEntry {
	return deploy.HostEntry{Name: m.Name, Address: m.Address, User: m.User, Port: m.Port, Identity: m.Identity, Devices: m.Devices}
}

// On is the study as it runs on one of its machines: whoever starts engines needs to know
// of no other. It shares nothing that changes with the study.
func (s *Study) On(m Machine) *Study {
	out, f := *s, *s.File
	f.Runtime.Machines = nil
	switch f.Runtime.Kind {
	case SSH:
		f.Runtime.Hosts = []deploy.HostEntry{m.host()}
	case Docker:
		d := docker.Settings{}
		if f.Runtime.Docker != nil {
			d = *f.Runtime.Docker
		}
		d.DockerHost, d.Address = m.DockerHost, cmp.Or(m.Address, d.Address)
		f.Runtime.Docker = &d
	case Simulated:
		f.Runtime.speed = m.Speed
	case Fleet:
		f.Runtime.Machines = []Machine{m}
	}
	out.File, out.offers = &f, nil
	out.models, out.lengths, out.counts = maps.Clone(s.models), maps.Clone(s.lengths), maps.Clone(s.counts)
	return &out
}

// Node is the machine of kind fleet that a study, or its part on one machine, runs on.
func (r Runtime) Node() Machine {
	if r.Kind != Fleet || len(r.Machines) != 1 {
		return Machine{}
	}
	return r.Machines[0]
}

// UseNodes gives a study of kind fleet the machines that have its labels, for good.
func (s *Study) UseNodes(names []string) error {
	if n := len(names); n > 1 && s.Strategy != Race {
		return fmt.Errorf("%d agents of the fleet have the study's labels (%s), and strategy %s runs one trial after another: use strategy race, or name one of them under runtime.machines", n, strings.Join(names, ", "), s.Strategy)
	}
	s.Runtime.Machines = nil
	for _, name := range names {
		s.Runtime.Machines = append(s.Runtime.Machines, Machine{Name: name})
	}
	var err error
	s.Limits, err = s.limits()
	return err
}

// MachineNames are those of a study with several machines.
func (f *File) MachineNames() []string {
	var out []string
	for _, m := range f.Runtime.Machines {
		out = append(out, m.Name)
	}
	return out
}

const (
	slowest = 0.1 // that a simulated machine may be, beside others of its kind
	fastest = 10
)

// parallel checks what is said of machines that run trials at the same time.
func (c places) parallel() {
	r, at := c.s.Runtime, "runtime.machines"
	c.nodes()
	if len(r.Machines) == 0 {
		return
	}
	switch {
	case r.Kind == "":
		return
	case r.Kind != SSH && r.Kind != Docker && r.Kind != Simulated && r.Kind != Fleet:
		c.add(at, "machines do not apply to runtime kind %s: use ssh, docker, fleet or simulated", r.Kind)
		return
	case r.Kind == Fleet && len(r.Machines) == 1: // which any strategy can use
	case c.s.Strategy != Race:
		c.add(at, "strategy %s runs one trial after another: several machines are for strategy race", c.s.Strategy)
	case len(r.Machines) < 2:
		c.add(at, "machines has one: list two or more, or leave it out")
	case c.s.Hardware.Nodes > 1:
		c.add(at, "each machine runs trials of its own, and hardware.nodes says that a configuration takes %d: leave one of them out", c.s.Hardware.Nodes)
	case len(r.Hosts) > 0:
		c.add("runtime.hosts", "hosts are the machines of one trial, and machines run a trial each: give one of them")
	case r.Spread != "":
		c.add("runtime.spread", "spread is for replicas that need several machines, and each of runtime.machines runs trials of its own")
	case r.Kind == Fleet: // see containers
	case r.Docker != nil && r.Docker.DockerHost != "":
		c.add("runtime.docker.docker_host", "each of runtime.machines has a docker_host of its own: leave this one out")
	case r.Docker != nil && r.Docker.Container != "":
		c.add("runtime.docker.container", "a container that runs already is on one machine: give an image, and runtime.machines start it each")
	}
	seen, engines := map[string]bool{}, map[string]bool{}
	for i, m := range r.Machines {
		at := field.Index(at, i)
		c.machine(at, m)
		if seen[m.Name] {
			c.add(at, "machine %s is listed twice", m.Name)
		}
		if m.DockerHost != "" && engines[m.DockerHost] {
			c.add(at+".docker_host", "%s is the docker_host of another machine too: trials on both would share its devices", m.DockerHost)
		}
		seen[m.Name], engines[m.DockerHost] = true, true
	}
}

// nodes checks how the machines of a fleet are named.
func (c places) nodes() {
	r := c.s.Runtime
	switch {
	case r.Kind != Fleet:
		if len(r.Labels) > 0 && r.Kind != "" {
			c.add("runtime.labels", "labels do not apply to runtime kind %s: they name machines of a fleet", r.Kind)
		}
		return
	case len(r.Labels) == 0 && len(r.Machines) == 0:
		c.add("runtime", "runtime kind fleet needs machines, by the names of their agents, or labels that they have: perflab fleet shows both")
	case len(r.Labels) > 0 && len(r.Machines) > 0:
		c.add("runtime.labels", "machines name the study's machines already: leave machines or labels out")
	case c.s.Hardware.Nodes > 1:
		c.add("hardware.nodes", "each machine of a fleet runs trials of its own, and hardware.nodes says that a configuration takes %d: leave it out", c.s.Hardware.Nodes)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		if value := r.Labels[name]; name == "" || value == "" {
			c.add("runtime.labels", "label %q has the value %q: give both, such as gpu: h100", name, value)
		}
	}
}

// machine checks one of them.
func (c places) machine(at string, m Machine) {
	kind := c.s.Runtime.Kind
	if err := m.host().Validate(); err != nil {
		c.add(at, "%v", err)
	}
	if err := (docker.Settings{Image: "any", DockerHost: m.DockerHost}).Validate(); err != nil {
		c.add(at+".docker_host", "%v", err)
	}
	given := []struct {
		key, kind string
		set       bool
	}{
		{"user", SSH, m.User != ""}, {"port", SSH, m.Port != 0}, {"identity", SSH, m.Identity != ""}, {"devices", SSH + " or " + Fleet, m.Devices != nil},
		{"docker_host", Docker, m.DockerHost != ""}, {"speed", Simulated, m.Speed != 0},
	}
	for _, g := range given {
		if g.set && !slices.Contains(strings.Split(g.kind, " or "), kind) {
			c.add(at+"."+g.key, "%s of a machine applies to runtime kind %s, not %s", g.key, g.kind, kind)
		}
	}
	switch n := c.s.Hardware.GPUs; {
	case kind == Simulated && m.Address != "":
		c.add(at+".address", "a simulated machine has no address")
	case kind == Fleet && m.Address != "":
		c.add(at+".address", "a machine of a fleet needs no address: its agent connects to the hub by itself")
	case kind == Docker && m.DockerHost == "":
		c.add(at, "machine %s needs docker_host: the address of its Docker Engine, such as tcp://%[1]s:2376", m.Name)
	case m.Devices != nil && len(m.Devices) != n:
		c.add(at+".devices", "machine %s has %d devices, and hardware.gpus is %d: it says what each machine has", m.Name, len(m.Devices), n)
	case m.Speed != 0 && !(m.Speed >= slowest && m.Speed <= fastest):
		c.add(at+".speed", "speed is %v: give a factor from %v to %v, such as 0.97", m.Speed, slowest, fastest)
	}
}

// machinesText is that of several machines.
func (f *File) machinesText() string {
	switch n := len(f.Runtime.Machines); {
	case n == 1:
		return " on machine " + f.Runtime.Machines[0].Name
	case n > 0:
		return fmt.Sprintf(" on each of %d machines", n)
	}
	return ""
}

// withoutDevices are machines as a study is known by: which of their devices it uses may change.
func withoutDevices(machines []Machine) []Machine {
	out := slices.Clone(machines)
	for i := range out {
		out[i].Devices = nil
	}
	return out
}
