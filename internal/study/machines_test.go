package study

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"perflab/internal/deploy"
)

// parallelStudy is a race with a runtime.
func parallelStudy(hardware, runtime string) string {
	return fmt.Sprintf(`name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2%s}
objective: {metric: total_token_throughput}
workloads: [{name: a, dataset_name: random, num_prompts: 10}]
baseline: {label: base, engine: vllm}
budget: {trials: 20, time: 1h}
runtime: {%s}
`, hardware, runtime)
}

// TestMachines: machines that run trials at the same time are checked, and one of them is a
// study by itself.
func TestMachines(t *testing.T) {
	for _, tt := range []struct{ name, hardware, runtime, want string }{
		{"ssh", "", "kind: ssh, machines: [{name: a}, {name: b, address: 10.0.0.2, user: u, port: 2222, devices: [2, 3]}]", ""},
		{"docker", "", "kind: docker, docker: {image: i}, machines: [{name: a, docker_host: 'tcp://a:2376'}, {name: b, docker_host: 'tcp://b:2376', address: b}]", ""},
		{"simulated", "", "kind: simulated, machines: [{name: a}, {name: b, speed: 0.97}]", ""},
		{"fleet", "", "kind: fleet, machines: [{name: a}, {name: b, devices: [2, 3]}]", ""},
		{"containers of a fleet", "", "kind: fleet, docker: {image: i, mounts: ['~/.cache:/c', v:/v]}, machines: [{name: a}, {name: b, devices: [2, 3]}]", ""},
		{"no image of a fleet", "", "kind: fleet, docker: {}, machines: [{name: a}, {name: b}]", "image is missing"},
		{"another engine of a fleet", "", "kind: fleet, docker: {image: i, docker_host: 'tcp://a:1'}, machines: [{name: a}, {name: b}]", "docker_host does not apply to machines of a fleet"},
		{"a running container of a fleet", "", "kind: fleet, docker: {container: c}, machines: [{name: a}, {name: b}]", "container does not apply to machines of a fleet"},
		{"relative mount of a fleet", "", "kind: fleet, docker: {image: i, mounts: ['./c:/c']}, machines: [{name: a}, {name: b}]", "relative to nothing on another machine"},
		{"directory of containers", "", "kind: fleet, dir: /x, docker: {image: i}, machines: [{name: a}, {name: b}]", "dir does not apply to runtime kind fleet with docker"},
		{"limits of containers", "", "kind: fleet, limits: {open_files: 1}, docker: {image: i}, machines: [{name: a}, {name: b}]", "limits do not apply to runtime kind fleet with docker"},
		{"labels of others", "", "kind: ssh, labels: {gpu: h100}, hosts: [{name: a}]", "t.yaml:8:30: labels do not apply to runtime kind ssh"},
		{"neither", "", "kind: fleet", "t.yaml:8:10: runtime kind fleet needs machines, by the names of their agents, or labels"},
		{"both", "", "kind: fleet, labels: {gpu: h100}, machines: [{name: a}, {name: b}]", "machines name the study's machines already"},
		{"empty label", "", "kind: fleet, labels: {gpu: ''}", `label "gpu" has the value ""`},
		{"address", "", "kind: fleet, machines: [{name: a}, {name: b, address: c}]", "a machine of a fleet needs no address"},
		{"devices of all", ", devices: [0, 1]", "kind: fleet, machines: [{name: a}, {name: b}]", "name them for each machine, under runtime.machines"},
		{"nodes", ", nodes: 2", "kind: fleet, labels: {gpu: h100}", "leave it out"},
		{"process", "", "kind: process, machines: [{name: a}, {name: b}]", "machines do not apply to runtime kind process: use ssh, docker, fleet or simulated"},
		{"predicted", "", "kind: predicted, machines: [{name: a}, {name: b}]", "machines do not apply to runtime kind predicted"},
		{"one", "", "kind: ssh, machines: [{name: a}]", "machines has one: list two or more, or leave it out"},
		{"spread", ", nodes: 2", "kind: ssh, machines: [{name: a}, {name: b}]", "hardware.nodes says that a configuration takes 2"},
		{"hosts", "", "kind: ssh, hosts: [{name: c}], machines: [{name: a}, {name: b}]", "hosts are the machines of one trial, and machines run a trial each: give one of them"},
		{"twice", "", "kind: ssh, machines: [{name: a}, {name: a}]", "machine a is listed twice"},
		{"no name", "", "kind: ssh, machines: [{name: a}, {address: b}]", "a host has no name"},
		{"speed of a real one", "", "kind: ssh, machines: [{name: a}, {name: b, speed: 2}]", "speed of a machine applies to runtime kind simulated, not ssh"},
		{"no speed", "", "kind: simulated, machines: [{name: a}, {name: b, speed: 20}]", "speed is 20: give a factor from 0.1 to 10"},
		{"user of a simulated one", "", "kind: simulated, machines: [{name: a}, {name: b, user: u}]", "user of a machine applies to runtime kind ssh, not simulated"},
		{"devices of a simulated one", "", "kind: simulated, machines: [{name: a}, {name: b, devices: [1, 2]}]", "devices of a machine applies to runtime kind ssh or fleet, not simulated"},
		{"no docker host", "", "kind: docker, docker: {image: i}, machines: [{name: a, docker_host: 'tcp://a:2376'}, {name: b}]", "machine b needs docker_host: the address of its Docker Engine, such as tcp://b:2376"},
		{"docker host by ssh", "", "kind: docker, docker: {image: i}, machines: [{name: a, docker_host: 'tcp://a:2376'}, {name: b, docker_host: 'ssh://b'}]", `docker_host "ssh://b" must begin with unix:// or tcp://`},
		{"docker host twice", "", "kind: docker, docker: {image: i}, machines: [{name: a, docker_host: 'tcp://a:2376'}, {name: b, docker_host: 'tcp://a:2376'}]", "tcp://a:2376 is the docker_host of another machine too"},
		{"too few devices", "", "kind: ssh, machines: [{name: a}, {name: b, devices: [1]}]", "machine b has 1 devices, and hardware.gpus is 2: it says what each machine has"},
	} {
		s, err := Parse("t.yaml", []byte(parallelStudy(tt.hardware, tt.runtime)))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %s", tt.name, err, tt.want)
		}
		if err == nil && (s.Limits.Time != 2*time.Hour || !strings.HasSuffix(s.HardwareText(""), " on each of 2 machines")) {
			t.Errorf("%s: %v of trials on %s", tt.name, s.Limits.Time, s.HardwareText(""))
		}
	}
	if _, err := Parse("t.yaml", []byte("strategy: tpe\n"+parallelStudy("", "kind: ssh, machines: [{name: a}, {name: b}]"))); err == nil || !strings.Contains(err.Error(), "strategy tpe runs one trial after another") {
		t.Errorf("tpe: %v", err)
	}
}

