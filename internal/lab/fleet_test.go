package lab

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"perflab/internal/bench"
	"perflab/internal/deploy"
	"perflab/internal/deploy/docker"
	"perflab/internal/study"
)

// someFleet has machines of any label, none of which can be reached.
type someFleet struct{ names []string }

var errAway = errors.New("it is away")

func (f someFleet) Names(context.Context, map[string]string) ([]string, error) { return f.names, nil }
func (f someFleet) Crew(string) bench.Crew                                     { return nil }
func (f someFleet) On(machine string, _ deploy.Process, _ *deploy.Containers) deploy.Runtime {
	return commander{nodes: []string{machine}, answer: func(context.Context, string, []string) (string, error) {
		return "", &deploy.InfraError{Op: "reach node " + machine, Err: errAway}
	}}
}

// TestChooseNodes: a study by labels gets the machines that are there as it begins, and has the same when it goes on.
func TestChooseNodes(t *testing.T) {
	text := strings.Replace(parallel, "kind: ssh, machines: [{name: a}, {name: b}]", "kind: fleet, labels: {gpu: h100}", 1)
	parse := func() *study.Study {
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := chooseNodes(t.Context(), parse(), &Options{Dir: dir}); !errors.Is(err, errNoFleet) {
		t.Errorf("without a fleet: %v", err)
	}
	begun, o := parse(), Options{Dir: dir, Fleet: someFleet{[]string{"a", "b"}}}
	if err := chooseNodes(t.Context(), begun, &o); err != nil || !slices.Equal(begun.MachineNames(), []string{"a", "b"}) {
		t.Fatalf("begins on %v, %v", begun.MachineNames(), err)
	}
	d, _, err := openDirectory(begun, []byte(text), o)
	if err != nil {
		t.Fatal(err)
	}
	d.file.Close()
	o = Options{Dir: dir, Resume: true, Fleet: someFleet{[]string{"a", "b", "c"}}}
	on := parse()
	if err := chooseNodes(t.Context(), on, &o); err != nil || !slices.Equal(on.MachineNames(), []string{"a", "b"}) {
		t.Errorf("goes on on %v, %v", on.MachineNames(), err)
	}
	if d, _, err = openDirectory(on, []byte(text), o); err != nil {
		t.Errorf("goes on: %v", err)
	} else {
		d.file.Close()
	}
	if err := os.Remove(filepath.Join(dir, nodesFile)); err != nil {
		t.Fatal(err)
	}
	if err := chooseNodes(t.Context(), parse(), &o); err == nil || !strings.Contains(err.Error(), "without it the study cannot go on") {
		t.Errorf("without %s: %v", nodesFile, err)
	}
	o.Dir = t.TempDir()
	if err := chooseNodes(t.Context(), parse(), &o); err == nil || !strings.Contains(err.Error(), "no study in") {
		t.Errorf("where there is no study: %v", err)
	}
}

// boxed keeps in what containers commands were run.
type boxed struct {
	someFleet
	asked *[]docker.Settings
}

func (f boxed) On(machine string, p deploy.Process, c *deploy.Containers) deploy.Runtime {
	return commander{nodes: []string{machine}, answer: func(_ context.Context, _ string, argv []string) (string, error) {
		var s docker.Settings
		if err := json.Unmarshal(c.Settings, &s); err != nil {
			return "", err
		}
		s.WorkDir = strings.Join(argv, " ")
		*f.asked = append(*f.asked, s)
		return "", &deploy.ExitError{Argv: argv, Code: 127}
	}}
}

// TestLookInContainers: of machines whose engines run in containers the hardware is looked at in one that gets all GPUs, and
// the engine is asked in one as its own; where the study asks for no GPU nothing is looked at.
func TestLookInContainers(t *testing.T) {
	for _, tt := range []struct{ gpus, look, engine, note string }{
		{"", docker.GPUsAll, "", ""},
		{docker.GPUsAll, docker.GPUsAll, docker.GPUsAll, ""},
		{docker.GPUsNone, "", docker.GPUsNone, "behind a machine's Docker Engine that gives commands no GPU"},
	} {
		text := strings.Replace(parallel, "kind: ssh, machines: [{name: a}, {name: b}]", "kind: fleet, machines: [{name: a}, {name: b}], docker: {image: i, gpus: '"+tt.gpus+"'}", 1)
		s, err := study.Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var asked []docker.Settings
		m := newSession(s, Options{Fleet: boxed{asked: &asked}}).machines[0].engines
		err = m.look(t.Context())
		looks, engines := 0, 0
		for _, s := range asked {
			switch {
			case strings.Contains(s.WorkDir, "nvidia-smi"):
				looks++
				if s.GPUs != tt.look || s.Image != "i" {
					t.Errorf("gpus %q: the hardware is looked at in %+v", tt.gpus, s)
				}
			case strings.Contains(s.WorkDir, "vllm"):
				engines++
				if s.GPUs != tt.engine {
					t.Errorf("gpus %q: the engine is asked in %+v", tt.gpus, s)
				}
			}
		}
		if (looks > 0) != (tt.look != "") || engines == 0 || err == nil || !strings.Contains(err.Error(), "in image i on a") {
			t.Errorf("gpus %q: %d looks at the hardware, %d at the engine: %v", tt.gpus, looks, engines, err)
		}
		if notes := strings.Join(m.ground.notes, " "); !strings.Contains(notes, tt.note) || tt.note == "" && strings.Contains(notes, "not looked at") {
			t.Errorf("gpus %q: notes %q", tt.gpus, notes)
		}
	}
}

// TestOnNodes: each machine of a fleet has a session and a runtime of its own, deals its own devices, and is lost when it
// cannot be reached.
func TestOnNodes(t *testing.T) {
	s, err := study.Parse("t.yaml", []byte(strings.Replace(parallel, "kind: ssh, machines: [{name: a}, {name: b}]", "kind: fleet, machines: [{name: a}, {name: b, devices: [2, 3]}]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	l := newSession(s, Options{Fleet: someFleet{}})
	if len(l.machines) != 2 {
		t.Fatalf("%d machines", len(l.machines))
	}
	for i, want := range [][]string{{"0", "1"}, {"2", "3"}} {
		m := l.machines[i]
		if nodes := m.engines.nodes(); len(nodes) != 1 || nodes[0].Name != m.machine || !slices.Equal(nodes[0].Devices, want) {
			t.Errorf("machine %s has %+v", m.machine, nodes)
		}
		rt, err := m.engines.runtime("vllm")
		if err != nil || !slices.Equal(rt.(deploy.Commander).Nodes(), []string{m.machine}) {
			t.Errorf("machine %s starts engines by %+v, %v", m.machine, rt, err)
		}
		if !m.unreachable() {
			t.Errorf("machine %s can be reached", m.machine)
		}
	}
}
