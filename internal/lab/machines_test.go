package lab

import (
	"context"
	"errors"
	"slices"
	"testing"

	"perflab/internal/deploy"
	"perflab/internal/study"
	"perflab/internal/tune"
)

// parallel is a race over two machines that ssh reaches.
const parallel = `name: t
model: Qwen/Qwen3-8B
hardware: {gpu: h100-sxm, gpus: 2}
objective: {metric: total_token_throughput}
workloads: [{name: a, dataset_name: random, num_prompts: 10}]
baseline: {label: base, engine: vllm}
budget: {trials: 20}
runtime: {kind: ssh, machines: [{name: a}, {name: b}]}
`

// TestOnMachines: each machine has a session of its own, which knows of no other, and one
// that cannot be reached after a trial was lost is told so.
func TestOnMachines(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(parallel))
	if err != nil {
		t.Fatal(err)
	}
	l := newSession(s, Options{})
	if len(l.machines) != 2 || l.machines[0].engines == l.machines[1].engines {
		t.Fatalf("%d machines", len(l.machines))
	}
	down := errors.New("no route to host")
	for i, m := range l.machines {
		if nodes := m.engines.nodes(); len(nodes) != 1 || nodes[0].Name != m.machine || !slices.Equal(nodes[0].Devices, []string{"0", "1"}) {
			t.Errorf("machine %s has %+v", m.machine, nodes)
		}
		m.engines.runtimes[""] = commander{nodes: []string{m.machine}, answer: func(context.Context, string, []string) (string, error) {
			if i == 1 {
				return "", &deploy.InfraError{Op: "reach b", Err: down}
			}
			return "", nil
		}}
		if m.unreachable() != (i == 1) {
			t.Errorf("machine %s is unreachable: %v", m.machine, m.unreachable())
		}
	}
}

// TestMachinesInTheFacts: what a journal tells of several machines is in the study's facts.
func TestMachinesInTheFacts(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(parallel))
	if err != nil {
		t.Fatal(err)
	}
	l := newSession(s, Options{})
	f := l.facts.assemble(true, nil, tune.Result{Nodes: []tune.NodeEffect{{Name: "a", Launches: 2}}})
	if len(f.Machines) != 1 || f.Machines[0].Name != "a" || f.Hardware != "2 x NVIDIA H100 SXM on each of 2 machines" {
		t.Errorf("%+v on %s", f.Machines, f.Hardware)
	}
}