func TestOnMachine(t *testing.T) {
	s, err := Parse("t.yaml", []byte(parallelStudy("", "kind: ssh, machines: [{name: a}, {name: b, address: 10.0.0.2, devices: [2, 3]}]")))
	if err != nil {
		t.Fatal(err)
	}
	on := s.On(s.Runtime.Machines[1])
	want := deploy.HostEntry{Name: "b", Address: "10.0.0.2", Devices: []string{"2", "3"}}
	if h := on.Runtime.Hosts; len(h) != 1 || h[0].Name != want.Name || h[0].Address != want.Address || len(h[0].Devices) != 2 || len(on.Runtime.Machines) != 0 {
		t.Errorf("runs on %+v", on.Runtime)
	}
	if len(s.Runtime.Hosts) != 0 || len(s.Runtime.Machines) != 2 {
		t.Errorf("the study itself became %+v", s.Runtime)
	}
	mine, err := s.Fingerprint()
	s.Runtime.Machines[1].Devices = nil
	if other, err2 := s.Fingerprint(); err != nil || err2 != nil || mine != other {
		t.Errorf("with other devices it is another study: %v, %v", err, err2)
	}
	s.Runtime.Machines = s.Runtime.Machines[:1]
	if other, _ := s.Fingerprint(); mine == other {
		t.Error("with fewer machines it is the same study")
	}
}

// TestNodes: a study by labels has the machines that it is given, for good; one machine suits every strategy, several
// a race.
func TestNodes(t *testing.T) {
	s, err := Parse("t.yaml", []byte(parallelStudy("", "kind: fleet, labels: {gpu: h100}")))
	if err != nil {
		t.Fatal(err)
	}
	none, _ := s.Fingerprint()
	if err := s.UseNodes([]string{"a", "b"}); err != nil || s.Limits.Time != 2*time.Hour || len(s.MachineNames()) != 2 {
		t.Errorf("%v, %v on %v", err, s.Limits.Time, s.MachineNames())
	}
	if fixed, err := s.Fingerprint(); err != nil || fixed == none {
		t.Errorf("the machines are no part of the study: %v", err)
	}
	if on := s.On(s.Runtime.Machines[1]); on.Runtime.Node().Name != "b" || s.Runtime.Node().Name != "" {
		t.Errorf("runs on %+v", on.Runtime)
	}
	one, err := Parse("t.yaml", []byte("strategy: tpe\n"+parallelStudy("", "kind: fleet, labels: {gpu: h100}")))
	if err != nil {
		t.Fatal(err)
	}
	if err := one.UseNodes([]string{"a", "b"}); err == nil || !strings.Contains(err.Error(), "2 agents of the fleet have the study's labels (a, b), and strategy tpe runs one trial after another") {
		t.Error(err)
	}
	if err := one.UseNodes([]string{"a"}); err != nil || one.Runtime.Node().Name != "a" || one.HardwareText("") != "2 x NVIDIA H100 SXM on machine a" {
		t.Errorf("%v, %q on %s", err, one.Runtime.Node().Name, one.HardwareText(""))
	}
	if _, err := Parse("t.yaml", []byte("strategy: tpe\n"+parallelStudy("", "kind: fleet, machines: [{name: a}]"))); err != nil {
		t.Error(err)
	}
}
