package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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

// identity is a process told apart from later ones of the same id, and from those of
// other machines.
type identity struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`          // clock ticks after boot; 0 where the system does not tell
	Boot  string `json:"boot,omitempty"` // of its machine, different each time and everywhere
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

// runningProcess is a process that was found to run.
type runningProcess struct {
	identity
	name  string
	group int
}

func describe(r runningProcess) string { return fmt.Sprintf("process %d (%s)", r.PID, r.name) }

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

// Sweep ends what deployments under dir left running when their perflab was
// killed, and says what that was. Processes are known by recorded id and start time,
// and by their marker in the environment, never by name; those of a perflab
// that still runs are left alone. Where the system has no /proc it finds nothing.
func (l Launcher) Sweep(ctx context.Context, dir string) (ended []string, err error) {
	var errs []error
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case e.IsDir() || e.Name() != recordName:
			return nil
		}
		names, err := l.sweepRecord(ctx, path)
		ended = append(ended, names...)
		if errors.Is(err, errInUse) {
			return nil
		}
		errs = append(errs, err)
		return nil
	})
	return ended, errors.Join(append(errs, err)...)
}

// leftoverGrace is short: nobody waits for what a leftover still writes.
const leftoverGrace = time.Second

// errInUse is a record of a deployment whose perflab runs.
var errInUse = errors.New("a deployment runs there")

// sweepRecord ends the processes that one record leads to, and removes it. Those of a
// perflab that runs are left alone: errInUse.
func (l Launcher) sweepRecord(ctx context.Context, path string) (ended []string, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what a deployment left running: %w", err)
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("read what a deployment left running from %s: %w", path, err)
	}
	switch {
	case r.Owner.isRunning():
		return nil, fmt.Errorf("%w, of the perflab with process id %d", errInUse, r.Owner.PID)
	case r.Owner.onOtherMachine(currentOwner()) && len(r.Processes) > 0:
		return nil, l.sweepForeign(path, r)
	case r.Kind != l.Kind:
		return nil, fmt.Errorf("%s is of a deployment by the runtime %s, not %s: end what it lists with that one, and remove it", path, r.Kind, l.Kind)
	}
	for _, p := range r.Processes {
		what, err := l.End(ctx, p)
		ended = append(ended, what...)
		if err != nil {
			return ended, err
		}
	}
	return ended, os.Remove(path)
}

// sweepForeign deals with the record of a perflab of another machine, as in a directory that was
// copied from there. What that started on its machine is out of reach and none of ours; what
// it started elsewhere may be in use.
func (l Launcher) sweepForeign(path string, r record) error {
	if r.Kind == kindProcess {
		return os.Remove(path)
	}
	return &InfraError{
		Op:   "look for what a deployment left running",
		Err:  fmt.Errorf("%s is of a perflab on %s, and whether that still runs cannot be seen from here", path, r.Owner.Machine),
		Help: "end the deployment from there, or remove the file if nothing of it runs any more",
	}
}

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
