package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"perflab/internal/durable"
	"perflab/internal/proc"
)

// recordName is the file in a deployment's directory that leads to what runs.
// It is there from before the first process until Stop has ended the last.
const recordName = "processes.json"

// markerKey names the environment variable that marks every process of a
// deployment, wherever it goes.
const markerKey = "PERFLAB_DEPLOYMENT"

// record leads to the processes of a deployment.
type record struct {
	Kind      string   `json:"kind"`   // of the runtime that started them
	Marker    string   `json:"marker"` // KEY=value: each process has it in its environment, with a number of its own
	Owner     owner    `json:"owner"`
	Processes []Record `json:"processes"`
}

// Record leads to one process, wherever it runs, after its perflab is gone. A Host
// fills in what it knows the process by.
type Record struct {
	identity           // on its machine
	ID        string   `json:"id,omitempty"`        // of a container
	Engine    string   `json:"engine,omitempty"`    // address of what has the container
	Container string   `json:"container,omitempty"` // that the process was started in
	Dir       string   `json:"dir,omitempty"`       // on its machine, made for it
	Guard     identity `json:"guard,omitzero"`      // of the process between perflab and it
	Cgroup    string   `json:"cgroup,omitempty"`    // directory of the cgroup around it
	Replica   int      `json:"replica"`
	Name      string   `json:"name"`
	Node      string   `json:"node,omitempty"`
	Marker    string   `json:"marker"`
	Argv      []string `json:"argv"` // secrets replaced
}

// withIdentity returns the record with what its Host knows the process by.
func (r Record) withIdentity(by Record) Record {
	r.identity, r.ID, r.Engine, r.Container, r.Dir = by.identity, by.ID, by.Engine, by.Container, by.Dir
	r.Guard, r.Cgroup = by.Guard, by.Cgroup
	return r
}

// owner is the perflab that started what a record lists.
type owner struct {
	identity
	Machine string `json:"machine,omitempty"` // its name
}

// currentOwner is this perflab as an owner.
func currentOwner() owner {
	id, _ := identify(os.Getpid())
	name, _ := os.Hostname() // "" where it is not told
	return owner{id, name}
}

// isRunning tells whether the owner runs on this machine.
func (o owner) isRunning() bool {
	id, ok := identify(o.PID)
	return ok && id == o.identity
}

// onOtherMachine tells whether the owner belongs to another machine, from where nobody sees
// whether it runs. A machine that was booted again keeps its name.
func (o owner) onOtherMachine(here owner) bool {
	return o.Boot != "" && here.Boot != "" && o.Boot != here.Boot && o.Machine != here.Machine
}

// write replaces the record at path in one step.
func (r record) write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(path, append(b, '\n'), 0o644)
}

// leftoverGrace is short: nobody waits for what a leftover still writes.
const leftoverGrace = time.Second

// scope is what a recorded process and what it started can be found by. A cgroup counts where it
// bears the name that perflab gave it: a record may come from elsewhere.
func (r Record) scope() scope {
	s := scope{marker: r.Marker, guard: r.Guard}
	if r.Marker != "" && filepath.Base(r.Cgroup) == cgroupName(r.Marker) {
		s.cgroup = r.Cgroup
	}
	return s
}

// remaining lists what runs of a recorded process and of what it started. Of all that the guard ends
// its own end is the last, and the proof.
func (r Record) remaining() []proc.Process {
	out := r.scope().survivors()
	known := func(p proc.Process) bool { return p.PID == r.PID }
	if id, ok := identify(r.PID); ok && id == r.identity && !slices.ContainsFunc(out, known) {
		out = append(out, proc.Process{ID: id, Name: strings.Join(r.Argv, " ")})
	}
	if id, ok := identify(r.Guard.PID); ok && id == r.Guard && len(out) == 0 {
		out = append(out, proc.Process{ID: id, Name: guardName})
	}
	return out
}

// signal reaches each of them but the guard, if it is still the one meant.
func (r Record) signal(sig syscall.Signal) {
	s := r.scope()
	s.signal(sig)
	if r.identity != (identity{}) {
		_ = signalExactly(r.identity, sig) // what stays is found again
	}
}
