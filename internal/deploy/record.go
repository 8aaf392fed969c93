package deploy

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
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
	Replica   int      `json:"replica"`
	Name      string   `json:"name"`
	Node      string   `json:"node,omitempty"`
	Marker    string   `json:"marker"`
	Argv      []string `json:"argv"` // secrets replaced
}

// withIdentity returns the record with what its Host knows the process by.
func (r Record) withIdentity(by Record) Record {
	r.identity, r.ID, r.Engine, r.Container, r.Dir = by.identity, by.ID, by.Engine, by.Container, by.Dir
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
	if err := os.WriteFile(path+".tmp", append(b, '\n'), 0o644); err != nil {
		_ = os.Remove(path + ".tmp") // the error to tell is the other
		return err
	}
	return os.Rename(path+".tmp", path)
}

// leftoverGrace is short: nobody waits for what a leftover still writes.
const leftoverGrace = time.Second

// remaining lists what runs of a recorded process and of what it started.
func (r Record) remaining() []runningProcess {
	var out []runningProcess
	if r.Marker != "" {
		out = survivors(r.Marker)
	}
	known := func(q runningProcess) bool { return q.PID == r.PID }
	if id, ok := identify(r.PID); ok && id == r.identity && !slices.ContainsFunc(out, known) {
		out = append(out, runningProcess{identity: id, name: strings.Join(r.Argv, " ")})
	}
	return out
}

// signal reaches each of them, if it is still the one meant.
func (r Record) signal(sig syscall.Signal) {
	for _, p := range r.remaining() {
		_ = signalExactly(p.identity, sig) // what stays is found again
	}
}
